//! /v1/system-integrators/taxpayers/{id}/webhook/endpoints: endpoints beside the one that Update Webhook sets.

use serde_json::{Value, json};
use testkit::answer::{Answer, stable_text};
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Received, Receiver, Reply};
use testkit::roles::{Integrator, Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const CREATED: &str = "invoice.created";
const UPDATED: &str = "invoice.status-updated";
const URL: &str = "http://127.0.0.1:9/notifications";

fn endpoints(taxpayer: &Taxpayer) -> String {
    format!("{}/endpoints", webhook(taxpayer.id))
}

fn endpoint(taxpayer: &Taxpayer, id: &str) -> String {
    format!("{}/{id}", endpoints(taxpayer))
}

/// Adds an endpoint that is attempted once. Returns its id and its secret.
async fn add(
    integrator: &Integrator,
    taxpayer: &Taxpayer,
    url: &str,
    events: &[&str],
) -> (String, String) {
    let body = json!({ "url": url, "enabled_events": events, "retry_schedule_s": [0] });
    let added = integrator
        .send("POST", &endpoints(taxpayer), &body)
        .await
        .expect_status(201);
    let text = |name: &str| added.data()[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

fn ids(answer: &Answer) -> Vec<&str> {
    let all = answer.data().as_array().unwrap();
    all.iter().map(|one| one["id"].as_str().unwrap()).collect()
}

fn kinds(received: &[Received]) -> Vec<String> {
    received.iter().map(Received::kind).collect()
}

/// Waits until the endpoint has as many deliveries in this state.
async fn wait_for(integrator: &Integrator, at: &str, state: &str, count: u64) {
    eventually(&format!("{count} {state} deliveries"), async || {
        let found = integrator
            .get(&format!("{at}/deliveries?state={state}"))
            .await
            .expect_status(200);
        (found.data()["total"] == json!(count)).then_some(())
    })
    .await;
}

#[each_database]
async fn an_endpoint_is_added_shown_changed_and_deleted(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let all = endpoints(&taxpayer);
    let none = integrator.get(&all).await.expect_status(200);
    assert_eq!(none.data(), &json!([]));
    let body = json!({
        "url": URL, "enabled_events": [CREATED, "invoice.exploded"], "description": "The warehouse",
        "retry_schedule_s": [0, 60],
    });
    let added = integrator
        .send("POST", &all, &body)
        .await
        .expect_status(201);
    assert_eq!(added.message(), "Webhook endpoint created successfully");
    assert!(added.warnings().contains("invoice.exploded"));
    assert_eq!(added.headers["cache-control"], "no-store");
    let unsteady = ["/id", "/secret", "/created_at", "/updated_at"];
    insta::assert_snapshot!(stable_text(added.data(), &unsteady), @r#"
    {
      "created_at": "…",
      "description": "The warehouse",
      "disabled_reason": null,
      "enabled_events": [
        "invoice.created",
        "invoice.exploded"
      ],
      "health": {
        "failing_since": null,
        "failures": 0,
        "parked_until": null,
        "state": "working"
      },
      "id": "…",
      "is_active": true,
      "public_key": null,
      "retry_schedule_s": [
        0,
        60
      ],
      "secret": "…",
      "updated_at": "…",
      "url": "http://127.0.0.1:9/notifications"
    }
    "#);
    let id = added.data()["id"].as_str().unwrap().to_owned();
    integrator
        .set_webhook(taxpayer.id, URL, &[CREATED])
        .await
        .expect_status(200);
    let listed = integrator.get(&all).await.expect_status(200);
    assert_eq!(ids(&listed), ["default", id.as_str()]);

    let one = endpoint(&taxpayer, &id);
    let shown = integrator.get(&one).await.expect_status(200);
    assert_eq!(shown.data().get("secret"), None, "it is shown only once");
    assert_eq!(&listed.data()[1], shown.data());
    let change =
        json!({ "enabled_events": [UPDATED], "description": null, "retry_schedule_s": null });
    let changed = integrator
        .send("PATCH", &one, &change)
        .await
        .expect_status(200);
    for (field, value) in [
        ("url", json!(URL)),
        ("enabled_events", json!([UPDATED])),
        ("description", json!(null)),
        ("retry_schedule_s", json!(null)),
    ] {
        assert_eq!(changed.data()[field], value, "{field}");
    }
    let default = endpoint(&taxpayer, "default");
    let moved = json!({ "url": "http://127.0.0.1:10/", "description": "The ERP" });
    integrator
        .send("PATCH", &default, &moved)
        .await
        .expect_status(200);
    let contract = integrator.webhook(taxpayer.id).await.expect_status(200);
    assert_eq!(contract.data()["webhook_url"], "http://127.0.0.1:10/");
    assert_eq!(contract.data()["enabled_events"], json!([CREATED]));

    let deleted = integrator.call("DELETE", &one).await.expect_status(200);
    assert_eq!(deleted.data(), &json!({ "id": id, "deleted": true }));
    assert!(deleted.message().contains("undelivered deliveries ended"));
    let left = integrator.get(&all).await.expect_status(200);
    assert_eq!(ids(&left), ["default"]);
    let gone = integrator.call("DELETE", &one).await;
    gone.expect_refusal(404, "ENDPOINT_NOT_FOUND");
}

#[on_sqlite]
async fn what_is_no_endpoint_of_the_taxpayer_is_not_found(world: &World) {
    let taxpayer = world.newcomer().await;
    let other = world.newcomer().await;
    let integrator = world.integrator();
    let (foreign, _) = add(&integrator, &other, URL, &[CREATED]).await;
    for id in [foreign.as_str(), "0", "-1", "007", "other", "default"] {
        let one = endpoint(&taxpayer, id);
        for (method, end) in [
            ("GET", ""),
            ("PATCH", ""),
            ("DELETE", ""),
            ("POST", "/test"),
            ("POST", "/secret"),
            ("POST", "/enable"),
            ("POST", "/replay"),
            ("GET", "/replay"),
            ("GET", "/deliveries"),
        ] {
            let path = format!("{one}{end}");
            let answer = if method == "GET" {
                integrator.get(&path).await
            } else {
                let body = json!({ "since": 1, "only": "all" });
                integrator.send(method, &path, &body).await
            };
            answer.expect_refusal(404, "ENDPOINT_NOT_FOUND");
        }
    }
}

#[on_sqlite]
async fn faults_and_limits_say_what_to_do(world: &World) {
    let taxpayer = world.newcomer().await;
    let integrator = world.integrator();
    let all = endpoints(&taxpayer);
    for (body, faults) in [
        (json!({}), &["enabled_events", "url"][..]),
        (
            json!({ "url": "https://10.0.0.1/", "enabled_events": [CREATED] }),
            &["url"],
        ),
        (
            json!({ "url": URL, "enabled_events": [7], "retry_schedule_s": [] }),
            &["enabled_events.0", "retry_schedule_s"],
        ),
    ] {
        let answer = integrator.send("POST", &all, &body).await;
        answer.expect_faults(faults);
    }
    let mut added = Vec::new();
    for _ in 0..10 {
        added.push(add(&integrator, &taxpayer, URL, &[CREATED]).await.0);
    }
    let one_more = json!({ "url": URL, "enabled_events": [CREATED] });
    let refused = integrator
        .send("POST", &all, &one_more)
        .await
        .expect_faults(&["url"]);
    assert!(
        refused.message().contains("delete one of them first"),
        "{}",
        refused.message()
    );
    integrator
        .call("DELETE", &endpoint(&taxpayer, &added[0]))
        .await
        .expect_status(200);
    integrator
        .send("POST", &all, &one_more)
        .await
        .expect_status(201);
    integrator
        .set_webhook(taxpayer.id, URL, &[])
        .await
        .expect_status(200);
    let default = endpoint(&taxpayer, "default");
    let stays = integrator
        .call("DELETE", &default)
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    assert!(stays.message().contains("enabled_events"));
}

#[each_database]
async fn each_endpoint_gets_its_own_events_signed_with_its_own_secret(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let [erp, warehouse] = [Receiver::start(), Receiver::start()];
    integrator
        .set_webhook(taxpayer.id, &erp.url(), &[CREATED, UPDATED])
        .await
        .expect_status(200);
    let erp_secret = integrator.rotate_secret(taxpayer.id).await;
    let (id, secret) = add(&integrator, &taxpayer, &warehouse.url(), &[UPDATED]).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let at_erp = erp.wait_for(2).await;
    let at_warehouse = warehouse.wait_for(1).await;
    assert_eq!(kinds(&at_erp), [CREATED, UPDATED]);
    assert_eq!(kinds(&at_warehouse), [UPDATED]);
    assert_eq!(
        (&at_warehouse[0].id, at_warehouse[0].body()),
        (&at_erp[1].id, at_erp[1].body()),
        "the same event"
    );
    assert!(at_erp[1].is_signed_with(&erp_secret) && !at_erp[1].is_signed_with(&secret));
    assert!(at_warehouse[0].is_signed_with(&secret));

    let one = endpoint(&taxpayer, &id);
    let rotated = integrator
        .call("POST", &format!("{one}/secret"))
        .await
        .expect_status(200);
    let newer = rotated.data()["secret"].as_str().unwrap().to_owned();
    integrator
        .call("POST", &format!("{one}/test"))
        .await
        .expect_status(200);
    let test = warehouse.wait_for(2).await.pop().unwrap();
    assert_eq!(test.kind(), "webhook.test");
    assert!(test.is_signed_with(&newer) && test.is_signed_with(&secret));
    assert!(!test.is_signed_with(&erp_secret));
}

#[each_database]
async fn an_endpoint_that_fails_delays_no_other_and_is_replayed_alone(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let [erp, warehouse] = [Receiver::start(), Receiver::start()];
    warehouse.answer_always(Reply::Status(500));
    integrator
        .set_webhook(taxpayer.id, &erp.url(), &[CREATED])
        .await
        .expect_status(200);
    let (id, _) = add(&integrator, &taxpayer, &warehouse.url(), &[CREATED]).await;
    let one = endpoint(&taxpayer, &id);
    for _ in 0..3 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    erp.wait_for(3).await;
    wait_for(&integrator, &one, "dead", 3).await;
    wait_for(&integrator, &endpoint(&taxpayer, "default"), "delivered", 3).await;
    let health = |answer: Answer| answer.data()["health"]["state"].clone();
    let shown = integrator.get(&one).await.expect_status(200);
    assert_eq!(health(shown), "failing");
    let contract = integrator.webhook(taxpayer.id).await.expect_status(200);
    assert_eq!(health(contract), "working");
    let log = integrator.deliveries(taxpayer.id, "").await;
    assert_eq!(log.data()["total"], json!(3), "those of the default one");
    let dead = taxpayer.get("/v1/tax-payers/webhook/dead-letters").await;
    assert_eq!(dead.data()["total"], json!(3), "of all endpoints");

    warehouse.answer_shares(&[]);
    let failed = json!({ "since": 1, "only": "failed" });
    let replay = integrator
        .send("POST", &format!("{one}/replay"), &failed)
        .await
        .expect_status(200);
    let replay = replay.data()["id"].as_str().unwrap().to_owned();
    wait_for(&integrator, &one, "delivered", 3).await;
    let latest = integrator.get(&format!("{one}/replay")).await;
    assert_eq!(latest.data()["id"].as_str(), Some(replay.as_str()));
    let of_default = format!("{}/replay", webhook(taxpayer.id));
    let of_default = integrator.get(&of_default).await.expect_status(200);
    assert_eq!(of_default.data(), &Value::Null, "it has none of its own");
    let own = integrator.replay(taxpayer.id, json!(1), "failed").await;
    let own = own.expect_status(200);
    assert_eq!(own.data()["endpoint_id"], "default");
    let list = integrator.replays(taxpayer.id, "").await.expect_status(200);
    assert_eq!(list.data()["total"], json!(2), "{}", list.text);
    let listed = list.data()["data"].as_array().unwrap().iter();
    let listed: Vec<_> = listed
        .map(|one| (&one["id"], &one["endpoint_id"]))
        .collect();
    assert_eq!(
        listed,
        [
            (&own.data()["id"], &json!("default")),
            (&json!(replay), &json!(id)),
        ]
    );
    let found = integrator.replays(taxpayer.id, &format!("/{replay}")).await;
    assert_eq!(found.data()["endpoint_id"], json!(id));
    assert_eq!(erp.received_notifications().len(), 3, "nothing comes twice");
}

#[each_database]
async fn a_disabled_endpoint_is_enabled_alone_with_what_it_missed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let [erp, warehouse] = [Receiver::start(), Receiver::start()];
    integrator
        .set_webhook(taxpayer.id, &erp.url(), &[CREATED])
        .await
        .expect_status(200);
    let (id, _) = add(&integrator, &taxpayer, &warehouse.url(), &[CREATED]).await;
    let one = endpoint(&taxpayer, &id);
    warehouse.answer_next(&[Reply::Status(410)]);
    taxpayer.invoice(&documents::invoice()).await;
    eventually("an endpoint that is gone", async || {
        let shown = integrator.get(&one).await;
        (shown.data()["health"]["state"] == "disabled").then_some(())
    })
    .await;
    taxpayer.invoice(&documents::invoice()).await;
    erp.wait_for(2).await;
    let enabled = integrator
        .send(
            "POST",
            &format!("{one}/enable"),
            &json!({ "replay": "missing" }),
        )
        .await
        .expect_status(200);
    assert_eq!(enabled.data()["is_active"], json!(true));
    let arrived = warehouse.wait_for(2).await;
    assert_eq!(
        arrived[1].sequence(),
        erp.received_notifications()[1].sequence()
    );
}

#[each_database]
async fn what_was_not_delivered_ends_with_its_endpoint(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let [erp, warehouse] = [Receiver::start(), Receiver::start()];
    integrator
        .set_webhook(taxpayer.id, &erp.url(), &[CREATED])
        .await
        .expect_status(200);
    let (id, _) = add(&integrator, &taxpayer, &warehouse.url(), &[CREATED]).await;
    let one = endpoint(&taxpayer, &id);
    warehouse.answer_next(&[Reply::Status(500)]);
    taxpayer.invoice(&documents::invoice()).await;
    wait_for(&integrator, &one, "dead", 1).await;
    warehouse.hold(true);
    taxpayer.invoice(&documents::invoice()).await;
    eventually("an attempt under way", async || {
        (warehouse.requests() == 2).then_some(())
    })
    .await;
    integrator.call("DELETE", &one).await.expect_status(200);
    warehouse.hold(false);
    taxpayer.invoice(&documents::invoice()).await;
    erp.wait_for(3).await;
    wait_for(&integrator, &endpoint(&taxpayer, "default"), "delivered", 3).await;
    let dead = taxpayer.get("/v1/tax-payers/webhook/dead-letters").await;
    assert_eq!(dead.data()["total"], json!(0));
    assert_eq!(warehouse.requests(), 2, "nothing more comes");
    let (again, _) = add(&integrator, &taxpayer, &warehouse.url(), &[CREATED]).await;
    assert_ne!(again, id, "an id is never used again");
    taxpayer.invoice(&documents::invoice()).await;
    eventually("the event that the new endpoint gets", async || {
        (warehouse.requests() == 3).then_some(())
    })
    .await;
}
