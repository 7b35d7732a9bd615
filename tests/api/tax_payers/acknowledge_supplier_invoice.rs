//! POST /v1/tax-payers/invoices/acknowledge-supplier-invoice.

use futures_util::future::join_all;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::answer::stable_text;
use testkit::roles::ACKNOWLEDGE;
use testkit::{each_database, on_sqlite};

use crate::support::supplies::{arrived, planted, received, signed};
use crate::support::world::World;

fn on_acknowledge(world: &World, kind: FaultKind, irn: &str) {
    let mut order = FaultOrder::new(kind).on(Operation::Acknowledge).times(1);
    order.irn = Some(irn.to_owned());
    world.authority.add_fault(order).unwrap();
}

#[each_database]
async fn an_invoice_is_acknowledged_once(world: &World) {
    let buyer = world.taxpayer().await;
    let irn = received(world, &buyer).await;
    let answer = buyer.acknowledge(&irn).await.expect_status(200);
    assert_eq!(
        answer.message(),
        "Supplier invoice acknowledged successfully"
    );
    assert_eq!(answer.data()["supplier_irn"], json!(irn));
    insta::assert_snapshot!(stable_text(answer.data(), &["/supplier_irn", "/acknowledged_at"]), @r#"
            {
              "acknowledged": true,
              "acknowledged_at": "…",
              "supplier_irn": "…"
            }
        "#);
    assert!(
        world.authority.invoice(&irn).unwrap().delivered,
        "the authority has it"
    );
    let line = &buyer.inbox_lines().await[0];
    assert_eq!(line["acknowledged"], json!(true));
    assert_eq!(line["acknowledged_at"], answer.data()["acknowledged_at"]);
    let event = buyer.events().await.pop().unwrap();
    assert_eq!(event["type"], json!("supplier-invoice.acknowledged"));
    assert_eq!(
        (&event["irn"], &event["data"]["supplier_irn"]),
        (&json!(irn), &json!(irn))
    );
    for _ in 0..2 {
        buyer
            .acknowledge(&irn)
            .await
            .expect_refusal(409, "ALREADY_ACKNOWLEDGED");
    }
    assert_eq!(
        world.authority.invoice(&irn).unwrap().acknowledge_attempts,
        1
    );
    assert_eq!(buyer.count_events("supplier-invoice.acknowledged").await, 1);
}

#[each_database]
async fn of_concurrent_twins_one_acknowledges(world: &World) {
    let buyer = world.taxpayer().await;
    let irn = received(world, &buyer).await;
    let answers = join_all((0..6).map(|_| buyer.acknowledge(&irn))).await;
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409], "{answers:?}");
    assert_eq!(buyer.count_events("supplier-invoice.acknowledged").await, 1);
}

#[on_sqlite]
async fn an_invoice_that_is_not_addressed_to_the_caller_is_forbidden(world: &World) {
    let buyer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let irn = received(world, &buyer).await;
    let unannounced = planted(world, &other.registration.tin);
    for irn in [irn.as_str(), &unannounced, "NEVER1-5A0D0001-20260115"] {
        other
            .acknowledge(irn)
            .await
            .expect_refusal(403, "NOT_ADDRESSED_TO_CALLER");
    }
    assert_eq!(
        world.authority.invoice(&irn).unwrap().acknowledge_attempts,
        0
    );
    assert!(!world.authority.invoice(&unannounced).unwrap().delivered);
}

#[each_database]
async fn what_the_authority_knew_already_is_stored(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (_, irn) = signed(&seller, &buyer.registration.tin).await;
    seller.app().transmit(&irn).await.expect_status(200);
    arrived(&buyer, &irn).await;
    seller.app().confirm_receipt(&irn).await.expect_status(200);
    assert!(world.authority.invoice(&irn).unwrap().delivered);
    assert_eq!(arrived(&buyer, &irn).await["acknowledged"], json!(false));
    buyer.acknowledge(&irn).await.expect_status(200);
    buyer
        .acknowledge(&irn)
        .await
        .expect_refusal(409, "ALREADY_ACKNOWLEDGED");
}

#[each_database]
async fn a_reply_that_is_lost_is_looked_up(world: &World) {
    let buyer = world.taxpayer().await;
    for kind in [
        FaultKind::CommitThenDrop,
        FaultKind::Garbage,
        FaultKind::Xml,
    ] {
        let irn = received(world, &buyer).await;
        on_acknowledge(world, kind, &irn);
        buyer.acknowledge(&irn).await.expect_status(200);
        buyer
            .acknowledge(&irn)
            .await
            .expect_refusal(409, "ALREADY_ACKNOWLEDGED");
    }
}

#[on_sqlite]
async fn an_authority_that_fails_leaves_it_to_be_acknowledged_again(world: &World) {
    let buyer = world.taxpayer().await;
    for kind in [FaultKind::ServerError, FaultKind::Reset, FaultKind::Busy] {
        let irn = received(world, &buyer).await;
        on_acknowledge(world, kind, &irn);
        let answer = buyer
            .acknowledge(&irn)
            .await
            .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
        assert!(!answer.header("retry-after").is_empty());
        assert_eq!(buyer.inbox_lines().await[0]["acknowledged"], json!(false));
        buyer.acknowledge(&irn).await.expect_status(200);
    }
    assert_eq!(buyer.count_events("supplier-invoice.acknowledged").await, 3);
}

#[on_sqlite]
async fn the_body_is_checked(world: &World) {
    let buyer = world.taxpayer().await;
    buyer
        .send("POST", ACKNOWLEDGE, &json!({}))
        .await
        .expect_faults(&["supplier_irn"]);
    buyer
        .acknowledge("SUP1")
        .await
        .expect_refusal(403, "NOT_ADDRESSED_TO_CALLER");
}
