//! GET /ops/incidents, and the same incidents on the pages and on the metrics page.

use einvoice::internals::OperatorRole;
use serde_json::{Value, json};
use testkit::on_sqlite;
use testkit::patience::eventually;

use crate::ops::runs::{id, until, waiting};
use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

#[on_sqlite(ALONE)]
async fn a_paused_run_is_told_in_the_same_words_everywhere(world: &World) {
    let operator = world.new_operator().await;
    let visitor = Visitor::operator(world, OperatorRole::Viewer).await;
    let (taxpayer, _) = waiting(world, &operator).await;
    let run = operator.newest_run(&taxpayer).await;
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    until(&operator, &taxpayer, "paused").await;
    let find = async || {
        let answer = operator.get("/ops/incidents").await.expect_status(200);
        assert!(answer.data()["counted_at"].is_string(), "{answer:?}");
        let incidents = answer.data()["incidents"].as_array().unwrap().clone();
        let is_paused = |incident: &Value| incident["incident"] == "runs-paused";
        incidents.into_iter().find(is_paused)
    };
    let paused = eventually("the incident", find).await;
    let words = ["severity", "title", "cause", "summary", "count"].map(|field| &paused[field]);
    assert_eq!(
        words,
        [
            &json!("warning"),
            &json!("Runs are paused"),
            &json!(""),
            &json!("1 run is paused."),
            &json!(1)
        ]
    );
    visitor.get("/console").await.expect(200).shows_all(&[
        "Runs are paused",
        "1 run is paused.",
        "Their invoices do not go on.",
        "When an operator has moved or cancelled them.",
        "Mend what their last errors name",
    ]);
    // The overdue run is the graver incident, so every other page names it.
    visitor
        .get("/console/audit")
        .await
        .expect(200)
        .shows("Legal deadlines are missed: 1 invoice has missed the legal deadline");
    let text = world
        .anonymous()
        .get("/metrics")
        .await
        .expect_status(200)
        .text;
    let gauge = "einvoice_incident{incident=\"runs-paused\",severity=\"warning\",cause=\"\"} 1";
    assert!(text.contains(gauge), "{text}");

    operator
        .move_run(id(&run), "cancel")
        .await
        .expect_status(200);
    eventually("the end of the incident", async || {
        find().await.is_none().then_some(())
    })
    .await;
}

#[on_sqlite]
async fn only_operators_see_incidents(world: &World) {
    world
        .anonymous()
        .get("/ops/incidents")
        .await
        .expect_status(401);
}

#[on_sqlite(ALONE)]
async fn only_keys_that_nobody_has_count_as_wrong(world: &World) {
    const AUDIT: &str = "/ops/audit";
    let wrong_keys = async || -> u64 {
        let text = world.anonymous().get("/metrics").await.text;
        let name = "einvoice_authentications_failed_total ";
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap().parse().unwrap()
    };
    let before = wrong_keys().await;
    world.anonymous().get(AUDIT).await.expect_status(401);
    world.integrator().get(AUDIT).await.expect_status(401);
    assert_eq!(wrong_keys().await, before, "no key, and a key of others");
    let guess = world.anonymous().with_key("opk_unknown");
    guess.get(AUDIT).await.expect_status(401);
    assert_eq!(wrong_keys().await, before + 1);
}
