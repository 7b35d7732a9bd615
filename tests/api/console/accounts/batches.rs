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

#[each_database]
async fn the_newest_batch_is_first_and_an_undone_one_says_so(world: &World) {
    let account = Account::new(world).await;
    let mut numbers = Vec::new();
    for _ in 0..6 {
        let made = account.taxpayer.create_batch(&[documents::invoice()]).await;
        let made = made.expect_status(201);
        numbers.push(made.data()["batch_no"].as_str().unwrap().to_owned());
    }
    let path = format!("/v1/tax-payers/invoices/batches/{}/undo", numbers[2]);
    let undone = account.taxpayer.call("POST", &path).await;
    assert!(undone.status < 300, "{}", undone.body);
    let page = account.page("/batches").await;
    let rows: Vec<_> = page.split("<tr>").skip(2).collect();
    assert_eq!(rows.len(), numbers.len(), "{page}");
    for (row, number) in rows.iter().zip(numbers.iter().rev()) {
        assert!(row.contains(number.as_str()), "{number}: {row}");
        assert_eq!(row.contains(">Undone<"), *number == numbers[2], "{row}");
    }
}
