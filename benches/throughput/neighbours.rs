//! Measures the calls of one integrator's taxpayers twice in the same run: alone, and beside 25 taxpayers of another
//! integrator (the neighbour), which do their worst.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::future::join_all;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use testkit::documents;
use testkit::roles::{SUBMIT, Taxpayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::cases::{NUMBER_PLACEHOLDER, Prepared, request, unused_number_prefix};
use crate::load::{Answers, Load, Pace, Requests};
use crate::service::{Service, onboard};

/// The time of one measurement: long enough that ten answers are above the 99th percentile.
const MEASURED_SPAN: Duration = Duration::from_secs(20);
/// The neighbour begins this long before the measurement.
const NEIGHBOUR_LEAD: Duration = Duration::from_secs(3);
const CALLS_PER_S: f64 = 50.0;
const CONNECTIONS: usize = 32;
const TAXPAYERS: usize = 25;
/// The submissions of the neighbour per second. With `SubmitsToNobody`, the authority answers each of its calls to
/// sign with 500.
const REFUSED_PER_S: f64 = 10.0;
const HEADS_PER_KEY: usize = 16;
const HEADS_FROM_KEYS: usize = 12;
const REOPEN_AFTER: Duration = Duration::from_millis(100);

/// A way in which the neighbour can harm others.
#[derive(Debug, Clone, Copy)]
enum WorstBehaviour {
    /// Submits invoices that the authority always answers with an error.
    SubmitsToNobody,
    /// Submits as many invoices, and the authority signs them. This shows the cost of the work itself, which limits
    /// cannot avoid.
    Submits,
    /// Sends the heads of requests and never their bodies.
    HeadsWithoutBodies,
}

impl WorstBehaviour {
    /// All behaviours. `SubmitsToNobody` is last, because its runs continue after its measurement.
    const ALL: [Self; 3] = [
        Self::Submits,
        Self::HeadsWithoutBodies,
        Self::SubmitsToNobody,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::SubmitsToNobody => "10 submissions/s that are answered 500",
            Self::Submits => "10 submissions/s that are signed",
            Self::HeadsWithoutBodies => "192 heads without bodies",
        }
    }
}

/// Prints the times of creates and submissions: alone, and beside each behaviour of the neighbour.
pub(crate) async fn measure(database: &str, service: &Service, prepared: &Prepared) {
    let [_, neighbour] = &service.integrators;
    let onboarding = (0..TAXPAYERS).map(|_| onboard(&service.client, neighbour));
    let neighbours = join_all(onboarding).await;
    let loads = prepared
        .requests_beside_neighbours()
        .map(|(what, requests)| {
            let next = Arc::new(AtomicUsize::new(0));
            (
                what,
                Load {
                    address: service.process.address,
                    requests,
                    connections: CONNECTIONS,
                    span: MEASURED_SPAN,
                    next,
                },
            )
        });
    let pace = Pace::PerSecond(CALLS_PER_S);
    for worst in WorstBehaviour::ALL {
        for (what, load) in &loads {
            let alone = load.run(pace).await;
            let neighbour = start_neighbour(worst, service.process.address, &neighbours);
            sleep(NEIGHBOUR_LEAD).await;
            let beside = load.run(pace).await;
            drop(neighbour);
            print_comparison(database, what, worst, &alone, &beside);
        }
    }
}

fn print_comparison(
    database: &str,
    what: &str,
    worst: WorstBehaviour,
    alone: &Answers,
    beside: &Answers,
) {
    let [alone_p50, alone_p99] = [500, 990].map(|per_mille| alone.per_mille_ms(per_mille));
    let [beside_p50, beside_p99] = [500, 990].map(|per_mille| beside.per_mille_ms(per_mille));
    println!(
        "{database:<10} {what:<6} beside {:<40} p50 {alone_p50:>6.1} -> {beside_p50:>6.1} ms  p99 {alone_p99:>6.1} -> \
         {beside_p99:>6.1} ms  x {:.2}",
        worst.name(),
        beside_p99 / alone_p99
    );
}

/// Starts the neighbour with this behaviour. The neighbour stops when the returned set is dropped.
fn start_neighbour(
    worst: WorstBehaviour,
    address: SocketAddr,
    taxpayers: &[Taxpayer],
) -> JoinSet<()> {
    let mut neighbour = JoinSet::new();
    match worst {
        WorstBehaviour::SubmitsToNobody => neighbour.spawn(run_submissions(
            address,
            submission_requests(taxpayers, "SBXDOWN"),
        )),
        WorstBehaviour::Submits => {
            neighbour.spawn(run_submissions(address, submission_requests(taxpayers, "")))
        }
        WorstBehaviour::HeadsWithoutBodies => {
            let keys = taxpayers
                .iter()
                .take(HEADS_FROM_KEYS)
                .map(|taxpayer| taxpayer.key().to_owned());
            neighbour.spawn(hold_heads(address, keys.collect()))
        }
    };
    neighbour
}

async fn run_submissions(address: SocketAddr, requests: Requests) {
    // The submissions end before the next measurement begins.
    let span = NEIGHBOUR_LEAD + MEASURED_SPAN;
    let load = Load {
        address,
        requests,
        connections: 4,
        span,
        next: Arc::new(AtomicUsize::new(0)),
    };
    load.run(Pace::PerSecond(REFUSED_PER_S)).await;
}

/// Returns submissions of all taxpayers that the service answers before their runs have ended. Each invoice number
/// contains `word`, a magic word of the simulator.
fn submission_requests(taxpayers: &[Taxpayer], word: &str) -> Requests {
    let bodies: Vec<_> = taxpayers
        .iter()
        .map(|taxpayer| {
            (
                taxpayer.key().to_owned(),
                documents::submission(taxpayer, NUMBER_PLACEHOLDER).to_string(),
            )
        })
        .collect();
    let prefix = format!("{}{word}N", unused_number_prefix());
    Arc::new(move |number| {
        let (key, body) = &bodies[number % bodies.len()];
        let body = body.replace(NUMBER_PLACEHOLDER, &format!("{prefix}{number}"));
        let mut request: Request<Full<Bytes>> = request("POST", SUBMIT, key, body);
        request
            .headers_mut()
            .insert("prefer", "respond-async".parse().unwrap());
        request
    })
}

/// Opens connections, sends the head of a create on each, and opens the next when the service closes one.
async fn hold_heads(address: SocketAddr, keys: Vec<String>) {
    let mut held = JoinSet::new();
    for key in keys {
        for _ in 0..HEADS_PER_KEY {
            let key = key.clone();
            held.spawn(async move {
                loop {
                    hold_head(address, &key).await;
                }
            });
        }
    }
    held.join_all().await;
}

async fn hold_head(address: SocketAddr, key: &str) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/tax-payers/invoices HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\
         content-type: application/json\r\ncontent-length: 60000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // However the connection ends, `hold_heads` opens the next one.
    let _ = stream.read_to_end(&mut answer).await;
    sleep(REOPEN_AFTER).await;
}
