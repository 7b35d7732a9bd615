//! Predicts when a run ends, with a range around the expected time, and measures how far past predictions were off.
//!
//! The range follows from recent predictions: the next ones are expected to be off by the same factors. The end of an
//! outage cannot be predicted, so the range of a run that waits for it has no latest time.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::kernel::ids::RunId;

/// The number of past predictions from which the range and the error are computed.
const PAST_MAX: usize = 20;
/// A judged prediction counts for this long. Short waits are not judged, so in calm operation nothing would displace the
/// errors of an incident.
const PAST_AGE_MAX: Duration = Duration::from_mins(5);
/// With fewer past predictions than this, the range is from half of the predicted time to twice that time.
const PAST_MIN: usize = 5;
/// The maximum number of predictions that are kept until their runs end. The oldest ones are dropped.
const PENDING_MAX: usize = 256;
/// A prediction is not judged if both the predicted and the real time were shorter than this: an error of a second does
/// not matter then.
const JUDGED_MIN: Duration = Duration::from_secs(5);
/// The minimum distance of each end of the range from the predicted time, in thousandths of the predicted time.
const MARGIN: u64 = 100;
/// The factor 1, in thousandths.
const ONE: u64 = 1_000;

/// The predicted end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    pub expected: Timestamp,
    pub earliest: Timestamp,
    /// `None` if the run waits for the end of an outage, which cannot be predicted.
    pub latest: Option<Timestamp>,
    /// The longest time that the run needs once it can continue, as far as past predictions show.
    pub takes_at_most: Duration,
}

/// The time at which a run can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContinuationTime {
    At(Timestamp),
    /// After the end of an outage, which is not known. The times are guesses.
    AfterOutage {
        earliest: Timestamp,
        expected: Timestamp,
    },
}

/// The typical error of the predictions that were judged so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MedianPredictionError {
    pub predictions: usize,
    /// The median of the errors, in per cent of the time that the runs really took.
    pub median_percent: u64,
}

#[derive(Debug)]
struct PendingPrediction {
    run: RunId,
    made_at: Timestamp,
    takes: Duration,
}

/// The judged prediction of a run that ended at `ended_at`. `ratio` is the real time in thousandths of the predicted
/// time. `error` is the difference between the real and the predicted time, in thousandths of the real time.
#[derive(Debug, Clone, Copy)]
struct JudgedPrediction {
    ended_at: Timestamp,
    ratio: u64,
    error: u64,
}

/// The predictions that were judged, and those whose runs have not ended.
#[derive(Debug, Default)]
pub struct PastPredictions {
    pending: VecDeque<PendingPrediction>,
    past: VecDeque<JudgedPrediction>,
}

impl PastPredictions {
    /// Predicts the end of a run that needs the time `takes` once it can continue.
    pub fn predict(&self, start: ContinuationTime, takes: Duration, now: Timestamp) -> Prediction {
        let range = self.time_range(takes, now);
        let (earliest, expected) = match start {
            ContinuationTime::At(at) => (at, at),
            ContinuationTime::AfterOutage { earliest, expected } => (earliest, expected),
        };
        let is_known = matches!(start, ContinuationTime::At(_));
        Prediction {
            expected: add_time(expected, takes),
            earliest: add_time(earliest, *range.start()),
            latest: is_known.then(|| add_time(expected, *range.end())),
            takes_at_most: *range.end(),
        }
    }

    /// Keeps the first prediction for a run until the run ends. A prediction without a latest time is not kept, because
    /// it promises nothing.
    pub fn remember(&mut self, run: RunId, prediction: &Prediction, now: Timestamp) {
        let is_known = self.pending.iter().any(|pending| pending.run == run);
        if is_known || prediction.latest.is_none() {
            return;
        }
        if self.pending.len() == PENDING_MAX {
            self.pending.pop_front();
        }
        self.pending.push_back(PendingPrediction {
            run,
            made_at: now,
            takes: time_between(now, prediction.expected),
        });
    }

    /// Drops the prediction for a run that stopped before it was done, or whose call failed, so that it is not judged.
    pub fn forget(&mut self, run: RunId) {
        self.pending.retain(|pending| pending.run != run);
    }

    /// Judges the prediction for a run that has ended. Returns its error in thousandths of the real time. `None` if no
    /// prediction was kept, or if the times are too short to judge it.
    pub fn judge_ended_run(&mut self, run: RunId, ended_at: Timestamp) -> Option<u64> {
        let at = self.pending.iter().position(|pending| pending.run == run)?;
        let PendingPrediction { made_at, takes, .. } = self.pending.remove(at)?;
        let real = time_between(made_at, ended_at);
        if real.max(takes) < JUDGED_MIN {
            return None;
        }
        let past = JudgedPrediction {
            ended_at,
            ratio: thousandths(real, takes),
            error: thousandths(real.abs_diff(takes), real),
        };
        if self.past.len() == PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back(past);
        Some(past.error)
    }

    /// Returns the median error of recent predictions; `None` if none has been judged.
    pub fn median_prediction_error(&self, now: Timestamp) -> Option<MedianPredictionError> {
        let errors = self.sorted_values(now, |past| past.error);
        let median = errors.get(errors.len() / 2)?;
        Some(MedianPredictionError {
            predictions: errors.len(),
            median_percent: (median + 5) / 10,
        })
    }

    /// Returns the times that a run with this predicted time may really take, from the shortest to the longest. The
    /// lowest and the highest factor of the past predictions are left out.
    fn time_range(&self, takes: Duration, now: Timestamp) -> RangeInclusive<Duration> {
        let ratios = self.sorted_values(now, |past| past.ratio);
        let (low, high) = match ratios.as_slice() {
            [_, low, .., high, _] if ratios.len() >= PAST_MIN => (*low, *high),
            _ => (ONE / 2, ONE * 2),
        };
        scale_time(takes, low.min(ONE - MARGIN))..=scale_time(takes, high.max(ONE + MARGIN))
    }

    fn sorted_values(&self, now: Timestamp, part: fn(&JudgedPrediction) -> u64) -> Vec<u64> {
        let recent = self
            .past
            .iter()
            .filter(|past| time_between(past.ended_at, now) < PAST_AGE_MAX);
        let mut parts: Vec<u64> = recent.map(part).collect();
        parts.sort_unstable();
        parts
    }
}

fn add_time(moment: Timestamp, time: Duration) -> Timestamp {
    moment.saturating_add(time).unwrap_or(Timestamp::MAX)
}

/// Returns the time from `since` to `until`; zero if `until` is earlier.
fn time_between(since: Timestamp, until: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(since)).unwrap_or_default()
}

fn thousandths(part: Duration, whole: Duration) -> u64 {
    let thousandths = part.as_millis() * u128::from(ONE) / whole.as_millis().max(1);
    u64::try_from(thousandths).unwrap_or(u64::MAX)
}

fn scale_time(time: Duration, thousandths: u64) -> Duration {
    let factor = u32::try_from(thousandths).unwrap_or(u32::MAX);
    time.saturating_mul(factor) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The past after predictions of 100 s, and the seconds that the runs then took.
    fn past(real: &[i64]) -> PastPredictions {
        let mut past = PastPredictions::default();
        for (run, real) in real.iter().enumerate() {
            let run = RunId::from_u128(run as u128);
            let prediction = past.predict(ContinuationTime::At(at(0)), seconds(100), at(0));
            past.remember(run, &prediction, at(0));
            past.judge_ended_run(run, at(*real));
        }
        past
    }

    #[test]
    fn the_range_is_that_of_the_past_without_its_extremes() {
        let range = |real: &[i64]| {
            let found = past(real).predict(ContinuationTime::At(at(0)), seconds(10), at(0));
            assert_eq!(found.expected, at(10));
            (found.earliest, found.latest.unwrap())
        };
        assert_eq!(range(&[]), (at(5), at(20)), "nothing is known yet");
        assert_eq!(range(&[100, 100, 100, 100]), (at(5), at(20)), "too little");
        assert_eq!(range(&[10, 70, 100, 150, 900]), (at(7), at(15)));
        assert_eq!(range(&[100; 20]), (at(9), at(11)), "never narrower");
    }

    #[test]
    fn the_end_of_an_outage_is_open() {
        let start = ContinuationTime::AfterOutage {
            earliest: at(5),
            expected: at(60),
        };
        let prediction = past(&[]).predict(start, seconds(10), at(0));
        assert_eq!(
            prediction,
            Prediction {
                expected: at(70),
                earliest: at(10),
                latest: None,
                takes_at_most: seconds(20),
            }
        );
        let mut past = past(&[]);
        past.remember(RunId::nil(), &prediction, at(0));
        assert_eq!(
            past.judge_ended_run(RunId::nil(), at(500)),
            None,
            "it promised nothing"
        );
    }

    #[test]
    fn the_error_is_the_median_of_the_last_twenty() {
        assert_eq!(past(&[]).median_prediction_error(at(0)), None);
        let error = |real: &[i64]| {
            past(real)
                .median_prediction_error(at(0))
                .map(|one| (one.predictions, one.median_percent))
        };
        assert_eq!(
            error(&[80, 100, 125]),
            Some((3, 20)),
            "25, 0 and 20 per cent"
        );
        let changed: Vec<i64> = [[200; 20], [100; 20]].concat();
        assert_eq!(error(&changed), Some((20, 0)));
    }

    #[test]
    fn the_errors_of_an_incident_do_not_outlive_it_for_long() {
        let ended_at = 400;
        let mut past = past(&[ended_at; 20]);
        for (second, percent, latest) in [(0, Some(75), 40), (299, Some(75), 40), (300, None, 20)] {
            let now = at(ended_at + second);
            let run = RunId::from_u128(1_000);
            let calm = past.predict(ContinuationTime::At(now), seconds(1), now);
            past.remember(run, &calm, now);
            let end = at(ended_at + second + 1);
            assert_eq!(past.judge_ended_run(run, end), None, "{second}");
            let error = past.median_prediction_error(now);
            let error = error.map(|error| error.median_percent);
            let range = past.predict(ContinuationTime::At(now), seconds(10), now);
            let longest = at(ended_at + second + latest);
            assert_eq!((error, range.latest), (percent, Some(longest)), "{second}");
        }
    }

    #[test]
    fn only_the_first_prediction_of_a_run_is_judged_and_only_if_it_waits() {
        let mut past = PastPredictions::default();
        let run = RunId::nil();
        for (made, takes) in [(0, 10), (4, 60)] {
            let prediction = past.predict(ContinuationTime::At(at(made)), seconds(takes), at(made));
            past.remember(run, &prediction, at(made));
        }
        assert_eq!(past.judge_ended_run(run, at(8)), Some(250), "2 s of 8 s");
        assert_eq!(past.judge_ended_run(run, at(8)), None, "once");
        let soon = past.predict(ContinuationTime::At(at(0)), seconds(1), at(0));
        past.remember(run, &soon, at(0));
        assert_eq!(
            past.judge_ended_run(run, at(4)),
            None,
            "a few seconds are not judged"
        );
        past.remember(run, &soon, at(0));
        past.forget(run);
        assert_eq!(past.judge_ended_run(run, at(60)), None, "it was cancelled");
    }

    #[test]
    fn runs_that_end_elsewhere_are_forgotten_in_time() {
        let mut past = PastPredictions::default();
        let prediction = past.predict(ContinuationTime::At(at(0)), seconds(100), at(0));
        for run in 0..=PENDING_MAX {
            past.remember(RunId::from_u128(run as u128), &prediction, at(0));
        }
        assert_eq!(past.judge_ended_run(RunId::nil(), at(100)), None);
        assert_eq!(past.judge_ended_run(RunId::from_u128(1), at(100)), Some(0));
    }
}
