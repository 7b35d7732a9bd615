//! Panics that an operator orders to see how supervision copes. Only the development environment accepts such orders.

use std::sync::Arc;

use dashmap::DashMap;

use crate::domain::kernel::ids::TaxpayerId;

/// The maximum number of panics that one order may ask for. A command that panics twice is quarantined.
pub const PANICS_MAX: u32 = 2;

/// The panics that were ordered and have not happened yet. The default accepts no orders.
#[derive(Debug, Clone, Default)]
pub struct OrderedPanics {
    /// `None` outside the development environment.
    waiting: Option<Arc<DashMap<TaxpayerId, u32>>>,
}

impl OrderedPanics {
    /// Returns ordered panics that accept orders, for the development environment.
    pub fn enabled() -> Self {
        Self {
            waiting: Some(Arc::default()),
        }
    }

    /// Orders that the actor of a taxpayer panics in its next `panics` batches. An earlier order is replaced. Returns
    /// false if orders are not accepted.
    pub fn order_panics(&self, taxpayer: TaxpayerId, panics: u32) -> bool {
        let Some(waiting) = &self.waiting else {
            return false;
        };
        waiting.insert(taxpayer, panics.clamp(1, PANICS_MAX));
        true
    }

    pub fn are_accepted(&self) -> bool {
        self.waiting.is_some()
    }

    /// Panics if a panic of this taxpayer's actor is ordered.
    pub(super) fn panic_if_ordered(&self, taxpayer: TaxpayerId) {
        let Some(waiting) = &self.waiting else { return };
        let is_ordered = waiting.get_mut(&taxpayer).is_some_and(|mut left| {
            *left = left.saturating_sub(1);
            true
        });
        waiting.remove_if(&taxpayer, |_, left| *left == 0);
        assert!(!is_ordered, "an operator ordered this panic");
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn as_many_panics_as_ordered_are_made_for_this_taxpayer_only() {
        let orders = OrderedPanics::enabled();
        assert!(orders.order_panics(TaxpayerId(7), 2));
        orders.panic_if_ordered(TaxpayerId(8));
        for _ in 0..2 {
            let obeyed = catch_unwind(AssertUnwindSafe(|| orders.panic_if_ordered(TaxpayerId(7))));
            assert!(obeyed.is_err());
        }
        orders.panic_if_ordered(TaxpayerId(7));
    }

    #[test]
    fn no_order_is_accepted_outside_the_development_environment() {
        let orders = OrderedPanics::default();
        assert!(!orders.order_panics(TaxpayerId(7), 1));
        orders.panic_if_ordered(TaxpayerId(7));
    }
}
