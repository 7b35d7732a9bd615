//! Incidents of the work: runs, refusals, endpoints and deliveries.

use reqwest::Method;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::documents::{invoice_numbered, submission};
use testkit::patience::eventually;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, each_database};
use timing::clock::{Clock, SystemClock};
use tokio::time::{Duration, sleep};

use super::{Expected, SETTINGS, Watch};
use crate::support::client::{Client, Created};
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;

/// Half an hour in microseconds.
const HALF_AN_HOUR: i64 = 1_800_000_000;
const MINUTE: i64 = 60_000_000;
/// So many taxpayers refused for the same reason are an incident.
const TAXPAYERS: usize = 10;

const ONE_WORKER: (&str, &str) = ("EINVOICE__PIPELINE__CONCURRENCY_MAX", "1");
/// The condition for lanes of runs that are due or will be, and that nobody has claimed.
const WAITING_LANES: &str = "kind = 'run' AND next_due_at IS NOT NULL AND lease_until IS NULL";

/// The time in microseconds since 1970, as rows have it.
fn now() -> i64 {
    SystemClock.now().as_microsecond()
}

/// Submits an invoice whose check fails until the faults are cleared, and pauses its run.
async fn pause_a_run(watch: &Watch<'_>) {
    let deployment = watch.deployment;
    deployment.add_fault(FaultOrder::new(FaultKind::ServerError).on(Operation::IrnValidate));
    deployment.submit("LATE").await;
    eventually("a run that can be paused", async || {
        (watch.move_runs("pause", "waiting").await > 0).then_some(())
    })
    .await;
    // The invoice was late from the beginning. While its run moves, that is told only after a minute.
    watch
        .appears(Expected::new(
            "deadlines-missed",
            "missed the legal deadline",
        ))
        .await;
    watch
        .appears(Expected::new("runs-paused", "1 run is paused"))
        .await;
    deployment.clear_faults();
}

#[each_database]
async fn a_run_that_stays_is_told_as_paused_late_and_quarantined(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    let database = DatabaseQueries::open(&deployment).await;
    pause_a_run(&watch).await;

    let soon = now() + HALF_AN_HOUR;
    let paused = "WHERE state = 'paused'";
    database
        .execute(&format!(
            "UPDATE pipeline_runs SET deadline_at = {soon} {paused}"
        ))
        .await;
    watch.is_gone("deadlines-missed").await;
    let near = Expected::new(
        "deadlines-near",
        "1 invoice has its legal deadline within an hour",
    );
    let near = watch.appears(near.entailing(&["runs-paused"])).await;
    assert!(near["until"].is_string(), "{near}");

    database
        .execute(&format!("UPDATE pipeline_runs SET crashes = 3 {paused}"))
        .await;
    let quarantined = Expected::new("work-quarantined", "1 run is in quarantine").caused_by("run");
    watch
        .appears(quarantined.entailing(&["deadlines-near", "runs-paused"]))
        .await;
    watch.is_gone("runs-paused").await;
    database
        .execute(&format!("UPDATE pipeline_runs SET crashes = 0 {paused}"))
        .await;
    watch.is_gone("work-quarantined").await;

    assert_eq!(watch.move_runs("cancel", "paused").await, 1);
    watch.is_gone("runs-paused").await;
    watch.is_gone("deadlines-near").await;
    watch.is_calm().await;
}

#[each_database]
async fn refusals_of_one_taxpayer_and_of_many_are_told_apart(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    for number in 0..5 {
        deployment.submit(&format!("INV{number}SBXREJECT")).await;
    }
    let one = format!("of taxpayer {}", deployment.taxpayer_id());
    let one = Expected::new("documents-refused", &one).blamed_on("taxpayer");
    let refused = watch.appears(one).await;
    watch
        .lasts(&refused, "An hour after the last refusal")
        .await;
    assert!(refused["until"].is_string(), "{refused}");

    for number in 1..TAXPAYERS {
        let newcomer = deployment.newcomer().await;
        let invoice = format!("NEW{number}SBXREJECT");
        newcomer
            .client
            .start_run("submit", &submission(&newcomer.registration, &invoice))
            .await;
    }
    let alike = Expected::new(
        "refusals-alike",
        "of 10 taxpayers within an hour for the same reason",
    );
    let alike = watch.appears(alike).await;
    watch
        .lasts(&alike, "An hour after the last such refusals")
        .await;
    assert!(alike["until"].is_string(), "{alike}");
}

/// Submits two invoices. The only worker is busy with the first until its signature is answered.
async fn submit_behind_a_busy_worker(deployment: &Deployment, answered_after_ms: u64) -> Created {
    deployment.add_fault(FaultOrder {
        latency_ms: Some(answered_after_ms),
        ..FaultOrder::new(FaultKind::Latency).on(Operation::Sign)
    });
    let first = deployment.submit("FIRST").await;
    eventually("a worker at work", async || {
        (deployment.pending_calls(Operation::Sign, &first.irn) > 0).then_some(())
    })
    .await;
    deployment.clear_faults();
    deployment.submit("SECOND").await;
    first
}

#[each_database]
async fn work_that_waits_for_a_busy_worker_is_not_told_as_untaken(backend: Backend) {
    let deployment = Deployment::with(backend, &[&SETTINGS[..], &[ONE_WORKER]].concat()).await;
    let watch = deployment.watch().await;
    let first = submit_behind_a_busy_worker(&deployment, 28_000).await;
    let due_for_a_minute =
        format!("UPDATE lanes SET next_due_at = next_due_at - {MINUTE} WHERE {WAITING_LANES}");
    DatabaseQueries::open(&deployment)
        .await
        .execute(&due_for_a_minute)
        .await;
    while deployment.pending_calls(Operation::Sign, &first.irn) > 0 {
        assert_eq!(watch.find("work-not-taken").await, None);
        sleep(Duration::from_millis(500)).await;
    }
    watch.is_gone("deadlines-missed").await;
    watch.is_calm().await;
}

#[each_database]
async fn work_that_nobody_takes_is_told_until_it_is_taken(backend: Backend) {
    let deployment = Deployment::with(backend, &[&SETTINGS[..], &[ONE_WORKER]].concat()).await;
    let watch = deployment.watch().await;
    let database = DatabaseQueries::open(&deployment).await;
    submit_behind_a_busy_worker(&deployment, 2_000).await;
    // The claims begin with the first taxpayer, so none of them reaches a taxpayer below zero.
    let hide = format!("UPDATE lanes SET taxpayer_id = -1 - taxpayer_id WHERE {WAITING_LANES}");
    database.execute(&hide).await;
    let untaken = Expected::new("work-not-taken", "no replica takes it").caused_by("run");
    watch.appears(untaken.seen_within_s(45)).await;
    database
        .execute("UPDATE lanes SET taxpayer_id = -1 - taxpayer_id WHERE taxpayer_id < 0")
        .await;
    watch.is_gone("work-not-taken").await;
    watch.is_gone("deadlines-missed").await;
    watch.is_calm().await;
}

#[each_database]
async fn endpoints_that_fail_are_told_by_their_cause(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    let receiver = Receiver::start();
    let mut number = 0;
    for (reply, cause) in [(Reply::Status(500), "rejected"), (Reply::HangUp, "reset")] {
        receiver.answer_always(reply);
        deployment.set_webhook(&receiver.url()).await;
        for _ in 0..6 {
            number += 1;
            let invoice = invoice_numbered(&format!("DEAD{number}"));
            deployment.taxpayer.create_invoice(&invoice).await;
        }
        let parked = Expected::new("endpoints-parked", "parked, because it")
            .caused_by(cause)
            .blamed_on("receiver")
            .entailing(&["dead-letters"]);
        watch.appears(parked).await;
        if number == 6 {
            let dead = Expected::new("dead-letters", "became dead letters within a day");
            let dead = watch.appears(dead.entailing(&["endpoints-parked"])).await;
            watch.lasts(&dead, "a day after the last one").await;
        }
        receiver.answer_always(Reply::Status(200));
        number += 1;
        let invoice = invoice_numbered(&format!("WELL{number}"));
        deployment.taxpayer.create_invoice(&invoice).await;
        watch.is_gone("endpoints-parked").await;
    }

    receiver.answer_always(Reply::Status(410));
    let gone = invoice_numbered("GONE");
    deployment.taxpayer.create_invoice(&gone).await;
    watch
        .appears(Expected::new(
            "endpoints-disabled",
            "1 endpoint is disabled",
        ))
        .await;
    receiver.answer_always(Reply::Status(200));
    let path = format!(
        "/v1/system-integrators/taxpayers/{}/webhook/enable",
        deployment.taxpayer_id()
    );
    let enabled = deployment
        .integrator
        .call(Method::POST, &path, Some(&json!({})))
        .await
        .unwrap();
    assert_eq!(enabled.status, 200, "{enabled:?}");
    watch.is_gone("endpoints-disabled").await;
    watch.is_calm().await;
}

#[each_database]
async fn keys_that_are_wrong_are_told_while_they_are_tried(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch().await;
    let stranger = Client::new(deployment.service.url(), "ink_0123456789abcdef");
    for _ in 0..60 {
        stranger.get("/v1/system-integrators/taxpayers").await;
    }
    let wrong = Expected::new("authentications-fail", "were wrong within five minutes");
    let wrong = watch.appears(wrong).await;
    watch
        .lasts(&wrong, "five minutes after the last ones")
        .await;
}
