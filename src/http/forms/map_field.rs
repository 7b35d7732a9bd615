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
        let mut earlier_names = BTreeSet::new();
        let entries = object.iter().map(|(name, value)| {
            let path = JsonPath::Field(&path, name);
            let texts = match (check_new_name(name.trim(), max, &mut earlier_names), value) {
                (Err(rule), _) => report_fault_at(field.report, &path, rule),
                (Ok(()), Value::Object(inner)) => read_texts(inner, &path, field.report, rules),
                _ => report_fault_at(field.report, &path, FieldRule::Type("an object")),
            };
            Some((name.trim().to_owned(), texts?))
        });
        // The first `collect` reads all entries, also after a fault, so that the caller sees all faults.
        let entries: Vec<_> = entries.collect();
        entries.into_iter().collect()
    }
}

/// The rules for the names and the texts of an object of texts.
#[derive(Clone, Copy)]
pub(crate) struct TextRules<'c> {
    /// The maximum length of a name and of a text, in characters.
    pub(crate) chars_max: usize,
    pub(crate) check_name: fn(&str) -> Result<(), FieldRule>,
    /// Checks a text. The arguments are the name of the text and the text.
    pub(crate) check_text: &'c dyn Fn(&str, &str) -> Result<(), FieldRule>,
}

impl<'c> TextRules<'c> {
    pub(crate) fn with_any_name(
        chars_max: usize,
        check_text: &'c dyn Fn(&str, &str) -> Result<(), FieldRule>,
    ) -> Self {
        Self {
            chars_max,
            check_name: |_| Ok(()),
            check_text,
        }
    }
}

/// Checks a trimmed name, and adds it to `earlier_names`, the names of the same object that were checked before. Two
/// names that differ only in the blanks around them are duplicates, because it is unclear which of their values counts.
fn check_new_name<'n>(
    name: &'n str,
    max: usize,
    earlier_names: &mut BTreeSet<&'n str>,
) -> Result<(), FieldRule> {
    check_single_line(name, 1, max)?;
    if earlier_names.insert(name) {
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
    let mut earlier_names = BTreeSet::new();
    let entries = object.iter().map(|(name, value)| {
        let path = JsonPath::Field(path, name);
        let name = name.trim();
        let result = check_new_name(name, rules.chars_max, &mut earlier_names)
            .and_then(|()| (rules.check_name)(name))
            .and_then(|()| value.as_str().ok_or(FieldRule::Type("a string")))
            .and_then(|text| check_single_line(text.trim(), 1, rules.chars_max))
            .and_then(|text| (rules.check_text)(name, &text).map(|()| text));
        match result {
            Ok(text) => Some((name.to_owned(), text)),
            Err(rule) => report_fault_at(report, &path, rule),
        }
    });
    let entries: Vec<_> = entries.collect();
    entries.into_iter().collect()
}
