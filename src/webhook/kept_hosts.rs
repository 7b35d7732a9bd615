//! Receivers to which connections may be kept. Each that is called now and then would keep a file open on both sides;
//! so only so many at a time have that, and whoever is called again and again soon is among them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use url::Origin;

/// The receivers, each with its last call.
#[derive(Debug)]
pub(super) struct KeptHosts {
    last_calls: Mutex<HashMap<Origin, Instant>>,
    max: usize,
    idle: Duration,
}

impl KeptHosts {
    /// `idle` is how long an unused connection is kept.
    pub(super) fn new(max: usize, idle: Duration) -> Self {
        Self { last_calls: Mutex::default(), max, idle }
    }

    /// Whether the connection of a call that is made now may be kept.
    pub(super) fn keeps(&self, host: Origin, now: Instant) -> bool {
        let mut last_calls = self.last_calls.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn so_many_receivers_keep_their_connections_and_others_when_those_are_idle() {
        let (kept, begun) = (KeptHosts::new(2, Duration::from_secs(5)), Instant::now());
        let keeps = |port: u16, second| {
            let url = url::Url::parse(&format!("http://receiver.example:{port}/path")).unwrap();
            kept.keeps(url.origin(), begun + Duration::from_secs(second))
        };
        assert_eq!([keeps(1, 0), keeps(2, 0), keeps(3, 0)], [true, true, false]);
        assert_eq!(
            [keeps(1, 4), keeps(2, 4), keeps(3, 5)],
            [true, true, false],
            "those that are called again stay"
        );
        assert_eq!([keeps(1, 8), keeps(3, 10), keeps(2, 10)], [true, true, false]);
    }
}
