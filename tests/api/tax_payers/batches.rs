//! GET /v1/tax-payers/invoices/batches/{batch_no}.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::{with, without};
use testkit::roles::BATCHES;

use crate::support::world::World;

#[each_database]
async fn a_batch_tells_what_became_of_each_item(world: &World) {
    let taxpayer = world.taxpayer().await;
    let new = documents::invoice();
    let bad = without(&without(&documents::invoice(), "currency"), "due_date");
    let sent = [new.clone(), new.clone(), bad.clone(), json!([])];
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    let path = format!("{BATCHES}/{}", answer.data()["batch_no"].as_str().unwrap());
    let read = taxpayer.get(&path).await.expect_status(200);
    assert_eq!(read.message(), "Batch retrieved successfully");
    let batch = read.data();
    let id = &batch["items"][0]["id"];
    let irn = documents::irn(&taxpayer, new["invoice_no"].as_str().unwrap());
    assert!(id.is_i64());
    assert_eq!(
        *batch,
        json!({
            "batch_no": answer.data()["batch_no"], "created": 1, "duplicates": 1, "failed": 2,
            "items": [
                { "index": 0, "invoice_no": new["invoice_no"], "outcome": "created", "id": id, "irn": irn,
                  "errors": null, "warnings": [] },
                { "index": 1, "invoice_no": new["invoice_no"], "outcome": "duplicate", "id": id, "irn": irn,
                  "duplicate": "identical", "errors": null, "warnings": [] },
                { "index": 2, "invoice_no": bad["invoice_no"], "outcome": "failed", "id": null, "irn": null,
                  "errors": {
                      "currency": ["The currency field is required."],
                      "due_date": ["The due_date field is required."],
                  }, "warnings": [] },
                { "index": 3, "invoice_no": null, "outcome": "failed", "id": null, "irn": null,
                  "errors": { "invoice": ["The invoice must be an object."] }, "warnings": [] },
            ],
        })
    );
}

/// The header has room for the warnings of ten invoices.
#[each_database]
async fn a_batch_keeps_the_warnings_of_each_item(world: &World) {
    let taxpayer = world.taxpayer().await;
    let odd = || with(&documents::invoice(), "colour", json!("red"));
    let sent: Vec<_> = (0..12).map(|_| odd()).collect();
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    let told = answer.warnings();
    assert!(told.contains("invoices.9: unknown field: colour"), "{told}");
    assert!(!told.contains("invoices.10:"), "{told}");
    let rest = "2 more of the invoices have warnings: the batch has those of each";
    assert!(told.contains(rest), "{told}");
    let batch = taxpayer.created_batch(&answer).await;
    let items = batch["items"].as_array().unwrap();
    assert_eq!(items.len(), 12);
    for item in items {
        assert_eq!(item["warnings"], json!(["unknown field: colour"]));
    }
}

#[each_database]
async fn what_became_of_a_batch_does_not_change_any_more(world: &World) {
    let taxpayer = world.taxpayer().await;
    let answer = taxpayer
        .create_batch(&[documents::invoice()])
        .await
        .expect_status(201);
    let before = taxpayer.created_batch(&answer).await;
    let invoice = taxpayer
        .get_invoice(&before["items"][0]["id"])
        .await
        .data()
        .clone();
    taxpayer
        .set_status(&invoice, "cancelled")
        .await
        .expect_status(200);
    assert_eq!(taxpayer.created_batch(&answer).await, before);
}

#[each_database]
async fn an_unknown_batch_is_not_found_and_anothers_is_unknown(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let theirs = other
        .create_batch(&[documents::invoice()])
        .await
        .expect_status(201);
    let theirs = theirs.data()["batch_no"].as_str().unwrap();
    let long = "x".repeat(5_000);
    for batch_no in [
        "nonsense",
        "1",
        theirs,
        "%00",
        "%FF",
        "a%0Ab",
        "%E2%80%AE",
        long.as_str(),
        "'--",
    ] {
        let answer = taxpayer.get(&format!("{BATCHES}/{batch_no}")).await;
        let answer = answer.expect_refusal(404, "BATCH_NOT_FOUND");
        assert_eq!(answer.message(), "Batch not found", "{batch_no}");
    }
    other
        .get(&format!("{BATCHES}/{theirs}"))
        .await
        .expect_status(200);
    let listed = taxpayer
        .list_invoices(&format!("?batch_no={theirs}"))
        .await
        .expect_status(200);
    assert_eq!(listed.data()["data"], Value::Array(vec![]));
}
