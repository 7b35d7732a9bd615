//! PATCH /v1/app/invoices/transmit/{irn}/confirm-receipt.

use serde_json::json;
use testkit::documents::{self, irn, report, submission};
use testkit::roles::TRANSMIT;
use testkit::{each_database, on_sqlite};

use crate::support::planted::plant;
use crate::support::world::World;

#[each_database]
async fn a_receipt_is_confirmed_once_and_then_in_the_authoritys_words(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let app = taxpayer.app();
    let no = invoice["invoice_no"].as_str().unwrap();
    app.submit(&submission(&taxpayer, no))
        .await
        .expect_status(200);
    app.transmit(irn).await.expect_status(200);
    let first = app.confirm_receipt(irn).await.expect_status(200);
    assert_eq!(first.message(), "Invoice transmission receipt confirmed");
    assert!(first.data().is_object(), "{}", first.text);
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("transmitted"), &json!("ACKNOWLEDGED"))
    );
    for method in ["PATCH", "POST", "PUT"] {
        let again = app
            .call(method, &format!("{TRANSMIT}/{irn}/confirm-receipt"))
            .await
            .expect_status(200);
        assert_ne!(again.message(), first.message());
        assert!(
            again.message().to_lowercase().contains("already"),
            "{}",
            again.text
        );
        assert_eq!(again.data(), first.data());
    }
    let names = taxpayer.event_names().await;
    assert_eq!(
        names
            .iter()
            .filter(|name| *name == "invoice.acknowledged")
            .count(),
        1
    );
    assert_eq!(
        app.transmit(irn).await.expect_status(200).data()["delivered"],
        json!(true)
    );
}

#[on_sqlite]
async fn an_irn_that_is_odd_or_of_somebody_else_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    for irn in [
        "nonsense".to_owned(),
        "INV1-FFFFFFFF-20260115".to_owned(),
        irn(&other, "INV1"),
    ] {
        let answer = taxpayer.app().confirm_receipt(&irn).await;
        answer.expect_refusal(404, "INVOICE_NOT_FOUND");
    }
}

#[on_sqlite]
async fn while_a_taxpayer_is_paused_its_receipts_do_not_reach_the_authority(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let sent = irn(&taxpayer, &no);
    let app = taxpayer.app();
    app.submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    app.transmit(&sent).await.expect_status(200);
    for (act, status, is_delivered) in [("pause", 503, false), ("resume", 200, true)] {
        let path = format!("/ops/taxpayers/{}/{act}", taxpayer.id);
        let reason = json!({ "reason": "it floods us" });
        operator
            .send("POST", &path, &reason)
            .await
            .expect_status(200);
        app.confirm_receipt(&sent).await.expect_status(status);
        let known = app.confirm(&sent).await.expect_status(200);
        assert_eq!(known.data()["delivered"], json!(is_delivered), "{act}");
    }
}

#[each_database]
async fn a_receipt_of_an_invoice_that_another_system_transmitted_is_one_event(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let reported = invoice["irn"].as_str().unwrap();
    taxpayer
        .app()
        .report(&report(&taxpayer, reported))
        .await
        .expect_status(200);
    plant(
        world,
        &taxpayer,
        invoice["invoice_no"].as_str().unwrap(),
        |_| {},
    )
    .await;
    let no = documents::invoice_no();
    plant(world, &taxpayer, &no, |_| {}).await;
    for irn in [reported, &irn(&taxpayer, &no)] {
        for _ in 0..3 {
            taxpayer.app().confirm_receipt(irn).await.expect_status(200);
        }
        let events = taxpayer.invoice_events().await;
        let of_invoice = events.iter().filter(|event| event["irn"] == json!(irn));
        assert_eq!(
            of_invoice
                .filter(|event| event["type"] == "invoice.acknowledged")
                .count(),
            1,
            "{irn}"
        );
    }
    assert_eq!(
        taxpayer.reread(&invoice).await["authority_data"]["status"],
        json!("REPORTED")
    );
}
