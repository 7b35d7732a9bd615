//! The limit of concurrent calls of one operation, as a pure state machine: methods take the time as an
//! argument, and nothing waits here.
//!
//! After N good answers a limit of N grows by one, but only if nearly N calls were in progress at some moment
//! meanwhile. It falls to seven tenths when the authority signals overload, or when answers take much longer than
//! usual. The usual time is the response time under little load. It is measured now and then, with only four concurrent
//! calls allowed, so that a delay caused by our own calls never counts as usual. Calls that started before a fall do
//! not change the limit, so a burst of failures lowers it only once.
//!
//! If answers still take too long after the limit fell, a measurement finds the cause before the limit falls again. If
//! answers to four concurrent calls are about as slow, the authority itself has become slow: this response time becomes
//! the usual one, and the limit returns to its value before the fall. Otherwise our own calls are the cause, and the
//! limit falls until answers are quick enough.

use std::time::Duration;

use jiff::Timestamp;

use crate::admission::load_signal::LoadSignal;
use crate::admission::requested_pause::RequestedPause;

/// The limit when a process starts.
const START_LIMIT: u32 = 16;
/// At most this many concurrent calls do not slow the authority down, so only an HTTP 429 lowers the limit below this
/// number.
const UNLOADED_CALLS: u32 = 4;
/// Outside a measurement, a mean response time is computed from at least this many successful calls.
const SAMPLES_MIN: u32 = 16;
/// A measurement of the usual response time averages this many successful calls: few, because few calls run meanwhile.
const MEASUREMENT_SAMPLES: u32 = 2 * UNLOADED_CALLS;
/// A measurement ends after this many answers of any kind, even if it has too few successes.
const MEASUREMENT_ANSWERS_MAX: u32 = 2 * MEASUREMENT_SAMPLES;
/// If a measurement has found that our own calls cause slow answers, slow answers lower the limit without a new search
/// for the cause until this many further mean response times were computed.
const MEANS_WITHOUT_CAUSE_SEARCH: u32 = 16;
/// After this many computed mean response times, the response time under little load is measured again.
const MEANS_PER_MEASUREMENT: u32 = 64;
/// A mean response time is too long if it exceeds twice the usual time by more than this, in microseconds. Without this
/// margin, a usual time of a few milliseconds would often be exceeded by chance.
const SLACK_US: u64 = 50_000;

/// A call that has started. `AdaptiveLimit::start` returns it, and `settle` takes it when the call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallStart {
    /// `None` for a call that exceeded the limit of a running measurement. Its result does not change the limit.
    epoch: Option<u64>,
}

/// The successful calls since a mean response time was last computed.
#[derive(Debug, Default)]
struct SampleWindow {
    samples: u32,
    micros: u64,
    /// The highest number of concurrent calls in this window.
    peak: u32,
}

/// The cause of slow answers, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slowness {
    /// Answers do not take too long.
    None,
    /// Slow answers lowered the limit from `from`. `mean` was their mean response time in microseconds. The cause is
    /// not known yet.
    Fell { from: u32, mean: u64 },
    /// Our own calls are the cause: answers were quicker with few calls.
    OwnCalls,
}

#[derive(Debug)]
pub struct AdaptiveLimit {
    max: u32,
    bound: u32,
    in_flight: u32,
    /// Grows when the limit falls or a measurement starts. A call from an earlier epoch does not change the limit.
    epoch: u64,
    /// The good answers counted towards the next growth of the limit. `was_reached` is true if nearly all allowed calls
    /// were in progress at some moment during this count; otherwise the limit does not grow.
    good_answers: u32,
    was_reached: bool,
    window: SampleWindow,
    /// The mean response time of a successful call under little load, in microseconds.
    usual_us: Option<u64>,
    slowness: Slowness,
    needs_measurement: bool,
    /// The number of further mean response times during which slow answers do not start a search for the cause.
    means_without_cause_search: u32,
    /// The number of answers since the measurement began; `None` if no measurement is running.
    measurement_answers: Option<u32>,
    /// The number of mean response times computed since the last measurement.
    means_since_measurement: u32,
    pause: RequestedPause,
}

impl AdaptiveLimit {
    /// Creates a limit of at most `max` (0 counts as 1). It begins with a measurement.
    pub fn new(max: u32) -> Self {
        let max = max.max(1);
        Self {
            max,
            bound: START_LIMIT.min(max),
            in_flight: 0,
            epoch: 0,
            good_answers: 0,
            was_reached: false,
            window: SampleWindow::default(),
            usual_us: None,
            slowness: Slowness::None,
            needs_measurement: false,
            means_without_cause_search: 0,
            measurement_answers: Some(0),
            means_since_measurement: 0,
            pause: RequestedPause::default(),
        }
    }

    /// The number of concurrent calls that are allowed now.
    pub fn capacity(&self) -> u32 {
        if self.is_measuring() {
            self.bound.min(UNLOADED_CALLS)
        } else {
            self.bound
        }
    }

    /// The number of concurrent calls that are allowed while no measurement is running.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// The number of concurrent calls that one account may make.
    pub(crate) fn account_share(&self) -> u32 {
        calls_per_account(self.capacity())
    }

    /// The number of concurrent calls that one payer may make with all its accounts: all but one, which is left to
    /// other payers.
    pub(crate) fn payer_share(&self) -> u32 {
        let capacity = self.capacity();
        if capacity < UNLOADED_CALLS {
            capacity
        } else {
            capacity - 1
        }
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns how much is left of the pause that the authority asked for; `None` if there is no pause.
    pub(crate) fn pause_left(&self, now: Timestamp) -> Option<Duration> {
        self.pause.remaining(now)
    }

    /// Returns the end of the pause that the authority asked for, unless the clock was set back since it was stored.
    pub(crate) fn pause_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.pause.end(now)
    }

    pub fn start(&mut self) -> CallStart {
        self.in_flight = self.in_flight.saturating_add(1);
        // The call was admitted before the measurement began and exceeds its limit, so it must not count.
        if self.is_measuring() && self.in_flight > UNLOADED_CALLS {
            return CallStart { epoch: None };
        }
        self.was_reached |= self.in_flight >= self.account_share();
        let window = &mut self.window;
        window.peak = window.peak.max(self.in_flight);
        CallStart {
            epoch: Some(self.epoch),
        }
    }

    /// True if the response time under little load must be measured. Stays true until `begin_measurement` is called.
    pub fn needs_measurement(&self) -> bool {
        self.needs_measurement
    }

    fn is_measuring(&self) -> bool {
        self.measurement_answers.is_some()
    }

    /// Begins to measure the response time under little load, unless a measurement is running. All operations of an
    /// authority must be measured at the same time, since the calls of one operation may delay those of another.
    pub fn begin_measurement(&mut self) {
        self.needs_measurement = false;
        if !self.is_measuring() {
            self.measurement_answers = Some(0);
            self.begin_epoch();
            self.window.peak = 0;
        }
    }

    /// Adjusts the limit to the signal of a finished call.
    pub fn settle(&mut self, call: CallStart, signal: LoadSignal, now: Timestamp) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let LoadSignal::Throttled(Some(wait)) = signal {
            self.pause(wait, now);
        }
        if call.epoch != Some(self.epoch) {
            return;
        }
        match signal {
            // Some concurrent calls stay possible, even if calls fail or hang.
            LoadSignal::Overloaded => self.lower_for_overload(UNLOADED_CALLS),
            LoadSignal::Throttled(_) => self.lower_for_overload(1),
            LoadSignal::Neutral => {}
            LoadSignal::Answered => self.count_good_answer(),
            LoadSignal::Succeeded(took) => {
                self.count_good_answer();
                self.add_sample(took);
            }
        }
        self.count_answer();
    }

    /// Records that the authority asked for a pause of this length. A longer pause that is already recorded stays.
    pub(crate) fn pause(&mut self, wait: Duration, now: Timestamp) {
        self.pause.prolong(wait, now);
    }

    /// Lowers the limit after an overload. Ends the search for the cause of slow answers, so that the limit does not
    /// return to its value before the overload.
    fn lower_for_overload(&mut self, floor: u32) {
        self.slowness = Slowness::None;
        self.lower_limit(floor);
    }

    fn lower_for_own_calls(&mut self) {
        self.slowness = Slowness::OwnCalls;
        self.lower_limit(UNLOADED_CALLS);
    }

    /// Lowers the limit to seven tenths and by at least one, but not below `floor`.
    fn lower_limit(&mut self, floor: u32) {
        let bound = self.bound;
        let lower = (bound.saturating_mul(7) / 10).min(bound.saturating_sub(1));
        self.bound = lower.max(floor.min(bound));
        self.begin_epoch();
    }

    /// Begins a new epoch. Calls that started earlier do not change the limit any more.
    fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.restart_sampling();
    }

    /// Counts a good answer. After N good answers a limit of N grows by one, but only if nearly N calls were in
    /// progress at some moment during this count.
    fn count_good_answer(&mut self) {
        if self.is_measuring() {
            return;
        }
        self.good_answers += 1;
        if self.good_answers < self.bound {
            return;
        }
        if self.was_reached {
            let higher = self.bound.saturating_add(1);
            self.bound = higher.min(self.max);
        }
        self.good_answers = 0;
        self.was_reached = false;
    }

    /// Counts an answer towards the running measurement, if any. The measurement ends after `MEASUREMENT_ANSWERS_MAX`
    /// answers, even if too few calls succeeded. Then the limit falls as if our own calls were the cause of slow
    /// answers.
    fn count_answer(&mut self) {
        let Some(answers) = &mut self.measurement_answers else {
            return;
        };
        *answers += 1;
        if *answers >= MEASUREMENT_ANSWERS_MAX {
            self.end_measurement();
            if matches!(self.slowness, Slowness::Fell { .. }) {
                self.lower_for_own_calls();
            }
        }
    }

    fn end_measurement(&mut self) {
        self.measurement_answers = None;
        self.means_since_measurement = 0;
        self.restart_sampling();
    }

    fn restart_sampling(&mut self) {
        self.good_answers = 0;
        self.was_reached = false;
        self.window = SampleWindow {
            peak: self.in_flight,
            ..SampleWindow::default()
        };
    }

    fn add_sample(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let window = &mut self.window;
        window.samples += 1;
        window.micros = window.micros.saturating_add(micros);
        let enough = if self.is_measuring() {
            MEASUREMENT_SAMPLES
        } else {
            self.bound.max(SAMPLES_MIN)
        };
        if self.window.samples < enough {
            return;
        }
        let mean = self.window.micros / u64::from(self.window.samples);
        let peak = self.window.peak;
        self.window = SampleWindow {
            peak: self.in_flight,
            ..SampleWindow::default()
        };
        self.apply_mean_time(mean, peak);
    }

    /// Adjusts the limit to a new mean response time. `peak` is the highest number of concurrent calls in its window.
    fn apply_mean_time(&mut self, mean: u64, peak: u32) {
        let is_slow = self
            .usual_us
            .is_some_and(|usual| mean > usual.saturating_mul(2).saturating_add(SLACK_US));
        if self.is_measuring() {
            self.end_measurement();
            return self.conclude_measurement(mean, is_slow);
        }
        self.means_since_measurement += 1;
        self.means_without_cause_search = self.means_without_cause_search.saturating_sub(1);
        if peak <= UNLOADED_CALLS {
            // With so few concurrent calls, this mean is as good as a measurement. But calls of other operations may
            // have delayed these calls, so the old value counts half.
            self.usual_us = Some(self.average_with_usual_time(mean));
            self.means_since_measurement = 0;
        }
        if !is_slow {
            self.slowness = Slowness::None;
        } else if peak > UNLOADED_CALLS && peak >= calls_per_account(self.bound) {
            self.react_to_slowness(mean);
        }
        if self.means_since_measurement >= MEANS_PER_MEASUREMENT {
            self.needs_measurement = true;
        }
    }

    /// Lowers the limit, or requests a measurement that finds the cause. Call this only if the calls nearly used up the
    /// limit; otherwise they are not the cause.
    fn react_to_slowness(&mut self, mean: u64) {
        match self.slowness {
            Slowness::None if self.means_without_cause_search == 0 => {
                let from = self.bound;
                self.slowness = Slowness::Fell { from, mean };
                self.lower_limit(UNLOADED_CALLS);
            }
            Slowness::Fell { .. } => self.needs_measurement = true,
            Slowness::None | Slowness::OwnCalls => self.lower_limit(UNLOADED_CALLS),
        }
    }

    /// Applies the mean response time that a measurement found to the usual time and the limit.
    fn conclude_measurement(&mut self, measured: u64, is_slow: bool) {
        let midpoint = self.average_with_usual_time(measured);
        self.usual_us = Some(match self.slowness {
            Slowness::None if is_slow => measured,
            Slowness::None | Slowness::OwnCalls => midpoint,
            // Answers to few calls take at least two thirds of the time before, so our own calls are not the cause.
            Slowness::Fell { from, mean } if is_slow && measured >= mean / 3 * 2 => {
                self.slowness = Slowness::None;
                self.bound = self.bound.max(from);
                measured
            }
            Slowness::Fell { .. } => {
                self.means_without_cause_search = MEANS_WITHOUT_CAUSE_SEARCH;
                self.lower_for_own_calls();
                midpoint
            }
        });
    }

    fn average_with_usual_time(&self, mean: u64) -> u64 {
        self.usual_us.map_or(mean, |usual| usual.midpoint(mean))
    }
}

/// Returns how many concurrent calls one account may make: about seven eighths of `capacity`, so that other accounts
/// can call even if these calls hang. A `capacity` below `UNLOADED_CALLS` is not divided.
fn calls_per_account(capacity: u32) -> u32 {
    if capacity < UNLOADED_CALLS {
        capacity
    } else {
        capacity - (capacity / 8).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::*;

    const USUAL: Duration = Duration::from_millis(100);
    const GOOD: LoadSignal = LoadSignal::Succeeded(USUAL);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// Ends a call of the only operation.
    fn settle(limit: &mut AdaptiveLimit, call: CallStart, signal: LoadSignal) {
        limit.settle(call, signal, at(0));
        if limit.needs_measurement() {
            limit.begin_measurement();
        }
    }

    /// Starts `calls` concurrent calls and ends each with the same signal.
    fn round(limit: &mut AdaptiveLimit, calls: u32, signal: LoadSignal) {
        let calls_started: Vec<_> = (0..calls).map(|_| limit.start()).collect();
        for call in calls_started {
            settle(limit, call, signal);
        }
    }

    /// Starts as many concurrent calls as are allowed and ends each with the same signal. Returns the new capacity.
    fn full_round(limit: &mut AdaptiveLimit, signal: LoadSignal) -> u32 {
        round(limit, limit.capacity(), signal);
        limit.capacity()
    }

    /// Returns a limit of this capacity that has finished its first measurement.
    fn measured_limit(capacity: u32) -> AdaptiveLimit {
        let mut limit = AdaptiveLimit::new(10_000);
        for _ in 0..MEASUREMENT_SAMPLES / UNLOADED_CALLS {
            round(&mut limit, UNLOADED_CALLS, GOOD);
        }
        limit.bound = capacity;
        limit
    }

    #[test]
    fn the_limit_starts_with_few_calls_and_continues_with_sixteen() {
        let mut limit = AdaptiveLimit::new(64);
        let capacity: Vec<_> = (0..5).map(|_| full_round(&mut limit, GOOD)).collect();
        assert_eq!(capacity, [4, 16, 17, 18, 19]);
        assert_eq!(limit.usual_us, Some(100_000));
    }

    #[test]
    fn the_limit_never_exceeds_its_maximum() {
        for max in [1, 2, 16, 20] {
            let mut limit = AdaptiveLimit::new(max);
            let most = (0..200).map(|_| full_round(&mut limit, GOOD)).max();
            assert_eq!(most, Some(max));
        }
        assert_eq!(AdaptiveLimit::new(0).capacity(), 1);
    }

    #[test]
    fn a_full_round_changes_the_limit_by_its_signals() {
        let rows = [
            (GOOD, 17),
            (LoadSignal::Answered, 17),
            (LoadSignal::Neutral, 16),
            (LoadSignal::Overloaded, 11),
            (LoadSignal::Throttled(None), 11),
            (LoadSignal::Throttled(Some(Duration::from_secs(1))), 11),
        ];
        for (signal, expected) in rows {
            assert_eq!(
                full_round(&mut measured_limit(16), signal),
                expected,
                "{signal:?}"
            );
        }
    }

    #[test]
    fn the_limit_falls_to_seven_tenths_by_at_least_one_and_never_below_one() {
        for (before, after) in [
            (10_000, 7_000),
            (64, 44),
            (10, 7),
            (4, 2),
            (3, 2),
            (2, 1),
            (1, 1),
        ] {
            let mut limit = measured_limit(before);
            round(&mut limit, 1, LoadSignal::Throttled(None));
            assert_eq!(limit.capacity(), after, "{before}");
        }
    }

    #[test]
    fn failing_or_hanging_calls_leave_some_capacity() {
        for (before, after) in [(64, 44), (5, 4), (4, 4), (1, 1)] {
            let mut limit = measured_limit(before);
            round(&mut limit, 1, LoadSignal::Overloaded);
            assert_eq!(limit.capacity(), after, "{before}");
        }
    }

    #[test]
    fn a_burst_of_failures_counts_once_and_the_next_one_again() {
        let mut limit = measured_limit(64);
        assert_eq!(full_round(&mut limit, LoadSignal::Overloaded), 44);
        assert_eq!(full_round(&mut limit, LoadSignal::Throttled(None)), 30);
    }

    #[test]
    fn answers_to_calls_from_before_a_fall_do_not_raise_the_limit() {
        let mut limit = measured_limit(16);
        let old: Vec<_> = (0..15).map(|_| limit.start()).collect();
        round(&mut limit, 1, LoadSignal::Overloaded);
        for call in old {
            limit.settle(call, GOOD, at(0));
        }
        assert_eq!(
            (limit.capacity(), limit.good_answers, limit.in_flight()),
            (11, 0, 0)
        );
    }

    #[test]
    fn a_limit_that_is_not_reached_does_not_grow() {
        let mut limit = measured_limit(16);
        for _ in 0..1_000 {
            round(&mut limit, calls_per_account(16) - 1, GOOD);
            assert!(limit.measurement_answers.is_some() || limit.capacity() == 16);
        }
    }

    #[test]
    fn one_account_gets_seven_eighths_and_reaches_the_limit_with_them() {
        let shares = [1, 2, 3, 4, 8, 16, 64].map(calls_per_account);
        assert_eq!(shares, [1, 2, 3, 3, 7, 14, 56]);
        let mut limit = measured_limit(16);
        for _ in 0..2 {
            round(&mut limit, calls_per_account(16), GOOD);
        }
        assert_eq!(limit.capacity(), 17);
    }

    #[test]
    fn the_limit_recovers_by_one_per_round() {
        let mut limit = measured_limit(1);
        let capacity: Vec<_> = (0..5).map(|_| full_round(&mut limit, GOOD)).collect();
        assert_eq!(capacity, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_mean_beyond_twice_the_usual_time_and_some_slack_lowers_the_limit() {
        for (took_ms, after) in [(100, 17), (250, 17), (251, 11), (30_000, 11)] {
            let mut limit = measured_limit(16);
            let slow = LoadSignal::Succeeded(Duration::from_millis(took_ms));
            // The 16th good answer raises the limit to 17. A mean needs as many answers as the limit, so here 17.
            let calls_started: Vec<_> = (0..17).map(|_| limit.start()).collect();
            for call in calls_started {
                limit.settle(call, slow, at(0));
            }
            assert_eq!(limit.capacity(), after, "{took_ms} ms");
        }
    }

    /// Returns the capacities of the first rounds at an authority that answers this many calls at a time after a time.
    fn first_rounds<const N: usize>(
        limit: &mut AdaptiveLimit,
        answers_after_ms: fn(u32) -> u64,
    ) -> [u32; N] {
        std::array::from_fn(|_| {
            let took = Duration::from_millis(answers_after_ms(limit.capacity()));
            full_round(limit, LoadSignal::Succeeded(took))
        })
    }

    #[test]
    fn the_cause_of_slowness_is_asked_for_before_the_second_fall() {
        let mut limit = measured_limit(64);
        let slow = first_rounds(&mut limit, |_| 5_000);
        assert_eq!(slow, [65, 45, 46, 4, 4, 65], "the authority is the cause");
        assert_eq!(limit.usual_us, Some(5_000_000), "the new usual time");

        // It serves six calls at a time.
        let mut limit = measured_limit(64);
        let crowded = first_rounds(&mut limit, |calls| 100 * u64::from(calls).div_ceil(6));
        assert_eq!(
            crowded,
            [65, 45, 46, 4, 4, 32, 33, 23, 24, 16, 17, 11, 12, 13],
            "our calls are the cause"
        );
        assert_eq!(limit.usual_us, Some(100_000));

        let mut limit = measured_limit(64);
        full_round(&mut limit, LoadSignal::Overloaded);
        let overloaded = first_rounds(&mut limit, |_| 5_000);
        assert_eq!(
            overloaded,
            [45, 31, 32, 4, 4, 45],
            "not to a limit from before the overload"
        );
    }

    #[test]
    fn slowness_below_the_limit_changes_nothing() {
        let mut limit = measured_limit(16);
        for _ in 0..10 {
            round(
                &mut limit,
                10,
                LoadSignal::Succeeded(Duration::from_secs(5)),
            );
        }
        assert_eq!(limit.capacity(), 16);
    }

    #[test]
    fn quick_refusals_do_not_count_as_the_usual_time() {
        let mut limit = measured_limit(16);
        for _ in 0..20 {
            round(&mut limit, 4, LoadSignal::Answered);
        }
        assert_eq!(limit.usual_us, Some(100_000));
        assert_eq!(full_round(&mut limit, GOOD), 17);
    }

    #[test]
    fn slowness_alone_leaves_some_capacity_and_permanent_slowness_becomes_usual() {
        let mut limit = measured_limit(64);
        let slow = LoadSignal::Succeeded(Duration::from_secs(1));
        let capacity: Vec<_> = (0..400).map(|_| full_round(&mut limit, slow)).collect();
        assert!(capacity[..60].contains(&UNLOADED_CALLS), "{capacity:?}");
        assert!(
            capacity.iter().all(|capacity| *capacity >= UNLOADED_CALLS),
            "{capacity:?}"
        );
        assert!(limit.usual_us.unwrap() > 475_000, "{:?}", limit.usual_us);
        assert!(limit.bound > START_LIMIT, "{capacity:?}");
    }

    #[test]
    fn the_usual_time_is_measured_again_under_constant_load() {
        let mut limit = measured_limit(16);
        let quick = LoadSignal::Succeeded(Duration::from_millis(20));
        let capacity: Vec<_> = (0..150).map(|_| full_round(&mut limit, quick)).collect();
        assert!(capacity.contains(&UNLOADED_CALLS), "{capacity:?}");
        assert!(limit.usual_us.unwrap() < 100_000);
        assert!(
            limit.capacity() > 60,
            "it goes on where it was: {capacity:?}"
        );
    }

    #[test]
    fn a_measurement_where_nothing_succeeds_ends() {
        for signal in [LoadSignal::Answered, LoadSignal::Neutral] {
            let mut limit = AdaptiveLimit::new(64);
            let rounds = (0..100)
                .take_while(|_| full_round(&mut limit, signal) == UNLOADED_CALLS)
                .count();
            assert_eq!(rounds, 3, "{signal:?}");
            assert_eq!(limit.capacity(), START_LIMIT);
        }
    }

    #[test]
    fn a_429_pauses_the_operation_for_its_retry_after_and_a_minute_at_most() {
        for (asked_s, held_s) in [
            (Some(7), Some(7)),
            (Some(3_600), Some(60)),
            (Some(0), None),
            (None, None),
        ] {
            let mut limit = measured_limit(16);
            let call = limit.start();
            limit.settle(
                call,
                LoadSignal::Throttled(asked_s.map(Duration::from_secs)),
                at(0),
            );
            assert_eq!(
                limit.pause_left(at(0)),
                held_s.map(Duration::from_secs),
                "{asked_s:?}"
            );
            assert_eq!(limit.pause_left(at(60)), None);
            assert_eq!(
                limit.pause_end(at(0)),
                held_s.map(|wait| at(wait.cast_signed()))
            );
        }
    }

    #[test]
    fn the_longest_of_several_pauses_applies_even_from_old_calls() {
        let mut limit = measured_limit(16);
        let first = limit.start();
        let second = limit.start();
        let third = limit.start();
        limit.settle(
            first,
            LoadSignal::Throttled(Some(Duration::from_secs(5))),
            at(0),
        );
        limit.settle(
            second,
            LoadSignal::Throttled(Some(Duration::from_secs(9))),
            at(1),
        );
        limit.settle(
            third,
            LoadSignal::Throttled(Some(Duration::from_secs(1))),
            at(2),
        );
        assert_eq!(limit.pause_left(at(2)), Some(Duration::from_secs(8)));
        assert_eq!(limit.capacity(), 11);
    }

    #[test]
    fn a_clock_set_back_ends_the_pause() {
        let mut limit = measured_limit(16);
        let call = limit.start();
        limit.settle(
            call,
            LoadSignal::Throttled(Some(Duration::from_secs(5))),
            at(86_400),
        );
        assert_eq!(limit.pause_left(at(86_400)), Some(Duration::from_secs(5)));
        assert_eq!(limit.pause_left(at(0)), None);
    }

    /// A server that handles `capacity` concurrent calls, each in 100 ms. It queues or rejects further calls.
    struct Server {
        capacity: usize,
        rejects: bool,
    }

    /// Makes `calls` calls to the server. Returns the lowest and the highest limit during the second half of the calls.
    fn simulate(server: &Server, limit: &mut AdaptiveLimit, calls: u32) -> (u32, u32) {
        let mut free = vec![0_u64; server.capacity];
        let mut running = BinaryHeap::new();
        let mut calls_started = Vec::new();
        let mut now = 0;
        let mut seen = Vec::new();
        for ended in 0..calls {
            while limit.in_flight() < limit.capacity() {
                calls_started.push(limit.start());
                let worker = free.iter_mut().min().unwrap();
                if server.rejects && *worker > now {
                    running.push(Reverse((now + 1, calls_started.len() - 1, None)));
                } else {
                    *worker = now.max(*worker) + 100;
                    running.push(Reverse((
                        *worker,
                        calls_started.len() - 1,
                        Some(*worker - now),
                    )));
                }
            }
            let Reverse((end, index, took)) = running.pop().unwrap();
            now = end;
            let signal = took.map_or(LoadSignal::Throttled(None), |millis| {
                LoadSignal::Succeeded(Duration::from_millis(millis))
            });
            settle(limit, calls_started[index], signal);
            if ended > calls / 2 {
                seen.push(limit.bound);
            }
        }
        (*seen.iter().min().unwrap(), *seen.iter().max().unwrap())
    }

    #[test]
    fn the_limit_settles_near_the_capacity_of_a_server() {
        for (capacity, rejects, expected) in [
            (1, true, (1, 3)),
            (8, true, (5, 10)),
            (50, true, (34, 52)),
            (8, false, (8, 24)),
            (30, false, (30, 90)),
        ] {
            let mut limit = AdaptiveLimit::new(1_000);
            let (low, high) = simulate(&Server { capacity, rejects }, &mut limit, 100_000);
            println!("capacity {capacity}, rejects {rejects}: between {low} and {high}");
            assert!(
                low >= expected.0 && high <= expected.1,
                "{capacity}: {low} to {high}"
            );
        }
    }

    #[test]
    fn the_limit_follows_a_server_that_loses_and_regains_capacity() {
        let mut limit = AdaptiveLimit::new(1_000);
        for (capacity, expected) in [(40, (27, 42)), (4, (2, 6)), (40, (27, 42))] {
            let (low, high) = simulate(
                &Server {
                    capacity,
                    rejects: true,
                },
                &mut limit,
                60_000,
            );
            println!("capacity {capacity}: between {low} and {high}");
            assert!(
                low >= expected.0 && high <= expected.1,
                "{capacity}: {low} to {high}"
            );
            limit.in_flight = 0;
        }
    }
}
