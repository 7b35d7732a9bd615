//! Reads a field whose value is a list: of objects, texts or numbers. An invalid item does not end
//! the reading of a list, so that the caller sees the faults of all items.

use serde_json::Value;

use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::field::{Field, check_whole_number, report_fault_at};
use crate::http::forms::form_schema::{FieldType, FormSchema};
use crate::http::forms::json_path::JsonPath;
use crate::http::forms::reader::{self, AcceptedForm, Reader};
use crate::http::forms::text_checks::check_single_line;

/// The maximum number of items in a list for which the specification gives no limit.
const ITEMS_MAX: usize = 10_000;

/// An item of a list: the received value, and the result of reading this value.
pub(crate) type ItemResult<'f, T> = (&'f Value, Result<AcceptedForm<T>, Faults>);

impl<'f> Field<'f> {
    /// Reads a list of at least `min` objects. `form` reads each object.
    pub(crate) fn objects<T>(
        self,
        min: usize,
        mut form: impl FnMut(&mut Reader<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let field = self.record_type(|| FieldType::Objects {
            min,
            items_max: ITEMS_MAX,
            item: FormSchema::for_form(&mut form),
        });
        let report = field.report;
        field.read_items(min, ITEMS_MAX, |path, item| match item {
            Value::Object(object) => Reader::read(object, path, report, &mut form),
            _ => report_fault_at(report, &path, FieldRule::Type("an object")),
        })
    }

    /// Reads a list of 1 to `max` objects. A fault in one object does not affect the others.
    pub(crate) fn independent_objects<T>(
        self,
        max: usize,
        form: impl Fn(&mut Reader<'_>) -> Option<T>,
    ) -> Option<Vec<ItemResult<'f, T>>> {
        let field = self.record_type(|| FieldType::Objects {
            min: 1,
            items_max: max,
            item: FormSchema::for_form(&form),
        });
        let Value::Array(items) = field.non_text_value()? else {
            return field.report_fault(FieldRule::Type("an array"));
        };
        if items.is_empty() {
            return field.report_fault(FieldRule::MinItems(1));
        }
        if items.len() > max {
            let sentence = FieldRule::MaxItems(max).to_string();
            return field.report_fault(FieldRule::other("batch_too_large", sentence));
        }
        let catalog = field.report.catalog;
        Some(
            items
                .iter()
                .map(|item| (item, reader::read_item(item, catalog, &form)))
                .collect(),
        )
    }

    /// Reads a list of texts. Each text has at most `chars_max` characters.
    pub(crate) fn texts(self, chars_max: usize) -> Option<Vec<String>> {
        self.limited_texts(ITEMS_MAX, chars_max)
    }

    /// Reads a list of at most `items_max` texts. Each text has at most `chars_max` characters.
    pub(crate) fn limited_texts(self, items_max: usize, chars_max: usize) -> Option<Vec<String>> {
        let field = self.record_type(|| FieldType::Texts {
            items_max,
            max: chars_max,
        });
        let report = field.report;
        field.read_items(0, items_max, |path, item| match item {
            Value::String(text) => match check_single_line(text.trim(), 0, chars_max) {
                Ok(text) => Some(text),
                Err(rule) => report_fault_at(report, &path, rule),
            },
            _ => report_fault_at(report, &path, FieldRule::Type("a string")),
        })
    }

    /// Reads a list of whole numbers from 0 to `number_max`. The list has at least one and at most `items_max` items.
    pub(crate) fn whole_numbers(self, items_max: usize, number_max: u32) -> Option<Vec<u32>> {
        let field = self.record_type(|| FieldType::WholeNumbers {
            items_max,
            max: number_max,
        });
        let report = field.report;
        field.read_items(1, items_max, |path, item| match item {
            Value::Number(number) => match check_whole_number(number_max, number) {
                Ok(number) => Some(number),
                Err(rule) => report_fault_at(report, &path, rule),
            },
            _ => report_fault_at(report, &path, FieldRule::Type("a number")),
        })
    }

    /// Reads the items of a list with `read`, also after an invalid item, so that the caller sees all faults.
    fn read_items<T>(
        self,
        min: usize,
        max: usize,
        mut read: impl FnMut(JsonPath<'_>, &Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Value::Array(items) = self.non_text_value()? else {
            return self.report_fault(FieldRule::Type("an array"));
        };
        if items.len() < min {
            return self.report_fault(FieldRule::MinItems(min));
        }
        if items.len() > max {
            return self.report_fault(FieldRule::MaxItems(max));
        }
        let path = self.path();
        let items_to_read = items
            .iter()
            .enumerate()
            .take_while(|_| !self.report.is_full());
        let results: Vec<_> = items_to_read
            .map(|(index, item)| read(JsonPath::Item(&path, index), item))
            .collect();
        if results.len() < items.len() {
            return None;
        }
        results.into_iter().collect()
    }
}
