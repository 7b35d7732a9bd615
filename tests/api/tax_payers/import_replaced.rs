//! POST /v1/tax-payers/invoices/import?replace_cancelled=true: invoices that were cancelled are created again.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{invoice_no, invoice_numbered};
use testkit::edit::with;
use testkit::roles::{INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;
use crate::tax_payers::import::{csv, import, row};

const NDJSON: &str = "application/x-ndjson";
const REPLACE: &str = "?replace_cancelled=true";

fn counts(answer: &Answer) -> [u64; 4] {
    ["created", "replaced", "duplicates", "duplicates_cancelled"]
        .map(|name| answer.data()[name].as_u64().unwrap())
}

/// Imports a file and undoes its batch. Returns the items of the import.
async fn import_and_undo(taxpayer: &Taxpayer, file: &str) -> Vec<Value> {
    let made = import(taxpayer, "", "text/csv", file.to_owned()).await;
    let made = made.expect_status(201);
    let batch_no = made.data()["batch_no"].as_str().unwrap();
    let path = format!("{INVOICES}/batches/{batch_no}/undo");
    let undone = taxpayer.call("POST", &path).await;
    assert!(undone.status < 300, "{}", undone.body);
    made.data()["items"].as_array().unwrap().clone()
}

#[each_database]
async fn an_undone_batch_is_imported_again_with_other_contents(world: &World) {
    let taxpayer = world.taxpayer().await;
    let [one, two] = [invoice_no(), invoice_no()];
    let items = import_and_undo(&taxpayer, &csv(&[row(&one, "2"), row(&two, "2")])).await;
    let file = csv(&[row(&one, "3"), row(&two, "2")]);
    for (query, status) in [("?preview=true", 200), ("", 201)] {
        let told = import(&taxpayer, query, "text/csv", file.clone()).await;
        let told = told.expect_status(status);
        assert_eq!(counts(&told), [0, 0, 2, 2], "{}", told.body);
        for item in told.data()["items"].as_array().unwrap() {
            assert_eq!(item["existing_cancelled"], true, "{item}");
            let warnings = item["warnings"].to_string();
            assert!(warnings.contains("replace_cancelled=true"), "{warnings}");
        }
    }
    let preview = format!("{REPLACE}&preview=true");
    let seen = import(&taxpayer, &preview, "text/csv", file.clone()).await;
    assert_eq!(counts(&seen.expect_status(200)), [2, 2, 0, 0]);
    let before = taxpayer.reread(&items[0]).await;
    assert_eq!(before["status"], "cancelled", "a preview changes nothing");

    let made = import(&taxpayer, REPLACE, "text/csv", file.clone()).await;
    let made = made.expect_status(201);
    assert_eq!(counts(&made), [2, 2, 0, 0], "{}", made.body);
    let batch_no = made.data()["batch_no"].as_str().unwrap();
    let list = taxpayer
        .list_invoices(&format!("?batch_no={batch_no}"))
        .await;
    assert_eq!(list.expect_status(200).data()["total"], 2);
    for (item, quantity) in items.iter().zip([3, 2]) {
        let stored = taxpayer.invoice_with_ledger(item).await;
        assert_eq!(stored["status"], "draft");
        assert_eq!(stored["irn"], item["irn"]);
        assert_eq!(stored["lines"][0]["quantity"], json!(quantity));
        assert_eq!(stored["is_edited"], false);
    }
    let again = import(&taxpayer, REPLACE, "text/csv", file).await;
    let again = again.expect_status(200);
    assert_eq!(again.message(), "This file was imported before");
    assert_eq!(again.data(), made.data());
    // The same contents in another file are the same invoice.
    let other = csv(&[row(&one, "3"), row(&invoice_no(), "1")]);
    let other = import(&taxpayer, REPLACE, "text/csv", other).await;
    let other = other.expect_status(201);
    assert_eq!(counts(&other), [1, 0, 1, 0], "{}", other.body);
    assert_eq!(other.data()["items"][0]["duplicate"], "identical");
}

#[on_sqlite]
async fn a_number_that_comes_twice_replaces_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = invoice_numbered(&invoice_no());
    let stored = taxpayer.invoice(&body).await;
    taxpayer
        .set_status(&stored, "cancelled")
        .await
        .expect_status(200);
    let other = with(&body, "due_date", json!("2026-03-15"));
    // The date gives another IRN, with which the cancelled invoice would not be replaced.
    let dated = with(&body, "invoice_date", json!("2026-01-16"));
    let file = format!("{other}\n{body}\n{dated}\n");
    for query in [format!("{REPLACE}&preview=true"), REPLACE.to_owned()] {
        let answer = import(&taxpayer, &query, NDJSON, file.clone()).await;
        assert_eq!(counts(&answer), [1, 1, 2, 0], "{}", answer.body);
        for item in &answer.data()["items"].as_array().unwrap()[1..] {
            assert_eq!(item["duplicate"], "different", "{item}");
        }
    }
    let stored = taxpayer.reread(&stored).await;
    assert_eq!(stored["due_date"], "2026-03-15");
    assert_eq!(
        taxpayer.invoice_event_names().await,
        [
            "invoice.created",
            "invoice.status-updated",
            "invoice.status-updated",
            "invoice.updated"
        ]
    );
}

/// Only what nobody but the account has seen is replaced.
#[each_database]
async fn an_invoice_that_was_sent_paid_or_has_another_irn_is_not_replaced(world: &World) {
    type Change<'a> = (&'static str, &'a dyn Fn(&Value) -> Value);
    let taxpayer = world.taxpayer().await;
    let date = |body: &Value| with(body, "invoice_date", json!("2026-01-16"));
    let quantity = |body: &Value| with(body, "invoice_lines.0.quantity", json!(3));
    let changes: [Change<'_>; 4] = [
        ("draft", &quantity),
        ("signed", &quantity),
        ("paid", &quantity),
        ("cancelled", &date),
    ];
    for (state, change) in changes {
        let body = invoice_numbered(&invoice_no());
        let stored = taxpayer.invoice(&body).await;
        match state {
            "signed" => {
                let alone = json!({ "irn": stored["irn"] });
                let signed = taxpayer.app().submit_to_the_end(&alone).await;
                signed.expect_status(200);
            }
            "paid" => {
                let approved = taxpayer.set_status(&stored, "approved").await;
                approved.expect_status(200);
                let part = json!({
                    "unique_no": stored["irn"], "unique_no_type": "IRN", "payment_status": "partial",
                    "amount": 5, "remark": "a part",
                });
                taxpayer.pay(&part).await.expect_status(200);
                let cancelled = taxpayer.set_status(&stored, "cancelled").await;
                cancelled.expect_status(200);
            }
            "cancelled" => {
                let cancelled = taxpayer.set_status(&stored, "cancelled").await;
                cancelled.expect_status(200);
            }
            _ => {}
        }
        let before = taxpayer.reread(&stored).await;
        let file = change(&body).to_string();
        for query in [format!("{REPLACE}&preview=true"), REPLACE.to_owned()] {
            let answer = import(&taxpayer, &query, "application/json", file.clone()).await;
            let [created, replaced, duplicates, _] = counts(&answer);
            assert_eq!(
                [created, replaced, duplicates],
                [0, 0, 1],
                "{state} {query}"
            );
        }
        assert_eq!(taxpayer.reread(&stored).await, before, "{state}");
    }
}
