//! A crash costs about as much as the work in flight had taken: runs and notifications that a kill -9 cut off go on at
//! once and side by side, also beside receivers that hang.
//!
//! Prints how long the same work takes without a kill and with one.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use sandbox::{FaultKind, FaultOrder, Operation};
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use testkit::receiver::Receiver;
use testkit::{Backend, each_database};

use crate::support::chaos::submit_all;
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;

/// As shipped: nobody waits for the leases of a process that is known to be gone.
const LEASE: (&str, &str) = ("EINVOICE__CLUSTER__LEASE_S", "30");
const RUNS: usize = 60;
const PROMPT_RECEIVERS: usize = 10;
const HANGING_RECEIVERS: usize = 40;
/// The time after which a hanging receiver answers.
const HANGS_FOR: Duration = Duration::from_secs(5);
/// The time that the authority takes for each signature, so that a kill meets some.
const SIGNATURE_TAKES: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 8;

#[each_database]
async fn work_that_a_kill_cuts_off_goes_on_at_once_and_side_by_side(backend: Backend) {
    let undisturbed = run_round(backend, false).await;
    let killed = run_round(backend, true).await;
    let per_cent = killed.as_millis() * 100 / undisturbed.as_millis().max(1);
    println!("{backend:?}: {undisturbed:?} without a kill, {killed:?} with one: {per_cent} %");
}

/// Has the same work done in a new deployment and returns how long it took.
async fn run_round(backend: Backend, is_killed: bool) -> Duration {
    let mut deployment = Deployment::with(backend, &[LEASE]).await;
    let [prompt, hanging] = [(), ()].map(|()| Receiver::start());
    hanging.delay(HANGS_FOR);
    let urls = [prompt.url(), hanging.url()];
    let receivers = (0..PROMPT_RECEIVERS + HANGING_RECEIVERS)
        .map(|number| &urls[usize::from(number >= PROMPT_RECEIVERS)]);
    let neighbours: Vec<_> = stream::iter(receivers)
        .map(async |url| {
            let newcomer = deployment.newcomer().await;
            deployment.set_webhook_for(newcomer.id, url).await;
            newcomer
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut slow = FaultOrder::new(FaultKind::Latency)
        .on(Operation::Sign)
        .times(u32::MAX);
    slow.latency_ms = Some(u64::try_from(SIGNATURE_TAKES.as_millis()).unwrap());
    deployment.authority.state().add_fault(slow).unwrap();

    let begun = Instant::now();
    stream::iter(&neighbours)
        .for_each_concurrent(AT_ONCE, async |one| {
            let invoice = invoice_numbered("CRASHCOST");
            one.client.create_invoice(&invoice).await;
        })
        .await;
    submit_all(&deployment, (0..RUNS).map(|number| format!("COST{number}"))).await;
    eventually("every hanging receiver to be asked", async || {
        (hanging.requests() >= HANGING_RECEIVERS).then_some(())
    })
    .await;
    if is_killed {
        deployment.restart_after_kill().await;
    }
    let queries = DatabaseQueries::open(&deployment).await;
    eventually("the end of all work", async || {
        let open = "SELECT (SELECT COUNT(*) FROM pipeline_runs WHERE state <> 'succeeded') \
             + (SELECT COUNT(*) FROM deliveries WHERE state <> 'delivered')";
        (queries.number(open).await == 0).then_some(())
    })
    .await;
    let took = begun.elapsed();
    let runs = "SELECT COUNT(*) FROM pipeline_runs WHERE state = 'succeeded'";
    assert_eq!(queries.number(runs).await, i64::try_from(RUNS).unwrap());
    let delivered = "SELECT COUNT(*) FROM deliveries WHERE state = 'delivered'";
    let events = i64::try_from(neighbours.len()).unwrap();
    assert_eq!(queries.number(delivered).await, events);
    deployment.intact_events().await;
    took
}
