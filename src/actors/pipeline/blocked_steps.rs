//! The steps that are blocked at present: by a breaker, for all taxpayers or for some, or because an operator has
//! paused the taxpayer. The dispatcher skips runs whose next step is blocked. While a breaker is due for a probe (a trial
//! call), its step stays blocked, and the dispatcher claims one run for the probe.

use authority_client::{
    Authority, BreakerState, BreakerView, HeldCallers, LimitView, Operation, ProbeCallers,
};
use jiff::Timestamp;

use crate::actors::call_failure::upstream_cause;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::pipeline::Step;
use crate::domain::pipeline::prediction::ContinuationTime;
use crate::domain::pipeline::waiting::BlockingBreaker;
use crate::domain::taxpayer_pause::TaxpayerPause;
use crate::store::lanes::fair_queue::BlockedStep;
use crate::store::lanes::probe_claim::DueProbe;

/// Lists the blocked steps. A step whose calls fail for a cause on our side is listed, too, even if it is blocked for
/// nobody: when the cause is removed, the step leaves the list, and the runs that wait for a later attempt are due.
pub(super) fn list(authority: &Authority, paused: &[TaxpayerPause]) -> Vec<BlockedStep> {
    let views = authority.breakers();
    Step::ALL
        .iter()
        .filter_map(|step| {
            let view = breaker_view(&views, *step);
            let has_own_fault = view.and_then(own_fault).is_some();
            let nobody = HeldCallers::Nobody;
            let open_for = view.map_or(&nobody, |view| &view.open_for);
            blocked_step(*step, open_for, paused, has_own_fault)
        })
        .collect()
}

/// Lists the probes that could be made now: their breakers would let them through, and the authority has not asked for
/// a pause of their calls. Runs of paused taxpayers make none.
pub(super) fn list_due_probes(authority: &Authority, paused: &[TaxpayerPause]) -> Vec<DueProbe> {
    due_probes(&authority.breakers(), &authority.call_limits(), paused)
}

/// Lists the due probes of the steps whose calls need not wait for the end of a pause. A run that was claimed during the
/// pause could not make its probe and would be put back.
fn due_probes(
    views: &[BreakerView],
    limits: &[LimitView],
    paused: &[TaxpayerPause],
) -> Vec<DueProbe> {
    let mut probes = Vec::new();
    for step in Step::ALL {
        let view = breaker_view(views, *step).filter(|_| !is_held_by_pause(limits, *step));
        let due = view.iter().flat_map(|view| &view.due_probes);
        probes.extend(due.map(|callers| due_probe(*step, callers, paused)));
    }
    probes
}

/// True if the authority has asked for a pause of the calls of this step, and the pause has not ended.
fn is_held_by_pause(limits: &[LimitView], step: Step) -> bool {
    limits
        .iter()
        .any(|limit| limit.operation == called_operation(step) && limit.held_until.is_some())
}

pub(super) fn is_blocked(authority: &Authority, step: Step, taxpayer: TaxpayerId) -> bool {
    let views = authority.breakers();
    breaker_view(&views, step).is_some_and(|view| includes_taxpayer(&view.held, taxpayer))
}

/// Estimates when a blocked step can be called again. Without a `taxpayer`, a step counts as blocked only if it is
/// blocked for all taxpayers. Returns `None` if the step is not blocked. Nobody knows when an outage ends, so the step
/// is expected to stay blocked for as long again as it has been blocked so far, and at least until the breaker's next
/// probe.
pub(super) fn expected_unblock_time(
    authority: &Authority,
    step: Step,
    taxpayer: Option<TaxpayerId>,
    now: Timestamp,
) -> Option<ContinuationTime> {
    let views = authority.breakers();
    let view = blocking_breaker(&views, step, taxpayer)?;
    let earliest = view.next_probe_at.unwrap_or(now).max(now);
    let blocked_for = view.since.map(|since| now.duration_since(since));
    let reopens = now
        .saturating_add(blocked_for.unwrap_or_default())
        .unwrap_or(Timestamp::MAX);
    Some(ContinuationTime::AfterOutage {
        earliest,
        expected: reopens.max(earliest),
    })
}

/// Describes the breaker that blocks a step for a taxpayer; `None` if the step is not blocked.
pub(super) fn describe_blocking_breaker(
    authority: &Authority,
    step: Step,
    taxpayer: TaxpayerId,
) -> Option<BlockingBreaker> {
    let views = authority.breakers();
    let view = blocking_breaker(&views, step, Some(taxpayer))?;
    Some(BlockingBreaker {
        since: view.since,
        next_probe_at: view.next_probe_at,
        is_probing: view.state == BreakerState::HalfOpen,
        is_tripped: view.is_tripped,
        own_fault: own_fault(view),
    })
}

/// Returns why the calls of this breaker fail if the cause is on our side, such as a refused key; `None` otherwise.
pub(super) fn own_fault(view: &BreakerView) -> Option<UpstreamCause> {
    view.cause
        .and_then(upstream_cause)
        .filter(|cause| cause.is_ours())
}

/// Returns the breaker of a step if it is open for this taxpayer or, if no taxpayer is given, for everybody. It is
/// returned even while a probe is due, because claims skip the step then, too.
pub(super) fn blocking_breaker(
    views: &[BreakerView],
    step: Step,
    taxpayer: Option<TaxpayerId>,
) -> Option<&BreakerView> {
    breaker_view(views, step).filter(|view| match taxpayer {
        Some(taxpayer) => includes_taxpayer(&view.open_for, taxpayer),
        None => view.open_for == HeldCallers::Everybody,
    })
}

fn blocked_step(
    step: Step,
    held: &HeldCallers,
    paused: &[TaxpayerPause],
    has_own_fault: bool,
) -> Option<BlockedStep> {
    let accounts: &[_] = match held {
        HeldCallers::Everybody => {
            return Some(BlockedStep {
                step: step.as_str(),
                taxpayers: None,
            });
        }
        HeldCallers::Nobody => &[],
        HeldCallers::Accounts(accounts) => accounts,
    };
    let held = accounts.iter().filter_map(|account| account.taxpayer());
    let paused = paused.iter().map(|pause| pause.taxpayer_id.0);
    let taxpayers: Vec<_> = held.chain(paused).collect();
    (has_own_fault || !taxpayers.is_empty()).then(|| BlockedStep {
        step: step.as_str(),
        taxpayers: Some(taxpayers),
    })
}

fn due_probe(step: Step, callers: &ProbeCallers, paused: &[TaxpayerPause]) -> DueProbe {
    let taxpayers = match callers {
        ProbeCallers::AllButPayers(_) => None,
        ProbeCallers::Accounts(accounts) => {
            let taxpayers = accounts.iter().filter_map(|account| account.taxpayer());
            Some(taxpayers.collect())
        }
    };
    let except_integrators = match callers {
        ProbeCallers::AllButPayers(payers) => payers.clone(),
        ProbeCallers::Accounts(_) => Vec::new(),
    };
    DueProbe {
        step: step.as_str(),
        taxpayers,
        except_taxpayers: paused.iter().map(|pause| pause.taxpayer_id.0).collect(),
        except_integrators,
    }
}

fn includes_taxpayer(callers: &HeldCallers, taxpayer: TaxpayerId) -> bool {
    match callers {
        HeldCallers::Nobody => false,
        HeldCallers::Everybody => true,
        HeldCallers::Accounts(accounts) => accounts
            .iter()
            .any(|account| account.taxpayer() == Some(taxpayer.0)),
    }
}

fn breaker_view(views: &[BreakerView], step: Step) -> Option<&BreakerView> {
    views
        .iter()
        .find(|view| view.operation == called_operation(step))
}

/// Returns the authority's operation that a step calls.
pub(super) fn called_operation(step: Step) -> Operation {
    match step {
        Step::IrnCheck => Operation::ValidateIrn,
        Step::DataCheck => Operation::Validate,
        Step::Sign => Operation::Sign,
        Step::Confirm => Operation::Confirm,
        Step::Health => Operation::SystemHealth,
        Step::AccessPoints => Operation::Lookup,
        Step::Send => Operation::Transmit,
        Step::Receipt => Operation::Acknowledge,
        Step::Report => Operation::Report,
        Step::Payment => Operation::UpdatePayment,
    }
}

#[cfg(test)]
mod tests {
    use authority_client::CallerAccount;

    use super::*;

    /// Returns the view of a breaker that is open for everybody, and whose probe is due.
    fn breaker_with_due_probe(operation: Operation) -> BreakerView {
        BreakerView {
            operation,
            state: BreakerState::Open,
            held: HeldCallers::Nobody,
            open_for: HeldCallers::Everybody,
            due_probes: vec![ProbeCallers::AllButPayers(Vec::new())],
            is_outage: true,
            is_tripped: false,
            has_callers: true,
            since: None,
            cause: None,
            past_cause: None,
            first_not_ours_at: None,
            calls: 9,
            failures: 9,
            next_probe_at: None,
            answered_at: None,
            failed_at: None,
            openings: 1,
        }
    }

    fn call_limit(operation: Operation, held_until: Option<Timestamp>) -> LimitView {
        LimitView {
            operation,
            limit: 8,
            lasting_limit: 8,
            in_flight: 0,
            waiting: 0,
            answer_time: None,
            held_until,
        }
    }

    #[test]
    fn no_probe_is_due_while_the_authority_has_asked_for_a_pause_of_its_calls() {
        let views = [Operation::Sign, Operation::Transmit].map(breaker_with_due_probe);
        let pause = Some(Timestamp::UNIX_EPOCH);
        for (sign_pause, send_pause, due) in [
            (None, None, vec!["sign", "send"]),
            (pause, None, vec!["send"]),
            (None, pause, vec!["sign"]),
            (pause, pause, vec![]),
        ] {
            let limits = [
                call_limit(Operation::Sign, sign_pause),
                call_limit(Operation::Transmit, send_pause),
                // The pause of another operation holds back none of the two.
                call_limit(Operation::Confirm, pause),
            ];
            let probes = due_probes(&views, &limits, &[]);
            let steps: Vec<_> = probes.iter().map(|probe| probe.step).collect();
            assert_eq!(steps, due, "{sign_pause:?} {send_pause:?}");
        }
    }

    #[test]
    fn a_probe_is_made_by_those_whom_the_breaker_lets_through_and_not_by_paused_taxpayers() {
        let pause = TaxpayerPause {
            taxpayer_id: TaxpayerId(7),
            since: Timestamp::UNIX_EPOCH,
            reason: None,
        };
        let account = |id| CallerAccount::Taxpayer { id, payer: 1 };
        let accounts = vec![account(3), CallerAccount::Payer(1), account(7)];
        for (callers, taxpayers, except_integrators) in [
            (ProbeCallers::AllButPayers(vec![]), None, vec![]),
            (ProbeCallers::AllButPayers(vec![1, 2]), None, vec![1, 2]),
            (ProbeCallers::Accounts(accounts), Some(vec![3, 7]), vec![]),
        ] {
            let expected = DueProbe {
                step: "sign",
                taxpayers,
                except_taxpayers: vec![7],
                except_integrators,
            };
            let probe = due_probe(Step::Sign, &callers, std::slice::from_ref(&pause));
            assert_eq!(probe, expected);
        }
    }

    #[test]
    fn a_step_is_blocked_for_those_whose_breaker_is_open_and_for_paused_taxpayers() {
        let pause = TaxpayerPause {
            taxpayer_id: TaxpayerId(7),
            since: Timestamp::UNIX_EPOCH,
            reason: None,
        };
        let paused = [pause];
        let blocked = |taxpayers| {
            Some(BlockedStep {
                step: "sign",
                taxpayers,
            })
        };
        let nobody = HeldCallers::Nobody;
        let everybody = HeldCallers::Everybody;
        assert_eq!(blocked_step(Step::Sign, &nobody, &[], false), None);
        assert_eq!(
            blocked_step(Step::Sign, &nobody, &[], true),
            blocked(Some(vec![])),
            "its end is noticed"
        );
        assert_eq!(
            blocked_step(Step::Sign, &nobody, &paused, false),
            blocked(Some(vec![7]))
        );
        assert_eq!(
            blocked_step(Step::Sign, &everybody, &paused, true),
            blocked(None)
        );
    }
}
