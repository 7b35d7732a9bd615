//! kill -9 while notifications are under way: each event arrives at least once, and those of one IRN in order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::time::sleep;

use crate::support::database::Backend;
use crate::support::documents::invoice;
use crate::support::patience::eventually;
use crate::support::receiver::{Arrival, Receiver};
use crate::support::scene::Scene;

const INVOICES: usize = 10;
const KILLS: usize = 5;
/// Moves of each invoice before a replay: more events than a replay queues in one part (250).
const REPLAYED_ROUNDS: usize = 30;
/// Enough attempts that a notification which is refused now and then is never given up.
const SCHEDULE: (&str, &str) = ("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[0, 0, 1, 1, 1, 1, 1, 1, 1, 1]");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_survive_kills_on_sqlite() {
    kill_while_delivering(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_survive_kills_on_postgresql() {
    if let Some(backend) = Backend::postgres() {
        kill_while_delivering(backend).await;
    }
}

async fn kill_while_delivering(backend: Backend) {
    let mut scene = Scene::with(backend, &[SCHEDULE]).await;
    let receiver = Receiver::start(7);
    scene.set_webhook(&receiver.url()).await;
    let before = scene.taxpayer.events().await.len();
    let bodies: Vec<_> = (0..INVOICES).map(|number| invoice(&format!("HOOK{number}"))).collect();
    let invoices = join_all(bodies.iter().map(|body| scene.taxpayer.created(body))).await;
    let mut chance = StdRng::seed_from_u64(11);
    for round in 0..KILLS {
        for status in ["approved", "draft"] {
            let moves = invoices.iter().map(|created| scene.taxpayer.set_status(&created.irn, status));
            assert!(join_all(moves).await.into_iter().all(|answer| answer.unwrap().status == 200));
        }
        let seen = receiver.arrivals().len();
        let what = format!("a notification in round {round}");
        eventually(&what, async || (receiver.arrivals().len() > seen).then_some(())).await;
        sleep(Duration::from_millis(chance.random_range(0..150))).await;
        scene.restart_after_kill().await;
    }
    let events = scene.intact_events().await;
    let due: BTreeSet<i64> =
        events[before..].iter().map(|event| event["sequence"].as_i64().unwrap()).collect();
    assert_eq!(due.len(), INVOICES * (1 + 2 * KILLS));
    eventually("every notification to be accepted", async || {
        let accepted = receiver.arrivals().into_iter().filter(|arrival| arrival.is_accepted);
        (accepted.map(|arrival| arrival.sequence).collect::<BTreeSet<_>>() == due).then_some(())
    })
    .await;
    let arrivals = receiver.arrivals();
    assert_order(&arrivals);
    for arrival in &arrivals {
        let event = &events[usize::try_from(arrival.sequence - 1).unwrap()];
        assert_eq!(event["id"], json!(arrival.id), "a notification carries the id of its event");
    }
    println!("{backend:?}: {KILLS} kills, {} events, {} arrivals", due.len(), arrivals.len());
    receiver.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_survives_kills_on_sqlite() {
    kill_while_replaying(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_survives_kills_on_postgresql() {
    if let Some(backend) = Backend::postgres() {
        kill_while_replaying(backend).await;
    }
}

/// Events from before there was a webhook, in more than one part, and live ones of the same IRNs beside them.
async fn kill_while_replaying(backend: Backend) {
    let mut scene = Scene::with(backend, &[SCHEDULE]).await;
    let receiver = Receiver::start(7);
    let bodies: Vec<_> = (0..INVOICES).map(|number| invoice(&format!("OLD{number}"))).collect();
    let invoices = join_all(bodies.iter().map(|body| scene.taxpayer.created(body))).await;
    for round in 0..REPLAYED_ROUNDS {
        let status = ["approved", "draft"][round % 2];
        let moves = invoices.iter().map(|created| scene.taxpayer.set_status(&created.irn, status));
        assert!(join_all(moves).await.into_iter().all(|answer| answer.unwrap().status == 200));
    }
    let missing = notified(&scene.taxpayer.events().await);
    scene.set_webhook(&receiver.url()).await;
    let path = format!("/v1/system-integrators/taxpayers/{}/webhook/replay", scene.taxpayer_id());
    let body = json!({ "since": 0, "only": "missing" });
    let begun = scene.integrator.call(reqwest::Method::POST, &path, Some(&body)).await.unwrap();
    assert_eq!(begun.status, 200, "{begun:?}");
    let moves = invoices.iter().map(|created| scene.taxpayer.set_status(&created.irn, "approved"));
    assert!(join_all(moves).await.into_iter().all(|answer| answer.unwrap().status == 200));
    let mut chance = StdRng::seed_from_u64(13);
    for round in 0..KILLS {
        let seen = receiver.arrivals().len();
        let what = format!("a replayed notification in round {round}");
        eventually(&what, async || (receiver.arrivals().len() > seen).then_some(())).await;
        sleep(Duration::from_millis(chance.random_range(0..100))).await;
        scene.restart_after_kill().await;
    }
    let due = notified(&scene.intact_events().await);
    assert_eq!(due.len(), missing.len() + INVOICES);
    eventually("every notification to be accepted", async || {
        let accepted = receiver.arrivals().into_iter().filter(|arrival| arrival.is_accepted);
        (accepted.map(|arrival| arrival.sequence).collect::<BTreeSet<_>>() == due).then_some(())
    })
    .await;
    assert_order(&receiver.arrivals());
    let replay = scene.integrator.get(&path).await.unwrap().body["data"].clone();
    assert_eq!(replay["state"], json!("done"));
    assert_eq!(replay["queued"], json!(missing.len()), "nothing was queued twice: {replay}");
    receiver.stop().await;
}

/// The numbers of the events that a scene's webhook is told of.
fn notified(events: &[serde_json::Value]) -> BTreeSet<i64> {
    let names = ["invoice.created", "invoice.status-updated"];
    let is_named = |event: &&serde_json::Value| names.iter().any(|name| event["type"] == *name);
    events.iter().filter(is_named).map(|event| event["sequence"].as_i64().unwrap()).collect()
}

/// Within an IRN an event arrives for the first time only after the one before it was accepted.
fn assert_order(arrivals: &[Arrival]) {
    let mut by_irn: BTreeMap<&str, Vec<&Arrival>> = BTreeMap::new();
    for arrival in arrivals {
        by_irn.entry(&arrival.irn).or_default().push(arrival);
    }
    for (irn, arrivals) in by_irn {
        let mut accepted = BTreeSet::new();
        let mut first = BTreeSet::new();
        for arrival in arrivals {
            let is_new = first.insert(arrival.sequence);
            assert!(!is_new || first.last() == Some(&arrival.sequence), "{irn}: an earlier event came later");
            let earlier = first.range(..arrival.sequence);
            assert!(earlier.into_iter().all(|sequence| accepted.contains(sequence)), "{irn}: not in order");
            if arrival.is_accepted {
                accepted.insert(arrival.sequence);
            }
        }
    }
}
