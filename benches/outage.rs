//! Compares the predicted ends of runs with their real ends, in three cases that each follow a quiet spell: an outage
//! of the authority while runs are queued, an authority that becomes slow under a steady load, and a burst of runs at
//! a slow authority. Prints the errors of the predictions and writes a plot.
//!
//! `cargo bench --bench outage -- --case outage|slow|burst --seconds N`: N is the length of the outage, of the steady
//! load, or of the quiet spell before the burst. `--runs 200` makes the queue shorter, `--plot FILE` names the file
//! of the plot. An outage of 600 s takes a quarter of an hour.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on has nothing to report"
)]
#![expect(clippy::float_arithmetic, reason = "figures for reading, no amounts")]

#[path = "outage/plot.rs"]
mod plot;
#[path = "throughput/service.rs"]
mod service;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::documents;
use testkit::roles::{SUBMIT, Taxpayer};
use timing::clock::{Clock, SystemClock};
use tokio::time::{Instant, sleep_until};

use crate::plot::{Plot, Prediction};
use crate::service::{Program, Service};

const TAXPAYERS: usize = 100;
const CALLS_AT_ONCE: usize = 32;
/// About this many of the submitted runs are asked for their predictions.
const WATCHED: usize = 50;
const ASK_INTERVAL: Duration = Duration::from_secs(5);
/// The length of the quiet spell before an outage or a slow authority, in intervals of 5 s: one minute. The option
/// `--seconds` sets that of a burst.
const QUIET_INTERVALS: usize = 12;
/// The load in the quiet spell and the steady load afterwards, in runs per interval of 5 s: 0.4 and 2.4 runs a
/// second.
const QUIET_RUNS: usize = 2;
const STEADY_RUNS: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Case {
    Outage,
    Slow,
    Burst,
}

#[derive(Parser)]
struct Options {
    #[arg(long, value_enum, default_value_t = Case::Outage)]
    case: Case,
    /// The length of the outage, of the steady load or of the quiet spell, in seconds.
    #[arg(long, default_value_t = 180)]
    seconds: u32,
    /// The number of runs of the outage or the burst [default: 300 or 1200]. The slow authority gets 2.4 a second.
    #[arg(long)]
    runs: Option<usize>,
    /// The file that the plot is written to.
    #[arg(long, default_value = "/tmp/predictions.svg")]
    plot: PathBuf,
    /// Cargo passes this option to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The load of a case, and the behaviour of the authority during it.
struct CasePlan {
    quiet_intervals: usize,
    /// The latencies of the authority in the quiet spell, and from its end on.
    latencies: [Value; 2],
    fault: Option<Value>,
    /// The number of runs that are submitted in each interval after the quiet spell.
    runs: Vec<usize>,
    /// The length of the shaded part at the beginning of the plot, and what happens during it.
    shaded_s: u32,
    shaded_because: &'static str,
}

impl CasePlan {
    fn new(options: &Options) -> Self {
        let intervals = usize::try_from(options.seconds).unwrap() / 5;
        let seconds = options.seconds;
        let slow = json!({ "uniform_ms": { "min": 500, "max": 1_000 }, "at_once": 24 });
        let busy = json!({ "uniform_ms": { "min": 150, "max": 450 }, "at_once": 8 });
        match options.case {
            Case::Outage => Self {
                quiet_intervals: QUIET_INTERVALS,
                latencies: [busy.clone(), busy],
                fault: Some(json!({ "kind": "outage", "for_s": seconds })),
                runs: vec![options.runs.unwrap_or(300)],
                shaded_s: seconds,
                shaded_because: "the authority is out",
            },
            Case::Slow => Self {
                quiet_intervals: QUIET_INTERVALS,
                latencies: [
                    json!({ "uniform_ms": { "min": 50, "max": 150 } }),
                    json!({ "uniform_ms": { "min": 2_500, "max": 7_500 } }),
                ],
                fault: None,
                runs: vec![STEADY_RUNS; intervals],
                shaded_s: seconds,
                shaded_because: "runs are submitted",
            },
            Case::Burst => Self {
                quiet_intervals: intervals,
                latencies: [slow.clone(), slow],
                fault: None,
                runs: vec![options.runs.unwrap_or(1_200)],
                shaded_s: 0,
                shaded_because: "nothing",
            },
        }
    }
}

fn main() {
    let options = Options::parse();
    actix_rt::System::new().block_on(measure(&options));
}

async fn measure(options: &Options) {
    let plan = CasePlan::new(options);
    let data = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/outage.db?mode=rwc", data.path().display());
    let service = Service::start(&Program::new(&url)).await;
    let making = stream::iter(0..TAXPAYERS)
        .map(async |_| service::onboard(&service.client, &service.integrators[0]).await);
    let taxpayers: Vec<_> = making.buffered(CALLS_AT_ONCE).collect().await;
    send_order(&service, "latencies", &plan.latencies[0]).await;
    for interval in 0..plan.quiet_intervals {
        let next = Instant::now() + ASK_INTERVAL;
        submit_all(&taxpayers, &format!("Q{interval}N"), QUIET_RUNS).await;
        sleep_until(next).await;
    }

    let begun = now();
    send_order(&service, "latencies", &plan.latencies[1]).await;
    if let Some(fault) = &plan.fault {
        send_order(&service, "faults", fault).await;
    }
    let predictions = submit_and_watch(&taxpayers, &plan.runs, begun).await;
    print_errors(&predictions, options);
    if let (Some(cpu_s), Some(memory_mb)) = (service.cpu_s(), service.resident_mb()) {
        println!("the service used {cpu_s:.0} s of CPU and occupies {memory_mb:.0} MB");
    }
    let svg = plot::draw(&Plot {
        predictions: &predictions,
        shaded: 0.0..f64::from(plan.shaded_s),
        shaded_because: plan.shaded_because,
    });
    std::fs::write(&options.plot, svg).unwrap();
}

/// Submits this number of runs in each interval, and asks some of the runs for their predictions until these have
/// ended.
async fn submit_and_watch(
    taxpayers: &[Taxpayer],
    runs: &[usize],
    begun: Timestamp,
) -> Vec<Prediction> {
    let every = (runs.iter().sum::<usize>() / WATCHED).max(1);
    let mut submitted = 0_usize;
    let mut intervals = runs.iter().enumerate();
    let mut watched = Vec::new();
    let mut asked = Vec::new();
    let mut ended = HashMap::new();
    loop {
        let next = Instant::now() + ASK_INTERVAL;
        let interval = intervals.next();
        if let Some((interval, count)) = interval {
            let made = submit_all(taxpayers, &format!("R{interval}N"), *count).await;
            for run in made {
                if submitted.is_multiple_of(every) {
                    watched.push(run);
                }
                submitted += 1;
            }
        }
        sleep_until(next).await;
        let mut open = Vec::new();
        for run in watched {
            let view = run.read_run().await;
            asked.extend(AskedPrediction::parse(&run.irn, &view));
            match ended_at(&view) {
                Some(at) => {
                    ended.insert(run.irn, at);
                }
                None => open.push(run),
            }
        }
        watched = open;
        if watched.is_empty() && interval.is_none() {
            break;
        }
    }
    let since = |at: Timestamp| at.duration_since(begun).as_secs_f64();
    let predictions = asked.iter().map(|one| Prediction {
        made: since(one.at),
        predicted: since(one.predicted),
        earliest: since(one.earliest),
        latest: one.latest.map(since),
        real: since(ended[&one.irn]),
    });
    predictions.collect()
}

/// A prediction in an answer of the service.
struct AskedPrediction {
    irn: String,
    at: Timestamp,
    predicted: Timestamp,
    earliest: Timestamp,
    latest: Option<Timestamp>,
}

impl AskedPrediction {
    /// Returns `None` for a run that has ended.
    fn parse(irn: &str, view: &Value) -> Option<Self> {
        let queue = &view["queue"];
        Some(Self {
            irn: irn.to_owned(),
            at: now(),
            predicted: parse_time(&queue["predicted_clear_at"])?,
            earliest: parse_time(&queue["earliest_clear_at"])?,
            latest: parse_time(&queue["latest_clear_at"]),
        })
    }
}

/// A run that was submitted.
struct SubmittedRun<'a> {
    taxpayer: &'a Taxpayer,
    irn: String,
}

impl SubmittedRun<'_> {
    async fn read_run(&self) -> Value {
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
) -> Vec<SubmittedRun<'a>> {
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
        SubmittedRun {
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

fn print_errors(predictions: &[Prediction], options: &Options) {
    let outage = if options.case == Case::Outage {
        f64::from(options.seconds)
    } else {
        0.0
    };
    let (during, after): (Vec<_>, Vec<_>) = predictions.iter().partition(|one| one.made < outage);
    for (name, part) in [("during the outage", during), ("otherwise", after)] {
        if part.is_empty() {
            continue;
        }
        let median = |error: fn(&Prediction) -> f64| {
            let mut errors: Vec<_> = part.iter().copied().map(error).collect();
            errors.sort_by(f64::total_cmp);
            errors[errors.len() / 2]
        };
        let in_range = part.iter().filter(|one| {
            one.earliest <= one.real && one.latest.is_none_or(|latest| one.real <= latest)
        });
        println!(
            "{} predictions {name}: median error {:.0} % of the time still to wait, {:.0} s; {} ends were in their ranges",
            part.len(),
            100.0 * median(|one| (one.predicted - one.real).abs() / (one.real - one.made).max(1.0)),
            median(|one| (one.predicted - one.real).abs()),
            in_range.count(),
        );
    }
}
