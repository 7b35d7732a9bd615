//! Reads a body with a form, and the fields of one JSON object. A form requests a field by name, as required or
//! optional, and then reads it as a type. A field that the form does not request is unknown. Texts other than passwords
//! are trimmed.
//!
//! The readers of a body share one report, which collects all faults, and warnings about unusual accepted values.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::domain::invoice::batch::{ITEM_FAULTS_MAX, WHOLE_ITEM_PATH};
use crate::domain::kernel::fault::{FAULTS_MAX, Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::nearest_word::{are_sibling_names, nearest_word};
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::field::Field;
use crate::http::forms::form_schema::{Presence, SchemaRecorder};
use crate::http::forms::json_path::{JsonPath, is_absent};

/// The maximum number of unknown fields that a warning names. Further unknown fields are only counted.
const UNKNOWN_FIELDS_SHOWN_MAX: usize = 20;
/// The maximum number of characters of an unknown field's path that a warning shows.
const PATH_CHARS_SHOWN_MAX: usize = 100;

/// The value read from a valid body, and the warnings for the caller.
#[derive(Debug)]
pub(crate) struct AcceptedForm<T> {
    pub(crate) value: T,
    pub(crate) warnings: Vec<String>,
}

/// The paths of the body's fields that no form requests, each as a list of names and indexes.
pub(crate) type UnknownPaths = Vec<Vec<String>>;

pub(crate) fn read<T>(
    body: &Map<String, Value>,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<AcceptedForm<T>, Faults> {
    read_with_unknown_paths(body, catalog, form).map(|(accepted, _)| accepted)
}

/// Reads a body with a form. Also returns the unknown fields, which are removed before the document is sent or stored.
pub(crate) fn read_with_unknown_paths<T>(
    body: &Map<String, Value>,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<(AcceptedForm<T>, UnknownPaths), Faults> {
    read_with_faults_max(FAULTS_MAX, body, catalog, form)
        .map(FormResult::with_unknown_fields_warning)
}

/// Reads a document that this service made. The caller sent no field of the document, so fields that the form does not
/// request cause no warning.
pub(crate) fn read_generated_document<T>(
    document: &Map<String, Value>,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<(AcceptedForm<T>, UnknownPaths), Faults> {
    let result = read_with_faults_max(FAULTS_MAX, document, catalog, form)?;
    Ok((result.accepted, result.unknown_paths))
}

/// Reads one item of a batch. Keeps at most `ITEM_FAULTS_MAX` faults, whose paths are relative to the item.
pub(crate) fn read_item<T>(
    item: &Value,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<AcceptedForm<T>, Faults> {
    match item {
        Value::Object(object) => {
            let result = read_with_faults_max(ITEM_FAULTS_MAX, object, catalog, form)?;
            Ok(result.with_unknown_fields_warning().0)
        }
        _ => Err(Fault::new(WHOLE_ITEM_PATH, "type", "The invoice must be an object.").into()),
    }
}

fn read_with_faults_max<T>(
    faults_max: usize,
    body: &Map<String, Value>,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<FormResult<T>, Faults> {
    let report = FormReport::new(catalog, faults_max);
    let value = Reader::read(body, JsonPath::Root, &report, form);
    let warnings = report.warnings();
    let unknown_fields_warning = report.unknown_fields_warning();
    let (faults, unknown_paths) = report.into_faults_and_unknown_paths();
    match value {
        Some(value) if faults.is_empty() => Ok(FormResult {
            accepted: AcceptedForm { value, warnings },
            unknown_paths,
            unknown_fields_warning,
        }),
        _ => Err(faults),
    }
}

/// The value that a form read from a valid body, with the warnings and the unknown fields.
struct FormResult<T> {
    accepted: AcceptedForm<T>,
    unknown_paths: UnknownPaths,
    /// The warning that names the unknown fields; `None` if there are none.
    unknown_fields_warning: Option<String>,
}

impl<T> FormResult<T> {
    fn with_unknown_fields_warning(mut self) -> (AcceptedForm<T>, UnknownPaths) {
        self.accepted.warnings.extend(self.unknown_fields_warning);
        (self.accepted, self.unknown_paths)
    }
}

/// Reads one JSON object of the body.
pub(crate) struct Reader<'r> {
    object: &'r Map<String, Value>,
    path: JsonPath<'r>,
    report: &'r FormReport<'r>,
    /// The names of the fields that the form has requested so far.
    requested: Vec<&'static str>,
    recorder: Option<&'r SchemaRecorder>,
}

impl<'r> Reader<'r> {
    /// Reads an object with a form. Then reports the fields that the form has not requested as unknown fields.
    pub(crate) fn read<T>(
        object: &'r Map<String, Value>,
        path: JsonPath<'r>,
        report: &'r FormReport<'r>,
        form: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let mut reader = Self {
            object,
            path,
            report,
            requested: Vec::new(),
            recorder: None,
        };
        let value = form(&mut reader);
        let names = object.keys().map(String::as_str);
        let unknown: Vec<_> = names
            .filter(|name| !reader.requested.contains(name))
            .collect();
        let has_room = report.has_room_for_guess();
        for name in &unknown {
            reader.report_unknown(name);
        }
        if has_room && unknown.len() <= UNKNOWN_FIELDS_SHOWN_MAX {
            reader.add_sibling_hints(&unknown);
        }
        value
    }

    /// Adds a hint to the fault of a missing field if the caller probably sent the field under the name that it has in
    /// another request, such as `webhook_url` for `url`. Adds no hint if several pairs of fields are possible.
    fn add_sibling_hints(&self, unknown: &[&str]) {
        if unknown.is_empty() {
            return;
        }
        let dotted_path = |name: &str| JsonPath::Field(&self.path, name).dotted_path();
        let requested = self.requested.iter().copied();
        let missing: Vec<_> = requested
            .filter(|name| !self.has(name) && self.report.is_required_only(&dotted_path(name)))
            .collect();
        for name in &missing {
            let mut siblings = unknown.iter().filter(|sent| are_sibling_names(sent, name));
            let (Some(sent), None) = (siblings.next(), siblings.next()) else {
                continue;
            };
            let mut meant_names = missing.iter().filter(|name| are_sibling_names(sent, name));
            if meant_names.next().is_some() && meant_names.next().is_none() {
                self.report.add_misspelling_hint(&dotted_path(name), sent);
            }
        }
    }

    /// Reports a field that the form has not requested, with the absent field that its sender probably meant.
    fn report_unknown(&self, name: &str) {
        let steps = JsonPath::Field(&self.path, name).steps();
        if !self.report.has_room_for_guess() {
            return self.report.add_unknown_field(steps, None);
        }
        let absent = self
            .requested
            .iter()
            .copied()
            .filter(|name| !self.has(name));
        let meant = nearest_word(name, absent);
        self.report.add_unknown_field(steps, meant);
        if let Some(meant) = meant {
            let path = JsonPath::Field(&self.path, meant).dotted_path();
            self.report.add_misspelling_hint(&path, name);
        }
    }

    /// Creates a reader for recording a schema: it records each field that the form requests.
    pub(crate) fn with_recorder(
        object: &'r Map<String, Value>,
        path: JsonPath<'r>,
        report: &'r FormReport<'r>,
        recorder: &'r SchemaRecorder,
    ) -> Self {
        Self {
            object,
            path,
            report,
            requested: Vec::new(),
            recorder: Some(recorder),
        }
    }

    /// Requests a required field. Null and a blank text count as absent.
    pub(crate) fn required(&mut self, name: &'static str) -> Field<'_> {
        self.field(name, Presence::Required, true)
    }

    pub(crate) fn optional(&mut self, name: &'static str) -> Field<'_> {
        self.field(name, Presence::Optional, false)
    }

    /// Requests a field that is required if `condition` is true and optional if it is false.
    pub(crate) fn required_if(&mut self, condition: bool, name: &'static str) -> Field<'_> {
        self.field(name, Presence::Conditional, condition)
    }

    fn field(&mut self, name: &'static str, presence: Presence, is_required: bool) -> Field<'_> {
        self.requested.push(name);
        Field {
            parent: &self.path,
            name,
            value: self.object.get(name).filter(|value| !value.is_null()),
            is_required,
            report: self.report,
            recorder: self.recorder.map(|recorder| (recorder, presence)),
        }
    }

    /// Returns true if a field is present and neither null, blank nor an empty list.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !is_absent(value))
    }

    /// Returns the names of all fields of the object, including fields that no form requests.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'r str> {
        self.object.keys().map(String::as_str)
    }

    /// Returns true if the body has this field with the value null, which some forms distinguish from an absent field.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Value::is_null)
    }

    /// Reports a fault of a field. Forms use this for a rule that also depends on other fields.
    pub(crate) fn report_fault(&self, name: &str, rule: FieldRule) {
        self.report.add_fault(Fault::field(
            JsonPath::Field(&self.path, name).dotted_path(),
            rule,
        ));
    }

    /// Adds a warning about an unusual but accepted value.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        self.report.add_warning(warning);
    }

    pub(crate) fn catalog(&self) -> &'r Catalog {
        self.report.catalog
    }
}

/// The faults, warnings and unknown fields that the readers of one body have found so far.
pub(crate) struct FormReport<'c> {
    pub(crate) catalog: &'c Catalog,
    faults: RefCell<Faults>,
    unknown_fields: RefCell<Vec<UnknownField>>,
    unchecked_lists: RefCell<BTreeSet<ReferenceList>>,
    warnings: RefCell<Vec<String>>,
}

/// A field of the body that no form requests.
struct UnknownField {
    /// The names and indexes from the root to the field.
    steps: Vec<String>,
    /// The absent field that its sender probably meant.
    meant: Option<&'static str>,
}

impl UnknownField {
    /// Returns the path for the warning, with the field that was probably meant.
    fn path_and_guess(&self) -> String {
        let path = self.steps.join(".");
        let shown_path: String = path.chars().take(PATH_CHARS_SHOWN_MAX).collect();
        match self.meant {
            Some(name) => format!("{shown_path} (did you mean {name}?)"),
            None => shown_path,
        }
    }
}

impl<'c> FormReport<'c> {
    pub(crate) fn new(catalog: &'c Catalog, faults_max: usize) -> Self {
        Self {
            catalog,
            faults: RefCell::new(Faults::with_max(faults_max)),
            unknown_fields: RefCell::default(),
            unchecked_lists: RefCell::default(),
            warnings: RefCell::default(),
        }
    }

    pub(crate) fn add_fault(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }

    /// Returns the faults, and the paths of the unknown fields.
    fn into_faults_and_unknown_paths(self) -> (Faults, UnknownPaths) {
        let unknown_fields = self.unknown_fields.into_inner().into_iter();
        let paths = unknown_fields.map(|field| field.steps).collect();
        (self.faults.into_inner(), paths)
    }

    /// Returns true if the report holds the maximum number of faults. Further faults are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.faults.borrow().is_full()
    }

    pub(crate) fn add_unknown_field(&self, steps: Vec<String>, meant: Option<&'static str>) {
        let field = UnknownField { steps, meant };
        self.unknown_fields.borrow_mut().push(field);
    }

    /// Returns true if the warning has room to name another unknown field. The meant field is guessed only for a named
    /// field, so that a body with many unknown fields costs little.
    fn has_room_for_guess(&self) -> bool {
        self.unknown_fields.borrow().len() < UNKNOWN_FIELDS_SHOWN_MAX
    }

    /// Adds a hint to the fault of the missing field at `path`: the caller probably named the field `sent`.
    fn add_misspelling_hint(&self, path: &str, sent: &str) {
        self.faults.borrow_mut().add_misspelling_hint(path, sent);
    }

    /// Returns true if the fault of the field at `path` only says that the field is required.
    fn is_required_only(&self, path: &str) -> bool {
        self.faults.borrow().is_required_only(path)
    }

    /// Records that a code was not checked, because its list has not been fetched from the authority yet.
    pub(crate) fn record_unchecked_list(&self, list: ReferenceList) {
        self.unchecked_lists.borrow_mut().insert(list);
    }

    pub(crate) fn add_warning(&self, warning: impl Into<String>) {
        self.warnings.borrow_mut().push(warning.into());
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.take();
        for list in self.unchecked_lists.take() {
            warnings.push(format!(
                "not checked against {list}: the list has not been fetched yet"
            ));
        }
        warnings
    }

    fn unknown_fields_warning(&self) -> Option<String> {
        let unknown_fields = self.unknown_fields.borrow();
        if unknown_fields.is_empty() {
            return None;
        }
        let paths: Vec<String> = unknown_fields
            .iter()
            .take(UNKNOWN_FIELDS_SHOWN_MAX)
            .map(UnknownField::path_and_guess)
            .collect();
        let more = unknown_fields
            .len()
            .saturating_sub(UNKNOWN_FIELDS_SHOWN_MAX);
        let count_text = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        Some(format!("unknown field: {}{count_text}", paths.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::{catalog, object};

    /// Reads a body with a form that has these required fields. Returns the messages of the faults.
    fn messages(body: &Value, required: &[&'static str]) -> Vec<String> {
        let result = read(&object(body.clone()), &catalog(), |reader| {
            for name in required.iter().copied() {
                reader.required(name).text(100);
            }
            Some(())
        });
        let faults = result.map(|_| ()).unwrap_err();
        faults.iter().map(Fault::to_string).collect()
    }

    #[test]
    fn a_missing_field_names_the_one_field_that_was_sent_with_the_name_of_another_request() {
        for (required, sent, hint) in [
            (
                &["lines"][..],
                json!({ "invoice_lines": "x" }),
                "invoice_lines",
            ),
            (
                &["invoice_type"],
                json!({ "invoice_type_code": "381" }),
                "invoice_type_code",
            ),
            (
                &["webhook_url"],
                json!({ "url": "x", "colour": "x" }),
                "url",
            ),
            (&["url"], json!({ "webhook_url": "x" }), "webhook_url"),
            (&["supplier_irn"], json!({ "irn": "x" }), "irn"),
            (&["tin_no"], json!({ "tin": "x" }), "tin"),
            // No hint, because it is not clear which field was meant.
            (&["date"], json!({ "due_date": "x", "issue_date": "x" }), ""),
            (&["due_date", "issue_date"], json!({ "date": "x" }), ""),
            (&["invoices"], json!({ "invoice_no": "x" }), ""),
            (&["customer"], json!({ "customer_name": "x" }), ""),
            (&["lines"], json!({ "colour": "x" }), ""),
        ] {
            let fault_messages = messages(&sent, required);
            let end = if hint.is_empty() {
                "field is required.".to_owned()
            } else {
                format!("field is required (you sent {hint}, which is no field).")
            };
            assert!(
                fault_messages.iter().all(|message| message.ends_with(&end)),
                "{fault_messages:?}"
            );
            assert_eq!(fault_messages.len(), required.len(), "{fault_messages:?}");
        }
        // The form also requests `url`, so the caller did not send it in place of `webhook_url`.
        let fault_messages = messages(&json!({ "url": "x" }), &["url", "webhook_url"]);
        assert_eq!(fault_messages, ["The webhook_url field is required."]);
    }
}
