//! The receiver of the benchmark. It knows the events that it was sent by the number in the remark.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use testkit::receiver::{Endpoint, Receiver, Request, Response};
use tokio::time::sleep;

const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Without a new event for so long, the missing ones will not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the remark that names an event here.
pub(crate) fn remark(number: usize) -> String {
    format!("#{number}#")
}

#[derive(Default)]
struct Arrivals {
    /// When each number was read for the first time.
    received: Vec<Option<Instant>>,
    fresh: usize,
    sample: Vec<u8>,
}

impl Endpoint for Arrivals {
    fn receive(&mut self, request: &Request<'_>) -> Response {
        if let Some(number) = number(request.body) {
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

pub(crate) struct Sink(Receiver<Arrivals>);

impl Sink {
    /// Listens at every address of this machine.
    pub(crate) fn start() -> Self {
        Self(Receiver::serve_at(
            Ipv4Addr::UNSPECIFIED,
            Arrivals::default(),
        ))
    }

    /// Returns a URL with an address of its own, as strangers have: on Linux all of 127.0.0.0/8 is this machine.
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

    /// Reads requests and answers none while held.
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
    pub(crate) fn sample(&self) -> Vec<u8> {
        self.0.with(|arrivals| arrivals.sample.clone())
    }

    /// Returns when an event arrived for the first time.
    pub(crate) fn received(&self, number: usize) -> Option<Instant> {
        self.0
            .with(|arrivals| arrivals.received.get(number).copied().flatten())
    }

    /// Waits until so many different events have arrived.
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
fn number(body: &[u8]) -> Option<usize> {
    const MARK: &[u8] = b"\"remark\":\"#";
    let start = body.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let digits = body[start..].split(|byte| *byte == b'#').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
