//! The authority is out for a while and stops no caller: creates go on, what is submitted
//! is accepted and waits, and all of it is signed by itself afterwards.
//!
//! `EINVOICE_OUTAGE_S` says how long it is out: 4 s in the ordinary run. What is printed is for people; no time is
//! asserted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::Method;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::documents::{Registration, invoice_numbered, submission};
use testkit::{Backend, each_database};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::support::client::Client;
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;
use crate::support::size::size;

/// How long creates are measured before the outage.
const SPAN_BEFORE: Duration = Duration::from_secs(1);
/// Between two submissions during the outage.
const SUBMIT_EVERY: Duration = Duration::from_millis(150);
/// Between two creates of a writer.
const CREATE_EVERY: Duration = Duration::from_millis(15);
const WRITERS: usize = 2;
const PHASES: [&str; 3] = ["before", "during", "after"];
const PHASE_OVER: usize = PHASES.len();
const CATEGORIES: [&str; 2] = ["B2B", "B2C"];

#[each_database]
async fn creates_continue_during_an_outage_and_what_waits_is_signed_afterwards(backend: Backend) {
    let seconds = u64::try_from(size("EINVOICE_OUTAGE_S", 4)).unwrap();
    let deployment = Deployment::open(backend).await;
    let queries = DatabaseQueries::open(&deployment).await;
    let phase = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| create_on(&deployment.taxpayer, writer, &phase))
        .collect();
    sleep(SPAN_BEFORE).await;

    let outage = FaultOrder {
        for_s: Some(seconds),
        ..FaultOrder::new(FaultKind::Outage)
    };
    let ends = Instant::now() + Duration::from_secs(seconds);
    deployment.authority.state().add_fault(outage).unwrap();
    phase.store(1, Ordering::Relaxed);
    let mut accepted = Vec::new();
    while Instant::now() < ends {
        accepted.push(submit(&deployment, accepted.len()).await);
        sleep(SUBMIT_EVERY).await;
    }
    phase.store(2, Ordering::Relaxed);
    assert!(
        deployment.authority.state().invoices().is_empty(),
        "it was out"
    );
    let begun = Instant::now();
    queries
        .wait_until_all_succeeded("submit", accepted.len())
        .await;
    println!(
        "{backend:?}: out for {seconds} s, {} runs waited, drained in {:?}",
        accepted.len(),
        begun.elapsed()
    );
    phase.store(PHASE_OVER, Ordering::Relaxed);
    print_creates(writers).await;

    assert_eq!(queries.unknown_or_open().await, 0);
    deployment.intact_events().await;
    for run in &accepted {
        let sheet = deployment.authority.state().invoice(&run.irn).unwrap();
        assert_eq!(sheet.sign_count, 1, "{}", run.irn);
    }
    print_order(&deployment, &accepted);
    print_estimates(&deployment, &accepted);
}

/// A run that was accepted during the outage, and what was said of it then.
struct Accepted {
    irn: String,
    category: &'static str,
    deadline: Option<Timestamp>,
    predicted: Option<Timestamp>,
}

/// Submits one more; it is accepted with 202 although the authority is out.
async fn submit(deployment: &Deployment, number: usize) -> Accepted {
    let category = CATEGORIES[number % CATEGORIES.len()];
    let invoice_no = format!("OUT{number}{category}");
    let irn = format!("{invoice_no}-94CD90AA-20260115");
    let mut body = submission(&Registration::demo(), &invoice_no);
    body["invoice_category"] = json!(category);
    let answer = deployment
        .taxpayer
        .call(Method::POST, "/v1/app/invoices/submit", Some(&body))
        .await;
    let answer = answer.expect("an answer during the outage");
    assert_eq!(answer.status, 202, "{answer:?}");
    let run = &answer.body["data"];
    let moment = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    Accepted {
        irn,
        category,
        deadline: moment(&run["deadline_at"]),
        predicted: moment(&run["queue"]["predicted_clear_at"]),
    }
}

/// Creates on and on, and keeps how long each took and in which phase.
fn create_on(
    client: &Client,
    writer: usize,
    phase: &Arc<AtomicUsize>,
) -> JoinHandle<Vec<(usize, Duration)>> {
    let client = client.clone();
    let phase = Arc::clone(phase);
    tokio::spawn(async move {
        let mut taken = Vec::new();
        for number in 0.. {
            let now = phase.load(Ordering::Relaxed);
            if now == PHASE_OVER {
                break;
            }
            let begun = Instant::now();
            let answer = client
                .create(&invoice_numbered(&format!("GOESON{writer}N{number}")))
                .await;
            assert_eq!(
                answer.expect("an answer to a create").0,
                201,
                "{}",
                PHASES[now]
            );
            taken.push((now, begun.elapsed()));
            sleep(CREATE_EVERY).await;
        }
        taken
    })
}

async fn print_creates(writers: Vec<JoinHandle<Vec<(usize, Duration)>>>) {
    let mut phases: [Vec<Duration>; PHASE_OVER] = Default::default();
    for writer in writers {
        for (phase, taken) in writer.await.unwrap() {
            phases[phase].push(taken);
        }
    }
    for (name, mut taken) in PHASES.into_iter().zip(phases) {
        taken.sort_unstable();
        let at = |percent: usize| {
            let last = taken.len().saturating_sub(1);
            taken
                .get((taken.len() * percent / 100).min(last))
                .map_or(0, Duration::as_millis)
        };
        println!(
            "  creates {name}: {} answered, p50 {} ms, p99 {} ms",
            taken.len(),
            at(50),
            at(99)
        );
    }
}

/// Prints in which order the authority signed, and how often a later deadline came before an earlier one.
fn print_order(deployment: &Deployment, accepted: &[Accepted]) {
    let known: BTreeMap<&str, &Accepted> =
        accepted.iter().map(|run| (run.irn.as_str(), run)).collect();
    let signed: Vec<_> = deployment
        .authority
        .state()
        .invoices()
        .into_iter()
        .map(|sheet| sheet.irn)
        .collect();
    let signed: Vec<&Accepted> = signed
        .iter()
        .filter_map(|irn| known.get(irn.as_str()).copied())
        .collect();
    let order: Vec<&str> = signed.iter().map(|run| run.category).collect();
    println!("  signed in the order {}", order.join(" "));
    let deadlines: Vec<_> = signed.iter().filter_map(|run| run.deadline).collect();
    let pairs = deadlines
        .iter()
        .enumerate()
        .flat_map(|(at, one)| deadlines[at + 1..].iter().map(move |two| one > two));
    let mut all = 0;
    let mut inverted = 0;
    for is_inverted in pairs {
        all += 1;
        inverted += u32::from(is_inverted);
    }
    println!(
        "  stated deadlines: {}; pairs signed against their deadlines: {inverted} of {all}",
        deadlines.len()
    );
}

/// Prints how far the estimate that came with each 202 was from the moment of the signature.
fn print_estimates(deployment: &Deployment, accepted: &[Accepted]) {
    let mut calls = deployment.authority.state().calls();
    calls.retain(|call| call.operation == Some(Operation::Sign) && call.status() == Some(201));
    let signed: BTreeMap<_, Timestamp> = calls
        .into_iter()
        .filter_map(|call| Some((call.irn?, call.at.parse().ok()?)))
        .collect();
    let error = |run: &Accepted| {
        Some(
            signed
                .get(&run.irn)?
                .duration_since(run.predicted?)
                .as_millis(),
        )
    };
    let mut errors: Vec<i128> = accepted.iter().filter_map(error).collect();
    errors.sort_unstable();
    match errors.as_slice() {
        [] => println!("  stated estimates: none"),
        [first, .., last] => {
            let median = errors[errors.len() / 2];
            println!(
                "  stated estimates: {}; signed {first} to {last} ms after them, median {median} ms",
                errors.len()
            );
        }
        [one] => println!("  stated estimates: 1; signed {one} ms after it"),
    }
}
