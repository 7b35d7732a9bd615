//! The load that taxpayers make: who uses most of a replica, and the pause of one taxpayer.

use einvoice::internals::OperatorRole;
use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::each_database;
use testkit::patience::eventually;
use testkit::roles::{INVOICES, Taxpayer};

use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

const TOP: &str = "/ops/top-taxpayers";

#[each_database(ALONE)]
async fn the_taxpayers_that_use_most_come_first_with_what_they_used(world: &World) {
    let operator = world.new_operator().await;
    let [busy, calm] = [world.taxpayer().await, world.taxpayer().await];
    for _ in 0..3 {
        busy.invoice(&documents::invoice()).await;
    }
    busy.app()
        .submit(&submission(&busy, &documents::invoice_no()))
        .await
        .expect_status(200);
    calm.invoice(&documents::invoice()).await;
    let top = async |query: &str| {
        let answer = operator.get(&format!("{TOP}?{query}")).await;
        answer.expect_status(200).data().clone()
    };
    let by_writes = top("").await;
    assert_eq!(
        (&by_writes["by"], &by_writes["minutes"]),
        (&json!("writes"), &json!(5))
    );
    assert!(by_writes["answered_by"].is_string() && by_writes["since"].is_string());
    let first = &by_writes["taxpayers"][0];
    assert_eq!(first["taxpayer_id"], busy.id);
    assert!(first["name"].is_string(), "{first}");
    assert!(first["writes"].as_u64() > by_writes["taxpayers"][1]["writes"].as_u64());
    assert!(first["wait_max_us"].as_u64() > Some(0), "{first}");
    let ended = async || {
        let by_runs = top("by=runs&minutes=1").await;
        (by_runs["taxpayers"][0]["runs"] == 1).then_some(by_runs)
    };
    let by_runs = eventually("the run that has ended", ended).await;
    assert_eq!(by_runs["taxpayers"].as_array().unwrap().len(), 1);
    assert_eq!(top("by=throttled&minutes=60").await["taxpayers"], json!([]));
    operator
        .get(&format!("{TOP}?by=colour"))
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let page = viewer
        .get("/console/top-taxpayers?by=writes&minutes=60")
        .await;
    page.shows_all(&[
        first["name"].as_str().unwrap(),
        &format!("href=\"/console/taxpayers/{}\"", busy.id),
        by_writes["answered_by"].as_str().unwrap(),
    ]);
}

#[each_database(&[("RATE_LIMIT__REQUESTS_PER_S", "1"), ("RATE_LIMIT__BURST", "5")])]
async fn answers_429_count_for_the_taxpayer_of_the_key(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let refused = async || {
        let answer = taxpayer.get(INVOICES).await;
        (answer.status == 429).then_some(())
    };
    eventually("an answer 429", refused).await;
    let top = operator.get(&format!("{TOP}?by=throttled&minutes=5")).await;
    let listed = top.expect_status(200).data()["taxpayers"].clone();
    let is_own = |one: &&Value| one["taxpayer_id"] == taxpayer.id;
    let own = listed.as_array().unwrap().iter().find(is_own).cloned();
    assert!(own.unwrap()["throttled"].as_u64() >= Some(1), "{listed}");
}

#[each_database(ALONE)]
async fn a_paused_taxpayer_writes_nothing_and_its_runs_wait_until_it_is_resumed(world: &World) {
    let operator = world.new_operator().await;
    let [paused, other] = [world.taxpayer().await, world.taxpayer().await];
    operator
        .send("POST", "/ops/breakers/sign/trip", &json!({}))
        .await
        .expect_status(200);
    for taxpayer in [&paused, &other] {
        submit(taxpayer).await;
    }
    let order = |to: &str| format!("/ops/taxpayers/{}/{to}", paused.id);
    operator
        .send("POST", &order("pause"), &json!({}))
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    let answer = operator
        .send(
            "POST",
            &order("pause"),
            &json!({ "reason": "it floods us" }),
        )
        .await
        .expect_status(200);
    assert_eq!(answer.data()["is_paused"], true);
    let refused = paused.create_invoice(&documents::invoice()).await;
    let refused = refused.expect_refusal(503, "OVERLOADED");
    assert_eq!(refused.header("retry-after"), "30");
    paused.get(INVOICES).await.expect_status(200);
    other.invoice(&documents::invoice()).await;
    let tree = operator.get("/ops/supervision").await.expect_status(200);
    let listed = &tree.data()["paused_taxpayers"][0];
    assert_eq!(
        (&listed["taxpayer_id"], &listed["reason"]),
        (&json!(paused.id), &json!("it floods us"))
    );
    operator
        .send("POST", "/ops/breakers/sign/reset", &json!({}))
        .await
        .expect_status(200);
    let ended = async |taxpayer: &Taxpayer| {
        let state = operator.newest_run(taxpayer).await["state"].clone();
        (state == "succeeded").then_some(())
    };
    eventually("the end of the other's run", async || ended(&other).await).await;
    let run = operator.newest_run(&paused).await;
    assert_ne!(run["state"], "succeeded", "{run}");
    let visitor = Visitor::operator(world, OperatorRole::Operator).await;
    let run_page = format!("/console/runs/{}", run["id"].as_str().unwrap());
    visitor
        .get(&run_page)
        .await
        .shows("an operator has paused this taxpayer since");
    let taxpayer_page = format!("/console/taxpayers/{}", paused.id);
    for page in [taxpayer_page.as_str(), "/console/supervision"] {
        visitor.get(page).await.shows("it floods us");
    }
    visitor
        .submit(
            &format!("{taxpayer_page}/resume"),
            &[("reason", "it is calm")],
        )
        .await
        .leads_to(&taxpayer_page);
    paused.invoice(&documents::invoice()).await;
    eventually("the end of the run", async || ended(&paused).await).await;
    let audit = operator
        .get(&format!("/ops/audit?subject={}", paused.id))
        .await
        .expect_status(200);
    let entries = audit.data()["data"].as_array().unwrap().iter();
    let acts: Vec<_> = entries
        .filter(|entry| entry["action"].as_str().unwrap().starts_with("taxpayer."))
        .map(|entry| (entry["action"].clone(), entry["reason"].clone()))
        .take(2)
        .collect();
    let expected = [
        ("taxpayer.resume", "it is calm"),
        ("taxpayer.pause", "it floods us"),
    ]
    .map(|(action, reason)| (json!(action), json!(reason)));
    assert_eq!(acts, expected);
    let nobody = "/ops/taxpayers/999999999/pause";
    operator
        .send("POST", nobody, &json!({ "reason": "x" }))
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
}

async fn submit(taxpayer: &Taxpayer) {
    let body = submission(taxpayer, &documents::invoice_no());
    taxpayer.app().submit_async(&body).await.expect_status(202);
}
