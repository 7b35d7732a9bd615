//! Writes charges (discounts and fees), taxes and totals.

use rust_decimal::Decimal;
use trade_document::{Charge, Tax, TradeDocument};

use crate::codes::{self, EXEMPTION_REASON, currency_digits};
use crate::element::{CURRENCY, Element};
use crate::fault::UnwritableDocument;
use crate::fixed_texts::{DISCOUNT_CODE, FEE_CODE};
use crate::rounding::round;

/// Returns a number without trailing zeros.
pub(super) fn plain_number(value: Decimal) -> String {
    let value = value.normalize();
    if value.is_zero() {
        "0".to_owned()
    } else {
        value.to_string()
    }
}

/// Returns an element for an amount with at least as many decimal digits as its currency has.
pub(super) fn amount_element(name: &str, value: Decimal, currency: &str) -> Element {
    let mut value = if value.is_zero() {
        Decimal::ZERO
    } else {
        value.normalize()
    };
    let digits = currency_digits(currency);
    if value.scale() < digits {
        value.rescale(digits);
    }
    Element::leaf(name, value.to_string()).with_attribute(CURRENCY, currency)
}

/// Returns an element for a discount or fee. `tax` is `None` for a charge of a line, because the line's tax applies.
pub(super) fn charge_element(
    charge: &Charge,
    tax: Option<&Tax>,
    currency: &str,
) -> Result<Element, UnwritableDocument> {
    let is_fee = if charge.is_fee { "true" } else { "false" };
    let mut element =
        Element::new("cac:AllowanceCharge").with(Element::leaf("cbc:ChargeIndicator", is_fee));
    if let Some(reason) = &charge.reason {
        element.push_text("cbc:AllowanceChargeReason", Some(reason));
    } else {
        let code = if charge.is_fee {
            FEE_CODE
        } else {
            DISCOUNT_CODE
        };
        element.push(Element::leaf("cbc:AllowanceChargeReasonCode", code).with_default_mark());
    }
    element.push_text(
        "cbc:MultiplierFactorNumeric",
        charge.rate.map(plain_number).as_deref(),
    );
    element.push(amount_element("cbc:Amount", charge.amount, currency));
    if let Some(tax) = tax {
        element.push(tax_category_element("cac:TaxCategory", tax, false)?);
    }
    Ok(element)
}

/// Returns an element for a tax category. `has_reason` adds the reason of an exemption.
pub(super) fn tax_category_element(
    name: &str,
    tax: &Tax,
    has_reason: bool,
) -> Result<Element, UnwritableDocument> {
    let code = &tax.category.code;
    let ubl = codes::ubl_tax_category(code, tax.percent)
        .ok_or_else(|| UnwritableDocument::TaxCategory(code.clone()))?;
    let mut element =
        Element::new(name).with(Element::leaf("cbc:ID", ubl.category).with_default_mark());
    element.push_text("cbc:Percent", tax.percent.map(plain_number).as_deref());
    if has_reason && ubl.category == "E" {
        element.push(Element::leaf("cbc:TaxExemptionReason", EXEMPTION_REASON).with_default_mark());
    }
    let mut scheme =
        Element::new("cac:TaxScheme").with(Element::leaf("cbc:ID", ubl.scheme).with_default_mark());
    if tax.category.name != ubl.scheme {
        scheme.push_text("cbc:Name", Some(&tax.category.name));
    }
    if ubl.is_ambiguous {
        scheme.push_text("cbc:TaxTypeCode", Some(code));
    }
    Ok(element.with(scheme))
}

/// Returns the tax of the lines; `None` if they have several.
fn only_tax(document: &TradeDocument) -> Option<&Tax> {
    let first = &document.lines.first()?.tax;
    document
        .lines
        .iter()
        .all(|line| line.tax == *first)
        .then_some(first)
}

/// Adds the charges of the document, the taxes and the totals.
pub(super) fn push_sums(
    root: &mut Element,
    document: &TradeDocument,
) -> Result<(), UnwritableDocument> {
    let currency = &document.currency;
    for charge in &document.charges {
        let tax = charge.tax.as_ref().or_else(|| only_tax(document));
        root.push(charge_element(charge, tax, currency)?);
    }
    if !document.taxes.is_empty() {
        let mut total = Element::new("cac:TaxTotal");
        total.push(amount_element("cbc:TaxAmount", tax_sum(document), currency));
        for tax in &document.taxes {
            total.push(
                Element::new("cac:TaxSubtotal")
                    .with(amount_element("cbc:TaxableAmount", tax.base, currency))
                    .with(amount_element("cbc:TaxAmount", tax.amount, currency))
                    .with(tax_category_element("cac:TaxCategory", &tax.tax, true)?),
            );
        }
        root.push(total);
    }
    root.push(totals_element(document));
    Ok(())
}

/// Returns the tax of a document, rounded to its currency, except if the totals state the exact sum: the amount with
/// tax must be the amount without tax plus the tax (BR-CO-15).
fn tax_sum(document: &TradeDocument) -> Decimal {
    let sum = document.tax();
    let totals = &document.totals;
    let stated = totals.tax_inclusive.checked_sub(totals.tax_exclusive);
    if stated == Some(sum) {
        sum
    } else {
        round(sum, currency_digits(&document.currency))
    }
}

fn totals_element(document: &TradeDocument) -> Element {
    let totals = &document.totals;
    let mut element = Element::new("cac:LegalMonetaryTotal");
    let mut push = |name: &str, value: Decimal| {
        element.push(amount_element(name, value, &document.currency));
    };
    push("cbc:LineExtensionAmount", totals.lines);
    push("cbc:TaxExclusiveAmount", totals.tax_exclusive);
    push("cbc:TaxInclusiveAmount", totals.tax_inclusive);
    for (is_fee, name) in [
        (false, "cbc:AllowanceTotalAmount"),
        (true, "cbc:ChargeTotalAmount"),
    ] {
        if document
            .charges
            .iter()
            .any(|charge| charge.is_fee == is_fee)
        {
            let charges = document
                .charges
                .iter()
                .filter(|charge| charge.is_fee == is_fee);
            push(name, charges.map(|charge| charge.amount).sum());
        }
    }
    for (name, value) in [
        ("cbc:PrepaidAmount", totals.prepaid),
        ("cbc:PayableRoundingAmount", totals.rounding),
    ] {
        if !value.is_zero() {
            push(name, value);
        }
    }
    push("cbc:PayableAmount", totals.payable);
    element
}
