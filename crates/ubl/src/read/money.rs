//! Reads charges (discounts and fees), taxes and totals.

use rust_decimal::Decimal;
use trade_document::{Charge, CodeAndName, Tax, TaxSubtotal, Totals};

use super::line::RawLine;
use super::{Body, Reader};
use crate::codes::{self, EXEMPTION_REASON, ReadCode, currency_digits};
use crate::element::{CURRENCY, Element};
use crate::fault::Cause;
use crate::fixed_texts::{DISCOUNT_CODE, FEE_CODE};
use crate::rounding::round;

/// Two amounts count as equal if they differ by no more than this, and totals of a currency with more digits if they
/// differ by no more than one unit of its last digit.
pub(super) const TOLERANCE: Decimal = Decimal::from_parts(1, 0, 0, false, 2);
const TAX_CATEGORY: &str = "cac:TaxCategory";
/// The maximum length of the name of a tax, which lines without a tax of their own copy. A longer name is not read into
/// the document but kept as a part.
const TAX_NAME_BYTES_MAX: usize = 255;

impl Reader<'_> {
    /// Reads the discounts and fees of a document or of a line.
    pub(super) fn charges(&mut self, parent: &Element, currency: &str) -> Vec<Charge> {
        let charges = parent.children_named("cac:AllowanceCharge");
        charges
            .filter_map(|element| self.charge(element, currency))
            .collect()
    }

    fn charge(&mut self, element: &Element, currency: &str) -> Option<Charge> {
        let word = element
            .text_at("cbc:ChargeIndicator")
            .map(|word| word.to_lowercase());
        let is_fee = match word.as_deref() {
            Some("true" | "1") => true,
            Some("false" | "0") => false,
            _ => {
                let sentence = "It is neither a fee nor a discount (cbc:ChargeIndicator).";
                self.report_fault(Cause::Malformed, element, sentence.to_owned());
                return None;
            }
        };
        let amount = self.amount_at(element, "cbc:Amount", currency);
        let Some(amount) = amount else {
            self.report_fault(
                Cause::Missing,
                element,
                "The discount or fee has no amount.".to_owned(),
            );
            return None;
        };
        let reason = element.text_at("cbc:AllowanceChargeReason");
        let code = if is_fee { FEE_CODE } else { DISCOUNT_CODE };
        if reason.is_none() && element.peek_at("cbc:AllowanceChargeReasonCode") == code {
            element.text_at("cbc:AllowanceChargeReasonCode");
        }
        let tax = element
            .at(TAX_CATEGORY)
            .and_then(|category| self.tax(category, None));
        Some(Charge {
            is_fee,
            amount,
            rate: self.rate(element, amount),
            reason,
            tax,
        })
    }

    /// Returns the percentage of a charge. Some programs write 0.1 for ten percent, which the amount reveals.
    fn rate(&mut self, element: &Element, amount: Decimal) -> Option<Decimal> {
        let factor = self.decimal_at(element, "cbc:MultiplierFactorNumeric")?;
        let base: Option<Decimal> = element.peek_at("cbc:BaseAmount").parse().ok();
        let product = base.and_then(|base| base.checked_mul(factor));
        let product = product.filter(|product| !product.is_zero());
        let difference = product.and_then(|product| product.checked_sub(amount));
        if difference.is_some_and(|difference| difference.abs() <= TOLERANCE) {
            return factor.checked_mul(Decimal::ONE_HUNDRED);
        }
        Some(factor)
    }

    /// Reads a tax category. `sum` is the subtotal that contains it, if any. A UBL code that has no equal among the
    /// authority's codes is kept as a part.
    pub(super) fn tax(&mut self, element: &Element, sum: Option<&Element>) -> Option<Tax> {
        let stated = element.peek_at("cbc:ID").to_uppercase();
        let scheme = element.peek_at("cac:TaxScheme/cbc:ID").to_uppercase();
        let percent = self.decimal_at(element, "cbc:Percent");
        // UBL 2.0 and some countries state the rate in the subtotal.
        let percent = percent.or_else(|| self.decimal_at(sum?, "cbc:Percent"));
        if stated.is_empty() && percent.is_none() && scheme.is_empty() {
            return None;
        }
        element.mark_read();
        element.at("cac:TaxScheme").inspect(|one| one.mark_read());
        let scheme = if scheme.is_empty() { "VAT" } else { &scheme };
        let category = if stated.is_empty() {
            guess_category(element, percent)
        } else {
            &stated
        };
        let beside = element.peek_at("cac:TaxScheme/cbc:TaxTypeCode");
        let ReadCode {
            value: own,
            is_exact,
        } = codes::read_tax_category(category, scheme, &beside, percent);
        if own == beside {
            element.text_at("cac:TaxScheme/cbc:TaxTypeCode");
        }
        if is_exact {
            element.text_at("cbc:ID");
            element.text_at("cac:TaxScheme/cbc:ID");
        }
        if stated.is_empty() || !is_exact {
            let stated = if stated.is_empty() {
                "without a code"
            } else {
                &stated
            };
            let sentence = format!("The tax category {stated} of {scheme} became {own}.");
            self.report_change_once(Cause::TaxCategory, element, sentence);
        }
        if element.peek_at("cbc:TaxExemptionReason") == EXEMPTION_REASON {
            element.text_at("cbc:TaxExemptionReason");
        }
        let is_long = element.peek_at("cac:TaxScheme/cbc:Name").len() > TAX_NAME_BYTES_MAX;
        let name = (!is_long).then(|| element.text_at("cac:TaxScheme/cbc:Name"));
        let name = name.flatten().unwrap_or_else(|| {
            codes::ubl_tax_category(own, percent)
                .map_or("", |ubl| ubl.scheme)
                .to_owned()
        });
        Some(Tax {
            category: CodeAndName {
                code: own.to_owned(),
                name,
            },
            percent,
        })
    }

    /// Reads the taxes in the document's currency. Tax totals in another currency are kept as parts.
    pub(super) fn taxes(&mut self, currency: &str) -> Vec<TaxSubtotal> {
        let mut taxes = Vec::new();
        let totals = self
            .root
            .children_named("cac:TaxTotal")
            .filter(|one| is_total_in_currency(one, currency));
        for total in totals.filter(|one| one.at("cac:TaxSubtotal").is_some()) {
            // Our writer makes only one tax total, so further ones need not be kept.
            if !taxes.is_empty() {
                total.mark_converted();
            }
            self.amount_at(total, "cbc:TaxAmount", currency);
            for subtotal in total.children_named("cac:TaxSubtotal") {
                taxes.extend(self.subtotal(subtotal, currency));
            }
        }
        taxes
    }

    fn subtotal(&mut self, element: &Element, currency: &str) -> Option<TaxSubtotal> {
        let category = element.at(TAX_CATEGORY);
        let Some(tax) = category.and_then(|category| self.tax(category, Some(element))) else {
            let sentence = "The tax has no category.".to_owned();
            self.report_fault(Cause::TaxCategory, element, sentence);
            return None;
        };
        let amount = self
            .amount_at(element, "cbc:TaxAmount", currency)
            .unwrap_or_default();
        let base = self.amount_at(element, "cbc:TaxableAmount", currency);
        Some(TaxSubtotal {
            base: base.unwrap_or_default(),
            amount,
            tax,
        })
    }

    /// Completes the taxes of a document that states only their sum. Reports a fault if the lines have different taxes.
    pub(super) fn complete_taxes(
        &mut self,
        taxes: Vec<TaxSubtotal>,
        lines: &[RawLine],
        currency: &str,
    ) -> Vec<TaxSubtotal> {
        let root = self.root;
        let mut totals = root.children_named("cac:TaxTotal");
        let total = totals.find(|one| is_total_in_currency(one, currency));
        let (Some(total), true, Some(first)) = (total, taxes.is_empty(), lines.first()) else {
            return taxes;
        };
        let Some(amount) = self.amount_at(total, "cbc:TaxAmount", currency) else {
            return taxes;
        };
        let tax = &first.line.tax;
        if lines.iter().any(|raw| raw.line.tax != *tax) {
            let sentence = "The lines have several taxes, but only the sum of all is given.";
            self.report_fault(Cause::TaxCategory, total, sentence.to_owned());
            return taxes;
        }
        let exclusive = self.amount_at(
            root,
            "cac:LegalMonetaryTotal/cbc:TaxExclusiveAmount",
            currency,
        );
        let sentence = format!("The sum of the tax, {amount}, was taken for the tax of all lines.");
        self.report_change(Cause::Totals, total, sentence);
        vec![TaxSubtotal {
            tax: tax.clone(),
            base: exclusive.unwrap_or_else(|| line_sum(lines)),
            amount,
        }]
    }

    /// Reads the totals. A total that is missing is computed.
    pub(super) fn totals(&mut self, body: &Body) -> Totals {
        let root = self.root;
        let Some(element) = root.at("cac:LegalMonetaryTotal") else {
            let sentence = "The totals are missing (cac:LegalMonetaryTotal).".to_owned();
            self.report_fault(Cause::Missing, root, sentence);
            return Totals::default();
        };
        let mut read = |name: &str| self.amount_at(element, name, &body.currency);
        let lines = read("cbc:LineExtensionAmount");
        let tax_exclusive = read("cbc:TaxExclusiveAmount");
        let tax_inclusive = read("cbc:TaxInclusiveAmount");
        let prepaid = read("cbc:PrepaidAmount").unwrap_or_default();
        let rounding = read("cbc:PayableRoundingAmount").unwrap_or_default();
        // Marked as read, but not stored, because our writer computes these two.
        read("cbc:AllowanceTotalAmount");
        read("cbc:ChargeTotalAmount");
        let payable = read("cbc:PayableAmount");
        let lines = lines.unwrap_or_else(|| line_sum(&body.lines));
        let tax_exclusive = tax_exclusive.unwrap_or_else(|| lines + net_charges(&body.charges));
        let tax_inclusive = tax_inclusive.unwrap_or(tax_exclusive + tax_sum(&body.taxes));
        let payable = payable.unwrap_or(tax_inclusive - prepaid + rounding);
        Totals {
            lines,
            tax_exclusive,
            tax_inclusive,
            prepaid,
            rounding,
            payable,
        }
    }

    /// Reports the totals that do not follow from the lines, charges and taxes.
    pub(super) fn check_totals(&mut self, body: &Body) {
        let Some(element) = self.root.at("cac:LegalMonetaryTotal") else {
            return;
        };
        let totals = &body.totals;
        let lines = line_sum(&body.lines);
        let charges = net_charges(&body.charges);
        let tax = tax_sum(&body.taxes);
        let sums = [
            (
                "of the lines",
                totals.lines,
                lines,
                format!("the lines add up to {lines}"),
            ),
            (
                "before tax",
                totals.tax_exclusive,
                totals.lines + charges,
                format!(
                    "the lines ({}) with fees and discounts ({charges}) give {}",
                    totals.lines,
                    totals.lines + charges
                ),
            ),
            (
                "with tax",
                totals.tax_inclusive,
                totals.tax_exclusive + tax,
                format!(
                    "{} + {tax} tax is {}",
                    totals.tax_exclusive,
                    totals.tax_exclusive + tax
                ),
            ),
            (
                "to pay",
                totals.payable,
                totals.tax_inclusive - totals.prepaid + totals.rounding,
                format!(
                    "{} − {} paid + {} rounding is {}",
                    totals.tax_inclusive,
                    totals.prepaid,
                    totals.rounding,
                    totals.tax_inclusive - totals.prepaid + totals.rounding
                ),
            ),
        ];
        let tolerance = TOLERANCE.min(Decimal::new(1, currency_digits(&body.currency)));
        for (name, stated, computed, sentence) in sums {
            if (stated - computed).abs() > tolerance {
                let sentence = format!("The amount {name} is {stated}, but {sentence}.");
                self.report_change(Cause::Totals, element, sentence);
            }
        }
    }
}

/// Returns the category of a tax that states only its rate.
fn guess_category(element: &Element, percent: Option<Decimal>) -> &'static str {
    let reasons = ["cbc:TaxExemptionReasonCode", "cbc:TaxExemptionReason"];
    let has_reason = reasons.iter().any(|name| element.at(name).is_some());
    match percent {
        Some(percent) if !percent.is_zero() => "S",
        _ if has_reason => "E",
        _ => "Z",
    }
}

/// Returns the sum of the fees minus that of the discounts.
pub(crate) fn net_charges(charges: &[Charge]) -> Decimal {
    charges
        .iter()
        .map(|charge| {
            if charge.is_fee {
                charge.amount
            } else {
                -charge.amount
            }
        })
        .sum()
}

fn line_sum(lines: &[RawLine]) -> Decimal {
    let amounts = lines.iter().map(|raw| raw.line.amount);
    amounts.sum()
}

fn tax_sum(taxes: &[TaxSubtotal]) -> Decimal {
    taxes.iter().map(|tax| tax.amount).sum()
}

/// Returns quantity × price of a line, rounded; `None` if it is too large.
pub(crate) fn gross(line: &trade_document::Line, digits: u32) -> Option<Decimal> {
    let product = line.quantity.checked_mul(line.price)?;
    Some(round(product.checked_div(line.base_quantity)?, digits))
}

/// True if the tax total is in this currency, or states no currency. Does not mark the currency as read, because a
/// total in another currency is kept as a whole, as a part of the document without a field.
fn is_total_in_currency(total: &Element, currency: &str) -> bool {
    let amount = total.at("cbc:TaxAmount");
    let mut attributes = amount.into_iter().flat_map(|one| &one.attributes);
    let stated = attributes.find(|one| one.name == CURRENCY);
    stated.is_none_or(|attribute| attribute.value.trim().eq_ignore_ascii_case(currency))
}

/// True if the amount is in this currency, or states no currency. Marks the currency as read.
pub(super) fn is_in_currency(amount: &Element, currency: &str) -> bool {
    amount
        .attribute(CURRENCY)
        .is_none_or(|stated| stated.eq_ignore_ascii_case(currency))
}
