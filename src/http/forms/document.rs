//! Reads the parties, totals, taxes and lines of an authority document (spec.md, "Submit" and "Validate").

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::authority_document::AuthorityDocument;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::{LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::line::read_unit;
use crate::http::forms::ownership;
use crate::http::forms::reader::Reader;

/// A telephone number is a `+` followed by this many digits.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 6..=15;

/// A document that passed the rules of its form.
#[derive(Debug)]
pub(crate) struct ValidDocument {
    pub(crate) irn: Irn,
    pub(crate) document: AuthorityDocument,
}

/// Checks the supplier or the customer of a document. If `taxpayer` is given, the party must have the tax number of the
/// taxpayer.
pub(crate) fn check_party(
    reader: &mut Reader<'_>,
    taxpayer: Option<&Taxpayer>,
    needs_zone: bool,
) -> Option<()> {
    reader.required("party_name").text(TEXT_CHARS_MAX);
    ownership::read_tin(reader, taxpayer);
    reader.required("email").email();
    let telephone_rule = FieldRule::must_be("telephone", "a + followed by 6 to 15 digits");
    reader
        .optional("telephone")
        .fitting_text(telephone_rule, is_telephone);
    reader
        .optional("business_description")
        .long_text(0, LONG_TEXT_CHARS_MAX);
    reader
        .required("postal_address")
        .object(|reader| check_address(reader, needs_zone))
}

pub(crate) fn is_telephone(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or_default();
    PHONE_DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

pub(crate) fn check_address(reader: &mut Reader<'_>, needs_zone: bool) -> Option<()> {
    reader.required("street_name").text(TEXT_CHARS_MAX);
    reader.required("city_name").text(TEXT_CHARS_MAX);
    reader
        .required_if(needs_zone, "postal_zone")
        .text(TEXT_CHARS_MAX);
    reader.required("country").country().map(drop)
}

/// The stated totals, under short names: `lines` is the document's `line_extension_amount`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) lines: Amount,
    pub(crate) tax_exclusive: Amount,
    pub(crate) tax_inclusive: Amount,
    pub(crate) payable: Amount,
}

pub(crate) fn read_totals(reader: &mut Reader<'_>) -> Option<Totals> {
    let lines = reader
        .required("line_extension_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    let tax_exclusive = reader
        .required("tax_exclusive_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    let tax_inclusive = reader
        .required("tax_inclusive_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    let payable = reader
        .required("payable_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    let totals = Totals {
        lines: lines?,
        tax_exclusive: tax_exclusive?,
        tax_inclusive: tax_inclusive?,
        payable: payable?,
    };
    if totals.tax_inclusive < totals.tax_exclusive {
        reader.report_fault(
            "tax_inclusive_amount",
            FieldRule::with_expected(
                "min",
                "must not be less than tax_exclusive_amount",
                "at least tax_exclusive_amount",
            ),
        );
    }
    Some(totals)
}

/// Reads the lines of a document with `read_line`, which returns the amount of a line. Reports a fault if the amounts
/// do not add up to the stated total.
pub(crate) fn check_lines(
    reader: &mut Reader<'_>,
    totals: Option<Totals>,
    read_line: fn(&mut Reader<'_>) -> Option<Amount>,
) {
    let amounts = reader.required("invoice_line").objects(1, read_line);
    let Some((amounts, totals)) = amounts.zip(totals) else {
        return;
    };
    check_lines_sum(reader, Amount::sum(amounts), totals);
}

/// Reports a fault if the amounts of the lines do not add up to the stated total. `sum` is `None` if it is too large.
pub(crate) fn check_lines_sum(reader: &Reader<'_>, sum: Option<Amount>, totals: Totals) {
    if sum.is_some_and(|sum| sum.is_within_tolerance(totals.lines)) {
        return;
    }
    let numbers = sum.map(|sum| {
        format!(
            ": {} ≠ {}",
            sum.to_grouped_text(),
            totals.lines.to_grouped_text()
        )
    });
    let sentence = format!(
        "must add up to legal_monetary_total.line_extension_amount{}",
        numbers.unwrap_or_default()
    );
    let rule = FieldRule::Other {
        id: "sum",
        sentence: sentence.into(),
        expected: Some("items that add up to legal_monetary_total.line_extension_amount"),
    };
    reader.report_fault("invoice_line", rule);
}

/// Reads a line of Submit and returns its amount.
pub(crate) fn read_line_with_description(reader: &mut Reader<'_>) -> Option<Amount> {
    read_line(reader, true)
}

/// Reads a line of Validate and returns its amount. Unlike Submit, Validate does not require an item description.
pub(crate) fn read_line_with_optional_description(reader: &mut Reader<'_>) -> Option<Amount> {
    read_line(reader, false)
}

fn read_line(reader: &mut Reader<'_>, needs_description: bool) -> Option<Amount> {
    let is_service = reader.has("isic_code") || reader.has("service_category");
    let is_product = !is_service || reader.has("hsn_code") || reader.has("product_category");
    reader
        .required_if(is_product, "hsn_code")
        .text(TEXT_CHARS_MAX);
    reader
        .required_if(is_product, "product_category")
        .text(TEXT_CHARS_MAX);
    reader
        .required_if(is_service, "isic_code")
        .text(TEXT_CHARS_MAX);
    reader
        .required_if(is_service, "service_category")
        .text(TEXT_CHARS_MAX);
    reader
        .required("invoiced_quantity")
        .amount(AmountBounds::POSITIVE);
    for rate in ["discount_rate", "fee_rate"] {
        reader.optional(rate).amount(AmountBounds::PERCENTAGE);
    }
    for amount in ["discount_amount", "fee_amount"] {
        reader.optional(amount).amount(AmountBounds::NOT_NEGATIVE);
    }
    reader
        .required("item")
        .object(|reader| check_item(reader, needs_description));
    reader.required("price").object(check_price);
    reader
        .required("line_extension_amount")
        .amount(AmountBounds::NOT_NEGATIVE)
}

fn check_item(reader: &mut Reader<'_>, needs_description: bool) -> Option<()> {
    let name = reader.required("name").text(TEXT_CHARS_MAX);
    reader
        .optional("sellers_item_identification")
        .identifier(TEXT_CHARS_MAX);
    reader
        .required_if(needs_description, "description")
        .long_text(0, LONG_TEXT_CHARS_MAX);
    name.map(drop)
}

fn check_price(reader: &mut Reader<'_>) -> Option<()> {
    reader
        .required("price_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    reader
        .required("base_quantity")
        .amount(AmountBounds::POSITIVE);
    read_unit(reader.required("price_unit")).map(drop)
}

pub(crate) fn check_tax_total(reader: &mut Reader<'_>) -> Option<()> {
    let amount = reader
        .required("tax_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    let subtotal_amounts = reader
        .required("tax_subtotal")
        .objects(1, read_tax_subtotal);
    let amount = amount?;
    let sum = Amount::sum(subtotal_amounts?)?;
    if !sum.is_within_tolerance(amount) {
        let sentence = format!(
            "must be the sum of its tax subtotals: {} ≠ {}",
            amount.to_grouped_text(),
            sum.to_grouped_text()
        );
        let rule = FieldRule::Other {
            id: "sum",
            sentence: sentence.into(),
            expected: Some("the sum of its tax subtotals"),
        };
        reader.report_fault("tax_amount", rule);
    }
    Some(())
}

pub(crate) fn read_tax_subtotal(reader: &mut Reader<'_>) -> Option<Amount> {
    reader
        .required("taxable_amount")
        .amount(AmountBounds::NOT_NEGATIVE);
    reader.required("tax_category").object(check_tax_category);
    reader
        .required("tax_amount")
        .amount(AmountBounds::NOT_NEGATIVE)
}

fn check_tax_category(reader: &mut Reader<'_>) -> Option<()> {
    reader
        .required("percent")
        .amount(AmountBounds::NOT_NEGATIVE);
    reader
        .required("id")
        .code(ReferenceList::TaxCategories)
        .map(drop)
}
