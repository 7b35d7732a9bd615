//! Compares the sums that a file states with those that this service computes for the invoice. Other sums mean another
//! invoice, so each difference leads to a warning or a refusal.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::Number;

use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::table_columns::{LINE_PREFIX, LINE_SUM_COLUMN};
use crate::domain::invoice::totals::net;
use crate::domain::invoice::{Draft, Line};
use crate::domain::kernel::fault::Fault;
use crate::domain::money::{Amount, FRACTION_DIGITS_MAX};
use crate::domain::reference::catalog::Catalog;

/// The stable id of the rule that a document breaks if its file states another sum than this service computes.
pub const SUM_RULE: &str = "sum";
const REMEDY: &str = "correct the row, or leave the column out; a fee, a price for several units or a charge on the \
                      whole invoice has no column in a table, so take JSON or UBL for such an invoice";

/// The sums that a UBL document states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatedSums {
    pub without_tax: Amount,
    pub with_tax: Amount,
}

impl StatedSums {
    /// Compares these sums with those computed for a standard invoice. The sums with tax may differ, because Create
    /// Standard uses the authority's tax rates; a difference then gives a warning. The sums without tax must not differ
    /// by more than rounding; otherwise the error describes the difference.
    pub fn compare(self, own: Self, lines: usize) -> Result<Option<String>, String> {
        if !is_rounding(own.without_tax, self.without_tax, lines) {
            return Err(format!(
                "The total without tax is {} in the file, but its lines come to {}.",
                self.without_tax, own.without_tax
            ));
        }
        if own.with_tax == self.with_tax {
            return Ok(None);
        }
        let (here, there) = (own.with_tax, self.with_tax);
        let why = if is_rounding(here, there, lines) {
            "by rounding"
        } else {
            "because the authority's rates of tax are not those of the file"
        };
        Ok(Some(format!(
            "The total with tax is {here} here and {there} in the file, {why}."
        )))
    }
}

/// True if the amounts differ by no more than a hundredth for each line.
fn is_rounding(one: Amount, other: Amount, lines: usize) -> bool {
    let lines = i64::try_from(lines).unwrap_or(i64::MAX);
    let allowed = Amount::HUNDREDTH.times(Amount::from(lines));
    let difference = if one < other {
        other.minus(one)
    } else {
        one.minus(other)
    };
    difference
        .zip(allowed)
        .is_some_and(|(difference, allowed)| difference <= allowed)
}

/// The sums that the columns of a table state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableSums {
    /// The sums of the whole invoice, by the name of the column.
    pub invoice: BTreeMap<&'static str, Amount>,
    /// The amount that each line states.
    pub lines: Vec<Option<Amount>>,
}

impl TableSums {
    /// Returns the fault of the first stated sum that differs from the computed one. Lines are checked before the sums
    /// of the invoice, because a line shows better where the mistake is.
    pub fn fault(&self, draft: &Draft, catalog: &Catalog) -> Option<Fault> {
        if self.invoice.is_empty() && self.lines.iter().all(Option::is_none) {
            return None;
        }
        let own = Breakdown::from_draft(draft, catalog).ok()?;
        let digits = catalog.currency_digits(&draft.currency);
        let lines = draft.lines.iter().zip(&own.lines);
        let mut lines = self.lines.iter().zip(lines).enumerate();
        let of_line = lines.find_map(|(index, (stated, (line, own)))| {
            let stated = stated.filter(|stated| !is_amount(line, *own, *stated, digits))?;
            let path = format!("invoice_lines.{index}.{LINE_SUM_COLUMN}");
            let name = format!("{LINE_PREFIX}{LINE_SUM_COLUMN}");
            Some(sum_fault(path, &name, stated, *own, "line"))
        });
        of_line.or_else(|| {
            self.invoice.iter().find_map(|(name, stated)| {
                let own = own_sum(name, &own)?;
                (own != *stated)
                    .then(|| sum_fault((*name).to_owned(), name, *stated, own, "invoice"))
            })
        })
    }
}

/// True if this is the amount of the line: as computed in the invoice, or its exact amount, rounded or unrounded.
fn is_amount(line: &Line, own: Amount, stated: Amount, digits: u32) -> bool {
    let exact = net(line);
    stated == own
        || exact.is_some_and(|exact| stated == exact || stated == exact.round_half_up(digits))
}

/// Returns the computed sum that belongs to this column. Exports have the same columns.
fn own_sum(column: &str, own: &Breakdown) -> Option<Amount> {
    match column {
        "net_amount" => Some(own.totals.tax_exclusive_amount),
        "tax_amount" => own.tax(),
        _ => Some(own.totals.payable_amount),
    }
}

fn sum_fault(path: String, name: &str, stated: Amount, own: Amount, whole: &str) -> Fault {
    let message =
        format!("The {name} is {stated} in the file, but the {whole} comes to {own}: {REMEDY}.");
    Fault::new(path, SUM_RULE, message)
}

/// Parses the cell of a sum. Digits after the sixth decimal are rounded away, because a number from a spreadsheet may
/// be off in its last binary digit.
pub fn read_sum(cell: &str) -> Option<Amount> {
    cell.parse::<Number>().ok()?;
    let value = cell
        .parse::<Decimal>()
        .or_else(|_| Decimal::from_scientific(cell));
    let rounded = value.ok()?.round_dp(FRACTION_DIGITS_MAX);
    Amount::parse(&rounded.to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_read_without_the_noise_of_floating_point() {
        for (cell, expected) in [
            ("1075.00", Some("1075.00")),
            ("0.30000000000000004", Some("0.3")),
            ("1e3", Some("1000")),
            ("1,075.00", None),
            ("1_000", None),
            ("NGN 5", None),
        ] {
            let expected = expected.map(|text| Amount::parse(text).unwrap());
            assert_eq!(read_sum(cell), expected, "{cell}");
        }
    }
}
