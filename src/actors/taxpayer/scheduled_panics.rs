//! Panics that an operator requests to see how supervision copes. Only the development environment accepts requests.

use std::sync::Arc;

use dashmap::DashMap;

use crate::domain::kernel::ids::TaxpayerId;

/// The maximum number of panics of one request. A command that panics twice is quarantined.
pub const PANICS_MAX: u32 = 2;

/// The panics that were requested and have not happened yet. The default accepts no requests.
#[derive(Debug, Clone, Default)]
pub struct ScheduledPanics {
    /// The number of panics that are left, by taxpayer. `None` outside the development environment.
    remaining: Option<Arc<DashMap<TaxpayerId, u32>>>,
}

impl ScheduledPanics {
    /// Returns scheduled panics that accept requests, for the development environment.
    pub fn enabled() -> Self {
        Self {
            remaining: Some(Arc::default()),
        }
    }

    /// Makes the actor of a taxpayer panic in its next `panics` batches. Replaces an earlier request. Returns false if
    /// requests are not accepted.
    pub fn schedule(&self, taxpayer: TaxpayerId, panics: u32) -> bool {
        let Some(remaining) = &self.remaining else {
            return false;
        };
        remaining.insert(taxpayer, panics.clamp(1, PANICS_MAX));
        true
    }

    /// True if requests are accepted: in the development environment.
    pub fn are_accepted(&self) -> bool {
        self.remaining.is_some()
    }

    /// Panics if a panic of this taxpayer's actor is scheduled.
    pub(super) fn panic_if_scheduled(&self, taxpayer: TaxpayerId) {
        let Some(remaining) = &self.remaining else {
            return;
        };
        let is_scheduled = remaining.get_mut(&taxpayer).is_some_and(|mut left| {
            *left = left.saturating_sub(1);
            true
        });
        remaining.remove_if(&taxpayer, |_, left| *left == 0);
        assert!(!is_scheduled, "an operator ordered this panic");
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn the_actor_of_one_taxpayer_panics_as_often_as_requested() {
        let panics = ScheduledPanics::enabled();
        assert!(panics.schedule(TaxpayerId(7), 2));
        panics.panic_if_scheduled(TaxpayerId(8));
        for _ in 0..2 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                panics.panic_if_scheduled(TaxpayerId(7));
            }));
            assert!(caught.is_err());
        }
        panics.panic_if_scheduled(TaxpayerId(7));
    }

    #[test]
    fn no_request_is_accepted_outside_the_development_environment() {
        let panics = ScheduledPanics::default();
        assert!(!panics.schedule(TaxpayerId(7), 1));
        panics.panic_if_scheduled(TaxpayerId(7));
    }
}
