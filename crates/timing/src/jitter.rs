//! Random delays, so that callers that were delayed by the same event do not all return at once.
//!
//! `jitter` is a random number: 0 gives the shortest delay, and `u32::MAX` the longest.

use std::time::Duration;

/// Returns a delay between zero and `whole`.
pub fn full_jitter(whole: Duration, jitter: u32) -> Duration {
    Duration::from_nanos_u128(whole.as_nanos() * u128::from(jitter) / u128::from(u32::MAX))
}

/// Returns a delay between half of `whole` and all of it.
pub fn equal_jitter(whole: Duration, jitter: u32) -> Duration {
    let half = whole / 2;
    half + full_jitter(half, jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_in_proportion_to_the_random_number() {
        let whole = Duration::from_millis(10);
        let drawn = [0, u32::MAX / 2, u32::MAX];
        assert_eq!(
            drawn.map(|jitter| full_jitter(whole, jitter).as_micros()),
            [0, 4_999, 10_000]
        );
        assert_eq!(
            drawn.map(|jitter| equal_jitter(whole, jitter).as_micros()),
            [5_000, 7_499, 10_000]
        );
    }

    #[test]
    fn no_delay_is_too_long() {
        assert_eq!(full_jitter(Duration::MAX, u32::MAX), Duration::MAX);
        assert_eq!(equal_jitter(Duration::MAX, u32::MAX), Duration::MAX / 2 * 2);
    }
}
