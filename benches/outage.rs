//! Compares the predicted ends of runs with their real ends in an outage of the authority: 2,000 runs are submitted
//! while each call is answered 503, and then the authority serves a few calls at a time. Prints the errors of the
//! predictions and writes a plot.
//!
//! `cargo bench --bench outage` takes a quarter of an hour. `-- --seconds 60` makes the outage shorter, `-- --runs 200`
//! the queue, and `-- --plot FILE` names the file of the plot.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has nothing to report"
)]
#![expect(clippy::float_arithmetic, reason = "figures for reading, no amounts")]

#[path = "outage/plot.rs"]
mod plot;
#[path = "throughput/service.rs"]
mod service;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::documents;
use testkit::roles::{SUBMIT, Taxpayer};
use timing::clock::{Clock, SystemClock};
use tokio::time::sleep;

use crate::plot::Prediction;
use crate::service::Service;

const TAXPAYERS: usize = 100;
/// Runs that end before the outage, so that the service knows its throughput.
const WARM_UP_RUNS: usize = 300;
const CALLS_AT_ONCE: usize = 32;
/// Every so many runs, one is asked for its prediction.
const RUNS_PER_SAMPLE: usize = 40;
const ASK_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Parser)]
struct Options {
    /// How long the outage lasts, in seconds.
    #[arg(long, default_value_t = 600)]
    seconds: u32,
    /// The number of runs that wait for its end.
    #[arg(long, default_value_t = 2_000)]
    runs: usize,
    /// Where the plot is written.
    #[arg(long, default_value = "docs/images/outage.svg")]
    plot: PathBuf,
    /// Cargo passes this.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let options = Options::parse();
    actix_rt::System::new().block_on(measure(&options));
}

async fn measure(options: &Options) {
    let data = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/outage.db?mode=rwc", data.path().display());
    let service = Service::start(&url).await;
    send_order(
        &service,
        "latencies",
        &json!({ "uniform_ms": { "min": 40, "max": 120 }, "at_once": 8 }),
    )
    .await;
    let making = stream::iter(0..TAXPAYERS)
        .map(async |_| service::onboard(&service.client, &service.integrators[0]).await);
    let taxpayers: Vec<_> = making.buffered(CALLS_AT_ONCE).collect().await;

    let first = submit_all(&taxpayers, "W", WARM_UP_RUNS).await;
    while ended_at(&first[WARM_UP_RUNS - 1].read().await).is_none() {
        sleep(ASK_INTERVAL).await;
    }
    let begun = now();
    send_order(
        &service,
        "faults",
        &json!({ "kind": "outage", "for_s": options.seconds }),
    )
    .await;
    let runs = submit_all(&taxpayers, "R", options.runs).await;
    let mut predictions = Vec::new();
    let mut watched: Vec<_> = runs.iter().step_by(RUNS_PER_SAMPLE).collect();
    while !watched.is_empty() {
        sleep(ASK_INTERVAL).await;
        let mut waiting = Vec::new();
        for run in watched {
            let view = run.read().await;
            if let Some(at) = parse_time(&view["queue"]["predicted_clear_at"]) {
                predictions.push((run.irn.clone(), now(), at));
            }
            if ended_at(&view).is_none() {
                waiting.push(run);
            }
        }
        watched = waiting;
    }
    let mut ended = std::collections::HashMap::new();
    for run in runs.iter().step_by(RUNS_PER_SAMPLE) {
        ended.insert(run.irn.clone(), ended_at(&run.read().await).unwrap());
    }
    let since = |at: Timestamp| at.duration_since(begun).as_secs_f64();
    let predictions: Vec<_> = predictions
        .iter()
        .map(|(irn, at, end)| Prediction {
            made: since(*at),
            predicted: since(*end),
            real: since(ended[irn]),
        })
        .collect();
    report(&predictions, f64::from(options.seconds));
    if let (Some(cpu_s), Some(memory_mb)) = (service.cpu_s(), service.resident_mb()) {
        println!("the service used {cpu_s:.0} s of CPU and occupies {memory_mb:.0} MB");
    }
    let svg = plot::draw(&predictions, f64::from(options.seconds));
    std::fs::write(&options.plot, svg).unwrap();
}

/// A run that was submitted.
struct Submitted<'a> {
    taxpayer: &'a Taxpayer,
    irn: String,
}

impl Submitted<'_> {
    async fn read(&self) -> Value {
        self.taxpayer
            .get(&format!("/v1/app/invoices/{}/run", self.irn))
            .await
            .expect_status(200)
            .data()
            .clone()
    }
}

async fn submit_all<'a>(
    taxpayers: &'a [Taxpayer],
    series: &str,
    count: usize,
) -> Vec<Submitted<'a>> {
    let submitting = stream::iter(0..count).map(async |number| {
        let taxpayer = &taxpayers[number % taxpayers.len()];
        let invoice_no = format!("{series}{number}");
        let body = documents::submission(taxpayer, &invoice_no);
        let request = taxpayer
            .request("POST", SUBMIT)
            .header("prefer", "respond-async")
            .json(&body);
        let status = request.send().await.unwrap().status().as_u16();
        assert!(matches!(status, 201 | 202), "{status}");
        Submitted {
            taxpayer,
            irn: documents::irn(taxpayer, &invoice_no),
        }
    });
    submitting.buffered(CALLS_AT_ONCE).collect().await
}

async fn send_order(service: &Service, kind: &str, order: &Value) {
    let url = format!("http://{}/sandbox/{kind}", service.sandbox);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let status = client.post(url).json(order).send().await.unwrap().status();
    assert!(status.is_success(), "{status}");
}

fn now() -> Timestamp {
    SystemClock.now()
}

fn parse_time(text: &Value) -> Option<Timestamp> {
    text.as_str()?.parse().ok()
}

/// Returns when a run's last step ended; `None` while the run is open.
fn ended_at(run: &Value) -> Option<Timestamp> {
    let is_open = matches!(run["state"].as_str(), Some("running" | "waiting"));
    let last = run["steps"].as_array()?.last()?;
    let took = Duration::from_millis(last["duration_ms"].as_u64().unwrap_or(0));
    parse_time(&last["started_at"])
        .filter(|_| !is_open)?
        .checked_add(took)
        .ok()
}

fn report(predictions: &[Prediction], outage: f64) {
    let (during, after): (Vec<_>, Vec<_>) = predictions.iter().partition(|one| one.made < outage);
    for (name, part) in [("during the outage", during), ("after it", after)] {
        let median = |error: fn(&Prediction) -> f64| {
            let mut errors: Vec<_> = part.iter().copied().map(error).collect();
            errors.sort_by(f64::total_cmp);
            errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN)
        };
        println!(
            "{} predictions {name}: median error {:.0} % of the time still to wait, {:.0} % of the whole wait, {:.0} s",
            part.len(),
            100.0 * median(|one| (one.predicted - one.real).abs() / (one.real - one.made).max(1.0)),
            100.0 * median(|one| (one.predicted - one.real).abs() / one.real),
            median(|one| (one.predicted - one.real).abs()),
        );
    }
}
