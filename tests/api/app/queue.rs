//! The queue position that a caller gets, and the effect of an outage on it.

use jiff::Timestamp;
use sandbox::{FaultKind, FaultOrder};
use serde_json::{Value, json};
use testkit::documents::{self, irn, submission};
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

fn moment(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

fn assert_queue(queue: &Value) {
    assert!(queue["position"].as_u64().unwrap() >= 1, "{queue}");
    assert!(
        moment(&queue["predicted_clear_at"]) > moment(&json!("2026-01-01T00:00:00Z")),
        "{queue}"
    );
    assert!(
        moment(&queue["earliest_clear_at"]) <= moment(&queue["predicted_clear_at"]),
        "{queue}"
    );
    assert!(queue["deadline_at"].is_string(), "{queue}");
}

#[each_database]
async fn a_202_tells_the_place_in_the_queue_and_the_deadline(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = format!("{}SBXSLOW", documents::invoice_no());
    let answer = taxpayer
        .app()
        .submit_async(&submission(&taxpayer, &no))
        .await
        .expect_status(202);
    assert_queue(&answer.data()["queue"]);
    assert_eq!(
        answer.data()["queue"]["deadline_at"],
        answer.data()["deadline_at"]
    );
    let run = taxpayer
        .app()
        .run(&irn(&taxpayer, &no))
        .await
        .expect_status(200);
    assert_queue(&run.data()["queue"]);
}

#[on_sqlite]
async fn a_run_that_has_ended_has_no_place_in_the_queue(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let run = taxpayer
        .app()
        .run(&irn(&taxpayer, &no))
        .await
        .expect_status(200);
    assert_eq!(
        (&run.data()["state"], &run.data()["queue"]),
        (&json!("succeeded"), &Value::Null)
    );
    assert!(run.data()["deadline_at"].is_string());
}

#[on_sqlite(&[("PIPELINE__WAIT_S", "1")])]
async fn a_503_of_submit_tells_the_place_in_the_queue(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = format!("{}SBXDOWN", documents::invoice_no());
    let answer = taxpayer.app().submit(&submission(&taxpayer, &no)).await;
    let answer = answer.expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    assert_queue(&answer.body["queue"]);
    assert_ne!(answer.header("retry-after"), "");
}

#[on_sqlite]
async fn a_500_of_transmit_tells_the_place_in_the_queue(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = format!("{}SBXOFFLINE", documents::invoice_no());
    taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    let answer = taxpayer.app().transmit(&irn(&taxpayer, &no)).await;
    assert_queue(&answer.expect_refusal(500, "ACCESS_POINT_OFFLINE").body["queue"]);
}

#[each_database]
async fn the_deadline_runs_from_the_issue_and_depends_on_the_category(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (category, hours) in [("B2B", 72), ("B2C", 24), ("B2G", 72)] {
        let no = documents::invoice_no();
        let body = with(
            &submission(&taxpayer, &no),
            "invoice_category",
            json!(category),
        );
        let body = with(&body, "issue_time", json!("10:00:00"));
        taxpayer.app().submit(&body).await.expect_status(200);
        let run = taxpayer
            .app()
            .run(&irn(&taxpayer, &no))
            .await
            .expect_status(200);
        let issue: Timestamp = format!("{}T10:00:00+01:00", body["issue_date"].as_str().unwrap())
            .parse()
            .unwrap();
        let given = moment(&run.data()["deadline_at"]).duration_since(issue);
        assert_eq!(given.as_hours(), hours, "{category}");
        let transmission = taxpayer.app().transmit(&irn(&taxpayer, &no)).await;
        transmission.expect_status(200);
        let later = taxpayer
            .app()
            .fetch_run_with_operation(&irn(&taxpayer, &no), "transmit")
            .await;
        assert_eq!(
            later.data()["deadline_at"],
            run.data()["deadline_at"],
            "{category}: the same invoice"
        );
    }
}

/// The state of the breaker of a call.
async fn breaker(world: &World, operation: &str) -> String {
    let operator = world.new_operator().await;
    let answer = operator.get("/ops/breakers").await.expect_status(200);
    let breakers = answer.data().as_array().cloned().unwrap_or_default();
    let found = breakers
        .iter()
        .find(|breaker| breaker["operation"] == operation)
        .cloned();
    found.unwrap()["state"].as_str().unwrap().to_owned()
}

#[on_sqlite(&[("PIPELINE__RETRY_MAX_S", "1")])]
async fn submissions_of_an_outage_wait_without_burning_attempts_and_go_on_by_themselves(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let mut order = FaultOrder::new(FaultKind::ServerError);
    order.operation = Some("irn_validate".to_owned());
    order.probability = Some("1".parse().unwrap());
    world.authority.add_fault(order).unwrap();
    let mut early = Vec::new();
    for _ in 0..25 {
        let no = documents::invoice_no();
        taxpayer
            .app()
            .submit_async(&submission(&taxpayer, &no))
            .await
            .expect_status(202);
        early.push(irn(&taxpayer, &no));
    }
    let opened = async || (breaker(world, "validate_irn").await != "closed").then_some(());
    eventually("the breaker to open", opened).await;
    let mut late = Vec::new();
    for _ in 0..10 {
        let no = documents::invoice_no();
        let answer = taxpayer
            .app()
            .submit_async(&submission(&taxpayer, &no))
            .await
            .expect_status(202);
        assert_queue(&answer.data()["queue"]);
        late.push(irn(&taxpayer, &no));
    }
    // Longer than any backoff, so that each would be tried if it could be.
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    for irn in &late {
        let run = taxpayer.app().run(irn).await.expect_status(200);
        let steps = run.data()["steps"].as_array().unwrap();
        let tried = steps
            .iter()
            .filter(|step| step["outcome"] == "retry")
            .count();
        assert!(tried <= 1, "one of them may be the probe: {}", run.body);
    }
    world.authority.clear_faults();
    for irn in early.iter().chain(&late) {
        let ended = async || {
            let run = taxpayer.app().run(irn).await;
            (run.data()["state"] == "succeeded").then_some(run)
        };
        eventually("the queue to drain", ended).await;
    }
}
