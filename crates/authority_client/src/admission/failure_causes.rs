//! Counts, by cause, the calls to one operation that failed within the last 30 s. So one answer in between does not
//! hide why the other calls failed.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::admission::call_window::{WINDOW_S, is_within};
use crate::transport::failure::CauseKind;

/// The failures of one second, in the order of `CauseKind::ALL`.
#[derive(Debug)]
struct SecondCauses {
    second: i64,
    failures: [u32; CauseKind::ALL.len()],
}

/// A cause on our side (`CauseKind::is_ours`) is reported after this many failures in a row, even if calls were
/// answered shortly before.
const OURS_IN_A_ROW: u32 = 3;

/// The failures by cause. Failures older than 30 s are removed only when the next one is recorded, so that the causes
/// of an outage stay known while no call is made.
#[derive(Debug, Default)]
pub(crate) struct FailureCauses {
    /// Why the last counted call failed; `None` if it was answered.
    last: Option<CauseKind>,
    /// The second in which a call was last answered.
    answered_at_s: Option<i64>,
    /// The number of calls that failed since the last answer.
    failures_in_a_row: u32,
    seconds: VecDeque<SecondCauses>,
    /// The time of the first failure after the last one with a cause on our side; `None` if there is none.
    first_not_ours_at: Option<Timestamp>,
}

impl FailureCauses {
    /// Records why a call failed; `None` if it was answered.
    pub(crate) fn record_outcome(&mut self, cause: Option<CauseKind>, now: Timestamp) {
        self.last = cause;
        if let Some(cause) = cause {
            self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
            self.record(cause, now);
        } else {
            self.failures_in_a_row = 0;
            self.answered_at_s = Some(now.as_second());
        }
    }

    /// Counts a failure that is not the result of the last call, for example that of a call that was never made.
    pub(crate) fn record(&mut self, cause: CauseKind, now: Timestamp) {
        let number = now.as_second();
        self.seconds
            .retain(|second| is_within(WINDOW_S, second.second, number));
        if self
            .seconds
            .back()
            .is_none_or(|second| second.second != number)
        {
            self.seconds.push_back(SecondCauses {
                second: number,
                failures: [0; CauseKind::ALL.len()],
            });
        }
        if let Some(second) = self.seconds.back_mut() {
            let failures = &mut second.failures[cause as usize];
            *failures = failures.saturating_add(1);
        }
        if cause.is_ours() {
            self.first_not_ours_at = None;
        } else {
            self.first_not_ours_at.get_or_insert(now);
        }
    }

    pub(crate) fn first_not_ours_at(&self) -> Option<Timestamp> {
        self.first_not_ours_at
    }

    /// Returns the cause of the failed calls: in an outage the cause of most failures, otherwise that of the last
    /// call. If the last call was answered although the breaker of a payer (its lane) is still open, the cause of
    /// most failures within the window counts.
    ///
    /// Outside an outage, a cause on our side, such as a refused key, is not reported while other calls are answered:
    /// the authority then accepts our key and certificate, and only some calls meet this cause.
    pub(crate) fn current(
        &self,
        is_outage: bool,
        is_lane_open: bool,
        now: Timestamp,
    ) -> Option<CauseKind> {
        if is_outage {
            return most_frequent(&self.seconds).or(self.last);
        }
        let number = now.as_second();
        let recent = self.seconds.iter();
        let recent = recent.filter(|second| is_within(WINDOW_S, second.second, number));
        let earlier = most_frequent(recent).filter(|_| is_lane_open);
        let cause = self.last.or(earlier);
        cause.filter(|cause| !cause.is_ours() || !self.is_answered_recently(number))
    }

    pub(crate) fn forget_failures(&mut self) {
        self.seconds.clear();
    }

    /// True if a call was answered within the window, and fewer than `OURS_IN_A_ROW` failures have followed it.
    fn is_answered_recently(&self, now: i64) -> bool {
        self.failures_in_a_row < OURS_IN_A_ROW
            && self
                .answered_at_s
                .is_some_and(|second| is_within(WINDOW_S, second, now))
    }
}

/// Returns the cause of most failures. If two are equally frequent, prefers one on our side: otherwise taxpayers
/// could be told of an outage of the authority that is our own fault.
fn most_frequent<'a>(seconds: impl IntoIterator<Item = &'a SecondCauses>) -> Option<CauseKind> {
    let mut failures = [0_u32; CauseKind::ALL.len()];
    for second in seconds {
        for (sum, count) in failures.iter_mut().zip(second.failures) {
            *sum = sum.saturating_add(count);
        }
    }
    CauseKind::ALL
        .into_iter()
        .map(|cause| (failures[cause as usize], cause))
        .filter(|(count, _)| *count > 0)
        .max_by_key(|(count, cause)| (*count, cause.is_ours()))
        .map(|(_, cause)| cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// The failures, each with the second in which it happened, and the cause that counts.
    type Case = (&'static [(CauseKind, i64)], Option<CauseKind>);

    #[test]
    fn the_most_frequent_cause_of_the_window_counts_and_ours_if_two_are_equal() {
        use CauseKind::{Down, KeyRefused, TimedOut};
        let cases: [Case; 6] = [
            (&[], None),
            (&[(Down, 0)], Some(Down)),
            (
                &[(KeyRefused, 0), (KeyRefused, 1), (Down, 2)],
                Some(KeyRefused),
            ),
            (&[(KeyRefused, 0), (Down, 1)], Some(KeyRefused)),
            // Failures from before the window do not count, and neither do those from after a clock that was set back.
            (
                &[(KeyRefused, 0), (KeyRefused, 0), (TimedOut, 30)],
                Some(TimedOut),
            ),
            (&[(KeyRefused, 60), (KeyRefused, 60), (Down, 0)], Some(Down)),
        ];
        for (failures, expected) in cases {
            let mut window = FailureCauses::default();
            for (cause, second) in failures {
                window.record(*cause, at(*second));
            }
            let in_outage = |window: &FailureCauses| window.current(true, false, at(60));
            assert_eq!(in_outage(&window), expected, "{failures:?}");
            window.record_outcome(None, at(60));
            assert_eq!(in_outage(&window), expected, "{failures:?}");
            window.forget_failures();
            assert_eq!(in_outage(&window), None);
        }
    }

    #[test]
    fn failures_of_others_begin_after_the_last_one_that_was_ours() {
        use CauseKind::{Down, KeyRefused, Malformed, Redirected, TimedOut, Untrusted};
        // The failures, each with its second, and the second of the first one that is not ours.
        type Case = (&'static [(CauseKind, i64)], Option<i64>);
        let cases: [Case; 6] = [
            (&[], None),
            (&[(Down, 3), (TimedOut, 5)], Some(3)),
            (&[(KeyRefused, 1)], None),
            (
                &[
                    (KeyRefused, 1),
                    (Untrusted, 9),
                    (Malformed, 90),
                    (Malformed, 95),
                ],
                Some(90),
            ),
            (&[(Down, 1), (KeyRefused, 2), (Down, 7)], Some(7)),
            (&[(Down, 1), (Redirected, 2)], None),
        ];
        for (failures, expected) in cases {
            let mut window = FailureCauses::default();
            for (cause, second) in failures {
                window.record(*cause, at(*second));
            }
            assert_eq!(window.first_not_ours_at(), expected.map(at), "{failures:?}");
            // An answer, or the end of an outage, changes nothing: the next opening of the breaker is later.
            window.record_outcome(None, at(100));
            window.forget_failures();
            assert_eq!(window.first_not_ours_at(), expected.map(at), "{failures:?}");
        }
    }

    /// The calls of a closed breaker or an open lane, each with its second; whether a lane is open; the second in which
    /// somebody looks; and the cause that is told.
    type Look = (&'static [Call], bool, i64, Option<CauseKind>);
    type Call = (Option<CauseKind>, i64);

    #[test]
    fn outside_an_outage_a_cause_is_told_for_its_window_and_ours_only_while_nothing_is_answered() {
        use CauseKind::{Down, KeyRefused, Untrusted};
        const REFUSED: Call = (Some(KeyRefused), 1);
        let cases: [Look; 15] = [
            (&[], true, 0, None),
            // The refusals of one payer, and all night the answers of others.
            (&[REFUSED, REFUSED, REFUSED, (None, 2)], true, 2, None),
            (&[REFUSED, REFUSED, REFUSED, (None, 2)], true, 36_000, None),
            (&[REFUSED, (None, 2), (Some(Untrusted), 3)], true, 3, None),
            (&[REFUSED, REFUSED, (None, 2), REFUSED], false, 2, None),
            // An open lane has the cause of the window.
            (&[(Some(Down), 0), (None, 5)], true, 29, Some(Down)),
            (&[(Some(Down), 0), (None, 5)], true, 30, None),
            (&[(Some(Down), 0), (None, 5)], false, 5, None),
            (&[(None, 0), (Some(Down), 1)], false, 1, Some(Down)),
            // A key that is refused from now on is told soon, and stays known while no call is made.
            (&[(None, 0), REFUSED, REFUSED], false, 1, None),
            (&[(None, 0), REFUSED], false, 30, Some(KeyRefused)),
            (
                &[(None, 0), REFUSED, REFUSED, REFUSED],
                false,
                1,
                Some(KeyRefused),
            ),
            (&[REFUSED], false, 1, Some(KeyRefused)),
            (&[REFUSED], false, 36_000, Some(KeyRefused)),
            // A clock that is set back makes no answer recent.
            (&[(None, 600), REFUSED], false, 1, Some(KeyRefused)),
        ];
        for (calls, is_lane_open, looked_at_s, expected) in cases {
            let mut window = FailureCauses::default();
            for (cause, second) in calls {
                window.record_outcome(*cause, at(*second));
            }
            let told = window.current(false, is_lane_open, at(looked_at_s));
            assert_eq!(told, expected, "{calls:?} at {looked_at_s} s");
        }
    }
}
