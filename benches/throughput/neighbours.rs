//! Measures the calls of one integrator's taxpayers beside another integrator that does its worst with 25 taxpayers, and
//! alone, in the same run.

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

use crate::cases::{NUMBER_PLACEHOLDER, Prepared, request, series};
use crate::load::{Answers, Load, Pace, Requests};
use crate::service::{Service, onboard};

/// Long enough that ten answers are above the 99th percentile.
const MEASURED_SPAN: Duration = Duration::from_secs(20);
/// The neighbour begins so long before the measurement.
const NEIGHBOUR_LEAD: Duration = Duration::from_secs(3);
const CALLS_PER_S: f64 = 50.0;
const CONNECTIONS: usize = 32;
const TAXPAYERS: usize = 25;
/// Submissions of the neighbour in a second. The authority answers each sign of theirs with 500.
const REFUSED_PER_S: f64 = 10.0;
const HEADS_PER_KEY: usize = 16;
const HEADS_FROM_KEYS: usize = 12;
const REOPEN_AFTER: Duration = Duration::from_millis(100);

/// The worst that the neighbour can do.
#[derive(Debug, Clone, Copy)]
enum WorstBehaviour {
    /// Its submissions come to an authority that is down for them.
    SubmitsToNobody,
    /// The same number of submissions, which the authority signs: what they cost is no matter of limits.
    Submits,
    /// It sends heads of requests whose bodies never come.
    HeadsWithoutBodies,
}

impl WorstBehaviour {
    /// The one whose runs go on after it has ended is last.
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

/// Prints the times of creates and submissions alone and beside each neighbour.
pub(crate) async fn measure(database: &str, service: &Service, prepared: &Prepared) {
    let [_, neighbour] = &service.integrators;
    let onboarding = (0..TAXPAYERS).map(|_| onboard(&service.client, neighbour));
    let neighbours = join_all(onboarding).await;
    let loads = prepared.beside_neighbours().map(|(what, requests)| {
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
            print(database, what, worst, &alone, &beside);
        }
    }
}

fn print(database: &str, what: &str, worst: WorstBehaviour, alone: &Answers, beside: &Answers) {
    let [alone_p50, alone_p99] = [500, 990].map(|per_mille| alone.per_mille_ms(per_mille));
    let [beside_p50, beside_p99] = [500, 990].map(|per_mille| beside.per_mille_ms(per_mille));
    println!(
        "{database:<10} {what:<6} beside {:<40} p50 {alone_p50:>6.1} -> {beside_p50:>6.1} ms  p99 {alone_p99:>6.1} -> \
         {beside_p99:>6.1} ms  x {:.2}",
        worst.name(),
        beside_p99 / alone_p99
    );
}

/// Begins what the neighbour does. It ends when the returned set is dropped.
fn start_neighbour(
    worst: WorstBehaviour,
    address: SocketAddr,
    taxpayers: &[Taxpayer],
) -> JoinSet<()> {
    let mut neighbour = JoinSet::new();
    match worst {
        WorstBehaviour::SubmitsToNobody => {
            neighbour.spawn(submit(address, submissions(taxpayers, "SBXDOWN")))
        }
        WorstBehaviour::Submits => neighbour.spawn(submit(address, submissions(taxpayers, ""))),
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

async fn submit(address: SocketAddr, requests: Requests) {
    // It ends before the next measurement begins.
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

/// Returns submissions of all taxpayers that are answered at once, with a magic word of the simulator in each number.
fn submissions(taxpayers: &[Taxpayer], word: &str) -> Requests {
    let bodies: Vec<_> = taxpayers
        .iter()
        .map(|taxpayer| {
            (
                taxpayer.key().to_owned(),
                documents::submission(taxpayer, NUMBER_PLACEHOLDER).to_string(),
            )
        })
        .collect();
    let prefix = format!("{}{word}N", series());
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
    // However the connection ends, the next takes its place.
    let _ = stream.read_to_end(&mut answer).await;
    sleep(REOPEN_AFTER).await;
}
