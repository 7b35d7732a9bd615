//! Whose invoice it is after an update.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::with;
use testkit::roles::Taxpayer;

use crate::support::world::World;

/// Creates an invoice of a consumer with these numbers.
async fn invoice_of_consumer(
    taxpayer: &Taxpayer,
    no: &str,
    tin: Option<&str>,
    name: &str,
) -> Value {
    let body = with(&documents::invoice(), "invoice_category", json!("B2C"));
    let body = with(
        &with(&body, "customer.no", json!(no)),
        "customer.tin",
        json!(tin),
    );
    taxpayer
        .invoice(&with(&body, "customer.name", json!(name)))
        .await
}

/// The customer of an invoice after it was given to a consumer of these numbers.
async fn given_to(taxpayer: &Taxpayer, invoice: &Value, no: &str, tin: Option<&str>) -> Value {
    let body = with(
        &documents::update(invoice),
        "invoice_category",
        json!("B2C"),
    );
    let body = with(
        &with(&body, "customer.no", json!(no)),
        "customer.tin",
        json!(tin),
    );
    let body = with(&body, "customer.name", json!("Sent Name"));
    taxpayer.update(&body).await.expect_status(200).data()["customer"].clone()
}

#[each_database]
async fn a_customer_is_matched_by_number_before_tin_and_used_as_stored(world: &World) {
    let taxpayer = world.taxpayer().await;
    invoice_of_consumer(&taxpayer, "C-1", Some("11111111-0001"), "By Number").await;
    invoice_of_consumer(&taxpayer, "C-2", Some("22222222-0001"), "By Tin").await;
    let invoice = invoice_of_consumer(&taxpayer, "C-3", None, "First").await;
    let customer = given_to(&taxpayer, &invoice, "C-1", Some("22222222-0001")).await;
    assert_eq!(
        customer,
        json!({
            "external_customer_no": "C-1", "name": "By Number", "tin": "11111111-0001",
            "email": "buyer@retail.example",
        })
    );
    let customer = given_to(&taxpayer, &invoice, "C-9", Some("22222222-0001")).await;
    assert_eq!(
        (&customer["name"], &customer["external_customer_no"]),
        (&json!("By Tin"), &json!("C-9"))
    );
}

#[each_database]
async fn a_missing_tin_is_filled_in_and_nothing_else(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = invoice_of_consumer(&taxpayer, "C-1", None, "First").await;
    let customer = given_to(&taxpayer, &invoice, "C-1", Some("11111111-0001")).await;
    assert_eq!(
        (&customer["name"], &customer["tin"]),
        (&json!("First"), &json!("11111111-0001"))
    );
    let customer = given_to(&taxpayer, &invoice, "C-1", Some("22222222-0001")).await;
    assert_eq!(customer["tin"], json!("11111111-0001"));
    assert_eq!(
        invoice_of_consumer(&taxpayer, "C-1", None, "Again").await["customer"]["tin"],
        json!("11111111-0001")
    );
}

#[each_database]
async fn a_customer_that_nothing_matches_is_new(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = invoice_of_consumer(&taxpayer, "C-1", None, "First").await;
    assert_eq!(
        given_to(&taxpayer, &invoice, "C-2", None).await["name"],
        json!("Sent Name")
    );
    assert_eq!(
        invoice_of_consumer(&taxpayer, "C-2", None, "Third").await["customer"]["name"],
        json!("Sent Name")
    );
}

#[each_database]
async fn a_category_that_contradicts_the_stored_customer_is_a_conflict(world: &World) {
    let taxpayer = world.taxpayer().await;
    let business = taxpayer.invoice(&documents::invoice()).await;
    for category in ["B2C", "B2G"] {
        let body = with(
            &documents::update(&business),
            "invoice_category",
            json!(category),
        );
        let answer = taxpayer
            .update(&body)
            .await
            .expect_refusal(422, "CATEGORY_CONFLICT");
        assert_eq!(answer.faulty_paths(), ["invoice_category"]);
    }
    let by_tin = with(&documents::update(&business), "customer.no", json!("C-NEW"));
    let by_tin = with(&by_tin, "invoice_category", json!("B2G"));
    taxpayer
        .update(&by_tin)
        .await
        .expect_refusal(422, "CATEGORY_CONFLICT");
    assert_eq!(taxpayer.reread(&business).await, business);
    let other = with(&by_tin, "customer.tin", json!("55555555-0001"));
    assert_eq!(
        taxpayer.update(&other).await.expect_status(200).data()["invoice_category"],
        json!("B2G")
    );
    let back = with(&other, "invoice_category", json!("B2B"));
    taxpayer
        .update(&back)
        .await
        .expect_refusal(422, "CATEGORY_CONFLICT");
}

#[each_database]
async fn a_customer_of_another_account_is_nobody_here(world: &World) {
    let other = world.taxpayer().await;
    invoice_of_consumer(&other, "C-1", Some("11111111-0001"), "Theirs").await;
    let taxpayer = world.taxpayer().await;
    let invoice = invoice_of_consumer(&taxpayer, "C-2", None, "Ours").await;
    let customer = given_to(&taxpayer, &invoice, "C-1", Some("11111111-0001")).await;
    assert_eq!(customer["name"], json!("Sent Name"));
}
