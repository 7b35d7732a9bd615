//! The causes for which the calls to one operation failed within the last 30 s, in numbers. One answer in between does
//! not hide why the other calls failed.

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

/// Old failures are forgotten at the next failure. So the causes stay known while no call is made.
#[derive(Debug, Default)]
pub(crate) struct FailureCauses {
    /// Why the last counted call failed; `None` if it was answered.
    last: Option<CauseKind>,
    seconds: VecDeque<SecondCauses>,
}

impl FailureCauses {
    /// Records why a call failed; `None` if it was answered.
    pub(crate) fn note(&mut self, cause: Option<CauseKind>, now: Timestamp) {
        self.last = cause;
        if let Some(cause) = cause {
            self.record(cause, now);
        }
    }

    /// Counts a failure that is not the result of the last call: that call was never made.
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
    }

    /// Returns the cause of most failures. Of two causes that are equally frequent, one that is ours counts: nobody must
    /// be told of an outage that may be ours.
    fn most_frequent(&self) -> Option<CauseKind> {
        CauseKind::ALL
            .into_iter()
            .map(|cause| (self.failures(cause), cause))
            .filter(|(failures, _)| *failures > 0)
            .max_by_key(|(failures, cause)| (*failures, cause.is_ours()))
            .map(|(_, cause)| cause)
    }

    /// Returns why calls fail: in an outage the cause of most failures, otherwise that of the last call. If the last
    /// call was answered although the lane of a payer is still open, the cause of most failures counts then, too.
    pub(crate) fn current(&self, is_outage: bool, is_lane_open: bool) -> Option<CauseKind> {
        if is_outage {
            self.most_frequent().or(self.last)
        } else {
            let earlier = self.most_frequent().filter(|_| is_lane_open);
            self.last.or(earlier)
        }
    }

    pub(crate) fn forget_failures(&mut self) {
        self.seconds.clear();
    }

    fn failures(&self, cause: CauseKind) -> u32 {
        let failures = self.seconds.iter();
        failures
            .map(|second| second.failures[cause as usize])
            .fold(0, u32::saturating_add)
    }
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
            // What is older than the window does not count, and neither does what the clock has yet to reach.
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
            assert_eq!(window.most_frequent(), expected, "{failures:?}");
            window.note(None, at(60));
            let current = |window: &FailureCauses| {
                [(false, false), (false, true), (true, false)]
                    .map(|(is_outage, is_lane_open)| window.current(is_outage, is_lane_open))
            };
            let hidden_by_no_answer = [None, expected, expected];
            assert_eq!(current(&window), hidden_by_no_answer, "{failures:?}");
            window.forget_failures();
            assert_eq!(current(&window), [None; 3]);
        }
    }
}
