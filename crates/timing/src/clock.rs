//! Time and randomness are passed as arguments, so that tests can pass a fixed clock and a seeded generator.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

/// A source of the present time, in UTC.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

pub type SharedClock = Arc<dyn Clock>;

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the machine's clock is read"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Returns the random generator of the system, which is suitable for keys and secrets.
pub fn system_rng() -> impl rand::CryptoRng {
    rand::rng()
}

/// Returns a new identifier. Identifiers are ordered by time, so that database indexes stay compact.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where identifiers are drawn"
)]
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}

/// A clock for tests, in microseconds since 1970. Its time changes only when a test changes it. No Cargo feature
/// hides it, because every crate above this one would then be compiled twice, with and without the feature.
#[derive(Debug)]
pub struct MockClock(AtomicI64);

impl MockClock {
    pub fn at(moment: Timestamp) -> Self {
        Self(AtomicI64::new(moment.as_microsecond()))
    }

    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.0.fetch_add(micros, Ordering::SeqCst);
    }

    pub fn set_back(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.0.fetch_sub(micros, Ordering::SeqCst);
    }
}

impl Clock for MockClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_mock_clock_changes_only_when_a_test_changes_it() {
        let clock = MockClock::at(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        clock.advance(Duration::from_secs(5));
        clock.set_back(Duration::from_secs(2));
        assert_eq!(clock.now(), clock.now());
        assert_eq!(clock.now().as_second(), 3);
    }

    #[test]
    fn a_later_identifier_is_greater() {
        let ids: Vec<_> = (0..100).map(|_| new_id()).collect();
        assert!(ids.is_sorted());
    }
}
