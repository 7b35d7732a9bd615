//! The trace of a delivery.

use testkit::documents;
use testkit::each_database;
use testkit::receiver::Receiver;

use super::{CREATED, subscribed};
use crate::support::world::World;

#[each_database]
async fn a_delivery_names_its_trace_by_which_an_operator_finds_the_event(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    taxpayer.invoice(&documents::invoice()).await;
    let arrived = receiver.wait_for(1).await;
    let trace_id = arrived[0].id.replace('-', "");
    let sent = arrived[0].header("traceparent");
    assert!(sent.starts_with(&format!("00-{trace_id}-")), "{sent}");
    let operator = world.new_operator().await;
    let found = operator.get(&format!("/ops/search?q={trace_id}")).await;
    assert_eq!(found.expect_status(200).data()[0]["kind"], "event");
}
