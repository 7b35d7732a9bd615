//! The delay before each attempt. After the last attempt fails, the delivery is a dead letter.

use std::borrow::Cow;
use std::time::Duration;

use timing::jitter::full_jitter;

/// A longer Retry-After is cut to this.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// One delay per attempt, in order. The first delay is the one before the first attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySchedule(Vec<Duration>);

impl RetrySchedule {
    pub fn new(delays: Vec<Duration>) -> Self {
        Self(delays)
    }

    /// Returns the endpoint's own schedule (delays in seconds), or else the shared schedule.
    pub fn for_endpoint<'s>(shared: &'s Self, endpoint: Option<&[u32]>) -> Cow<'s, Self> {
        let Some(delays) = endpoint else {
            return Cow::Borrowed(shared);
        };
        let delays = delays
            .iter()
            .map(|seconds| Duration::from_secs(u64::from(*seconds)));
        Cow::Owned(Self(delays.collect()))
    }

    /// Returns the delay before the next attempt, or `None` if no attempt is left. The random number `jitter` lengthens
    /// the delay by up to a tenth. A longer `retry_after` (at most 24 h) is used instead.
    pub fn next_delay(
        &self,
        attempts_made: usize,
        retry_after: Option<Duration>,
        jitter: u32,
    ) -> Option<Duration> {
        let delay = *self.0.get(attempts_made)?;
        let jittered = delay.saturating_add(full_jitter(delay / 10, jitter));
        let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        Some(jittered.max(asked))
    }
}

impl Default for RetrySchedule {
    /// The delays before the ten attempts: 0 s, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h.
    fn default() -> Self {
        let seconds = [
            0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400,
        ];
        Self(seconds.map(Duration::from_secs).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_the_delay_before_an_attempt() {
        let schedule = RetrySchedule::new([0, 1, 2].map(Duration::from_secs).into());
        let delays: Vec<_> = (0..5)
            .map(|made| {
                schedule
                    .next_delay(made, None, 0)
                    .map(|delay| delay.as_secs())
            })
            .collect();
        assert_eq!(delays, [Some(0), Some(1), Some(2), None, None]);
        assert_eq!(schedule.0.len(), 3);
        assert_eq!(RetrySchedule::default().0.len(), 10);
        assert_eq!(RetrySchedule::new(Vec::new()).next_delay(0, None, 0), None);
    }

    #[test]
    fn an_endpoint_may_have_its_own_delays() {
        let shared = RetrySchedule::default();
        assert_eq!(*RetrySchedule::for_endpoint(&shared, None), shared);
        let own = RetrySchedule::for_endpoint(&shared, Some(&[0, 60]));
        assert_eq!(
            (own.0.len(), own.next_delay(1, None, 0)),
            (2, Some(Duration::from_mins(1)))
        );
        assert_eq!(own.next_delay(2, None, 0), None);
    }

    #[test]
    fn jitter_lengthens_a_delay_by_up_to_a_tenth() {
        let schedule = RetrySchedule::default();
        let seconds = |jitter| schedule.next_delay(2, None, jitter).unwrap().as_millis();
        assert_eq!(
            [seconds(0), seconds(u32::MAX / 2), seconds(u32::MAX)],
            [300_000, 314_999, 330_000]
        );
        assert_eq!(schedule.next_delay(0, None, u32::MAX), Some(Duration::ZERO));
        let endless = RetrySchedule::new(vec![Duration::MAX]);
        assert_eq!(endless.next_delay(0, None, u32::MAX), Some(Duration::MAX));
    }

    #[test]
    fn a_retry_after_is_honoured_up_to_a_day() {
        let schedule = RetrySchedule::default();
        let next = |made, asked| {
            schedule
                .next_delay(made, Some(Duration::from_secs(asked)), 0)
                .unwrap()
                .as_secs()
        };
        assert_eq!(next(1, 60), 60);
        assert_eq!(next(3, 60), 1_800);
        assert_eq!(next(1, 1_000_000), 86_400);
        assert_eq!(
            schedule.next_delay(10, Some(Duration::from_secs(1)), 0),
            None
        );
    }
}
