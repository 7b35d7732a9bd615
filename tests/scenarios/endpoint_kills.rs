//! One of two endpoints of a taxpayer hangs, and the process is killed meanwhile: the other one gets every event in order,
//! and the hanging one gets them all when it answers again.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use serde_json::json;
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::deployment::Deployment;
use crate::support::receiver::{Behaviour, assert_order};

const INVOICES: usize = 6;
/// A third kill that meets the same notification puts it aside, and the hanging endpoint has the same ones under way.
const KILLS: usize = 2;
const SCHEDULE: (&str, &str) = (
    "EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S",
    "[0, 0, 1, 1, 1, 1, 1, 1, 1, 1]",
);

#[each_database]
async fn an_endpoint_that_hangs_delays_no_other_through_kills(backend: Backend) {
    let mut deployment = Deployment::with(backend, &[SCHEDULE]).await;
    let hanging = Behaviour::PROMPT.start();
    hanging.hold(true);
    let other = Behaviour::RELUCTANT.start();
    deployment.set_webhook(&hanging.url()).await;
    add_endpoint(&deployment, &other.url()).await;
    let before = deployment.taxpayer.events().await.len();
    let bodies: Vec<_> = (0..INVOICES)
        .map(|number| invoice_numbered(&format!("TWO{number}")))
        .collect();
    let creates = bodies
        .iter()
        .map(|body| deployment.taxpayer.create_invoice(body));
    let invoices = join_all(creates).await;
    let mut chance = StdRng::seed_from_u64(17);
    for _ in 0..KILLS {
        for status in ["approved", "draft"] {
            let moves = invoices
                .iter()
                .map(|created| deployment.taxpayer.set_status(&created.irn, status));
            let answers = join_all(moves).await;
            assert!(
                answers
                    .into_iter()
                    .all(|answer| answer.unwrap().status == 200)
            );
        }
        let seen = other.requests();
        eventually("a notification", async || {
            (other.requests() > seen).then_some(())
        })
        .await;
        sleep(Duration::from_millis(chance.random_range(0..150))).await;
        deployment.restart_after_kill().await;
    }
    let events = deployment.intact_events().await;
    let due: BTreeSet<i64> = events[before..]
        .iter()
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect();
    assert_eq!(due.len(), INVOICES * (1 + 2 * KILLS));
    let taxpayer = deployment.taxpayer_id();
    eventually("every event at the endpoint that answers", async || {
        (other.accepted_sequences(taxpayer) == due).then_some(())
    })
    .await;
    assert_eq!(hanging.answers(), 0, "it hangs all the while");
    hanging.hold(false);
    eventually("every event at the endpoint that hung", async || {
        (hanging.accepted_sequences(taxpayer) == due).then_some(())
    })
    .await;
    for receiver in [&hanging, &other] {
        let arrivals = receiver.received_notifications();
        assert_order(&arrivals);
        for arrival in &arrivals {
            let event = &events[usize::try_from(arrival.sequence() - 1).unwrap()];
            assert_eq!(event["id"], json!(arrival.id), "one id at each endpoint");
        }
    }
}

async fn add_endpoint(deployment: &Deployment, url: &str) {
    let path = format!(
        "/v1/system-integrators/taxpayers/{}/webhook/endpoints",
        deployment.taxpayer_id()
    );
    let events = ["invoice.created", "invoice.status-updated"];
    let body = json!({ "url": url, "enabled_events": events });
    let added = deployment
        .integrator
        .call(Method::POST, &path, Some(&body))
        .await
        .unwrap();
    assert_eq!(added.status, 201, "{added:?}");
}
