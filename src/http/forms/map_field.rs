//! Reads a field whose value is an object with names that callers choose.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::field::{Field, report_fault_at};
use crate::http::forms::form_schema::FieldType;
use crate::http::forms::json_path::JsonPath;
use crate::http::forms::reader::Report;
use crate::http::forms::text_checks::check_line;

impl Field<'_> {
    /// Reads an object of texts. `check` judges each name with its text.
    pub(crate) fn texts_by_name(
        self,
        max: usize,
        check: impl Fn(&str, &str) -> Result<(), FieldRule>,
    ) -> Option<BTreeMap<String, String>> {
        let field = self.record_type(|| FieldType::TextsByName { max });
        let Value::Object(object) = field.given_value()? else {
            return field.report_fault(FieldRule::Type("an object"));
        };
        texts(object, &field.path(), field.report, (max, &check))
    }

    /// Reads an object of such objects.
    pub(crate) fn texts_by_names(
        self,
        max: usize,
        check: impl Fn(&str, &str) -> Result<(), FieldRule>,
    ) -> Option<BTreeMap<String, BTreeMap<String, String>>> {
        let field = self.record_type(|| FieldType::TextsByNames { max });
        let Value::Object(object) = field.given_value()? else {
            return field.report_fault(FieldRule::Type("an object"));
        };
        let path = field.path();
        let read = object.iter().map(|(name, value)| {
            let path = JsonPath::Field(&path, name);
            let texts = match (check_line(name.trim(), 1, max), value) {
                (Err(rule), _) => report_fault_at(field.report, &path, rule),
                (Ok(_), Value::Object(inner)) => texts(inner, &path, field.report, (max, &check)),
                _ => report_fault_at(field.report, &path, FieldRule::Type("an object")),
            };
            Some((name.trim().to_owned(), texts?))
        });
        // All entries are read, also after a fault, so that the caller sees all faults.
        let read: Vec<_> = read.collect();
        read.into_iter().collect()
    }
}

/// The maximum length of a name or text, and the rule of each pair.
type TextRule<'c> = (usize, &'c dyn Fn(&str, &str) -> Result<(), FieldRule>);

fn texts(
    object: &Map<String, Value>,
    path: &JsonPath<'_>,
    report: &Report<'_>,
    (max, check): TextRule<'_>,
) -> Option<BTreeMap<String, String>> {
    let read = object.iter().map(|(name, value)| {
        let path = JsonPath::Field(path, name);
        let Value::String(text) = value else {
            return report_fault_at(report, &path, FieldRule::Type("a string"));
        };
        let (name, text) = (name.trim(), text.trim());
        let checked = check_line(name, 1, max)
            .and_then(|_| check_line(text, 1, max))
            .and_then(|_| check(name, text));
        match checked {
            Ok(()) => Some((name.to_owned(), text.to_owned())),
            Err(rule) => report_fault_at(report, &path, rule),
        }
    });
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}
