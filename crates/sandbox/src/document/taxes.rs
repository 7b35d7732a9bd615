//! Checks the tax totals: there is at least one, and each is the sum of its tax subtotals.

use rust_decimal::Decimal;

use super::node::{Fault, Node};
use crate::decimal;
use crate::lists;

/// Checks the member `tax_total` and returns the sum of its tax amounts.
pub(super) fn check(root: &Node<'_>) -> Result<Decimal, Fault> {
    let node = root.at("tax_total");
    let totals: Result<Vec<Decimal>, Fault> = node.items()?.iter().map(check_total).collect();
    decimal::sum(totals?.into_iter()).ok_or_else(|| node.fault("is too large"))
}

fn check_total(total: &Node<'_>) -> Result<Decimal, Fault> {
    let amount = total.at("tax_amount");
    let stated = amount.amount_from_zero()?;
    let parts: Result<Vec<Decimal>, Fault> = total
        .at("tax_subtotal")
        .items()?
        .iter()
        .map(check_subtotal)
        .collect();
    let summed = decimal::sum(parts?.into_iter()).ok_or_else(|| amount.fault("is too large"))?;
    if decimal::are_within_tolerance(stated, summed) {
        return Ok(stated);
    }
    Err(amount.fault("must be the sum of its tax subtotals"))
}

fn check_subtotal(part: &Node<'_>) -> Result<Decimal, Fault> {
    part.at("taxable_amount").amount_from_zero()?;
    let amount = part.at("tax_amount").amount_from_zero()?;
    let category = part.at("tax_category");
    category.check_object()?;
    category.at("id").code_in(&lists::TAX_CATEGORIES)?;
    category.at("percent").amount_from_zero()?;
    Ok(amount)
}
