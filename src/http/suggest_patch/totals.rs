//! Corrects totals that do not add up, in two cases: the payable amount agrees with the lines and the taxes, or the
//! amount of each line is its quantity times its price and each tax is its stated percent of the lines.

use serde_json::{Value, json};

use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::suggest_patch::patch_op::PatchOperation;
use crate::http::suggest_patch::sums::{LineTotals, amount_at, array_at, tax_subtotals};
use crate::http::suggest_patch::violation::Violation;

const TOTAL_FIELD: &str = "legal_monetary_total";
const LINES_POINTER: &str = "/legal_monetary_total/line_extension_amount";
const TAX_EXCLUSIVE_POINTER: &str = "/legal_monetary_total/tax_exclusive_amount";
const TAX_INCLUSIVE_POINTER: &str = "/legal_monetary_total/tax_inclusive_amount";
const PAYABLE_POINTER: &str = "/legal_monetary_total/payable_amount";

/// Returns true if correcting the totals may repair this violation.
pub(super) fn is_about_totals(violation: &Violation) -> bool {
    let is_amount =
        violation.path.starts_with(TOTAL_FIELD) || violation.path.ends_with("tax_amount");
    violation.rule == "sum" || is_amount && ["required", "type", "min"].contains(&violation.rule)
}

/// Returns a violation if the total without tax plus taxes is not the total with tax. No form checks this.
pub(super) fn inclusive_total_violation(body: &Value) -> Option<Violation> {
    let taxes: Option<Vec<Amount>> = array_at(body, "/tax_total")
        .iter()
        .map(|total| amount_at(total, "/tax_amount"))
        .collect();
    let expected = amount_at(body, TAX_EXCLUSIVE_POINTER)?.plus(Amount::sum(taxes?)?)?;
    let path = format!("{TOTAL_FIELD}.tax_inclusive_amount");
    (!amount_at(body, TAX_INCLUSIVE_POINTER)?.is_within_tolerance(expected))
        .then_some(Violation { path, rule: "sum" })
}

/// The sum of a body's taxes after the correction, and the operations that correct the taxes.
struct TaxCorrection {
    sum: Amount,
    /// True if each tax is its stated percent of its base, and the bases add up to the sum of the lines.
    are_proven: bool,
    fixes: Vec<PatchOperation>,
}

/// Returns the operations that correct the totals. Returns no operation if the right value of one total is unknown.
pub(super) fn find_fixes(body: &Value, catalog: &Catalog) -> Vec<PatchOperation> {
    let currency = body
        .get("document_currency_code")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let digits = catalog.currency_digits(currency);
    let fixes = LineTotals::from_body(body).and_then(|lines| {
        let taxes = correct_taxes(body, lines, digits)?;
        let totals = total_fixes(body, lines, &taxes)?;
        Some(taxes.fixes.into_iter().chain(totals).collect())
    });
    fixes.unwrap_or_default()
}

fn total_fixes(
    body: &Value,
    lines: LineTotals,
    taxes: &TaxCorrection,
) -> Option<Vec<PatchOperation>> {
    if !body.get(TOTAL_FIELD)?.is_object() {
        return None;
    }
    // With allowances or charges on the document, the sum of the lines is not the total without tax, so the stated
    // total is used.
    let is_charged = !array_at(body, "/allowance_charge").is_empty();
    let exclusive = if is_charged {
        amount_at(body, TAX_EXCLUSIVE_POINTER)?
    } else {
        lines.sum
    };
    let inclusive = exclusive.plus(taxes.sum)?;
    let payable = amount_at(body, PAYABLE_POINTER)?;
    let is_proven = lines.are_proven && taxes.are_proven && !is_charged;
    let is_stated_total_right = amount_at(body, TAX_INCLUSIVE_POINTER)
        .is_some_and(|stated| stated.is_within_tolerance(inclusive))
        && amount_at(body, TAX_EXCLUSIVE_POINTER)
            .is_some_and(|stated| stated.is_within_tolerance(exclusive));
    let is_agreed = payable.is_within_tolerance(inclusive) || is_stated_total_right;
    if !is_agreed && !is_proven || is_charged && !lines.are_proven {
        return None;
    }
    let lines_reason = "the sum of the lines";
    let lines_and_taxes_reason = "the sum of the lines and the taxes";
    let mut right_totals = vec![
        (LINES_POINTER, lines.sum, lines_reason),
        (TAX_EXCLUSIVE_POINTER, exclusive, lines_reason),
        (TAX_INCLUSIVE_POINTER, inclusive, lines_and_taxes_reason),
    ];
    // A prepayment may be the reason for a lower payable amount. So this amount is corrected only if it equals the
    // stated total with tax, and that total is wrong.
    let is_payable_stated_total = amount_at(body, TAX_INCLUSIVE_POINTER)
        .is_some_and(|stated| stated.is_within_tolerance(payable));
    if !is_agreed && is_payable_stated_total {
        right_totals.push((
            PAYABLE_POINTER,
            inclusive,
            "the sum of the lines and the taxes, each of which follows from its price or percent",
        ));
    } else if !is_agreed && payable > inclusive {
        return None;
    }
    let right_totals = right_totals.into_iter().filter(|(pointer, right, _)| {
        let Some(stated) = amount_at(body, pointer) else {
            return true;
        };
        let is_below = *pointer == TAX_INCLUSIVE_POINTER && stated < exclusive;
        is_below || !stated.is_within_tolerance(*right)
    });
    Some(
        right_totals
            .map(|(pointer, right, why)| PatchOperation::set(pointer, json!(right), why))
            .collect(),
    )
}

fn correct_taxes(body: &Value, lines: LineTotals, digits: u32) -> Option<TaxCorrection> {
    let totals = array_at(body, "/tax_total");
    let mut taxes = TaxCorrection {
        sum: Amount::ZERO,
        are_proven: totals.len() == 1,
        fixes: Vec::new(),
    };
    for (index, total) in totals.iter().enumerate() {
        let total_pointer = format!("/tax_total/{index}");
        let parts = tax_subtotals(total, digits)?;
        let stated = amount_at(total, "/tax_amount");
        let sum = Amount::sum(parts.iter().map(|part| part.stated))?;
        let due = Amount::sum(parts.iter().map(|part| part.due))?;
        let base = Amount::sum(parts.iter().map(|part| part.base))?;
        let mut are_proven = parts.iter().all(super::sums::TaxSubtotal::is_proven);
        let right_amount = match stated {
            Some(stated) if stated.is_within_tolerance(sum) => stated,
            _ if are_proven => {
                let why = "the sum of its parts, each of which is its percent";
                taxes.fixes.push(PatchOperation::set(
                    format!("{total_pointer}/tax_amount"),
                    json!(sum),
                    why,
                ));
                sum
            }
            Some(stated) if stated.is_within_tolerance(due) => {
                for (index, part) in parts
                    .iter()
                    .enumerate()
                    .filter(|(_, part)| !part.is_proven())
                {
                    let pointer = format!("{total_pointer}/tax_subtotal/{index}/tax_amount");
                    taxes.fixes.push(PatchOperation::set(
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
        taxes.sum = taxes.sum.plus(right_amount)?;
        taxes.are_proven &= are_proven && base.is_within_tolerance(lines.sum);
    }
    Some(taxes)
}
