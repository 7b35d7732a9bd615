//! Collects what a form finds while it reads a body: every fault, and warnings about unusual but accepted values.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::reference::catalog::{Catalog, ReferenceList};

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

    /// Returns the faults, and the paths of the unknown fields.
    pub(super) fn into_findings(self) -> (Faults, UnknownPaths) {
        let unknown = self.unknown.into_inner().into_iter();
        let paths = unknown.map(|field| field.steps).collect();
        (self.faults.into_inner(), paths)
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

    pub(super) fn warnings(&self) -> Vec<String> {
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
