//! The receiver of the webhooks in the benchmark (the sink). It recognises an event by the number in its remark.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use testkit::receiver::{Endpoint, Receiver, Request, Response};
use tokio::time::sleep;

const LOOK_EVERY: Duration = Duration::from_millis(2);
/// If no new event arrives for this long, the missing ones will not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the remark by which the sink recognises the event with this number.
pub(crate) fn event_remark(number: usize) -> String {
    format!("#{number}#")
}

#[derive(Default)]
struct ArrivedEvents {
    /// The time at which the event with each number first arrived.
    received: Vec<Option<Instant>>,
    fresh: usize,
    sample: Vec<u8>,
}

impl Endpoint for ArrivedEvents {
    fn receive(&mut self, request: &Request<'_>) -> Response {
        if let Some(number) = event_number(request.body) {
            if self.received.len() <= number {
                self.received.resize(number + 1, None);
            }
            if self.received[number].is_none() {
                self.received[number] = Some(Instant::now());
                self.fresh += 1;
            }
            if self.sample.is_empty() {
                self.sample = request.body.to_vec();
            }
        }
        Response::status(204)
    }
}

pub(crate) struct Sink(Receiver<ArrivedEvents>);

impl Sink {
    /// Starts the sink on all addresses of this machine.
    pub(crate) fn start() -> Self {
        Self(Receiver::serve_at(
            Ipv4Addr::UNSPECIFIED,
            ArrivedEvents::default(),
        ))
    }

    /// Returns a URL for each number. On Linux each has a different IP address, as the receivers of strangers do: all
    /// of 127.0.0.0/8 is this machine.
    pub(crate) fn url(&self, number: usize) -> String {
        let is_wide = cfg!(target_os = "linux");
        let host = if is_wide {
            format!("{}.{}", number / 250, number % 250 + 1)
        } else {
            "0.1".into()
        };
        format!("http://127.0.{host}:{}/{number}", self.0.port())
    }

    pub(crate) fn delay(&self, latency: Duration) {
        self.0.delay(latency);
    }

    /// With true, holds back all answers but still reads requests. With false, sends the answers.
    pub(crate) fn hold(&self, is_held: bool) {
        self.0.hold(is_held);
    }

    pub(crate) fn unanswered(&self) -> usize {
        self.0.unanswered_count()
    }

    pub(crate) fn requests(&self) -> usize {
        self.0.requests()
    }

    /// Returns the number of different events that arrived.
    pub(crate) fn events(&self) -> usize {
        self.0.with(|arrivals| arrivals.fresh)
    }

    /// Returns the body of a notification that arrived.
    pub(crate) fn sample_body(&self) -> Vec<u8> {
        self.0.with(|arrivals| arrivals.sample.clone())
    }

    /// Returns when an event arrived for the first time.
    pub(crate) fn arrival_time(&self, number: usize) -> Option<Instant> {
        self.0
            .with(|arrivals| arrivals.received.get(number).copied().flatten())
    }

    /// Waits until this many different events have arrived. Panics if no further event arrives for the time
    /// `PATIENCE`.
    pub(crate) async fn wait_for(&self, count: usize) {
        let mut last = 0;
        let mut since = Instant::now();
        loop {
            let events = self.events();
            if events >= count {
                return;
            }
            if events > last {
                (last, since) = (events, Instant::now());
            }
            assert!(
                since.elapsed() < PATIENCE,
                "{events} of {count} notifications have come and no more do"
            );
            sleep(LOOK_EVERY).await;
        }
    }
}

/// Returns the number in the remark of a notification.
fn event_number(body: &[u8]) -> Option<usize> {
    const MARK: &[u8] = b"\"remark\":\"#";
    let start = body.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let digits = body[start..].split(|byte| *byte == b'#').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
