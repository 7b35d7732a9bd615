//! Notices about invoices that somebody here sent, and what the embedded authority does by itself.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::documents::{self, irn, submission};
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::supplies::{arrived, signed};
use crate::support::world::{ALONE, RETRY_LATE, World};

/// A run that waits is continued neither by its retry nor by a reconciliation.
const PATIENT: [(&str, &str); 3] = [RETRY_LATE[0], RETRY_LATE[1], ("RECONCILE__EVERY_S", "0")];

/// Returns the workflow status of an invoice and the authority's.
async fn standing(taxpayer: &Taxpayer, invoice: &Value) -> (String, String) {
    let read = taxpayer.reread(invoice).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        text(&read["status"]),
        text(&read["authority_data"]["status"]),
    )
}

fn pair(status: &str, authority: &str) -> (String, String) {
    (status.to_owned(), authority.to_owned())
}

async fn events_about(taxpayer: &Taxpayer, irn: &str) -> Vec<String> {
    let events = taxpayer.events().await;
    let about = events.iter().filter(|event| event["irn"] == irn);
    about
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

/// An invoice of one taxpayer to another that is transmitted, without a notice of it.
async fn transmitted(seller: &Taxpayer, buyer: &Taxpayer) -> (Value, String) {
    let (invoice, irn) = signed(seller, &buyer.registration.tin).await;
    seller.app().transmit(&irn).await.expect_status(200);
    (invoice, irn)
}

#[each_database]
async fn an_invoice_between_two_taxpayers_of_the_house_arrives_by_itself(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (invoice, irn) = transmitted(&seller, &buyer).await;
    let line = arrived(&buyer, &irn).await;
    assert_eq!(line["supplier_tin"], json!(seller.registration.tin));
    buyer.acknowledge(&irn).await.expect_status(200);
    let acknowledged =
        async || (standing(&seller, &invoice).await.1 == "ACKNOWLEDGED").then_some(());
    eventually("the receipt at the seller's", acknowledged).await;
    let expected = [
        "invoice.created",
        "invoice.status-updated",
        "invoice.validated",
        "invoice.status-updated",
        "invoice.submitted",
        "invoice.status-updated",
        "invoice.transmitted",
        "invoice.acknowledged",
    ];
    assert_eq!(events_about(&seller, &irn).await, expected);
    let expected = ["supplier-invoice.received", "supplier-invoice.acknowledged"];
    assert_eq!(events_about(&buyer, &irn).await, expected);
}

#[each_database(ALONE)]
async fn what_the_authority_says_moves_the_invoice_forward_whatever_the_notice_says(world: &World) {
    world.authority.forget_access_points();
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (invoice, irn) = signed(&seller, &buyer.registration.tin).await;
    // It is not transmitted: no word makes it so, and the buyer does not get to see it.
    for word in ["TRANSMITTED", "ACKNOWLEDGED", "FAILED", "TRANSMITTING"] {
        world.notice(&irn, word).await.expect_status(200);
    }
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("submitted", "SUBMITTED")
    );
    assert!(
        buyer.inbox_lines().await.is_empty(),
        "an invoice on which nobody has sent"
    );

    seller.app().transmit(&irn).await.expect_status(200);
    assert!(buyer.inbox_lines().await.is_empty(), "there was no notice");
    world.notice(&irn, "ACKNOWLEDGED").await.expect_status(200);
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("transmitted", "TRANSMITTED")
    );
    assert_eq!(
        buyer.inbox_lines().await.len(),
        1,
        "both sides are ours: both are served"
    );

    buyer.acknowledge(&irn).await.expect_status(200);
    assert_eq!(
        standing(&seller, &invoice).await.1,
        "TRANSMITTED",
        "there was no notice"
    );
    world.notice(&irn, "FAILED").await.expect_status(200);
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("transmitted", "ACKNOWLEDGED")
    );
    for word in [
        "TRANSMITTED",
        "TRANSMITTING",
        "ACKNOWLEDGED",
        "ACKNOWLEDGED",
    ] {
        world.notice(&irn, word).await.expect_status(200);
    }
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("transmitted", "ACKNOWLEDGED")
    );
    assert_eq!(seller.count_events("invoice.acknowledged").await, 1);
    assert_eq!(seller.count_events("invoice.transmitted").await, 1);
    assert_eq!(
        seller.app().transmit(&irn).await.data()["delivered"],
        json!(true)
    );
}

#[each_database(ALONE)]
async fn an_invoice_that_is_only_submitted_and_not_stored_is_announced_once(world: &World) {
    world.authority.forget_access_points();
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let no = documents::invoice_no();
    let body = with(
        &submission(&seller, &no),
        "accounting_customer_party.tin",
        json!(buyer.registration.tin),
    );
    seller.app().submit(&body).await.expect_status(200);
    let irn = irn(&seller, &no);
    seller.app().transmit(&irn).await.expect_status(200);
    world.notice(&irn, "TRANSMITTED").await.expect_status(200);
    buyer.acknowledge(&irn).await.expect_status(200);
    for _ in 0..3 {
        world.notice(&irn, "ACKNOWLEDGED").await.expect_status(200);
    }
    let expected = [
        "invoice.validated",
        "invoice.submitted",
        "invoice.transmitted",
        "invoice.acknowledged",
    ];
    assert_eq!(events_about(&seller, &irn).await, expected);
}

#[each_database(&PATIENT)]
async fn a_notice_tells_what_a_transmission_whose_answer_was_lost_could_not_learn(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (invoice, irn) = signed(&seller, &buyer.registration.tin).await;
    world.authority.forget_access_points();
    let order = |kind, operation| {
        let mut order = FaultOrder::new(kind).on(operation).times(1);
        order.irn = Some(irn.clone());
        world.authority.add_fault(order).unwrap();
    };
    order(FaultKind::CommitThenDrop, Operation::Transmit);
    order(FaultKind::ServerError, Operation::Confirm);
    let silent = FaultOrder::new(FaultKind::ServerError).on(Operation::Search);
    world.authority.add_fault(silent).unwrap();
    seller
        .app()
        .transmit(&irn)
        .await
        .expect_refusal(500, "AUTHORITY_UNAVAILABLE");
    world.notice(&irn, "TRANSMITTED").await.expect_status(200);
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("transmitted", "TRANSMITTED")
    );
    assert_eq!(buyer.inbox_lines().await.len(), 1);
    buyer.acknowledge(&irn).await.expect_status(200);
    world.notice(&irn, "ACKNOWLEDGED").await.expect_status(200);
    // The run that still waits finds out by itself, tells nothing twice and takes nothing back.
    seller.app().transmit(&irn).await.expect_status(200);
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("transmitted", "ACKNOWLEDGED")
    );
    assert_eq!(seller.count_events("invoice.acknowledged").await, 1);
    assert_eq!(seller.count_events("invoice.transmitted").await, 1);
    assert_eq!(world.authority.invoice(&irn).unwrap().transmit_count, 1);
}

#[each_database(&[("PIPELINE__GIVE_UP_AFTER_S", "1")])]
async fn a_transmission_that_was_paused_is_ended_by_what_the_authority_says(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (invoice, irn) = signed(&seller, &buyer.registration.tin).await;
    world.authority.forget_access_points();
    for (kind, operation) in [
        (FaultKind::CommitThenDrop, Operation::Transmit),
        (FaultKind::ServerError, Operation::Confirm),
    ] {
        let mut order = FaultOrder::new(kind).on(operation);
        (order.irn, order.probability) = (Some(irn.clone()), Some(1.into()));
        world.authority.add_fault(order).unwrap();
    }
    let mut silent = FaultOrder::new(FaultKind::ServerError).on(Operation::Search);
    silent.probability = Some(1.into());
    world.authority.add_fault(silent).unwrap();
    seller.app().transmit(&irn).await.expect_status(500);
    let state = async || seller.app().run(&irn).await.data()["state"].clone();
    eventually("the pause", async || {
        (state().await == json!("paused")).then_some(())
    })
    .await;
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("submitted", "FAILED")
    );
    world.authority.clear_faults();
    // Its answer being lost, a notice that it failed is no reason to show it to its buyer, but the state is.
    // The breaker of these calls may be open: the notice is sent again until it is not.
    let heard = async || (world.notice(&irn, "FAILED").await.status == 200).then_some(());
    eventually("a notice that is heard", heard).await;
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("transmitted", "TRANSMITTED")
    );
    assert_eq!(state().await, json!("succeeded"));
    assert_eq!(buyer.inbox_lines().await.len(), 1);
    world.notice(&irn, "TRANSMITTED").await.expect_status(200);
    assert_eq!(seller.count_events("invoice.transmitted").await, 1);
}

#[each_database(&PATIENT)]
async fn an_invoice_that_is_being_sent_is_shown_to_its_buyer_on_that_word_only(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (invoice, irn) = signed(&seller, &buyer.registration.tin).await;
    let mut order = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::Transmit)
        .times(1);
    order.irn = Some(irn.clone());
    world.authority.add_fault(order).unwrap();
    seller.app().transmit(&irn).await.expect_status(500);
    for word in ["FAILED", "TRANSMITTED", "ACKNOWLEDGED"] {
        world.notice(&irn, word).await.expect_status(200);
    }
    assert!(buyer.inbox_lines().await.is_empty());
    world.notice(&irn, "TRANSMITTING").await.expect_status(200);
    assert_eq!(buyer.inbox_lines().await.len(), 1);
    assert_eq!(standing(&seller, &invoice).await.0, "submitted");
}

#[on_sqlite(ALONE)]
async fn a_cancelled_invoice_stays_cancelled(world: &World) {
    world.authority.forget_access_points();
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let invoice = seller.invoice(&documents::invoice()).await;
    seller
        .set_status(&invoice, "cancelled")
        .await
        .expect_status(200);
    // The supplier sent it by another way than ours.
    let irn = invoice["irn"].as_str().unwrap().to_owned();
    let elsewhere = sandbox::InboundInvoice {
        tin: buyer.registration.tin.clone(),
        irn: Some(irn.clone()),
        notify: Some(false),
        ..Default::default()
    };
    world.authority.plant_invoice(&elsewhere).unwrap();
    world.notice(&irn, "TRANSMITTED").await.expect_status(200);
    assert_eq!(
        standing(&seller, &invoice).await,
        pair("cancelled", "PENDING")
    );
    assert_eq!(buyer.inbox_lines().await.len(), 1);
}

#[each_database]
async fn a_stored_invoice_that_the_authority_has_not_signed_is_not_found(world: &World) {
    let seller = world.taxpayer().await;
    let invoice = seller.invoice(&documents::invoice()).await;
    let answer = world
        .notice(invoice["irn"].as_str().unwrap(), "TRANSMITTED")
        .await;
    answer.expect_refusal(404, "INVOICE_NOT_FOUND");
    assert_eq!(standing(&seller, &invoice).await, pair("draft", "PENDING"));
}

#[on_sqlite(ALONE)]
async fn an_authority_that_cannot_confirm_has_the_notice_sent_again_and_the_buyer_is_served(
    world: &World,
) {
    world.authority.forget_access_points();
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let (invoice, irn) = transmitted(&seller, &buyer).await;
    world
        .authority
        .add_fault(
            FaultOrder::new(FaultKind::ServerError)
                .on(Operation::Confirm)
                .times(1),
        )
        .unwrap();
    world
        .notice(&irn, "TRANSMITTED")
        .await
        .expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    assert_eq!(buyer.inbox_lines().await.len(), 1);
    buyer.acknowledge(&irn).await.expect_status(200);
    world.notice(&irn, "ACKNOWLEDGED").await.expect_status(200);
    assert_eq!(standing(&seller, &invoice).await.1, "ACKNOWLEDGED");
}

#[each_database]
async fn a_taxpayer_may_invoice_itself(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (_, irn) = transmitted(&taxpayer, &taxpayer).await;
    assert_eq!(
        arrived(&taxpayer, &irn).await["supplier_tin"],
        json!(taxpayer.registration.tin)
    );
}
