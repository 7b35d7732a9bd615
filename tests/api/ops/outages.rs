//! GET /ops/outages, and the notifications of an outage.

use sandbox::{FaultKind, FaultOrder};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, irn, submission};
use testkit::patience::eventually;
use testkit::receiver::{Received, Receiver};
use testkit::roles::{Operator, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const STARTED: &str = "authority.outage-started";
const ENDED: &str = "authority.outage-ended";
/// A second without failures ends an outage.
const QUICK: [(&str, &str); 1] = [("AUTHORITY__OUTAGE_CLEAR_AFTER_S", "1")];

async fn subscribed(world: &World, receiver: &Receiver, events: &[&str]) -> Taxpayer {
    let taxpayer = world.taxpayer().await;
    world
        .integrator()
        .set_webhook(taxpayer.id, &receiver.url(), events)
        .await
        .expect_status(200);
    taxpayer
}

/// The authority is out, and submissions find out; their bodies.
async fn outage(world: &World, taxpayer: &Taxpayer) -> Vec<Value> {
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let mut bodies = Vec::new();
    for _ in 0..3 {
        let body = submission(taxpayer, &documents::invoice_no());
        taxpayer.app().submit_async(&body).await.expect_status(202);
        bodies.push(body);
    }
    bodies
}

async fn outages(operator: &Operator) -> Answer {
    operator.get("/ops/outages").await.expect_status(200)
}

/// The newest outage, once it is as it is looked for.
async fn newest(operator: &Operator, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let look = async || {
        let listed = outages(operator).await;
        listed.data()["data"]
            .get(0)
            .filter(|outage| is_it(outage))
            .cloned()
    };
    eventually(what, look).await
}

fn of_outages(events: Vec<Value>) -> Vec<Value> {
    events
        .into_iter()
        .filter(|event| event["type"].as_str().unwrap().starts_with("authority."))
        .collect()
}

fn has_fields(of: &Value, fields: &[&str]) {
    let found: Vec<_> = of.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, fields);
}

/// Waits until the runs of these submissions, which the outage held up, went on by themselves.
async fn wait_until_succeeded(taxpayer: &Taxpayer, submitted: &[Value]) {
    for body in submitted {
        let run = async || {
            let run = taxpayer
                .app()
                .run(body["irn"].as_str().unwrap())
                .await
                .expect_status(200);
            (run.data()["state"] == json!("succeeded")).then_some(())
        };
        eventually("what was queued to go on by itself", run).await;
    }
}

#[each_database(&QUICK)]
async fn subscribed_taxpayers_are_notified_once_of_the_start_and_the_end_of_an_outage(
    world: &World,
) {
    let receiver = Receiver::start();
    let subscriber = subscribed(world, &receiver, &[STARTED, ENDED]).await;
    let deaf = subscribed(world, &receiver, &["api-key.rotated"]).await;
    let none = world.taxpayer().await;
    let operator = world.new_operator().await;
    let submitted = outage(world, &subscriber).await;
    let open = newest(&operator, "a notified outage", |one| {
        one["announced"]["started"] == 1
    })
    .await;
    has_fields(
        &open,
        &[
            "announced",
            "duration_s",
            "ended_at",
            "id",
            "operations",
            "started_at",
        ],
    );
    has_fields(&open["announced"], &["ended", "started", "under_way"]);
    assert_eq!(
        (&open["ended_at"], &open["announced"]["ended"]),
        (&json!(null), &json!(0))
    );
    let operations = open["operations"].as_array().unwrap();
    assert!(operations.contains(&json!("validate_irn")), "{open}");
    let metrics = world.anonymous().get("/metrics").await.text;
    assert!(metrics.contains("einvoice_authority_outage 1"), "{metrics}");
    let ready = world
        .anonymous()
        .get("/health/ready")
        .await
        .expect_status(200);
    assert_eq!(ready.body["status"], json!("degraded"));

    world.authority.clear_faults();
    let over = newest(&operator, "the notified end", |one| {
        one["announced"]["ended"] == 1
    })
    .await;
    assert_eq!(
        (&over["id"], &over["announced"]["started"]),
        (&open["id"], &json!(1))
    );
    let events = of_outages(subscriber.events().await);
    let names: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(names, [STARTED, ENDED]);
    has_fields(
        &events[0]["data"],
        &["message", "operations", "outage_id", "started_at"],
    );
    has_fields(
        &events[1]["data"],
        &[
            "duration_s",
            "ended_at",
            "message",
            "operations",
            "outage_id",
            "started_at",
        ],
    );
    for event in &events {
        assert_eq!(
            (&event["irn"], &event["data"]["outage_id"]),
            (&json!(null), &open["id"])
        );
        assert_eq!(event["data"]["started_at"], open["started_at"]);
    }
    assert_eq!(events[1]["data"]["ended_at"], over["ended_at"]);
    assert_eq!(events[1]["data"]["duration_s"], over["duration_s"]);
    let mut arrived: Vec<_> = receiver
        .wait_for(2)
        .await
        .iter()
        .map(Received::kind)
        .collect();
    arrived.sort_unstable();
    assert_eq!(arrived, [ENDED, STARTED]);
    for other in [deaf, none] {
        let heard = of_outages(other.events().await);
        assert!(heard.is_empty(), "{heard:?}");
    }
    wait_until_succeeded(&subscriber, &submitted).await;
    eventually("a metrics page without an outage", async || {
        let metrics = world.anonymous().get("/metrics").await.text;
        metrics
            .contains("einvoice_authority_outage 0")
            .then_some(())
    })
    .await;
}

#[on_sqlite(&QUICK)]
async fn a_second_outage_is_a_second_pair_and_the_newest_is_listed_first(world: &World) {
    let receiver = Receiver::start();
    let taxpayer = subscribed(world, &receiver, &[STARTED, ENDED]).await;
    let operator = world.new_operator().await;
    assert_eq!(outages(&operator).await.data()["total"], json!(0));
    for round in 1..=2 {
        outage(world, &taxpayer).await;
        newest(&operator, "an open outage", |one| one["ended_at"].is_null()).await;
        world.authority.clear_faults();
        newest(&operator, "its notified end", |one| {
            one["announced"]["ended"] == 1
        })
        .await;
        assert_eq!(outages(&operator).await.data()["total"], json!(round));
    }
    let listed = outages(&operator).await.data()["data"].clone();
    let starts: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["started_at"].as_str().unwrap())
        .collect();
    assert!(starts[0] > starts[1], "{starts:?}");
    let second = operator
        .get("/ops/outages?per_page=1&page=2")
        .await
        .expect_status(200);
    assert_eq!(second.data()["data"], json!([listed[1]]));
    assert_eq!(
        (&second.data()["per_page"], &second.data()["last_page"]),
        (&json!(1), &json!(2))
    );
    let names: Vec<_> = of_outages(taxpayer.events().await)
        .iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(names, [STARTED, ENDED, STARTED, ENDED]);
}

#[on_sqlite(&QUICK)]
async fn calls_that_are_relayed_live_show_an_outage_too(world: &World) {
    let receiver = Receiver::start();
    let taxpayer = subscribed(world, &receiver, &[STARTED]).await;
    let no = documents::invoice_no();
    let operator = world.new_operator().await;
    taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    for _ in 0..20 {
        taxpayer
            .app()
            .confirm(&irn(&taxpayer, &no))
            .await
            .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
    }
    let open = newest(&operator, "an outage of one operation", |one| {
        one["announced"]["started"] == 1
    })
    .await;
    assert_eq!(open["operations"], json!(["confirm"]));
    world.authority.clear_faults();
    let answered =
        async || (taxpayer.app().confirm(&irn(&taxpayer, &no)).await.status == 200).then_some(());
    eventually("an answer to a probe", answered).await;
    newest(&operator, "its end", |one| one["ended_at"].is_string()).await;
    assert_eq!(
        of_outages(taxpayer.events().await).len(),
        1,
        "the end was not asked for"
    );
}

#[on_sqlite(&QUICK)]
async fn a_call_that_fails_for_one_taxpayer_while_the_authority_answers_is_no_outage(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let operator = world.new_operator().await;
    taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let fault = FaultOrder::new(FaultKind::ServerError)
        .on(sandbox::Operation::Confirm)
        .times(1_000);
    world.authority.add_fault(fault).unwrap();
    for _ in 0..60 {
        taxpayer
            .app()
            .confirm(&irn(&taxpayer, &no))
            .await
            .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
    }
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    assert_eq!(outages(&operator).await.data()["total"], json!(0));
}

#[on_sqlite(&QUICK)]
async fn a_call_that_fails_for_several_taxpayers_is_no_outage_while_the_authority_answers(
    world: &World,
) {
    let operator = world.new_operator().await;
    let fault = FaultOrder::new(FaultKind::ServerError)
        .on(sandbox::Operation::Validate)
        .times(1_000);
    world.authority.add_fault(fault).unwrap();
    for _ in 0..3 {
        let taxpayer = world.taxpayer().await;
        for _ in 0..7 {
            let body = documents::validation(&taxpayer, &documents::invoice_no());
            taxpayer
                .app()
                .validate(&body)
                .await
                .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
        }
    }
    let breakers = operator.get("/ops/breakers").await.expect_status(200);
    let entries = breakers.data().as_array().unwrap().iter();
    let open: Vec<_> = entries.filter(|entry| entry["state"] != "closed").collect();
    assert_eq!(open.len(), 1, "the lane of the integrator");
    assert_eq!(open[0]["held_taxpayers"].as_array().map(Vec::len), Some(3));
    assert_eq!(outages(&operator).await.data()["total"], json!(0));
}

#[on_sqlite]
async fn the_names_of_outage_events_are_known(world: &World) {
    let receiver = Receiver::start();
    let taxpayer = world.taxpayer().await;
    let answer = world
        .integrator()
        .set_webhook(taxpayer.id, &receiver.url(), &[STARTED, ENDED])
        .await;
    assert_eq!(answer.expect_status(200).warnings(), "");
}
