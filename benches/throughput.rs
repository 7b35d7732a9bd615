//! Measures the throughput of the service. Each figure is shown beside a ceiling that bounds it, which is measured in
//! the same run. Load, service and database share the machine, so the ratios say more than the figures.
//!
//! `cargo bench --bench throughput` measures all cases. `-- --only TEXT` measures those whose names contain the text,
//! `-- --on DATABASE` only one database, and `-- --runs 5` takes medians of five runs. `-- --stored 2000000` measures
//! creates on two connections again when this many invoices are stored. `-- --taxpayers 100000` makes this many
//! taxpayers active. `-- --neighbours` measures calls beside another integrator that does its worst. `-- --consoles
//! 50` measures creates beside this many open consoles, with `--replicas 3` at this many processes on one PostgreSQL.
//! `-- --compare FILE` prints the ratios to an earlier run, whose output is the file.
//!
//! SQLite is always measured, PostgreSQL if `EINVOICE_TEST_POSTGRES` names a server on which databases can be created.
//! Settings in the environment (`EINVOICE__WEBHOOKS__MAX_CONCURRENT_PER_ENDPOINT`, for example) apply as well.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot go on has nothing to report"
)]
#![expect(clippy::float_arithmetic, reason = "figures for reading, no amounts")]

#[path = "throughput/allocations.rs"]
mod allocations;
#[path = "throughput/cases.rs"]
mod cases;
#[path = "throughput/consoles.rs"]
mod consoles;
#[path = "throughput/deliveries.rs"]
mod deliveries;
#[path = "throughput/direct.rs"]
mod direct;
#[path = "throughput/load.rs"]
mod load;
#[path = "throughput/neighbours.rs"]
mod neighbours;
#[path = "throughput/report.rs"]
mod report;
#[path = "throughput/service.rs"]
mod service;
#[path = "throughput/sink.rs"]
mod sink;
#[path = "throughput/taxpayers.rs"]
mod taxpayers;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use clap::Parser;
use einvoice::config::Settings;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use sea_orm::{ConnectionTrait, Database};

use crate::cases::{Case, Ceiling, Prepared};
use crate::load::{Answers, Load, Pace};
use crate::report::{Line, Report};
use crate::service::{Program, Service};

/// The time for which each figure is measured.
const MEASURED_SPAN: Duration = Duration::from_secs(5);
const CONNECTIONS: usize = 64;
/// The number of calls to the authority that a Submit makes.
const CALLS_PER_SUBMIT: f64 = 4.0;

#[derive(Parser)]
struct Options {
    /// Measures only the cases whose names contain this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Measures only this database: sqlite or postgresql.
    #[arg(long)]
    on: Option<String>,
    /// The number of times that each figure is measured. The report has the median.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    runs: u8,
    /// The number of taxpayers whose data the cases use.
    #[arg(long, default_value_t = 1_000)]
    taxpayers: usize,
    /// Measures creates on two connections again when this many invoices are stored.
    #[arg(long, default_value_t = 0)]
    stored: usize,
    /// Measures creates and submissions beside another integrator that does its worst, and nothing else.
    #[arg(long)]
    neighbours: bool,
    /// Measures creates beside this many open consoles, and nothing else.
    #[arg(long)]
    consoles: Option<usize>,
    /// The number of processes at which the consoles are open. More than one process needs PostgreSQL.
    #[arg(long, default_value_t = 1, requires = "consoles")]
    replicas: usize,
    /// Prints the ratios to an earlier run, whose output is this file.
    #[arg(long)]
    compare: Option<PathBuf>,
    /// Cargo passes this option to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let options = Options::parse();
    let system = actix_rt::System::new();
    let mut report = Report::new(options.compare.as_deref());
    let is_wanted = |name| options.on.as_deref().is_none_or(|wanted| wanted == name);
    if is_wanted("sqlite") {
        system.block_on(measure("sqlite", None, &options, &mut report));
    }
    match std::env::var("EINVOICE_TEST_POSTGRES") {
        Ok(server) if is_wanted("postgresql") => {
            system.block_on(measure("postgresql", Some(&server), &options, &mut report));
        }
        Err(_) if is_wanted("postgresql") => {
            println!("postgresql: EINVOICE_TEST_POSTGRES is not set");
        }
        _ => {}
    }
    report.end();
}

async fn measure(database: &str, server: Option<&str>, options: &Options, report: &mut Report) {
    let is_wanted = |name: &str| name.contains(&options.only);
    let program = Program::new(&fresh_database(server).await);
    let service = Service::start(&program).await;
    let idle_mb = service.resident_mb();
    let prepared =
        Prepared::prepare(&service.client, &service.integrators[0], options.taxpayers).await;
    if options.neighbours {
        return neighbours::measure(database, &service, &prepared).await;
    }
    if let Some(consoles) = options.consoles {
        let load = case_load(&prepared.many_creates(), &service);
        return consoles::measure(database, &program, &load, consoles, options.replicas).await;
    }
    if is_wanted("onboard") {
        let name = "onboard: taxpayer, profile and key";
        report.add(Line::new(database, name, prepared.onboarded_per_second));
    }
    let cases: Vec<_> = prepared
        .cases()
        .into_iter()
        .filter(|case| is_wanted(case.name))
        .collect();
    let allocations = if cases.is_empty() {
        Vec::new()
    } else {
        measure_allocations(server, is_wanted).await
    };
    for case in cases {
        let count = allocations
            .iter()
            .find(|(name, _)| *name == case.name)
            .map(|(_, count)| *count);
        let ceiling = measure_ceiling(case.ceiling, &service, server).await;
        report.add(Line {
            ceiling_per_second: Some(ceiling),
            allocations: count,
            ..measure_case(database, &case, &service, options.runs.into()).await
        });
    }
    if options.stored > 0 {
        create_stored_invoices(options.stored, &prepared, &service).await;
        let case = prepared.few_creates_at_once("create, 2 connections, many stored");
        report.add(measure_case(database, &case, &service, options.runs.into()).await);
    }
    if let Some((idle, now)) = idle_mb.zip(service.resident_mb()) {
        println!("{database}: {idle:.0} MB after the start, {now:.0} MB after all cases");
    }
    drop(service);
    if is_wanted("deliver") {
        let (settings, _directory) = settings(server).await;
        deliveries::measure(database, &settings, report).await;
    }
}

/// Measures a case `runs` times at full speed, and then at half of the rate that it reached. The line has the
/// medians, and the CPU time of one item over all runs at full speed.
async fn measure_case(database: &str, case: &Case, service: &Service, runs: usize) -> Line {
    let load = case_load(case, service);
    let before = service.cpu_s();
    let full = load.run_repeatedly(Pace::Full, runs).await;
    let used = service
        .cpu_s()
        .zip(before)
        .map(|(now, before)| now - before);
    let count: usize = full.iter().map(|answers| answers.count).sum();
    let full = median(full, |answers| answers.per_second);
    let half = load
        .run_repeatedly(Pace::PerSecond(full.per_second / 2.0), runs)
        .await;
    let half = median(half, |answers| answers.per_mille_ms(990));
    let items = f64::from(u32::try_from(case.items).unwrap());
    let count = f64::from(u32::try_from(count).unwrap()) * items;
    Line {
        p50_ms: Some(full.per_mille_ms(500)),
        p99_ms: Some(full.per_mille_ms(990)),
        half_p50_ms: Some(half.per_mille_ms(500)),
        half_p99_ms: Some(half.per_mille_ms(990)),
        cpu_us: used.map(|used| used * 1_000_000.0 / count),
        ..Line::new(database, case.name, full.per_second * items)
    }
}

/// Creates at least this many invoices.
async fn create_stored_invoices(invoices: usize, prepared: &Prepared, service: &Service) {
    let case = prepared.bulk_creates();
    let load = case_load(&case, service);
    let mut stored = 0;
    while stored < invoices {
        stored += load.run(Pace::Full).await.count * case.items;
    }
}

fn case_load(case: &Case, service: &Service) -> Load {
    Load {
        address: service.process.address,
        requests: Arc::clone(&case.requests),
        connections: case.connections,
        span: MEASURED_SPAN,
        next: Arc::new(AtomicUsize::new(0)),
    }
}

fn median(mut runs: Vec<Answers>, figure: impl Fn(&Answers) -> f64) -> Answers {
    runs.sort_by(|one, other| figure(one).total_cmp(&figure(other)));
    runs.remove(runs.len() / 2)
}

async fn measure_ceiling(ceiling: Ceiling, service: &Service, server: Option<&str>) -> f64 {
    let rows = async |batch| {
        let (settings, _directory) = settings(server).await;
        direct::creates_per_second(
            &settings,
            i64::try_from(CONNECTIONS).unwrap(),
            batch,
            MEASURED_SPAN,
        )
        .await
    };
    let calls = async |address, path: &'static str| {
        let get = move |_| {
            Request::get(path)
                .header("host", "localhost")
                .body(Full::new(Bytes::new()))
                .unwrap()
        };
        let next = Arc::new(AtomicUsize::new(0));
        let load = Load {
            address,
            requests: Arc::new(get),
            connections: CONNECTIONS,
            span: MEASURED_SPAN,
            next,
        };
        load.run(Pace::Full).await.per_second
    };
    match ceiling {
        Ceiling::Rows => rows(1).await,
        Ceiling::BatchedRows => rows(32).await,
        Ceiling::Live => calls(service.process.address, "/health/live").await,
        Ceiling::Authority => calls(service.sandbox, "/api").await / CALLS_PER_SUBMIT,
    }
}

async fn measure_allocations(
    server: Option<&str>,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<(&'static str, f64)> {
    let (settings, _directory) = settings(server).await;
    allocations::count_for_each_case(&settings, is_wanted).await
}

/// Returns settings with an empty database, and the data directory, which is deleted when the value is dropped.
async fn settings(server: Option<&str>) -> (Settings, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let url = fresh_database(server).await;
    let environment = [
        ("EINVOICE__DATA_DIR", directory.path().to_str().unwrap()),
        ("EINVOICE__DATABASE__URL", &url),
        ("EINVOICE__HTTP__BIND", "127.0.0.1:0"),
        ("EINVOICE__RATE_LIMIT__REQUESTS_PER_S", "0"),
        ("EINVOICE__RATE_LIMIT__INTEGRATOR_REQUESTS_PER_S", "0"),
        // The receiver answers nothing while a backlog is made, so attempts must not time out.
        ("EINVOICE__WEBHOOKS__TIMEOUT_S", "120"),
        ("EINVOICE__LOG__LEVEL", "error"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = Settings::load(None, environment.into_iter().chain(std::env::vars())).unwrap();
    (settings.with_local_secrets().unwrap(), directory)
}

/// Returns the URL of an empty database. An empty URL stands for a SQLite file in the data directory.
async fn fresh_database(server: Option<&str>) -> String {
    let Some(server) = server else {
        return String::new();
    };
    let name = format!("bench_{}", timing::clock::new_id().simple());
    let admin = Database::connect(server).await.unwrap();
    admin
        .execute_unprepared(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    admin.close().await.unwrap();
    format!("{}/{name}", server.rsplit_once('/').unwrap().0)
}
