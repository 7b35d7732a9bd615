//! The reasons why due runs are not taken although workers are free: operators have paused their taxpayers or stopped
//! the calls of their next steps, or the authority does not work. All pages and responses take the reason from here, so
//! that they agree.

use std::sync::Arc;

use authority_client::{BreakerView, Operation as AuthorityOperation};

use crate::actors::pipeline::blocked_steps;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::waiting::RunHold;
use crate::domain::pipeline::{Run, Step};
use crate::domain::taxpayer_pause::TaxpayerPause;
use crate::store::lanes::views::DueLaneGroup;

/// The pauses and the breakers that hold back runs at one moment, as this process sees them.
#[derive(Debug, Clone)]
pub struct RunHolds {
    pub(super) breakers: Vec<BreakerView>,
    pub(super) paused: Arc<Vec<TaxpayerPause>>,
}

/// The numbers of due runs that are held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldRuns {
    pub taxpayer_paused: u64,
    pub calls_stopped: u64,
    pub outage: u64,
    pub our_fault: u64,
}

/// True if steps of runs call this operation.
pub fn is_called_by_runs(operation: AuthorityOperation) -> bool {
    let mut steps = Step::ALL.iter();
    steps.any(|step| blocked_steps::called_operation(*step) == operation)
}

impl RunHolds {
    /// Returns the reason that holds back a due run of this taxpayer whose next step is `step`; `None` if the run only
    /// waits for a worker.
    pub fn find_hold(&self, taxpayer: TaxpayerId, step: Option<Step>) -> Option<RunHold> {
        let mut paused = self.paused.iter();
        if paused.any(|pause| pause.taxpayer_id == taxpayer) {
            return Some(RunHold::TaxpayerPaused);
        }
        let breaker = blocked_steps::blocking_breaker(&self.breakers, step?, Some(taxpayer))?;
        Some(if breaker.is_tripped {
            RunHold::CallsStopped
        } else if blocked_steps::own_fault(breaker).is_some() {
            RunHold::OurFault
        } else {
            RunHold::Outage
        })
    }

    /// True if the run cannot end before an operator acts, now or at a later step.
    pub fn needs_operator(&self, run: &Run) -> bool {
        let all = run.operation().steps().iter();
        let remaining = all.filter(|step| !run.done.contains(step));
        let mut holds = remaining.filter_map(|step| self.find_hold(run.taxpayer_id, Some(*step)));
        holds.any(RunHold::is_operator_hold)
    }

    /// True if one of these steps cannot be made before somebody mends a fault of ours: the authority refuses our key, or
    /// its certificate is not accepted here. The breaker may be closed: then the calls are made, and fail.
    pub fn needs_mending<'a>(&self, mut steps: impl Iterator<Item = &'a Step>) -> bool {
        steps.any(|step| {
            let called = blocked_steps::called_operation(*step);
            let mut breakers = self.breakers.iter();
            breakers
                .any(|view| view.operation == called && blocked_steps::own_fault(view).is_some())
        })
    }

    /// True if the run ends without the help of anybody: no operator holds it back, now or at a later step, and no fault
    /// of ours has to be mended first.
    pub fn ends_by_itself(&self, run: &Run) -> bool {
        let all = run.operation().steps().iter();
        let remaining = all.filter(|step| !run.done.contains(step));
        !self.needs_operator(run) && !self.needs_mending(remaining)
    }

    /// Counts the due runs that are held back, by reason.
    pub fn count(&self, due: &[DueLaneGroup]) -> HeldRuns {
        let mut held = HeldRuns::default();
        for group in due {
            let step = group.next_step.as_deref();
            let step = step.and_then(|name| Step::ALL.iter().find(|step| step.as_str() == name));
            match self.find_hold(TaxpayerId(group.taxpayer), step.copied()) {
                Some(RunHold::TaxpayerPaused) => held.taxpayer_paused += group.due,
                Some(RunHold::CallsStopped) => held.calls_stopped += group.due,
                Some(RunHold::Outage) => held.outage += group.due,
                Some(RunHold::OurFault) => held.our_fault += group.due,
                None => {}
            }
        }
        held
    }
}

impl HeldRuns {
    pub fn held_by_operators(self) -> u64 {
        self.taxpayer_paused.saturating_add(self.calls_stopped)
    }

    pub fn total(self) -> u64 {
        self.held_by_operators()
            .saturating_add(self.outage)
            .saturating_add(self.our_fault)
    }

    pub fn held_for_reason(self, hold: RunHold) -> u64 {
        match hold {
            RunHold::TaxpayerPaused => self.taxpayer_paused,
            RunHold::CallsStopped => self.calls_stopped,
            RunHold::Outage => self.outage,
            RunHold::OurFault => self.our_fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use authority_client::{BreakerState, CallerAccount, CauseKind, HeldCallers};
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::domain::pipeline::{Operation, RunRequest};

    fn breaker(operation: AuthorityOperation, is_tripped: bool, is_outage: bool) -> BreakerView {
        BreakerView {
            operation,
            state: BreakerState::Open,
            // A tripped breaker is never probed; one of an outage holds back nobody while its probe is due.
            held: if is_tripped {
                HeldCallers::Everybody
            } else {
                HeldCallers::Nobody
            },
            open_for: if is_tripped || is_outage {
                HeldCallers::Everybody
            } else {
                HeldCallers::Nobody
            },
            due_probes: Vec::new(),
            is_outage,
            is_tripped,
            has_callers: true,
            since: None,
            cause: None,
            past_cause: None,
            first_not_ours_at: None,
            calls: 0,
            failures: 0,
            next_probe_at: None,
            answered_at: None,
            failed_at: None,
            openings: 1,
        }
    }

    fn holds() -> RunHolds {
        let pause = TaxpayerPause {
            taxpayer_id: TaxpayerId(7),
            since: Timestamp::UNIX_EPOCH,
            reason: None,
        };
        // The breaker of one payer, whose probe is due.
        let of_payer = BreakerView {
            open_for: HeldCallers::Accounts(vec![CallerAccount::Taxpayer { id: 8, payer: 1 }]),
            ..breaker(AuthorityOperation::Confirm, false, false)
        };
        RunHolds {
            breakers: vec![
                breaker(AuthorityOperation::Validate, true, false),
                breaker(AuthorityOperation::Sign, false, true),
                of_payer,
            ],
            paused: Arc::new(vec![pause]),
        }
    }

    #[test]
    fn a_due_run_is_held_by_an_operator_or_an_outage_or_waits_for_a_worker() {
        let holds = holds();
        for (taxpayer, step, hold) in [
            (7, Some(Step::IrnCheck), Some(RunHold::TaxpayerPaused)),
            (7, Some(Step::Sign), Some(RunHold::TaxpayerPaused)),
            (7, None, Some(RunHold::TaxpayerPaused)),
            (8, Some(Step::IrnCheck), None),
            (8, Some(Step::DataCheck), Some(RunHold::CallsStopped)),
            (8, Some(Step::Sign), Some(RunHold::Outage)),
            (8, Some(Step::Confirm), Some(RunHold::Outage)),
            (9, Some(Step::Confirm), None),
            (8, None, None),
        ] {
            let found = holds.find_hold(TaxpayerId(taxpayer), step);
            assert_eq!(found, hold, "{taxpayer} {step:?}");
        }
    }

    #[test]
    fn a_run_whose_calls_meet_a_fault_of_ours_does_not_end_by_itself() {
        let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
        let run = Run::new(Uuid::nil(), TaxpayerId(8), request, Timestamp::UNIX_EPOCH);
        for (operation, cause, is_open, ends, hold) in [
            (AuthorityOperation::ValidateIrn, None, false, true, None),
            (
                AuthorityOperation::ValidateIrn,
                Some(CauseKind::KeyRefused),
                false,
                false,
                None,
            ),
            (
                AuthorityOperation::ValidateIrn,
                Some(CauseKind::KeyRefused),
                true,
                false,
                Some(RunHold::OurFault),
            ),
            (
                AuthorityOperation::ValidateIrn,
                Some(CauseKind::Down),
                true,
                true,
                Some(RunHold::Outage),
            ),
            // A later step of the run.
            (
                AuthorityOperation::Sign,
                Some(CauseKind::Untrusted),
                true,
                false,
                None,
            ),
            // A submission does not make this call.
            (
                AuthorityOperation::Pull,
                Some(CauseKind::KeyRefused),
                false,
                true,
                None,
            ),
        ] {
            let breaker = BreakerView {
                cause,
                ..breaker(operation, false, is_open)
            };
            let holds = RunHolds {
                breakers: vec![breaker],
                paused: Arc::default(),
            };
            assert_eq!(holds.ends_by_itself(&run), ends, "{operation:?} {cause:?}");
            let found = holds.find_hold(TaxpayerId(8), Some(Step::IrnCheck));
            assert_eq!(found, hold, "{operation:?} {cause:?}");
        }
    }

    #[test]
    fn runs_do_not_call_what_the_service_polls() {
        for (operation, is_called) in [
            (AuthorityOperation::Sign, true),
            (AuthorityOperation::UpdatePayment, true),
            (AuthorityOperation::Pull, false),
        ] {
            assert_eq!(is_called_by_runs(operation), is_called, "{operation:?}");
        }
    }

    #[test]
    fn due_runs_are_counted_by_what_holds_them() {
        let group = |taxpayer, step: Option<&str>, due| DueLaneGroup {
            taxpayer,
            next_step: step.map(str::to_owned),
            due,
        };
        let due = [
            group(7, Some("sign"), 1),
            group(8, Some("irn-check"), 2),
            group(8, Some("data-check"), 4),
            group(8, Some("sign"), 8),
            group(9, Some("sign"), 16),
            group(9, None, 32),
        ];
        let held = holds().count(&due);
        assert_eq!(
            (held.taxpayer_paused, held.calls_stopped, held.outage),
            (1, 4, 24)
        );
        assert_eq!((held.held_by_operators(), held.total()), (5, 29));
    }

    #[test]
    fn a_run_needs_an_operator_if_a_later_step_is_stopped() {
        let holds = holds();
        let run = |taxpayer, operation| {
            let request = RunRequest::sample("INV001-94AD90FB-20261121", operation);
            Run::new(
                Uuid::nil(),
                TaxpayerId(taxpayer),
                request,
                Timestamp::UNIX_EPOCH,
            )
        };
        assert!(
            holds.needs_operator(&run(7, Operation::Report)),
            "it is paused"
        );
        let mut submission = run(8, Operation::Submit);
        assert!(holds.needs_operator(&submission), "the step data-check");
        submission.done = vec![Step::IrnCheck, Step::DataCheck];
        assert!(
            !holds.needs_operator(&submission),
            "only an outage holds it"
        );
        assert!(!holds.needs_operator(&run(8, Operation::Report)));
    }
}
