//! Compares the sums that the columns of a table state with those that this service computes for the invoice. Sums that
//! differ by rounding only, as those of an invoice whose lines are rounded one by one, become the sums of the invoice.
//! Any other difference is a refusal.

use std::collections::BTreeMap;

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::{Number, json};

use crate::domain::import::stated_sums::{SUM_RULE, differs_at_most_by_rounding};
use crate::domain::invoice::breakdown::{Breakdown, DocumentTotals, TaxSubtotal};
use crate::domain::invoice::document_amounts::sum_members;
use crate::domain::invoice::stored_document::invoice_type_code_for;
use crate::domain::invoice::table_columns::{LINE_PREFIX, LINE_SUM_COLUMN};
use crate::domain::invoice::totals::net;
use crate::domain::invoice::{Draft, Line};
use crate::domain::kernel::fault::Fault;
use crate::domain::money::{Amount, FRACTION_DIGITS_MAX, apportion};
use crate::domain::reference::catalog::Catalog;

/// The columns with sums of the invoice, in `SUM_COLUMNS`.
const NET: &str = "net_amount";
const TAX: &str = "tax_amount";
const PAYABLE: &str = "payable_amount";

const REMEDY: &str = "correct the row, or leave the column out";
const LINE_REMEDY: &str = "correct the row, or leave the column out; no column holds a fee or a price for several \
                           units, so take JSON or UBL for a line that has one";
const PAYABLE_REMEDY: &str = "correct the row, or leave the column out; no column holds a charge or an allowance on \
                              the whole invoice, so take JSON or UBL for an invoice that has one";

/// The sums that the columns of a table state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableSums {
    /// The sums of the whole invoice, by the name of the column.
    pub invoice: BTreeMap<&'static str, Amount>,
    /// The amount that each line states.
    pub lines: Vec<Option<Amount>>,
}

impl TableSums {
    /// Compares the stated sums with the computed ones. If they differ by rounding only, writes the stated ones into
    /// the draft and returns a warning. If they differ by more, the fault names a line rather than the invoice, because
    /// a line shows better where the mistake is.
    pub fn apply_to(&self, draft: &mut Draft, catalog: &Catalog) -> Result<Option<String>, Fault> {
        if self.invoice.is_empty() && self.lines.iter().all(Option::is_none) {
            return Ok(None);
        }
        let Ok(own) = Breakdown::from_draft(draft, catalog) else {
            return Ok(None);
        };
        let comparison = Comparison {
            stated: self,
            draft,
            own: &own,
            digits: catalog.currency_digits(&draft.currency),
            catalog,
        };
        let Some(difference) = comparison.first_difference() else {
            return Ok(None);
        };
        let stated = comparison.stated_amounts(difference)?;
        write_amounts(draft, &stated, catalog);
        Ok(Some(format!(
            "The sums are those of the file, which rounds otherwise: {} and {} of tax, not {} and {}.",
            stated.totals.tax_exclusive_amount,
            stated.tax().unwrap_or_default(),
            own.totals.tax_exclusive_amount,
            own.tax().unwrap_or_default(),
        )))
    }
}

/// The sums of a table beside the draft that was read from it.
struct Comparison<'a> {
    stated: &'a TableSums,
    draft: &'a Draft,
    /// The amounts that follow from the lines of the draft.
    own: &'a Breakdown,
    /// The number of decimal digits of the currency.
    digits: u32,
    catalog: &'a Catalog,
}

impl Comparison<'_> {
    /// Returns the fault of the first stated sum that is not the computed one. A line that is off by more than rounding
    /// comes first.
    fn first_difference(&self) -> Option<Fault> {
        let of_line = self
            .first_line_fault(|line, own, stated| {
                self.is_computed_amount(line, own, stated) || self.is_within_rounding(line, stated)
            })
            .or_else(|| {
                self.first_line_fault(|line, own, stated| {
                    self.is_computed_amount(line, own, stated)
                })
            });
        of_line.or_else(|| {
            self.stated.invoice.iter().find_map(|(name, stated)| {
                let own = computed_sum(name, self.own)?;
                let computed = format!("the invoice comes to {own}");
                (own != *stated)
                    .then(|| self.sum_fault((*name).to_owned(), name, *stated, &computed))
            })
        })
    }

    /// Returns the fault of the first stated amount of a line for which `fits(line, computed amount, stated amount)` is
    /// false.
    fn first_line_fault(&self, fits: impl Fn(&Line, Amount, Amount) -> bool) -> Option<Fault> {
        let lines = self.draft.lines.iter().zip(&self.own.lines);
        let mut lines = self.stated.lines.iter().zip(lines).enumerate();
        lines.find_map(|(index, (stated, (line, own)))| {
            let stated = stated.filter(|stated| !fits(line, *own, *stated))?;
            let path = format!("invoice_lines.{index}.{LINE_SUM_COLUMN}");
            let name = format!("{LINE_PREFIX}{LINE_SUM_COLUMN}");
            Some(self.sum_fault(path, &name, stated, &format!("the line comes to {own}")))
        })
    }

    /// True if `stated` is `invoice_amount`, the amount that the line has in the invoice, or the exact amount of the
    /// line, rounded or unrounded.
    fn is_computed_amount(&self, line: &Line, invoice_amount: Amount, stated: Amount) -> bool {
        let exact = net(line);
        stated == invoice_amount
            || exact == Some(stated)
            || exact.map(|exact| exact.round_half_up(self.digits)) == Some(stated)
    }

    /// True if `stated` is the exact amount of the line up to one unit of the currency's last digit, which a line may
    /// get or lose so that all lines add up.
    fn is_within_rounding(&self, line: &Line, stated: Amount) -> bool {
        let unit = Amount::smallest_amount(self.digits);
        !stated.is_negative() && net(line).is_some_and(|exact| stated.is_within(unit, exact))
    }

    /// Returns the amounts that the table states, if each of its lines states one and all of them add up to the
    /// payable. Otherwise fails with the fault of the sum that does not fit, or with `difference` if there is no such
    /// sum.
    fn stated_amounts(&self, difference: Fault) -> Result<Breakdown, Fault> {
        let lines = self.stated_line_amounts();
        let net = Amount::sum(lines.iter().flatten().copied());
        let (Some(lines), Some(net), Some(payable)) = (lines, net, self.stated_sum(PAYABLE)) else {
            return Err(difference);
        };
        if let Some(stated) = self.stated_sum(NET).filter(|stated| *stated != net) {
            let computed = format!("its lines come to {net}");
            return Err(self.sum_fault(NET.to_owned(), NET, stated, &computed));
        }
        let tax = self.stated_sum(TAX).or_else(|| payable.minus(net));
        let taxes = tax.and_then(|tax| self.divide_tax(tax, &lines));
        let (Some(tax), Some(taxes)) = (tax, taxes) else {
            let stated = self.stated_sum(TAX).zip(self.own.tax());
            return Err(stated.map_or(difference, |(stated, own)| {
                let computed = format!("at the authority's rates it is {own}");
                self.sum_fault(TAX.to_owned(), TAX, stated, &computed)
            }));
        };
        let due = net.plus(tax);
        if due != Some(payable) {
            return Err(due.map_or(difference, |due| {
                let computed = format!("net and tax come to {due}");
                self.sum_fault(PAYABLE.to_owned(), PAYABLE, payable, &computed)
            }));
        }
        let payable = payable.with_digits(self.digits);
        Ok(Breakdown {
            lines,
            totals: DocumentTotals {
                line_extension_amount: net,
                tax_exclusive_amount: net,
                tax_inclusive_amount: payable,
                payable_amount: payable,
            },
            taxes,
        })
    }

    /// Returns the stated amounts of the lines; `None` if one is missing, is off by more than rounding, or has more
    /// digits than the currency.
    fn stated_line_amounts(&self) -> Option<Vec<Amount>> {
        let lines = self.draft.lines.iter().zip(&self.stated.lines);
        let amounts = lines.map(|(line, stated)| {
            let stated = stated.filter(|stated| !stated.has_more_digits(self.digits))?;
            self.is_within_rounding(line, stated)
                .then(|| stated.with_digits(self.digits))
        });
        amounts.collect()
    }

    /// Divides the tax among the categories of the lines. Returns `None` if it differs from the tax at the authority's
    /// rates by more than rounding.
    fn divide_tax(&self, tax: Amount, line_amounts: &[Amount]) -> Option<Vec<TaxSubtotal>> {
        let mut parts: BTreeMap<&str, TaxSubtotal> = BTreeMap::new();
        let mut taxed_lines = 0;
        for (line, amount) in self.draft.lines.iter().zip(line_amounts) {
            let category = line.tax_category.as_str();
            let percent = self.catalog.tax_percent(category);
            taxed_lines += usize::from(!percent.is_zero());
            let part = parts.entry(category).or_insert_with(|| TaxSubtotal {
                category: category.to_owned(),
                percent: Some(percent),
                base: Amount::ZERO,
                tax: Amount::ZERO,
            });
            part.base = part.base.plus(*amount)?;
            part.tax = part.tax.plus(percent.percent_share(*amount)?)?;
        }
        let exact: Vec<_> = parts.values().map(|part| part.tax).collect();
        let sum = Amount::sum(exact.iter().copied())?;
        let is_due = !tax.has_more_digits(self.digits)
            && differs_at_most_by_rounding(sum, tax, taxed_lines, self.digits);
        let taxes = apportion(tax, &exact, self.digits)?.into_iter();
        let parts = parts.into_values().zip(taxes);
        let parts: Vec<_> = parts
            .map(|(part, tax)| TaxSubtotal {
                base: part.base.with_digits(self.digits),
                tax: tax.with_digits(self.digits),
                ..part
            })
            .collect();
        let is_negative = parts.iter().any(|part| part.tax.is_negative());
        (is_due && !is_negative).then_some(parts)
    }

    fn stated_sum(&self, column: &str) -> Option<Amount> {
        self.stated.invoice.get(column).copied()
    }

    fn sum_fault(&self, path: String, name: &str, stated: Amount, computed: &str) -> Fault {
        let remedy = if stated.has_more_digits(self.digits) {
            format!(
                "{} has {} digits after the point, so round it, or leave the column out",
                self.draft.currency, self.digits
            )
        } else {
            let remedy = match name {
                NET | TAX => REMEDY,
                PAYABLE => PAYABLE_REMEDY,
                _ => LINE_REMEDY,
            };
            remedy.to_owned()
        };
        let message = format!("The {name} is {stated} in the file, but {computed}: {remedy}.");
        Fault::new(path, SUM_RULE, message)
    }
}

/// Returns the computed sum that belongs to this column; `None` if it is too large. Exports write the same sums into
/// the same columns.
fn computed_sum(column: &str, computed: &Breakdown) -> Option<Amount> {
    match column {
        NET => Some(computed.totals.tax_exclusive_amount),
        TAX => computed.tax(),
        _ => Some(computed.totals.payable_amount),
    }
}

/// Makes the draft state these amounts, as a body of Create Full does.
fn write_amounts(draft: &mut Draft, amounts: &Breakdown, catalog: &Catalog) {
    for (line, amount) in draft.lines.iter_mut().zip(&amounts.lines) {
        let name = "line_extension_amount".to_owned();
        line.extras.insert(name, json!(amount));
    }
    draft.payable = amounts.totals.payable_amount;
    draft.extras.extend(sum_members(amounts));
    // The type of an invoice that states its sums is sent to the authority unchanged, so it must be a code.
    if let Some(code) = invoice_type_code_for(&draft.invoice_type, catalog) {
        let stated = draft.extras.entry("invoice_type_code");
        stated.or_insert_with(|| json!(code));
    }
}

/// Parses the cell of a number, as a JSON number with the same digits.
pub fn read_number(cell: &str) -> Option<Number> {
    significant_digits(cell).parse().ok()
}

/// Returns the text of a number without its leading zeros, which a sheet may show.
fn significant_digits(cell: &str) -> &str {
    let zeros = cell.bytes().take_while(|byte| *byte == b'0').count();
    let next = cell.as_bytes().get(zeros);
    // The last zero stays if it is the only digit before a point or the end.
    let is_digit = next.is_some_and(u8::is_ascii_digit);
    let start = zeros.saturating_sub(usize::from(!is_digit));
    cell.get(start..).unwrap_or(cell)
}

/// Parses the cell of a sum. Digits after the sixth decimal are rounded away, because a number from a spreadsheet may
/// be off in its last binary digit.
pub fn read_sum(cell: &str) -> Option<Amount> {
    let cell = significant_digits(cell);
    cell.parse::<Number>().ok()?;
    let value = cell
        .parse::<Decimal>()
        .or_else(|_| Decimal::from_scientific(cell));
    let half_up = RoundingStrategy::MidpointAwayFromZero;
    let rounded = value
        .ok()?
        .round_dp_with_strategy(FRACTION_DIGITS_MAX, half_up);
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
            ("0.0000005", Some("0.000001")),
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
