//! Makes every amount positive, and makes every line amount follow from its quantity and price. If a line amount
//! contradicts the quantity and the price, the line amount counts.

use rust_decimal::Decimal;
use trade_document::{Charge, Line, ROUNDING, Tax};

use super::line::RawLine;
use super::money::{TOLERANCE, gross, net_charges};
use super::{Body, Reader};
use crate::codes::{RootKind, currency_digits};
use crate::element::Element;
use crate::fault::Cause;

/// Quantity × price of a line must be less than this: 10^15, the limit of every number that is read. So no sum of lines
/// is too large for a `Decimal`.
const GROSS_LIMIT: Decimal = Decimal::from_parts(0xA4C6_8000, 0x0003_8D7E, 0, false, 0);
/// The reason of a discount or fee that is added to make a line add up.
const DIFFERENCE: &str = "Difference to quantity × price";

impl Reader<'_> {
    /// Turns an invoice with negative totals into a credit note with positive ones, and returns true. Returns false if
    /// the totals are not negative. Reports a fault for a credit note with negative totals.
    pub(super) fn convert_negative_invoice(&mut self, body: &mut Body) -> bool {
        let root = self.root;
        let totals = &mut body.totals;
        if totals.tax_exclusive >= Decimal::ZERO && totals.tax_inclusive >= Decimal::ZERO {
            return false;
        }
        if body.root_kind == RootKind::CreditNote {
            let sentence =
                "The amounts of the credit note are negative, which may mean a credit or a debit.";
            self.report_fault(Cause::NegativeDocument, root, sentence.to_owned());
            return false;
        }
        let sentence = format!(
            "The invoice of {} became a credit note of {}.",
            totals.tax_inclusive, -totals.tax_inclusive
        );
        for amount in [
            &mut totals.lines,
            &mut totals.tax_exclusive,
            &mut totals.tax_inclusive,
            &mut totals.prepaid,
            &mut totals.rounding,
            &mut totals.payable,
        ] {
            *amount = negate(*amount);
        }
        for tax in &mut body.taxes {
            tax.base = negate(tax.base);
            tax.amount = negate(tax.amount);
        }
        negate_charges(&mut body.charges);
        for RawLine { line, .. } in &mut body.lines {
            line.quantity = negate(line.quantity);
            line.amount = negate(line.amount);
            negate_charges(&mut line.charges);
        }
        self.report_change(Cause::NegativeDocument, root, sentence);
        true
    }

    /// Makes negative charges and lines positive: a negative fee becomes a discount, a negative line a discount on the
    /// document. Then makes the remaining lines add up.
    pub(super) fn correct_lines(&mut self, body: &mut Body) {
        let root = self.root;
        for charge in &mut body.charges {
            self.make_charge_positive(root, charge);
        }
        let had_lines = !body.lines.is_empty();
        for raw in std::mem::take(&mut body.lines) {
            if raw.line.amount < Decimal::ZERO {
                let discount = self.discount_from_negative_line(&raw);
                body.totals.lines += discount.amount;
                body.charges.push(discount);
            } else {
                body.lines.push(raw);
            }
        }
        if had_lines && body.lines.is_empty() {
            let sentence = "All lines are negative, but the document is not.".to_owned();
            self.report_fault(Cause::NegativeLine, root, sentence);
        }
        let digits = currency_digits(&body.currency);
        for RawLine { line, element } in &mut body.lines {
            for charge in &mut line.charges {
                self.make_charge_positive(element, charge);
            }
            self.make_line_positive(element, line);
            self.make_line_add_up(element, line, digits);
        }
        let only = only_tax(&body.lines).cloned();
        for charge in body
            .charges
            .iter_mut()
            .filter(|charge| charge.tax.is_none())
        {
            charge.tax.clone_from(&only);
        }
    }

    fn make_charge_positive(&mut self, element: &Element, charge: &mut Charge) {
        if charge.amount >= Decimal::ZERO {
            return;
        }
        let (from, to) = if charge.is_fee {
            ("fee", "discount")
        } else {
            ("discount", "fee")
        };
        charge.amount = negate(charge.amount);
        charge.is_fee = !charge.is_fee;
        let sentence = format!("The negative {from} became a {to} of {}.", charge.amount);
        self.report_change(Cause::NegativeCharge, element, sentence);
    }

    fn discount_from_negative_line(&mut self, raw: &RawLine) -> Charge {
        let RawLine { line, element } = raw;
        let amount = negate(line.amount);
        let sentence = format!(
            "The line of −{amount}, “{}”, became a discount on the document.",
            line.name
        );
        self.report_change(Cause::NegativeLine, element, sentence);
        element.mark_converted();
        Charge {
            is_fee: false,
            amount,
            rate: None,
            reason: Some(line.name.clone()),
            tax: Some(line.tax.clone()),
        }
    }

    /// Makes the quantity and the price of a line positive.
    fn make_line_positive(&mut self, element: &Element, line: &mut Line) {
        if line.quantity < Decimal::ZERO {
            line.quantity = negate(line.quantity);
            let sentence = if line.price < Decimal::ZERO {
                line.price = negate(line.price);
                "Quantity and price, both negative, became positive."
            } else {
                "The negative quantity became positive, because the amount of the line is."
            };
            self.report_change(Cause::Quantity, element, sentence.to_owned());
        }
        if line.price < Decimal::ZERO {
            line.price = Decimal::ZERO;
            let sentence =
                "The negative price became zero; the amount of the line stays.".to_owned();
            self.report_change(Cause::Price, element, sentence);
        }
    }

    /// Adds a discount or fee to a line if its amount does not follow from its quantity, price and charges.
    fn make_line_add_up(&mut self, element: &Element, line: &mut Line, currency_digits: u32) {
        let digits = currency_digits.max(line.amount.normalize().scale());
        let gross = gross(line, digits).filter(|gross| *gross < GROSS_LIMIT);
        let Some(gross) = self.require_in_range(element, gross) else {
            return;
        };
        let expected = gross + net_charges(&line.charges);
        let difference = line.amount - expected;
        if difference.is_zero() {
            remove_rounding_charge(line, currency_digits);
            return;
        }
        let is_fee = difference > Decimal::ZERO;
        let word = if is_fee { "fee" } else { "discount" };
        let sentence = format!(
            "{} × {} with fees and discounts gives {expected}, but the line is {}: a {word} of {} makes it so.",
            line.quantity.normalize(),
            line.price.normalize(),
            line.amount,
            difference.abs()
        );
        self.report_change(Cause::LineAmount, element, sentence);
        line.charges.push(Charge {
            is_fee,
            amount: difference.abs(),
            rate: None,
            reason: Some(DIFFERENCE.to_owned()),
            tax: None,
        });
    }
}

/// Removes the last discount or fee of a line if its reason is `ROUNDING`, which our writer gives to a rounding
/// difference, and if the amount of the line is right up to rounding without it. The amount stays.
fn remove_rounding_charge(line: &mut Line, currency_digits: u32) {
    let Some((last, others)) = line.charges.split_last() else {
        return;
    };
    let is_rounding = last.rate.is_none() && last.reason.as_deref() == Some(ROUNDING);
    let exact = line.quantity.checked_mul(line.price);
    let exact = exact.and_then(|product| product.checked_div(line.base_quantity));
    let unit = TOLERANCE.max(Decimal::new(1, currency_digits));
    let is_close =
        exact.is_some_and(|exact| (exact + net_charges(others) - line.amount).abs() <= unit);
    if is_rounding && is_close {
        line.charges.pop();
    }
}

/// Returns the tax of the lines if all of them have the same tax.
fn only_tax<'a>(lines: &'a [RawLine]) -> Option<&'a Tax> {
    let (first, others) = lines.split_first()?;
    let tax = &first.line.tax;
    let is_only = others.iter().all(|raw| raw.line.tax == *tax);
    is_only.then_some(tax)
}

fn negate_charges(charges: &mut [Charge]) {
    for charge in charges {
        charge.amount = negate(charge.amount);
    }
}

/// Returns the negated value. Zero gets no sign.
fn negate(value: Decimal) -> Decimal {
    if value.is_zero() { value.abs() } else { -value }
}
