//! Changes a body for what is wrong with it, again and again, until nothing more is safe.

use jiff::tz::Offset;
use serde_json::{Map, Value};

use crate::domain::kernel::fault::Fault;
use crate::domain::reference::catalog::Catalog;
use crate::http::explain::explanation::Explanation;
use crate::http::mend::fix::{Change, Fix};
use crate::http::mend::{categories, codes, dates, totals};

/// How often a body is looked at again after it was changed. A change shows at most what was hidden behind a field
/// that could not be read, so that few rounds are enough.
const ROUNDS_MAX: usize = 6;
/// The most operations of a patch: a body that is wrong all over is better written anew.
const OPERATIONS_MAX: usize = 500;

/// What is wrong with which field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) path: String,
    pub(super) rule: &'static str,
}

impl From<&Fault> for Wrong {
    fn from(fault: &Fault) -> Self {
        Self { path: fault.path.clone(), rule: fault.rule }
    }
}

impl Wrong {
    pub(super) fn of(why: &Explanation) -> Option<Self> {
        Some(Self { path: why.path.clone()?, rule: why.rule })
    }
}

/// What the changes go by.
#[derive(Clone, Copy)]
pub(super) struct Lights<'l> {
    pub(super) catalog: &'l Catalog,
    /// Of the authority's days.
    pub(super) zone: Offset,
}

/// A body on its way to being right.
pub(super) struct Mending<'l> {
    lights: Lights<'l>,
    body: Value,
    /// Each with whether its field was there before.
    fixes: Vec<(Fix, bool)>,
}

impl<'l> Mending<'l> {
    pub(super) fn new(body: &Map<String, Value>, lights: Lights<'l>) -> Self {
        Self { lights, body: Value::Object(body.clone()), fixes: Vec::new() }
    }

    pub(super) fn body(&self) -> Option<&Map<String, Value>> {
        self.body.as_object()
    }

    /// Mends for as long as a check finds something wrong and something of that can be changed safely. Whether
    /// nothing is wrong in the end.
    pub(super) fn until_right(&mut self, check: impl Fn(&Map<String, Value>) -> Vec<Wrong>) -> bool {
        for _ in 0..ROUNDS_MAX {
            let mut wrong = self.body().map(&check).unwrap_or_default();
            if wrong.is_empty() {
                wrong = totals::wrong(&self.body).into_iter().collect();
            }
            if wrong.is_empty() {
                return true;
            }
            if !self.round(&wrong) {
                return false;
            }
        }
        self.body().map(&check).unwrap_or_default().is_empty()
    }

    /// Changes what is safe of what is wrong; whether anything was changed.
    pub(super) fn round(&mut self, wrong: &[Wrong]) -> bool {
        let mut has_changed = false;
        for each in wrong.iter().take(OPERATIONS_MAX) {
            let found = [
                dates::fix(&self.body, each, self.lights.zone),
                codes::fix(&self.body, each, self.lights.catalog),
            ];
            for fix in found.into_iter().flatten().chain(categories::fixes(&self.body, each)) {
                has_changed |= self.change(fix);
            }
        }
        if wrong.iter().any(totals::is_about) {
            for fix in totals::fixes(&self.body, self.lights.catalog) {
                has_changed |= self.change(fix);
            }
        }
        has_changed
    }

    fn change(&mut self, fix: Fix) -> bool {
        let was_there = self.body.pointer(&fix.pointer).is_some();
        if self.fixes.len() >= OPERATIONS_MAX || !fix.apply(&mut self.body) {
            return false;
        }
        let is_same = |earlier: &&mut (Fix, bool)| earlier.0.pointer == fix.pointer;
        match self.fixes.iter_mut().find(is_same) {
            Some(earlier) if matches!((&earlier.0.change, &fix.change), (Change::Set(_), Change::Set(_))) => {
                earlier.0 = fix;
            }
            _ => self.fixes.push((fix, was_there)),
        }
        true
    }

    /// The patch: what was done, in its order.
    pub(super) fn operations(&self) -> Vec<Value> {
        self.fixes.iter().map(|(fix, was_there)| fix.operation(*was_there)).collect()
    }
}
