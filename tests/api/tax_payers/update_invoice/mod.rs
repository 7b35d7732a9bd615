//! PUT /v1/tax-payers/invoices/update.

mod customers;
mod fields;
mod items;
mod originals;
mod payments;
mod states;
mod submissions;

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::{with, without};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn an_update_replaces_customer_lines_and_details_and_is_one_event(world: &World) {
    let taxpayer = world.taxpayer().await;
    let before = taxpayer.invoice(&documents::invoice()).await;
    let before = taxpayer
        .set_status(&before, "approved")
        .await
        .expect_status(200)
        .data()
        .clone();
    let customer = json!({ "no": "C-900", "tin": "99999999-0001", "name": "Other Stores Ltd" });
    let mut body = with(&documents::update(&before), "invoice_type", json!("384"));
    for (name, value) in customer.as_object().unwrap() {
        body = with(&body, &format!("customer.{name}"), value.clone());
    }
    let body = with(
        &with(&body, "invoice_category", json!("b2g")),
        "note",
        json!("As agreed"),
    );
    let answer = taxpayer.update(&body).await.expect_status(200);
    let warning = "the authority wants the original_invoice_reference of a credit or debit note when it is submitted";
    assert_eq!(
        (answer.message(), answer.warnings()),
        ("Invoice updated successfully", warning.to_owned())
    );
    let after = answer.data();
    assert_eq!(*after, taxpayer.reread(&before).await);
    let mut expected = before.clone();
    for (name, value) in [
        ("invoice_category", json!("B2G")),
        ("invoice_type", json!("384")),
        ("due_date", json!("2026-03-15")),
        ("is_edited", json!(true)),
        ("edited_at", after["edited_at"].clone()),
        ("updated_at", after["updated_at"].clone()),
        (
            "customer",
            json!({
                "external_customer_no": "C-900", "name": "Other Stores Ltd", "tin": "99999999-0001",
                "email": "buyer@retail.example",
            }),
        ),
        (
            "invoice_lines",
            json!([{
                "item_name": "Monitor", "item_no": "MON-1", "item_type": "product", "unit_price": 200,
                "quantity": 1, "tax_category": "STANDARD_VAT", "product_category": "8528.52",
                "service_category": null,
            }]),
        ),
    ] {
        expected[name] = value;
    }
    assert_eq!(*after, expected);
    let edited_at = after["edited_at"].as_str().unwrap();
    assert!(
        jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", edited_at).is_ok(),
        "{edited_at}"
    );
    let names = taxpayer.invoice_event_names().await;
    assert_eq!(
        names,
        [
            "invoice.created",
            "invoice.status-updated",
            "invoice.updated"
        ]
    );
    let data = &taxpayer.invoice_events().await[2]["data"];
    assert_eq!((&data["invoice"], &data["irn"]), (after, &before["irn"]));
    assert_eq!(
        (&data["previous_status"], &data["status"]),
        (&json!("approved"), &json!("approved"))
    );
}

#[each_database]
async fn every_name_of_an_invoice_finds_it(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for (kind, text) in [
        ("PORTAL_ID", json!(invoice["id"].to_string())),
        ("IRN", invoice["irn"].clone()),
        (
            "external_invoice_no",
            invoice["external_invoice_no"].clone(),
        ),
        ("INTERNAL_INVOICE_NO", invoice["invoice_no"].clone()),
    ] {
        let body = with(&documents::update(&invoice), "unique_no_type", json!(kind));
        let answer = taxpayer
            .update(&with(&body, "unique_no", text))
            .await
            .expect_status(200);
        assert_eq!(answer.data()["id"], invoice["id"]);
    }
}

#[each_database]
async fn what_names_no_invoice_of_the_account_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let invoice = other.invoice(&documents::invoice()).await;
    let update = documents::update(&invoice);
    let named = |kind: &str, text: Value| {
        with(
            &with(&update, "unique_no_type", json!(kind)),
            "unique_no",
            text,
        )
    };
    for body in [
        update.clone(),
        named("PORTAL_ID", json!(invoice["id"].to_string())),
        named("PORTAL_ID", json!("99999999999999999999")),
        named("PORTAL_ID", json!("abc")),
        named("INTERNAL_INVOICE_NO", invoice["invoice_no"].clone()),
        named("IRN", json!("no irn")),
    ] {
        let answer = taxpayer
            .update(&body)
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
        assert_eq!(answer.message(), "Invoice not found");
    }
    assert_eq!(other.reread(&invoice).await, invoice);
}

#[on_sqlite]
async fn an_account_that_may_not_create_may_still_correct(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    world.set_subscription(taxpayer.id, einvoice::internals::Subscription::Inactive);
    taxpayer
        .update(&documents::update(&invoice))
        .await
        .expect_status(200);
}

#[each_database]
async fn a_full_invoice_is_updated_like_any_other(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = without(&documents::full_invoice(&taxpayer), "due_date");
    let invoice = taxpayer
        .new_full_invoice(&with(&body, "note", json!("first")))
        .await;
    let after = taxpayer
        .update(&documents::update(&invoice))
        .await
        .expect_status(200);
    assert_eq!(
        (&after.data()["due_date"], &after.data()["currency"]),
        (&json!("2026-03-15"), &json!("NGN"))
    );
    assert_eq!(
        taxpayer.invoice_with_ledger(&invoice).await["ledger"]["payable_amount"].to_string(),
        "215.00"
    );
}

#[on_sqlite]
async fn a_due_date_before_the_invoices_own_is_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let answer = taxpayer
        .update(&with(
            &documents::update(&invoice),
            "due_date",
            json!("2026-01-14"),
        ))
        .await;
    assert!(answer.expect_status(200).warnings().contains("due_date"));
}
