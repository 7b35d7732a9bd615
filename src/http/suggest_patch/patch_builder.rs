//! Applies safe changes to a refused body until the body is valid or no safe change is left.

use jiff::tz::Offset;
use serde_json::{Map, Value};

use crate::domain::reference::catalog::Catalog;
use crate::http::suggest_patch::categories;
use crate::http::suggest_patch::codes::{self, MeantCodes};
use crate::http::suggest_patch::dates;
use crate::http::suggest_patch::patch_op::{PatchAction, PatchOperation};
use crate::http::suggest_patch::totals;
use crate::http::suggest_patch::violation::Violation;

/// The maximum number of rounds, each a check of the body and the changes for its faults. Only an unreadable field that
/// hid other faults needs more than one round of changes.
const ROUNDS_MAX: usize = 6;
/// The largest number of operations in a patch. If a body needs more, its caller should rewrite it.
const OPERATIONS_MAX: usize = 500;

/// The inputs that safe changes need in addition to the body.
#[derive(Clone, Copy)]
pub(crate) struct PatchContext<'l> {
    pub(crate) catalog: &'l Catalog,
    /// The authority's time zone. It determines the day of a timestamp.
    pub(crate) zone: Offset,
}

/// A body, and the changes that were made to it so far.
pub(crate) struct PatchBuilder<'l> {
    context: PatchContext<'l>,
    codes: MeantCodes<'l>,
    body: Value,
    /// The changes in the order in which they were made. The flag is true if the change replaces an existing field.
    fixes: Vec<(PatchOperation, bool)>,
}

impl<'l> PatchBuilder<'l> {
    pub(crate) fn new(body: &Map<String, Value>, context: PatchContext<'l>) -> Self {
        Self {
            context,
            codes: MeantCodes::new(context.catalog),
            body: Value::Object(body.clone()),
            fixes: Vec::new(),
        }
    }

    pub(crate) fn body(&self) -> Option<&Map<String, Value>> {
        self.body.as_object()
    }

    /// Checks the body and makes safe changes until nothing is left to change. Returns true if it is then valid.
    pub(crate) fn repair_body(
        &mut self,
        check: impl Fn(&Map<String, Value>) -> Vec<Violation>,
    ) -> bool {
        for _ in 0..ROUNDS_MAX {
            let mut violations = self.body().map(&check).unwrap_or_default();
            if violations.is_empty() {
                violations = totals::inclusive_total_violation(&self.body)
                    .into_iter()
                    .collect();
            }
            if violations.is_empty() {
                return true;
            }
            if !self.apply_fixes(&violations) {
                return false;
            }
        }
        self.body().map(&check).unwrap_or_default().is_empty()
    }

    /// Makes every safe change that repairs one of these violations. Returns true if the body changed.
    pub(crate) fn apply_fixes(&mut self, violations: &[Violation]) -> bool {
        let mut has_changed = false;
        for violation in violations.iter().take(OPERATIONS_MAX) {
            let fixes = [
                dates::find_fix(&self.body, violation, self.context.zone),
                codes::find_fix(&self.body, violation, &mut self.codes),
            ];
            for fix in fixes
                .into_iter()
                .flatten()
                .chain(categories::find_fixes(&self.body, violation))
            {
                has_changed |= self.apply_fix(fix);
            }
        }
        if violations.iter().any(totals::is_about_totals) {
            for fix in totals::find_fixes(&self.body, self.context.catalog) {
                has_changed |= self.apply_fix(fix);
            }
        }
        has_changed
    }

    fn apply_fix(&mut self, fix: PatchOperation) -> bool {
        let is_replacement = self.body.pointer(&fix.pointer).is_some();
        if self.fixes.len() >= OPERATIONS_MAX || !fix.apply(&mut self.body) {
            return false;
        }
        match self
            .fixes
            .iter_mut()
            .find(|earlier| earlier.0.pointer == fix.pointer)
        {
            Some(earlier)
                if matches!(
                    (&earlier.0.change, &fix.change),
                    (PatchAction::Set(_), PatchAction::Set(_))
                ) =>
            {
                earlier.0 = fix;
            }
            _ => self.fixes.push((fix, is_replacement)),
        }
        true
    }

    /// Returns the operations of the patch, in the order in which the changes were made.
    pub(crate) fn operations(&self) -> Vec<Value> {
        self.fixes
            .iter()
            .map(|(fix, is_replacement)| fix.to_json_operation(*is_replacement))
            .collect()
    }
}
