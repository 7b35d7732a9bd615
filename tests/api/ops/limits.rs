//! How many calls to the authority are made at a time, as operators see it.

use futures_util::future::join_all;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::documents;
use testkit::on_sqlite;

use crate::support::world::{ALONE, World};

/// The entry of one operation.
async fn entry(world: &World, operation: &str) -> Value {
    let answer = world
        .new_operator()
        .await
        .get("/ops/breakers")
        .await
        .expect_status(200);
    let entries = answer.data().as_array().unwrap();
    entries
        .iter()
        .find(|entry| entry["operation"] == json!(operation))
        .unwrap()
        .clone()
}

#[on_sqlite(&[("AUTHORITY__MAX_CONCURRENT_CALLS", "2")])]
async fn calls_beyond_the_limit_wait_and_none_is_lost(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut late = FaultOrder::new(FaultKind::Latency).on(Operation::Validate);
    late.latency_ms = Some(20);
    late.times = Some(100);
    world.authority.add_fault(late).unwrap();
    let bodies: Vec<_> = (0..40)
        .map(|_| documents::validation(&taxpayer, &documents::invoice_no()))
        .collect();
    let app = taxpayer.app();
    for answer in join_all(bodies.iter().map(|body| app.validate(body))).await {
        answer.expect_status(200);
    }
    let entry = entry(world, "validate").await;
    assert_eq!(
        [&entry["limit"], &entry["in_flight"], &entry["waiting"]],
        [2, 0, 0],
        "{entry}"
    );
}

#[on_sqlite(ALONE)]
async fn a_pause_that_the_authority_asks_for_holds_back_all_calls_of_its_kind(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::validation(&taxpayer, &documents::invoice_no());
    let mut busy = FaultOrder::new(FaultKind::Throttled).on(Operation::Validate);
    busy.retry_after_s = Some(30);
    world.authority.add_fault(busy).unwrap();
    let first = taxpayer
        .app()
        .validate(&body)
        .await
        .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
    assert_eq!(first.header("retry-after"), "30");
    let neighbour = world.taxpayer().await;
    let other = documents::validation(&neighbour, &documents::invoice_no());
    let second = neighbour
        .app()
        .validate(&other)
        .await
        .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
    assert!(
        second.message().contains("asks to be called less often"),
        "{}",
        second.text
    );
    let wait: u64 = second.header("retry-after").parse().unwrap();
    assert!((20..=30).contains(&wait), "{wait}");
    assert!(entry(world, "validate").await["held_until"].is_string());
    assert!(entry(world, "sign").await["held_until"].is_null());
    let text = world.anonymous().get("/metrics").await.text;
    assert!(
        text.contains(
            "einvoice_authority_calls_total{operation=\"validate\",outcome=\"rate_limited\"} 1"
        ),
        "{text}"
    );
}
