//! What an invoice owes and what it says was paid.

use serde_json::json;
use testkit::documents;
use testkit::edit::{exact, with};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn the_payable_is_what_was_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(
        &documents::full_invoice(&taxpayer),
        "legal_monetary_total.payable_amount",
        exact("900.005"),
    );
    let answer = taxpayer.create_full(&body).await.expect_status(201);
    let warned = "legal_monetary_total.payable_amount is 900.005, but tax_inclusive_amount is ";
    assert!(answer.warnings().contains(warned), "{}", answer.warnings());
    let ledger = &taxpayer.invoice_with_ledger(answer.data()).await["ledger"];
    assert_eq!(
        ledger.to_string(),
        r#"{"amount_paid":0,"entries":[],"payable_amount":900.005}"#
    );
}

#[on_sqlite]
async fn a_payable_that_is_off_by_a_cent_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (payable, is_told) in [("1075.01", true), ("1074.99", true), ("1075.00", false)] {
        let body = with(
            &documents::full_invoice(&taxpayer),
            "legal_monetary_total.payable_amount",
            exact(payable),
        );
        let answer = taxpayer.create_full(&body).await.expect_status(201);
        let warned = format!("payable_amount is {payable}, but tax_inclusive_amount is 1075;");
        let warnings = answer.warnings();
        assert_eq!(warnings.contains(&warned), is_told, "{warnings}");
    }
}

#[each_database]
async fn an_invoice_declared_paid_reads_paid_stays_draft_and_has_it_in_the_ledger(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(
        &documents::full_invoice(&taxpayer),
        "payment_status",
        json!("paid"),
    );
    let invoice = taxpayer.new_full_invoice(&body).await;
    assert_eq!(
        (&invoice["payment_status"], &invoice["status"]),
        (&json!("PAID"), &json!("draft"))
    );
    let ledger = taxpayer.invoice_with_ledger(&invoice).await["ledger"].clone();
    assert_eq!(
        (&ledger["payable_amount"], &ledger["amount_paid"]),
        (&json!(1075), &json!(1075))
    );
    let entries = ledger["entries"].as_array().unwrap();
    assert_eq!(
        (entries.len(), &entries[0]["status"], &entries[0]["amount"]),
        (1, &json!("PAID"), &json!(1075))
    );
    assert_eq!(
        (&entries[0]["reference"], &entries[0]["remark"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(taxpayer.invoice_event_names().await, ["invoice.created"]);
}

#[on_sqlite]
async fn an_invoice_declared_cancelled_reads_rejected(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(
        &documents::full_invoice(&taxpayer),
        "payment_status",
        json!("CANCELLED"),
    );
    let invoice = taxpayer.new_full_invoice(&body).await;
    assert_eq!(
        (&invoice["payment_status"], &invoice["status"]),
        (&json!("REJECTED"), &json!("draft"))
    );
    assert_eq!(
        taxpayer.invoice_with_ledger(&invoice).await["ledger"]["entries"],
        json!([])
    );
}

#[each_database]
async fn a_full_invoice_is_paid_in_parts_up_to_its_payable(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer
        .new_full_invoice(&documents::full_invoice(&taxpayer))
        .await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let part = |amount: i64| {
        json!({
            "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial",
            "amount": amount, "remark": "by transfer", "reference": "T-1",
        })
    };
    taxpayer.pay(&part(1_000)).await.expect_status(200);
    taxpayer
        .pay(&part(76))
        .await
        .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    taxpayer.pay(&part(75)).await.expect_status(200);
    let ledger = taxpayer.invoice_with_ledger(&invoice).await["ledger"].clone();
    assert_eq!(ledger["amount_paid"], json!(1075));
    let entry = &ledger["entries"][1];
    assert_eq!(
        (&entry["amount"], &entry["reference"], &entry["remark"]),
        (&json!(75), &json!("T-1"), &json!("by transfer"))
    );
}
