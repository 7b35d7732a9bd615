//! /v1/system-integrators/taxpayers/{id}/webhook/replays: how far replays have come, and their end before the end.

use std::collections::HashSet;

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::roles::{Integrator, Taxpayer, webhook};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const CREATED: &str = "invoice.created";

/// A taxpayer with so many delivered events.
async fn with_a_log(world: &World, count: usize) -> (Taxpayer, Integrator, Receiver) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[CREATED])
        .await
        .expect_status(200);
    for _ in 0..count {
        taxpayer.invoice(&documents::invoice()).await;
    }
    receiver.wait_for(count).await;
    (taxpayer, integrator, receiver)
}

/// Takes the endpoint out of service; what a replay queues then stays where it is.
async fn switch_off(taxpayer: &Taxpayer, integrator: &Integrator, receiver: &Receiver) {
    receiver.answer_next(&[Reply::Status(410)]);
    taxpayer.invoice(&documents::invoice()).await;
    let off = async || {
        let record = integrator.webhook(taxpayer.id).await.expect_status(200);
        (record.data()["is_active"] == json!(false)).then_some(())
    };
    eventually("a disabled endpoint", off).await;
}

fn without_repetitions<'a>(sequences: impl Iterator<Item = &'a i64>) -> Vec<i64> {
    let mut seen = HashSet::new();
    sequences
        .copied()
        .filter(|sequence| seen.insert(*sequence))
        .collect()
}

fn id_of(answer: &Answer) -> String {
    answer.data()["id"].as_str().unwrap().to_owned()
}

async fn until_done(integrator: &Integrator, taxpayer: &Taxpayer, id: &str) -> Value {
    let done = async || {
        let found = integrator
            .replays(taxpayer.id, &format!("/{id}"))
            .await
            .expect_status(200);
        (found.data()["state"] == json!("done")).then(|| found.data().clone())
    };
    eventually("the end of a replay", done).await
}

#[each_database]
async fn replays_are_listed_with_their_progress_and_read_by_their_id(world: &World) {
    let (taxpayer, integrator, receiver) = with_a_log(world, 3).await;
    let empty = integrator.replays(taxpayer.id, "").await.expect_status(200);
    assert_eq!(empty.data()["total"], json!(0));
    let first = id_of(
        &integrator
            .replay(taxpayer.id, json!(0), "all")
            .await
            .expect_status(200),
    );
    let done = until_done(&integrator, &taxpayer, &first).await;
    let progress = ["percent", "remaining", "queued", "waits_for"].map(|name| done[name].clone());
    assert_eq!(progress, [json!(100), json!(0), json!(3), Value::Null]);
    let second = id_of(
        &integrator
            .replay(taxpayer.id, json!(0), "failed")
            .await
            .expect_status(200),
    );
    until_done(&integrator, &taxpayer, &second).await;
    let page = integrator
        .replays(taxpayer.id, "?per_page=1")
        .await
        .expect_status(200);
    assert_eq!(
        (&page.data()["total"], &page.data()["data"][0]["id"]),
        (&json!(2), &json!(second))
    );
    let page = integrator
        .replays(taxpayer.id, "?per_page=1&page=2")
        .await
        .expect_status(200);
    assert_eq!(page.data()["data"], json!([done]));
    assert_eq!(
        receiver.wait_for(6).await.len(),
        6,
        "no event twice in one replay"
    );
}

#[on_sqlite]
async fn a_replay_that_is_not_the_taxpayers_is_not_found(world: &World) {
    let (taxpayer, integrator, _receiver) = with_a_log(world, 1).await;
    let other = world.newcomer().await;
    let theirs = id_of(
        &integrator
            .replay(taxpayer.id, json!(0), "all")
            .await
            .expect_status(200),
    );
    for id in [
        theirs.as_str(),
        "00000000-0000-7000-8000-000000000000",
        "1",
        "%00",
        "cancel",
    ] {
        let answer = integrator.replays(other.id, &format!("/{id}")).await;
        answer.expect_refusal(404, "REPLAY_NOT_FOUND");
        integrator
            .cancel_replay(other.id, id)
            .await
            .expect_refusal(404, "REPLAY_NOT_FOUND");
    }
    let stranger = world.new_integrator().await;
    stranger
        .replays(taxpayer.id, "")
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    stranger
        .cancel_replay(taxpayer.id, &theirs)
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
}

#[on_sqlite]
async fn a_replay_that_has_ended_cannot_be_cancelled(world: &World) {
    let (taxpayer, integrator, _receiver) = with_a_log(world, 1).await;
    let id = id_of(
        &integrator
            .replay(taxpayer.id, json!(0), "all")
            .await
            .expect_status(200),
    );
    until_done(&integrator, &taxpayer, &id).await;
    let answer = integrator
        .cancel_replay(taxpayer.id, &id)
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    assert_eq!(answer.message(), "The replay has ended already");
}

#[each_database]
async fn a_replay_waits_while_the_endpoint_is_off_and_can_be_cancelled_there(world: &World) {
    for is_cancelled in [true, false] {
        let (taxpayer, integrator, receiver) = with_a_log(world, 2).await;
        // The endpoint is busy with a slow attempt that ends with its being switched off.
        receiver.answer_next(&[Reply::Slow]);
        taxpayer.invoice(&documents::invoice()).await;
        receiver.wait_for(3).await;
        receiver.answer_always(Reply::Status(410));
        let id = id_of(
            &integrator
                .replay(taxpayer.id, json!(0), "failed")
                .await
                .expect_status(200),
        );
        let off = async || {
            let record = integrator.webhook(taxpayer.id).await.expect_status(200);
            (record.data()["is_active"] == json!(false)).then_some(())
        };
        eventually("a disabled endpoint", off).await;
        let found = integrator
            .replays(taxpayer.id, &format!("/{id}"))
            .await
            .expect_status(200);
        let is_open = found.data()["state"] == json!("running");
        assert_eq!(
            found.data()["waits_for"].is_string(),
            is_open,
            "{}",
            found.text
        );
        if is_cancelled && is_open {
            for _ in 0..2 {
                let answer = integrator
                    .cancel_replay(taxpayer.id, &id)
                    .await
                    .expect_status(200);
                assert_eq!(answer.data()["state"], json!("cancelled"));
            }
        }
        receiver.answer_always(Reply::Status(204));
        integrator
            .enable_webhook(taxpayer.id, "none")
            .await
            .expect_status(200);
        let settled = async || {
            let open = integrator
                .deliveries(taxpayer.id, "?state=pending")
                .await
                .expect_status(200);
            let found = integrator
                .replays(taxpayer.id, &format!("/{id}"))
                .await
                .expect_status(200);
            let is_over =
                found.data()["state"] != json!("running") && open.data()["total"] == json!(0);
            is_over.then(|| found.data()["state"].clone())
        };
        let state = eventually("the end of all deliveries", settled).await;
        let expected = if is_cancelled && is_open {
            "cancelled"
        } else {
            "done"
        };
        assert_eq!(state, json!(expected));
    }
}

#[each_database]
async fn a_cancelled_replay_queues_nothing_more(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let receiver = Receiver::start();
    let many: Vec<_> = (0..600).map(|_| documents::invoice()).collect();
    taxpayer.create_batch(&many).await.expect_status(201);
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[CREATED])
        .await
        .expect_status(200);
    receiver.answer_always(Reply::Slow);
    let started = integrator
        .replay(taxpayer.id, json!(0), "missing")
        .await
        .expect_status(200);
    let id = id_of(&started);
    receiver.wait_for(1).await;
    let cancelled = integrator
        .cancel_replay(taxpayer.id, &id)
        .await
        .expect_status(200);
    let queued = cancelled.data()["queued"].as_i64().unwrap();
    assert!((1..600).contains(&queued), "{}", cancelled.text);
    let percent = cancelled.data()["percent"].as_i64().unwrap();
    assert!((1..100).contains(&percent), "{}", cancelled.text);
    receiver.answer_always(Reply::Status(204));
    let settled = async || {
        let open = integrator
            .deliveries(taxpayer.id, "?state=pending")
            .await
            .expect_status(200);
        (open.data()["total"] == json!(0)).then_some(())
    };
    eventually("the end of all deliveries", settled).await;
    let all = integrator
        .deliveries(taxpayer.id, "")
        .await
        .expect_status(200);
    assert_eq!(
        all.data()["total"],
        json!(queued),
        "what was queued is delivered, and nothing else"
    );
    let found = integrator
        .replays(taxpayer.id, &format!("/{id}"))
        .await
        .expect_status(200);
    assert_eq!(
        (&found.data()["state"], &found.data()["queued"]),
        (&json!("cancelled"), &json!(queued))
    );
    // The rest is still missing, and can be asked for again.
    let again = id_of(
        &integrator
            .replay(taxpayer.id, json!(0), "missing")
            .await
            .expect_status(200),
    );
    let done = until_done(&integrator, &taxpayer, &again).await;
    assert_eq!(done["queued"], json!(600 - queued));
}

#[on_sqlite]
async fn a_replay_of_nothing_is_answered_with_a_warning(world: &World) {
    let (taxpayer, integrator, receiver) = with_a_log(world, 1).await;
    for since in [json!("2999-01-01T00:00:00Z"), json!(1_000_000)] {
        let answer = integrator
            .replay(taxpayer.id, since, "all")
            .await
            .expect_status(200);
        assert!(
            answer.warnings().contains("no event from there on"),
            "{}",
            answer.warnings()
        );
        assert_eq!(
            (&answer.data()["state"], &answer.data()["percent"]),
            (&json!("done"), &json!(100))
        );
    }
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &[])
        .await
        .expect_status(200);
    let answer = integrator
        .replay(taxpayer.id, json!(0), "missing")
        .await
        .expect_status(200);
    assert!(
        answer.warnings().contains("enabled_events"),
        "{}",
        answer.warnings()
    );
    let id = id_of(&answer);
    assert_eq!(
        until_done(&integrator, &taxpayer, &id).await["queued"],
        json!(0)
    );
    let answer = integrator
        .replay(taxpayer.id, json!(0), "failed")
        .await
        .expect_status(200);
    assert_eq!(answer.warnings(), "");
}

#[each_database]
async fn replays_beside_each_other_send_what_each_was_asked_for_in_order(world: &World) {
    let (taxpayer, integrator, receiver) = with_a_log(world, 1).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let events = [CREATED, "invoice.status-updated"];
    integrator
        .set_webhook(taxpayer.id, &receiver.url(), &events)
        .await
        .expect_status(200);
    for status in ["approved", "draft", "approved"] {
        taxpayer
            .set_status(&invoice, status)
            .await
            .expect_status(200);
    }
    let before = receiver.wait_for(5).await.len();
    let third = receiver.received_notifications()[2].body()["sequence"].clone();
    let all = integrator
        .replay(taxpayer.id, json!(0), "all")
        .await
        .expect_status(200);
    let some = integrator
        .replay(taxpayer.id, third, "all")
        .await
        .expect_status(200);
    for answer in [&all, &some] {
        until_done(&integrator, &taxpayer, &id_of(answer)).await;
    }
    let settled = async || {
        let open = integrator
            .deliveries(taxpayer.id, "?state=pending")
            .await
            .expect_status(200);
        (open.data()["total"] == json!(0)).then_some(())
    };
    eventually("the end of all deliveries", settled).await;
    let again = receiver.received_notifications().split_off(before);
    let about = |irn: &Value| -> Vec<i64> {
        let mine = again.iter().filter(|one| one.body()["data"]["irn"] == *irn);
        mine.map(|one| one.body()["sequence"].as_i64().unwrap())
            .collect()
    };
    let order = about(&invoice["irn"]);
    let whole = taxpayer
        .events()
        .await
        .into_iter()
        .filter(|event| event["irn"] == invoice["irn"]);
    let whole: Vec<i64> = whole
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect();
    // The second replay may begin anew behind what the first has sent. Whoever keeps the first or the last notification of
    // each event still has them in order, and ends with the newest.
    let firsts = without_repetitions(order.iter());
    let mut lasts = without_repetitions(order.iter().rev());
    lasts.reverse();
    assert_eq!(firsts, whole, "{order:?}");
    assert_eq!(lasts, whole, "{order:?}");
}

#[on_sqlite]
async fn a_replay_is_for_an_endpoint_that_is_in_service(world: &World) {
    let (taxpayer, integrator, receiver) = with_a_log(world, 1).await;
    switch_off(&taxpayer, &integrator, &receiver).await;
    let answer = integrator.replay(taxpayer.id, json!(0), "all").await;
    let answer = answer.expect_refusal(409, "INVALID_TRANSITION");
    assert_eq!(
        answer.message(),
        "The webhook is disabled: enable it before anything is replayed"
    );
    assert_eq!(
        integrator.replays(taxpayer.id, "").await.data()["total"],
        json!(0),
        "nothing was begun"
    );
    for replay in ["missing", "failed"] {
        let answer = integrator
            .enable_webhook(taxpayer.id, replay)
            .await
            .expect_status(200);
        assert_eq!(answer.data()["replay"]["only"], json!(replay));
    }
    let path = format!("{}/replays/x/cancel", webhook(taxpayer.id));
    integrator
        .call("GET", &path)
        .await
        .expect_refusal(405, "METHOD_NOT_ALLOWED");
}
