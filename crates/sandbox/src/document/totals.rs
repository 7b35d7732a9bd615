//! Checks the legal monetary total: the amount with tax must be the amount before tax plus the tax.

use rust_decimal::Decimal;

use super::node::{Fault, Node};
use crate::decimal;

/// Checks the totals and returns `line_extension_amount`, to which the invoice lines must add up.
pub(super) fn check(totals: &Node<'_>, tax: Decimal) -> Result<Decimal, Fault> {
    totals.check_object()?;
    let lines = totals.at("line_extension_amount").amount_from_zero()?;
    let exclusive = totals.at("tax_exclusive_amount").amount_from_zero()?;
    let node = totals.at("tax_inclusive_amount");
    let inclusive = node.amount_from_zero()?;
    totals.at("payable_amount").amount_from_zero()?;
    if inclusive < exclusive {
        return Err(node.fault("must not be less than tax_exclusive_amount"));
    }
    let expected = exclusive
        .checked_add(tax)
        .ok_or_else(|| node.fault("is too large"))?;
    if decimal::are_within_tolerance(inclusive, expected) {
        return Ok(lines);
    }
    Err(node.fault("must be tax_exclusive_amount plus the tax total"))
}
