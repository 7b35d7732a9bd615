//! Limits the number of receivers whose connections are kept open. At the limit, the connections to a new receiver are
//! closed after each call, until another receiver has not been called for the time `idle`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use url::Origin;

/// The receivers whose connections are kept open, each with the time of the last call.
#[derive(Debug)]
pub(crate) struct KeepAliveHosts {
    last_calls: Mutex<HashMap<Origin, Instant>>,
    max: usize,
    idle: Duration,
}

impl KeepAliveHosts {
    /// `max` is the largest number of receivers. `idle` is how long an idle connection is kept.
    pub(crate) fn new(max: usize, idle: Duration) -> Self {
        Self {
            last_calls: Mutex::default(),
            max,
            idle,
        }
    }

    /// Records a call to `host` at `now`. Returns true if the connection may be kept open after the call.
    pub(crate) fn may_keep_alive(&self, host: Origin, now: Instant) -> bool {
        let mut last_calls = self
            .last_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last_calls.get_mut(&host) {
            *last = now;
            return true;
        }
        if last_calls.len() >= self.max {
            last_calls.retain(|_, last| now.saturating_duration_since(*last) <= self.idle);
        }
        let has_room = last_calls.len() < self.max;
        if has_room {
            last_calls.insert(host, now);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_over_the_limit_keeps_its_connection_only_once_another_is_idle() {
        let kept = KeepAliveHosts::new(2, Duration::from_secs(5));
        let begun = Instant::now();
        let keeps = |port: u16, second| {
            let url = url::Url::parse(&format!("http://receiver.example:{port}/path")).unwrap();
            kept.may_keep_alive(url.origin(), begun + Duration::from_secs(second))
        };
        assert_eq!([keeps(1, 0), keeps(2, 0), keeps(3, 0)], [true, true, false]);
        assert_eq!(
            [keeps(1, 4), keeps(2, 4), keeps(3, 5)],
            [true, true, false],
            "receivers that are called again stay"
        );
        assert_eq!(
            [keeps(1, 8), keeps(3, 10), keeps(2, 10)],
            [true, true, false]
        );
    }
}
