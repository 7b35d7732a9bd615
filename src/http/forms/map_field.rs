//! Reads a field whose value is an object with names that callers choose.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::field::{Field, report_fault_at};
use crate::http::forms::form_schema::FieldType;
use crate::http::forms::json_path::JsonPath;
use crate::http::forms::reader::FormReport;
use crate::http::forms::text_checks::check_single_line;

impl Field<'_> {
    /// Reads an object with any names, whose values are texts.
    pub(crate) fn texts_by_name(self, rules: TextRules<'_>) -> Option<BTreeMap<String, String>> {
        let max = rules.chars_max;
        let field = self.record_type(|| FieldType::TextsByName { max });
        let Value::Object(object) = field.non_text_value()? else {
            return field.report_fault(FieldRule::Type("an object"));
        };
        read_texts(object, &field.path(), field.report, rules)
    }

    /// Reads an object with any names, whose values are objects of texts.
    pub(crate) fn nested_texts_by_name(
        self,
        rules: TextRules<'_>,
    ) -> Option<BTreeMap<String, BTreeMap<String, String>>> {
        let max = rules.chars_max;
        let field = self.record_type(|| FieldType::NestedTextsByName { max });
        let Value::Object(object) = field.non_text_value()? else {
            return field.report_fault(FieldRule::Type("an object"));
        };
        let path = field.path();
        let mut seen = BTreeSet::new();
        let read = object.iter().map(|(name, value)| {
            let path = JsonPath::Field(&path, name);
            let texts = match (check_new_name(name.trim(), max, &mut seen), value) {
                (Err(rule), _) => report_fault_at(field.report, &path, rule),
                (Ok(()), Value::Object(inner)) => read_texts(inner, &path, field.report, rules),
                _ => report_fault_at(field.report, &path, FieldRule::Type("an object")),
            };
            Some((name.trim().to_owned(), texts?))
        });
        // All entries are read, also after a fault, so that the caller sees all faults.
        let read: Vec<_> = read.collect();
        read.into_iter().collect()
    }
}

/// The rules for the names and the texts of an object of texts.
#[derive(Clone, Copy)]
pub(crate) struct TextRules<'c> {
    /// The maximum length of a name and of a text, in characters.
    pub(crate) chars_max: usize,
    pub(crate) name: fn(&str) -> Result<(), FieldRule>,
    /// Checks a text. The arguments are its name and the text.
    pub(crate) text: &'c dyn Fn(&str, &str) -> Result<(), FieldRule>,
}

impl<'c> TextRules<'c> {
    pub(crate) fn with_any_name(
        chars_max: usize,
        text: &'c dyn Fn(&str, &str) -> Result<(), FieldRule>,
    ) -> Self {
        Self {
            chars_max,
            name: |_| Ok(()),
            text,
        }
    }
}

/// Checks a trimmed name, and adds it to `seen`, the earlier names of the same object. Two names that differ only in
/// the blanks around them are the same name, and it would be unclear which of their values counts.
fn check_new_name<'n>(
    name: &'n str,
    max: usize,
    seen: &mut BTreeSet<&'n str>,
) -> Result<(), FieldRule> {
    check_single_line(name, 1, max)?;
    if seen.insert(name) {
        Ok(())
    } else {
        Err(FieldRule::other("duplicate", "must not be sent twice"))
    }
}

fn read_texts(
    object: &Map<String, Value>,
    path: &JsonPath<'_>,
    report: &FormReport<'_>,
    rules: TextRules<'_>,
) -> Option<BTreeMap<String, String>> {
    let mut seen = BTreeSet::new();
    let read = object.iter().map(|(name, value)| {
        let path = JsonPath::Field(path, name);
        let name = name.trim();
        let checked = check_new_name(name, rules.chars_max, &mut seen)
            .and_then(|()| (rules.name)(name))
            .and_then(|()| value.as_str().ok_or(FieldRule::Type("a string")))
            .and_then(|text| check_single_line(text.trim(), 1, rules.chars_max))
            .and_then(|text| (rules.text)(name, &text).map(|()| text));
        match checked {
            Ok(text) => Some((name.to_owned(), text)),
            Err(rule) => report_fault_at(report, &path, rule),
        }
    });
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}
