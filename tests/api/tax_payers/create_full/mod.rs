//! POST /v1/tax-payers/invoices/full.

mod calculate;
mod fields;
mod gates;
mod hostile;
mod irn;
mod payments;
mod twins;

use serde_json::json;
use testkit::answer::stable_text;
use testkit::documents;
use testkit::each_database;
use testkit::edit::{with, without};

use crate::support::world::World;

#[each_database]
async fn a_full_invoice_is_a_pending_draft_and_one_event(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    let answer = taxpayer.create_full(&body).await.expect_status(201);
    assert_eq!(
        (&answer.data()["irn"], answer.warnings()),
        (&body["irn"], String::new())
    );
    assert_eq!(*answer.data(), taxpayer.reread(answer.data()).await);
    assert_eq!(taxpayer.invoice_event_names().await, ["invoice.created"]);
    let event = taxpayer.invoice_events().await.remove(0);
    assert_eq!(
        (&event["irn"], &event["data"]["invoice"]),
        (&body["irn"], answer.data())
    );
    assert_eq!(
        (&event["data"]["previous_status"], &event["data"]["status"]),
        (&json!(null), &json!("draft"))
    );
    let unsteady = [
        "id",
        "irn",
        "invoice_no",
        "external_invoice_no",
        "created_at",
        "updated_at",
    ];
    let unsteady = unsteady.map(|name| format!("/data/{name}"));
    let mut unsteady: Vec<_> = unsteady.iter().map(String::as_str).collect();
    unsteady.push("/data/authority_data/qr_code");
    insta::assert_snapshot!(stable_text(&answer.body, &unsteady), @r#"
            {
              "data": {
                "authority_data": {
                  "qr_code": "…",
                  "status": "PENDING"
                },
                "created_at": "…",
                "currency": "NGN",
                "customer": {
                  "email": "buyer@retail.example",
                  "external_customer_no": "C-001",
                  "name": "Retail Stores Ltd",
                  "tin": "87654321-0001"
                },
                "due_date": "2026-02-15",
                "edited_at": null,
                "external_invoice_no": "…",
                "id": "…",
                "invoice_category": "B2B",
                "invoice_date": "2026-01-15",
                "invoice_lines": [
                  {
                    "item_name": "Laptop",
                    "item_no": "LAP-1",
                    "item_type": "product",
                    "product_category": "8471.30",
                    "quantity": 2,
                    "service_category": null,
                    "tax_category": "STANDARD_VAT",
                    "unit_price": 500
                  }
                ],
                "invoice_no": "…",
                "invoice_type": "381",
                "irn": "…",
                "is_edited": false,
                "payment_status": "PENDING",
                "status": "draft",
                "updated_at": "…"
              },
              "message": "Invoice created successfully",
              "success": true
            }
        "#);
}

#[each_database]
async fn what_a_consumers_invoice_of_a_service_leaves_out_is_null(world: &World) {
    let taxpayer = world.taxpayer().await;
    let customer = "accounting_customer_party";
    let item = "invoice_line.0.item";
    let mut body = with(
        &documents::full_invoice(&taxpayer),
        "invoice_category",
        json!("B2C"),
    );
    for path in [
        "due_date",
        &format!("{customer}.tin"),
        &format!("{customer}.business_description"),
        "invoice_line.0.product_category",
        "invoice_line.0.hsn_code",
        &format!("{item}.sellers_item_identification"),
    ] {
        body = without(&body, path);
    }
    let body = with(&body, &format!("{item}.type"), json!("service"));
    let body = with(&body, "invoice_line.0.service_category", json!("6201"));
    let body = with(&body, "invoice_line.0.isic_code", json!("6201"));
    let invoice = taxpayer.new_full_invoice(&body).await;
    assert_eq!(
        (&invoice["due_date"], &invoice["customer"]["tin"]),
        (&json!(null), &json!(null))
    );
    let line = &invoice["invoice_lines"][0];
    assert_eq!(
        (&line["item_type"], &line["service_category"]),
        (&json!("service"), &json!("6201"))
    );
    assert_eq!(
        (&line["product_category"], line.get("isic_code")),
        (&json!(null), None)
    );
    assert_eq!(
        line["item_no"],
        json!("Laptop"),
        "an item without a number is known by its name"
    );
    assert_eq!(
        taxpayer.invoice_with_ledger(&invoice).await["lines"][0]["item_no"],
        json!(null),
        "as it was sent"
    );
}

#[each_database]
async fn a_full_invoice_is_submitted_like_any_other(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer
        .new_full_invoice(&documents::full_invoice(&taxpayer))
        .await;
    let body = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&body).await.expect_status(200);
    assert_eq!(
        taxpayer.reread(&invoice).await["status"],
        json!("submitted")
    );
}
