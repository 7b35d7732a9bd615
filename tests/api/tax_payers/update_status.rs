//! PATCH /v1/tax-payers/invoices/update-status.

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::{with, without};
use testkit::roles::UPDATE_STATUS;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

fn update(invoice: &Value, status: &str) -> Value {
    json!({ "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": status, "remark": "checked" })
}

#[each_database]
async fn the_three_statuses_move_freely_among_themselves(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let path = [
        "draft",
        "approved",
        "approved",
        "draft",
        "cancelled",
        "cancelled",
        "approved",
        "cancelled",
        "draft",
    ];
    for status in path {
        let answer = taxpayer
            .send("PATCH", UPDATE_STATUS, &update(&invoice, status))
            .await;
        let answer = answer.expect_status(200);
        assert_eq!(answer.message(), "Invoice status updated successfully");
        assert_eq!(answer.data()["status"], json!(status));
        assert_eq!(*answer.data(), taxpayer.reread(&invoice).await);
        assert_eq!(answer.data()["payment_status"], json!("PENDING"));
    }
}

#[each_database]
async fn each_kind_of_number_finds_the_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let id = json!(invoice["id"].to_string());
    for (kind, no) in [
        ("IRN", &invoice["irn"]),
        ("INTERNAL_INVOICE_NO", &invoice["invoice_no"]),
        ("EXTERNAL_INVOICE_NO", &invoice["external_invoice_no"]),
        ("PORTAL_ID", &id),
        ("irn", &invoice["irn"]),
    ] {
        let body = with(&update(&invoice, "approved"), "unique_no", no.clone());
        let body = with(&body, "unique_no_type", json!(kind));
        let answer = taxpayer
            .send("PATCH", UPDATE_STATUS, &body)
            .await
            .expect_status(200);
        assert_eq!(answer.data()["id"], invoice["id"], "{kind}");
    }
}

#[each_database]
async fn a_number_that_no_invoice_has_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for (kind, no) in [
        ("IRN", "NONE-AAAAAAAA-20260115"),
        ("IRN", "not an irn"),
        ("INTERNAL_INVOICE_NO", "no such number"),
        ("PORTAL_ID", "999999999"),
        ("PORTAL_ID", "abc"),
        ("PORTAL_ID", &format!("0{}", invoice["id"])),
        ("PORTAL_ID", "99999999999999999999999"),
    ] {
        let body = with(&update(&invoice, "approved"), "unique_no", json!(no));
        let body = with(&body, "unique_no_type", json!(kind));
        let answer = taxpayer.send("PATCH", UPDATE_STATUS, &body).await;
        let answer = answer.expect_refusal(404, "INVOICE_NOT_FOUND");
        assert_eq!(answer.message(), "Invoice not found");
    }
}

#[on_sqlite]
async fn all_faults_are_reported_at_once_and_change_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let odd = without(
        &with(&update(&invoice, "paid"), "remark", json!("ok")),
        "unique_no_type",
    );
    let answer = taxpayer.send("PATCH", UPDATE_STATUS, &odd).await;
    answer.expect_faults(&["remark", "status", "unique_no_type"]);
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
}

#[on_sqlite]
async fn a_paid_invoice_keeps_its_status(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let paid = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "paid", "remark": "in full",
    });
    taxpayer.pay(&paid).await.expect_status(200);
    for status in ["draft", "approved", "cancelled"] {
        taxpayer
            .set_status(&invoice, status)
            .await
            .expect_refusal(409, "INVALID_TRANSITION");
    }
    assert_eq!(taxpayer.reread(&invoice).await["status"], json!("paid"));
}

#[on_sqlite]
async fn a_submitted_invoice_is_locked(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let submission = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&submission).await.expect_status(200);
    for status in ["draft", "approved", "cancelled"] {
        taxpayer
            .set_status(&invoice, status)
            .await
            .expect_refusal(409, "INVOICE_LOCKED");
    }
    assert_eq!(
        taxpayer.reread(&invoice).await["status"],
        json!("submitted")
    );
}
