//! Invoices without a notice are found on the authority's list.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::documents::number;
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use crate::support::supplies::{arrived, planted, signed};
use crate::support::world::World;

const OFTEN: [(&str, &str); 1] = [("AUTHORITY__PULL_EVERY_S", "1")];

/// Waits until the list was read so many times more: what an earlier reading found has been processed then.
async fn pulled(world: &World, times: usize) {
    let readings = || {
        let calls = world.authority.calls();
        calls
            .iter()
            .filter(|call| call.operation == Some(Operation::Pull) && !call.is_pending())
            .count()
    };
    let before = readings();
    eventually("readings of the list", async || {
        (readings() >= before + times).then_some(())
    })
    .await;
}

#[each_database(&OFTEN)]
async fn notices_that_never_came_are_made_up_for(world: &World) {
    world.authority.forget_access_points();
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    planted(world, &format!("{:08}-7777", number()));
    let foreign = planted(world, &buyer.registration.tin);
    arrived(&buyer, &foreign).await;
    let (invoice, irn) = signed(&seller, &buyer.registration.tin).await;
    seller.app().transmit(&irn).await.expect_status(200);
    arrived(&buyer, &irn).await;
    buyer.acknowledge(&irn).await.expect_status(200);
    let acknowledged = async || {
        let read = seller.reread(&invoice).await;
        (read["authority_data"]["status"] == json!("ACKNOWLEDGED")).then_some(())
    };
    eventually("the receipt, by the list", acknowledged).await;
    // An invoice that is pulled again, or announced later, changes nothing.
    world.notice(&irn, "TRANSMITTED").await.expect_status(200);
    world
        .notice(&foreign, "TRANSMITTED")
        .await
        .expect_status(200);
    pulled(world, 3).await;
    assert_eq!(buyer.count_events("supplier-invoice.received").await, 2);
    assert_eq!(seller.count_events("invoice.transmitted").await, 1);
    assert_eq!(seller.count_events("invoice.acknowledged").await, 1);
}

#[on_sqlite(&OFTEN)]
async fn one_invoice_that_cannot_be_had_does_not_hold_up_the_others(world: &World) {
    let buyer = world.taxpayer().await;
    let bad = planted(world, &buyer.registration.tin);
    let mut order = FaultOrder::new(FaultKind::Garbage).on(Operation::Download);
    order.irn = Some(bad.clone());
    order.probability = Some(1.into());
    world.authority.add_fault(order).unwrap();
    for _ in 0..3 {
        let good = planted(world, &buyer.registration.tin);
        arrived(&buyer, &good).await;
    }
    assert_eq!(buyer.inbox_lines().await.len(), 3);
    world.authority.clear_faults();
    arrived(&buyer, &bad).await;
}

#[on_sqlite(&OFTEN)]
async fn a_list_that_cannot_be_read_is_read_later(world: &World) {
    let buyer = world.taxpayer().await;
    let mut order = FaultOrder::new(FaultKind::Outage).on(Operation::Pull);
    order.for_s = Some(3);
    world.authority.add_fault(order).unwrap();
    let irn = planted(world, &buyer.registration.tin);
    arrived(&buyer, &irn).await;
}
