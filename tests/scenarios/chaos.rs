//! Invoices go through Submit and Transmit while the authority lies, stalls and dies in about 30 of 100 calls; then
//! the same while the process is killed at the boundaries of its steps. Each must end transmitted, by itself, with
//! one signature and one transmission, and nothing may stay open or unknown.
//!
//! Small in the ordinary run; larger on demand, by the environment:
//!
//! | Variable | Says | Ordinary |
//! |---|---|---|
//! | `EINVOICE_CHAOS_INVOICES` | how many invoices | 24 |
//! | `EINVOICE_CHAOS_SEEDS` | what the faults are drawn with, one run each, with commas between | 1 |
//! | `EINVOICE_CHAOS_KILLS` | how many kills | 4 |

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sandbox::Operation;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::chaos::{self, TIMEOUT, submit_all, transmit_all};
use crate::support::client::Created;
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;
use crate::support::size::{size, sizes};

/// Where nobody dies, nothing has to be taken over in a second.
const LEASE: (&str, &str) = ("EINVOICE__CLUSTER__LEASE_S", "10");
/// A kill follows a call of these, in turn: the gravest first.
const BOUNDARIES: [Operation; 7] = [
    Operation::Sign,
    Operation::Confirm,
    Operation::Transmit,
    Operation::Lookup,
    Operation::IrnValidate,
    Operation::Validate,
    Operation::Health,
];
/// From the end of the call to the kill, in milliseconds: before its outcome is written, about then, and after it.
const DELAYS_MS: [u64; 3] = [0, 5, 12];
/// Where no such call comes meanwhile, the kill comes anyway.
const BOUNDARY_WAIT: Duration = Duration::from_secs(2);
/// Invoices that are begun before each kill.
const INVOICES_PER_KILL: usize = 3;

#[each_database]
async fn every_invoice_ends_transmitted_whatever_the_authority_does(backend: Backend) {
    for seed in sizes("EINVOICE_CHAOS_SEEDS", 1) {
        run_under_faults(backend, seed).await;
    }
}

async fn run_under_faults(backend: Backend, seed: u64) {
    let count = size("EINVOICE_CHAOS_INVOICES", 24);
    let deployment = Deployment::with(backend, &[TIMEOUT, LEASE]).await;
    let queries = DatabaseQueries::open(&deployment).await;
    let begun = Instant::now();
    chaos::begin(&deployment, seed);
    let invoices = submit_all(
        &deployment,
        (0..count).map(|number| format!("CHAOS{number}")),
    )
    .await;
    queries.wait_until_all_succeeded("submit", count).await;
    transmit_all(&deployment, &invoices).await;
    queries.wait_until_all_succeeded("transmit", count).await;
    println!(
        "{backend:?}, seed {seed}: {count} invoices transmitted in {:?}",
        begun.elapsed()
    );
    assert_all_done(&deployment, &queries, &invoices).await;
}

/// What must hold when all is over; prints what happened.
async fn assert_all_done(deployment: &Deployment, queries: &DatabaseQueries, invoices: &[Created]) {
    let (struck, calls) = chaos::end(deployment).await;
    assert_eq!(
        queries.unknown_or_open().await,
        0,
        "runs that are unknown or open"
    );
    let events = deployment.intact_events().await;
    let mut tried = 0;
    for created in invoices {
        tried += deployment.assert_done(created, &events, true).await;
    }
    assert_eq!(
        deployment.authority.state().invoices().len(),
        invoices.len(),
        "nothing else was signed"
    );
    println!(
        "  {struck} of {calls} calls struck, {} signatures of {tried} tried",
        invoices.len()
    );
    queries.print_outcomes().await;
}

#[each_database]
async fn every_invoice_ends_transmitted_whatever_is_killed_meanwhile(backend: Backend) {
    let kills = size("EINVOICE_CHAOS_KILLS", 4);
    let mut deployment = Deployment::with(backend, &[TIMEOUT]).await;
    let queries = DatabaseQueries::open(&deployment).await;
    let operator = deployment.operator();
    chaos::begin(&deployment, 1);
    let mut chance = StdRng::seed_from_u64(5);
    let mut invoices = Vec::new();
    let mut unsent = Vec::new();
    let mut at_boundaries = 0;
    for kill in 0..kills {
        let operation = BOUNDARIES[kill % BOUNDARIES.len()];
        let before = count_ended_calls(&deployment, operation);
        let begun = submit_all(
            &deployment,
            (0..INVOICES_PER_KILL).map(|number| format!("KILL{kill}N{number}")),
        )
        .await;
        unsent.extend(begun.iter().cloned());
        invoices.extend(begun);
        transmit_ready(&deployment, &mut unsent).await;
        at_boundaries += usize::from(wait_for_another_end(&deployment, operation, before).await);
        sleep(Duration::from_millis(
            DELAYS_MS[chance.random_range(0..DELAYS_MS.len())],
        ))
        .await;
        deployment.restart_after_kill().await;
    }
    deployment.end_runs(&operator).await;
    queries
        .wait_until_all_succeeded("submit", invoices.len())
        .await;
    transmit_all(&deployment, &unsent).await;
    queries
        .wait_until_all_succeeded("transmit", invoices.len())
        .await;
    println!("{backend:?}: {kills} kills, {at_boundaries} of them at the boundary of a step");
    assert_all_done(&deployment, &queries, &invoices).await;
}

/// Starts Transmit of what is submitted.
async fn transmit_ready(deployment: &Deployment, unsent: &mut Vec<Created>) {
    let mut left = Vec::new();
    for created in unsent.drain(..) {
        let run = deployment
            .taxpayer
            .run(&created.irn, "submit")
            .await
            .expect("a run");
        if run["state"] == "succeeded" {
            deployment.transmit(&created).await;
        } else {
            left.push(created);
        }
    }
    *unsent = left;
}

/// Calls of this operation that have ended, well or not.
fn count_ended_calls(deployment: &Deployment, operation: Operation) -> usize {
    let calls = deployment.authority.state().calls();
    calls
        .iter()
        .filter(|call| call.operation == Some(operation) && !call.is_pending())
        .count()
}

/// Returns when one more has ended; or none has for long.
async fn wait_for_another_end(
    deployment: &Deployment,
    operation: Operation,
    before: usize,
) -> bool {
    let begun = Instant::now();
    while count_ended_calls(deployment, operation) == before {
        if begun.elapsed() > BOUNDARY_WAIT {
            return false;
        }
        sleep(Duration::from_millis(1)).await;
    }
    true
}
