//! The same creates through the whole service: clients on keep-alive connections that post one invoice after
//! the other, each a new one, and count only what was answered with 201.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use einvoice::app::{App, Application};
use einvoice::config::Settings;
use einvoice::internals::Actor;
use futures_util::stream::{self, StreamExt};
use secrecy::SecretString;
use serde_json::Value;
use testkit::documents;

use crate::taxpayers;

/// The rate and the response times that the clients measured.
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// Taxpayers that are made at a time.
const MADE_AT_ONCE: usize = 64;
/// Numbers of the taxpayers, apart from those of the deliveries.
const FIRST_NUMBER: usize = 500_000;

/// Creates by so many taxpayers in turn.
pub(crate) async fn creates(
    settings: &Settings,
    taxpayers: usize,
    clients: usize,
    span: Duration,
) -> Figures {
    let application = Application::build(settings).await.unwrap();
    let keys = keys(application.app(), taxpayers).await;
    let (address, handle) = (application.address(), application.handle());
    let service = actix_rt::spawn(application.run_until_stopped());
    let load = move || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
            .block_on(hammer(address, keys, clients, span))
    };
    let mut latencies = tokio::task::spawn_blocking(load).await.unwrap();
    handle.stop(true).await;
    service.await.unwrap().unwrap();
    latencies.sort_unstable();
    let at = |per_mille: usize| latencies[(latencies.len() - 1) * per_mille / 1_000].as_secs_f64() * 1_000.0;
    let count = u32::try_from(latencies.len()).unwrap();
    Figures { per_second: f64::from(count) / span.as_secs_f64(), p50_ms: at(500), p99_ms: at(990) }
}

async fn keys(app: &App, taxpayers: usize) -> Arc<[String]> {
    // Each measurement makes its own: numbers are taken once.
    static NEXT: AtomicUsize = AtomicUsize::new(FIRST_NUMBER);
    let first = NEXT.fetch_add(taxpayers, Ordering::Relaxed);
    let integrator = taxpayers::integrator(app, first).await;
    let making = stream::iter(first..first + taxpayers).map(async |number| {
        let id = taxpayers::taxpayer(app, integrator, number).await;
        let key = format!("tpk_{number:040}");
        let new = SecretString::from(key.clone()).into();
        app.taxpayers.rotate_key(id, new, Actor::CommandLine).await.unwrap();
        key
    });
    making.buffered(MADE_AT_ONCE).collect::<Vec<_>>().await.into()
}

async fn hammer(address: SocketAddr, keys: Arc<[String]>, clients: usize, span: Duration) -> Vec<Duration> {
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(clients).build().unwrap();
    let (numbers, until) = (Arc::new(AtomicUsize::new(0)), Instant::now() + span);
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            tokio::spawn(post_until(client.clone(), address, Arc::clone(&keys), Arc::clone(&numbers), until))
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    latencies
}

async fn post_until(
    client: reqwest::Client,
    address: SocketAddr,
    keys: Arc<[String]>,
    numbers: Arc<AtomicUsize>,
    until: Instant,
) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let mut invoice = documents::invoice();
    while Instant::now() < until {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let key = &keys[number % keys.len()];
        invoice["invoice_no"] = Value::from(format!("H{number}"));
        let start = Instant::now();
        let request = client.post(format!("http://{address}/v1/tax-payers/invoices"));
        let answer = request.header("x-api-key", key).json(&invoice).send().await.unwrap();
        let status = answer.status();
        answer.bytes().await.unwrap();
        assert_eq!(status, 201, "a create was refused");
        latencies.push(start.elapsed());
    }
    latencies
}
