//! POST /v1/tax-payers/invoices.

mod amounts;
mod fields;
mod gates;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde_json::json;
use testkit::answer::stable_text;
use testkit::documents;
use testkit::edit::{with, without};
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn a_new_invoice_is_a_pending_draft(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice();
    let answer = taxpayer.create_invoice(&body).await.expect_status(201);
    let irn = documents::irn(&taxpayer, body["invoice_no"].as_str().unwrap());
    assert_eq!(answer.data()["irn"], json!(irn));
    assert_eq!(answer.data()["invoice_no"], body["invoice_no"]);
    assert_eq!(answer.data()["external_invoice_no"], body["invoice_no"]);
    for stamp in ["created_at", "updated_at"] {
        let stamp = answer.data()[stamp].as_str().unwrap();
        assert_eq!(stamp.len(), "2026-01-15 10:00:00".len(), "{stamp}");
        assert!(
            jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", stamp).is_ok(),
            "{stamp}"
        );
    }
    let qr_code = STANDARD
        .decode(answer.data()["authority_data"]["qr_code"].as_str().unwrap())
        .unwrap();
    assert!(!qr_code.is_empty());
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

#[on_sqlite]
async fn what_is_sent_in_another_way_reads_back_in_the_canonical_one(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(&documents::invoice(), "invoice_no", json!("INV-2026-7"));
    let body = with(
        &with(&body, "invoice_category", json!("b2g")),
        "invoice_type",
        json!("Commercial"),
    );
    let body = with(&body, "invoice_lines.0.item_type", json!("Service"));
    let body = without(&body, "invoice_lines.0.product_category");
    let body = with(&body, "invoice_lines.0.service_category", json!("6201"));
    let invoice = taxpayer.invoice(&body).await;
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
    assert_eq!(
        invoice["irn"],
        json!(documents::irn(&taxpayer, "INV-2026-7")),
        "hyphens stay"
    );
    assert_eq!(invoice["invoice_category"], json!("B2G"));
    assert_eq!(
        invoice["invoice_type"],
        json!("Commercial"),
        "the text where there is one, else the code"
    );
    let line = &invoice["invoice_lines"][0];
    assert_eq!(line["item_type"], json!("service"));
    assert_eq!(
        (&line["service_category"], &line["product_category"]),
        (&json!("6201"), &json!(null))
    );
}

#[each_database]
async fn an_invoice_number_that_exists_is_answered_with_the_existing_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice();
    let first = taxpayer.invoice(&body).await;
    let again = taxpayer.create_invoice(&body).await.expect_status(200);
    assert_eq!(again.body["success"], json!(true));
    assert_eq!(again.message(), "Invoice already exist");
    assert_eq!(
        (again.data(), again.header("x-duplicate")),
        (&first, "identical")
    );
    let other = with(&body, "invoice_lines.0.quantity", json!(3));
    let other = taxpayer.create_invoice(&other).await.expect_status(200);
    assert_eq!(other.message(), "Invoice already exist");
    assert_eq!(
        (other.data(), other.header("x-duplicate")),
        (&first, "different")
    );
    assert_eq!(
        taxpayer
            .event_names()
            .await
            .iter()
            .filter(|name| *name == "invoice.created")
            .count(),
        1
    );
}

#[each_database]
async fn an_invoice_number_is_unique_per_account_only(world: &World) {
    let body = documents::invoice();
    let mine = world.taxpayer().await.invoice(&body).await;
    let theirs = world.taxpayer().await.invoice(&body).await;
    assert_ne!(mine["id"], theirs["id"]);
    assert_ne!(mine["irn"], theirs["irn"]);
}

#[each_database]
async fn of_64_concurrent_creates_of_one_number_one_is_new(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice();
    let answers = join_all((0..64).map(|_| taxpayer.create_invoice(&body))).await;
    let count = |status| {
        answers
            .iter()
            .filter(|answer| answer.status == status)
            .count()
    };
    assert_eq!((count(201), count(200)), (1, 63));
    let first = &answers[0].data()["id"];
    assert!(
        answers
            .iter()
            .all(|answer| answer.data()["id"] == *first && first.is_i64())
    );
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(1));
}

#[on_sqlite]
async fn what_is_odd_but_accepted_is_named_in_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let create = async |body| {
        taxpayer
            .create_invoice(&body)
            .await
            .expect_status(201)
            .warnings()
    };
    assert_eq!(create(documents::invoice()).await, "");
    assert!(
        create(with(&documents::invoice(), "due_date", json!("2026-01-14")))
            .await
            .contains("due_date")
    );
    assert!(
        create(with(&documents::invoice(), "colour", json!("red")))
            .await
            .contains("colour")
    );
    let nested = with(&documents::invoice(), "customer.nickname", json!("Al"));
    assert!(create(nested).await.contains("nickname"));
    let in_line = with(
        &documents::invoice(),
        "invoice_lines.0.weight",
        json!([1, { "a": null }]),
    );
    assert!(create(in_line).await.contains("weight"));
    for kind in [
        "IRN",
        "EXTERNAL_INVOICE_NO",
        "INTERNAL_INVOICE_NO",
        "PORTAL_ID",
    ] {
        let warning = create(credit_note(kind, "no-such-invoice")).await;
        assert!(
            warning.contains("original_invoice_reference"),
            "{kind}: {warning}"
        );
    }
}

fn credit_note(kind: &str, original: &str) -> serde_json::Value {
    let body = with(&documents::invoice(), "invoice_type_code", json!("380"));
    let body = with(&body, "original_invoice_reference", json!(original));
    with(&body, "original_invoice_reference_type", json!(kind))
}

#[each_database]
async fn a_credit_note_for_an_invoice_of_the_account_needs_no_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let original = taxpayer.invoice(&documents::invoice()).await;
    let body = credit_note(
        "INTERNAL_INVOICE_NO",
        original["invoice_no"].as_str().unwrap(),
    );
    assert_eq!(
        taxpayer
            .create_invoice(&body)
            .await
            .expect_status(201)
            .warnings(),
        ""
    );
}

#[each_database]
async fn a_credit_note_over_more_than_is_left_is_stored_with_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let original = documents::invoice_with_price("100", "1");
    let original = taxpayer.invoice(&original).await;
    let number = original["invoice_no"].as_str().unwrap();
    let note = |amount: &str| {
        let body = documents::invoice_with_price(amount, "1");
        let body = with(&body, "invoice_type_code", json!("380"));
        let body = with(&body, "original_invoice_reference", json!(number));
        let kind = json!("INTERNAL_INVOICE_NO");
        with(&body, "original_invoice_reference_type", kind)
    };
    let told = |amount: &str, left: &str| {
        format!(
            "the credit note comes to NGN {amount}, but the other credit notes of the invoice {number}, signed or not, leave only NGN {left}"
        )
    };
    let first = note("70");
    for (body, warning) in [
        (&first, String::new()),
        (&note("31"), told("31.00", "30.00")),
    ] {
        let answer = taxpayer.create_invoice(body).await.expect_status(201);
        assert_eq!(answer.warnings(), warning);
    }
    let again = taxpayer.create_invoice(&first).await.expect_status(200);
    assert_eq!(again.warnings(), told("70.00", "69.00"));

    // In a batch, the credit notes before an item count, too.
    let original = documents::invoice_with_price("100", "1");
    let original = taxpayer.invoice(&original).await;
    let number = original["invoice_no"].as_str().unwrap();
    let bodies =
        ["60", "50"].map(|amount| with(&note(amount), "original_invoice_reference", json!(number)));
    // The warning about the amount comes before all others of an item.
    let bodies = [bodies[0].clone(), with(&bodies[1], "colour", json!("red"))];
    let answer = taxpayer.create_batch(&bodies).await.expect_status(201);
    let counted = "1 of the credit notes come to more than is left of their invoices";
    assert!(answer.warnings().contains(counted), "{}", answer.warnings());
    let batch = taxpayer.created_batch(&answer).await;
    assert_eq!(batch["items"][0]["warnings"], json!([]));
    let warning = batch["items"][1]["warnings"][0].as_str().unwrap();
    let amounts = ["comes to NGN 50.00,", "leave only NGN 40.00"];
    let has_both = amounts.iter().all(|amount| warning.contains(amount));
    assert!(has_both, "{warning}");
}

/// The customer of an invoice for a customer of these numbers.
async fn customer(
    taxpayer: &Taxpayer,
    no: &str,
    tin: Option<&str>,
    name: &str,
) -> serde_json::Value {
    let body = with(&documents::invoice(), "invoice_category", json!("B2C"));
    let body = with(&body, "customer.no", json!(no));
    let body = with(&body, "customer.tin", json!(tin));
    taxpayer
        .invoice(&with(&body, "customer.name", json!(name)))
        .await["customer"]
        .clone()
}

#[each_database]
async fn a_customer_is_matched_by_number_and_else_by_tin_and_kept_as_stored(world: &World) {
    let taxpayer = world.taxpayer().await;
    customer(&taxpayer, "C-1", Some("11111111-0001"), "First Name").await;
    let by_number = customer(&taxpayer, "C-1", Some("22222222-0001"), "Second Name").await;
    let stored = json!({
        "external_customer_no": "C-1", "name": "First Name", "tin": "11111111-0001",
        "email": "buyer@retail.example",
    });
    assert_eq!(by_number, stored);
    let by_tin = customer(&taxpayer, "C-2", Some("11111111-0001"), "Second Name").await;
    assert_eq!(
        (&by_tin["name"], &by_tin["external_customer_no"]),
        (&json!("First Name"), &json!("C-2"))
    );
    let other = customer(&taxpayer, "C-3", Some("33333333-0001"), "Third Name").await;
    assert_eq!(other["name"], json!("Third Name"));
}

#[each_database]
async fn a_missing_tin_of_a_stored_customer_is_filled_in(world: &World) {
    let taxpayer = world.taxpayer().await;
    let first = customer(&taxpayer, "C-1", None, "First Name").await;
    assert_eq!(first["tin"], json!(null));
    let second = customer(&taxpayer, "C-1", Some("11111111-0001"), "First Name").await;
    assert_eq!(second["tin"], json!("11111111-0001"));
    let third = customer(&taxpayer, "C-1", None, "First Name").await;
    assert_eq!(third["tin"], json!("11111111-0001"));
}
