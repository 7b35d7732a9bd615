//! Builds the draft of a credit note over lines of a signed invoice. The credit note has exactly the given amounts. If
//! the amounts that follow from its lines differ from these by a cent, the draft states its amounts, as a request of
//! Create Invoice (Full) does.

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use crate::domain::correction::amounts::{Amounts, CategoryAmounts};
use crate::domain::correction::lines::has_category;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::calculation_taxes::{divide_tax, round_tax};
use crate::domain::invoice::totals::net;
use crate::domain::invoice::{Draft, Invoice, Line};
use crate::domain::kernel::codes::{CREDIT_NOTE_CODE, DeclaredPaymentStatus, UniqueNoType};
use crate::domain::money::{Amount, TOLERANCE, apportion};
use crate::domain::party::{Address, CustomerDetails};
use crate::domain::reference::catalog::Catalog;

/// The fields of a full invoice (Create Invoice, Full) that its credit note repeats.
const REPEATED_EXTRAS: [&str; 4] = [
    "accounting_cost",
    "accounting_customer_party",
    "buyer_reference",
    "tax_currency_code",
];
/// The fields with which a full invoice states its amounts.
const STATED_AMOUNTS: [&str; 3] = ["allowance_charge", "legal_monetary_total", "tax_total"];
/// The fields that are removed from a line that credits a sum of money instead of goods.
const LINE_TERMS: [&str; 3] = ["base_quantity", "fee_amount", "fee_rate"];
/// The fields in which a line states its amounts.
const LINE_AMOUNTS: [&str; 2] = ["line_extension_amount", "total_tax"];

/// Builds the draft of a credit note of the invoice `original`. The credit note gets this number and this date.
#[derive(Debug, Clone, Copy)]
pub(super) struct CreditNoteBuilder<'a> {
    pub(super) original: &'a Invoice,
    pub(super) invoice_no: &'a str,
    pub(super) date: Date,
    pub(super) catalog: &'a Catalog,
}

impl CreditNoteBuilder<'_> {
    /// Returns the credit note over the whole invoice, for an invoice that has no credit note yet.
    pub(super) fn credit_whole_invoice(self) -> Draft {
        let original = self.original;
        let mut extras = self.note_extras();
        for name in STATED_AMOUNTS {
            if let Some(value) = original.extras.get(name) {
                extras.insert(name.to_owned(), value.clone());
            }
        }
        self.draft_note(original.lines.clone(), original.payment.payable, extras)
    }

    /// Returns the credit note over these lines with these amounts. `None` if the amounts do not fit the lines: a line
    /// would have to state an amount that does not follow from its quantity, price, discount and fee.
    pub(super) fn credit_lines(self, lines: Vec<Line>, amounts: &Amounts) -> Option<Draft> {
        let lines: Vec<_> = lines.into_iter().map(line_without_amounts).collect();
        let payable = amounts.totals.payable_amount;
        let plain = self.draft_note(lines, payable, self.note_extras());
        if !self.original.is_full() {
            let follows = Breakdown::from_draft(&plain, self.catalog).ok()?;
            if Amounts::from(follows) == *amounts {
                return Some(plain);
            }
        }
        self.with_stated_amounts(plain, amounts)
    }

    /// Returns one line for each tax category, for an invoice whose remaining lines are not known. The prices add up to
    /// the total of the lines, even if the bases of the categories do not. `None` if the prices cannot be computed.
    pub(super) fn summary_lines(self, amounts: &Amounts) -> Option<Vec<Line>> {
        let known = &self.original.lines;
        let digits = self.catalog.currency_digits(&self.original.currency);
        let bases: Vec<_> = amounts.taxes.values().map(|part| part.base).collect();
        let whole = amounts.totals.line_extension_amount;
        let prices = if Amount::sum(bases.iter().copied())? == whole {
            bases
        } else {
            apportion(whole, &bases, digits)?
        };
        let lines = amounts.taxes.keys().zip(prices).map(|(category, price)| {
            let line = known.iter().find(|line| line.tax_category == *category);
            let mut line = line_without_amounts(line.or_else(|| known.first())?.clone());
            for name in LINE_TERMS {
                line.extras.remove(name);
            }
            Some(Line {
                tax_category: category.clone(),
                quantity: 1.into(),
                unit_price: price,
                discount_rate: None,
                discount_amount: None,
                ..line
            })
        });
        let lines: Vec<_> = lines.collect::<Option<_>>()?;
        (!lines.is_empty()).then_some(lines)
    }

    fn draft_note(self, lines: Vec<Line>, payable: Amount, extras: Map<String, Value>) -> Draft {
        let customer = &self.original.customer;
        Draft {
            invoice_no: self.invoice_no.to_owned(),
            irn: None,
            category: self.original.category,
            invoice_type: CREDIT_NOTE_CODE.to_owned(),
            invoice_date: self.date,
            due_date: Some(self.date),
            currency: self.original.currency.clone(),
            customer: CustomerDetails {
                no: customer.external_customer_no.clone(),
                name: customer.name.clone(),
                email: customer.email.clone(),
                tin: customer.tin.clone(),
                business_description: None,
                address: Address::default(),
                telephone: None,
            },
            lines,
            payable,
            declared: DeclaredPaymentStatus::Pending,
            extras,
            batch_no: None,
        }
    }

    /// Returns the fields that refer to the original invoice, and those that are repeated from it.
    fn note_extras(self) -> Map<String, Value> {
        let original = self.original;
        let repeated = REPEATED_EXTRAS
            .iter()
            .filter(|_| original.is_full())
            .filter_map(|name| Some((*name, original.extras.get(*name)?.clone())));
        let reference = [
            ("invoice_type_code", json!(CREDIT_NOTE_CODE)),
            ("original_invoice_reference", json!(original.irn)),
            (
                "original_invoice_reference_type",
                json!(UniqueNoType::Irn.as_str()),
            ),
        ];
        repeated
            .chain(reference)
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn with_stated_amounts(self, mut draft: Draft, amounts: &Amounts) -> Option<Draft> {
        let digits = self.catalog.currency_digits(&draft.currency);
        divide_amounts_among_lines(&mut draft.lines, amounts, digits, self.catalog)?;
        let totals = amounts.totals;
        let subtotals: Vec<_> = amounts
            .taxes
            .iter()
            .map(|(category, part)| {
                let percent = part
                    .percent
                    .unwrap_or_else(|| self.catalog.tax_percent(category));
                json!({
                    "taxable_amount": part.base,
                    "tax_amount": part.tax,
                    "tax_category": { "id": category, "percent": percent },
                })
            })
            .collect();
        let tax = Amount::sum(amounts.taxes.values().map(|part| part.tax))?;
        let stated = [
            (
                "legal_monetary_total",
                json!({
                    "line_extension_amount": totals.line_extension_amount,
                    "tax_exclusive_amount": totals.tax_exclusive_amount,
                    "tax_inclusive_amount": totals.tax_inclusive_amount,
                    "payable_amount": totals.payable_amount,
                }),
            ),
            (
                "tax_total",
                json!([{ "tax_amount": tax, "tax_subtotal": subtotals }]),
            ),
        ];
        let stated = stated.map(|(name, value)| (name.to_owned(), value));
        draft.extras.extend(stated);
        Some(draft)
    }
}

fn line_without_amounts(mut line: Line) -> Line {
    for name in LINE_AMOUNTS {
        line.extras.remove(name);
    }
    line
}

/// Divides the amounts among the lines. The base and the tax of each tax category go to the lines of this category if
/// the bases add up to the total of the lines; otherwise the total is divided among all lines.
fn divide_amounts_among_lines(
    lines: &mut [Line],
    amounts: &Amounts,
    digits: u32,
    catalog: &Catalog,
) -> Option<()> {
    let whole = amounts.totals.line_extension_amount;
    let bases = Amount::sum(amounts.taxes.values().map(|part| part.base))?;
    let mut categories = amounts.taxes.keys();
    let is_by_category = bases == whole && categories.all(|category| has_category(lines, category));
    if !is_by_category {
        return write_line_amounts(
            &mut lines.iter_mut().collect::<Vec<_>>(),
            SumsToDivide::with_net(whole),
            digits,
            catalog,
        );
    }
    for (category, part) in &amounts.taxes {
        let of_category = lines
            .iter_mut()
            .filter(|line| line.tax_category == *category);
        write_line_amounts(
            &mut of_category.collect::<Vec<_>>(),
            (*part).into(),
            digits,
            catalog,
        )?;
    }
    let unshared = lines
        .iter_mut()
        .filter(|line| !line.extras.contains_key(LINE_AMOUNTS[0]));
    write_line_amounts(
        &mut unshared.collect::<Vec<_>>(),
        SumsToDivide::with_net(Amount::ZERO),
        digits,
        catalog,
    )
}

/// The sums that are divided among some lines of a credit note.
#[derive(Debug, Clone, Copy)]
struct SumsToDivide {
    net: Amount,
    /// The percent of the tax; `None` if each line has the percent of its category.
    percent: Option<Amount>,
    /// The tax; `None` if it follows from the net amounts of the lines.
    tax: Option<Amount>,
}

impl SumsToDivide {
    fn with_net(net: Amount) -> Self {
        Self {
            net,
            percent: None,
            tax: None,
        }
    }
}

impl From<CategoryAmounts> for SumsToDivide {
    fn from(part: CategoryAmounts) -> Self {
        Self {
            net: part.base,
            percent: part.percent,
            tax: Some(part.tax),
        }
    }
}

/// Writes the net amount and the tax of each line. Both are rounded so that they add up to the sums. Returns `None` if
/// a net amount is negative, too large, or further from the line's exact amount than rounding explains.
fn write_line_amounts(
    lines: &mut [&mut Line],
    sums: SumsToDivide,
    digits: u32,
    catalog: &Catalog,
) -> Option<()> {
    let nets: Vec<_> = lines.iter().map(|line| net(line)).collect::<Option<_>>()?;
    let tolerance = TOLERANCE.max(Amount::smallest_amount(digits));
    let amounts = apportion(sums.net, &nets, digits)?;
    let mut exact_taxes: Vec<Decimal> = Vec::with_capacity(lines.len());
    for ((line, net), amount) in lines.iter().zip(nets).zip(&amounts) {
        if amount.is_negative() || !amount.is_within(tolerance, net) {
            return None;
        }
        let percent = sums.percent;
        let percent = percent.unwrap_or_else(|| catalog.tax_percent(&line.tax_category));
        exact_taxes.push(percent.percent_share(*amount)?.into());
    }
    let taxes = divide_line_taxes(sums.tax, &exact_taxes, digits)?;
    for ((line, amount), tax) in lines.iter_mut().zip(amounts).zip(taxes) {
        let stated = [json!(amount), json!(tax)];
        for (name, value) in LINE_AMOUNTS.into_iter().zip(stated) {
            line.extras.insert(name.to_owned(), value);
        }
    }
    Some(())
}

/// Divides `tax` among the lines whose unrounded taxes are `exact`. If `tax` is `None`, or if a line would get a
/// negative part of it, divides the rounded sum of `exact` instead.
fn divide_line_taxes(tax: Option<Amount>, exact: &[Decimal], digits: u32) -> Option<Vec<Amount>> {
    let parts = tax.and_then(|tax| divide_tax(tax, exact, digits));
    let parts = parts.filter(|parts| !parts.iter().any(|part| part.is_negative()));
    parts.or_else(|| {
        let mut taxes = exact.iter();
        let sum = taxes.try_fold(Decimal::ZERO, |sum, tax| sum.checked_add(*tax))?;
        divide_tax(round_tax(sum, digits)?, exact, digits)
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;
    use crate::domain::correction::testing::{
        CATEGORIES, catalog, draft, full_draft, line, signed,
    };

    /// Returns lines of one piece each, with these prices and tax categories.
    fn lines(prices: &[(&str, &str)]) -> Vec<Line> {
        let lines = prices.iter().enumerate().map(|(item, (price, category))| {
            line(item, 1.into(), Amount::parse(price).unwrap(), category)
        });
        lines.collect()
    }

    fn line_tax(line: &Line) -> Amount {
        Amount::deserialize(&line.extras["total_tax"]).unwrap()
    }

    #[test]
    fn the_taxes_of_lines_add_up_to_the_tax_of_their_category() {
        let [vat, reduced, zero] = CATEGORIES;
        // Rounded line by line, the taxes of the first four cases would have another sum.
        for (prices, expected) in [
            (
                &[("0.20", vat), ("0.20", vat), ("0.20", vat)][..],
                &["0.02", "0.02", "0.01"][..],
            ),
            (&[("0.06", vat), ("0.06", vat)], &["0.01", "0.00"]),
            (
                &[
                    ("0.10", reduced),
                    ("0.20", vat),
                    ("0.10", reduced),
                    ("0.20", vat),
                ],
                &["0.01", "0.02", "0.00", "0.01"],
            ),
            (
                &[("0.06", vat), ("7", zero), ("0.06", vat)],
                &["0.01", "0.00", "0.00"],
            ),
            (&[("1", vat), ("2", vat)], &["0.08", "0.15"]),
            (&[("1000", vat)], &["75.00"]),
        ] {
            let lines = lines(prices);
            let amounts = Breakdown::from_draft(&draft(lines.clone()), &catalog()).unwrap();
            let amounts = Amounts::from(amounts);
            let original = signed(full_draft(lines.clone()));
            let notes = CreditNoteBuilder {
                original: &original,
                invoice_no: "1CN1",
                date: original.invoice_date,
                catalog: &catalog(),
            };
            let note = notes.credit_lines(lines, &amounts).unwrap();
            let taxes: Vec<_> = note.lines.iter().map(line_tax).collect();
            let written: Vec<_> = taxes.iter().map(ToString::to_string).collect();
            assert_eq!(written, expected, "{prices:?}");
            for (category, part) in &amounts.taxes {
                let lines = note
                    .lines
                    .iter()
                    .filter(|line| line.tax_category == *category);
                assert_eq!(
                    Amount::sum(lines.map(line_tax)),
                    Some(part.tax),
                    "{prices:?}"
                );
            }
        }
    }

    #[test]
    fn a_line_may_be_a_hundredth_off_or_a_unit_of_a_currency_without_hundredths() {
        for (digits, stated, may_be) in [
            (2, "148.29", true),
            (2, "148.30", false),
            (3, "148.298", true),
            (3, "148.299", false),
            (0, "148", true),
            (0, "149", true),
            (0, "150", false),
            (0, "147", false),
        ] {
            let mut credited = lines(&[("148.288", CATEGORIES[0])]);
            let sums = SumsToDivide::with_net(Amount::parse(stated).unwrap());
            let mut all: Vec<_> = credited.iter_mut().collect();
            let written = write_line_amounts(&mut all, sums, digits, &catalog());
            assert_eq!(written.is_some(), may_be, "{digits} {stated}");
        }
    }

    #[test]
    fn a_tax_that_does_not_fit_its_lines_is_divided_without_a_negative_part() {
        let exact = [Decimal::from(75), Decimal::from(75)];
        for (tax, expected) in [
            (None, ["75.00", "75.00"]),
            (Some("150.01"), ["75.01", "75.00"]),
            (Some("149.99"), ["75.00", "74.99"]),
            (Some("0"), ["75.00", "75.00"]),
        ] {
            let stated = tax.map(|tax| Amount::parse(tax).unwrap());
            let parts = divide_line_taxes(stated, &exact, 2).unwrap();
            let parts = parts.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(parts, expected, "{tax:?}");
        }
    }
}
