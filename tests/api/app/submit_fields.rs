//! POST /v1/app/invoices/submit: what each field has to be.

use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::each_database;
use testkit::edit::{exact, with, without};

use crate::support::world::World;

/// Every field that has to be there in a business invoice.
const REQUIRED: [&str; 37] = [
    "invoice_reference",
    "business_id",
    "irn",
    "issue_date",
    "invoice_type_code",
    "document_currency_code",
    "invoice_category",
    "accounting_supplier_party",
    "accounting_supplier_party.party_name",
    "accounting_supplier_party.tin",
    "accounting_supplier_party.email",
    "accounting_supplier_party.postal_address",
    "accounting_supplier_party.postal_address.street_name",
    "accounting_supplier_party.postal_address.city_name",
    "accounting_supplier_party.postal_address.postal_zone",
    "accounting_supplier_party.postal_address.country",
    "accounting_customer_party",
    "accounting_customer_party.party_name",
    "accounting_customer_party.tin",
    "accounting_customer_party.email",
    "accounting_customer_party.postal_address",
    "legal_monetary_total",
    "legal_monetary_total.line_extension_amount",
    "legal_monetary_total.tax_exclusive_amount",
    "legal_monetary_total.tax_inclusive_amount",
    "legal_monetary_total.payable_amount",
    "invoice_line",
    "invoice_line.0.hsn_code",
    "invoice_line.0.product_category",
    "invoice_line.0.invoiced_quantity",
    "invoice_line.0.line_extension_amount",
    "invoice_line.0.item",
    "invoice_line.0.item.name",
    "invoice_line.0.item.description",
    "invoice_line.0.price.price_amount",
    "invoice_line.0.price.base_quantity",
    "invoice_line.0.price.price_unit",
];

#[each_database]
async fn each_required_field_is_asked_for(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    for path in REQUIRED {
        taxpayer.app().submit(&without(&body, path)).await.expect_faults(&[path]);
        taxpayer.app().submit(&with(&body, path, json!(null))).await.expect_faults(&[path]);
    }
    assert!(world.authority.invoice(body["irn"].as_str().unwrap()).is_none(), "nothing was sent");
}

#[each_database]
async fn a_value_outside_what_its_field_takes_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    for (path, odd) in odd_values() {
        let answer = taxpayer.app().submit(&with(&body, path, odd.clone())).await;
        assert_eq!(answer.faulty_paths(), [path], "{odd}: {}", answer.text);
        answer.expect_faults(&[path]);
    }
    assert!(world.authority.invoice(body["irn"].as_str().unwrap()).is_none(), "nothing was sent");
}

fn odd_values() -> Vec<(&'static str, Value)> {
    vec![
        ("business_id", json!("not-a-uuid")),
        ("business_id", json!("99999999-9999-4999-8999-999999999999")),
        ("issue_date", json!("15/01/2026")),
        ("due_date", json!("2026-02-30")),
        ("issue_time", json!("25:00:00")),
        ("issue_time", json!("9:00")),
        ("tax_point_date", json!("soon")),
        ("invoice_type_code", json!("999999")),
        ("payment_status", json!("REJECTED")),
        ("payment_status", json!("PARTIAL")),
        ("document_currency_code", json!("QQQ")),
        ("document_currency_code", json!("NG")),
        ("tax_currency_code", json!("QQQ")),
        ("invoice_category", json!("Blank")),
        ("buyer_reference", json!("x".repeat(256))),
        ("note", json!("x".repeat(1_001))),
        ("payment_terms_note", json!("x".repeat(1_001))),
        ("accounting_cost", json!("12")),
        ("accounting_supplier_party.email", json!("plain")),
        ("accounting_supplier_party.telephone", json!("08010000000")),
        ("accounting_supplier_party.telephone", json!("+12345")),
        ("accounting_supplier_party.telephone", json!("+1234567890123456")),
        ("accounting_supplier_party.postal_address.country", json!("NGA")),
        ("accounting_customer_party.telephone", json!("+12 345 678")),
        ("legal_monetary_total.payable_amount", json!("1075")),
        ("legal_monetary_total.tax_exclusive_amount", exact("-1")),
        ("invoice_line", json!([])),
        ("invoice_line.0", json!("a line")),
        ("invoice_line.0.price.price_unit", json!("EACH")),
        ("invoice_line.0.price.price_unit", json!("QQQ")),
        ("invoice_line.0.discount_rate", exact("100.01")),
        ("invoice_line.0.fee_rate", exact("-0.01")),
        ("payment_means", json!({})),
        ("allowance_charge", json!("none")),
        ("billing_reference", json!("none")),
    ]
}

#[each_database]
async fn an_odd_irn_has_a_code_of_its_own(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, "INV1");
    for odd in ["INV1", "INV1-20260115", "INV1-XYZ-20260115", "INV1-94AD90FB-20261345", "-94AD90FB-20260115"]
    {
        let answer = taxpayer.app().submit(&with(&body, "irn", json!(odd))).await;
        let answer = answer.expect_refusal(422, "IRN_MALFORMED");
        assert_eq!(answer.faulty_paths(), ["irn"], "{odd}");
    }
    let other = with(&body, "irn", json!("INV1-FFFFFFFF-20260115"));
    let answer = taxpayer.app().submit(&other).await.expect_refusal(422, "IRN_SERVICE_ID_MISMATCH");
    assert_eq!(answer.faulty_paths(), ["irn"]);
}

#[each_database]
async fn the_service_id_of_an_irn_is_taken_in_any_case(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let lower = body["irn"]
        .as_str()
        .unwrap()
        .replace(&taxpayer.registration.service_id, &taxpayer.registration.service_id.to_lowercase());
    taxpayer.app().submit(&with(&body, "irn", json!(lower))).await.expect_status(200);
}

#[each_database]
async fn a_consumer_invoice_needs_no_customer(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let body = without(&body, "accounting_customer_party");
    for category in ["B2B", "B2G"] {
        let answer = taxpayer.app().submit(&with(&body, "invoice_category", json!(category))).await;
        answer.expect_faults(&["accounting_customer_party"]);
    }
    taxpayer.app().submit(&with(&body, "invoice_category", json!("B2C"))).await.expect_status(200);
}

#[each_database]
async fn what_is_optional_is_accepted_and_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut body = submission(&taxpayer, &documents::invoice_no());
    for (path, value) in [
        ("issue_time", json!("10:15:00")),
        ("payment_status", json!("PENDING")),
        ("tax_point_date", json!("2026-01-15")),
        ("tax_currency_code", json!("NGN")),
        ("accounting_cost", json!(12)),
        ("buyer_reference", json!("PO-77")),
        ("note", json!("x".repeat(1_000))),
        ("payment_terms_note", json!("30 days")),
        ("invoice_delivery_period", json!({ "start_date": "2026-01-01", "end_date": "2026-01-31" })),
        ("invoice_line.0.discount_rate", json!(0)),
        ("invoice_line.0.fee_amount", json!(0)),
    ] {
        body = with(&body, path, value);
    }
    body = without(&body, "due_date");
    body = without(&body, "accounting_customer_party.telephone");
    taxpayer.app().submit(&body).await.expect_status(200);
}

#[each_database]
async fn a_tax_total_that_is_left_out_is_derived(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    taxpayer.app().submit(&body).await.expect_status(200);
    let free = with(
        &submission(&taxpayer, &documents::invoice_no()),
        "legal_monetary_total.tax_inclusive_amount",
        json!(1000),
    );
    let free = with(&free, "legal_monetary_total.payable_amount", json!(1000));
    taxpayer.app().submit(&free).await.expect_status(200);
}

#[each_database]
async fn service_codes_may_stand_in_place_of_product_codes(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let body = without(&without(&body, "invoice_line.0.hsn_code"), "invoice_line.0.product_category");
    let half = with(&body, "invoice_line.0.isic_code", json!("6201"));
    taxpayer.app().submit(&half).await.expect_faults(&["invoice_line.0.service_category"]);
    let whole = with(&half, "invoice_line.0.service_category", json!("6201"));
    taxpayer.app().submit(&whole).await.expect_status(200);
}

#[each_database]
async fn all_faults_are_reported_at_once_and_unknown_fields_in_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let odd = with(&body, "accounting_supplier_party.email", json!("plain"));
    let odd = with(&odd, "invoice_line.0.price.price_unit", json!("EACH"));
    let odd = without(&odd, "issue_date");
    let paths = ["accounting_supplier_party.email", "invoice_line.0.price.price_unit", "issue_date"];
    let answer = taxpayer.app().submit(&odd).await.expect_faults(&paths);
    assert!(answer.message().ends_with("(and 2 more errors)"), "{}", answer.message());
    let strange = with(&body, "colour", json!("red"));
    let answer = taxpayer.app().submit(&strange).await.expect_status(200);
    assert!(answer.warnings().contains("colour"), "{}", answer.warnings());
}

#[each_database]
async fn a_supplier_that_is_not_the_account_is_refused_on_its_tin(world: &World) {
    const TIN: &str = "accounting_supplier_party.tin";
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    for stranger in [other.registration.tin.as_str(), "23456789-0001", "-"] {
        let odd = with(&body, TIN, json!(stranger));
        for caller in [taxpayer.app(), world.integrator().app()] {
            let answer = caller.submit(&odd).await.expect_faults(&[TIN]);
            assert!(answer.message().contains("the tax number of this taxpayer"), "{}", answer.message());
        }
        let document = with(&documents::validation(&taxpayer, "INV1"), TIN, json!(stranger));
        let answer = taxpayer.app().validate(&document).await.expect_status(200);
        assert!(answer.warnings().contains("Submit refuses it"), "{}", answer.warnings());
    }
    assert!(world.authority.invoice(body["irn"].as_str().unwrap()).is_none(), "nobody was asked");
    let respelled = with(&body, TIN, json!(taxpayer.registration.tin.replace('-', "\u{2013} ")));
    taxpayer.app().submit(&respelled).await.expect_status(200);
}

#[each_database]
async fn of_a_self_billed_document_the_customer_is_the_account(world: &World) {
    const TIN: &str = "accounting_customer_party.tin";
    let taxpayer = world.taxpayer().await;
    for code in ["385", "393", "394"] {
        let body = submission(&taxpayer, &documents::invoice_no());
        let body = with(&body, "invoice_type_code", json!(code));
        taxpayer.app().submit(&body).await.expect_faults(&[TIN]);
        let nobody = without(&with(&body, "invoice_category", json!("B2C")), "accounting_customer_party");
        taxpayer.app().submit(&nobody).await.expect_faults(&["accounting_customer_party"]);
        let body = with(&body, TIN, json!(taxpayer.registration.tin));
        let body = with(&body, "accounting_supplier_party.tin", json!("87654321-0001"));
        taxpayer.app().submit(&body).await.expect_status(200);
    }
}
