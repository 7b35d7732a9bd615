//! The reason why a run does not go on, in words for the people of the account, and the run that they can continue
//! themselves.

use std::collections::HashSet;

use database::StoreError;
use jiff::Timestamp;

use crate::console::accounts::timeline::operation_name;
use crate::console::badges::{Badge, badge};
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::{Operation, Run, RunPhase, RunState, WaitReason};
use crate::store::Store;
use crate::store::operations::audit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PauseCause {
    /// An operator paused the run.
    Operator,
    /// This service panicked or crashed several times while it worked on the run.
    Quarantine,
    /// The calls of the run failed for too long.
    Failures,
}

/// The runs that operators have paused, out of the runs that were loaded.
#[derive(Debug, Default)]
pub(super) struct RunsPausedByOperators(HashSet<RunId>);

impl RunsPausedByOperators {
    pub(super) async fn load(store: &Store, runs: &[Run]) -> Result<Self, StoreError> {
        let paused = runs.iter().filter(|run| run.state() == RunState::Paused);
        let ids: Vec<_> = paused.map(|run| run.id).collect();
        let paused = audit::find_runs_paused_by_operator(store.reader(), &ids).await?;
        Ok(Self(paused))
    }

    /// Returns the cause of the run's pause; `None` if the run is not paused.
    pub(super) fn cause(&self, run: &Run) -> Option<PauseCause> {
        let cause = if run.is_quarantined() {
            PauseCause::Quarantine
        } else if self.0.contains(&run.id) {
            PauseCause::Operator
        } else {
            PauseCause::Failures
        };
        (run.state() == RunState::Paused).then_some(cause)
    }
}

/// The runs of an invoice, with those that operators have paused.
#[derive(Debug, Clone, Copy)]
pub(super) struct InvoiceRuns<'a> {
    pub(super) runs: &'a [Run],
    pub(super) pauses: &'a RunsPausedByOperators,
}

impl<'a> InvoiceRuns<'a> {
    /// Returns the stopped run that the account can continue: it waits for its next attempt, or has failed for too
    /// long. A run in quarantine, or one that an operator has paused, needs an operator instead.
    pub(super) fn continuable_run(self) -> Option<&'a Run> {
        self.runs.iter().find(|run| {
            let cause = self.pauses.cause(run);
            run.state() == RunState::Waiting || cause == Some(PauseCause::Failures)
        })
    }

    /// Returns the cause of the first pause; `None` if no run is paused.
    pub(super) fn pause_cause(self) -> Option<PauseCause> {
        self.runs.iter().find_map(|run| self.pauses.cause(run))
    }

    pub(super) fn state(self, operation: Operation) -> Option<RunState> {
        Run::find_in(self.runs, operation).map(Run::state)
    }
}

/// A run that does not go on at present.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StalledRun {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    /// The time of the next attempt; `None` if nothing is tried before an operator acts.
    pub(super) next_attempt: Option<Timestamp>,
}

impl StalledRun {
    /// Returns `None` for a run that is being carried out or that has ended. `is_held` is true if the run waits until
    /// an operator acts.
    pub(super) fn new(run: &Run, pauses: &RunsPausedByOperators, is_held: bool) -> Option<Self> {
        let is_stalled = matches!(run.state(), RunState::Waiting | RunState::Paused);
        let is_held = is_held && run.state() == RunState::Waiting;
        is_stalled.then(|| Self {
            name: operation_name(run.operation()),
            why: if is_held {
                PauseCause::Operator.explanation()
            } else {
                explain_state(run, pauses)
            },
            next_attempt: run.next_attempt_at().filter(|_| !is_held),
        })
    }
}

/// Says what a run waits for, or what its outcome means.
pub(super) fn explain_state(run: &Run, pauses: &RunsPausedByOperators) -> &'static str {
    if let Some(cause) = pauses.cause(run) {
        return cause.explanation();
    }
    match run.phase {
        RunPhase::Running { .. } => "It is being carried out now.",
        RunPhase::Waiting { reason, .. } => match reason {
            WaitReason::HealthCheckDown => {
                "The authority says that it is not well. It is asked again by itself."
            }
            WaitReason::AccessPointOffline => {
                "The access point of the customer or of this service is offline. It goes on by itself."
            }
            WaitReason::AuthorityUnavailable => {
                "The authority does not answer at present. It goes on by itself."
            }
            WaitReason::AuthorityThrottles => {
                "The authority asked to be called less often. It goes on by itself after that pause."
            }
        },
        RunPhase::Paused => "It is paused.",
        RunPhase::Succeeded => "It is done.",
        RunPhase::Refused => "The document has to be corrected and sent again.",
        RunPhase::Cancelled => "It was cancelled. The document may be sent again.",
    }
}

impl PauseCause {
    pub(super) fn explanation(self) -> &'static str {
        match self {
            Self::Operator => {
                "An operator of this service holds it back. It goes on when the operator lets it go on."
            }
            Self::Quarantine => {
                "This service failed several times while it worked on it, and set it aside. An operator of this service has been told."
            }
            Self::Failures => "It failed for too long. An operator of this service has been told.",
        }
    }

    pub(super) fn badge(self) -> Badge {
        match self {
            Self::Operator => badge("warn", "Held back"),
            Self::Quarantine => badge("bad", "Set aside"),
            Self::Failures => badge("bad", "Failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use timing::clock;

    use super::*;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::RunRequest;

    #[test]
    fn a_pause_has_the_cause_that_ends_it_and_the_account_ends_only_its_own() {
        use PauseCause::{Failures, Operator, Quarantine};
        for (state, panics, is_held, expected, is_continuable) in [
            (RunState::Running, 0, false, None, false),
            (RunState::Waiting, 0, false, None, true),
            (RunState::Waiting, 0, true, None, true),
            (RunState::Refused, 0, true, None, false),
            (RunState::Paused, 0, false, Some(Failures), true),
            (RunState::Paused, 0, true, Some(Operator), false),
            (RunState::Paused, 9, false, Some(Quarantine), false),
            (RunState::Paused, 9, true, Some(Quarantine), false),
        ] {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
            let mut run = Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH);
            run.phase = RunPhase::sample(state);
            run.progress.crash_history = CrashHistory {
                panics,
                ..CrashHistory::default()
            };
            let held = is_held.then_some(run.id);
            let pauses = RunsPausedByOperators(held.into_iter().collect());
            let name = format!("{state} {panics} {is_held}");
            assert_eq!(pauses.cause(&run), expected, "{name}");
            let runs = InvoiceRuns {
                runs: std::slice::from_ref(&run),
                pauses: &pauses,
            };
            assert_eq!(runs.continuable_run().is_some(), is_continuable, "{name}");
            assert_eq!(runs.pause_cause(), expected, "{name}");
        }
    }

    #[test]
    fn a_run_that_does_not_go_on_says_why_and_when_it_is_tried_again() {
        let down = "The authority does not answer at present. It goes on by itself.";
        let held = PauseCause::Operator.explanation();
        let failed = PauseCause::Failures.explanation();
        for (state, is_held, expected) in [
            (RunState::Running, false, None),
            (RunState::Running, true, None),
            (RunState::Waiting, false, Some((down, true))),
            (RunState::Waiting, true, Some((held, false))),
            (RunState::Paused, false, Some((failed, false))),
            (RunState::Paused, true, Some((failed, false))),
            (RunState::Refused, true, None),
            (RunState::Succeeded, false, None),
            (RunState::Cancelled, false, None),
        ] {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
            let run = Run {
                phase: RunPhase::sample(state),
                ..Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH)
            };
            let found = StalledRun::new(&run, &RunsPausedByOperators::default(), is_held);
            let found = found.map(|stalled| (stalled.why, stalled.next_attempt.is_some()));
            assert_eq!(found, expected, "{state} {is_held}");
        }
    }

    #[test]
    fn a_wait_of_each_reason_is_told_in_words_of_its_own() {
        let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
        let run = Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH);
        let pauses = RunsPausedByOperators::default();
        let words = WaitReason::ALL.iter().map(|reason| {
            let run = Run {
                phase: RunPhase::Waiting {
                    reason: *reason,
                    until: Timestamp::UNIX_EPOCH,
                },
                ..run.clone()
            };
            explain_state(&run, &pauses)
        });
        let words: HashSet<_> = words.collect();
        assert_eq!(words.len(), WaitReason::ALL.len());
        assert!(words.contains(
            "The authority asked to be called less often. It goes on by itself after that pause."
        ));
    }

    #[test]
    fn a_run_that_waits_is_continued_although_another_is_held() {
        let run = |operation, state| {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", operation);
            let id = clock::new_id();
            let run = Run::new(id, TaxpayerId(7), request, Timestamp::UNIX_EPOCH);
            Run {
                phase: RunPhase::sample(state),
                ..run
            }
        };
        let held = run(Operation::Submit, RunState::Paused);
        let pauses = RunsPausedByOperators([held.id].into());
        for (state, expected) in [
            (RunState::Waiting, Some(Operation::Report)),
            (RunState::Paused, Some(Operation::Report)),
            (RunState::Refused, None),
        ] {
            let both = [held.clone(), run(Operation::Report, state)];
            let runs = InvoiceRuns {
                runs: &both,
                pauses: &pauses,
            };
            let found = runs.continuable_run().map(Run::operation);
            assert_eq!(found, expected, "{state}");
        }
    }
}
