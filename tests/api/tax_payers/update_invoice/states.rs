//! Which invoices may be edited.

use serde_json::{Value, json};
use testkit::documents;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn drafts_and_approved_invoices_are_edited_and_keep_their_status(world: &World) {
    let taxpayer = world.taxpayer().await;
    for status in ["draft", "approved"] {
        let invoice = taxpayer.invoice(&documents::invoice()).await;
        taxpayer
            .set_status(&invoice, status)
            .await
            .expect_status(200);
        let after = taxpayer
            .update(&documents::update(&invoice))
            .await
            .expect_status(200);
        assert_eq!(
            (&after.data()["status"], &after.data()["is_edited"]),
            (&json!(status), &json!(true))
        );
    }
}

/// Neither a valid nor an invalid body edits it, and both are refused with the reason.
async fn expect_closed(taxpayer: &Taxpayer, invoice: &Value, code: &str) {
    let before = taxpayer.reread(invoice).await;
    let bare = json!({ "unique_no": invoice["irn"], "unique_no_type": "IRN" });
    for body in [documents::update(invoice), bare] {
        taxpayer.update(&body).await.expect_refusal(409, code);
    }
    assert_eq!(taxpayer.reread(invoice).await, before);
}

#[on_sqlite]
async fn paid_and_cancelled_invoices_are_not_edited(world: &World) {
    let taxpayer = world.taxpayer().await;
    let cancelled = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&cancelled, "cancelled")
        .await
        .expect_status(200);
    expect_closed(&taxpayer, &cancelled, "INVALID_TRANSITION").await;
    let paid = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&paid, "approved")
        .await
        .expect_status(200);
    let body = json!({
        "unique_no": paid["irn"], "unique_no_type": "IRN", "payment_status": "paid", "remark": "in full",
    });
    taxpayer.pay(&body).await.expect_status(200);
    expect_closed(&taxpayer, &paid, "INVALID_TRANSITION").await;
}

#[on_sqlite]
async fn what_the_pipeline_has_reached_is_locked(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&body).await.expect_status(200);
    expect_closed(&taxpayer, &invoice, "INVOICE_LOCKED").await;
    taxpayer
        .app()
        .transmit(invoice["irn"].as_str().unwrap())
        .await
        .expect_status(200);
    expect_closed(&taxpayer, &invoice, "INVOICE_LOCKED").await;
}

#[each_database]
async fn an_invoice_stored_after_its_irn_was_signed_is_locked(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice();
    let submission = documents::submission(&taxpayer, body["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&submission).await.expect_status(200);
    let invoice = taxpayer.invoice(&body).await;
    let answer = taxpayer.update(&documents::update(&invoice)).await;
    answer.expect_refusal(409, "INVOICE_LOCKED");
}
