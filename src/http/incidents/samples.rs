//! Samples of the process's counters, to tell how much the counters grew within the last minutes.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use authority_client::Operation;

/// The age after which samples are dropped: the longest span that is asked for.
const SAMPLE_AGE_MAX: SignedDuration = SignedDuration::from_mins(15);

/// The values of counters at one moment. Counters never decrease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CounterSample {
    pub(crate) panics: u64,
    pub(crate) refused_commands: u64,
    pub(crate) broken_answers: u64,
    pub(crate) failed_authentications: u64,
    pub(crate) throttled_calls: u64,
    /// Attempts at deliveries whose receiver could be reached, and those whose receiver could not.
    pub(crate) receivers_reached: u64,
    pub(crate) receivers_unreachable: u64,
    pub(crate) slow_read_waits: u64,
    /// The calls that the authority answered, in the order of `Operation::ALL`.
    pub(crate) answered_calls: [AnsweredCalls; Operation::ALL.len()],
}

/// The number of answered calls, and the sum of their durations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnsweredCalls {
    pub(crate) calls: u64,
    pub(crate) duration: Duration,
}

/// The lengths of the queue of runs in the last minutes, with the times at which they were counted, oldest first.
#[derive(Debug, Default)]
pub(crate) struct QueueLengths(VecDeque<(Timestamp, u64)>);

/// The number of past minutes for which `lengths_by_minute` returns the length of the queue.
const QUEUE_MINUTES: i64 = 5;

impl QueueLengths {
    /// Adds the length that was counted at this time. Adding the same count again changes nothing.
    pub(crate) fn record(&mut self, at: Timestamp, length: u64) {
        let age_max = SignedDuration::from_mins(QUEUE_MINUTES + 1);
        self.0.retain(|(counted_at, _)| {
            *counted_at < at && at.duration_since(*counted_at) <= age_max
        });
        self.0.push_back((at, length));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the length at each full minute before the last recorded one, the oldest first. Minutes before the first
    /// recorded length are absent.
    pub(crate) fn lengths_by_minute(&self) -> Vec<u64> {
        let Some((now, _)) = self.0.back() else {
            return Vec::new();
        };
        let minutes = (0..=QUEUE_MINUTES).rev().map(SignedDuration::from_mins);
        let length_at = |ago: SignedDuration| {
            let older = self.0.iter().rev();
            let mut older =
                older.skip_while(|(counted_at, _)| now.duration_since(*counted_at) < ago);
            older.next().map(|(_, length)| *length)
        };
        minutes.filter_map(length_at).collect()
    }
}

/// For each kind of lane, the time at which a replica last held such a lane, or at which this process first looked.
#[derive(Debug, Default)]
pub(crate) struct LastHeldLanes(HashMap<&'static str, Timestamp>);

impl LastHeldLanes {
    /// Records if replicas held lanes of a kind at a time.
    pub(crate) fn record(&mut self, at: Timestamp, kind: &'static str, are_held: bool) {
        let last = self.0.entry(kind).or_insert(at);
        // If the clock was set back, a recorded time of the future is replaced by the present one.
        *last = if are_held { at } else { at.min(*last) };
    }

    /// Returns the time since which no replica has taken a waiting lane of this kind: the later of `due`, when the
    /// oldest waiting lane became due, and the time at which a replica last held a lane of the kind. While replicas
    /// hold other lanes of the kind, the waiting lane only waits for its turn.
    pub(crate) fn last_held_or_due(&self, kind: &str, due: Timestamp) -> Timestamp {
        self.0.get(kind).map_or(due, |held| due.max(*held))
    }
}

/// The samples of the last minutes, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct CounterSamples(VecDeque<(Timestamp, CounterSample)>);

impl CounterSample {
    /// True if the authority answered any call. A request to call less often is an answer, too.
    pub(crate) fn has_answers(&self) -> bool {
        self.throttled_calls > 0
            || self
                .answered_calls
                .iter()
                .any(|answered| answered.calls > 0)
    }

    /// Returns how much each counter grew since the earlier sample.
    fn growth_since(&self, earlier: &Self) -> Self {
        Self {
            panics: self.panics.saturating_sub(earlier.panics),
            refused_commands: self
                .refused_commands
                .saturating_sub(earlier.refused_commands),
            broken_answers: self.broken_answers.saturating_sub(earlier.broken_answers),
            failed_authentications: self
                .failed_authentications
                .saturating_sub(earlier.failed_authentications),
            throttled_calls: self.throttled_calls.saturating_sub(earlier.throttled_calls),
            receivers_reached: self
                .receivers_reached
                .saturating_sub(earlier.receivers_reached),
            receivers_unreachable: self
                .receivers_unreachable
                .saturating_sub(earlier.receivers_unreachable),
            slow_read_waits: self.slow_read_waits.saturating_sub(earlier.slow_read_waits),
            answered_calls: std::array::from_fn(|index| AnsweredCalls {
                calls: self.answered_calls[index]
                    .calls
                    .saturating_sub(earlier.answered_calls[index].calls),
                duration: self.answered_calls[index]
                    .duration
                    .saturating_sub(earlier.answered_calls[index].duration),
            }),
        }
    }
}

impl CounterSamples {
    pub(crate) fn add(&mut self, at: Timestamp, sample: &CounterSample) {
        // If the clock was set back, samples from the future would never expire, so they are removed.
        self.0.retain(|(taken_at, _)| {
            *taken_at <= at && at.duration_since(*taken_at) <= SAMPLE_AGE_MAX
        });
        self.0.push_back((at, *sample));
    }

    /// Returns how much the counters have grown from the last sample to this one.
    pub(crate) fn growth_until(&self, sample: &CounterSample) -> CounterSample {
        let last = self.0.back();
        last.map_or_else(CounterSample::default, |(_, last)| {
            sample.growth_since(last)
        })
    }

    /// Returns how much the counters grew within the `span` before the last sample. If no sample is that old, returns
    /// the growth since the first one.
    pub(crate) fn growth_within(&self, span: SignedDuration) -> CounterSample {
        let Some((now, last)) = self.0.back() else {
            return CounterSample::default();
        };
        let earlier = self
            .0
            .iter()
            .find(|(taken_at, _)| now.duration_since(*taken_at) <= span);
        earlier.map_or_else(CounterSample::default, |(_, earlier)| {
            last.growth_since(earlier)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_that_asks_to_be_called_less_often_answers() {
        let mut answered_calls = [AnsweredCalls::default(); Operation::ALL.len()];
        answered_calls[1].calls = 1;
        let silent = CounterSample {
            receivers_unreachable: 9,
            ..CounterSample::default()
        };
        let answering = CounterSample {
            answered_calls,
            ..silent
        };
        let throttling = CounterSample {
            throttled_calls: 1,
            ..silent
        };
        let has_answers = [silent, answering, throttling].map(|sample| sample.has_answers());
        assert_eq!(has_answers, [false, true, true]);
    }

    fn sample(panics: u64) -> CounterSample {
        CounterSample {
            panics,
            ..CounterSample::default()
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_length_of_the_queue_is_known_for_each_minute() {
        let mut lengths = QueueLengths::default();
        assert_eq!(lengths.lengths_by_minute(), [0; 0]);
        for second in (0..=600).step_by(5) {
            lengths.record(at(second), u64::try_from(second).unwrap());
            lengths.record(at(second), u64::try_from(second).unwrap());
        }
        assert_eq!(lengths.lengths_by_minute(), [300, 360, 420, 480, 540, 600]);
        lengths.record(at(30), 7);
        assert_eq!(lengths.lengths_by_minute(), [7], "the clock was set back");
        lengths.record(at(95), 8);
        assert_eq!(lengths.lengths_by_minute(), [7, 8]);
    }

    #[test]
    fn work_is_untaken_since_it_is_due_and_no_replica_holds_its_kind() {
        let due = at(100);
        let mut held = LastHeldLanes::default();
        assert_eq!(
            held.last_held_or_due("run", due),
            due,
            "nothing is recorded"
        );
        // The second of a record, if lanes are held then, and the expected result.
        for (second, are_held, since) in [
            (130, false, 130),
            (135, false, 130),
            (140, true, 140),
            (145, false, 140),
            (400, true, 400),
            (90, false, 100),
        ] {
            held.record(at(second), "run", are_held);
            assert_eq!(
                held.last_held_or_due("run", due),
                at(since),
                "held at {second}: {are_held}"
            );
        }
        assert_eq!(held.last_held_or_due("endpoint", due), due);
    }

    #[test]
    fn growth_is_counted_within_the_span_and_old_samples_are_dropped() {
        let mut samples = CounterSamples::default();
        assert_eq!(samples.growth_within(SAMPLE_AGE_MAX).panics, 0);
        for (second, panics, growth) in [(0, 5, 0), (60, 7, 2), (120, 8, 1)] {
            assert_eq!(samples.growth_until(&sample(panics)).panics, growth);
            samples.add(at(second), &sample(panics));
        }
        let within = |samples: &CounterSamples, minutes| {
            samples
                .growth_within(SignedDuration::from_mins(minutes))
                .panics
        };
        assert_eq!(
            [0, 1, 2, 9].map(|minutes| within(&samples, minutes)),
            [0, 1, 3, 3]
        );
        samples.add(at(120 + 15 * 60), &sample(8));
        assert_eq!(within(&samples, 15), 0, "the first two are dropped");
        samples.add(at(1), &sample(9));
        assert_eq!(within(&samples, 15), 0, "the clock was set back");
    }
}
