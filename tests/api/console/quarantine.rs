//! /console/quarantine and /ops/quarantine: commands that panicked twice.

use einvoice::internals::OperatorRole;
use serde_json::json;
use testkit::each_database;
use uuid::Uuid;

use crate::support::visitor::Visitor;
use crate::support::world::World;

const PANIC: &str = "<script>alert(1)</script> at src/x.rs:1:1";

/// Stores a command of a taxpayer as the process does after its second panic, without contents.
async fn put_aside(world: &World, taxpayer: i64, command: &str) -> String {
    let reference = format!("01900000-0000-7000-8000-{taxpayer:012}");
    let insert = format!(
        "INSERT INTO quarantine (reference, actor, command, taxpayer_id, at, panic, state) \
         VALUES ('{reference}', '{taxpayer}', '{command}', {taxpayer}, 1, '{PANIC}', 'kept')"
    );
    assert_eq!(world.execute(&insert).await, 1);
    reference
}

#[each_database]
async fn a_command_is_listed_without_its_contents_and_dropped_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let reference = put_aside(world, taxpayer.id, "pay").await;
    let viewer = Visitor::operator(world, OperatorRole::Viewer).await;
    let operator = Visitor::operator(world, OperatorRole::Operator).await;
    let list = format!("/console/quarantine?state=kept&taxpayer_id={}", taxpayer.id);
    let seen = viewer.get(&list).await;
    let hidden = ["<script>alert", "/replay", "/drop"];
    seen.shows_all(&[&reference, "pay", "In quarantine", "must not count twice"])
        .hides_all(&hidden);
    let seen = operator
        .get(&list)
        .await
        .hides("<script>alert")
        .hides("/replay\"");
    seen.shows(&format!("/console/quarantine/{reference}/drop"));

    let [replay, drop] =
        ["replay", "drop"].map(|to| format!("/console/quarantine/{reference}/{to}"));
    viewer.submit(&drop, &[]).await.expect(403);
    operator.send(&drop, &[("once", "1")]).await.expect(403);
    operator.submit(&replay, &[]).await.expect(409);
    operator
        .submit(&drop, &[("reason", "reported")])
        .await
        .leads_to("/console/quarantine");
    operator.submit(&drop, &[]).await.expect(409);
    viewer.get(&list).await.hides(&reference);
    let audit = viewer
        .get(&format!("/console/audit?subject={reference}"))
        .await;
    audit.shows_all(&["command.drop", "reported", "@house.example"]);
}

#[each_database]
async fn an_operator_lists_and_drops_over_the_api_and_nobody_else_does(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let reference = put_aside(world, taxpayer.id, "create").await;
    let list = format!("/ops/quarantine?taxpayer_id={}&state=kept", taxpayer.id);
    let listed = operator.call("GET", &list).await.expect_status(200);
    let found = &listed.data()["data"][0];
    assert_eq!(
        (&found["reference"], &found["cause"]),
        (&json!(reference), &json!(PANIC))
    );
    assert_eq!(
        (&found["replay"], &found["contents"]),
        (&json!(null), &json!(null))
    );
    operator
        .call("GET", "/ops/quarantine?state=odd")
        .await
        .expect_faults(&["state"]);
    let [replay, drop] = ["replay", "drop"].map(|to| format!("/ops/quarantine/{reference}/{to}"));
    for path in [&replay, &drop] {
        world
            .anonymous()
            .call("POST", path)
            .await
            .expect_refusal(401, "UNAUTHENTICATED");
    }
    operator
        .call("POST", &replay)
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    let dropped = operator
        .send("POST", &drop, &json!({ "reason": "reported" }))
        .await
        .expect_status(200);
    assert_eq!(dropped.data()["state"], "dropped");
    operator
        .call("POST", &drop)
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    let missing = format!("/ops/quarantine/{}/drop", Uuid::nil());
    operator
        .call("POST", &missing)
        .await
        .expect_refusal(404, "COMMAND_NOT_FOUND");
}
