//! The warnings about a payment of which another amount was recorded than its sender may expect.

use crate::domain::money::Amount;
use crate::domain::payment::PaymentUpdate;

/// The amounts of a payment that its sender may not expect.
pub(super) struct PaymentAmounts {
    /// The amount that was left to pay after the signed credit notes.
    pub(super) left: Amount,
    /// The amount that was set off against credit notes.
    pub(super) set_off: Amount,
    /// The amount that was recorded as paid.
    pub(super) recorded: Amount,
}

impl PaymentAmounts {
    pub(super) fn warnings(&self, update: &PaymentUpdate, currency: &str) -> Vec<String> {
        let Self {
            left,
            set_off,
            recorded,
        } = self;
        let mut warnings = Vec::new();
        if !set_off.is_zero() {
            warnings.push(format!(
                "the signed credit notes took {currency} {set_off} off this invoice; {currency} {recorded} was recorded as paid"
            ));
        }
        if recorded > left {
            warnings.push(format!(
                "the signed credit notes left {currency} {left} of this invoice to pay; {currency} {recorded} was recorded as paid"
            ));
        }
        let unused = update.unused_amount;
        if let Some(unused) = unused.filter(|unused| !unused.is_zero() && unused != recorded) {
            warnings.push(format!(
                "amount {unused} was not used; {currency} {recorded} was recorded as paid"
            ));
        }
        warnings
    }
}
