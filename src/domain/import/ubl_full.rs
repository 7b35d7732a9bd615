//! A trade document as the body of Create Invoice (Full).

use std::collections::BTreeMap;

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use trade_document::{
    Charge, ItemKind, Line, Party, Reference, ReferenceKind, Tax, TaxSubtotal, Totals,
    TradeDocument,
};

use crate::domain::import::stated_sums::is_rounding;
use crate::domain::import::ubl_document::{
    add_members, json_number, optional_value, party_name, to_amount, value_if_filled,
};
use crate::domain::import::ubl_parties::counterparty;
use crate::domain::import::ubl_standard::fitting_code;
use crate::domain::invoice::calculation_taxes::{divide_tax, round_tax};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::ItemType;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

/// The members that hold references to other documents. The flag is true for a member that is a list.
const REFERENCES: [(ReferenceKind, &str, bool); 6] = [
    (ReferenceKind::Preceding, "billing_reference", true),
    (
        ReferenceKind::Additional,
        "additional_document_reference",
        true,
    ),
    (
        ReferenceKind::Dispatch,
        "dispatch_document_reference",
        false,
    ),
    (ReferenceKind::Receipt, "receipt_document_reference", false),
    (
        ReferenceKind::Originator,
        "originator_document_reference",
        false,
    ),
    (
        ReferenceKind::Contract,
        "contract_document_reference",
        false,
    ),
];

/// Returns the body. It has the charges `after_tax`, which apply after the tax; the document itself has no charges
/// left.
pub(super) fn body(
    document: &TradeDocument,
    after_tax: &[Charge],
    catalog: &Catalog,
    warnings: &mut Vec<String>,
) -> Map<String, Value> {
    let mut body = Map::new();
    let date = |date: Option<Date>| date.map(|date| json!(date.to_string()));
    let digits = catalog.currency_digits(&document.currency);
    let unit = Decimal::new(1, digits);
    let lines = document.lines.iter().zip(line_taxes(document, digits));
    let lines: Vec<_> = lines
        .enumerate()
        .map(|(index, (one, tax))| line(index, one, tax, unit, warnings))
        .collect();
    if document
        .references
        .iter()
        .any(|reference| reference.kind == ReferenceKind::Order)
    {
        warnings.push(
            "Create Full has no field for the order: kept for the UBL of the invoice.".to_owned(),
        );
    }
    add_members(
        &mut body,
        [
            ("invoice_no", value_if_filled(&document.number)),
            ("irn", optional_value(document.irn.as_deref())),
            ("issue_date", Some(json!(document.issue_date.to_string()))),
            (
                "issue_time",
                document.issue_time.map(|time| json!(time.to_string())),
            ),
            ("due_date", date(document.due_date)),
            ("tax_point_date", date(document.tax_point_date)),
            ("actual_delivery_date", date(document.delivery_date)),
            (
                "invoice_type_code",
                value_if_filled(&document.document_type.code),
            ),
            ("note", value_if_filled(&document.notes.join(" "))),
            (
                "document_currency_code",
                value_if_filled(&document.currency),
            ),
            (
                "tax_currency_code",
                optional_value(document.tax_currency.as_deref()),
            ),
            ("invoice_delivery_period", delivery_period(document)),
            (
                "buyer_reference",
                optional_value(document.buyer_reference.as_deref()),
            ),
            (
                "payment_terms_note",
                optional_value(document.payment_terms.as_deref()),
            ),
            (
                "accounting_customer_party",
                Some(customer(counterparty(document))),
            ),
            ("invoice_line", Some(Value::Array(lines))),
            ("tax_total", tax_total(document)),
            ("allowance_charge", allowance_charge(after_tax)),
            ("legal_monetary_total", Some(totals(&document.totals))),
        ],
    );
    add_references(&mut body, document, warnings);
    add_payment_means(&mut body, document);
    body
}

fn totals(totals: &Totals) -> Value {
    json!({
        "line_extension_amount": json_number(totals.lines),
        "tax_exclusive_amount": json_number(totals.tax_exclusive),
        "tax_inclusive_amount": json_number(totals.tax_inclusive),
        "payable_amount": json_number(totals.payable),
    })
}

fn allowance_charge(charges: &[Charge]) -> Option<Value> {
    let members = charges.iter().map(|charge| {
        let amount = json_number(charge.amount);
        json!({ "charge_indicator": charge.is_fee, "amount": amount })
    });
    (!charges.is_empty()).then(|| members.collect())
}

/// Returns the delivery period; `None` unless the document has both of its days, which the form requires.
fn delivery_period(document: &TradeDocument) -> Option<Value> {
    let period = document.period?;
    let start = period.start?;
    let end = period.end.filter(|end| *end >= start)?;
    Some(json!({ "start_date": start.to_string(), "end_date": end.to_string() }))
}

fn customer(party: &Party) -> Value {
    let mut address = Map::new();
    add_members(
        &mut address,
        [
            (
                "street_name",
                optional_value(party.address.street.as_deref()),
            ),
            ("city_name", optional_value(party.address.city.as_deref())),
            (
                "postal_zone",
                optional_value(party.address.postal_code.as_deref()),
            ),
            ("country", optional_value(party.address.country.as_deref())),
        ],
    );
    let mut customer = Map::new();
    add_members(
        &mut customer,
        [
            ("customer_no", optional_value(party.number.as_deref())),
            ("party_name", party_name(party)),
            ("email", optional_value(party.email.as_deref())),
            ("tin", optional_value(party.tin.as_deref())),
            ("telephone", optional_value(party.telephone.as_deref())),
            (
                "business_description",
                optional_value(party.description.as_deref()),
            ),
            ("postal_address", Some(Value::Object(address))),
        ],
    );
    Value::Object(customer)
}

/// Returns the tax of each line; `None` if it is too large. The lines of a tax have together what the file states for
/// it, as far as that differs by rounding only, otherwise what follows from its percent.
fn line_taxes(document: &TradeDocument, digits: u32) -> Vec<Option<Amount>> {
    let mut by_tax: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, line) in document.lines.iter().enumerate() {
        by_tax.entry(tax_key(&line.tax)).or_default().push(index);
    }
    let mut taxes = vec![None; document.lines.len()];
    for (key, indexes) in by_tax {
        let lines = indexes.iter().map(|index| &document.lines[*index]);
        let amounts: Vec<_> = lines.map(|line| line.amount).collect();
        let stated = document.taxes.iter().filter(|one| tax_key(&one.tax) == key);
        let stated: Vec<_> = stated.map(|one| one.amount).collect();
        let parts = divide_stated_tax(key.1, &amounts, &stated, digits);
        for (index, part) in indexes.into_iter().zip(parts.into_iter().flatten()) {
            taxes[index] = Some(part);
        }
    }
    taxes
}

fn tax_key(tax: &Tax) -> (&str, Decimal) {
    let percent = tax.percent.unwrap_or_default();
    (tax.category.code.as_str(), percent)
}

/// Divides the tax of lines with these amounts among them. `stated` holds the taxes that the file states for them.
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
    let own = round_tax(add_up(&exact)?, digits)?;
    let stated = add_up(stated).filter(|_| !stated.is_empty());
    let stated = stated.and_then(to_amount).filter(|stated| {
        !stated.has_more_digits(digits) && is_rounding(own, *stated, amounts.len(), digits)
    });
    let parts = stated.and_then(|stated| divide_tax(stated, &exact, digits));
    let parts = parts.filter(|parts| !parts.iter().any(|part| part.is_negative()));
    parts.or_else(|| divide_tax(own, &exact, digits))
}

fn add_up(amounts: &[Decimal]) -> Option<Decimal> {
    let mut amounts = amounts.iter();
    amounts.try_fold(Decimal::ZERO, |sum, amount| sum.checked_add(*amount))
}

/// The discounts of a line, or its fees, as the two members of the body.
struct ChargeMembers {
    rate: Option<Value>,
    amount: Option<Value>,
}

impl ChargeMembers {
    /// Takes the rate of the first charge that follows from its rate, and the sum of the others. `unit` is the smallest
    /// amount of the currency.
    fn from_line(line: &Line, is_fee: bool, unit: Decimal) -> Self {
        let charges = line.charges.iter().filter(|charge| charge.is_fee == is_fee);
        let charges: Vec<_> = charges.collect();
        let rated = charges
            .iter()
            .position(|charge| follows_from_rate(line, charge, unit));
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
/// the nearest. With an amount that was cut off, the line would not be what its rate comes to.
fn follows_from_rate(line: &Line, charge: &Charge, unit: Decimal) -> bool {
    let Some(rate) = charge.rate else {
        return false;
    };
    let gross = line.quantity.checked_mul(line.price);
    let gross = gross.and_then(|product| product.checked_div(line.base_quantity));
    let exact = gross.and_then(|gross| gross.checked_mul(rate)?.checked_div(Decimal::ONE_HUNDRED));
    let is_percentage = rate > Decimal::ZERO && rate <= Decimal::ONE_HUNDRED;
    is_percentage && exact.is_some_and(|exact| (exact - charge.amount).abs() <= unit / Decimal::TWO)
}

fn line(
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
    let category = fitting_code(line, pattern, category_name, index, warnings);
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

fn tax_total(document: &TradeDocument) -> Option<Value> {
    let parts: Vec<_> = document.taxes.iter().map(tax_part).collect();
    (!parts.is_empty())
        .then(|| json!([{ "tax_amount": json_number(document.tax()), "tax_subtotal": parts }]))
}

fn tax_part(subtotal: &TaxSubtotal) -> Value {
    let tax = &subtotal.tax;
    json!({
        "taxable_amount": json_number(subtotal.base),
        "tax_amount": json_number(subtotal.amount),
        "tax_category": {
            "id": tax.category.code,
            "percent": json_number(tax.percent.unwrap_or_default()),
        },
    })
}

/// Returns the document without the data that has no field in the body.
pub(super) fn empty_fields(document: &TradeDocument) -> TradeDocument {
    let mut references = Vec::new();
    for (kind, _, is_list) in REFERENCES {
        let all = document.references.iter();
        let usable = all.filter(|one| one.kind == kind && date_value(one).is_some());
        references.extend(usable.take(if is_list { usize::MAX } else { 1 }).cloned());
    }
    TradeDocument {
        references,
        period: document
            .period
            .filter(|_| delivery_period(document).is_some()),
        // The authority requires an amount there, not an account code.
        accounting_cost: None,
        ..document.clone()
    }
}

/// Adds those references that have a date, as the form requires one. An IRN contains its date.
fn add_references(
    body: &mut Map<String, Value>,
    document: &TradeDocument,
    warnings: &mut Vec<String>,
) {
    for (kind, name, is_list) in REFERENCES {
        let all: Vec<_> = document
            .references
            .iter()
            .filter(|reference| reference.kind == kind)
            .collect();
        let mut usable: Vec<_> = all
            .iter()
            .filter_map(|reference| date_value(reference))
            .collect();
        if usable.len() < all.len() || (!is_list && usable.len() > 1) {
            warnings.push(format!(
                "References without a date, or more than one, do not go into {name}: \
                 kept for the UBL of the invoice."
            ));
        }
        if is_list && !usable.is_empty() {
            body.insert(name.to_owned(), Value::Array(usable));
        } else if !usable.is_empty() {
            body.insert(name.to_owned(), usable.swap_remove(0));
        }
    }
}

fn date_value(reference: &Reference) -> Option<Value> {
    let irn = Irn::parse(&reference.id).ok();
    let date = reference.issue_date.or_else(|| irn?.date())?;
    Some(json!({ "irn": reference.id, "issue_date": date.to_string() }))
}

fn add_payment_means(body: &mut Map<String, Value>, document: &TradeDocument) {
    let means = document.payment_means.iter().map(|means| {
        let mut one = Map::new();
        add_members(
            &mut one,
            [
                ("payment_means_code", value_if_filled(&means.means.code)),
                (
                    "payment_due_date",
                    means.due_date.map(|date| json!(date.to_string())),
                ),
            ],
        );
        Value::Object(one)
    });
    let means: Vec<_> = means.collect();
    if !means.is_empty() {
        body.insert("payment_means".to_owned(), Value::Array(means));
    }
}

#[cfg(test)]
mod tests {
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
            let found = line(0, &own, None, Decimal::new(1, 2), &mut Vec::new());
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
