//! POST /v1/app/invoices/validate.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, irn, number, submission, validation};
use testkit::each_database;
use testkit::edit::{exact, with, without};
use testkit::roles::{Taxpayer, VALIDATE};

use crate::support::world::World;

/// Every field of the table that has to be there.
const REQUIRED: [&str; 53] = [
    "business_id",
    "irn",
    "issue_date",
    "due_date",
    "invoice_type_code",
    "tax_point_date",
    "document_currency_code",
    "tax_currency_code",
    "accounting_supplier_party",
    "accounting_supplier_party.party_name",
    "accounting_supplier_party.tin",
    "accounting_supplier_party.email",
    "accounting_supplier_party.telephone",
    "accounting_supplier_party.postal_address",
    "accounting_supplier_party.postal_address.street_name",
    "accounting_supplier_party.postal_address.city_name",
    "accounting_supplier_party.postal_address.country",
    "accounting_customer_party.party_name",
    "accounting_customer_party.tin",
    "accounting_customer_party.email",
    "accounting_customer_party.postal_address",
    "accounting_customer_party.postal_address.street_name",
    "accounting_customer_party.postal_address.city_name",
    "accounting_customer_party.postal_address.country",
    "payment_means",
    "payment_means.0.payment_means_code",
    "payment_means.0.payment_due_date",
    "tax_total",
    "tax_total.0.tax_amount",
    "tax_total.0.tax_subtotal",
    "tax_total.0.tax_subtotal.0.taxable_amount",
    "tax_total.0.tax_subtotal.0.tax_amount",
    "tax_total.0.tax_subtotal.0.tax_category",
    "tax_total.0.tax_subtotal.0.tax_category.id",
    "tax_total.0.tax_subtotal.0.tax_category.percent",
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
    "invoice_line.0.price",
    "invoice_line.0.price.price_amount",
    "invoice_line.0.price.base_quantity",
    "invoice_line.0.price.price_unit",
    "accounting_supplier_party.tin",
    "issue_date",
];

/// Counts the calls of the authority about this invoice.
fn asked(world: &World, irn: &str) -> usize {
    let calls = world.authority.calls();
    calls.iter().filter(|call| call.irn.as_deref() == Some(irn)).count()
}

/// A payload and its IRN.
fn payload(taxpayer: &Taxpayer) -> (Value, String) {
    let no = documents::invoice_no();
    (validation(taxpayer, &no), irn(taxpayer, &no))
}

#[each_database]
async fn a_valid_payload_is_said_to_be_so_and_nothing_changes(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let events = taxpayer.events().await.len();
    let body = validation(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    let irn = invoice["irn"].as_str().unwrap();
    let answer = taxpayer.app().validate(&body).await.expect_status(200);
    assert_eq!(answer.message(), "Invoice validated successfully");
    assert_eq!(*answer.data(), json!({ "ok": true, "irn": irn, "warnings": [] }));
    let calls = world.authority.calls();
    let of_it: Vec<_> = calls.iter().filter(|call| call.irn.as_deref() == Some(irn)).collect();
    assert_eq!(of_it.len(), 1, "{of_it:?}");
    assert_eq!(of_it[0].operation, Some(Operation::Validate));
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
    assert_eq!(taxpayer.events().await.len(), events);
    taxpayer.app().run(irn).await.expect_refusal(404, "RUN_NOT_FOUND");
}

#[each_database]
async fn each_required_field_is_asked_for(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, irn) = payload(&taxpayer);
    for path in REQUIRED {
        taxpayer.app().validate(&without(&body, path)).await.expect_invalid(&[path]);
        taxpayer.app().validate(&with(&body, path, json!(null))).await.expect_invalid(&[path]);
    }
    assert_eq!(asked(world, &irn), 0, "nothing was sent");
}

#[each_database]
async fn what_is_optional_may_be_left_out(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    for path in ["accounting_customer_party", "accounting_customer_party.telephone"] {
        taxpayer.app().validate(&without(&body, path)).await.expect_status(200);
    }
    let zone = "accounting_customer_party.postal_address.postal_zone";
    taxpayer.app().validate(&without(&body, zone)).await.expect_status(200);
    taxpayer.app().validate(&with(&body, "order_reference", json!("PO-1"))).await.expect_status(200);
}

#[each_database]
async fn a_value_outside_what_its_field_takes_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, irn) = payload(&taxpayer);
    for (path, value) in odd_values() {
        taxpayer.app().validate(&with(&body, path, value)).await.expect_invalid(&[path]);
    }
    assert_eq!(asked(world, &irn), 0, "nothing was sent");
}

fn odd_values() -> Vec<(&'static str, Value)> {
    vec![
        ("business_id", json!("no uuid")),
        ("business_id", json!(7)),
        ("issue_date", json!("15/01/2026")),
        ("due_date", json!("2026-01-14")),
        ("due_date", json!("2026-02-30")),
        ("tax_point_date", json!("soon")),
        ("invoice_type_code", json!("999")),
        ("document_currency_code", json!("NG")),
        ("document_currency_code", json!("QQQ")),
        ("tax_currency_code", json!("NAIRA")),
        ("order_reference", json!({})),
        ("accounting_supplier_party", json!("Trading Ltd")),
        ("accounting_supplier_party.telephone", json!(2_348_010_000_000_i64)),
        ("accounting_supplier_party.postal_address.country", json!("NGA")),
        ("accounting_customer_party.postal_address.country", json!("N1")),
        ("payment_means", json!([])),
        ("payment_means.0.payment_means_code", json!("QQ")),
        ("payment_means.0.payment_due_date", json!("later")),
        ("tax_total", json!([])),
        ("tax_total.0.tax_amount", json!(74)),
        ("tax_total.0.tax_subtotal", json!([])),
        ("tax_total.0.tax_subtotal.0.tax_category.id", json!("NO_VAT_AT_ALL")),
        ("legal_monetary_total.payable_amount", json!("1075")),
        ("legal_monetary_total.tax_exclusive_amount", exact("-1")),
        ("invoice_line", json!([])),
        ("invoice_line.0.invoiced_quantity", json!(0)),
        ("invoice_line.0.price.price_unit", json!("EACH")),
        ("invoice_line.0.price.price_unit", json!("QQQ")),
        ("invoice_line.0.price.base_quantity", json!(0)),
        ("invoice_category", json!("Blank")),
        ("payment_status", json!("REJECTED")),
    ]
}

#[each_database]
async fn a_due_date_on_the_day_of_issue_is_taken(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    taxpayer.app().validate(&with(&body, "due_date", json!("2026-01-15"))).await.expect_status(200);
}

#[each_database]
async fn telephone_and_email_are_not_judged_by_their_format(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    for party in ["accounting_supplier_party", "accounting_customer_party"] {
        for (field, text) in [("telephone", "0801 000 0000, ask for Ada"), ("email", "the office")] {
            let path = format!("{party}.{field}");
            let answer = taxpayer.app().validate(&with(&body, &path, json!(text))).await;
            let answer = answer.expect_status(200);
            let warnings = answer.data()["warnings"].as_array().unwrap();
            assert_eq!(warnings.len(), 1, "{}", answer.text);
            assert!(warnings[0].as_str().unwrap().starts_with(&path), "{}", answer.text);
        }
    }
}

#[each_database]
async fn an_odd_irn_has_a_code_of_its_own_and_the_same_status(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    let answer = taxpayer.app().validate(&with(&body, "irn", json!("INV1"))).await;
    assert_eq!(answer.expect_refusal(400, "IRN_MALFORMED").faulty_paths(), ["irn"]);
    let answer = taxpayer.app().validate(&with(&body, "irn", json!(irn(&other, "INV1")))).await;
    assert_eq!(answer.expect_refusal(400, "IRN_SERVICE_ID_MISMATCH").faulty_paths(), ["irn"]);
    let hyphened = with(&body, "irn", json!(irn(&taxpayer, "INV-1")));
    taxpayer.app().validate(&hyphened).await.expect_invalid(&["irn"]);
    let business = with(&body, "business_id", json!(other.registration.business_id));
    taxpayer.app().validate(&business).await.expect_invalid(&["business_id"]);
}

#[each_database]
async fn all_faults_are_reported_at_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let paths = ["business_id", "due_date", "invoice_type_code", "irn", "issue_date"];
    let answer = taxpayer.app().validate(&json!({})).await.expect_refusal(400, "VALIDATION_FAILED");
    for path in paths {
        assert!(answer.faulty_paths().contains(&path), "{path}: {}", answer.text);
    }
    let text = world.integrator().send("POST", VALIDATE, &json!({})).await;
    text.expect_refusal(400, "VALIDATION_FAILED");
    let list = taxpayer.send("POST", VALIDATE, &json!([])).await;
    list.expect_refusal(400, "VALIDATION_FAILED");
    taxpayer.send_text("POST", VALIDATE, "{").await.expect_refusal(400, "MALFORMED_JSON");
}

#[each_database]
async fn sums_that_do_not_agree_are_named(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    let lines = with(&body, "invoice_line.0.line_extension_amount", exact("1000.02"));
    taxpayer.app().validate(&lines).await.expect_invalid(&["invoice_line"]);
    let within = with(&body, "invoice_line.0.line_extension_amount", exact("1000.01"));
    taxpayer.app().validate(&within).await.expect_status(200);
    let less = with(&body, "legal_monetary_total.tax_inclusive_amount", json!(999));
    taxpayer.app().validate(&less).await.expect_invalid(&["legal_monetary_total.tax_inclusive_amount"]);
    let credit = with(&body, "invoice_type_code", json!("380"));
    taxpayer.app().validate(&credit).await.expect_invalid(&["billing_reference"]);
    let named = json!([{ "irn": irn(&taxpayer, "OLD1"), "issue_date": "2026-01-01" }]);
    let credit = with(&credit, "billing_reference", named);
    taxpayer.app().validate(&credit).await.expect_status(200);
}

#[each_database]
async fn a_refusal_of_the_authority_is_passed_on_in_its_words_with_our_path(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = validation(&taxpayer, &format!("INV{}SBXREJECT", number()));
    let answer = taxpayer.app().validate(&body).await.expect_refusal(400, "AUTHORITY_REJECTED");
    assert_eq!(answer.faulty_paths(), ["invoice_line.0.hsn_code"]);
    assert!(answer.message().contains("must be a known code"), "{}", answer.text);
    let (body, _) = payload(&taxpayer);
    let untaxed = with(&body, "legal_monetary_total.tax_inclusive_amount", json!(1001));
    let answer = taxpayer.app().validate(&untaxed).await.expect_refusal(400, "AUTHORITY_REJECTED");
    assert_eq!(answer.faulty_paths(), ["legal_monetary_total.tax_inclusive_amount"]);
}

#[each_database(&[("AUTHORITY__TIMEOUT_S", "1")])]
async fn an_authority_that_is_out_is_said_to_be_so(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, _) = payload(&taxpayer);
    world.authority.add_fault(FaultOrder::new(FaultKind::Outage)).unwrap();
    let answer = taxpayer.app().validate(&body).await.expect_refusal(502, "AUTHORITY_UNAVAILABLE");
    assert_ne!(answer.header("retry-after"), "");
    world.authority.clear_faults();
    let mut late = FaultOrder::new(FaultKind::Latency).on(Operation::Validate);
    late.latency_ms = Some(3_000);
    world.authority.add_fault(late).unwrap();
    let answer = taxpayer.app().validate(&body).await.expect_refusal(504, "AUTHORITY_TIMEOUT");
    assert_ne!(answer.header("retry-after"), "");
    taxpayer.app().validate(&body).await.expect_status(200);
}

#[each_database]
async fn an_integrator_validates_for_its_taxpayers_and_no_others(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (body, irn) = payload(&taxpayer);
    let answer = world.integrator().app().validate(&body).await.expect_status(200);
    assert_eq!(answer.data()["irn"], json!(irn));
    let stranger = world.new_integrator().await.app();
    stranger.validate(&body).await.expect_refusal(404, "TAXPAYER_NOT_FOUND");
    let nameless = without(&body, "business_id");
    world.integrator().app().validate(&nameless).await.expect_invalid(&["business_id"]);
    let request = world.integrator().request("POST", VALIDATE).header("x-taxpayer-id", taxpayer.id);
    let answer = Answer::to(request.json(&json!({ "irn": "odd" }))).await;
    assert!(answer.expect_refusal(400, "VALIDATION_FAILED").faulty_paths().contains(&"irn"));
}

#[each_database]
async fn the_body_of_a_submission_may_be_validated_first(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let mut body = submission(&taxpayer, &no);
    let own = validation(&taxpayer, &no);
    for field in ["tax_point_date", "tax_currency_code", "payment_means", "tax_total"] {
        body[field] = own[field].clone();
    }
    body["payment_status"] = json!("pending");
    let answer = taxpayer.app().validate(&body).await.expect_status(200);
    assert_eq!(answer.data()["warnings"], json!([]), "{}", answer.text);
    taxpayer.app().submit(&body).await.expect_status(200);
    let strange = with(&body, "colour", json!("red"));
    let answer = taxpayer.app().validate(&strange).await.expect_status(200);
    assert_eq!(answer.data()["warnings"], json!(["unknown field: colour"]));
    assert!(answer.warnings().contains("colour"));
}
