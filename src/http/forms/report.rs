//! Collects what a form finds while it reads a body: every fault, and warnings about unusual but accepted values.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::domain::invoice::batch::{ITEM_FAULTS_MAX, WHOLE_ITEM_PATH};
use crate::domain::kernel::fault::{FAULTS_MAX, Fault, Faults};
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::reader::{JsonPath, Reader};

/// The maximum number of unknown fields that a warning names. Further unknown fields are only counted.
const UNKNOWN_FIELDS_SHOWN_MAX: usize = 20;
/// A warning shows at most this many characters of an unknown field's path.
const PATH_CHARS_SHOWN_MAX: usize = 100;

pub(crate) struct Report<'c> {
    pub(crate) catalog: &'c Catalog,
    faults: RefCell<Faults>,
    unknown: RefCell<Vec<UnknownField>>,
    unchecked: RefCell<BTreeSet<ReferenceList>>,
    warnings: RefCell<Vec<String>>,
}

/// A field of the body that no form requests.
struct UnknownField {
    /// The names and indexes from the root to the field.
    steps: Vec<String>,
    /// The absent field that its sender probably meant.
    meant: Option<&'static str>,
}

/// The value read from a valid body, and the warnings for the caller.
#[derive(Debug)]
pub(crate) struct Accepted<T> {
    pub(crate) value: T,
    pub(crate) warnings: Vec<String>,
}

/// The paths of the body's fields that no form requests, each as a list of names and indexes.
pub(crate) type UnknownPaths = Vec<Vec<String>>;

pub(crate) fn read<T>(
    body: &Map<String, Value>,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<Accepted<T>, Faults> {
    read_with_unknown_paths(body, catalog, form).map(|(accepted, _)| accepted)
}

/// Reads a body with a form. Also returns the unknown fields, which are removed before the document is sent or stored.
pub(crate) fn read_with_unknown_paths<T>(
    body: &Map<String, Value>,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<(Accepted<T>, UnknownPaths), Faults> {
    read_up_to(FAULTS_MAX, body, catalog, form)
}

/// Reads one item of a batch. Keeps at most `ITEM_FAULTS_MAX` faults. Their paths are relative to the item.
pub(crate) fn read_item<T>(
    item: &Value,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<Accepted<T>, Faults> {
    match item {
        Value::Object(object) => {
            read_up_to(ITEM_FAULTS_MAX, object, catalog, form).map(|(accepted, _)| accepted)
        }
        _ => Err(Fault::new(WHOLE_ITEM_PATH, "type", "The invoice must be an object.").into()),
    }
}

fn read_up_to<T>(
    faults_max: usize,
    body: &Map<String, Value>,
    catalog: &Catalog,
    form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
) -> Result<(Accepted<T>, UnknownPaths), Faults> {
    let report = Report::new(catalog, faults_max);
    let value = Reader::read(body, JsonPath::Root, &report, form);
    let warnings = report.warnings();
    let unknown = report.unknown.take().into_iter();
    let unknown = unknown.map(|field| field.steps).collect();
    let faults = report.faults.into_inner();
    match value {
        Some(value) if faults.is_empty() => Ok((Accepted { value, warnings }, unknown)),
        _ => Err(faults),
    }
}

impl UnknownField {
    fn in_words(&self) -> String {
        let path = self.steps.join(".");
        let shown: String = path.chars().take(PATH_CHARS_SHOWN_MAX).collect();
        match self.meant {
            Some(name) => format!("{shown} (did you mean {name}?)"),
            None => shown,
        }
    }
}

impl<'c> Report<'c> {
    pub(crate) fn new(catalog: &'c Catalog, faults_max: usize) -> Self {
        Self {
            catalog,
            faults: RefCell::new(Faults::with_max(faults_max)),
            unknown: RefCell::default(),
            unchecked: RefCell::default(),
            warnings: RefCell::default(),
        }
    }

    pub(crate) fn add_fault(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }

    /// Returns true if the report holds the maximum number of faults. Further faults are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.faults.borrow().is_full()
    }

    pub(crate) fn add_unknown(&self, steps: Vec<String>, meant: Option<&'static str>) {
        let field = UnknownField { steps, meant };
        self.unknown.borrow_mut().push(field);
    }

    /// Returns true if a further unknown field is named in the warning. There is no guess for the others, so that a body
    /// of unknown fields costs little.
    pub(super) fn has_room_for_guess(&self) -> bool {
        self.unknown.borrow().len() < UNKNOWN_FIELDS_SHOWN_MAX
    }

    /// Names, in the fault of the missing field at `path`, the unknown field that was sent in its place.
    pub(super) fn name_misspelling(&self, path: &str, sent: &str) {
        self.faults.borrow_mut().name_misspelling(path, sent);
    }

    /// Records that a code was not checked, because its list has not been fetched from the authority yet.
    pub(crate) fn record_unchecked(&self, list: ReferenceList) {
        self.unchecked.borrow_mut().insert(list);
    }

    pub(crate) fn add_warning(&self, warning: impl Into<String>) {
        self.warnings.borrow_mut().push(warning.into());
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.take();
        for list in self.unchecked.take() {
            warnings.push(format!(
                "not checked against {list}: the list has not been fetched yet"
            ));
        }
        let unknown = self.unknown.borrow();
        if !unknown.is_empty() {
            let named: Vec<String> = unknown
                .iter()
                .take(UNKNOWN_FIELDS_SHOWN_MAX)
                .map(UnknownField::in_words)
                .collect();
            let more = unknown.len().saturating_sub(UNKNOWN_FIELDS_SHOWN_MAX);
            let rest = if more == 0 {
                String::new()
            } else {
                format!(" and {more} more")
            };
            warnings.push(format!("unknown field: {}{rest}", named.join(", ")));
        }
        warnings
    }
}
