//! Changes a body for what is wrong with it, again and again, until nothing more is safe.

use jiff::tz::Offset;
use serde_json::{Map, Value};

use crate::domain::kernel::fault::Fault;
use crate::domain::reference::catalog::Catalog;
use crate::http::respond::explanation::Explanation;
use crate::http::suggest_patch::categories;
use crate::http::suggest_patch::codes;
use crate::http::suggest_patch::dates;
use crate::http::suggest_patch::patch_op::{PatchAction, PatchOp};
use crate::http::suggest_patch::totals;

/// How often a body is looked at again after it was changed. A change shows at most what was hidden behind a field
/// that could not be read, so that few rounds are enough.
const ROUNDS_MAX: usize = 6;
/// The most operations of a patch: a body that is wrong all over is better written anew.
const OPERATIONS_MAX: usize = 500;

/// What is wrong with which field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    pub(crate) rule: &'static str,
}

impl From<&Fault> for Violation {
    fn from(fault: &Fault) -> Self {
        Self { path: fault.path.clone(), rule: fault.rule }
    }
}

impl Violation {
    pub(crate) fn of(why: &Explanation) -> Option<Self> {
        Some(Self { path: why.path.clone()?, rule: why.rule })
    }
}

/// What the changes go by.
#[derive(Clone, Copy)]
pub(crate) struct PatchContext<'l> {
    pub(crate) catalog: &'l Catalog,
    /// Of the authority's days.
    pub(crate) zone: Offset,
}

/// A body on its way to being right.
pub(crate) struct PatchBuilder<'l> {
    context: PatchContext<'l>,
    body: Value,
    /// Each with whether its field was there before.
    fixes: Vec<(PatchOp, bool)>,
}

impl<'l> PatchBuilder<'l> {
    pub(crate) fn new(body: &Map<String, Value>, context: PatchContext<'l>) -> Self {
        Self { context, body: Value::Object(body.clone()), fixes: Vec::new() }
    }

    pub(crate) fn body(&self) -> Option<&Map<String, Value>> {
        self.body.as_object()
    }

    /// Mends for as long as a check finds something wrong and something of that can be changed safely. Whether
    /// nothing is wrong in the end.
    pub(crate) fn until_right(&mut self, check: impl Fn(&Map<String, Value>) -> Vec<Violation>) -> bool {
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
    pub(crate) fn round(&mut self, wrong: &[Violation]) -> bool {
        let mut has_changed = false;
        for each in wrong.iter().take(OPERATIONS_MAX) {
            let found = [
                dates::fix(&self.body, each, self.context.zone),
                codes::fix(&self.body, each, self.context.catalog),
            ];
            for fix in found.into_iter().flatten().chain(categories::fixes(&self.body, each)) {
                has_changed |= self.change(fix);
            }
        }
        if wrong.iter().any(totals::is_about) {
            for fix in totals::fixes(&self.body, self.context.catalog) {
                has_changed |= self.change(fix);
            }
        }
        has_changed
    }

    fn change(&mut self, fix: PatchOp) -> bool {
        let was_there = self.body.pointer(&fix.pointer).is_some();
        if self.fixes.len() >= OPERATIONS_MAX || !fix.apply(&mut self.body) {
            return false;
        }
        let is_same = |earlier: &&mut (PatchOp, bool)| earlier.0.pointer == fix.pointer;
        match self.fixes.iter_mut().find(is_same) {
            Some(earlier)
                if matches!((&earlier.0.change, &fix.change), (PatchAction::Set(_), PatchAction::Set(_))) =>
            {
                earlier.0 = fix;
            }
            _ => self.fixes.push((fix, was_there)),
        }
        true
    }

    /// The patch: what was done, in its order.
    pub(crate) fn operations(&self) -> Vec<Value> {
        self.fixes.iter().map(|(fix, was_there)| fix.operation(*was_there)).collect()
    }
}
