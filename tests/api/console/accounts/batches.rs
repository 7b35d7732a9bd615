//! Batches: the list, and what is wrong with each refused invoice.

use serde_json::json;
use testkit::documents;
use testkit::each_database;
use testkit::edit::with;

use super::{Account, assert_shows};
use crate::support::world::World;

#[each_database]
async fn a_batch_says_what_became_of_each_invoice(world: &World) {
    let account = Account::new(world).await;
    assert_shows(&account.page("/batches").await, &["No batch was sent yet."]);
    let odd = with(&documents::invoice(), "invoice_date", json!("<b>odd</b>"));
    let made = account
        .taxpayer
        .create_batch(&[documents::invoice(), odd])
        .await
        .expect_status(201);
    let batch = made.data()["batch_no"].as_str().unwrap();
    assert_shows(&account.page("/batches").await, &[batch, "badge bad\">1<"]);
    let page = account.page(&format!("/batches/{batch}")).await;
    assert_shows(
        &page,
        &[
            "Created",
            "Rejected",
            "<code>invoice_date</code> The invoice_date field must be",
        ],
    );
    let invoices = account.page(&format!("/invoices?batch_no={batch}")).await;
    assert_eq!(
        invoices.matches("scope=\"row\"><a").count(),
        1,
        "{invoices}"
    );
    account
        .owner
        .get(&account.path("/batches/B20260101-0"))
        .await
        .expect(404);
}
