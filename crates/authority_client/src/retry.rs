//! Computes random delays between tries. The upper bound of the delay doubles with each try. A Retry-After is its
//! lower bound, but counts as at most one hour.

use std::time::Duration;

use backoff::SystemClock;
use backoff::backoff::Backoff;
use backoff::exponential::ExponentialBackoffBuilder;
use timing::jitter::full_jitter;

/// An interval that was doubled this often has reached its maximum.
const DOUBLINGS_MAX: u32 = 64;
/// A longer Retry-After is shortened to this. Otherwise one odd answer could delay a call for a day, or make it seem
/// to have failed for the whole of `RetryPolicy::give_up_after`.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// The delays between tries, and the time after which to give up (`pipeline.retry_initial_ms`, `retry_max_s` and
/// `give_up_after_s`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The upper bound of the delay after the first failed try.
    pub initial: Duration,
    /// The upper bound of every delay.
    pub max: Duration,
    /// No try starts later than this time after the first try.
    pub give_up_after: Duration,
}

impl RetryPolicy {
    /// Returns the delay after `attempts` failed tries, or `None` if the next try would start after `give_up_after`.
    /// `jitter` is a random number. A `retry_after` is lengthened by up to `initial`, so that calls with the same
    /// `retry_after` are not all repeated at the same time.
    pub fn delay(
        &self,
        attempts: u32,
        elapsed: Duration,
        retry_after: Option<Duration>,
        jitter: u32,
    ) -> Option<Duration> {
        let delay = match retry_after {
            Some(wait) => {
                let wait = wait.min(RETRY_AFTER_MAX);
                wait.checked_add(full_jitter(self.initial, jitter))?
            }
            None => full_jitter(self.interval(attempts), jitter),
        };
        (elapsed.checked_add(delay)? <= self.give_up_after).then_some(delay)
    }

    /// Returns the upper bound of the delay: `initial`, doubled for each failed try after the first, but at most `max`.
    fn interval(&self, attempts: u32) -> Duration {
        let mut intervals = ExponentialBackoffBuilder::<SystemClock>::new()
            .with_initial_interval(self.initial.min(self.max))
            .with_max_interval(self.max)
            .with_multiplier(2.0)
            .with_randomization_factor(0.0)
            .with_max_elapsed_time(None)
            .build();
        let mut interval = self.initial.min(self.max);
        for _ in 0..attempts.clamp(1, DOUBLINGS_MAX) {
            interval = intervals.next_backoff().unwrap_or(self.max);
        }
        interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy {
        initial: Duration::from_millis(500),
        max: Duration::from_mins(1),
        give_up_after: Duration::from_hours(1),
    };

    fn delay_ms(attempts: u32, jitter: u32) -> u128 {
        POLICY
            .delay(attempts, Duration::ZERO, None, jitter)
            .unwrap()
            .as_millis()
    }

    #[test]
    fn the_interval_doubles_up_to_its_bound() {
        let longest: Vec<_> = [1, 2, 3, 7, 8, 9, 1_000, u32::MAX]
            .map(|n| delay_ms(n, u32::MAX))
            .into();
        assert_eq!(
            longest,
            [500, 1_000, 2_000, 32_000, 60_000, 60_000, 60_000, 60_000]
        );
    }

    #[test]
    fn the_jitter_is_full() {
        assert_eq!(delay_ms(4, 0), 0);
        assert_eq!(delay_ms(4, u32::MAX / 2), 1_999);
        assert_eq!(delay_ms(4, u32::MAX), 4_000);
    }

    #[test]
    fn a_retry_after_takes_precedence() {
        let wait = Some(Duration::from_mins(2));
        let delay = |jitter| POLICY.delay(1, Duration::ZERO, wait, jitter).unwrap();
        assert_eq!(delay(0), Duration::from_mins(2));
        assert_eq!(delay(u32::MAX), Duration::from_millis(120_500));
    }

    #[test]
    fn a_retry_after_is_an_hour_at_most() {
        let policy = RetryPolicy {
            give_up_after: Duration::from_hours(24),
            ..POLICY
        };
        let hour = Duration::from_hours(1);
        for (asked, waited) in [
            (Duration::ZERO, Duration::ZERO),
            (hour, hour),
            (hour * 25, hour),
            (Duration::MAX, hour),
        ] {
            let delay = |elapsed| policy.delay(1, elapsed, Some(asked), 0);
            assert_eq!(delay(Duration::ZERO), Some(waited), "{asked:?}");
            assert_eq!(delay(hour * 25), None, "{asked:?}");
        }
    }

    #[test]
    fn no_try_starts_after_the_time_is_used_up() {
        let nearly = POLICY
            .give_up_after
            .checked_sub(Duration::from_secs(1))
            .unwrap();
        assert!(POLICY.delay(1, nearly, None, u32::MAX).is_some());
        assert!(POLICY.delay(9, nearly, None, u32::MAX).is_none());
        assert!(POLICY.delay(1, POLICY.give_up_after * 2, None, 0).is_none());
        assert!(POLICY.delay(1, nearly, Some(Duration::MAX), 1).is_none());
    }
}
