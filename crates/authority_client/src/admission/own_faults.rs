//! The faults of ours that calls meet: a key that the authority refuses, and a certificate that is not accepted here.
//! Such a fault mostly concerns all operations, so the calls of all of them are judged together: a call of any operation
//! that shows the opposite ends the fault. Otherwise an operation that is called rarely would report a fault long after
//! its end.
//!
//! A single failed call may be chance, so a fault is told from the second one on.

use jiff::{SignedDuration, Timestamp};

use crate::operation::Operation;
use crate::transport::failure::{AuthorityFailure, Cause, CauseKind};

/// The number of failed calls from which a fault is told.
const CALLS_MIN: u32 = 2;
/// A fault that only this operation meets is told for this long after its last call, because nobody may call the
/// operation again.
const TOLD_FOR: SignedDuration = SignedDuration::from_mins(5);

/// The evidence that the result of one call gives for or against each fault of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CallEvidence {
    /// The fault that the call met.
    fault: Option<OwnFault>,
    /// True if the authority accepted the key of the call.
    is_key_accepted: bool,
    /// True if the authority answered the call, so that the connection is trusted.
    is_connected: bool,
}

/// A fault of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnFault {
    KeyRefused,
    Untrusted,
}

/// The begin or the end of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultChange {
    pub(crate) fault: OwnFault,
    pub(crate) has_begun: bool,
}

/// The calls of one operation that met a fault and were not followed by a call of the operation without it.
#[derive(Debug, Clone, Copy)]
struct FailedCalls {
    fault: OwnFault,
    calls: u32,
    /// The number of the last call, counted over all operations.
    last: u64,
    last_at: Timestamp,
    /// True if calls of other operations did not meet the fault, and this operation met it again after them.
    is_of_operation: bool,
}

/// The last call that shows the opposite of a fault.
#[derive(Debug, Clone, Copy, Default)]
struct Refutation {
    number: u64,
    at: Option<Timestamp>,
}

/// The faults of ours that calls to all operations meet.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnFaults {
    /// The number of calls so far.
    calls: u64,
    key_accepted: Refutation,
    connected: Refutation,
    failed: [Option<FailedCalls>; Operation::ALL.len()],
    /// The faults that were told after the last call.
    told: Vec<OwnFault>,
}

impl OwnFault {
    const ALL: [Self; 2] = [Self::KeyRefused, Self::Untrusted];

    pub(crate) fn from_cause(cause: CauseKind) -> Option<Self> {
        match cause {
            CauseKind::KeyRefused => Some(Self::KeyRefused),
            CauseKind::Untrusted => Some(Self::Untrusted),
            _ => None,
        }
    }

    fn cause(self) -> CauseKind {
        match self {
            Self::KeyRefused => CauseKind::KeyRefused,
            Self::Untrusted => CauseKind::Untrusted,
        }
    }

    /// Returns what an operator can do about the fault.
    fn to_do(self) -> &'static str {
        match self {
            Self::KeyRefused => {
                "set authority.api_key and authority.api_secret to a valid pair, and restart"
            }
            Self::Untrusted => {
                "check the authority's certificate, and set authority.extra_ca_file if its issuer is not a public one"
            }
        }
    }
}

impl FaultChange {
    /// Logs the change, which the last call to `operation` has shown.
    pub(crate) fn log(self, operation: Operation) {
        let cause = self.fault.cause().name();
        let operation = operation.name();
        if self.has_begun {
            let to_do = self.fault.to_do();
            tracing::warn!(
                cause,
                operation,
                to_do,
                "calls to the authority fail through a fault of ours"
            );
        } else {
            tracing::info!(
                cause,
                operation,
                "the fault of ours at the authority is over"
            );
        }
    }
}

impl OwnFaults {
    /// Records the result of a call. Returns the faults that have begun or ended with it.
    pub(crate) fn record_result<T>(
        &mut self,
        operation: Operation,
        result: &Result<T, AuthorityFailure>,
        now: Timestamp,
    ) -> Vec<FaultChange> {
        let evidence = call_evidence(operation, result);
        self.calls += 1;
        let number = self.calls;
        let refutation = Refutation {
            number,
            at: Some(now),
        };
        if evidence.is_key_accepted {
            self.key_accepted = refutation;
        }
        if evidence.is_connected {
            self.connected = refutation;
        }
        let before = self.failed[operation as usize];
        self.failed[operation as usize] = match evidence.fault {
            Some(fault) => {
                let same = before.filter(|failed| failed.fault == fault);
                Some(FailedCalls {
                    fault,
                    calls: same.map_or(0, |failed| failed.calls).saturating_add(1),
                    last: number,
                    last_at: now,
                    is_of_operation: same
                        .is_some_and(|failed| failed.is_of_operation || self.is_refuted(failed)),
                })
            }
            // A call that succeeds is not refused, even if it shows nothing about the key.
            None => before.filter(|failed| match failed.fault {
                OwnFault::KeyRefused => !evidence.is_key_accepted && result.is_err(),
                OwnFault::Untrusted => !evidence.is_connected,
            }),
        };
        self.update_told(now)
    }

    /// True if operators are told that the calls to this operation meet the fault.
    pub(crate) fn is_told(&self, operation: Operation, fault: OwnFault, now: Timestamp) -> bool {
        let meets = self.failed[operation as usize]
            .is_some_and(|failed| failed.fault == fault && self.is_current(failed, now));
        meets && self.count_failed_calls(fault, now) >= CALLS_MIN
    }

    /// Returns the time of the last call that shows the opposite of this fault.
    pub(crate) fn refuted_at(&self, fault: OwnFault) -> Option<Timestamp> {
        self.refutation(fault).at
    }

    fn update_told(&mut self, now: Timestamp) -> Vec<FaultChange> {
        let mut changes = Vec::new();
        for fault in OwnFault::ALL {
            let is_told = self.count_failed_calls(fault, now) >= CALLS_MIN;
            if is_told != self.told.contains(&fault) {
                changes.push(FaultChange {
                    fault,
                    has_begun: is_told,
                });
                self.told.retain(|told| *told != fault);
                self.told.extend(is_told.then_some(fault));
            }
        }
        changes
    }

    fn count_failed_calls(&self, fault: OwnFault, now: Timestamp) -> u32 {
        let failed = self.failed.iter().flatten();
        failed
            .filter(|failed| failed.fault == fault && self.is_current(**failed, now))
            .map(|failed| failed.calls)
            .fold(0, u32::saturating_add)
    }

    fn is_current(&self, failed: FailedCalls, now: Timestamp) -> bool {
        let age = now.duration_since(failed.last_at).abs();
        !self.is_refuted(failed) || (failed.is_of_operation && age < TOLD_FOR)
    }

    /// True if a later call of any operation did not meet the fault.
    fn is_refuted(&self, failed: FailedCalls) -> bool {
        self.refutation(failed.fault).number > failed.last
    }

    fn refutation(&self, fault: OwnFault) -> Refutation {
        match fault {
            OwnFault::KeyRefused => self.key_accepted,
            OwnFault::Untrusted => self.connected,
        }
    }
}

/// Returns what a result shows. A call that timed out or was not made shows nothing.
fn call_evidence<T>(operation: Operation, result: &Result<T, AuthorityFailure>) -> CallEvidence {
    // A reference list is requested without the key, and the health of the exchange is told also if it is bad.
    let needs_key = !matches!(operation, Operation::Resource | Operation::SystemHealth);
    let connected = CallEvidence {
        is_connected: true,
        ..CallEvidence::default()
    };
    let answered = CallEvidence {
        is_key_accepted: needs_key,
        ..connected
    };
    match result {
        Ok(_) | Err(AuthorityFailure::Refused { .. } | AuthorityFailure::NotFound { .. }) => {
            answered
        }
        Err(AuthorityFailure::Throttled { .. }) => connected,
        Err(AuthorityFailure::Retryable { reason } | AuthorityFailure::Unknown { reason }) => {
            match reason {
                Cause::KeyRefused { .. } => CallEvidence {
                    fault: Some(OwnFault::KeyRefused),
                    ..connected
                },
                Cause::Untrusted => CallEvidence {
                    fault: Some(OwnFault::Untrusted),
                    ..CallEvidence::default()
                },
                Cause::Offline { .. } | Cause::Ambiguous { .. } => answered,
                Cause::Malformed { .. } | Cause::Down { .. } | Cause::Redirected { .. } => {
                    connected
                }
                Cause::Unreachable { .. } | Cause::TimedOut { .. } | Cause::ConnectionReset => {
                    CallEvidence::default()
                }
            }
        }
        Err(
            AuthorityFailure::BreakerOpen { .. }
            | AuthorityFailure::CallsStopped { .. }
            | AuthorityFailure::RateLimited { .. }
            | AuthorityFailure::QueueFull { .. }
            | AuthorityFailure::Paused,
        ) => CallEvidence::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use OwnFault::{KeyRefused, Untrusted};

    fn time_after(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// The result of a call.
    #[derive(Debug, Clone, Copy)]
    enum Met {
        Answer,
        Key,
        Certificate,
        ServerError,
        Timeout,
    }

    use Met::{Answer, Certificate, Key, ServerError, Timeout};

    fn result(met: Met) -> Result<(), AuthorityFailure> {
        let reason = match met {
            Answer => return Ok(()),
            Key => Cause::KeyRefused {
                message: String::new(),
            },
            Certificate => Cause::Untrusted,
            ServerError => Cause::Down { status: 503 },
            Timeout => Cause::ConnectionReset,
        };
        Err(AuthorityFailure::Retryable { reason })
    }

    /// The calls, each a second after the one before, and the operations that meet a fault a minute after the first.
    type Case = (&'static [(Operation, Met)], OwnFault, &'static [Operation]);

    #[test]
    fn a_fault_is_told_from_the_second_call_until_any_call_shows_the_opposite() {
        use Operation::{Pull, Resource, Sign, SystemHealth, Validate};
        let cases: [Case; 16] = [
            (&[(Pull, Key)], KeyRefused, &[]),
            (&[(Pull, Key), (Pull, Key)], KeyRefused, &[Pull]),
            (&[(Sign, Key), (Pull, Key)], KeyRefused, &[Sign, Pull]),
            (&[(Pull, Key), (Pull, Key), (Pull, Answer)], KeyRefused, &[]),
            // The rare call was refused before the key was mended.
            (&[(Pull, Key), (Pull, Key), (Sign, Answer)], KeyRefused, &[]),
            (
                &[(Pull, Key), (Pull, Key), (Sign, ServerError)],
                KeyRefused,
                &[Pull],
            ),
            // These calls show nothing about the key.
            (
                &[(Pull, Key), (Pull, Key), (Resource, Answer)],
                KeyRefused,
                &[Pull],
            ),
            (
                &[(Pull, Key), (Pull, Key), (SystemHealth, Answer)],
                KeyRefused,
                &[Pull],
            ),
            (
                &[
                    (SystemHealth, Key),
                    (SystemHealth, Key),
                    (SystemHealth, Answer),
                ],
                KeyRefused,
                &[],
            ),
            // Only this operation is refused, again and again.
            (
                &[(Pull, Key), (Sign, Answer), (Pull, Key)],
                KeyRefused,
                &[Pull],
            ),
            (
                &[(Pull, Key), (Sign, Answer), (Pull, Key), (Sign, Answer)],
                KeyRefused,
                &[Pull],
            ),
            (
                &[(Sign, Certificate), (Pull, Certificate)],
                Untrusted,
                &[Sign, Pull],
            ),
            // An answer of any kind came over a trusted connection.
            (
                &[
                    (Sign, Certificate),
                    (Pull, Certificate),
                    (Validate, ServerError),
                ],
                Untrusted,
                &[],
            ),
            (
                &[(Sign, Certificate), (Pull, Certificate), (Validate, Key)],
                Untrusted,
                &[],
            ),
            (
                &[
                    (Sign, Certificate),
                    (Pull, Certificate),
                    (Validate, Timeout),
                ],
                Untrusted,
                &[Sign, Pull],
            ),
            (&[(Sign, Certificate), (Pull, Key)], Untrusted, &[]),
        ];
        for (calls, fault, expected) in cases {
            let mut faults = OwnFaults::default();
            for (second, (operation, met)) in (0..).zip(calls) {
                faults.record_result(*operation, &result(*met), time_after(second));
            }
            let told: Vec<_> = Operation::ALL
                .into_iter()
                .filter(|operation| faults.is_told(*operation, fault, time_after(60)))
                .collect();
            assert_eq!(told, expected, "{calls:?}");
        }
    }

    #[test]
    fn a_fault_of_one_operation_is_forgotten_if_nobody_calls_it_again() {
        let mut faults = OwnFaults::default();
        let calls = [
            (Operation::Search, Key),
            (Operation::Sign, Answer),
            (Operation::Search, Key),
            (Operation::Sign, Answer),
        ];
        for (operation, met) in calls {
            faults.record_result(operation, &result(met), time_after(0));
        }
        for (second, is_told) in [(0, true), (299, true), (300, false)] {
            let told = faults.is_told(Operation::Search, KeyRefused, time_after(second));
            assert_eq!(told, is_told, "after {second} s");
        }
    }

    #[test]
    fn each_fault_begins_once_and_ends_once() {
        let change = |fault, has_begun| FaultChange { fault, has_begun };
        let mut faults = OwnFaults::default();
        for (met, changes) in [
            (Key, vec![]),
            (Key, vec![change(KeyRefused, true)]),
            (Key, vec![]),
            (Timeout, vec![]),
            (Answer, vec![change(KeyRefused, false)]),
            (Answer, vec![]),
            (Certificate, vec![]),
            (Certificate, vec![change(Untrusted, true)]),
            (ServerError, vec![change(Untrusted, false)]),
        ] {
            let found = faults.record_result(Operation::Sign, &result(met), time_after(0));
            assert_eq!(found, changes, "{met:?}");
        }
    }
}
