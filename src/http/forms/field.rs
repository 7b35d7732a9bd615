//! One field, and the kinds of values it may have. Each kind answers with the value or, having reported why
//! not, with nothing; each rule has a stable id beside its sentence.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;

use crate::domain::events::log_position::{LOG_POSITION, LogPosition};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::money::Amount;
use crate::domain::party::email::is_email;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::bounds::Bounds;
use crate::http::forms::form_schema::{FieldType, FormSchema, Presence, Property, SchemaRecorder};
use crate::http::forms::reader::{JsonPath, Reader, is_blank};
use crate::http::forms::report::{self, Accepted, Report};
use crate::http::forms::violation::{
    CONTROL, RuleViolation, chars, line, listed, matches_pattern, strict_date, violation,
};

/// The length of a text where the specification gives none, in characters.
pub(crate) const TEXT_MAX: usize = 255;
/// The length of a long text where the specification gives none, in characters.
pub(crate) const LONG_TEXT_MAX: usize = 1_000;
/// The length of an IRN: an invoice number, a service id and a date.
pub(crate) const IRN_MAX: usize = TEXT_MAX + 18;
const IRN_SHAPE: &str = "must be written {invoice_no}-{service_id}-{YYYYMMDD}";
/// The most items of a list where the specification gives none.
const ITEMS_MAX: usize = 10_000;

/// A field that was asked for.
pub(crate) struct Field<'f> {
    pub(super) parent: &'f JsonPath<'f>,
    pub(super) name: &'static str,
    /// None where it is absent or null.
    pub(super) value: Option<&'f Value>,
    pub(super) is_required: bool,
    pub(super) report: &'f Report<'f>,
    /// Where the form is asked what it asks for: the field is described there, with what its caller needs.
    pub(super) recorder: Option<(&'f SchemaRecorder, Presence)>,
}

/// An item of a list as it was sent, and what was read of it.
pub(crate) type ItemResult<'f, T> = (&'f Value, Result<Accepted<T>, Faults>);

impl<'f> Field<'f> {
    /// A line of text.
    pub(crate) fn text(self, max: usize) -> Option<String> {
        self.described(|| FieldType::Text { min: 0, max }).checked(|text| line(text, 0, max))
    }

    /// A password, of which blanks are a part.
    pub(crate) fn password(self, min: usize, max: usize) -> Option<String> {
        self.described(|| FieldType::Text { min, max }).checked_as_sent(|text| line(text, min, max))
    }

    /// A text that may have several lines.
    pub(crate) fn long_text(self, min: usize, max: usize) -> Option<String> {
        self.described(|| FieldType::Text { min, max }).checked(|text| {
            chars(text, min, max)?;
            let is_odd = |letter: char| letter.is_control() && !"\n\r\t".contains(letter);
            if text.chars().any(is_odd) { Err(CONTROL.into()) } else { Ok(text.to_owned()) }
        })
    }

    pub(crate) fn email(self) -> Option<String> {
        self.described(|| FieldType::Email).checked(|text| {
            chars(text, 0, TEXT_MAX)?;
            let odd = || violation("email", "must be a valid email address");
            if is_email(text) { Ok(text.to_owned()) } else { Err(odd()) }
        })
    }

    /// `YYYY-MM-DD`, and a day that exists.
    pub(crate) fn date(self) -> Option<Date> {
        self.described(|| FieldType::Date).checked(|text| {
            strict_date(text).ok_or_else(|| violation("date", "must be a date written YYYY-MM-DD"))
        })
    }

    /// A text of a form of its own.
    pub(crate) fn formatted(
        self,
        rule: &'static str,
        what: &'static str,
        fits: impl FnOnce(&str) -> bool,
    ) -> Option<String> {
        let shape = || FieldType::Formatted { rule, what };
        self.described(shape)
            .checked(|text| if fits(text) { Ok(text.to_owned()) } else { Err(violation(rule, what)) })
    }

    /// A code of this pattern, in which each 9 is a digit.
    pub(crate) fn pattern(self, pattern: &'static str) -> Option<String> {
        let shape = || FieldType::Pattern { pattern, list: None };
        self.described(shape).checked(|text| matches_pattern(pattern, text).map(|()| text.to_owned()))
    }

    /// A text that a check elsewhere passes; the check says which rule is broken, and how.
    pub(crate) fn checked_by(
        self,
        (rule, what): (&'static str, &'static str),
        check: impl FnOnce(&str) -> Result<(), (&'static str, &'static str)>,
    ) -> Option<String> {
        self.described(|| FieldType::Formatted { rule, what })
            .checked(|text| check(text).map(|()| text.to_owned()).map_err(RuleViolation::from))
    }

    /// A place in the log: the number of an event, or a moment.
    pub(crate) fn since(self) -> Option<LogPosition> {
        let field = self.described(|| FieldType::LogPosition);
        let text = match field.given()? {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => return field.broken(&violation("type", "must be a number or a string")),
        };
        LogPosition::parse(&text).or_else(|| field.broken(&violation("format", LOG_POSITION)))
    }

    /// One of a fixed set of words, in any case.
    pub(crate) fn word<T>(self, parse: fn(&str) -> Option<T>, allowed: fn() -> String) -> Option<T> {
        self.described(|| FieldType::Word(allowed())).checked(|text| {
            parse(text).ok_or_else(|| RuleViolation::new("one_of", format!("must be one of {}", allowed())))
        })
    }

    /// A code of one of the authority's lists.
    pub(crate) fn code(self, list: ReferenceList) -> Option<String> {
        self.short_code(TEXT_MAX, list)
    }

    /// A code of one of the lists, with a length of its own.
    pub(crate) fn short_code(self, max: usize, list: ReferenceList) -> Option<String> {
        let report = self.report;
        self.described(|| FieldType::Code { max, list }).checked(|text| {
            chars(text, 0, max)?;
            listed(report, list, text)
        })
    }

    /// A code of a pattern, and one of a list.
    pub(crate) fn listed_pattern(self, pattern: &'static str, list: ReferenceList) -> Option<String> {
        let report = self.report;
        self.described(|| FieldType::Pattern { pattern, list: Some(list) })
            .checked(|text| matches_pattern(pattern, text).and_then(|()| listed(report, list, text)))
    }

    /// A country: two letters, and one of the list; shown in capitals.
    pub(crate) fn country(self) -> Option<String> {
        let report = self.report;
        self.described(|| FieldType::Country).checked(|text| {
            if text.len() != 2 || !text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                return Err(violation("country", "must be a country code of 2 letters"));
            }
            listed(report, ReferenceList::Countries, &text.to_ascii_uppercase())
        })
    }

    /// A portal id.
    pub(crate) fn id(self) -> Option<i64> {
        let field = self.described(|| FieldType::Id);
        match field.given()? {
            Value::Number(number) => match number.as_i64().filter(|id| *id > 0) {
                Some(id) => Some(id),
                None => field.broken(&violation("integer", "must be a whole number above 0")),
            },
            _ => field.broken(&violation("type", "must be an integer")),
        }
    }

    /// A currency: three letters, and one of the list.
    pub(crate) fn currency(self) -> Option<String> {
        let report = self.report;
        self.described(|| FieldType::Currency).checked(|text| {
            if text.len() != 3 || !text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                return Err(violation("currency", "must be a currency code of 3 letters"));
            }
            listed(report, ReferenceList::Currencies, text)
        })
    }

    pub(crate) fn irn(self) -> Option<Irn> {
        self.short_irn(IRN_MAX)
    }

    /// An IRN with a length of its own.
    pub(crate) fn short_irn(self, max: usize) -> Option<Irn> {
        self.described(|| FieldType::Irn { max }).checked(|text| {
            chars(text, 0, max)?;
            Irn::parse(text).map_err(|_| violation("irn_malformed", IRN_SHAPE))
        })
    }

    /// A JSON number, by its digits; text is not a number.
    pub(crate) fn amount(self, bounds: Bounds) -> Option<Amount> {
        let field = self.described(|| FieldType::Number(bounds));
        let Value::Number(number) = field.given()? else {
            return field.broken(&violation("type", "must be a number"));
        };
        let amount = match Amount::parse(&number.to_string()) {
            Ok(amount) => amount,
            Err(fault) => return field.broken(&RuleViolation::new("digits", fault.to_string())),
        };
        match bounds.broken_by(amount) {
            Some((rule, what)) => field.broken(&RuleViolation::new(rule, what)),
            None => Some(amount),
        }
    }

    pub(crate) fn boolean(self) -> Option<bool> {
        let field = self.described(|| FieldType::Boolean);
        match field.given()? {
            Value::Bool(value) => Some(*value),
            _ => field.broken(&violation("type", "must be true or false")),
        }
    }

    /// A nested object, read with its own form.
    pub(crate) fn object<T>(self, form: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Option<T> {
        if self.recorder.is_some() {
            self.described(|| FieldType::Object(FormSchema::of(form)));
            return None;
        }
        let Value::Object(object) = self.given()? else {
            return self.broken(&violation("type", "must be an object"));
        };
        Reader::read(object, self.place(), self.report, form)
    }

    /// A list of objects, each read with the same form.
    pub(crate) fn objects<T>(
        self,
        min: usize,
        mut form: impl FnMut(&mut Reader<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let field = self.described(|| FieldType::Objects { min, of: FormSchema::of(&mut form) });
        let report = field.report;
        field.items(min, |place, item| match item {
            Value::Object(object) => Reader::read(object, place, report, &mut form),
            _ => fault(report, &place, &violation("type", "must be an object")),
        })
    }

    /// A list of objects, each read alone with the same form: what is wrong with one is nothing to the others.
    pub(crate) fn objects_each<T>(
        self,
        max: usize,
        form: impl Fn(&mut Reader<'_>) -> Option<T>,
    ) -> Option<Vec<ItemResult<'f, T>>> {
        let field = self.described(|| FieldType::Objects { min: 1, of: FormSchema::of(&form) });
        let Value::Array(items) = field.given()? else {
            return field.broken(&violation("type", "must be an array"));
        };
        if items.is_empty() {
            return field.broken(&violation("min", "must have at least 1 items"));
        }
        if items.len() > max {
            let what = format!("must not have more than {max} items");
            return field.broken(&RuleViolation::new("batch_too_large", what));
        }
        let catalog = field.report.catalog;
        Some(items.iter().map(|item| (item, report::read_item(item, catalog, &form))).collect())
    }

    /// A list of texts.
    pub(crate) fn texts(self, max: usize) -> Option<Vec<String>> {
        let field = self.described(|| FieldType::Texts { max });
        let report = field.report;
        field.items(0, |place, item| match item {
            Value::String(text) => match line(text.trim(), 0, max) {
                Ok(text) => Some(text),
                Err(broken) => fault(report, &place, &broken),
            },
            _ => fault(report, &place, &violation("type", "must be a string")),
        })
    }

    /// A whole number from 0 to `max`.
    pub(crate) fn whole_number(self, max: u32) -> Option<u32> {
        let field = self.described(|| FieldType::WholeNumber { max });
        let Value::Number(number) = field.given()? else {
            return field.broken(&violation("type", "must be a number"));
        };
        let read = number.as_u64().and_then(|number| u32::try_from(number).ok());
        let odd = || RuleViolation::new("integer", format!("must be a whole number from 0 to {max}"));
        read.filter(|number| *number <= max).or_else(|| field.broken(&odd()))
    }

    /// A moment as RFC 3339 writes it.
    pub(crate) fn moment(self) -> Option<Timestamp> {
        self.described(|| FieldType::Moment)
            .checked(|text| text.parse().map_err(|_| violation("date_time", "must be an RFC 3339 time")))
    }

    /// A list of whole numbers from 0 to `max`: at least one, and at most `items_max`.
    pub(crate) fn whole_numbers(self, items_max: usize, max: u32) -> Option<Vec<u32>> {
        let field = self.described(|| FieldType::WholeNumbers { items_max, max });
        if field.value.and_then(Value::as_array).is_some_and(|items| items.len() > items_max) {
            return field
                .broken(&RuleViolation::new("max", format!("must not have more than {items_max} items")));
        }
        let report = field.report;
        let odd = || RuleViolation::new("integer", format!("must be a whole number from 0 to {max}"));
        field.items(1, |place, item| match item {
            Value::Number(number) => {
                let read = number.as_u64().and_then(|number| u32::try_from(number).ok());
                read.filter(|number| *number <= max).or_else(|| fault(report, &place, &odd()))
            }
            _ => fault(report, &place, &violation("type", "must be a number")),
        })
    }

    /// Every item is read, so that all faults show, until there are too many of them.
    fn items<T>(self, min: usize, mut read: impl FnMut(JsonPath<'_>, &Value) -> Option<T>) -> Option<Vec<T>> {
        let Value::Array(items) = self.given()? else {
            return self.broken(&violation("type", "must be an array"));
        };
        if items.len() < min {
            return self.broken(&RuleViolation::new("min", format!("must have at least {min} items")));
        }
        if items.len() > ITEMS_MAX {
            return self
                .broken(&RuleViolation::new("max", format!("must not have more than {ITEMS_MAX} items")));
        }
        let place = self.place();
        let wanted = items.iter().enumerate().take_while(|_| !self.report.is_full());
        let read: Vec<_> = wanted.map(|(index, item)| read(JsonPath::Item(&place, index), item)).collect();
        if read.len() < items.len() {
            return None;
        }
        read.into_iter().collect()
    }

    /// Says what the field may be, where the form is asked for that.
    fn described(self, shape: impl FnOnce() -> FieldType) -> Self {
        if let Some((recorder, presence)) = self.recorder {
            recorder.draw(Property { name: self.name, presence, shape: shape() });
        }
        self
    }

    /// A text that passes a check, without the blanks around it.
    fn checked<T>(self, check: impl FnOnce(&'f str) -> Result<T, RuleViolation>) -> Option<T> {
        self.checked_as_sent(|text| check(text.trim()))
    }

    fn checked_as_sent<T>(self, check: impl FnOnce(&'f str) -> Result<T, RuleViolation>) -> Option<T> {
        let Value::String(text) = self.present()? else {
            return self.broken(&violation("type", "must be a string"));
        };
        match check(text) {
            Ok(value) => Some(value),
            Err(broken) => self.broken(&broken),
        }
    }

    /// A text; a blank one is as good as none. Where it has to be there and is not, that is a fault.
    fn present(&self) -> Option<&'f Value> {
        self.or_required(self.value.filter(|value| !is_blank(value)))
    }

    /// What is no text: a blank text in its place is of the wrong type.
    fn given(&self) -> Option<&'f Value> {
        self.or_required(self.value.filter(|value| !self.is_required || !is_blank(value)))
    }

    fn or_required(&self, value: Option<&'f Value>) -> Option<&'f Value> {
        if value.is_none() && self.is_required {
            self.broken::<()>(&violation("required", "is required"));
        }
        value
    }

    fn broken<T>(&self, broken: &RuleViolation) -> Option<T> {
        fault(self.report, &self.place(), broken)
    }

    fn place(&self) -> JsonPath<'f> {
        JsonPath::Field(self.parent, self.name)
    }
}

fn fault<T>(report: &Report<'_>, place: &JsonPath<'_>, broken: &RuleViolation) -> Option<T> {
    let path = place.path();
    let message = format!("The {path} field {}.", broken.what);
    report.fault(Fault::new(path, broken.rule, message));
    None
}
