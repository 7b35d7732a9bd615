//! The cause of a paused run, in words for the people of the account.

use std::collections::HashSet;

use database::StoreError;

use crate::console::badges::{Badge, badge};
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::{Run, RunState};
use crate::store::Store;
use crate::store::operations::audit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PauseCause {
    /// An operator paused it.
    Operator,
    /// This service panicked or crashed several times while it worked on it.
    Quarantine,
    /// Its calls failed for too long.
    Failures,
}

/// Those of some runs that operators have paused.
#[derive(Debug, Default)]
pub(super) struct OperatorPauses(HashSet<RunId>);

impl OperatorPauses {
    pub(super) async fn load(store: &Store, runs: &[Run]) -> Result<Self, StoreError> {
        let paused = runs.iter().filter(|run| run.state() == RunState::Paused);
        let ids: Vec<_> = paused.map(|run| run.id).collect();
        audit::find_paused_by_operator(store, &ids).await.map(Self)
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

impl PauseCause {
    pub(super) fn sentence(self) -> &'static str {
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
    use jiff::Timestamp;

    use super::*;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::{Operation, RunPhase, RunRequest};

    #[test]
    fn a_pause_has_the_cause_that_ends_it() {
        for (state, panics, is_held, expected) in [
            (RunState::Waiting, 0, false, None),
            (RunState::Refused, 0, true, None),
            (RunState::Paused, 0, false, Some(PauseCause::Failures)),
            (RunState::Paused, 0, true, Some(PauseCause::Operator)),
            (RunState::Paused, 9, false, Some(PauseCause::Quarantine)),
            (RunState::Paused, 9, true, Some(PauseCause::Quarantine)),
        ] {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
            let mut run = Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH);
            run.phase = RunPhase::sample(state);
            run.progress.crash_history = CrashHistory {
                panics,
                ..CrashHistory::default()
            };
            let held = is_held.then_some(run.id);
            let pauses = OperatorPauses(held.into_iter().collect());
            assert_eq!(pauses.cause(&run), expected, "{state} {panics} {is_held}");
        }
    }
}
