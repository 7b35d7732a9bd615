//! The lines of a trade document as the lines of Create Invoice (Full).

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use trade_document::{Charge, ItemKind, Line, TradeDocument};

use crate::domain::import::body_members::{add_members, json_number, to_amount, value_if_filled};
use crate::domain::import::stated_sums::differs_at_most_by_rounding;
use crate::domain::import::ubl_standard::matching_classification_code;
use crate::domain::invoice::calculation_taxes::{divide_tax, round_tax};
use crate::domain::kernel::codes::ItemType;
use crate::domain::money::Amount;

/// Returns the lines. `digits` is the number of digits of the document's currency.
pub(super) fn body_lines(
    document: &TradeDocument,
    digits: u32,
    warnings: &mut Vec<String>,
) -> Vec<Value> {
    let unit = Decimal::new(1, digits);
    let lines = document.lines.iter().zip(line_taxes(document, digits));
    lines
        .enumerate()
        .map(|(index, (one, tax))| body_line(index, one, tax, unit, warnings))
        .collect()
}

fn body_line(
    index: usize,
    line: &Line,
    tax: Option<Amount>,
    unit: Decimal,
    warnings: &mut Vec<String>,
) -> Value {
    let discount = ChargeMembers::from_line(line, false, unit);
    let fee = ChargeMembers::from_line(line, true, unit);
    let (item_type, category_name, code_name, pattern) = match line.item_kind {
        ItemKind::Product => (ItemType::Product, "product_category", "hsn_code", "9999.99"),
        ItemKind::Service => (ItemType::Service, "service_category", "isic_code", "9999"),
    };
    let category = matching_classification_code(line, pattern, category_name, index, warnings);
    let mut item = Map::new();
    add_members(
        &mut item,
        [
            ("name", value_if_filled(&line.name)),
            (
                "description",
                line.description
                    .as_deref()
                    .and_then(value_if_filled)
                    .or_else(|| value_if_filled(&line.name)),
            ),
            (
                "sellers_item_identification",
                line.item_number.as_deref().and_then(value_if_filled),
            ),
            ("type", Some(json!(item_type))),
        ],
    );
    let mut body = Map::new();
    add_members(
        &mut body,
        [
            (category_name, category.clone()),
            (code_name, category),
            ("invoiced_quantity", Some(json_number(line.quantity))),
            ("line_extension_amount", Some(json_number(line.amount))),
            ("tax_category", value_if_filled(&line.tax.category.code)),
            ("total_tax", tax.map(|tax| json_number(tax.into()))),
            ("discount_rate", discount.rate),
            ("discount_amount", discount.amount),
            ("fee_rate", fee.rate),
            ("fee_amount", fee.amount),
            ("item", Some(Value::Object(item))),
            (
                "price",
                Some(json!({
                    "price_amount": json_number(line.price),
                    "base_quantity": json_number(line.base_quantity),
                    "price_unit": line.unit.code,
                })),
            ),
        ],
    );
    Value::Object(body)
}

/// The discounts of a line, or its fees, as the two members of the body.
struct ChargeMembers {
    rate: Option<Value>,
    amount: Option<Value>,
}

impl ChargeMembers {
    /// Uses the rate of the first charge whose amount follows from its rate, and adds up the amounts of the other
    /// charges. `unit` is the smallest amount of the currency.
    fn from_line(line: &Line, is_fee: bool, unit: Decimal) -> Self {
        let charges = line.charges.iter().filter(|charge| charge.is_fee == is_fee);
        let charges: Vec<_> = charges.collect();
        let rated = charges
            .iter()
            .position(|charge| has_amount_from_rate(line, charge, unit));
        let others = charges.iter().enumerate();
        let others = others.filter(|(index, _)| Some(*index) != rated);
        let flat: Decimal = others.map(|(_, charge)| charge.amount).sum();
        let rated = rated.and_then(|index| charges.get(index));
        Self {
            rate: rated.and_then(|charge| charge.rate.map(json_number)),
            amount: (!flat.is_zero()).then(|| json_number(flat)),
        }
    }
}

/// True if the charge has a rate that the form takes, and its amount is this percentage of quantity × price, rounded to
/// the nearest. An amount that was rounded down does not follow from its rate: the service would compute another amount
/// for the line.
fn has_amount_from_rate(line: &Line, charge: &Charge, unit: Decimal) -> bool {
    let Some(rate) = charge.rate else {
        return false;
    };
    let gross = line.quantity.checked_mul(line.price);
    let gross = gross.and_then(|product| product.checked_div(line.base_quantity));
    let exact = gross.and_then(|gross| gross.checked_mul(rate)?.checked_div(Decimal::ONE_HUNDRED));
    let is_percentage = rate > Decimal::ZERO && rate <= Decimal::ONE_HUNDRED;
    is_percentage && exact.is_some_and(|exact| (exact - charge.amount).abs() <= unit / Decimal::TWO)
}

/// Returns the tax of each line; `None` for a tax that is too large. The lines of a tax category share the tax that the
/// file states for the category. If that tax is missing, or wrong by more than rounding, they share the computed tax.
fn line_taxes(document: &TradeDocument, digits: u32) -> Vec<Option<Amount>> {
    let mut by_tax: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, line) in document.lines.iter().enumerate() {
        by_tax
            .entry(line.tax.code_and_percent())
            .or_default()
            .push(index);
    }
    let mut taxes = vec![None; document.lines.len()];
    for (key, indexes) in by_tax {
        let lines = indexes.iter().map(|index| &document.lines[*index]);
        let amounts: Vec<_> = lines.map(|line| line.amount).collect();
        let stated = document
            .taxes
            .iter()
            .filter(|one| one.tax.code_and_percent() == key);
        let stated: Vec<_> = stated.map(|one| one.amount).collect();
        let parts = divide_stated_tax(key.1, &amounts, &stated, digits);
        for (index, part) in indexes.into_iter().zip(parts.into_iter().flatten()) {
            taxes[index] = Some(part);
        }
    }
    taxes
}

/// Divides the tax among the lines that have these amounts. `stated` holds the taxes that the file states for these
/// lines.
fn divide_stated_tax(
    percent: Decimal,
    amounts: &[Decimal],
    stated: &[Decimal],
    digits: u32,
) -> Option<Vec<Amount>> {
    let exact = amounts.iter().map(|amount| {
        let hundredfold = percent.checked_mul(*amount)?;
        hundredfold.checked_div(Decimal::ONE_HUNDRED)
    });
    let exact: Vec<_> = exact.collect::<Option<_>>()?;
    let own = round_tax(checked_sum(&exact)?, digits)?;
    let stated = checked_sum(stated).filter(|_| !stated.is_empty());
    let stated = stated.and_then(to_amount).filter(|stated| {
        !stated.has_more_digits(digits)
            && differs_at_most_by_rounding(own, *stated, amounts.len(), digits)
    });
    let parts = stated.and_then(|stated| divide_tax(stated, &exact, digits));
    let parts = parts.filter(|parts| !parts.iter().any(|part| part.is_negative()));
    parts.or_else(|| divide_tax(own, &exact, digits))
}

fn checked_sum(amounts: &[Decimal]) -> Option<Decimal> {
    let mut amounts = amounts.iter();
    amounts.try_fold(Decimal::ZERO, |sum, amount| sum.checked_add(*amount))
}

#[cfg(test)]
mod tests {
    use trade_document::{Tax, TaxSubtotal};

    use super::*;

    const EXAMPLE: &str = include_str!(
        "../../../crates/ubl/tests/examples/mcp-einvoicing-be-invoice_valid_peppol.xml"
    );

    /// Returns a document of lines with these amounts and percents, and of these taxes: the percent and the amount.
    fn document(lines: &[(&str, &str)], taxes: &[(&str, &str)]) -> TradeDocument {
        let decimal = |text: &str| text.parse::<Decimal>().unwrap();
        let read = ubl::read(EXAMPLE.as_bytes(), &ubl::Limits::default()).unwrap();
        let mut document = read.document;
        let line = document.lines.swap_remove(0);
        let subtotal = document.taxes.swap_remove(0);
        let tax = |percent: &str| Tax {
            percent: Some(decimal(percent)),
            ..line.tax.clone()
        };
        let lines = lines.iter().map(|(amount, percent)| Line {
            amount: decimal(amount),
            tax: tax(percent),
            ..line.clone()
        });
        document.lines = lines.collect();
        let taxes = taxes.iter().map(|(percent, amount)| TaxSubtotal {
            amount: decimal(amount),
            tax: tax(percent),
            ..subtotal.clone()
        });
        document.taxes = taxes.collect();
        document
    }

    #[test]
    fn the_taxes_of_the_lines_add_up_to_the_tax_in_every_currency() {
        let vat = |tax| vec![("7.5", tax)];
        for (digits, lines, taxes, expected) in [
            (2, vec!["5.40"], vat("0.41"), "0.41"),
            (2, vec!["0.60"], vat("0.05"), "0.05"),
            (2, vec!["1.80"], vat("0.14"), "0.14"),
            (3, vec!["1.007"], vat("0.076"), "0.076"),
            (3, vec!["0.333"], vat("0.025"), "0.025"),
            (3, vec!["300.017"], vat("22.501"), "22.501"),
            (0, vec!["101"], vat("8"), "8"),
            (2, vec!["1.07"; 50], vat("4.01"), "4.01"),
            // Without a stated tax, or with one that is another tax, the percent counts.
            (2, vec!["5.40"], vec![], "0.41"),
            (2, vec!["100"], vat("10.00"), "7.50"),
            (3, vec!["100"], vat("7.509"), "7.500"),
            (2, vec!["100"], vec![("19", "7.50")], "7.50"),
            // A tax that was rounded for each line, or otherwise, is that of the lines.
            (2, vec!["0.60"; 3], vat("0.15"), "0.15"),
            (0, vec!["101"], vat("7"), "7"),
            (2, vec!["53.50"], vat("4.0125"), "4.01"),
            (2, vec!["0.10"; 4], vat("0.00"), "0.00"),
            // No line has less than no tax.
            (2, vec!["0.20"; 4], vat("0.02"), "0.06"),
        ] {
            let lines: Vec<_> = lines.into_iter().map(|amount| (amount, "7.5")).collect();
            let found = line_taxes(&document(&lines, &taxes), digits);
            let found = found.into_iter().collect::<Option<Vec<_>>>().unwrap();
            assert!(!found.iter().any(|tax| tax.is_negative()), "{found:?}");
            let is_long = found.iter().any(|tax| tax.has_more_digits(digits));
            assert!(!is_long, "{found:?}");
            let sum = Amount::sum(found).unwrap();
            assert_eq!(sum.to_string(), expected, "{lines:?} {taxes:?}");
        }
    }

    #[test]
    fn each_percent_has_the_tax_of_its_own_lines() {
        let lines = [("1.00", "7.5"), ("1.00", "0"), ("1.00", "7.5")];
        let taxes = [("7.5", "0.15"), ("0", "0")];
        let found = line_taxes(&document(&lines, &taxes), 2);
        let found = found.into_iter().map(|tax| tax.unwrap().to_string());
        assert_eq!(found.collect::<Vec<_>>(), ["0.08", "0.00", "0.07"]);
    }

    #[test]
    fn a_rate_from_which_its_amount_follows_is_kept() {
        let one = |is_fee, amount: &str, rate: Option<&str>| Charge {
            is_fee,
            amount: amount.parse().unwrap(),
            rate: rate.map(|rate| rate.parse().unwrap()),
            reason: None,
            tax: None,
        };
        // The charges of a line of 3 × 33.33, and the members of the body.
        for (charges, expected) in [
            (vec![], json!({})),
            (
                vec![one(false, "10.00", Some("10"))],
                json!({ "discount_rate": 10 }),
            ),
            (
                vec![one(true, "2.5", Some("2.5")), one(true, "1", None)],
                json!({ "fee_rate": 2.5, "fee_amount": 1 }),
            ),
            (
                vec![one(false, "10", Some("10")), one(false, "5", Some("5"))],
                json!({ "discount_rate": 10, "discount_amount": 5 }),
            ),
            (
                vec![one(false, "5", None), one(false, "10.00", Some("10"))],
                json!({ "discount_rate": 10, "discount_amount": 5 }),
            ),
            // The amount counts where it does not follow from the rate, or where the form has no such rate.
            (
                vec![one(false, "9", Some("10"))],
                json!({ "discount_amount": 9 }),
            ),
            // 9.999, cut off.
            (
                vec![one(false, "9.99", Some("10"))],
                json!({ "discount_amount": 9.99 }),
            ),
            (
                vec![one(true, "149.99", Some("150"))],
                json!({ "fee_amount": 149.99 }),
            ),
            (vec![one(true, "0.00", Some("0"))], json!({})),
        ] {
            let mut body = document(&[("100", "7.5")], &[]);
            let mut own = body.lines.swap_remove(0);
            own.price = "33.33".parse().unwrap();
            own.quantity = Decimal::from(3);
            own.base_quantity = Decimal::ONE;
            own.charges = charges;
            let found = body_line(0, &own, None, Decimal::new(1, 2), &mut Vec::new());
            for name in ["discount_rate", "discount_amount", "fee_rate", "fee_amount"] {
                let texts = [&found, &expected].map(|body| body.get(name).map(ToString::to_string));
                assert_eq!(texts[0], texts[1], "{name} {:?}", own.charges);
            }
        }
    }

    #[test]
    fn a_tax_beyond_the_range_is_left_out() {
        let most = "999999999999999.999999";
        assert_eq!(line_taxes(&document(&[(most, most)], &[]), 2), [None]);
    }
}
