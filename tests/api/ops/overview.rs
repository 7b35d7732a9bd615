//! /ops/overview and the metrics of the same counts.

use serde_json::{Value, json};
use testkit::each_database;
use testkit::patience::eventually;

use crate::ops::runs::{id, until, waiting};
use crate::support::world::{ALONE, World};

#[each_database(ALONE)]
async fn a_paused_run_that_has_missed_its_deadline_is_counted_for_operators_and_on_the_metrics_page(
    world: &World,
) {
    let operator = world.new_operator().await;
    let (taxpayer, _) = waiting(world, &operator).await;
    let run = operator.newest_run(&taxpayer).await;
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    until(&operator, &taxpayer, "paused").await;
    let paused = async || {
        let answer = operator.get("/ops/overview").await.expect_status(200);
        let groups = answer.data()["runs"].as_array().unwrap().clone();
        let is_paused = |group: &&Value| group["state"] == json!("paused");
        groups
            .iter()
            .find(is_paused)
            .map(|group| (group.clone(), answer.data().clone()))
    };
    let (group, overview) = eventually("a paused run in the overview", paused).await;
    assert_eq!(
        (&group["runs"], &group["wait_reason"]),
        (&json!(1), &Value::Null)
    );
    assert!(group["oldest_age_s"].is_u64(), "{group}");
    assert_eq!(overview["deadlines"], json!({ "overdue": 1, "soon": 0 }));
    assert_eq!(overview["deliveries"], json!({ "pending": 0, "dead": 0 }));
    assert_eq!(
        overview["endpoints"][0],
        json!({ "health": "working", "endpoints": 0 })
    );
    let text = world
        .anonymous()
        .get("/metrics")
        .await
        .expect_status(200)
        .text;
    for line in [
        "einvoice_runs{state=\"paused\"} 1",
        "einvoice_runs{state=\"waiting\"} 0",
        "einvoice_runs_oldest_seconds{state=\"paused\"} ",
        "einvoice_runs_waiting{reason=\"health-check-down\"} 0",
        "einvoice_deadlines_overdue 1",
        "einvoice_deadlines_due_soon 0",
        "einvoice_deliveries_dead 0",
        "einvoice_endpoints{health=\"parked\"} 0",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}
