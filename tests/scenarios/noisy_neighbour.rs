//! A taxpayer with a long queue does not hold up another's single invoice: it is signed after a bounded number of
//! turns, however long the queue is.
//!
//! `EINVOICE_NOISY_RUNS` says how many runs are queued before it: 150 in the ordinary run.

use std::time::Instant;

use futures_util::stream::{self, StreamExt};
use sandbox::LatencyOrder;
use testkit::documents::{Registration, irn, submission};
use testkit::patience::eventually;
use testkit::{Backend, each_database};

use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;
use crate::support::size::size;

/// Runs that the process drives at a time.
const CONCURRENCY: usize = 8;
const CONCURRENCY_MAX: (&str, &str) = ("EINVOICE__PIPELINE__CONCURRENCY_MAX", "8");
/// Those under way when the invoice comes, those that take their turn beside its own, and those that began while
/// its calls were made.
const TURNS_MAX: usize = 3 * CONCURRENCY;
/// Long enough that hardly anything is done while the queue is made, short enough for what follows.
const SIGN_MS_WHILE_QUEUEING: u64 = 1_000;
const SIGN_MS_AFTERWARDS: u64 = 20;
/// Requests under way at a time.
const AT_ONCE: usize = 8;

#[each_database]
async fn a_long_queue_of_one_delays_another_by_a_bounded_number_of_turns(backend: Backend) {
    let queued = size("EINVOICE_NOISY_RUNS", 150);
    let deployment = Deployment::with(backend, &[CONCURRENCY_MAX]).await;
    let queries = DatabaseQueries::open(&deployment).await;
    let neighbour = deployment.newcomer().await;
    set_sign_latency(&deployment, SIGN_MS_WHILE_QUEUEING);
    let begun = Instant::now();
    queue_runs(&deployment, queued).await;
    let open = queries
        .number("SELECT COUNT(*) FROM pipeline_runs WHERE state <> 'succeeded'")
        .await;
    println!(
        "{backend:?}: {queued} runs queued in {:?}, {open} of them open",
        begun.elapsed()
    );
    assert!(
        usize::try_from(open).unwrap() > TURNS_MAX,
        "the queue is long enough to tell"
    );
    set_sign_latency(&deployment, SIGN_MS_AFTERWARDS);

    let body = submission(&neighbour.registration, "SINGLE1");
    let irn = irn(&neighbour.registration, "SINGLE1");
    let before = signatures(&deployment);
    let begun = Instant::now();
    assert_eq!(neighbour.client.start_run("submit", &body).await, 202);
    let after = eventually("the neighbour's signature", async || {
        let signed = deployment.authority.state().invoices();
        signed.iter().position(|sheet| sheet.irn == irn)
    })
    .await;
    let turns = after - before;
    println!(
        "  the neighbour's was signed {:?} after it came, after {turns} others",
        begun.elapsed()
    );
    assert!(
        turns <= TURNS_MAX,
        "{turns} of another's invoices were signed first, {TURNS_MAX} at most"
    );
    assert_eq!(
        deployment
            .authority
            .state()
            .invoice(&irn)
            .unwrap()
            .sign_count,
        1
    );
}

/// Has every call take so long.
fn set_sign_latency(deployment: &Deployment, ms: u64) {
    let order = LatencyOrder {
        fixed_ms: Some(ms),
        ..LatencyOrder::default()
    };
    deployment.authority.state().add_latency(order).unwrap();
}

/// Has the demo taxpayer submit so many invoices; they need not be stored.
async fn queue_runs(deployment: &Deployment, runs: usize) {
    stream::iter(0..runs)
        .for_each_concurrent(AT_ONCE, async |number| {
            let invoice_no = format!("NOISE{number}");
            deployment
                .taxpayer
                .start_run("submit", &submission(&Registration::demo(), &invoice_no))
                .await;
        })
        .await;
}

fn signatures(deployment: &Deployment) -> usize {
    deployment.authority.state().invoices().len()
}
