//! Durable creates per second through HTTP, against the same rows written straight to the same database in the
//! same run; webhook deliveries per second and their delay, against the rate that the receiver itself can take. The
//! figures of one machine mean little; compare their ratio.
//!
//! `EINVOICE_BENCH` names one of them: `creates` or `deliveries`; else both are measured.
//!
//! SQLite always; PostgreSQL where `EINVOICE_TEST_POSTGRES` names a server that may create databases.
//! `EINVOICE_BENCH_ON` names one of them: `sqlite` or `postgresql`.
//!
//! Settings of the environment (`EINVOICE__WEBHOOKS__MAX_CONCURRENT_PER_ENDPOINT`, say) hold here as well.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot go on has nothing to report"
)]
#![expect(clippy::float_arithmetic, reason = "figures for reading, no amounts")]

#[path = "throughput/deliveries.rs"]
mod deliveries;
#[path = "throughput/direct.rs"]
mod direct;
#[path = "throughput/sink.rs"]
mod sink;
#[path = "throughput/taxpayers.rs"]
mod taxpayers;
#[path = "throughput/through_http.rs"]
mod through_http;

use std::time::Duration;

use einvoice::config::Settings;
use sea_orm::{ConnectionTrait, Database};

/// The time for which each figure is measured.
const SPAN: Duration = Duration::from_secs(5);
/// Taxpayers whose creates meet in one commit only if the service brings them together.
const TAXPAYERS: usize = 1_000;
/// Clients that post at once.
const CLIENTS: usize = 64;

fn main() {
    // Cargo passes `--bench`; there is nothing to choose.
    let system = actix_rt::System::new();
    let only = std::env::var("EINVOICE_BENCH_ON").ok();
    if only.as_deref() != Some("postgresql") {
        system.block_on(measure("SQLite", None));
    }
    match std::env::var("EINVOICE_TEST_POSTGRES") {
        _ if only.as_deref() == Some("sqlite") => {}
        Ok(server) => system.block_on(measure("PostgreSQL", Some(&server))),
        Err(_) => println!("PostgreSQL: not measured, EINVOICE_TEST_POSTGRES is not set"),
    }
}

async fn measure(name: &str, server: Option<&str>) {
    let directory = tempfile::tempdir().unwrap();
    let url = match server {
        Some(server) => fresh_database(server).await,
        None => String::new(),
    };
    let environment = [
        ("EINVOICE__DATA_DIR", directory.path().to_str().unwrap()),
        ("EINVOICE__DATABASE__URL", &url),
        ("EINVOICE__HTTP__BIND", "127.0.0.1:0"),
        ("EINVOICE__RATE_LIMIT__REQUESTS_PER_S", "0"),
        // A backlog is made while the receiver answers nothing.
        ("EINVOICE__WEBHOOKS__TIMEOUT_S", "120"),
        ("EINVOICE__LOG__LEVEL", "warn"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = Settings::load(None, environment.into_iter().chain(std::env::vars())).unwrap();
    let settings = settings.with_local_secrets().unwrap();

    let only = std::env::var("EINVOICE_BENCH").ok();
    if only.as_deref() != Some("deliveries") {
        measure_creates(name, &settings).await;
    }
    if only.as_deref() != Some("creates") {
        deliveries::measure(name, &settings).await;
    }
}

async fn measure_creates(name: &str, settings: &Settings) {
    let one = direct::creates_per_second(settings, 1, SPAN).await;
    let eight = direct::creates_per_second(settings, 8, SPAN).await;
    println!("{name}: {CLIENTS} clients, {} s each", SPAN.as_secs());
    println!("  straight to the database, 1 create a commit   {one:>8.0} /s");
    println!("  straight to the database, 8 creates a commit  {eight:>8.0} /s");
    for taxpayers in [1, TAXPAYERS] {
        let http = through_http::creates(settings, taxpayers, CLIENTS, SPAN).await;
        println!(
            "  through HTTP, {taxpayers:>4} taxpayers                  {:>8.0} /s   p50 {:.1} ms   p99 {:.1} ms",
            http.per_second, http.p50_ms, http.p99_ms
        );
        println!(
            "    ratio to 1 a commit {:.2}, to 8 a commit {:.2}",
            http.per_second / one,
            http.per_second / eight
        );
    }
}

async fn fresh_database(server: &str) -> String {
    let name = format!("bench_{}", einvoice::internals::new_id().simple());
    let admin = Database::connect(server).await.unwrap();
    admin.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
    admin.close().await.unwrap();
    format!("{}/{name}", server.rsplit_once('/').unwrap().0)
}
