//! kill -9 at every step of a run: while a call is in the authority's hands, and right after its reply. The
//! run must then end by itself, with one signature and one transmission per IRN.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sandbox::{FaultKind, FaultOrder, Operation};
use testkit::documents::{Registration, submission};
use testkit::patience::{PATIENCE, eventually};
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::Created;
use crate::support::deployment::Deployment;

const SUBMIT: [Operation; 4] = [
    Operation::IrnValidate,
    Operation::Validate,
    Operation::Sign,
    Operation::Confirm,
];
const TRANSMIT: [Operation; 3] = [Operation::Health, Operation::Lookup, Operation::Transmit];
/// With the effect done at once and the answer late; and with no effect, the failure late.
const LATE_FAULTS: [FaultKind; 2] = [FaultKind::Latency, FaultKind::ServerError];
/// Long enough that the answer never comes before the kill.
const ANSWER_DELAY: Duration = Duration::from_mins(2);
/// From the reply of a call to the kill: before its outcome is written, about then, and after it.
const DELAYS_MS: [u64; 3] = [0, 5, 12];
/// With an effect and no usable answer, and without an effect.
const FLAKY_FAULTS: [FaultKind; 5] = [
    FaultKind::CommitThenDrop,
    FaultKind::Garbage,
    FaultKind::Reset,
    FaultKind::ServerError,
    FaultKind::Busy,
];
const RUNS: usize = 12;
/// Kills at random moments of each operation.
const KILLS: usize = 4;
/// Processes that are killed beside each other.
const SCENES: usize = 3;

/// One kill with a call of each step of Submit in flight, with and without an effect; one more for Transmit.
#[each_database]
async fn runs_killed_with_calls_in_flight_end_by_themselves(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let mut submitted = Vec::new();
    for operation in SUBMIT {
        for kind in LATE_FAULTS {
            let invoice_no = format!("FLIGHT{operation:?}{kind:?}");
            let irn = format!("{invoice_no}-94CD90AA-20260115");
            let start = async || submitted.push(deployment.submit(&invoice_no).await);
            hold_up(&deployment, (operation, kind), &irn, start).await;
        }
    }
    deployment.restart_after_kill().await;
    for created in &submitted {
        deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, "submit")
            .await;
    }

    let points = TRANSMIT
        .iter()
        .flat_map(|operation| LATE_FAULTS.map(|kind| (*operation, kind)));
    let (transmitted, only_submitted) = submitted.split_at(TRANSMIT.len() * LATE_FAULTS.len());
    // The health check names no invoice: its faults come last, when nobody else asks for it.
    let (health, others): (Vec<_>, Vec<_>) =
        points.partition(|(operation, _)| *operation == Operation::Health);
    for (point, created) in others.into_iter().chain(health).zip(transmitted) {
        hold_up(&deployment, point, &created.irn, async || {
            deployment.transmit(created).await;
        })
        .await;
    }
    deployment.restart_after_kill().await;
    for created in transmitted {
        deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, "transmit")
            .await;
    }

    let events = deployment.intact_events().await;
    let mut tried = 0;
    for created in &submitted {
        // Asked again, the end of the run is the answer, and nothing is called.
        let again = submission(&Registration::demo(), &created.invoice_no);
        assert_eq!(deployment.taxpayer.start_run("submit", &again).await, 200);
        let is_transmitted = !only_submitted.contains(created);
        tried += deployment
            .assert_done(created, &events, is_transmitted)
            .await;
    }
    println!(
        "{backend:?}: {} kill points in 2 kills, {} invoices, {} signatures of {tried} tried",
        submitted.len() + transmitted.len(),
        submitted.len(),
        deployment.authority.state().invoices().len(),
    );
}

/// Starts what calls the operation, and waits until the authority has that call in hand.
async fn hold_up(
    deployment: &Deployment,
    (operation, kind): (Operation, FaultKind),
    irn: &str,
    start: impl AsyncFnOnce(),
) {
    let before = deployment.pending_calls(operation, irn);
    deployment.order_late(kind, operation, irn, ANSWER_DELAY);
    start().await;
    let what = format!("{operation:?} in flight for {irn}");
    eventually(&what, async || {
        (deployment.pending_calls(operation, irn) > before).then_some(())
    })
    .await;
}

/// A kill of its own after each call of both operations, at several moments after the reply.
#[each_database]
async fn a_run_killed_between_any_two_steps_ends_by_itself(backend: Backend) {
    let operations = SUBMIT.into_iter().chain(TRANSMIT);
    let points: Vec<_> = operations
        .flat_map(|operation| DELAYS_MS.map(|delay| (operation, delay)))
        .collect();
    let shares = (0..SCENES).map(|share| points.iter().copied().skip(share).step_by(SCENES));
    let counts = join_all(shares.map(|share| kill_after_replies(backend, share.collect()))).await;
    let unanswered: usize = counts.iter().sum();
    println!(
        "{backend:?}: {} kills between steps, {unanswered} of them before the outcome was written",
        points.len()
    );
}

/// Kills one process after another; gives how many of the kills fell between an intent and its outcome.
async fn kill_after_replies(backend: Backend, points: Vec<(Operation, u64)>) -> usize {
    let mut deployment = Deployment::open(backend).await;
    let mut done = Vec::new();
    let mut unanswered = 0;
    for (operation, delay_ms) in points {
        let is_transmit = TRANSMIT.contains(&operation);
        let invoice_no = format!("AFTER{operation:?}{delay_ms}");
        let created = if is_transmit {
            let created = deployment.submit(&invoice_no).await;
            deployment
                .taxpayer
                .wait_until_succeeded(&created.irn, "submit")
                .await;
            let before = count_replies(&deployment, operation, &created);
            deployment.transmit(&created).await;
            wait_for_reply(&deployment, operation, &created, before).await;
            created
        } else {
            let created = deployment.submit(&invoice_no).await;
            wait_for_reply(&deployment, operation, &created, 0).await;
            created
        };
        sleep(Duration::from_millis(delay_ms)).await;
        deployment.restart_after_kill().await;
        let name = if is_transmit { "transmit" } else { "submit" };
        let run = deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, name)
            .await;
        let steps = run["steps"].as_array().unwrap();
        unanswered += steps
            .iter()
            .filter(|step| step["outcome"].is_null())
            .count();
        done.push((created, is_transmit));
    }
    let events = deployment.intact_events().await;
    for (created, is_transmitted) in &done {
        deployment
            .assert_done(created, &events, *is_transmitted)
            .await;
    }
    assert_eq!(
        deployment.authority.state().invoices().len(),
        done.len(),
        "nothing else was signed"
    );
    unanswered
}

fn count_replies(deployment: &Deployment, operation: Operation, created: &Created) -> usize {
    let calls = deployment.calls(operation, &created.irn);
    calls.iter().filter(|call| call.status().is_some()).count()
}

/// Returns at once when the authority has answered one more call.
async fn wait_for_reply(
    deployment: &Deployment,
    operation: Operation,
    created: &Created,
    before: usize,
) {
    let begun = Instant::now();
    while count_replies(deployment, operation, created) == before {
        assert!(begun.elapsed() < PATIENCE, "no reply to {operation:?}");
        tokio::task::yield_now().await;
    }
}

/// Many runs at once, kills at moments left to chance, and an authority of which a quarter of the calls fail
/// in one way or another.
#[each_database]
async fn runs_end_well_under_kills_and_a_flaky_authority(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    for kind in FLAKY_FAULTS {
        let mut order = FaultOrder::new(kind);
        order.probability = Some("0.05".parse().unwrap());
        deployment.authority.state().add_fault(order).unwrap();
    }
    let mut chance = StdRng::seed_from_u64(5);
    let operator = deployment.operator();
    let mut invoices = Vec::new();
    for number in 0..RUNS {
        invoices.push(deployment.submit(&format!("CHANCE{number}")).await);
    }
    for operation in ["submit", "transmit"] {
        for _ in 0..KILLS {
            sleep(Duration::from_millis(chance.random_range(20..500))).await;
            deployment.restart_after_kill().await;
        }
        deployment.end_runs(&operator).await;
        for created in &invoices {
            deployment
                .taxpayer
                .wait_until_succeeded(&created.irn, operation)
                .await;
            if operation == "submit" {
                deployment.transmit(created).await;
            }
        }
    }
    let events = deployment.intact_events().await;
    let mut tried = 0;
    for created in &invoices {
        tried += deployment.assert_done(created, &events, true).await;
    }
    println!(
        "{backend:?}: {RUNS} runs of each operation, {} kills, {RUNS} signatures of {tried} tried",
        2 * KILLS
    );
}
