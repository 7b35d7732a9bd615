//! Reads one field of a body as a value of one type. A method returns `None` if the field is absent
//! or invalid. It reports a fault if the field is invalid, or if it is required and absent. The
//! methods for lists are in `list_field`, those for codes of the authority's lists in `code_field`.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Number, Value};

use crate::domain::events::log_position::{LOG_POSITION_FORM, LogPosition};
use crate::domain::invoice::irn::{IRN_SUFFIX_CHARS, Irn};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::form_schema::{FieldType, FormSchema, Presence, Property, SchemaRecorder};
use crate::http::forms::json_path::{JsonPath, is_blank};
use crate::http::forms::reader::{FormReport, Reader};
use crate::http::forms::text_checks::{self, check_char_count, check_pattern, check_single_line};

/// The maximum length, in characters, of a text for which the specification gives no limit.
pub(crate) const TEXT_CHARS_MAX: usize = 255;
/// The maximum length, in characters, of a long text for which the specification gives no limit.
pub(crate) const LONG_TEXT_CHARS_MAX: usize = 1_000;
/// The maximum length of an IRN, in characters: an invoice number of the maximum length, and the suffix.
pub(crate) const IRN_CHARS_MAX: usize = TEXT_CHARS_MAX + IRN_SUFFIX_CHARS;
pub(super) const IRN_FORMAT: &str = "{invoice_no}-{service_id}-{YYYYMMDD}";

/// A field that a form has requested from a `Reader` but has not read yet.
pub(crate) struct Field<'f> {
    pub(super) parent: &'f JsonPath<'f>,
    pub(super) name: &'static str,
    /// `None` if the field is absent or null.
    pub(super) value: Option<&'f Value>,
    pub(super) is_required: bool,
    pub(super) report: &'f FormReport<'f>,
    /// Set only while the schema of the form is recorded. The field then records its name, presence and type here.
    pub(super) recorder: Option<(&'f SchemaRecorder, Presence)>,
}

impl<'f> Field<'f> {
    /// Reads a single line of text.
    pub(crate) fn text(self, chars_max: usize) -> Option<String> {
        self.record_type(|| FieldType::Text {
            min: 0,
            max: chars_max,
        })
        .check_trimmed(|text| check_single_line(text, 0, chars_max))
    }

    /// Reads an identifier, such as an invoice number: a single line of text without invisible characters.
    pub(crate) fn identifier(self, chars_max: usize) -> Option<String> {
        self.record_type(|| FieldType::Identifier { max: chars_max })
            .check_trimmed(|text| text_checks::check_identifier(text, chars_max))
    }

    /// Reads a password. Leading and trailing blanks are part of a password, so they are not trimmed.
    pub(crate) fn password(self, chars_min: usize, chars_max: usize) -> Option<String> {
        self.record_type(|| FieldType::Text {
            min: chars_min,
            max: chars_max,
        })
        .check_untrimmed(|text| check_single_line(text, chars_min, chars_max))
    }

    /// Reads a text that may have several lines.
    pub(crate) fn long_text(self, chars_min: usize, chars_max: usize) -> Option<String> {
        self.record_type(|| FieldType::Text {
            min: chars_min,
            max: chars_max,
        })
        .check_trimmed(|text| text_checks::check_multiline(text, chars_min, chars_max))
    }

    pub(crate) fn email(self) -> Option<String> {
        self.record_type(|| FieldType::Email)
            .check_trimmed(|text| text_checks::check_email(text, TEXT_CHARS_MAX))
    }

    /// Reads a date of the calendar, written `YYYY-MM-DD`.
    pub(crate) fn date(self) -> Option<Date> {
        self.record_type(|| FieldType::Date)
            .check_trimmed(text_checks::parse_date)
    }

    /// Reads a text for which `fits` must return true. If it returns false, a fault for `rule` is reported.
    pub(crate) fn fitting_text(
        self,
        rule: FieldRule,
        fits: impl FnOnce(&str) -> bool,
    ) -> Option<String> {
        self.record_type(|| FieldType::Formatted {
            rule: rule.id(),
            description: rule.to_string(),
        })
        .check_trimmed(|text| {
            if fits(text) {
                Ok(text.to_owned())
            } else {
                Err(rule)
            }
        })
    }

    /// Reads a code in the format that `pattern` shows. Each 9 in the pattern stands for one digit.
    pub(crate) fn text_with_pattern(self, pattern: &'static str) -> Option<String> {
        self.record_type(|| FieldType::Pattern {
            pattern,
            list: None,
        })
        .check_trimmed(|text| check_pattern(pattern, text).map(|()| text.to_owned()))
    }

    /// Reads a text that `check` accepts. `rule` and `description` describe the text in the API document.
    pub(crate) fn checked_text(
        self,
        rule: &'static str,
        description: &str,
        check: impl FnOnce(&str) -> Result<(), FieldRule>,
    ) -> Option<String> {
        self.record_type(|| FieldType::Formatted {
            rule,
            description: description.to_owned(),
        })
        .check_trimmed(|text| check(text).map(|()| text.to_owned()))
    }

    /// Reads a log position: an event number or a timestamp.
    pub(crate) fn log_position(self) -> Option<LogPosition> {
        let field = self.record_type(|| FieldType::LogPosition);
        let text = match field.non_text_value()? {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => return field.report_fault(FieldRule::Type("a number or a string")),
        };
        LogPosition::parse(&text)
            .or_else(|| field.report_fault(FieldRule::must_be("format", LOG_POSITION_FORM)))
    }

    /// Reads one of a fixed set of words, in upper or lower case. `allowed` lists the words for callers.
    pub(crate) fn word<T>(
        self,
        parse: fn(&str) -> Option<T>,
        allowed: fn() -> String,
    ) -> Option<T> {
        self.record_type(|| FieldType::Word(allowed()))
            .check_trimmed(|text| text_checks::parse_word(text, parse, allowed))
    }

    /// Reads a word as `word` does. The API document lists each word in lower and in upper case, because callers send
    /// this field in either case.
    pub(crate) fn word_in_either_case<T>(
        self,
        parse: fn(&str) -> Option<T>,
        allowed: fn() -> String,
    ) -> Option<T> {
        self.record_type(|| {
            FieldType::Word(format!(
                "{}, {}",
                allowed().to_lowercase(),
                allowed().to_uppercase()
            ))
        })
        .check_trimmed(|text| text_checks::parse_word(text, parse, allowed))
    }

    /// Reads an id that this service assigned: a whole number above 0.
    pub(crate) fn id(self) -> Option<i64> {
        let field = self.record_type(|| FieldType::Id);
        match field.non_text_value()? {
            Value::Number(number) => match number.as_i64().filter(|id| *id > 0) {
                Some(id) => Some(id),
                None => field.report_fault(FieldRule::must_be("integer", "a whole number above 0")),
            },
            _ => field.report_fault(FieldRule::Type("an integer")),
        }
    }

    pub(crate) fn irn(self) -> Option<Irn> {
        self.irn_with_max(IRN_CHARS_MAX)
    }

    /// Reads an IRN of at most `chars_max` characters.
    pub(crate) fn irn_with_max(self, chars_max: usize) -> Option<Irn> {
        self.record_type(|| FieldType::Irn { max: chars_max })
            .check_trimmed(|text| {
                check_char_count(text, 0, chars_max)?;
                Irn::parse(text).map_err(|_| FieldRule::Written {
                    id: "irn_malformed",
                    format: IRN_FORMAT,
                })
            })
    }

    /// Reads a JSON number without loss of digits. A number written as a JSON string is a fault.
    pub(crate) fn amount(self, bounds: AmountBounds) -> Option<Amount> {
        let field = self.record_type(|| FieldType::Number(bounds));
        let Value::Number(number) = field.non_text_value()? else {
            return field.report_fault(FieldRule::Type("a number"));
        };
        let amount = match Amount::parse(&number.to_string()) {
            Ok(amount) => amount,
            Err(fault) => return field.report_fault(FieldRule::other("digits", fault.to_string())),
        };
        match bounds.broken_rule(amount) {
            Some(rule) => field.report_fault(rule),
            None => Some(amount),
        }
    }

    pub(crate) fn boolean(self) -> Option<bool> {
        let field = self.record_type(|| FieldType::Boolean);
        match field.non_text_value()? {
            Value::Bool(value) => Some(*value),
            _ => field.report_fault(FieldRule::Type("true or false")),
        }
    }

    pub(crate) fn object<T>(self, form: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Option<T> {
        if self.recorder.is_some() {
            self.record_type(|| FieldType::Object(FormSchema::for_form(form)));
            return None;
        }
        let Value::Object(object) = self.non_text_value()? else {
            return self.report_fault(FieldRule::Type("an object"));
        };
        Reader::read(object, self.path(), self.report, form)
    }

    /// Reads a whole number from 0 to `max`.
    pub(crate) fn whole_number(self, max: u32) -> Option<u32> {
        let field = self.record_type(|| FieldType::WholeNumber { max });
        let Value::Number(number) = field.non_text_value()? else {
            return field.report_fault(FieldRule::Type("a number"));
        };
        match check_whole_number(max, number) {
            Ok(number) => Some(number),
            Err(rule) => field.report_fault(rule),
        }
    }

    /// Reads an RFC 3339 timestamp.
    pub(crate) fn moment(self) -> Option<Timestamp> {
        self.record_type(|| FieldType::Moment)
            .check_trimmed(|text| text.parse().map_err(|_| FieldRule::MOMENT))
    }

    /// Records the type of the field if a schema is being recorded.
    pub(super) fn record_type(self, field_type: impl FnOnce() -> FieldType) -> Self {
        if let Some((recorder, presence)) = self.recorder {
            recorder.record(Property {
                name: self.name,
                presence,
                shape: field_type(),
            });
        }
        self
    }

    /// Reads a text. The text is trimmed before it is checked.
    pub(super) fn check_trimmed<T>(
        self,
        check: impl FnOnce(&'f str) -> Result<T, FieldRule>,
    ) -> Option<T> {
        self.check_untrimmed(|text| check(text.trim()))
    }

    fn check_untrimmed<T>(self, check: impl FnOnce(&'f str) -> Result<T, FieldRule>) -> Option<T> {
        let Value::String(text) = self.text_value()? else {
            return self.report_fault(FieldRule::Type("a string"));
        };
        match check(text) {
            Ok(value) => Some(value),
            Err(rule) => self.report_fault(rule),
        }
    }

    /// Returns the value of a text field. A blank text counts as absent. Reports a fault if a required field is absent.
    fn text_value(&self) -> Option<&'f Value> {
        self.check_required(self.value.filter(|value| !is_blank(value)))
    }

    /// Returns the value of a field that is not a text. A blank text counts as missing if the field is required, and
    /// otherwise as a value of the wrong type.
    pub(super) fn non_text_value(&self) -> Option<&'f Value> {
        self.check_required(
            self.value
                .filter(|value| !self.is_required || !is_blank(value)),
        )
    }

    fn check_required(&self, value: Option<&'f Value>) -> Option<&'f Value> {
        if value.is_none() && self.is_required {
            self.report_fault::<()>(FieldRule::Required);
        }
        value
    }

    pub(super) fn report_fault<T>(&self, rule: FieldRule) -> Option<T> {
        report_fault_at(self.report, &self.path(), rule)
    }

    pub(super) fn path(&self) -> JsonPath<'f> {
        JsonPath::Field(self.parent, self.name)
    }
}

pub(super) fn report_fault_at<T>(
    report: &FormReport<'_>,
    path: &JsonPath<'_>,
    rule: FieldRule,
) -> Option<T> {
    report.add_fault(Fault::field(path.dotted_path(), rule));
    None
}

/// Checks that a number is a whole number from 0 to `max`, and returns it.
pub(super) fn check_whole_number(max: u32, number: &Number) -> Result<u32, FieldRule> {
    let whole_number = number
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| *number <= max);
    whole_number
        .ok_or_else(|| FieldRule::must_be("integer", format!("a whole number from 0 to {max}")))
}
