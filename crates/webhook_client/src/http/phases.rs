//! Measures the phases of an attempt. The client, its resolver and its connector share one clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The duration of each phase of one attempt. A phase that did not take place is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// The time to resolve the host name. `None` if a connection was reused or if the URL contains an address.
    pub dns: Option<Duration>,
    /// The time to make the TCP and the TLS connection. `None` if a connection was reused.
    pub connect: Option<Duration>,
    /// The time from the ready connection (if reused, from the start of the attempt) to the head of the response.
    pub wait: Option<Duration>,
    /// The time to read the response body.
    pub read: Option<Duration>,
}

/// Records when each phase of one attempt started and ended.
#[derive(Debug, Clone)]
pub(crate) struct PhaseClock(Arc<Mutex<Moments>>);

#[derive(Debug, Clone, Copy)]
struct Moments {
    started: Instant,
    connect_started: Option<Instant>,
    lookup_started: Option<Instant>,
    resolved: Option<Instant>,
    connected: Option<Instant>,
    answered: Option<Instant>,
}

impl PhaseClock {
    pub(crate) fn start() -> Self {
        Self(Arc::new(Mutex::new(Moments {
            started: Instant::now(),
            connect_started: None,
            lookup_started: None,
            resolved: None,
            connected: None,
            answered: None,
        })))
    }

    /// Records that a new connection is being made. Forgets the times of an earlier try on a reused connection, which
    /// turned out to be closed.
    pub(crate) fn record_connect_start(&self) {
        self.record_now(|moments, now| {
            *moments = Moments {
                started: moments.started,
                connect_started: Some(now),
                answered: None,
                ..*moments
            };
            (moments.lookup_started, moments.resolved, moments.connected) = (None, None, None);
        });
    }

    pub(crate) fn record_lookup_start(&self) {
        self.record_now(|moments, now| moments.lookup_started = Some(now));
    }

    pub(crate) fn record_resolution(&self) {
        self.record_now(|moments, now| moments.resolved = Some(now));
    }

    pub(crate) fn record_connection(&self) {
        self.record_now(|moments, now| moments.connected = Some(now));
    }

    pub(crate) fn record_answer(&self) {
        self.record_now(|moments, now| moments.answered = Some(now));
    }

    pub(crate) fn phases(&self) -> PhaseTimes {
        self.with_moments(|moments| moments.phases(Instant::now()))
    }

    fn record_now(&self, write: impl FnOnce(&mut Moments, Instant)) {
        self.with_moments(|moments| write(moments, Instant::now()));
    }

    fn with_moments<T>(&self, with: impl FnOnce(&mut Moments) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Moments {
    fn phases(&self, end: Instant) -> PhaseTimes {
        let read = self
            .answered
            .map(|head| end.saturating_duration_since(head));
        let until = self.answered.unwrap_or(end);
        if self.used_an_open_connection() {
            let wait = Some(until.saturating_duration_since(self.started));
            return PhaseTimes {
                dns: None,
                connect: None,
                wait,
                read,
            };
        }
        let dns = self.lookup_started.map(|lookup_started| {
            self.resolved
                .unwrap_or(end)
                .saturating_duration_since(lookup_started)
        });
        let from = if self.lookup_started.is_some() {
            self.resolved
        } else {
            self.connect_started
        };
        let connect = from.map(|from| {
            self.connected
                .unwrap_or(end)
                .saturating_duration_since(from)
        });
        let wait = self
            .connected
            .map(|connected| until.saturating_duration_since(connected));
        PhaseTimes {
            dns,
            connect,
            wait,
            read,
        }
    }

    /// Returns true if the attempt used an open connection: it started no new one, or an open one became free before
    /// the new one was ready.
    fn used_an_open_connection(&self) -> bool {
        self.connect_started.is_none()
            || self
                .answered
                .is_some_and(|head| self.connected.is_none_or(|connected| connected > head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the phases of an attempt that ends after 100 ms. The arguments are milliseconds after the start.
    fn phases(
        connect_started: Option<u64>,
        name: [Option<u64>; 2],
        rest: [Option<u64>; 2],
    ) -> [Option<u128>; 4] {
        let started = Instant::now();
        let at = |millis: Option<u64>| millis.map(|millis| started + Duration::from_millis(millis));
        let moments = Moments {
            started,
            connect_started: at(connect_started),
            lookup_started: at(name[0]),
            resolved: at(name[1]),
            connected: at(rest[0]),
            answered: at(rest[1]),
        };
        let phases = moments.phases(started + Duration::from_millis(100));
        [phases.dns, phases.connect, phases.wait, phases.read]
            .map(|time| time.map(|time| time.as_millis()))
    }

    #[test]
    fn each_phase_ends_where_the_next_one_starts() {
        let all = phases(Some(1), [Some(2), Some(12)], [Some(32), Some(72)]);
        assert_eq!(all, [Some(10), Some(20), Some(40), Some(28)]);
        let address = phases(Some(1), [None, None], [Some(32), Some(72)]);
        assert_eq!(address, [None, Some(31), Some(40), Some(28)]);
        let reused = phases(None, [None, None], [None, Some(72)]);
        assert_eq!(reused, [None, None, Some(72), Some(28)]);
    }

    #[test]
    fn an_unfinished_phase_lasts_until_the_end_of_the_attempt() {
        assert_eq!(
            phases(Some(1), [Some(2), None], [None, None]),
            [Some(98), None, None, None]
        );
        assert_eq!(
            phases(Some(1), [Some(2), Some(12)], [None, None]),
            [Some(10), Some(88), None, None]
        );
        assert_eq!(
            phases(Some(1), [None, None], [Some(32), None]),
            [None, Some(31), Some(68), None]
        );
        assert_eq!(
            phases(None, [None, None], [None, None]),
            [None, None, Some(100), None]
        );
    }

    #[test]
    fn a_connection_that_is_ready_after_the_response_was_not_used() {
        let raced = [None, None, Some(72), Some(28)];
        assert_eq!(
            phases(Some(1), [Some(2), Some(12)], [Some(80), Some(72)]),
            raced
        );
        assert_eq!(phases(Some(1), [Some(2), None], [None, Some(72)]), raced);
    }
}
