//! A batch is there with all of its invoices or not at all, at whatever moment the process is killed.

use std::collections::BTreeSet;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::invoice_numbered;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::Client;
use crate::support::deployment::Deployment;

const INVOICES: usize = 150;
const KILLS: usize = 5;
const SEED: u64 = 20_261_121;

async fn create(client: &Client, batch: usize) -> Option<Answer> {
    let invoices: Vec<_> = (0..INVOICES)
        .map(|at| invoice_numbered(&invoice_no(batch, at)))
        .collect();
    let body = json!({ "invoices": invoices });
    client
        .call(Method::POST, "/v1/tax-payers/invoices/bulk", Some(&body))
        .await
}

fn invoice_no(batch: usize, at: usize) -> String {
    format!("B{batch}N{at}")
}

#[each_database]
async fn batches_survive_kills_whole(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let mut chance = StdRng::seed_from_u64(SEED);
    let mut answered = BTreeSet::new();
    // A process that has just begun is slower than it will be: that is the one to be killed.
    deployment.restart_after_kill().await;
    let start = Instant::now();
    create(&deployment.taxpayer, KILLS)
        .await
        .expect("an answer where nothing is killed");
    let work = start.elapsed();
    for batch in 0..KILLS {
        let client = deployment.taxpayer.clone();
        let sent = tokio::spawn(async move { create(&client, batch).await });
        sleep(chance.random_range(work / 2..work * 2)).await;
        deployment.restart_after_kill().await;
        if let Some(answer) = sent.await.unwrap() {
            assert_eq!(
                (answer.status, &answer.body["data"]["created"]),
                (201, &json!(INVOICES)),
                "{answer:?}"
            );
            answered.insert(batch);
        }
    }

    let mut there = 0;
    for batch in 0..KILLS {
        let known = count_known(&deployment.taxpayer, batch).await;
        assert!(
            known == 0 || known == INVOICES,
            "{known} invoices of batch {batch} are there"
        );
        assert!(
            known == INVOICES || !answered.contains(&batch),
            "batch {batch} was answered"
        );
        there += usize::from(known == INVOICES);
        let again = create(&deployment.taxpayer, batch)
            .await
            .expect("an answer");
        assert_eq!(
            again.body["data"]["created"],
            json!(INVOICES - known),
            "batch {batch} sent again"
        );
    }

    let events = deployment.intact_events().await;
    let completed: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "invoice.batch-completed")
        .collect();
    assert_eq!(
        completed.len(),
        1 + there + KILLS,
        "of the first, of each that is there, of each sent again"
    );
    for event in completed {
        assert_whole(&deployment.taxpayer, &event["data"]).await;
    }
    println!(
        "{backend:?}: {KILLS} kills around {work:?}, {} batches answered, {there} there",
        answered.len()
    );
}

/// How many invoices of a batch there are.
async fn count_known(client: &Client, batch: usize) -> usize {
    let path = format!("/v1/tax-payers/invoices?per_page=1&q=b{batch}n");
    let answer = client.get(&path).await.expect("a list");
    usize::try_from(answer.body["data"]["total"].as_u64().unwrap()).unwrap()
}

/// What the event of a batch says is what the batch says, and what the list has of it.
async fn assert_whole(client: &Client, said: &Value) {
    let batch_no = said["batch_no"].as_str().unwrap();
    let path = format!("/v1/tax-payers/invoices/batches/{batch_no}");
    let batch = client.get(&path).await.expect("a batch").body["data"].clone();
    for name in ["created", "duplicates", "failed"] {
        assert_eq!(batch[name], said[name], "{name} of {batch_no}");
    }
    assert_eq!(batch["items"].as_array().unwrap().len(), INVOICES);
    let path = format!("/v1/tax-payers/invoices?per_page=1&batch_no={batch_no}");
    let listed = client.get(&path).await.expect("a list");
    assert_eq!(listed.body["data"]["total"], said["created"], "{batch_no}");
}
