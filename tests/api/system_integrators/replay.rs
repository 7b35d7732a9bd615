//! Replays of a webhook: of a part of its log, of one delivery, and of what it missed while it was disabled.

use serde_json::{Value, json};
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Received, Receiver, Reply};
use testkit::roles::{Integrator, Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const CREATED: &str = "invoice.created";
const UPDATED: &str = "invoice.status-updated";
const BOTH: [&str; 2] = [CREATED, UPDATED];
/// Deliveries to one endpoint at once: `webhooks.max_concurrent_per_endpoint`.
const AT_ONCE: usize = 64;

async fn settled(integrator: &Integrator, taxpayer: &Taxpayer) -> Value {
    let look = async || {
        let replay = integrator
            .get(&format!("{}/replay", webhook(taxpayer.id)))
            .await
            .expect_status(200);
        let open = integrator
            .deliveries(taxpayer.id, "?state=pending")
            .await
            .expect_status(200);
        let is_over =
            replay.data()["state"] != json!("running") && open.data()["total"] == json!(0);
        is_over.then(|| replay.data().clone())
    };
    eventually("the end of a replay and of its deliveries", look).await
}

async fn subscribed(world: &World, receiver: &Receiver, events: &[&str]) -> (Taxpayer, Integrator) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), events)
        .await
        .expect_status(200);
    (taxpayer, integrator)
}

/// Makes dead letters of the events of so many new invoices.
async fn dead_letters(
    taxpayer: &Taxpayer,
    integrator: &Integrator,
    receiver: &Receiver,
    count: usize,
) {
    receiver.answer_always(Reply::Status(500));
    for _ in 0..count {
        taxpayer.invoice(&documents::invoice()).await;
    }
    let dead = async || {
        let log = integrator
            .deliveries(taxpayer.id, "?state=dead")
            .await
            .expect_status(200);
        (log.data()["total"] == json!(count)).then_some(())
    };
    eventually("dead letters", dead).await;
    receiver.answer_always(Reply::Status(204));
}

fn accepted(receiver: &Receiver) -> Vec<Received> {
    receiver
        .received_notifications()
        .into_iter()
        .filter(|one| one.answered == Reply::Status(204))
        .collect()
}

fn sequences(received: &[Received]) -> Vec<i64> {
    received
        .iter()
        .map(|one| one.body()["sequence"].as_i64().unwrap())
        .collect()
}

async fn until_inactive(integrator: &Integrator, taxpayer: &Taxpayer) {
    let disabled = async || {
        let record = integrator.webhook(taxpayer.id).await.expect_status(200);
        (record.data()["is_active"] == json!(false)).then_some(())
    };
    eventually("a disabled endpoint", disabled).await;
}

#[each_database]
async fn dead_letters_are_replayed_with_the_id_of_their_event(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &[CREATED]).await;
    taxpayer.invoice(&documents::invoice()).await;
    receiver.wait_for(1).await;
    dead_letters(&taxpayer, &integrator, &receiver, 3).await;
    let before = receiver.received_notifications();
    let answer = integrator
        .replay(taxpayer.id, json!(0), "failed")
        .await
        .expect_status(200);
    assert_eq!(answer.message(), "Webhook replay started successfully");
    let fields: Vec<_> = answer
        .data()
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "created_at",
        "endpoint_id",
        "id",
        "only",
        "percent",
        "queued",
        "reached",
        "remaining",
        "since",
        "state",
        "until",
        "updated_at",
        "waits_for",
    ];
    assert_eq!(fields, expected);
    let replay = settled(&integrator, &taxpayer).await;
    assert_eq!(
        (&replay["id"], &replay["queued"]),
        (&answer.data()["id"], &json!(3))
    );
    assert_eq!(
        (&replay["state"], &replay["reached"]),
        (&json!("done"), &replay["until"])
    );
    let again = &receiver.received_notifications()[before.len()..];
    assert_eq!(again.len(), 3, "what was delivered is not sent again");
    for one in again {
        let same = before.iter().find(|other| other.id == one.id).unwrap();
        assert_eq!(one.bytes, same.bytes);
    }
    let log = integrator
        .deliveries(taxpayer.id, "?state=delivered")
        .await
        .expect_status(200);
    assert_eq!(log.data()["total"], json!(4));
    let attempts = log.data()["data"][0]["attempts"].as_array().unwrap();
    let statuses: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt["status"].as_i64().unwrap())
        .collect();
    assert_eq!(
        statuses,
        [500, 500, 500, 500, 204],
        "the log keeps the attempts before"
    );
}

#[each_database]
async fn a_replayed_delivery_has_the_whole_schedule_again(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &[CREATED]).await;
    dead_letters(&taxpayer, &integrator, &receiver, 1).await;
    receiver.answer_next(&[Reply::Status(500); 3]);
    integrator
        .replay(taxpayer.id, json!(0), "failed")
        .await
        .expect_status(200);
    settled(&integrator, &taxpayer).await;
    let log = integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    let one = &log.data()["data"][0];
    assert_eq!(
        (&one["state"], one["attempts"].as_array().unwrap().len()),
        (&json!("delivered"), 8)
    );
}

#[each_database]
async fn missing_are_the_events_of_enabled_names_that_never_had_a_delivery(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[CREATED])
        .await
        .expect_status(200);
    taxpayer.invoice(&documents::invoice()).await;
    receiver.wait_for(1).await;
    for queued in [1, 0] {
        integrator
            .replay(taxpayer.id, json!("2000-01-01T00:00:00Z"), "missing")
            .await
            .expect_status(200);
        let replay = settled(&integrator, &taxpayer).await;
        assert_eq!(
            replay["queued"],
            json!(queued),
            "a second time nothing is missing"
        );
    }
    let kinds: Vec<_> = receiver
        .received_notifications()
        .iter()
        .map(Received::kind)
        .collect();
    assert_eq!(kinds, [CREATED, CREATED]);
    assert_eq!(
        receiver.received_notifications()[1].body()["data"]["irn"],
        invoice["irn"]
    );
}

#[each_database]
async fn all_is_everything_from_a_place_on_in_the_order_of_each_irn(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &BOTH).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for status in ["approved", "draft", "cancelled"] {
        taxpayer
            .set_status(&invoice, status)
            .await
            .expect_status(200);
    }
    receiver.wait_for(4).await;
    let second = sequences(&receiver.received_notifications())[1];
    integrator
        .replay(taxpayer.id, json!(second), "all")
        .await
        .expect_status(200);
    let replay = settled(&integrator, &taxpayer).await;
    assert_eq!(
        (&replay["since"], &replay["queued"]),
        (&json!(second), &json!(3))
    );
    let again = sequences(&receiver.received_notifications()[4..]);
    assert_eq!(again, sequences(&receiver.received_notifications()[1..4]));
    integrator
        .replay(taxpayer.id, json!(i64::MAX), "all")
        .await
        .expect_status(200);
    let replay = settled(&integrator, &taxpayer).await;
    assert_eq!(
        (&replay["state"], &replay["queued"]),
        (&json!("done"), &json!(0))
    );
}

#[each_database]
async fn what_is_newer_waits_for_what_a_replay_has_still_to_queue(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    let others: Vec<_> = (0..300).map(|_| documents::invoice()).collect();
    taxpayer.create_batch(&others).await.expect_status(201);
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for status in ["approved", "draft"] {
        taxpayer
            .set_status(&invoice, status)
            .await
            .expect_status(200);
    }
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &BOTH)
        .await
        .expect_status(200);
    integrator
        .replay(taxpayer.id, json!(0), "missing")
        .await
        .expect_status(200);
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let replay = settled(&integrator, &taxpayer).await;
    assert_eq!(replay["queued"], json!(303), "in more than one part");
    let arrivals = receiver.wait_for(304).await;
    let of_one: Vec<_> = arrivals
        .into_iter()
        .filter(|one| one.body()["data"]["irn"] == invoice["irn"])
        .collect();
    let order = sequences(&of_one);
    assert_eq!(order.len(), 4);
    assert!(order.is_sorted(), "{order:?}");
}

#[each_database]
async fn one_delivery_is_replayed_whatever_became_of_it(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &[CREATED]).await;
    for _ in 0..2 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    receiver.wait_for(2).await;
    settled(&integrator, &taxpayer).await;
    let log = integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    let one = &log.data()["data"][1];
    let path = format!(
        "{}/deliveries/{}/replay",
        webhook(taxpayer.id),
        one["id"].as_str().unwrap()
    );
    let answer = integrator.call("POST", &path).await.expect_status(200);
    assert_eq!(answer.message(), "Webhook delivery queued successfully");
    let replay = settled(&integrator, &taxpayer).await;
    assert_eq!(
        (&replay["since"], &replay["queued"]),
        (&replay["until"], &json!(1))
    );
    let arrived = receiver.received_notifications();
    assert_eq!(
        (arrived.len(), json!(arrived[2].id)),
        (3, one["event_id"].clone())
    );
    // Also when its name is not enabled any more: it was asked for by name.
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    integrator.call("POST", &path).await.expect_status(200);
    receiver.wait_for(4).await;
}

#[each_database]
async fn a_delivery_that_is_replayed_during_its_last_attempt_is_made_again_after_it(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    let body = json!({
        "webhook_url": receiver.url(), "enabled_events": [CREATED], "retry_schedule_s": [0],
    });
    integrator
        .send("PUT", &webhook(taxpayer.id), &body)
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::Slow]);
    taxpayer.invoice(&documents::invoice()).await;
    receiver.wait_for(1).await;
    let log = integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    let id = log.data()["data"][0]["id"].as_str().unwrap();
    let path = format!("{}/deliveries/{id}/replay", webhook(taxpayer.id));
    integrator.call("POST", &path).await.expect_status(200);
    let replay = settled(&integrator, &taxpayer).await;
    assert_eq!(
        (&replay["state"], &replay["queued"]),
        (&json!("done"), &json!(1))
    );
    let log = integrator
        .deliveries(taxpayer.id, "?state=delivered")
        .await
        .expect_status(200);
    assert_eq!(log.data()["total"], json!(1), "{:?}", log.data());
}

#[on_sqlite]
async fn a_delivery_that_is_not_the_taxpayers_is_not_found(world: &World) {
    let receiver = Receiver::start();
    let (one, integrator) = subscribed(world, &receiver, &[CREATED]).await;
    let (other, _) = subscribed(world, &receiver, &[CREATED]).await;
    one.invoice(&documents::invoice()).await;
    receiver.wait_for(1).await;
    let log = integrator.deliveries(one.id, "").await.expect_status(200);
    let theirs = log.data()["data"][0]["id"].as_str().unwrap().to_owned();
    let unknown = "00000000-0000-7000-8000-000000000000";
    for id in [
        theirs.as_str(),
        unknown,
        "1",
        "abc",
        "%00",
        &theirs.replace('-', ""),
    ] {
        let path = format!("{}/deliveries/{id}/replay", webhook(other.id));
        let answer = integrator
            .call("POST", &path)
            .await
            .expect_refusal(404, "DELIVERY_NOT_FOUND");
        assert_eq!(answer.message(), "Delivery not found");
    }
    assert_eq!(receiver.received_notifications().len(), 1);
}

#[on_sqlite]
async fn a_replay_that_is_odd_is_refused(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &[]).await;
    let path = format!("{}/replay", webhook(taxpayer.id));
    let odd = json!({ "since": -1, "only": "none" });
    integrator
        .send("POST", &path, &odd)
        .await
        .expect_faults(&["only", "since"]);
    integrator
        .send_text("POST", &path, "")
        .await
        .expect_refusal(400, "MALFORMED_JSON");
    let none = integrator.get(&path).await.expect_status(200);
    assert_eq!(*none.data(), Value::Null, "nothing was begun");
}

#[on_sqlite]
async fn a_replay_needs_a_webhook_that_is_in_service(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    let answer = integrator.replay(taxpayer.id, json!(0), "all").await;
    answer.expect_refusal(422, "WEBHOOK_NOT_CONFIGURED");
    integrator
        .enable_webhook(taxpayer.id, "none")
        .await
        .expect_refusal(422, "WEBHOOK_NOT_CONFIGURED");
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[CREATED])
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::Status(410)]);
    taxpayer.invoice(&documents::invoice()).await;
    until_inactive(&integrator, &taxpayer).await;
    integrator
        .replay(taxpayer.id, json!(0), "all")
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    let log = integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    let id = log.data()["data"][0]["id"].as_str().unwrap();
    let path = format!("{}/deliveries/{id}/replay", webhook(taxpayer.id));
    integrator
        .call("POST", &path)
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
}

#[each_database]
async fn a_disabled_webhook_is_back_in_service_and_gets_what_it_missed_if_that_is_wanted(
    world: &World,
) {
    for (replay, missed) in [("none", 0), ("missing", 2), ("failed", 0)] {
        let taxpayer = world.taxpayer().await;
        let integrator = world.integrator();
        let receiver = Receiver::start();
        taxpayer.invoice(&documents::invoice()).await;
        integrator
            .set_webhook(taxpayer.id, &receiver.url(), &[CREATED])
            .await
            .expect_status(200);
        receiver.answer_next(&[Reply::Status(410)]);
        taxpayer.invoice(&documents::invoice()).await;
        until_inactive(&integrator, &taxpayer).await;
        for _ in 0..2 {
            taxpayer.invoice(&documents::invoice()).await;
        }
        let answer = integrator
            .enable_webhook(taxpayer.id, replay)
            .await
            .expect_status(200);
        assert_eq!(answer.message(), "Webhook enabled successfully");
        assert_eq!(answer.data()["is_active"], json!(true));
        assert_eq!(answer.data()["disabled_reason"], Value::Null);
        assert_eq!(answer.data()["replay"].is_null(), replay == "none");
        receiver.wait_for(2 + missed).await;
        settled(&integrator, &taxpayer).await;
        let accepted = accepted(&receiver);
        assert_eq!(
            accepted.len(),
            1 + missed,
            "{replay}: what was pending goes on"
        );
        assert!(
            sequences(&accepted).iter().all(|sequence| *sequence > 1),
            "not what is older"
        );
    }
}

#[on_sqlite]
async fn enabling_takes_no_body_or_one_of_three_words(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &[CREATED]).await;
    let path = format!("{}/enable", webhook(taxpayer.id));
    let answer = integrator.call("POST", &path).await.expect_status(200);
    assert_eq!(
        (&answer.data()["is_active"], &answer.data()["replay"]),
        (&json!(true), &Value::Null)
    );
    integrator
        .send("POST", &path, &json!({}))
        .await
        .expect_status(200);
    let answer = integrator
        .send("POST", &path, &json!({ "replay": "none", "x": 1 }))
        .await;
    assert!(answer.expect_status(200).warnings().contains('x'));
    integrator
        .send("POST", &path, &json!({ "replay": "all" }))
        .await
        .expect_faults(&["replay"]);
    integrator
        .call("PUT", &path)
        .await
        .expect_refusal(405, "METHOD_NOT_ALLOWED");
}

#[each_database]
async fn dead_letters_are_replayed_when_a_webhook_is_enabled_with_failed(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &[CREATED]).await;
    dead_letters(&taxpayer, &integrator, &receiver, 2).await;
    integrator
        .enable_webhook(taxpayer.id, "failed")
        .await
        .expect_status(200);
    let replay = settled(&integrator, &taxpayer).await;
    assert_eq!(
        (&replay["queued"], accepted(&receiver).len()),
        (&json!(2), 2)
    );
}

#[each_database]
async fn the_same_url_set_again_puts_a_disabled_webhook_back_into_service(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_next(&[Reply::Status(410)]);
    taxpayer.invoice(&documents::invoice()).await;
    until_inactive(&integrator, &taxpayer).await;
    let body = json!({ "webhook_url": receiver.url() });
    let answer = integrator
        .send("PUT", &webhook(taxpayer.id), &body)
        .await
        .expect_status(200);
    assert_eq!(answer.data()["is_active"], json!(true));
    assert_eq!(answer.data()["disabled_reason"], Value::Null);
    receiver.wait_for(2).await;
}

#[each_database]
async fn a_request_that_is_sent_twice_is_one_replay(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, integrator) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_next(&[Reply::Slow; AT_ONCE]);
    let many: Vec<_> = (0..AT_ONCE).map(|_| documents::invoice()).collect();
    taxpayer.create_batch(&many).await.expect_status(201);
    receiver.wait_for(AT_ONCE).await;
    // There is no room beside the slow attempts: both find the replay not begun yet.
    let first = integrator
        .replay(taxpayer.id, json!(1), "failed")
        .await
        .expect_status(200);
    let second = integrator
        .replay(taxpayer.id, json!(1), "failed")
        .await
        .expect_status(200);
    assert_eq!(first.data()["id"], second.data()["id"]);
    settled(&integrator, &taxpayer).await;
}
