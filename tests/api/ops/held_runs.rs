//! The runs that operators hold back: every page and answer says so, and none says that they go on by themselves.

use einvoice::internals::OperatorRole;
use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::each_database;
use testkit::patience::eventually;

use crate::support::visitor::Visitor;
use crate::support::world::{ALONE, World};

#[each_database(ALONE)]
async fn a_due_run_that_operators_hold_back_is_nowhere_told_to_go_on_by_itself(world: &World) {
    let operator = world.new_operator().await;
    let taxpayer = world.taxpayer().await;
    let visitor = Visitor::operator(world, OperatorRole::Operator).await;
    let shows = async |path: &str, text: &str| {
        let page = async || visitor.get(path).await.html.contains(text).then_some(());
        eventually(text, page).await;
    };
    operator
        .send("POST", "/ops/breakers/validate/trip", &json!({}))
        .await
        .expect_status(200);
    let body = submission(&taxpayer, &documents::invoice_no());
    let accepted = taxpayer.app().submit_async(&body).await.expect_status(202);
    assert_eq!(accepted.data()["queue"], Value::Null);
    let error = async || {
        let run = operator.newest_run(&taxpayer).await;
        run["last_error"].as_str().map(str::to_owned)
    };
    assert_eq!(
        eventually("the reason of the wait", error).await,
        "an operator of this service holds back calls of this kind"
    );
    let stopped = "Waiting until operators reset the breakers of their calls: 1.";
    shows("/console/lanes", stopped).await;
    shows("/console", "but for those held back by operators").await;
    visitor
        .get("/console/lanes")
        .await
        .expect(200)
        .hides("The last run");
    visitor
        .get("/console/runs")
        .await
        .expect(200)
        .shows("An operator, who stopped its calls")
        .hides("Its turn");
    let metrics = world.anonymous().get("/metrics").await.text;
    let gauge = "einvoice_runs_held{reason=\"calls-stopped\"} 1";
    assert!(metrics.contains(gauge), "{metrics}");

    operator
        .send(
            "POST",
            &format!("/ops/taxpayers/{}/pause", taxpayer.id),
            &json!({ "reason": "it floods us" }),
        )
        .await
        .expect_status(200);
    operator
        .send("POST", "/ops/breakers/validate/reset", &json!({}))
        .await
        .expect_status(200);
    let paused = "Waiting until operators resume their taxpayers: 1.";
    shows("/console/lanes", paused).await;
    visitor
        .get("/console/runs")
        .await
        .expect(200)
        .shows("An operator, who paused its taxpayer")
        .hides("Its turn");
}
