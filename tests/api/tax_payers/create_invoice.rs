//! POST /v1/tax-payers/invoices.

use serde_json::json;

use crate::support::answer::stable;
use crate::support::bodies::{self, with, without};
use crate::support::world::on_every_database;

/// Every field of the body that has to be there.
const REQUIRED: [&str; 23] = [
    "invoice_no",
    "invoice_category",
    "invoice_date",
    "due_date",
    "currency",
    "customer",
    "customer.no",
    "customer.name",
    "customer.email",
    "customer.tin",
    "customer.business_description",
    "customer.address_street_name",
    "customer.address_city",
    "customer.address_state",
    "customer.address_postal_code",
    "customer.address_country",
    "invoice_lines",
    "invoice_lines.0.item_name",
    "invoice_lines.0.item_no",
    "invoice_lines.0.item_type",
    "invoice_lines.0.unit_price",
    "invoice_lines.0.quantity",
    "invoice_lines.0.price_unit",
];

#[test]
fn a_new_invoice_is_a_pending_draft() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        let body = bodies::invoice();
        let answer = taxpayer.create_invoice(&body).await.expect_status(201);
        let irn = bodies::irn(&taxpayer, body["invoice_no"].as_str().unwrap());
        assert_eq!(answer.data()["irn"], json!(irn));
        assert_eq!(answer.data()["invoice_no"], body["invoice_no"]);
        assert_eq!(answer.data()["external_invoice_no"], body["invoice_no"]);
        let unsteady = ["id", "irn", "invoice_no", "external_invoice_no", "created_at", "updated_at"];
        let unsteady = unsteady.map(|name| format!("/data/{name}"));
        let mut unsteady: Vec<_> = unsteady.iter().map(String::as_str).collect();
        unsteady.push("/data/authority_data/qr_code");
        insta::assert_snapshot!(stable(&answer.body, &unsteady), @r#"
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
    });
}

#[test]
fn each_required_field_is_asked_for() {
    on_every_database(async |world| {
        let taxpayer = world.taxpayer().await;
        for path in REQUIRED {
            let missing = without(&bodies::invoice(), path);
            taxpayer.create_invoice(&missing).await.expect_faults(&[path]);
            for nothing in [json!(null), json!(""), json!("  ")] {
                let blank = with(&bodies::invoice(), path, nothing);
                taxpayer.create_invoice(&blank).await.expect_faults(&[path]);
            }
        }
    });
}
