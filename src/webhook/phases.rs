//! How long the phases of an attempt took. A clock is shared by whoever takes part in it: the client, its
//! resolver, its connector, which may go on in a task of its own. What was begun and not ended lasts until the
//! attempt's end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The phases of one attempt; one that did not take place has no time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// Resolving the name. None on a connection that was open already, and for an address in the URL.
    pub dns: Option<Duration>,
    /// TCP and TLS. None on a connection that was open already.
    pub connect: Option<Duration>,
    /// From the connection, or the start on one that was open, to the head of the answer.
    pub wait: Option<Duration>,
    /// The body of the answer, as far as it is read.
    pub read: Option<Duration>,
}

/// The moments of one attempt.
#[derive(Debug, Clone)]
pub(super) struct PhaseClock(Arc<Mutex<Moments>>);

#[derive(Debug, Clone, Copy)]
struct Moments {
    started: Instant,
    dialled: Option<Instant>,
    asked: Option<Instant>,
    resolved: Option<Instant>,
    connected: Option<Instant>,
    answered: Option<Instant>,
}

impl PhaseClock {
    pub(super) fn start() -> Self {
        Self(Arc::new(Mutex::new(Moments {
            started: Instant::now(),
            dialled: None,
            asked: None,
            resolved: None,
            connected: None,
            answered: None,
        })))
    }

    /// A connection is to be made. It may be the second, where an open one turned out to be closed.
    pub(super) fn dials(&self) {
        self.set(|moments, now| {
            *moments = Moments { started: moments.started, dialled: Some(now), answered: None, ..*moments };
            (moments.asked, moments.resolved, moments.connected) = (None, None, None);
        });
    }

    pub(super) fn asks(&self) {
        self.set(|moments, now| moments.asked = Some(now));
    }

    pub(super) fn resolved(&self) {
        self.set(|moments, now| moments.resolved = Some(now));
    }

    pub(super) fn connected(&self) {
        self.set(|moments, now| moments.connected = Some(now));
    }

    pub(super) fn answered(&self) {
        self.set(|moments, now| moments.answered = Some(now));
    }

    pub(super) fn phases(&self) -> Phases {
        self.moments(|moments| moments.phases(Instant::now()))
    }

    fn set(&self, write: impl FnOnce(&mut Moments, Instant)) {
        self.moments(|moments| write(moments, Instant::now()));
    }

    fn moments<T>(&self, with: impl FnOnce(&mut Moments) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Moments {
    fn phases(&self, end: Instant) -> Phases {
        let read = self.answered.map(|head| end.saturating_duration_since(head));
        let until = self.answered.unwrap_or(end);
        if self.came_on_an_open_connection() {
            let wait = Some(until.saturating_duration_since(self.started));
            return Phases { dns: None, connect: None, wait, read };
        }
        let dns = self.asked.map(|asked| self.resolved.unwrap_or(end).saturating_duration_since(asked));
        let from = if self.asked.is_some() { self.resolved } else { self.dialled };
        let connect = from.map(|from| self.connected.unwrap_or(end).saturating_duration_since(from));
        let wait = self.connected.map(|connected| until.saturating_duration_since(connected));
        Phases { dns, connect, wait, read }
    }

    /// Either none was to be made, or another became free before it was there.
    fn came_on_an_open_connection(&self) -> bool {
        let in_time = |head| self.connected.is_some_and(|connected| connected <= head);
        self.dialled.is_none() || self.answered.is_some_and(|head| !in_time(head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments at so many milliseconds after the start, and what they come to at the hundredth.
    fn phases(dialled: Option<u64>, name: [Option<u64>; 2], rest: [Option<u64>; 2]) -> [Option<u128>; 4] {
        let started = Instant::now();
        let at = |millis: Option<u64>| millis.map(|millis| started + Duration::from_millis(millis));
        let moments = Moments {
            started,
            dialled: at(dialled),
            asked: at(name[0]),
            resolved: at(name[1]),
            connected: at(rest[0]),
            answered: at(rest[1]),
        };
        let phases = moments.phases(started + Duration::from_millis(100));
        [phases.dns, phases.connect, phases.wait, phases.read].map(|time| time.map(|time| time.as_millis()))
    }

    #[test]
    fn each_phase_ends_where_the_next_begins() {
        let all = phases(Some(1), [Some(2), Some(12)], [Some(32), Some(72)]);
        assert_eq!(all, [Some(10), Some(20), Some(40), Some(28)]);
        let address = phases(Some(1), [None, None], [Some(32), Some(72)]);
        assert_eq!(address, [None, Some(31), Some(40), Some(28)]);
        let reused = phases(None, [None, None], [None, Some(72)]);
        assert_eq!(reused, [None, None, Some(72), Some(28)]);
    }

    #[test]
    fn a_phase_that_did_not_end_lasts_until_the_attempt_does() {
        assert_eq!(phases(Some(1), [Some(2), None], [None, None]), [Some(98), None, None, None]);
        assert_eq!(phases(Some(1), [Some(2), Some(12)], [None, None]), [Some(10), Some(88), None, None]);
        assert_eq!(phases(Some(1), [None, None], [Some(32), None]), [None, Some(31), Some(68), None]);
        assert_eq!(phases(None, [None, None], [None, None]), [None, None, Some(100), None]);
    }

    #[test]
    fn a_connection_that_came_after_the_answer_was_not_the_one() {
        let raced = [None, None, Some(72), Some(28)];
        assert_eq!(phases(Some(1), [Some(2), Some(12)], [Some(80), Some(72)]), raced);
        assert_eq!(phases(Some(1), [Some(2), None], [None, Some(72)]), raced);
    }
}
