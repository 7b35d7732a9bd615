//! POST …/webhook/deliveries/replay: chosen deliveries, or all that match, are sent again.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::patience::eventually;
use testkit::roles::{Integrator, Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use super::deliveries::with_a_log;
use crate::support::world::World;

async fn send_again(
    integrator: &Integrator,
    taxpayer: &Taxpayer,
    query: &str,
    body: Value,
) -> Answer {
    let path = format!("{}/deliveries/replay{query}", webhook(taxpayer.id));
    integrator.send("POST", &path, &body).await
}

/// Returns the ids of the deliveries of the list, newest first.
async fn delivery_ids(integrator: &Integrator, taxpayer: &Taxpayer) -> Vec<Value> {
    let log = integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    let items = log.data()["data"].as_array().unwrap();
    items.iter().map(|item| item["id"].clone()).collect()
}

#[each_database]
async fn a_preview_counts_the_selected_deliveries_and_sends_nothing(world: &World) {
    let (taxpayer, integrator, receiver, [first, _]) = with_a_log(world).await;
    let ids = delivery_ids(&integrator, &taxpayer).await;
    let arrived = receiver.received_notifications().len();
    let counts = |deliveries: u32, delivered: u32, dead: u32| json!({ "deliveries": deliveries, "pending": 0, "delivered": delivered, "dead": dead });
    for (selection, expected) in [
        (json!({ "matching": {} }), counts(4, 3, 1)),
        (json!({ "matching": { "state": "dead" } }), counts(1, 0, 1)),
        (
            json!({ "matching": { "event": "invoice.created" } }),
            counts(2, 1, 1),
        ),
        (
            json!({ "matching": { "irn": first["irn"] } }),
            counts(2, 2, 0),
        ),
        (
            json!({ "matching": { "event": "invoice.created", "state": "pending" } }),
            counts(0, 0, 0),
        ),
        (json!({ "delivery_ids": [ids[0], ids[2]] }), counts(2, 1, 1)),
    ] {
        let answer = send_again(&integrator, &taxpayer, "?preview=true", selection.clone()).await;
        assert_eq!(*answer.expect_status(200).data(), expected, "{selection}");
    }
    let replays = integrator.replays(taxpayer.id, "").await.expect_status(200);
    assert_eq!(replays.data()["total"], json!(0));
    assert_eq!(receiver.received_notifications().len(), arrived);
}

#[each_database]
async fn only_the_selected_deliveries_are_sent_again(world: &World) {
    let (taxpayer, integrator, receiver, _) = with_a_log(world).await;
    let ids = delivery_ids(&integrator, &taxpayer).await;
    let arrived = receiver.received_notifications().len();
    let body = json!({ "delivery_ids": [ids[0], ids[2]] });
    let started = send_again(&integrator, &taxpayer, "", body)
        .await
        .expect_status(202);
    assert_eq!(started.data()["only"], json!("selected"));
    let place = started.header("location").to_owned();
    let done = async || {
        let found = integrator.get(&place).await.expect_status(200);
        (found.data()["state"] == json!("done")).then(|| found.data().clone())
    };
    let done = eventually("the end of the replay", done).await;
    assert_eq!(done["queued"], json!(2));
    let mut again: Vec<_> = receiver.wait_for(arrived + 2).await;
    let mut again: Vec<_> = again.drain(arrived..).map(|one| one.kind()).collect();
    again.sort();
    assert_eq!(again, ["invoice.created", "invoice.status-updated"]);
    let body = json!({ "matching": { "event": "invoice.created" } });
    send_again(&integrator, &taxpayer, "", body)
        .await
        .expect_status(202);
    let mut all = receiver.wait_for(arrived + 4).await;
    let kinds: Vec<_> = all.drain(arrived + 2..).map(|one| one.kind()).collect();
    assert_eq!(kinds, ["invoice.created"; 2]);
}

#[on_sqlite]
async fn what_is_no_delivery_to_the_endpoint_is_refused(world: &World) {
    let (taxpayer, integrator, _, _) = with_a_log(world).await;
    let ids = delivery_ids(&integrator, &taxpayer).await;
    let unknown = uuid::Uuid::nil();
    let body = json!({ "delivery_ids": [ids[0], unknown] });
    send_again(&integrator, &taxpayer, "", body)
        .await
        .expect_faults(&["delivery_ids.1"]);
    send_again(&integrator, &taxpayer, "", json!({}))
        .await
        .expect_faults(&["delivery_ids"]);
    let added = json!({ "url": "https://warehouse.example.com/", "enabled_events": [] });
    let endpoints = format!("{}/endpoints", webhook(taxpayer.id));
    let added = integrator
        .send("POST", &endpoints, &added)
        .await
        .expect_status(201);
    let id = added.data()["id"].as_str().unwrap();
    let path = format!("{endpoints}/{id}/deliveries/replay");
    let body = json!({ "delivery_ids": [ids[0]] });
    integrator
        .send("POST", &path, &body)
        .await
        .expect_faults(&["delivery_ids.0"]);
    let body = json!({ "matching": {} });
    let nothing = integrator
        .send("POST", &path, &body)
        .await
        .expect_status(202);
    assert!(nothing.warnings().contains("no delivery matches"));
}
