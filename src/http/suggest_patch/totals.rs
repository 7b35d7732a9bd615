//! Corrects totals that do not add up, in two cases: the payable amount agrees with the lines and the taxes, or the
//! amount of each line is its quantity times its price and each tax is its stated percent of the lines.

use serde_json::{Value, json};

use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::suggest_patch::patch_builder::Violation;
use crate::http::suggest_patch::patch_op::PatchOp;
use crate::http::suggest_patch::sums::{LineTotals, amount, items, parts};

const TOTAL: &str = "legal_monetary_total";
const LINES: &str = "/legal_monetary_total/line_extension_amount";
const EXCLUSIVE: &str = "/legal_monetary_total/tax_exclusive_amount";
const INCLUSIVE: &str = "/legal_monetary_total/tax_inclusive_amount";
const PAYABLE: &str = "/legal_monetary_total/payable_amount";

/// Returns true if correcting the totals may repair this violation.
pub(super) fn is_about(wrong: &Violation) -> bool {
    let is_amount = wrong.path.starts_with(TOTAL) || wrong.path.ends_with("tax_amount");
    wrong.rule == "sum" || is_amount && ["required", "type", "min"].contains(&wrong.rule)
}

/// Returns a violation if the total without tax plus taxes is not the total with tax. No form checks this.
pub(super) fn wrong(body: &Value) -> Option<Violation> {
    let taxes: Option<Vec<Amount>> =
        items(body, "/tax_total").iter().map(|total| amount(total, "/tax_amount")).collect();
    let expected = amount(body, EXCLUSIVE)?.plus(Amount::sum(taxes?)?)?;
    let path = format!("{TOTAL}.tax_inclusive_amount");
    (!amount(body, INCLUSIVE)?.about(expected)).then_some(Violation { path, rule: "sum" })
}

/// The sum of a body's taxes after the correction, and the operations that correct the taxes.
struct Taxes {
    sum: Amount,
    /// True if each tax is its stated percent of its base, and the bases add up to the sum of the lines.
    are_proven: bool,
    fixes: Vec<PatchOp>,
}

/// Returns the operations that correct the totals. Returns no operation if the right value of one total is unknown.
pub(super) fn fixes(body: &Value, catalog: &Catalog) -> Vec<PatchOp> {
    let currency = body.get("document_currency_code").and_then(Value::as_str).unwrap_or_default();
    let digits = catalog.currency_digits(currency);
    let found = LineTotals::from_body(body).and_then(|lines| {
        let taxes = taxes(body, lines, digits)?;
        let totals = totals(body, lines, &taxes)?;
        Some(taxes.fixes.into_iter().chain(totals).collect())
    });
    found.unwrap_or_default()
}

fn totals(body: &Value, lines: LineTotals, taxes: &Taxes) -> Option<Vec<PatchOp>> {
    if !body.get(TOTAL)?.is_object() {
        return None;
    }
    // With allowances or charges on the document, the sum of the lines is not the total without tax, so the stated
    // total is used.
    let is_charged = !items(body, "/allowance_charge").is_empty();
    let exclusive = if is_charged { amount(body, EXCLUSIVE)? } else { lines.sum };
    let inclusive = exclusive.plus(taxes.sum)?;
    let payable = amount(body, PAYABLE)?;
    let is_proven = lines.are_proven && taxes.are_proven && !is_charged;
    let stands = amount(body, INCLUSIVE).is_some_and(|stated| stated.about(inclusive))
        && amount(body, EXCLUSIVE).is_some_and(|stated| stated.about(exclusive));
    let is_agreed = payable.about(inclusive) || stands;
    if !is_agreed && !is_proven || is_charged && !lines.are_proven {
        return None;
    }
    let why = "the sum of the lines";
    let tax = "the sum of the lines and the taxes";
    let mut wanted = vec![(LINES, lines.sum, why), (EXCLUSIVE, exclusive, why), (INCLUSIVE, inclusive, tax)];
    // A prepayment may be the reason for a lower payable amount. So this amount is corrected only if it equals the
    // stated total with tax, and that total is wrong.
    let follows = amount(body, INCLUSIVE).is_some_and(|stated| stated.about(payable));
    if !is_agreed && follows {
        wanted.push((
            PAYABLE,
            inclusive,
            "the sum of the lines and the taxes, each of which follows from its price or percent",
        ));
    } else if !is_agreed && payable > inclusive {
        return None;
    }
    let wanted = wanted.into_iter().filter(|(pointer, right, _)| {
        let Some(stated) = amount(body, pointer) else { return true };
        let is_below = *pointer == INCLUSIVE && stated < exclusive;
        is_below || !stated.about(*right)
    });
    Some(wanted.map(|(pointer, right, why)| PatchOp::set(pointer, json!(right), why)).collect())
}

fn taxes(body: &Value, lines: LineTotals, digits: u32) -> Option<Taxes> {
    let totals = items(body, "/tax_total");
    let mut taxes = Taxes { sum: Amount::ZERO, are_proven: totals.len() == 1, fixes: Vec::new() };
    for (place, total) in totals.iter().enumerate() {
        let at = format!("/tax_total/{place}");
        let parts = parts(total, digits)?;
        let stated = amount(total, "/tax_amount");
        let sum = Amount::sum(parts.iter().map(|part| part.stated))?;
        let due = Amount::sum(parts.iter().map(|part| part.due))?;
        let base = Amount::sum(parts.iter().map(|part| part.base))?;
        let mut are_proven = parts.iter().all(super::sums::TaxPart::is_proven);
        let right = match stated {
            Some(stated) if stated.about(sum) => stated,
            _ if are_proven => {
                let why = "the sum of its parts, each of which is its percent";
                taxes.fixes.push(PatchOp::set(format!("{at}/tax_amount"), json!(sum), why));
                sum
            }
            Some(stated) if stated.about(due) => {
                for (place, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_proven()) {
                    let pointer = format!("{at}/tax_subtotal/{place}/tax_amount");
                    taxes.fixes.push(PatchOp::set(
                        pointer,
                        json!(part.due),
                        "its percent, as the tax total has it",
                    ));
                }
                are_proven = true;
                stated
            }
            _ => return None,
        };
        taxes.sum = taxes.sum.plus(right)?;
        taxes.are_proven &= are_proven && base.about(lines.sum);
    }
    Some(taxes)
}
