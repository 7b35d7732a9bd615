//! Measures webhook deliveries: the rate at which a backlog drains, and the time from a commit to the arrival of its
//! notification under a steady load. The load is half of the rate that commits and deliveries together can reach. In
//! the same run, a plain client measures how many requests the receiver (the sink) can answer.

use std::ops::Range;
use std::time::{Duration, Instant};

use einvoice::app::{App, ServeMode};
use einvoice::config::Settings;
use futures_util::future::join_all;
use tokio::time::sleep;

use crate::report::{Line, Report};
use crate::sink::Sink;
use crate::taxpayers::BenchTaxpayers;

/// The approximate time for which a figure is measured, in seconds. `EINVOICE_BENCH_SPAN_S` overrides it.
const SPAN_S: f64 = 3.0;
const CEILING_SPAN: Duration = Duration::from_secs(1);
/// The number of events in the backlog from which the rate is estimated, and the maximum for any backlog.
const ESTIMATE_EVENTS: usize = 400;
const BACKLOG_MAX: usize = 20_000;
/// The wait until as many requests as possible are at the sink, which holds back its answers.
const SETTLE_WAIT: Duration = Duration::from_millis(500);
const LATENCIES_MS: [u64; 3] = [0, 10, 50];
/// A light load, in events per second.
const LOW_RATE: f64 = 100.0;

/// The measurement of the deliveries of some taxpayers.
struct DeliveryBench<'a> {
    taxpayers: &'a BenchTaxpayers,
    sink: &'a Sink,
    span_s: f64,
    /// The number of the next event. Each number is used once in a run.
    next: usize,
    /// The number of requests that the plain client has sent.
    plain: usize,
}

struct DrainedBacklog {
    fill_per_second: f64,
    per_second: f64,
    at_once: usize,
}

pub(crate) async fn measure(database: &str, settings: &Settings, report: &mut Report) {
    let app = App::build(settings, ServeMode::Normal).await.unwrap();
    let sink = Sink::start();
    let span_s =
        std::env::var("EINVOICE_BENCH_SPAN_S").map_or(SPAN_S, |text| text.parse().unwrap());
    let mut next = 0;
    let mut plain = 0;
    for (endpoints, invoices) in [(0..1, 256), (1..101, 4), (101..1_101, 2)] {
        let taxpayers = BenchTaxpayers::create(&app, &sink, endpoints, invoices).await;
        let mut bench = DeliveryBench {
            taxpayers: &taxpayers,
            sink: &sink,
            span_s,
            next,
            plain,
        };
        for latency in LATENCIES_MS.map(Duration::from_millis) {
            report.add(bench.measure_line(database, latency).await);
        }
        report.add(bench.measure_line_at_low_rate(database).await);
        (next, plain) = (bench.next, bench.plain);
    }
    assert_eq!(
        sink.requests() - plain,
        sink.events(),
        "a notification came twice"
    );
    app.close(Duration::from_secs(10)).await;
}

impl DeliveryBench<'_> {
    /// Drains a backlog, then sends a steady load. The times of a line are those from the commit of an event to its
    /// arrival.
    async fn measure_line(&mut self, database: &str, latency: Duration) -> Line {
        self.sink.delay(latency);
        let guess = self.drain_backlog(ESTIMATE_EVENTS).await;
        let backlog = guess.per_second * self.span_s;
        let drained = self
            .drain_backlog(round_to_count(backlog).clamp(ESTIMATE_EVENTS, BACKLOG_MAX))
            .await;
        let both = 1.0 / (1.0 / drained.per_second + 1.0 / drained.fill_per_second);
        let late = self.measure_lateness(both / 2.0).await;
        let endpoints = self.taxpayers.endpoints.len();
        let latency = latency.as_millis();
        let name = format!("deliver, {endpoints} endpoints, {latency} ms");
        Line {
            half_p50_ms: Some(per_mille_ms(&late, 500)),
            half_p99_ms: Some(per_mille_ms(&late, 990)),
            ceiling_per_second: Some(self.measure_ceiling(drained.at_once).await),
            ..Line::new(database, name, drained.per_second)
        }
    }

    /// Measures the times from commit to arrival under a light load, with a sink that answers at once.
    async fn measure_line_at_low_rate(&mut self, database: &str) -> Line {
        self.sink.delay(Duration::ZERO);
        let late = self.measure_lateness(LOW_RATE).await;
        let name = format!(
            "deliver, {} endpoints, idle",
            self.taxpayers.endpoints.len()
        );
        Line {
            p50_ms: Some(per_mille_ms(&late, 500)),
            p99_ms: Some(per_mille_ms(&late, 990)),
            ..Line::new(database, name, LOW_RATE)
        }
    }

    fn take_numbers(&mut self, count: usize) -> Range<usize> {
        let numbers = self.next..self.next + count;
        self.next = numbers.end;
        numbers
    }

    /// Commits this many events while the sink holds back its answers. Then lets it answer, and waits until all have
    /// arrived.
    async fn drain_backlog(&mut self, count: usize) -> DrainedBacklog {
        let before = self.sink.events();
        self.sink.hold(true);
        let begun = Instant::now();
        self.taxpayers
            .cause_events_quickly(self.take_numbers(count))
            .await;
        let fill_per_second = rate_per_second(count, begun);
        sleep(SETTLE_WAIT).await;
        let at_once = self.sink.unanswered();
        let begun = Instant::now();
        self.sink.hold(false);
        self.sink.wait_for(before + count).await;
        DrainedBacklog {
            fill_per_second,
            per_second: rate_per_second(count, begun),
            at_once,
        }
    }

    /// Returns the times from commit to arrival of the events of a steady load, sorted.
    async fn measure_lateness(&mut self, per_second: f64) -> Vec<Duration> {
        let before = self.sink.events();
        let count = round_to_count(per_second * self.span_s).max(1);
        let committed = self
            .taxpayers
            .cause_events_steadily(
                self.take_numbers(count),
                Duration::from_secs_f64(1.0 / per_second),
            )
            .await;
        self.sink.wait_for(before + count).await;
        let late = committed.into_iter().map(|(number, at)| {
            let received = self
                .sink
                .arrival_time(number)
                .expect("each number has come");
            received.saturating_duration_since(at)
        });
        let mut late: Vec<_> = late.collect();
        late.sort_unstable();
        late
    }

    /// Returns the rate that a plain client reaches at the sink with this many concurrent requests.
    async fn measure_ceiling(&mut self, at_once: usize) -> f64 {
        let before = self.sink.requests();
        let client = reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(at_once)
            .build()
            .unwrap();
        let urls = self
            .taxpayers
            .endpoints
            .clone()
            .cycle()
            .take(at_once)
            .map(|number| self.sink.url(number));
        let urls = urls.collect::<Vec<_>>();
        let body = self.sink.sample_body();
        let load = move || {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap()
                .block_on(async {
                    let begun = Instant::now();
                    let posting = urls.into_iter().map(|url| {
                        tokio::spawn(post_until(
                            client.clone(),
                            url,
                            body.clone(),
                            begun + CEILING_SPAN,
                        ))
                    });
                    let counts = join_all(posting).await;
                    rate_per_second(counts.into_iter().map(Result::unwrap).sum(), begun)
                })
        };
        let per_second = tokio::task::spawn_blocking(load).await.unwrap();
        self.plain += self.sink.requests() - before;
        per_second
    }
}

/// Returns the time within which this many of a thousand events arrived, in milliseconds. 500 gives the median.
fn per_mille_ms(sorted: &[Duration], per_mille: usize) -> f64 {
    sorted[(sorted.len() - 1) * per_mille / 1_000].as_secs_f64() * 1_000.0
}

async fn post_until(client: reqwest::Client, url: String, body: Vec<u8>, until: Instant) -> usize {
    let mut count = 0;
    while Instant::now() < until {
        let request = client
            .post(&url)
            .header("content-type", "application/json")
            .body(body.clone());
        assert_eq!(request.send().await.unwrap().status(), 204);
        count += 1;
    }
    count
}

fn rate_per_second(count: usize, begun: Instant) -> f64 {
    f64::from(u32::try_from(count).unwrap()) / begun.elapsed().as_secs_f64()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of events, rounded"
)]
fn round_to_count(number: f64) -> usize {
    number as usize
}
