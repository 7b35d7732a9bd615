//! An allowance that refills steadily (GCRA). A bucket's state is the time at which it will be full again.

use std::time::Duration;

use jiff::Timestamp;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Allows `size` requests at once, and one further request after each interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    size: u32,
    /// The nanoseconds after which one further request is allowed.
    interval: i64,
}

/// The remaining part of a quota, as the response headers show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// The time when the whole allowance is available again.
    pub(crate) full_at: Timestamp,
}

/// The refusal of a request that finds its quota used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotaExceeded {
    pub(crate) allowance: Allowance,
    pub(crate) retry_after: Duration,
}

impl Quota {
    /// Allows `rate` requests per second and `burst` requests at once. A rate of 0 means no limit (`None`).
    pub(crate) fn per_second(rate: u32, burst: u32) -> Option<Self> {
        (rate > 0).then(|| Self {
            size: burst.max(1),
            interval: NANOS_PER_SECOND / i64::from(rate),
        })
    }

    /// Allows `rate` requests per minute, which may come at once. A rate of 0 means no limit (`None`).
    pub(crate) fn per_minute(rate: u32) -> Option<Self> {
        (rate > 0).then(|| Self {
            size: rate,
            interval: 60 * NANOS_PER_SECOND / i64::from(rate),
        })
    }

    /// Counts one request. If it is allowed, moves `full_at_ns`, the time at which the bucket is full again, by one
    /// interval.
    pub(crate) fn count_use(
        self,
        full_at_ns: &mut i64,
        now_ns: i64,
    ) -> Result<Allowance, QuotaExceeded> {
        let refill_ns = self.interval * i64::from(self.size);
        // A bucket is full after `refill_ns` at the latest. A later `full_at_ns` shows that the clock was set back.
        let is_clock_set_back = *full_at_ns > now_ns + refill_ns;
        let next_full_at_ns = if is_clock_set_back {
            now_ns
        } else {
            (*full_at_ns).max(now_ns)
        } + self.interval;
        let wait = next_full_at_ns - now_ns - refill_ns;
        if wait > 0 {
            let allowance = self.allowance(next_full_at_ns - self.interval, now_ns);
            return Err(QuotaExceeded {
                allowance,
                retry_after: Duration::from_nanos(wait.unsigned_abs()),
            });
        }
        *full_at_ns = next_full_at_ns;
        Ok(self.allowance(next_full_at_ns, now_ns))
    }

    /// Undoes the count of one request.
    pub(crate) fn give_back(self, full_at_ns: &mut i64, now_ns: i64) {
        *full_at_ns = (*full_at_ns - self.interval).max(now_ns);
    }

    fn allowance(self, full_at_ns: i64, now_ns: i64) -> Allowance {
        let missing = (full_at_ns - now_ns + self.interval - 1) / self.interval;
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let full_at = Timestamp::from_nanosecond(full_at_ns.into()).unwrap_or(Timestamp::MAX);
        Allowance {
            limit: self.size,
            remaining: self.size.saturating_sub(missing),
            full_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000 * NANOS_PER_SECOND;

    fn take_all(quota: Quota, full_at: &mut i64, now: i64) -> u32 {
        (0..10_000)
            .take_while(|_| quota.count_use(full_at, now).is_ok())
            .count()
            .try_into()
            .unwrap()
    }

    #[test]
    fn a_burst_is_taken_at_once_and_comes_back_steadily() {
        let quota = Quota::per_second(500, 1_000).unwrap();
        let mut full_at = 0;
        assert_eq!(take_all(quota, &mut full_at, NOW), 1_000);
        assert_eq!(take_all(quota, &mut full_at, NOW + NANOS_PER_SECOND), 500);
        assert_eq!(
            take_all(
                quota,
                &mut full_at,
                NOW + NANOS_PER_SECOND + NANOS_PER_SECOND / 500
            ),
            1
        );
        assert_eq!(
            take_all(quota, &mut full_at, NOW + 100 * NANOS_PER_SECOND),
            1_000
        );
    }

    #[test]
    fn the_allowance_shows_what_remains_and_when_it_is_full_again() {
        let quota = Quota::per_minute(2).unwrap();
        let mut full_at = 0;
        let at = |seconds: i64| {
            Timestamp::from_nanosecond((NOW + seconds * NANOS_PER_SECOND).into()).unwrap()
        };
        let expected = |remaining, seconds| Allowance {
            limit: 2,
            remaining,
            full_at: at(seconds),
        };
        assert_eq!(quota.count_use(&mut full_at, NOW), Ok(expected(1, 30)));
        assert_eq!(
            quota.count_use(&mut full_at, NOW + 10 * NANOS_PER_SECOND),
            Ok(expected(0, 60))
        );
        let exceeded = quota
            .count_use(&mut full_at, NOW + 20 * NANOS_PER_SECOND)
            .unwrap_err();
        assert_eq!(exceeded.allowance, expected(0, 60));
        assert_eq!(exceeded.retry_after, Duration::from_secs(10));
        assert_eq!(
            quota.count_use(&mut full_at, NOW + 30 * NANOS_PER_SECOND),
            Ok(expected(0, 90))
        );
    }

    #[test]
    fn a_request_that_is_not_counted_leaves_room_for_another() {
        let quota = Quota::per_minute(2).unwrap();
        let mut full_at = 0;
        assert_eq!(take_all(quota, &mut full_at, NOW), 2);
        quota.give_back(&mut full_at, NOW);
        assert_eq!(take_all(quota, &mut full_at, NOW), 1);
        (0..5).for_each(|_| quota.give_back(&mut full_at, NOW));
        assert_eq!(
            take_all(quota, &mut full_at, NOW),
            2,
            "never more than the whole"
        );
    }

    #[test]
    fn a_clock_that_is_set_back_refuses_nobody() {
        let quota = Quota::per_second(1, 2).unwrap();
        let mut full_at = 0;
        assert_eq!(take_all(quota, &mut full_at, NOW), 2);
        let hour_ago = NOW - 3_600 * NANOS_PER_SECOND;
        assert_eq!(take_all(quota, &mut full_at, hour_ago), 2);
        assert_eq!(
            take_all(quota, &mut full_at, hour_ago + NANOS_PER_SECOND),
            1
        );
    }

    #[test]
    fn zero_is_no_limit_and_one_request_is_always_allowed() {
        assert_eq!(
            (Quota::per_second(0, 5), Quota::per_minute(0)),
            (None, None)
        );
        let quota = Quota::per_second(1, 0).unwrap();
        let mut full_at = 0;
        assert_eq!(take_all(quota, &mut full_at, NOW), 1);
        let fastest = Quota::per_second(1_000_000, 1_000_000).unwrap();
        let mut full_at = 0;
        assert!(fastest.count_use(&mut full_at, NOW).is_ok());
    }
}
