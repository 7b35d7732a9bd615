//! GET /ops/webhooks/dead-letters and their replay by an operator.

use serde_json::json;
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::{Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

/// A taxpayer whose one notification is a dead letter.
pub(super) async fn with_a_dead_letter(world: &World, receiver: &Receiver) -> Taxpayer {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let events = ["invoice.created"];
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &events)
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::Status(503); 4]);
    taxpayer.invoice(&documents::invoice()).await;
    let dead = async || {
        let log = integrator
            .deliveries(taxpayer.id, "?state=dead")
            .await
            .expect_status(200);
        (log.data()["total"] == json!(1)).then_some(())
    };
    eventually("a dead letter", dead).await;
    taxpayer
}

#[each_database]
async fn dead_letters_of_all_taxpayers_or_of_one_are_listed(world: &World) {
    let operator = world.new_operator().await;
    let receiver = Receiver::start();
    let one = with_a_dead_letter(world, &receiver).await;
    let other = with_a_dead_letter(world, &receiver).await;
    let all = operator
        .dead_letters("?per_page=2")
        .await
        .expect_status(200);
    let owners: Vec<_> = all.data()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["taxpayer_id"].clone())
        .collect();
    assert_eq!(owners.len(), 2);
    assert!(all.data()["total"].as_i64().unwrap() >= 2);
    let answer = operator
        .dead_letters(&format!("?taxpayer_id={}", one.id))
        .await
        .expect_status(200);
    assert_eq!(answer.data()["total"], json!(1));
    let item = &answer.data()["data"][0];
    let fields: Vec<_> = item
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "attempts",
        "endpoint_id",
        "event_id",
        "id",
        "irn",
        "next_attempt_at",
        "state",
        "taxpayer_id",
        "type",
    ];
    let expected: Vec<_> = expected.into_iter().chain(["what_to_do", "why"]).collect();
    assert_eq!(item["why"], json!("The endpoint answered 503"));
    assert_eq!(fields, expected);
    assert_eq!(
        (&item["taxpayer_id"], &item["state"]),
        (&json!(one.id), &json!("dead"))
    );
    assert_eq!(item["attempts"].as_array().unwrap().len(), 4);
    assert_ne!(one.id, other.id);
    for nobody in ["0", "-1", "abc", "99999999999999999999", "%00"] {
        let answer = operator
            .dead_letters(&format!("?taxpayer_id={nobody}"))
            .await
            .expect_status(200);
        assert_eq!(answer.data()["total"], json!(0), "{nobody}");
    }
}

#[each_database]
async fn an_operator_replays_a_dead_letter_and_the_audit_says_so(world: &World) {
    let operator = world.new_operator().await;
    let receiver = Receiver::start();
    let taxpayer = with_a_dead_letter(world, &receiver).await;
    let listed = operator
        .dead_letters(&format!("?taxpayer_id={}", taxpayer.id))
        .await
        .expect_status(200);
    let id = listed.data()["data"][0]["id"].as_str().unwrap();
    let path = format!("/ops/webhooks/dead-letters/{id}/replay");
    operator
        .send("POST", &path, &json!({ "reason": 7 }))
        .await
        .expect_faults(&["reason"]);
    let body = json!({ "reason": "the receiver was repaired" });
    let answer = operator.send("POST", &path, &body).await.expect_status(200);
    assert_eq!(answer.data()["since"], answer.data()["until"]);
    let all = receiver.wait_for(5).await;
    assert_eq!(
        (all[4].id.as_str(), all[4].answered),
        (all[0].id.as_str(), Reply::Status(204))
    );
    let audit = operator
        .audit(&format!("?subject={id}"))
        .await
        .expect_status(200);
    let entry = &audit.data()["data"][0];
    assert_eq!(
        (&audit.data()["total"], &entry["action"]),
        (&json!(1), &json!("delivery.replay"))
    );
    assert_eq!(
        (&entry["taxpayer_id"], &entry["reason"]),
        (&json!(taxpayer.id), &body["reason"])
    );
    let gone = async || (operator.call("POST", &path).await.status == 404).then_some(());
    eventually("a letter that is not dead any more", gone).await;
    operator
        .call("POST", &path)
        .await
        .expect_refusal(404, "DELIVERY_NOT_FOUND");
}

#[each_database]
async fn an_operator_replays_the_dead_letters_of_a_taxpayer_from_a_place_on(world: &World) {
    let operator = world.new_operator().await;
    let receiver = Receiver::start();
    let taxpayer = with_a_dead_letter(world, &receiver).await;
    let path = "/ops/webhooks/dead-letters/replay";
    let newest = taxpayer.events().await.last().unwrap()["sequence"]
        .as_i64()
        .unwrap();
    let body = json!({ "taxpayer_id": taxpayer.id, "since": newest + 1, "reason": "too late" });
    let answer = operator.send("POST", path, &body).await.expect_status(200);
    assert_eq!(
        (
            &answer.data()["state"],
            receiver.received_notifications().len()
        ),
        (&json!("done"), 4)
    );
    let body = json!({ "taxpayer_id": taxpayer.id, "reason": "the receiver was repaired" });
    let answer = operator.send("POST", path, &body).await.expect_status(200);
    assert_eq!(answer.message(), "Webhook replay started successfully");
    assert_eq!(
        (&answer.data()["only"], &answer.data()["since"]),
        (&json!("failed"), &json!(1))
    );
    assert_eq!(receiver.wait_for(5).await[4].answered, Reply::Status(204));
    let id = answer.data()["id"].as_str().unwrap();
    let audit = operator
        .audit(&format!("?subject={id}"))
        .await
        .expect_status(200);
    let entry = &audit.data()["data"][0];
    assert_eq!(
        (&audit.data()["total"], &entry["action"]),
        (&json!(1), &json!("dead-letters.replay"))
    );
    assert_eq!(
        (&entry["taxpayer_id"], &entry["reason"]),
        (&json!(taxpayer.id), &body["reason"])
    );
}

#[on_sqlite]
async fn a_disabled_endpoint_keeps_no_other_one_from_its_dead_letters(world: &World) {
    let operator = world.new_operator().await;
    let receiver = Receiver::start();
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let events = ["invoice.created"];
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &events)
        .await
        .expect_status(200);
    receiver.answer_next(&[Reply::Status(410)]);
    taxpayer.invoice(&documents::invoice()).await;
    let off = async || {
        let record = integrator.webhook(taxpayer.id).await.expect_status(200);
        (record.data()["is_active"] == json!(false)).then_some(())
    };
    eventually("a disabled endpoint", off).await;
    let path = "/ops/webhooks/dead-letters/replay";
    let body = json!({ "taxpayer_id": taxpayer.id });
    operator
        .send("POST", path, &body)
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    let endpoint = json!({ "url": receiver.url(), "enabled_events": events });
    let added = integrator
        .send(
            "POST",
            &format!("{}/endpoints", webhook(taxpayer.id)),
            &endpoint,
        )
        .await
        .expect_status(201);
    let answer = operator.send("POST", path, &body).await.expect_status(200);
    assert_eq!(answer.data()["endpoint_id"], added.data()["id"]);
}

#[on_sqlite]
async fn a_replay_of_dead_letters_names_a_taxpayer_with_a_webhook(world: &World) {
    let operator = world.new_operator().await;
    let path = "/ops/webhooks/dead-letters/replay";
    let newcomer = world.newcomer().await;
    let send = async |body| operator.send("POST", path, &body).await;
    send(json!({ "taxpayer_id": newcomer.id }))
        .await
        .expect_refusal(422, "WEBHOOK_NOT_CONFIGURED");
    send(json!({ "taxpayer_id": i64::MAX }))
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    send(json!({})).await.expect_faults(&["taxpayer_id"]);
    let odd = json!({ "taxpayer_id": newcomer.id, "since": "soon", "reason": 7 });
    send(odd).await.expect_faults(&["reason", "since"]);
    let audit = operator
        .audit(&format!("?actor=operator&taxpayer_id={}", newcomer.id))
        .await
        .expect_status(200);
    assert_eq!(
        audit.data()["total"],
        json!(0),
        "what was refused was not done"
    );
    let body = json!({ "taxpayer_id": newcomer.id });
    world
        .integrator()
        .send("POST", path, &body)
        .await
        .expect_status(401);
}

#[on_sqlite]
async fn what_is_no_dead_letter_is_not_found(world: &World) {
    for id in ["00000000-0000-7000-8000-000000000000", "1", "abc", "%00"] {
        let path = format!("/ops/webhooks/dead-letters/{id}/replay");
        let answer = world.new_operator().await.call("POST", &path).await;
        answer.expect_refusal(404, "DELIVERY_NOT_FOUND");
    }
}
