//! Amounts and probabilities as exact decimals. A JSON number is read from its digits, never through a float.

use rust_decimal::Decimal;
use serde_json::{Number, Value};

/// Two sums count as equal if they differ by at most this: 0.01.
pub(crate) const TOLERANCE: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

pub(crate) fn from_number(number: &Number) -> Option<Decimal> {
    from_text(number.as_str())
}

/// Parses a number that was sent as text, in decimal or scientific notation. VAT reports contain their numbers as text.
pub(crate) fn from_text(text: &str) -> Option<Decimal> {
    Decimal::from_str_exact(text)
        .ok()
        .or_else(|| Decimal::from_scientific(text).ok())
}

pub(crate) fn from_value(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => from_number(number),
        _ => None,
    }
}

pub(crate) fn are_within_tolerance(left: Decimal, right: Decimal) -> bool {
    left.checked_sub(right)
        .is_some_and(|gap| gap.abs() <= TOLERANCE)
}

/// Returns the sum; `None` if the sum exceeds the range of a decimal.
pub(crate) fn sum(mut amounts: impl Iterator<Item = Decimal>) -> Option<Decimal> {
    amounts.try_fold(Decimal::ZERO, Decimal::checked_add)
}
