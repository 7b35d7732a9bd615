//! Time and randomness are passed as arguments, so that tests can pass a fixed clock and a seeded generator.

use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

#[cfg(test)]
pub use mock::MockClock;

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

#[cfg(test)]
mod mock {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use super::{Clock, Timestamp};

    /// A clock for tests, in microseconds since 1970. Its time changes only when a test changes it.
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
}
