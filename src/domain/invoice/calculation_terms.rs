//! Reads the amounts of a document, and writes the terms of a sum as a fault shows them: `1,000.00 + 75.00`.

use std::fmt::Write as _;

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Map, Value};

use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::invisible;
use crate::domain::money::Amount;

/// The maximum number of terms of a sum that a fault shows.
const TERMS_SHOWN_MAX: usize = 5;

/// The charges less the allowances on a whole document.
pub(super) struct DocumentCharges {
    pub(super) sum: Amount,
    /// The first terms of the sum, each with its sign, as a fault shows them.
    pub(super) terms: String,
}

/// Returns the charges less the allowances on the whole document; `None` if their sum is too large.
pub(super) fn document_charges(document: &Map<String, Value>) -> Option<DocumentCharges> {
    let listed = document.get("allowance_charge").and_then(Value::as_array);
    let mut sum = Amount::ZERO;
    let mut terms = String::new();
    for (at, item) in listed.into_iter().flatten().enumerate() {
        let Some(amount) = amount_member(item, "amount") else {
            continue;
        };
        let is_charge = item.get("charge_indicator") == Some(&Value::Bool(true));
        sum = if is_charge {
            sum.plus(amount)?
        } else {
            sum.minus(amount)?
        };
        if at < TERMS_SHOWN_MAX {
            let sign = if is_charge { '+' } else { '-' };
            // Writing into a string never fails.
            let _ = write!(terms, " {sign} {}", amount.to_grouped_text());
        }
    }
    Some(DocumentCharges { sum, terms })
}

/// True if the document has charges or allowances beside those of its lines.
pub(super) fn has_charges(document: &Map<String, Value>) -> bool {
    let listed = document.get("allowance_charge").and_then(Value::as_array);
    listed.is_some_and(|listed| !listed.is_empty())
}

pub(super) fn amount_member(object: &Value, name: &str) -> Option<Amount> {
    to_amount(object.get(name)?)
}

/// Returns a JSON number as an amount; `None` if it is not an amount.
pub(super) fn to_amount(value: &Value) -> Option<Amount> {
    read_amount(value).ok()
}

/// Returns a value as an amount, or the rule that it breaks.
pub(super) fn read_amount(value: &Value) -> Result<Amount, FieldRule> {
    let Value::Number(number) = value else {
        return Err(FieldRule::Type("a number"));
    };
    let amount = Amount::parse(&number.to_string());
    amount.map_err(|fault| FieldRule::other("digits", fault.to_string()))
}

/// True if the caller states this value. Null and a blank text mean the same as leaving the field out.
pub(super) fn is_stated(value: &Value) -> bool {
    !value.is_null() && !value.as_str().is_some_and(invisible::is_blank)
}

/// True if the amount is the exact one, rounded half up to this number of digits. In a currency without hundredths,
/// rounding changes an amount by more than the tolerance.
pub(super) fn is_rounding_of(stated: Amount, exact: Decimal, digits: u32) -> bool {
    let rounded = exact.round_dp_with_strategy(digits, RoundingStrategy::MidpointAwayFromZero);
    Decimal::from(stated) == rounded
}

/// Returns the fault of a stated amount that is off by more than the tolerance. It shows the terms of the correct sum.
pub(super) fn wrong_amount_fault(
    path: impl Into<String>,
    stated: Amount,
    exact: Decimal,
    terms: impl FnOnce() -> String,
) -> Option<Fault> {
    let difference = Decimal::from(stated).checked_sub(exact);
    let tolerance = Decimal::from(Amount::HUNDREDTH);
    if difference.is_some_and(|difference| difference.abs() <= tolerance) {
        return None;
    }
    let sentence = format!("is off: {} ≠ {}", stated.to_grouped_text(), terms());
    Some(Fault::field(path, FieldRule::other("sum", sentence)))
}

pub(super) fn join_terms(terms: &[String]) -> String {
    let shown = terms.iter().take(TERMS_SHOWN_MAX);
    let shown: Vec<_> = shown.map(String::as_str).collect();
    let more = if terms.len() > shown.len() {
        " + …"
    } else {
        ""
    };
    format!("{}{more}", shown.join(" + "))
}
