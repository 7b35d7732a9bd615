//! What each field has to be. The form's own tests hold every rule; here each kind of refusal goes over the wire.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::{exact, with, without};

use crate::support::world::World;

/// Every field of the body that has to be there.
const REQUIRED: [&str; 36] = [
    "invoice_no",
    "invoice_category",
    "irn",
    "issue_date",
    "invoice_type_code",
    "document_currency_code",
    "accounting_customer_party",
    "accounting_customer_party.customer_no",
    "accounting_customer_party.party_name",
    "accounting_customer_party.email",
    "accounting_customer_party.tin",
    "accounting_customer_party.business_description",
    "accounting_customer_party.postal_address",
    "accounting_customer_party.postal_address.street_name",
    "accounting_customer_party.postal_address.city_name",
    "accounting_customer_party.postal_address.postal_zone",
    "accounting_customer_party.postal_address.country",
    "legal_monetary_total",
    "legal_monetary_total.line_extension_amount",
    "legal_monetary_total.tax_exclusive_amount",
    "legal_monetary_total.tax_inclusive_amount",
    "legal_monetary_total.payable_amount",
    "invoice_line",
    "invoice_line.0.item",
    "invoice_line.0.item.name",
    "invoice_line.0.item.description",
    "invoice_line.0.item.type",
    "invoice_line.0.price",
    "invoice_line.0.price.price_amount",
    "invoice_line.0.price.base_quantity",
    "invoice_line.0.price.price_unit",
    "invoice_line.0.invoiced_quantity",
    "invoice_line.0.line_extension_amount",
    "invoice_line.0.product_category",
    "invoice_line.0.tax_category",
    "invoice_line.0.total_tax",
];

/// Fields of free text, and how short and how long they may be.
const TEXTS: [(&str, usize, usize); 15] = [
    ("invoice_no", 1, 255),
    ("note", 1, 1_000),
    ("buyer_reference", 1, 255),
    ("payment_terms_note", 1, 1_000),
    ("accounting_customer_party.customer_no", 1, 255),
    ("accounting_customer_party.party_name", 1, 255),
    ("accounting_customer_party.tin", 1, 50),
    ("accounting_customer_party.business_description", 5, 500),
    ("accounting_customer_party.telephone", 6, 20),
    ("accounting_customer_party.postal_address.street_name", 1, 255),
    ("accounting_customer_party.postal_address.city_name", 1, 100),
    ("accounting_customer_party.postal_address.postal_zone", 1, 50),
    ("invoice_line.0.item.name", 1, 255),
    ("invoice_line.0.item.description", 1, 1_000),
    ("invoice_line.0.item.sellers_item_identification", 1, 255),
];

#[each_database]
async fn each_required_field_is_asked_for(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in REQUIRED {
        let body = documents::full_invoice(&taxpayer);
        taxpayer.create_full(&without(&body, path)).await.expect_faults(&[path]);
        taxpayer.create_full(&with(&body, path, json!(null))).await.expect_faults(&[path]);
    }
}

#[each_database]
async fn a_text_has_its_limits(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (path, min, max) in TEXTS {
        let body = documents::full_invoice(&taxpayer);
        let text = |length: usize| with(&body, path, json!("1".repeat(length)));
        taxpayer.create_full(&text(max + 1)).await.expect_faults(&[path]);
        if min > 1 {
            taxpayer.create_full(&text(min - 1)).await.expect_faults(&[path]);
        }
        for length in [min, max] {
            let body = documents::full_invoice(&taxpayer);
            let body = with(&body, path, json!("1".repeat(length)));
            let answer = taxpayer.create_full(&body).await;
            assert!([200, 201].contains(&answer.status), "{path}: {}", answer.text);
        }
        taxpayer.create_full(&with(&body, path, json!("abc\u{0}defg"))).await.expect_faults(&[path]);
    }
}

#[each_database]
async fn a_value_outside_what_its_field_takes_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (path, values) in odd_values() {
        for value in values {
            let body = with(&documents::full_invoice(&taxpayer), path, value.clone());
            let answer = taxpayer.create_full(&body).await;
            assert_eq!(answer.faulty_paths(), [path], "{value}: {}", answer.text);
            answer.expect_faults(&[path]);
        }
    }
}

/// Values that are not allowed, whether of the right JSON type or not.
fn odd_values() -> Vec<(&'static str, Vec<Value>)> {
    let texts = |all: &[&str]| all.iter().map(|text| json!(text)).collect::<Vec<_>>();
    let numbers = |all: &[&str]| all.iter().map(|digits| exact(digits)).collect::<Vec<_>>();
    vec![
        ("invoice_category", texts(&["Blank", "B2X"])),
        ("issue_date", texts(&["15-01-2026", "2026-02-30", "2026-01-15T00:00:00Z"])),
        ("due_date", texts(&["2026-01-14", "soon"])),
        ("issue_time", texts(&["25:00:00", "10:00", "10:00:00Z"])),
        ("invoice_type_code", texts(&["999", "Commercial"])),
        ("payment_status", texts(&["REJECTED", "PARTIAL", "approved"])),
        ("tax_point_date", vec![json!("2026-1-1"), json!(20_260_101)]),
        ("document_currency_code", texts(&["NG", "QQQ"])),
        ("tax_currency_code", texts(&["NAIRA", "QQQ"])),
        ("accounting_cost", vec![json!("0"), json!(true)]),
        ("accounting_customer_party.email", texts(&["plain", "a@b"])),
        ("accounting_customer_party.telephone", texts(&["12345", "0803 CALL ME", "080+3000000"])),
        ("accounting_customer_party.postal_address.country", texts(&["NGA", "N", "ZZ"])),
        ("legal_monetary_total.payable_amount", vec![json!(-1), json!("1075")]),
        ("invoice_line", vec![json!([]), json!({})]),
        ("invoice_line.0.item.type", texts(&["GOODS"])),
        ("invoice_line.0.price.price_amount", numbers(&["-0.01"])),
        ("invoice_line.0.price.base_quantity", numbers(&["0", "0.009"])),
        ("invoice_line.0.price.price_unit", texts(&["EACH", "QQQ"])),
        ("invoice_line.0.invoiced_quantity", numbers(&["0", "0.009"])),
        ("invoice_line.0.line_extension_amount", numbers(&["0", "-1"])),
        ("invoice_line.0.product_category", texts(&["8471", "84713.0", "9999.99"])),
        ("invoice_line.0.service_category", texts(&["6201"])),
        ("invoice_line.0.hsn_code", texts(&["8471"])),
        ("invoice_line.0.isic_code", texts(&["6201"])),
        ("invoice_line.0.tax_category", texts(&["VAT"])),
        ("invoice_line.0.total_tax", numbers(&["-0.01"])),
        ("invoice_line.0.discount_rate", numbers(&["-0.01", "100.01"])),
        ("invoice_line.0.discount_amount", numbers(&["-0.01"])),
        ("invoice_line.0.fee_rate", numbers(&["-0.01", "100.01"])),
        ("invoice_line.0.fee_amount", numbers(&["-0.01"])),
        ("invoice_delivery_period", vec![json!([])]),
        ("billing_reference", vec![json!({})]),
        ("dispatch_document_reference", vec![json!([])]),
        ("receipt_document_reference", vec![json!("x")]),
        ("originator_document_reference", vec![json!(7)]),
        ("contract_document_reference", vec![json!(true)]),
        ("additional_document_reference", vec![json!({})]),
        ("actual_delivery_date", texts(&["2026-02-30"])),
        ("payment_means", vec![json!({})]),
        ("allowance_charge", vec![json!("x")]),
        ("tax_total", vec![json!({})]),
    ]
}

#[each_database]
async fn every_optional_part_is_taken(world: &World) {
    let taxpayer = world.taxpayer().await;
    let reference = json!({ "irn": "INV0-AAAAAAAA-20260101", "issue_date": "2026-01-01" });
    let tax = json!({
        "tax_amount": 75,
        "tax_subtotal": [{
            "taxable_amount": 1000, "tax_amount": 75,
            "tax_category": { "id": "STANDARD_VAT", "percent": exact("7.5") },
        }],
    });
    let mut body = documents::full_invoice(&taxpayer);
    for (path, value) in [
        ("issue_time", json!("10:30:00")),
        ("payment_status", json!("PENDING")),
        ("note", json!("several\nlines")),
        ("tax_point_date", json!("2026-01-16")),
        ("tax_currency_code", json!("USD")),
        ("accounting_cost", exact("12.50")),
        ("buyer_reference", json!("PO-7")),
        ("invoice_delivery_period", json!({ "start_date": "2026-01-01", "end_date": "2026-01-31" })),
        ("billing_reference", json!([reference])),
        ("dispatch_document_reference", reference.clone()),
        ("receipt_document_reference", reference.clone()),
        ("originator_document_reference", reference.clone()),
        ("contract_document_reference", reference.clone()),
        ("additional_document_reference", json!([reference, reference])),
        ("actual_delivery_date", json!("2026-01-10")),
        ("payment_means", json!([{ "payment_means_code": "30", "payment_due_date": "2026-02-15" }])),
        ("payment_terms_note", json!("30 days")),
        ("allowance_charge", json!([{ "charge_indicator": true, "amount": 5 }])),
        ("tax_total", json!([tax])),
        ("invoice_line.0.discount_rate", json!(0)),
        ("invoice_line.0.discount_amount", json!(0)),
        ("invoice_line.0.fee_rate", exact("2.50")),
        ("invoice_line.0.fee_amount", json!(3)),
    ] {
        body = with(&body, path, value);
    }
    let answer = taxpayer.create_full(&body).await.expect_status(201);
    assert_eq!(answer.warnings(), "");
    let again = taxpayer.create_full(&body).await.expect_status(200);
    assert_eq!(again.header("x-duplicate"), "identical");
    for path in ["note", "tax_total", "allowance_charge", "buyer_reference", "issue_time"] {
        let other = taxpayer.create_full(&without(&body, path)).await.expect_status(200);
        assert_eq!(other.header("x-duplicate"), "different", "{path} is kept");
    }
}

#[each_database]
async fn a_consumer_needs_no_tin_and_no_description(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut body = documents::full_invoice(&taxpayer);
    for name in ["tin", "business_description"] {
        body = without(&body, &format!("accounting_customer_party.{name}"));
    }
    let paths = ["accounting_customer_party.business_description", "accounting_customer_party.tin"];
    for category in ["B2B", "B2G"] {
        let body = with(&body, "invoice_category", json!(category));
        taxpayer.create_full(&body).await.expect_faults(&paths);
    }
    let invoice = taxpayer.full(&with(&body, "invoice_category", json!("B2C"))).await;
    assert_eq!(invoice["customer"]["tin"], json!(null));
}

#[each_database]
async fn what_nobody_asks_for_is_named_in_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(&documents::full_invoice(&taxpayer), "invoice_line.0.item.colour", json!("red"));
    let answer = taxpayer.create_full(&body).await.expect_status(201);
    assert!(answer.warnings().contains("invoice_line.0.item.colour"), "{}", answer.warnings());
}

#[each_database]
async fn all_faults_are_reported_at_once_with_the_irn_of_another(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(&documents::full_invoice(&taxpayer), "issue_date", json!("2099-01-01"));
    let body = with(&without(&body, "due_date"), "irn", json!("INV1-00000000-20260115"));
    let body = with(&body, "accounting_customer_party.email", json!("plain"));
    let answer = taxpayer.create_full(&body).await;
    answer.expect_faults(&["accounting_customer_party.email", "irn", "issue_date"]);
}
