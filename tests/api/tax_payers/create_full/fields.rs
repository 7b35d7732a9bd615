//! The rules of fields, as a caller meets them. The form's own tests hold every rule; here one document with every
//! part and one with several faults go over the wire.

use serde_json::json;
use testkit::documents;
use testkit::edit::{exact, with, without};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

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
        (
            "invoice_delivery_period",
            json!({ "start_date": "2026-01-01", "end_date": "2026-01-31" }),
        ),
        ("billing_reference", json!([reference])),
        ("dispatch_document_reference", reference.clone()),
        ("receipt_document_reference", reference.clone()),
        ("originator_document_reference", reference.clone()),
        ("contract_document_reference", reference.clone()),
        (
            "additional_document_reference",
            json!([reference, reference]),
        ),
        ("actual_delivery_date", json!("2026-01-10")),
        (
            "payment_means",
            json!([{ "payment_means_code": "30", "payment_due_date": "2026-02-15" }]),
        ),
        ("payment_terms_note", json!("30 days")),
        (
            "allowance_charge",
            json!([{ "charge_indicator": true, "amount": 5 }]),
        ),
        ("legal_monetary_total.payable_amount", json!(1_080)),
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
    for path in [
        "note",
        "tax_total",
        "allowance_charge",
        "buyer_reference",
        "issue_time",
    ] {
        let other = taxpayer
            .create_full(&without(&body, path))
            .await
            .expect_status(200);
        assert_eq!(other.header("x-duplicate"), "different", "{path} is kept");
    }
}

#[on_sqlite]
async fn all_faults_are_reported_at_once_with_the_irn_of_another(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(
        &documents::full_invoice(&taxpayer),
        "issue_date",
        json!("2099-01-01"),
    );
    let body = with(
        &without(&body, "due_date"),
        "irn",
        json!("INV1-00000000-20260115"),
    );
    let body = with(&body, "accounting_customer_party.email", json!("plain"));
    let answer = taxpayer.create_full(&body).await;
    answer.expect_faults(&["accounting_customer_party.email", "irn", "issue_date"]);
}
