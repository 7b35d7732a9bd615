//! Tests that break valid bodies, most of them at random, and patch them. This file has their common parts: bodies with
//! any lines, the violations in a body, and the repair of a body.

mod any_value;
mod doubts;
mod repairs;

use std::sync::LazyLock;

use jiff::tz::Offset;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::totals;
use crate::domain::kernel::fault::Faults;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::{Catalog, ReferenceList};
use crate::http::forms::testing::{number, object, validation as sample, with_member};
use crate::http::forms::validation;
use crate::http::suggest_patch::patch_builder::{PatchBuilder, PatchContext};
use crate::http::suggest_patch::violation::Violation;

/// The reference lists of the simulator.
static CATALOG: LazyLock<Catalog> = LazyLock::new(lists);

fn catalog() -> &'static Catalog {
    &CATALOG
}

fn lists() -> Catalog {
    let lists = [
        (
            ReferenceList::InvoiceTypes,
            include_str!("../../../../crates/sandbox/data/invoice-types.json"),
        ),
        (
            ReferenceList::PaymentMeans,
            include_str!("../../../../crates/sandbox/data/payment-means.json"),
        ),
        (
            ReferenceList::TaxCategories,
            include_str!("../../../../crates/sandbox/data/tax-categories.json"),
        ),
        (
            ReferenceList::Currencies,
            include_str!("../../../../crates/sandbox/data/currencies.json"),
        ),
        (
            ReferenceList::QuantityCodes,
            include_str!("../../../../crates/sandbox/data/invoice-quantity-codes.json"),
        ),
        (
            ReferenceList::Countries,
            include_str!("../../../../crates/sandbox/data/countries.json"),
        ),
    ];
    let mut catalog = Catalog::default();
    for (list, text) in lists {
        catalog.load(list, &strict_json::from_trusted(text).unwrap());
    }
    catalog
}

fn amount(hundredths: u32) -> Amount {
    Amount::parse(&format!("{}.{:02}", hundredths / 100, hundredths % 100)).unwrap()
}

/// A sold line: the quantity, the price in hundredths, and true if the line sells a service.
type SoldLine = (u32, u32, bool);

/// Returns a valid body for the Validate endpoint, with these invoice lines.
fn body(sold: &[SoldLine]) -> Value {
    let line = |(quantity, price, is_service): &SoldLine| {
        let sum = Amount::from(i64::from(*quantity))
            .times(amount(*price))
            .unwrap();
        let price = json!({
            "price_amount": amount(*price), "base_quantity": 1, "price_unit": if *is_service { "HUR" } else { "KGM" },
        });
        let mut line = json!({
            "invoiced_quantity": quantity, "line_extension_amount": sum, "item": { "name": "Rice" }, "price": price,
        });
        let names = if *is_service {
            ["isic_code", "service_category"]
        } else {
            ["hsn_code", "product_category"]
        };
        for name in names {
            line[name] = json!(if *is_service { "6201" } else { "1006.30" });
        }
        (line, sum)
    };
    let (lines, sums): (Vec<Value>, Vec<Amount>) = sold.iter().map(line).unzip();
    let sum = Amount::sum(sums).unwrap();
    let tax = Amount::parse("7.5")
        .unwrap()
        .percent_share(sum)
        .unwrap()
        .round_half_up(2);
    let total_with_tax = sum.plus(tax).unwrap();
    let mut body = sample();
    for (name, day) in [
        ("issue_date", "2026-01-15"),
        ("tax_point_date", "2026-01-15"),
        ("due_date", "2026-02-25"),
    ] {
        body[name] = json!(day);
    }
    body["payment_means"] =
        json!([{ "payment_means_code": "30", "payment_due_date": "2026-02-25" }]);
    body["invoice_line"] = json!(lines);
    body["tax_total"] = json!([{ "tax_amount": tax, "tax_subtotal": [{
        "taxable_amount": sum, "tax_amount": tax, "tax_category": { "id": "STANDARD_VAT", "percent": number("7.5") },
    }] }]);
    body["legal_monetary_total"] = json!({
        "line_extension_amount": sum, "tax_exclusive_amount": sum, "tax_inclusive_amount": total_with_tax,
        "payable_amount": total_with_tax,
    });
    body
}

fn with_changed_amount(body: &Value, pointer: &str, difference: &str) -> Value {
    let right = Amount::parse(&body.pointer(pointer).unwrap().to_string()).unwrap();
    with_member(
        body,
        pointer,
        Some(json!(
            right.plus(Amount::parse(difference).unwrap()).unwrap()
        )),
    )
}

fn violations(body: &Map<String, Value>, catalog: &Catalog) -> Vec<Violation> {
    let faults = validation::read(body, None, catalog).err();
    faults
        .iter()
        .flat_map(Faults::iter)
        .map(Violation::from)
        .collect()
}

fn is_valid_body(body: &Value, catalog: &Catalog) -> bool {
    violations(&object(body.clone()), catalog).is_empty()
        && totals::inclusive_total_violation(body).is_none()
}

/// Repairs a body. Returns true if the repaired body is valid, the patch, and the body that an RFC 6902 library makes
/// of the patch.
fn repair(body: &Value, catalog: &Catalog) -> (bool, Vec<Value>, Value) {
    let context = PatchContext {
        catalog,
        zone: Offset::constant(1),
    };
    let mut builder = PatchBuilder::new(&object(body.clone()), context);
    let is_valid = builder.repair_body(|body| violations(body, catalog));
    let patch: json_patch::Patch = serde_json::from_value(json!(builder.operations())).unwrap();
    let mut patched = body.clone();
    json_patch::patch(&mut patched, &patch).unwrap();
    assert_eq!(
        patched.as_object(),
        builder.body(),
        "the patch says what was done"
    );
    (is_valid, builder.operations(), patched)
}

/// Returns true if two bodies are equal. Numbers are equal if their values are equal, such as `1` and `1.0`.
fn are_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            Amount::parse(&one.to_string()).unwrap() == Amount::parse(&other.to_string()).unwrap()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| are_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| {
                    other.get(name).is_some_and(|other| are_equal(value, other))
                })
        }
        _ => one == other,
    }
}

fn sold_lines() -> impl Strategy<Value = Vec<SoldLine>> {
    prop::collection::vec((1..50_u32, 100..1_000_000_u32, any::<bool>()), 1..4)
}
