//! The memory of a process has a bound, however many large bodies one key sends at a time, with an
//! `Idempotency-Key` or without, and others are served meanwhile. Prints how much it took.
//!
//! `EINVOICE_MEMORY_BODIES` says how many bodies are open at a time: 200 in the ordinary run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sandbox::{FaultKind, Operation};
use serde_json::Value;
use testkit::Backend;
use testkit::documents::{Registration, invoice_numbered, submission};
use testkit::patience::eventually;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::client::Client;
use crate::support::deployment::Deployment;
use crate::support::size::size;

const BULK: &str = "/v1/tax-payers/invoices/bulk";
const BODY_BYTES: usize = 10_000_000;
static BODY: [u8; BODY_BYTES] = [b' '; BODY_BYTES];
const MIB: u64 = 1 << 20;
/// The share of one key (`http.bodies_bytes_per_account_max`), and 160 MiB for all that a process does beside it: a
/// connection that waits for its refusal takes half a MiB in a debug build. Three quarters of a share are for large
/// bodies.
const ONE_KEY_BYTES_MAX: u64 = (64 + 160) * MIB;
/// The bodies of `BODY_BYTES` that have room in the share of one key, and in that of an integrator.
const BODIES_PER_KEY: usize = 5;
const BODIES_PER_INTEGRATOR: usize = 10;
/// The share of an integrator with all its keys (`http.bodies_bytes_per_integrator_max`), and 128 MiB beside it.
const ALL_KEYS_BYTES_MAX: u64 = (128 + 128) * MIB;
/// The share of one key in what bodies are parsed to, and as much as that beside it for the documents made of them.
const WAITING_BYTES_MAX: u64 = (64 + 64 + 64) * MIB;

/// Opens a request whose body is there but for its last byte.
async fn open_unfinished_request(client: &Client, number: usize, is_keyed: bool) -> TcpStream {
    let header = if is_keyed {
        format!("idempotency-key: open-{number}\r\n")
    } else {
        String::new()
    };
    client.begin(BULK, &header, &BODY[1..], BODY_BYTES).await
}

/// The status of the answer, if one has come.
async fn status(stream: &mut TcpStream) -> Option<u16> {
    let mut line = [0; 12];
    timeout(Duration::from_millis(20), stream.read_exact(&mut line))
        .await
        .ok()?
        .ok()?;
    String::from_utf8_lossy(&line[9..]).parse().ok()
}

/// Serves others while bodies are open: their calls all succeed. Gives the slowest.
async fn call_meanwhile(client: &Client, phase: &str, is_over: &AtomicBool) -> Duration {
    let mut slowest = Duration::ZERO;
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let begun = Instant::now();
        client
            .create_invoice(&invoice_numbered(&format!("{phase}{number}")))
            .await;
        let listed = client
            .get("/v1/tax-payers/invoices")
            .await
            .expect("an answer to a read");
        assert_eq!(listed.status, 200);
        slowest = slowest.max(begun.elapsed());
        sleep(Duration::from_millis(50)).await;
    }
    slowest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_bodies_take_no_more_than_their_share() {
    let bodies = size("EINVOICE_MEMORY_BODIES", 200);
    let deployment = Deployment::open(Backend::Sqlite).await;
    let other = deployment.newcomer().await;
    let before = deployment.service.memory_bytes();
    let is_over = AtomicBool::new(false);
    for (is_keyed, phase) in [(true, "KEYED"), (false, "PLAIN")] {
        is_over.store(false, Ordering::Relaxed);
        let opened = async {
            let mut streams = join_all(
                (0..bodies).map(|n| open_unfinished_request(&deployment.taxpayer, n, is_keyed)),
            )
            .await;
            // A caller without a permit gets its refusal after a while.
            let mut statuses = vec![0; streams.len()];
            eventually("answers to most of the bodies", async || {
                for (stream, known) in streams
                    .iter_mut()
                    .zip(&mut statuses)
                    .filter(|(_, known)| **known == 0)
                {
                    *known = status(stream).await.unwrap_or_default();
                }
                (statuses.iter().filter(|status| **status == 0).count() <= BODIES_PER_KEY)
                    .then_some(())
            })
            .await;
            is_over.store(true, Ordering::Relaxed);
            statuses
        };
        let (statuses, slowest) =
            tokio::join!(opened, call_meanwhile(&other.client, phase, &is_over));
        // On a busy machine a body may also come too slowly for the service.
        let refused = statuses
            .iter()
            .filter(|status| matches!(status, 408 | 429))
            .count();
        let peak = deployment.service.memory_peak_bytes();
        println!(
            "{bodies} bodies of 10 MB, keyed {is_keyed}: {refused} refused, from {} to {} MiB, another's slowest create and list {slowest:?}",
            before / MIB,
            peak / MIB
        );
        assert_eq!(refused + BODIES_PER_KEY, bodies, "{statuses:?}");
        assert!(peak < before + ONE_KEY_BYTES_MAX, "{} MiB", peak / MIB);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_bodies_of_many_keys_take_no_more_than_their_integrator_may() {
    let deployment = Deployment::open(Backend::Sqlite).await;
    let newcomers = join_all((1..=8).map(|_| deployment.newcomer())).await;
    let before = deployment.service.memory_bytes();
    let opening = newcomers
        .iter()
        .flat_map(|newcomer| (0..12).map(|n| open_unfinished_request(&newcomer.client, n, true)));
    let mut streams = join_all(opening).await;
    let mut waiting = 0;
    eventually("answers to those that find no room", async || {
        waiting = 0;
        for stream in &mut streams {
            let mut peeked = [0; 1];
            let seen = timeout(Duration::from_millis(5), stream.peek(&mut peeked)).await;
            waiting += usize::from(seen.is_err());
        }
        (waiting <= BODIES_PER_INTEGRATOR).then_some(())
    })
    .await;
    let peak = deployment.service.memory_peak_bytes();
    let from = before / MIB;
    let to = peak / MIB;
    println!("96 bodies of 10 MB of 8 keys: {waiting} held, from {from} to {to} MiB");
    assert!(peak < before + ALL_KEYS_BYTES_MAX, "{to} MiB");
}

/// A body of many numbers is ten times as large when it is parsed. Nothing of it stays while its Submit waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_that_waits_holds_nothing_of_its_body() {
    let deployment = Deployment::open(Backend::Sqlite).await;
    let before = deployment.service.memory_bytes();
    let submits = (0..8).map(async |number| {
        let invoice_no = format!("HEAVY{number}");
        let irn = format!("{invoice_no}-94CD90AA-20260115");
        deployment.order_late(
            FaultKind::Latency,
            Operation::IrnValidate,
            &irn,
            Duration::from_secs(8),
        );
        let mut body = submission(&Registration::demo(), &invoice_no);
        body["unknown"] = Value::Array(vec![Value::from(1_000_000); 200_000]);
        let text = body.to_string();
        let stream = deployment
            .taxpayer
            .begin("/v1/app/invoices/submit", "", text.as_bytes(), text.len())
            .await;
        (irn, stream)
    });
    let waiting = join_all(submits).await;
    for (irn, _) in &waiting {
        let called =
            async || (!deployment.calls(Operation::IrnValidate, irn).is_empty()).then_some(());
        eventually("a call to the authority", called).await;
    }
    let peak = deployment.service.memory_peak_bytes();
    let from = before / MIB;
    let to = peak / MIB;
    println!("8 Submits of 200,000 numbers wait: from {from} to {to} MiB");
    assert!(peak < before + WAITING_BYTES_MAX, "{to} MiB");
}
