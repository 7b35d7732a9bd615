//! The rounding of amounts.

use rust_decimal::{Decimal, RoundingStrategy};

/// Rounds half away from zero.
pub(crate) fn round(value: Decimal, digits: u32) -> Decimal {
    value.round_dp_with_strategy(digits, RoundingStrategy::MidpointAwayFromZero)
}
