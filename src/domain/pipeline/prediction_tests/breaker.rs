//! The breaker of the simulated process: it opens after enough failures, and then lets single probes pass.

const PROBE_EVERY_US: u64 = 5_000_000;
const FAILURES_TO_OPEN: u32 = 20;

/// Times are in microseconds since the start.
#[derive(Default)]
pub(super) struct Breaker {
    failures: u32,
    /// When the breaker opened; `None` if it is closed.
    pub(super) open_since: Option<u64>,
    pub(super) next_probe: u64,
}

impl Breaker {
    pub(super) fn is_blocking(&self, now: u64) -> bool {
        self.open_since.is_some() && now < self.next_probe
    }

    /// Plans the next probe if this call is one, because the breaker is open.
    pub(super) fn record_call(&mut self, now: u64) {
        if self.open_since.is_some() {
            self.next_probe = now + PROBE_EVERY_US;
        }
    }

    /// Closes the breaker. Does nothing if it is closed: failures count until it opens.
    pub(super) fn record_answer(&mut self) {
        if self.open_since.take().is_some() {
            self.failures = 0;
        }
    }

    /// Returns true if the breaker opens by this failure.
    pub(super) fn record_failure(&mut self, now: u64) -> bool {
        self.failures += 1;
        let opens = self.failures >= FAILURES_TO_OPEN && self.open_since.is_none();
        if opens {
            self.open_since = Some(now);
            self.next_probe = now + PROBE_EVERY_US;
        }
        opens
    }
}
