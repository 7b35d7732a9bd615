//! kill -9 while taxpayers are notified of an outage: each of them is notified of its start and its end once, whichever
//! process does it, and a restart with closed breakers ends nothing.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use sandbox::{FaultKind, FaultOrder};
use serde_json::{Value, json};
use testkit::documents::{Registration, invoice_numbered, submission, taxpayer};
use testkit::patience::eventually;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::{Client, assert_gapless};
use crate::support::deployment::Deployment;

/// More than one part of a walk.
const SUBSCRIBERS: usize = 40;
const KILLS: usize = 2;
/// Subscribers that are made at a time.
const AT_ONCE: usize = 4;
const STARTED: &str = "authority.outage-started";
const ENDED: &str = "authority.outage-ended";
const CLEAR_AFTER: (&str, &str) = ("EINVOICE__AUTHORITY__OUTAGE_CLEAR_AFTER_S", "2");

/// On PostgreSQL with a second process beside the one that is killed, which sees the same outage.
#[each_database]
async fn each_taxpayer_is_notified_once(backend: Backend) {
    let mut deployment = Deployment::with(backend, &[CLEAR_AFTER]).await;
    let second = if backend == Backend::Postgres {
        Some(deployment.another_process("second").await)
    } else {
        None
    };
    let making = stream::iter(0..SUBSCRIBERS).map(|_| subscriber(&deployment));
    let subscribers: Vec<_> = making.buffered(AT_ONCE).collect().await;
    let mut chance = StdRng::seed_from_u64(17);
    deployment
        .authority
        .state()
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    for number in 0..4 {
        deployment.submit(&format!("OUT{number}")).await;
        if let Some((_, client)) = &second {
            submit_at(client, &format!("THERE{number}")).await;
        }
    }
    kill_some_times(&mut deployment, &subscribers, STARTED, &mut chance).await;
    wait_until_all_notified(&subscribers, STARTED).await;
    // Longer than the quiet that ends an outage, with breakers that are new.
    sleep(Duration::from_secs(3)).await;
    for subscriber in &subscribers {
        assert_eq!(
            outage_events(subscriber).await,
            [STARTED],
            "the authority is still out"
        );
    }
    deployment.authority.state().clear_faults();
    kill_some_times(&mut deployment, &subscribers, ENDED, &mut chance).await;
    wait_until_all_notified(&subscribers, ENDED).await;
    for subscriber in &subscribers {
        assert_eq!(outage_events(subscriber).await, [STARTED, ENDED]);
        assert_gapless(&subscriber.events().await);
    }
    deployment.intact_events().await;
    println!(
        "{backend:?}: {SUBSCRIBERS} taxpayers notified of one outage, {} kills meanwhile",
        2 * KILLS
    );
}

/// Kills the process when the first have been notified, and some more times soon after each start.
async fn kill_some_times(
    deployment: &mut Deployment,
    subscribers: &[Client],
    name: &str,
    chance: &mut StdRng,
) {
    eventually("the first taxpayer to be notified", async || {
        outage_events(&subscribers[0])
            .await
            .iter()
            .any(|one| one == name)
            .then_some(())
    })
    .await;
    for _ in 0..KILLS {
        sleep(Duration::from_millis(chance.random_range(0..120))).await;
        deployment.restart_after_kill().await;
    }
}

async fn wait_until_all_notified(subscribers: &[Client], name: &str) {
    for subscriber in subscribers {
        eventually("every taxpayer to be notified", async || {
            outage_events(subscriber)
                .await
                .iter()
                .any(|one| one == name)
                .then_some(())
        })
        .await;
    }
}

/// Returns the outage events of a taxpayer, in the order of its log.
async fn outage_events(subscriber: &Client) -> Vec<String> {
    let names = subscriber
        .events()
        .await
        .into_iter()
        .map(|event| event["type"].as_str().unwrap().to_owned());
    names
        .filter(|name| name.starts_with("authority."))
        .collect()
}

/// A taxpayer that wants notifications; nobody answers at its URL.
async fn subscriber(deployment: &Deployment) -> Client {
    let integrators = |path: &str| format!("/v1/system-integrators/taxpayers{path}");
    let data = call_as_integrator(deployment, Method::POST, &integrators(""), &taxpayer()).await;
    let id = data["id"].as_i64().unwrap();
    let hook =
        json!({ "webhook_url": "http://127.0.0.1:9/nobody", "enabled_events": [STARTED, ENDED] });
    call_as_integrator(
        deployment,
        Method::PUT,
        &integrators(&format!("/{id}/webhook")),
        &hook,
    )
    .await;
    let rotated = call_as_integrator(
        deployment,
        Method::POST,
        &integrators(&format!("/{id}/api-key/rotate")),
        &json!({}),
    )
    .await;
    Client::new(
        deployment.service.url(),
        rotated["api_key"].as_str().unwrap(),
    )
}

async fn call_as_integrator(
    deployment: &Deployment,
    method: Method,
    path: &str,
    body: &Value,
) -> Value {
    let answer = deployment
        .integrator
        .call(method, path, Some(body))
        .await
        .unwrap();
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer.body["data"].clone()
}

/// A run that is begun at another process.
async fn submit_at(client: &Client, invoice_no: &str) {
    client.create_invoice(&invoice_numbered(invoice_no)).await;
    client
        .start_run("submit", &submission(&Registration::demo(), invoice_no))
        .await;
}
