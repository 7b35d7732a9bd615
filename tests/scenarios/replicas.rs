//! Three replicas on one PostgreSQL: each shows all of them, an order about a breaker reaches all, a killed one is named
//! within seconds, and one that stops in order is not missed.

use std::time::Instant;

use reqwest::Method;
use serde_json::Value;
use testkit::patience::eventually;
use testkit::{Backend, on_postgresql};

use crate::support::client::Client;
use crate::support::deployment::Deployment;

#[on_postgresql]
async fn replicas_know_of_each_other(backend: Backend) {
    let deployment = Deployment::open(backend).await;
    let (mut second, _) = deployment.another_process("second").await;
    let (mut third, _) = deployment.another_process("third").await;
    let operator = deployment.operator();
    let everywhere = [
        operator.at(deployment.service.url()),
        operator.at(second.url()),
        operator.at(third.url()),
    ];
    for client in &everywhere {
        eventually("all three replicas", async || {
            (states(client).await? == ["ready"; 3]).then_some(())
        })
        .await;
    }
    let answers = [
        answered_by(&everywhere[0]).await,
        answered_by(&everywhere[1]).await,
        answered_by(&everywhere[2]).await,
    ];
    assert_ne!(answers[0], answers[1]);
    assert_ne!(answers[1], answers[2]);

    for (order, expected) in [("trip", true), ("reset", false)] {
        let path = format!("/ops/breakers/sign/{order}");
        let given = everywhere[0].call(Method::POST, &path, None).await.unwrap();
        assert_eq!(given.status, 200, "{given:?}");
        for (client, url) in everywhere.iter().zip(&answers) {
            eventually(&format!("{order} at {url}"), async || {
                (is_tripped(client).await? == expected).then_some(())
            })
            .await;
        }
    }

    let killed = Instant::now();
    second.kill_9();
    for client in &everywhere[..1] {
        let incident = eventually("the incident", async || missing(client).await).await;
        println!("a killed replica was named after {:?}", killed.elapsed());
        assert_eq!(incident["count"], 1);
        let summary = incident["summary"].as_str().unwrap();
        assert!(summary.contains(&answers[1]), "{summary}");
    }
    second.restart().await;
    eventually("no replica missing after its restart", async || {
        let is_missing = missing(&everywhere[0]).await.is_some();
        (!is_missing && states(&everywhere[0]).await? == ["ready"; 3]).then_some(())
    })
    .await;
    assert!(
        second
            .output()
            .contains("the process before this one did not stop in order"),
        "{}",
        second.output()
    );

    third.signal("TERM");
    third.wait_for_end().await;
    eventually("two replicas", async || {
        (states(&everywhere[0]).await? == ["ready"; 2]).then_some(())
    })
    .await;
    assert_eq!(missing(&everywhere[0]).await, None, "it stopped in order");
}

/// The states of all replicas, as one of them shows them.
async fn states(client: &Client) -> Option<Vec<String>> {
    let answer = client.get("/ops/replicas").await?;
    let replicas = answer.body["data"]["replicas"].as_array()?.clone();
    let states = replicas
        .iter()
        .map(|replica| replica["state"].as_str().unwrap().to_owned());
    Some(states.collect())
}

/// True if the replica that answers shows its own breaker of signatures as tripped.
async fn is_tripped(client: &Client) -> Option<bool> {
    let answer = client.get("/ops/replicas").await?;
    let data = &answer.body["data"];
    let own = data["replicas"]
        .as_array()?
        .iter()
        .find(|replica| replica["name"] == data["answered_by"])?;
    let sign = own["breakers"]
        .as_array()?
        .iter()
        .find(|breaker| breaker["operation"] == "sign")?;
    sign["is_tripped"].as_bool()
}

async fn answered_by(client: &Client) -> String {
    let answer = client.get("/ops/replicas").await.unwrap();
    answer.body["data"]["answered_by"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn missing(client: &Client) -> Option<Value> {
    let answer = client.get("/ops/incidents").await?;
    let incidents = answer.body["data"]["incidents"].as_array()?;
    incidents
        .iter()
        .find(|incident| incident["incident"] == "replica-missing")
        .cloned()
}
