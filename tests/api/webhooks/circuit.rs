//! An endpoint that does nothing but fail: parked after a while, out of service after days.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};

use super::{CREATED, subscribed};
use crate::support::world::World;

#[each_database(&[("WEBHOOKS__CIRCUIT_OPEN_AFTER_S", "0"), ("WEBHOOKS__CIRCUIT_PROBE_MAX_S", "3"), ("WEBHOOKS__MAX_CONCURRENT_PER_ENDPOINT", "1"), ("WEBHOOKS__RETRY_SCHEDULE_S", "[0, 3600]")])]
async fn an_endpoint_that_only_fails_is_parked_and_what_waits_costs_no_attempt(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, secret) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_always(Reply::Status(503));
    for _ in 0..5 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    let health = async || world.integrator().webhook(taxpayer.id).await.data()["health"].clone();
    let parked = async || Some(health().await).filter(|health| health["state"] == json!("parked"));
    let health_now = eventually("a parked endpoint", parked).await;
    assert!(
        health_now["failures"].as_u64().unwrap() >= 5,
        "{health_now}"
    );
    assert!(health_now["parked_until"].is_string() && health_now["failing_since"].is_string());
    // What comes while it is parked and all else is due in an hour has to wait, but not for an hour.
    for _ in 0..4 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    let log = world
        .integrator()
        .deliveries(taxpayer.id, "?per_page=50")
        .await
        .expect_status(200);
    let attempts = |one: &Value| one["attempts"].as_array().unwrap().len();
    let untried = log.data()["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| attempts(one) == 0)
        .count();
    assert!(untried >= 1, "{}", log.text);
    receiver.answer_always(Reply::Status(200));
    let accepted = async || {
        let all = receiver.received_notifications();
        let accepted: BTreeSet<_> = all
            .iter()
            .filter(|one| one.answered == Reply::Status(200))
            .map(|one| one.id.clone())
            .collect();
        (accepted.len() == 9).then_some(all)
    };
    let all = eventually("everything, as soon as a probe succeeds", accepted).await;
    assert!(all.iter().all(|one| one.is_signed_with(&secret)));
    let well = async || (health().await["state"] == json!("working")).then_some(());
    eventually("an endpoint that is well again", well).await;
}

#[each_database(&[("WEBHOOKS__CIRCUIT_OPEN_AFTER_S", "0"), ("WEBHOOKS__CIRCUIT_PROBE_MAX_S", "1"), ("WEBHOOKS__RETRY_SCHEDULE_S", "[0, 3600]")])]
async fn a_parked_endpoint_is_probed_before_anything_is_due_and_no_probe_uses_up_the_schedule(
    world: &World,
) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_always(Reply::Status(503));
    for _ in 0..5 {
        taxpayer.invoice(&documents::invoice()).await;
    }
    let listed = async || {
        let log = world
            .integrator()
            .deliveries(taxpayer.id, "?per_page=50")
            .await
            .expect_status(200);
        log.data()["data"].as_array().unwrap().clone()
    };
    let has_state = |one: &Value, state: &str| one["state"] == json!(state);
    // The second attempt of the schedule is the last one, and an hour away.
    let probed = async || {
        let deliveries = listed().await;
        let attempts = deliveries
            .iter()
            .map(|one| one["attempts"].as_array().unwrap().len());
        (attempts.max() > Some(2)).then_some(deliveries)
    };
    let deliveries = eventually("a delivery that was a probe twice", probed).await;
    assert!(
        deliveries.iter().all(|one| has_state(one, "pending")),
        "{deliveries:?}"
    );
    receiver.answer_always(Reply::Status(200));
    let delivered = async || {
        let deliveries = listed().await;
        let has_all = deliveries.len() == 5;
        (has_all && deliveries.iter().all(|one| has_state(one, "delivered"))).then_some(())
    };
    eventually("all deliveries, after a probe that is accepted", delivered).await;
}

#[each_database(&[("WEBHOOKS__DISABLE_AFTER_S", "1"), ("WEBHOOKS__RETRY_SCHEDULE_S", "[0, 0, 0, 0, 1, 1, 3600]")])]
async fn nothing_but_failure_for_long_takes_the_endpoint_out_of_service(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_always(Reply::Status(500));
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
    let reason = record.data()["disabled_reason"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(reason.contains("each attempt has failed since"), "{reason}");
    assert_eq!(record.data()["health"]["state"], json!("disabled"));
    assert!(
        record.data()["health"]["failing_since"].is_string(),
        "it is shown why: {}",
        record.text
    );
    receiver.answer_always(Reply::Status(200));
    let answer = world
        .integrator()
        .enable_webhook(taxpayer.id, "failed")
        .await
        .expect_status(200);
    assert_eq!(
        answer.data()["health"]["state"],
        json!("working"),
        "whoever enables it trusts it again"
    );
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let arrived = async || {
        receiver
            .received_notifications()
            .into_iter()
            .find(|one| one.body()["data"]["irn"] == invoice["irn"])
    };
    eventually("a notification of what comes after", arrived).await;
}

/// Who changes an endpoint and who writes how it fares want the same rows.
#[each_database]
async fn an_endpoint_may_be_changed_while_its_deliveries_fail(world: &World) {
    let receiver = Receiver::start();
    let (taxpayer, _) = subscribed(world, &receiver, &[CREATED]).await;
    receiver.answer_always(Reply::Status(500));
    let create = async {
        for _ in 0..20 {
            taxpayer.invoice(&documents::invoice()).await;
        }
    };
    let change = async {
        for _ in 0..40 {
            world
                .integrator()
                .enable_webhook(taxpayer.id, "none")
                .await
                .expect_status(200);
            world.integrator().rotate_secret(taxpayer.id).await;
        }
    };
    tokio::join!(create, change);
    receiver.answer_always(Reply::Status(200));
}
