//! Distributions of latencies, as lists of points. Shares are in millionths of the calls, so no floats are needed.

use super::request::Percentiles;

const MILLION: u64 = 1_000_000;

/// Points (share, time) in ascending order: (900000, 80) says that 900,000 of a million calls take at most 80 ms. The
/// first share is 0, the last 1,000,000.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spread(Vec<(u64, u64)>);

impl Spread {
    pub(super) fn constant(ms: u64) -> Self {
        Self::uniform(ms, ms)
    }

    pub(super) fn uniform(min: u64, max: u64) -> Self {
        Self(vec![(0, min), (MILLION, max)])
    }

    pub(super) fn percentiles(table: &Percentiles) -> Self {
        let Percentiles {
            min,
            p50,
            p90,
            p99,
            max,
        } = *table;
        Self(vec![
            (0, min.unwrap_or(0)),
            (500_000, p50),
            (900_000, p90),
            (990_000, p99),
            (MILLION, max),
        ])
    }

    pub(super) fn is_ascending(&self) -> bool {
        self.0.is_sorted_by_key(|(_, ms)| *ms)
    }

    pub(super) fn longest_ms(&self) -> u64 {
        self.0.last().map_or(0, |(_, ms)| *ms)
    }

    /// Returns the time in milliseconds that this share of the calls does not exceed; `latency_ms(500_000)` is the
    /// median.
    pub(super) fn latency_ms(&self, millionths: u64) -> u64 {
        let ends = self.0.iter().skip(1);
        let lines = self.0.iter().zip(ends);
        let mut lines = lines.filter(|(_, (to, _))| millionths < *to);
        lines
            .next()
            .map_or(self.longest_ms(), |((from, low), (to, high))| {
                low + (high - low) * (millionths - from) / (to - from)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_on_the_line_between_its_percentiles() {
        let table = Percentiles {
            min: Some(10),
            p50: 50,
            p90: 130,
            p99: 1_030,
            max: 5_030,
        };
        let spread = Spread::percentiles(&table);
        let expected = [
            (0, 10),
            (250_000, 30),
            (500_000, 50),
            (700_000, 90),
            (900_000, 130),
            (945_000, 580),
            (990_000, 1_030),
            (995_000, 3_030),
            (999_999, 5_029),
            (1_000_000, 5_030),
        ];
        for (millionths, ms) in expected {
            assert_eq!(spread.latency_ms(millionths), ms, "{millionths}");
        }
        assert!(spread.is_ascending() && spread.longest_ms() == 5_030);
    }

    #[test]
    fn a_fixed_time_is_always_the_same_and_a_uniform_one_between_its_ends() {
        assert_eq!(
            [0, 1, 999_999].map(|millionths| Spread::constant(40).latency_ms(millionths)),
            [40; 3]
        );
        let uniform = Spread::uniform(20, 80);
        assert_eq!(
            [0, 500_000, 999_999].map(|millionths| uniform.latency_ms(millionths)),
            [20, 50, 79]
        );
        assert!(!Spread::uniform(80, 20).is_ascending());
    }
}
