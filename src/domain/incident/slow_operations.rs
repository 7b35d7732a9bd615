//! The operations at which the authority is slow, remembered from one count of the calls to the next. With few calls,
//! the last seconds show too little: an operation that was slow stays so until enough quick answers in a row show the
//! opposite.
//!
//! If other operations were quick meanwhile, only answers of the operation itself count. Otherwise everything was slow,
//! and quick answers of other operations count for one that nobody calls any more.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::domain::incident::situation::CallFacts;

/// The authority is slow if the mean time of an operation's answers is at least this.
const SLOW_AFTER: Duration = Duration::from_secs(2);
/// The minimum number of answers from which a mean is computed, and the number of quick answers in a row that show that
/// an operation is slow no more.
const ANSWERS_MIN: u64 = 3;
/// An operation without answers for this long does not count as slow: nobody knows how it is now.
const SILENCE_MAX: SignedDuration = SignedDuration::from_mins(2);
/// If everything was slow, the quick answers of others count for an operation without answers for this long.
const OTHERS_COUNT_AFTER: SignedDuration = SignedDuration::from_secs(15);
/// Calls are counted once a second, so a time may be off by this.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

impl CallFacts {
    /// True if there are enough answers, and they took too long.
    pub(super) fn is_slow(&self) -> bool {
        self.answered >= ANSWERS_MIN && self.mean >= SLOW_AFTER
    }

    fn has_long_answers(&self) -> bool {
        self.answered > 0 && self.mean >= SLOW_AFTER
    }

    fn has_quick_answers(&self) -> bool {
        self.answered > 0 && self.mean < SLOW_AFTER
    }
}

/// The operations with slow answers that were not followed by enough quick ones.
#[derive(Debug, Default)]
pub struct SlowOperations(BTreeMap<&'static str, SlowOperation>);

/// An operation since its first slow answer.
#[derive(Debug)]
struct SlowOperation {
    /// The calls of the last seconds when the operation was last slow; `None` if so far it had too few slow answers.
    slow_calls: Option<CallFacts>,
    answered_at: Timestamp,
    /// The number of quick answers of the operation itself since its last slow one.
    quick: u64,
    /// The number of quick answers of other operations since the last answer of this one.
    others_quick: u64,
    /// The time of the first quick answer of another operation.
    others_quick_at: Option<Timestamp>,
    /// True if another operation was quick before the last slow call began.
    is_alone: bool,
}

/// True if the calls to this operation are slow.
pub(super) fn has_slow_calls(calls: &[CallFacts], operation: &str) -> bool {
    calls
        .iter()
        .any(|calls| calls.operation == operation && calls.is_slow())
}

impl SlowOperations {
    /// Records the calls that were answered since the last count (`latest`), and those of the last seconds (`recent`).
    pub fn record(&mut self, now: Timestamp, latest: &[CallFacts], recent: &[CallFacts]) {
        for calls in latest.iter().filter(|calls| calls.has_long_answers()) {
            self.entry(calls.operation, now).record_slow(calls, now);
        }
        for calls in latest.iter().filter(|calls| calls.has_quick_answers()) {
            self.record_quick(calls, now);
        }
        for calls in recent.iter().filter(|calls| calls.is_slow()) {
            self.entry(calls.operation, now).slow_calls = Some(*calls);
        }
        self.0
            .retain(|operation, slow| has_slow_calls(recent, operation) || !slow.is_over(now));
    }

    /// Returns the operations that were slow and have not shown the opposite since, each with its calls when it was
    /// last slow.
    pub fn list(&self) -> Vec<CallFacts> {
        let operations = self.0.values();
        operations.filter_map(|slow| slow.slow_calls).collect()
    }

    fn record_quick(&mut self, calls: &CallFacts, now: Timestamp) {
        for (operation, slow) in &mut self.0 {
            if *operation == calls.operation {
                slow.record_quick(calls.answered, now);
            } else {
                slow.record_others_quick(calls.answered, now);
            }
        }
    }

    fn entry(&mut self, operation: &'static str, now: Timestamp) -> &mut SlowOperation {
        self.0.entry(operation).or_insert_with(|| SlowOperation {
            slow_calls: None,
            answered_at: now,
            quick: 0,
            others_quick: 0,
            others_quick_at: None,
            is_alone: false,
        })
    }
}

impl SlowOperation {
    fn record_slow(&mut self, calls: &CallFacts, now: Timestamp) {
        self.is_alone |= self
            .others_quick_at
            .is_some_and(|at| has_begun_after(at, calls, now));
        self.answered_at = now;
        self.quick = 0;
        self.others_quick = 0;
    }

    fn record_quick(&mut self, answers: u64, now: Timestamp) {
        self.answered_at = now;
        self.quick += answers;
        self.others_quick = 0;
    }

    fn record_others_quick(&mut self, answers: u64, now: Timestamp) {
        self.others_quick += answers;
        self.others_quick_at.get_or_insert(now);
    }

    fn is_over(&self, now: Timestamp) -> bool {
        // If the clock was set back, the last answer is in the future.
        let silence = now.duration_since(self.answered_at).abs();
        let others_show_it =
            !self.is_alone && self.others_quick >= ANSWERS_MIN && silence >= OTHERS_COUNT_AFTER;
        self.quick >= ANSWERS_MIN || silence >= SILENCE_MAX || others_show_it
    }
}

/// True if these calls, which are answered now, began after `at`.
fn has_begun_after(at: Timestamp, calls: &CallFacts, now: Timestamp) -> bool {
    let latest = at.checked_add(calls.mean + COUNT_INTERVAL);
    latest.is_ok_and(|latest| latest < now)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// An answer: its second, the operation, and the milliseconds that it took.
    type Answer = (i64, &'static str, u64);
    /// A second, and if `sign` is told as slow then.
    type Look = (i64, bool);

    const SLOW: u64 = 4_000;
    const QUICK: u64 = 100;
    /// The seconds whose answers are the recent ones.
    const RECENT_S: i64 = 10;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// Returns the answered calls to each operation from one second to another.
    fn calls_between(answers: &[Answer], first: i64, last: i64) -> Vec<CallFacts> {
        let operations: BTreeSet<_> = answers.iter().map(|(_, name, _)| *name).collect();
        let calls = operations.into_iter().map(|operation| {
            let counted = answers
                .iter()
                .filter(|(second, name, _)| *name == operation && (first..=last).contains(second));
            let times: Vec<_> = counted.map(|(_, _, millis)| *millis).collect();
            let answered = u64::try_from(times.len()).unwrap();
            let mean = times.iter().sum::<u64>().checked_div(answered);
            CallFacts {
                operation,
                answered,
                mean: Duration::from_millis(mean.unwrap_or_default()),
            }
        });
        calls.collect()
    }

    /// Answers of other operations each second, which are all quick.
    fn others_are_quick(answers: &[Answer]) -> Vec<Answer> {
        let quick = (0..200).map(|second| (second, "validate", QUICK));
        quick.chain(answers.iter().copied()).collect()
    }

    #[test]
    fn an_operation_is_slow_until_enough_quick_answers_show_the_opposite() {
        let slow = [(5, "sign", SLOW), (9, "sign", SLOW), (14, "sign", SLOW)];
        let quick = |second| (second, "sign", QUICK);
        let later_slow = |second| (second, "sign", SLOW);
        let followed_by = |more: &[Answer]| [&slow[..], more].concat();
        let cases: [(Vec<Answer>, &[Look]); 6] = [
            // Few calls, and all of them slow: it is told without a gap, and not for ever.
            (
                others_are_quick(&followed_by(&[later_slow(40), later_slow(70)])),
                &[
                    (13, false),
                    (14, true),
                    (39, true),
                    (69, true),
                    (189, true),
                    (190, false),
                ],
            ),
            // Three quick answers in a row end it.
            (
                others_are_quick(&followed_by(&[quick(80), quick(85), quick(90)])),
                &[(89, true), (90, false)],
            ),
            // A slow one in between begins the row again.
            (
                others_are_quick(&followed_by(&[
                    quick(20),
                    quick(21),
                    later_slow(30),
                    quick(40),
                    quick(41),
                    quick(42),
                ])),
                &[(21, true), (41, true), (42, false)],
            ),
            // Two slow answers are chance.
            (others_are_quick(&slow[..2]), &[(9, false), (60, false)]),
            // Everything was slow, and all that is called since is quick.
            (
                [
                    &[(5, "sign", SLOW); 3][..],
                    &[(8, "validate", SLOW)],
                    &[(9, "search", QUICK); 3],
                ]
                .concat(),
                &[(5, true), (19, true), (20, false)],
            ),
            // Nothing is called since.
            (
                vec![(5, "sign", SLOW); 3],
                &[(5, true), (124, true), (125, false)],
            ),
        ];
        for (answers, looks) in cases {
            let mut operations = SlowOperations::default();
            for second in 0..=200 {
                let latest = calls_between(&answers, second, second);
                let recent = calls_between(&answers, second - RECENT_S + 1, second);
                operations.record(at(second), &latest, &recent);
                let is_told = has_slow_calls(&operations.list(), "sign");
                for (_, expected) in looks.iter().filter(|(looked_at, _)| *looked_at == second) {
                    assert_eq!(is_told, *expected, "at {second} s: {answers:?}");
                }
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_no_operation_slow() {
        let slow = calls_between(&[(0, "sign", SLOW); 3], 0, 0);
        let mut operations = SlowOperations::default();
        operations.record(at(0), &slow, &slow);
        assert_eq!(operations.list().len(), 1);
        operations.record(at(-3_600), &[], &[]);
        assert_eq!(operations.list().len(), 0);
    }
}
