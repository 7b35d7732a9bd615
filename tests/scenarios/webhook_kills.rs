//! kill -9 while notifications are under way: each event arrives at least once, and those of one IRN in order.
//!
//! `EINVOICE_DELIVERY_KILLS` says how often: 3 times in the ordinary run.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use testkit::answer::Answer;
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use testkit::receiver::Received;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;
use crate::support::receiver::{Behaviour, assert_order, duplicates};
use crate::support::size::size;

const INVOICES: usize = 10;
/// Moves of each invoice before a replay: more events than a replay queues in one part (250).
const REPLAYED_ROUNDS: usize = 30;
/// Enough attempts that a notification which is refused now and then is never given up.
const SCHEDULE: (&str, &str) = (
    "EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S",
    "[0, 0, 1, 1, 1, 1, 1, 1, 1, 1]",
);

fn kills() -> usize {
    size("EINVOICE_DELIVERY_KILLS", 3)
}

#[each_database]
async fn notifications_survive_kills(backend: Backend) {
    let kills = kills();
    let begun = Instant::now();
    let mut deployment = Deployment::with(backend, &[SCHEDULE]).await;
    let receiver = Behaviour::RELUCTANT.start();
    deployment.set_webhook(&receiver.url()).await;
    let before = deployment.taxpayer.events().await.len();
    let bodies: Vec<_> = (0..INVOICES)
        .map(|number| invoice_numbered(&format!("HOOK{number}")))
        .collect();
    let invoices = join_all(
        bodies
            .iter()
            .map(|body| deployment.taxpayer.create_invoice(body)),
    )
    .await;
    let queries = DatabaseQueries::open(&deployment).await;
    let mut chance = StdRng::seed_from_u64(11);
    for round in 0..kills {
        for status in ["approved", "draft"] {
            let moves = invoices
                .iter()
                .map(|created| deployment.taxpayer.set_status(&created.irn, status));
            all_were_moved(join_all(moves).await);
        }
        let seen = receiver.requests();
        let what = format!("a notification in round {round}");
        eventually(&what, async || (receiver.requests() > seen).then_some(())).await;
        sleep(Duration::from_millis(chance.random_range(0..150))).await;
        let epoch = queries
            .number("SELECT MAX(epoch) FROM lanes WHERE kind = 'endpoint'")
            .await;
        deployment.restart_after_kill().await;
        all_counted_have_ended(&queries, epoch).await;
    }
    let events = deployment.intact_events().await;
    let due: BTreeSet<i64> = events[before..]
        .iter()
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect();
    assert_eq!(due.len(), INVOICES * (1 + 2 * kills));
    eventually("every notification to be accepted", async || {
        (receiver.accepted_sequences(deployment.taxpayer_id()) == due).then_some(())
    })
    .await;
    let arrivals = receiver.received_notifications();
    assert_order(&arrivals);
    for arrival in &arrivals {
        let event = &events[usize::try_from(arrival.sequence() - 1).unwrap()];
        assert_eq!(
            event["id"],
            json!(arrival.id),
            "a notification carries the id of its event"
        );
    }
    println!(
        "{backend:?}: {kills} kills while delivering, {}",
        describe_deliveries(due.len(), &arrivals, begun)
    );
}

/// Events from before there was a webhook, in more than one part, and live ones of the same IRNs beside them.
#[each_database]
async fn a_replay_survives_kills(backend: Backend) {
    let kills = kills();
    let started = Instant::now();
    let mut deployment = Deployment::with(backend, &[SCHEDULE]).await;
    let receiver = Behaviour::RELUCTANT.start();
    let bodies: Vec<_> = (0..INVOICES)
        .map(|number| invoice_numbered(&format!("OLD{number}")))
        .collect();
    let invoices = join_all(
        bodies
            .iter()
            .map(|body| deployment.taxpayer.create_invoice(body)),
    )
    .await;
    for round in 0..REPLAYED_ROUNDS {
        let status = ["approved", "draft"][round % 2];
        let moves = invoices
            .iter()
            .map(|created| deployment.taxpayer.set_status(&created.irn, status));
        all_were_moved(join_all(moves).await);
    }
    let missing = notified_sequences(&deployment.taxpayer.events().await);
    deployment.set_webhook(&receiver.url()).await;
    let path = format!(
        "/v1/system-integrators/taxpayers/{}/webhook/replay",
        deployment.taxpayer_id()
    );
    let body = json!({ "since": 0, "only": "missing" });
    let begun = deployment
        .integrator
        .call(reqwest::Method::POST, &path, Some(&body))
        .await
        .unwrap();
    assert_eq!(begun.status, 200, "{begun:?}");
    let moves = invoices
        .iter()
        .map(|created| deployment.taxpayer.set_status(&created.irn, "approved"));
    all_were_moved(join_all(moves).await);
    let queries = DatabaseQueries::open(&deployment).await;
    let mut chance = StdRng::seed_from_u64(13);
    for round in 0..kills {
        let seen = receiver.requests();
        let what = format!("a replayed notification in round {round}");
        eventually(&what, async || (receiver.requests() > seen).then_some(())).await;
        sleep(Duration::from_millis(chance.random_range(0..100))).await;
        let epoch = queries
            .number("SELECT MAX(epoch) FROM lanes WHERE kind = 'endpoint'")
            .await;
        deployment.restart_after_kill().await;
        all_counted_have_ended(&queries, epoch).await;
    }
    let due = notified_sequences(&deployment.intact_events().await);
    assert_eq!(due.len(), missing.len() + INVOICES);
    eventually("every notification to be accepted", async || {
        (receiver.accepted_sequences(deployment.taxpayer_id()) == due).then_some(())
    })
    .await;
    let arrivals = receiver.received_notifications();
    assert_order(&arrivals);
    println!(
        "{backend:?}: {kills} kills while replaying, {}",
        describe_deliveries(due.len(), &arrivals, started)
    );
    let replay = deployment.integrator.get(&path).await.unwrap().body["data"].clone();
    assert_eq!(replay["state"], json!("done"));
    assert_eq!(
        replay["queued"],
        json!(missing.len()),
        "nothing was queued twice: {replay}"
    );
}

fn all_were_moved(answers: Vec<Option<Answer>>) {
    for answer in answers {
        assert_eq!(answer.as_ref().unwrap().status, 200, "{answer:?}");
    }
}

/// Waits until what was under way at a kill has ended, where the lane had this epoch. The third kill that meets the same
/// notification puts it aside (`crashes`); here kills are to meet others each time.
async fn all_counted_have_ended(queries: &DatabaseQueries, epoch: i64) {
    let uncounted = format!(
        "SELECT COUNT(*) FROM lanes WHERE kind = 'endpoint' \
         AND (crashes > 0 OR (epoch <= {epoch} AND lease_until IS NOT NULL))"
    );
    let counted = "SELECT COUNT(*) FROM deliveries WHERE state = 'pending' AND crashes > 0";
    eventually("the end of what was under way at the kill", async || {
        (queries.number(&uncounted).await == 0 && queries.number(counted).await == 0).then_some(())
    })
    .await;
}

fn describe_deliveries(events: usize, arrivals: &[Received], begun: Instant) -> String {
    let count = arrivals.len();
    let twice = duplicates(arrivals);
    format!(
        "{events} events in {count} arrivals, {twice} of them duplicates, {:?} in all",
        begun.elapsed()
    )
}

/// Returns the numbers of the events that are notified.
fn notified_sequences(events: &[serde_json::Value]) -> BTreeSet<i64> {
    let names = ["invoice.created", "invoice.status-updated"];
    let is_named = |event: &&serde_json::Value| names.iter().any(|name| event["type"] == *name);
    events
        .iter()
        .filter(is_named)
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect()
}
