//! GET /v1/app/invoices/{irn}/confirm.

use sandbox::{FaultKind, FaultOrder};
use serde_json::json;
use testkit::documents::{self, irn, submission};
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, World};

#[each_database]
async fn the_state_at_the_authority_is_returned(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let irn = irn(&taxpayer, &no);
    let app = taxpayer.app();
    app.submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let answer = app.confirm(&irn).await.expect_status(200);
    assert_eq!(answer.message(), "Invoice confirmed successfully");
    let data = answer.data();
    for (field, value) in [
        ("issue_date", json!("2026-01-15")),
        ("due_date", json!("2026-02-15")),
        ("payment_status", json!("PENDING")),
        ("transmitted", json!(false)),
        ("delivered", json!(false)),
    ] {
        assert_eq!(data[field], value, "{field}: {data}");
    }
    let sync_date = data["sync_date"].as_str().unwrap();
    assert!(
        sync_date.parse::<jiff::civil::Date>().is_ok(),
        "{sync_date}"
    );
    app.transmit(&irn).await.expect_status(200);
    let answer = app
        .call("POST", &format!("/v1/app/invoices/{irn}/confirm"))
        .await
        .expect_status(200);
    assert_eq!(answer.data()["transmitted"], json!(true));
}

#[each_database]
async fn an_invoice_that_is_not_signed_or_not_theirs_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let unsigned = invoice["irn"].as_str().unwrap().to_owned();
    let no = documents::invoice_no();
    other
        .app()
        .submit(&submission(&other, &no))
        .await
        .expect_status(200);
    let not_submitted =
        "Invoice not found at the authority: it is stored here, but was not submitted";
    for (irn, message) in [
        (unsigned, not_submitted),
        (irn(&other, &no), "Invoice not found"),
        ("nonsense".to_owned(), "Invoice not found"),
        (irn(&taxpayer, "NEVERSEEN"), "Invoice not found"),
    ] {
        let answer = taxpayer.app().confirm(&irn).await;
        let answer = answer.expect_refusal(404, "INVOICE_NOT_FOUND");
        assert_eq!(answer.message(), message, "{irn}");
    }
}

#[on_sqlite(ALONE)]
async fn an_authority_that_does_not_answer_is_a_502(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let answer = taxpayer.app().confirm(&irn(&taxpayer, &no)).await;
    let answer = answer.expect_refusal(502, "AUTHORITY_UNAVAILABLE");
    assert_ne!(answer.header("retry-after"), "");
}
