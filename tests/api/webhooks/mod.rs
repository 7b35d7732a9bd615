//! Deliveries of notifications (Standard Webhooks 1.0.0).

mod circuit;
mod forgery;
mod libraries;
mod under_way;

use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::patience::eventually;
use testkit::receiver::{Received, Receiver, Reply};
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const CREATED: &str = "invoice.created";
const UPDATED: &str = "invoice.status-updated";

/// A taxpayer whose events of these names go to a receiver, and the signing secret.
async fn subscribed(world: &World, receiver: &Receiver, events: &[&str]) -> (Taxpayer, String) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), events)
        .await
        .expect_status(200);
    let secret = integrator.rotate_secret(taxpayer.id).await;
    (taxpayer, secret)
}

fn sequences(received: &[Received]) -> Vec<u64> {
    received
        .iter()
        .map(|one| one.body()["sequence"].as_u64().unwrap())
        .collect()
}

#[each_database]
async fn a_notification_is_signed_and_carries_the_event(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, secret) = subscribed(world, &receiver, &[CREATED]).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let one = receiver.wait_for(1).await.remove(0);
    assert!(one.is_signed_with(&secret), "{}", one.signature);
    assert!(
        one.header("content-type").starts_with("application/json"),
        "{:?}",
        one.headers
    );
    assert!(one.timestamp.parse::<i64>().unwrap() > 1_700_000_000);
    let body = one.body();
    let fields: Vec<_> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        [
            "actor",
            "data",
            "hash",
            "id",
            "sequence",
            "taxpayer_id",
            "timestamp",
            "type"
        ]
    );
    let event = taxpayer
        .events()
        .await
        .into_iter()
        .find(|event| event["type"] == CREATED)
        .unwrap();
    for name in ["id", "type", "timestamp", "sequence", "data", "hash"] {
        assert_eq!(body[name], event[name], "{name}");
    }
    assert_eq!(
        (&body["taxpayer_id"], &body["data"]["invoice"]),
        (&json!(taxpayer.id), &invoice)
    );
}

#[on_sqlite]
async fn a_changed_body_or_another_secret_does_not_verify(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, secret) = subscribed(world, &receiver, &[CREATED]).await;
    taxpayer.invoice(&documents::invoice()).await;
    let mut one = receiver.wait_for(1).await.remove(0);
    assert!(!one.is_signed_with("whsec_c29tZSBvdGhlciBzZWNyZXQgYWx0b2dldGhlcg=="));
    one.bytes.push(b' ');
    assert!(!one.is_signed_with(&secret));
}

#[each_database]
async fn only_enabled_events_are_sent(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[UPDATED, "invoice.exploded"]).await;
    for _ in 0..2 {
        let invoice = taxpayer.invoice(&documents::invoice()).await;
        taxpayer
            .set_status(&invoice, "approved")
            .await
            .expect_status(200);
    }
    let kinds: Vec<_> = receiver
        .wait_for(2)
        .await
        .iter()
        .map(Received::kind)
        .collect();
    assert_eq!(kinds, [UPDATED, UPDATED]);
    assert_eq!(receiver.received_notifications().len(), 2);
}

#[each_database]
async fn a_change_of_the_enabled_events_applies_from_then_on(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[]).await;
    let before = taxpayer.invoice(&documents::invoice()).await;
    world
        .integrator()
        .set_webhook(taxpayer.id, &receiver.url(), &[CREATED])
        .await
        .expect_status(200);
    let after = taxpayer.invoice(&documents::invoice()).await;
    let arrived = receiver.wait_for(1).await;
    assert_eq!(arrived[0].body()["data"]["irn"], after["irn"]);
    assert!(
        arrived
            .iter()
            .all(|one| one.body()["data"]["irn"] != before["irn"])
    );
}

#[each_database]
async fn a_failed_attempt_is_repeated_with_the_same_id_and_body(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, secret) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_next(&[Reply::Status(500), Reply::Status(302), Reply::Status(404)]);
    taxpayer.invoice(&documents::invoice()).await;
    let all = receiver.wait_for(4).await;
    assert!(
        all.iter()
            .all(|one| one.id == all[0].id && one.bytes == all[0].bytes)
    );
    assert!(all.iter().all(|one| one.is_signed_with(&secret)));
    assert_eq!(all[3].answered, Reply::Status(204));
}

#[on_sqlite]
async fn an_endpoint_that_is_too_slow_is_asked_again(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_next(&[Reply::Slow]);
    taxpayer.invoice(&documents::invoice()).await;
    let all = receiver.wait_for(2).await;
    assert_eq!(all[0].id, all[1].id);
}

#[each_database]
async fn the_notifications_of_one_invoice_come_in_order_although_some_fail(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED, UPDATED]).await;
    receiver.answer_next(&[500, 204, 500, 500, 204].map(Reply::Status));
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for status in ["approved", "draft", "approved", "cancelled"] {
        taxpayer
            .set_status(&invoice, status)
            .await
            .expect_status(200);
    }
    let delivered = async || {
        let all = receiver.received_notifications();
        let taken: Vec<_> = all
            .into_iter()
            .filter(|one| one.answered == Reply::Status(204))
            .collect();
        (taken.len() >= 5).then_some(taken)
    };
    let delivered = sequences(&eventually("five deliveries", delivered).await);
    assert!(delivered.is_sorted(), "{delivered:?}");
    assert!(
        sequences(&receiver.received_notifications()).is_sorted(),
        "nothing overtakes what is being retried"
    );
}

#[each_database]
async fn a_dead_letter_does_not_hold_back_what_comes_after_it(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED, UPDATED]).await;
    receiver.answer_next(&[Reply::Status(500); 4]);
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let all = receiver.wait_for(5).await;
    let kinds: Vec<_> = all.iter().map(Received::kind).collect();
    assert_eq!(kinds, [CREATED, CREATED, CREATED, CREATED, UPDATED]);
}

#[each_database]
async fn gone_takes_the_endpoint_out_of_service_at_once(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_always(Reply::Status(410));
    taxpayer.invoice(&documents::invoice()).await;
    let disabled = async || {
        let record = world
            .integrator()
            .webhook(taxpayer.id)
            .await
            .expect_status(200);
        (record.data()["is_active"] == json!(false)).then_some(record)
    };
    let record = eventually("a disabled endpoint", disabled).await;
    assert!(
        record.data()["disabled_reason"].is_string(),
        "{}",
        record.text
    );
    assert_eq!(receiver.received_notifications().len(), 1);
    let fresh = Receiver::start();
    let answer = world
        .integrator()
        .set_webhook(taxpayer.id, &fresh.url(), &[CREATED])
        .await;
    assert_eq!(answer.expect_status(200).data()["is_active"], json!(true));
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let arrived = async || {
        fresh
            .received_notifications()
            .into_iter()
            .find(|one| one.body()["data"]["irn"] == invoice["irn"])
    };
    eventually("a notification at the new URL", arrived).await;
    assert_eq!(
        receiver.received_notifications().len(),
        1,
        "the old URL is left alone"
    );
}

#[on_sqlite]
async fn a_receiver_that_aborts_a_message_is_not_sent_it_again(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED, UPDATED]).await;
    receiver.answer_next(&[Reply::Abort(500), Reply::Abort(204)]);
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let integrator = world.integrator();
    let ended = async || {
        let all = integrator
            .deliveries(taxpayer.id, "")
            .await
            .expect_status(200)
            .data()["data"]
            .clone();
        let is_over = all
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["state"] != json!("pending"));
        (is_over && receiver.received_notifications().len() >= 2).then_some(all)
    };
    let log = eventually("the end of both deliveries", ended).await;
    let ends =
        [&log[1], &log[0]].map(|one| (one["state"].clone(), one["attempts"][0]["failure"].clone()));
    assert_eq!(
        ends,
        [
            (json!("dead"), json!("aborted")),
            (json!("delivered"), Value::Null)
        ]
    );
    let kinds: Vec<_> = receiver
        .received_notifications()
        .iter()
        .map(Received::kind)
        .collect();
    assert_eq!(kinds, [CREATED, UPDATED]);
}

#[on_sqlite]
async fn gone_takes_the_endpoint_out_of_service_also_where_it_aborts_the_message(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_always(Reply::Abort(410));
    taxpayer.invoice(&documents::invoice()).await;
    let integrator = world.integrator();
    let disabled = async || {
        let record = integrator.webhook(taxpayer.id).await.expect_status(200);
        (record.data()["is_active"] == json!(false)).then_some(())
    };
    eventually("a disabled endpoint", disabled).await;
    let log = integrator
        .deliveries(taxpayer.id, "?state=dead")
        .await
        .expect_status(200);
    assert_eq!(
        log.data()["data"][0]["attempts"][0]["failure"],
        json!("aborted")
    );
}

#[each_database]
async fn while_a_secret_is_rotated_both_sign(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, old) = subscribed(world, &receiver, &[CREATED]).await;
    let new = world.integrator().rotate_secret(taxpayer.id).await;
    taxpayer.invoice(&documents::invoice()).await;
    let one = receiver.wait_for(1).await.remove(0);
    assert!(
        one.is_signed_with(&old) && one.is_signed_with(&new),
        "{}",
        one.signature
    );
}

#[each_database]
async fn a_receiver_sees_the_whole_life_of_an_invoice(world: &World) {
    let receiver = Receiver::start();
    let names = [
        CREATED,
        UPDATED,
        "invoice.validated",
        "invoice.submitted",
        "invoice.transmitted",
        "invoice.acknowledged",
        "payment.status-updated",
        "api-key.rotated",
    ];
    let (taxpayer, secret) = subscribed(world, &receiver, &names).await;
    let before = taxpayer.events().await.len();
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let app = taxpayer.app();
    let no = invoice["invoice_no"].as_str().unwrap();
    app.submit(&submission(&taxpayer, no))
        .await
        .expect_status(200);
    app.transmit(irn).await.expect_status(200);
    app.confirm_receipt(irn).await.expect_status(200);
    let body = json!({
        "unique_no": irn, "unique_no_type": "IRN", "payment_status": "paid", "remark": "by transfer",
    });
    taxpayer.pay(&body).await.expect_status(200);
    let feed: Vec<Value> = taxpayer.events().await.split_off(before);
    let mut arrived = receiver.wait_for(feed.len()).await;
    assert!(arrived.iter().all(|one| one.is_signed_with(&secret)));
    arrived.sort_by_key(|one| one.body()["sequence"].as_u64());
    arrived.dedup_by_key(|one| one.id.clone());
    let kinds: Vec<_> = arrived.iter().map(Received::kind).collect();
    let logged: Vec<_> = feed
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, logged);
    insta::assert_snapshot!(logged.join("\n"), @r#"
            invoice.created
            invoice.status-updated
            invoice.status-updated
            invoice.validated
            invoice.status-updated
            invoice.submitted
            invoice.status-updated
            invoice.transmitted
            invoice.acknowledged
            payment.status-updated
        "#);
}

#[each_database]
async fn a_rotation_of_the_key_is_notified(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &["api-key.rotated"]).await;
    world
        .integrator()
        .rotate_api_key(taxpayer.id)
        .await
        .expect_status(200);
    let one = receiver.wait_for(1).await.remove(0);
    assert_eq!(one.kind(), "api-key.rotated");
    assert!(!String::from_utf8_lossy(&one.bytes).contains("tpk_"));
}

#[each_database]
async fn each_taxpayer_is_notified_of_its_own_events_only(world: &World) {
    let mine = Receiver::start();
    let theirs = Receiver::start();
    let (one, _) = subscribed(world, &mine, &[CREATED]).await;
    let (other, _) = subscribed(world, &theirs, &[CREATED]).await;
    one.invoice(&documents::invoice()).await;
    other.invoice(&documents::invoice()).await;
    let mine = mine.wait_for(1).await;
    let theirs = theirs.wait_for(1).await;
    assert!(
        mine.iter()
            .all(|event| event.body()["taxpayer_id"] == json!(one.id))
    );
    assert!(
        theirs
            .iter()
            .all(|event| event.body()["taxpayer_id"] == json!(other.id))
    );
}
