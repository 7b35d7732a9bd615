//! Events of many IRNs on their way to a receiver that fails about 30 of 100 times, in every way there is: each is
//! accepted, and those of one IRN in their order.
//!
//! `EINVOICE_DELIVERY_EVENTS` says how many events: 200 in the ordinary run.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use testkit::documents::invoice_numbered;
use testkit::patience::{PATIENCE, eventually_within};
use testkit::{Backend, each_database};

use crate::support::deployment::Deployment;
use crate::support::receiver::{Behaviour, assert_order, duplicates};
use crate::support::size::size;

/// Events of an invoice: its creation and its moves.
const EVENTS_PER_INVOICE: usize = 5;
/// Requests under way at a time.
const AT_ONCE: usize = 16;
/// Enough attempts that none is given up, however the dice fall, and none waits long.
const SCHEDULE: (&str, &str) = (
    "EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S",
    "[0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
);

#[each_database]
async fn a_receiver_that_fails_at_random_gets_every_event_in_order(backend: Backend) {
    let invoices = size("EINVOICE_DELIVERY_EVENTS", 200).div_ceil(EVENTS_PER_INVOICE);
    let deployment = Deployment::with(backend, &[SCHEDULE]).await;
    let receiver = Behaviour::ERRATIC.start();
    deployment.set_webhook(&receiver.url()).await;
    let before = deployment.taxpayer.events().await.len();
    let begun = Instant::now();
    stream::iter(0..invoices)
        .for_each_concurrent(AT_ONCE, async |number| {
            create_and_move(&deployment, number).await;
        })
        .await;
    let events = deployment.intact_events().await;
    let due = events[before..]
        .iter()
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect();
    let count = invoices * EVENTS_PER_INVOICE;
    let patience = PATIENCE + Duration::from_millis(20) * u32::try_from(count).unwrap();
    eventually_within(patience, "every notification to be accepted", async || {
        (receiver.accepted_count() >= count).then_some(())
    })
    .await;
    let taken = begun.elapsed();
    assert_eq!(
        receiver.accepted_sequences(deployment.taxpayer_id()),
        due,
        "the accepted events and the log"
    );
    let arrivals = receiver.received_notifications();
    assert_order(&arrivals);
    let refused = arrivals
        .iter()
        .filter(|arrival| !arrival.is_accepted())
        .count();
    println!(
        "{backend:?}: {count} events of {invoices} IRNs accepted in {taken:?}, each IRN in order"
    );
    println!(
        "  {} arrivals, {refused} of them refused, {} of them duplicates",
        arrivals.len(),
        duplicates(&arrivals)
    );
}

/// An invoice from its creation on, a notification for each thing that happens to it.
async fn create_and_move(deployment: &Deployment, number: usize) {
    let created = deployment
        .taxpayer
        .create_invoice(&invoice_numbered(&format!("ORDER{number}")))
        .await;
    for status in ["approved", "draft"]
        .into_iter()
        .cycle()
        .take(EVENTS_PER_INVOICE - 1)
    {
        assert_eq!(
            deployment
                .taxpayer
                .set_status(&created.irn, status)
                .await
                .unwrap()
                .status,
            200
        );
    }
}
