//! Counts what each taxpayer has used of this process within the last minutes and the last hour.
//!
//! Memory is bounded, however many taxpayers there are: a span of time that counts more than `CUT_AT` taxpayers keeps
//! only those with the highest counts by each measure. Then the count of a taxpayer may be too low, but never too high.
//! Up to `CUT_AT` taxpayers in a span, the counts are exact.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use supervision::Window;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::TaxpayerId;

/// A span with more taxpayers than `CUT_AT` is cut: by each measure, it keeps the `KEPT_BY_MEASURE` highest counts.
const CUT_AT: usize = 1_024;
const KEPT_BY_MEASURE: usize = 64;

const SHORT_SPAN_S: u64 = 10;
const LONG_SPAN_S: u64 = 60;
const SHORT_WINDOW_S: u64 = 5 * 60;
const LONG_WINDOW_S: u64 = 60 * 60;

words! {
    /// The measures by which taxpayers can be ranked.
    UsageMeasure {
        Writes = "writes",
        Wait = "wait",
        Runs = "runs",
        Deliveries = "deliveries",
        Refusals = "refusals",
        Throttled = "throttled",
    }
}

/// The counts of what a taxpayer has used of this process within some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UsageCounts {
    /// The number of commands that succeeded.
    pub writes: u64,
    /// The longest time from a command to its answer, in microseconds.
    pub wait_max_us: u64,
    /// Runs that the authority accepted or refused.
    pub runs: u64,
    /// Attempts at deliveries to its webhook.
    pub deliveries: u64,
    /// Runs that the authority refused.
    pub refusals: u64,
    /// Requests with the taxpayer's key, and commands, that were refused with status 429.
    pub throttled: u64,
}

impl UsageCounts {
    pub fn count_by(&self, by: UsageMeasure) -> u64 {
        match by {
            UsageMeasure::Writes => self.writes,
            UsageMeasure::Wait => self.wait_max_us,
            UsageMeasure::Runs => self.runs,
            UsageMeasure::Deliveries => self.deliveries,
            UsageMeasure::Refusals => self.refusals,
            UsageMeasure::Throttled => self.throttled,
        }
    }

    fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.wait_max_us = self.wait_max_us.max(other.wait_max_us);
        self.runs += other.runs;
        self.deliveries += other.deliveries;
        self.refusals += other.refusals;
        self.throttled += other.throttled;
    }
}

/// The usage of this process by each taxpayer. Clones share one record.
#[derive(Debug, Clone)]
pub struct TaxpayerUsage {
    started: Instant,
    spans: Arc<Mutex<[TimeSpans; 2]>>,
}

/// Consecutive spans of equal length, the newest last. Spans in which nothing happened are absent.
#[derive(Debug)]
struct TimeSpans {
    length_s: u64,
    /// The length of the longest window that is read from these spans.
    window_s: u64,
    spans: VecDeque<TimeSpan>,
}

#[derive(Debug)]
struct TimeSpan {
    /// The number of the span since the start.
    number: u64,
    counts: HashMap<TaxpayerId, UsageCounts>,
}

impl Default for TaxpayerUsage {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            spans: Arc::new(Mutex::new([
                TimeSpans::new(SHORT_SPAN_S, SHORT_WINDOW_S),
                TimeSpans::new(LONG_SPAN_S, LONG_WINDOW_S),
            ])),
        }
    }
}

impl TimeSpans {
    fn new(length_s: u64, window_s: u64) -> Self {
        Self {
            length_s,
            window_s,
            spans: VecDeque::new(),
        }
    }
}

impl TaxpayerUsage {
    /// Records a command that ended now, after it took this long.
    pub fn record_command(&self, taxpayer: TaxpayerId, has_succeeded: bool, took: Duration) {
        let counts = UsageCounts {
            writes: u64::from(has_succeeded),
            wait_max_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            ..UsageCounts::default()
        };
        self.record(taxpayer, &counts);
    }

    pub fn record_run(&self, taxpayer: TaxpayerId, is_refused: bool) {
        let counts = UsageCounts {
            runs: 1,
            refusals: u64::from(is_refused),
            ..UsageCounts::default()
        };
        self.record(taxpayer, &counts);
    }

    pub fn record_delivery(&self, taxpayer: TaxpayerId) {
        let counts = UsageCounts {
            deliveries: 1,
            ..UsageCounts::default()
        };
        self.record(taxpayer, &counts);
    }

    pub fn record_throttled_request(&self, taxpayer: TaxpayerId) {
        let counts = UsageCounts {
            throttled: 1,
            ..UsageCounts::default()
        };
        self.record(taxpayer, &counts);
    }

    fn record(&self, taxpayer: TaxpayerId, counts: &UsageCounts) {
        let second = self.started.elapsed().as_secs();
        self.record_at(second, taxpayer, counts);
    }

    fn record_at(&self, second: u64, taxpayer: TaxpayerId, counts: &UsageCounts) {
        for spans in &mut *self.lock() {
            spans.record(second, taxpayer, counts);
        }
    }

    /// Returns the `max` taxpayers with the highest counts by a measure, the highest first. Leaves out counts of 0.
    pub fn top_taxpayers(
        &self,
        by: UsageMeasure,
        window: Window,
        max: usize,
    ) -> Vec<(TaxpayerId, UsageCounts)> {
        self.top_taxpayers_at(self.started.elapsed().as_secs(), by, window, max)
    }

    fn top_taxpayers_at(
        &self,
        second: u64,
        by: UsageMeasure,
        window: Window,
        max: usize,
    ) -> Vec<(TaxpayerId, UsageCounts)> {
        let [short, long] = &*self.lock();
        let (spans, window_s) = match window {
            Window::Minute => (short, 60),
            Window::FiveMinutes => (short, SHORT_WINDOW_S),
            Window::Hour => (long, LONG_WINDOW_S),
        };
        let mut top: Vec<_> = spans.sum(second, window_s).into_iter().collect();
        top.retain(|(_, counts)| counts.count_by(by) > 0);
        top.sort_by_key(|(taxpayer, counts)| (Reverse(counts.count_by(by)), taxpayer.0));
        top.truncate(max);
        top
    }

    fn lock(&self) -> MutexGuard<'_, [TimeSpans; 2]> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TimeSpans {
    /// Adds to the span of a second, and drops the spans that no window includes any more. If another thread has
    /// already begun a newer span, adds to that one.
    fn record(&mut self, second: u64, taxpayer: TaxpayerId, counts: &UsageCounts) {
        let number = second / self.length_s;
        let first = self.first_span_number(second, self.window_s);
        while self.spans.front().is_some_and(|span| span.number < first) {
            self.spans.pop_front();
        }
        if self.spans.back().is_none_or(|span| span.number < number) {
            self.spans.push_back(TimeSpan {
                number,
                counts: HashMap::new(),
            });
        }
        if let Some(newest) = self.spans.back_mut() {
            newest.counts.entry(taxpayer).or_default().add(counts);
            if newest.counts.len() > CUT_AT {
                newest.keep_top_taxpayers();
            }
        }
    }

    /// Returns the counts of the window that ends at `second`. The span in which the window begins is included as a
    /// whole.
    fn sum(&self, second: u64, window_s: u64) -> HashMap<TaxpayerId, UsageCounts> {
        let first = self.first_span_number(second, window_s);
        let mut sums: HashMap<TaxpayerId, UsageCounts> = HashMap::new();
        for span in self.spans.iter().filter(|span| span.number >= first) {
            for (taxpayer, counts) in &span.counts {
                sums.entry(*taxpayer).or_default().add(counts);
            }
        }
        sums
    }

    fn first_span_number(&self, second: u64, window_s: u64) -> u64 {
        second.saturating_sub(window_s) / self.length_s
    }
}

impl TimeSpan {
    /// Keeps only the `KEPT_BY_MEASURE` taxpayers with the highest counts by each measure.
    fn keep_top_taxpayers(&mut self) {
        let mut kept = HashSet::new();
        for by in UsageMeasure::ALL {
            let mut ranked: Vec<_> = self
                .counts
                .iter()
                .map(|(taxpayer, counts)| (Reverse(counts.count_by(*by)), *taxpayer))
                .filter(|(Reverse(measure), _)| *measure > 0)
                .collect();
            if ranked.len() > KEPT_BY_MEASURE {
                ranked.select_nth_unstable_by_key(KEPT_BY_MEASURE, |(measure, _)| *measure);
            }
            let first = ranked.into_iter().take(KEPT_BY_MEASURE);
            kept.extend(first.map(|(_, taxpayer)| taxpayer));
        }
        self.counts.retain(|taxpayer, _| kept.contains(taxpayer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(top: &[(TaxpayerId, UsageCounts)]) -> Vec<i64> {
        top.iter().map(|(taxpayer, _)| taxpayer.0).collect()
    }

    fn waited(wait_max_us: u64) -> UsageCounts {
        UsageCounts {
            writes: 1,
            wait_max_us,
            ..UsageCounts::default()
        }
    }

    #[test]
    fn each_measure_has_its_window_and_leaves_out_taxpayers_without_it() {
        let usage = TaxpayerUsage::default();
        for (second, taxpayer, counts) in [
            (10, 1, waited(900)),
            (3_600, 2, waited(5)),
            (3_600, 2, waited(7)),
            (3_650, 3, waited(6)),
            (
                3_650,
                4,
                UsageCounts {
                    runs: 2,
                    refusals: 1,
                    ..UsageCounts::default()
                },
            ),
            (
                3_650,
                5,
                UsageCounts {
                    deliveries: 1,
                    throttled: 3,
                    ..UsageCounts::default()
                },
            ),
        ] {
            usage.record_at(second, TaxpayerId(taxpayer), &counts);
        }
        let now = 3_661;
        let top = |by, window| ids(&usage.top_taxpayers_at(now, by, window, 20));
        for (by, window, expected) in [
            (UsageMeasure::Writes, Window::FiveMinutes, &[2, 3][..]),
            (UsageMeasure::Writes, Window::Minute, &[2, 3]),
            (UsageMeasure::Wait, Window::FiveMinutes, &[2, 3]),
            (UsageMeasure::Wait, Window::Hour, &[2, 3]),
            (UsageMeasure::Runs, Window::Minute, &[4]),
            (UsageMeasure::Refusals, Window::Minute, &[4]),
            (UsageMeasure::Deliveries, Window::Hour, &[5]),
            (UsageMeasure::Throttled, Window::Hour, &[5]),
        ] {
            assert_eq!(top(by, window), expected, "{by} {window:?}");
        }
        let earlier = usage.top_taxpayers_at(3_609, UsageMeasure::Wait, Window::Hour, 1);
        assert_eq!(
            earlier,
            [(TaxpayerId(1), waited(900))],
            "it was within the hour"
        );
        let both = usage.top_taxpayers_at(now, UsageMeasure::Writes, Window::Hour, 1);
        let expected = UsageCounts {
            writes: 2,
            ..waited(7)
        };
        assert_eq!(
            both,
            [(TaxpayerId(2), expected)],
            "counts add up, and the longest wait counts"
        );
    }

    #[test]
    fn very_many_taxpayers_stay_bounded_and_the_first_are_exact() {
        let usage = TaxpayerUsage::default();
        let heavy = UsageCounts {
            runs: 50,
            ..UsageCounts::default()
        };
        usage.record_at(1, TaxpayerId(0), &heavy);
        for taxpayer in 1..20_000 {
            usage.record_at(1, TaxpayerId(taxpayer), &waited(5));
        }
        let kept = usage
            .lock()
            .each_ref()
            .map(|spans| spans.spans[0].counts.len());
        assert!(kept.iter().all(|kept| *kept <= CUT_AT), "{kept:?}");
        let top = usage.top_taxpayers_at(1, UsageMeasure::Runs, Window::Minute, 20);
        assert_eq!(top, [(TaxpayerId(0), heavy)]);
        let writes = usage.top_taxpayers_at(1, UsageMeasure::Writes, Window::Minute, 20);
        assert_eq!(writes.len(), 20);
    }
}
