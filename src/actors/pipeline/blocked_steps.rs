//! The steps that are blocked at present: by a breaker, for all taxpayers or for some, or because an operator has
//! paused the taxpayer. The dispatcher skips runs whose next step is blocked. When a breaker is due for a probe (a
//! trial call), it blocks nothing, and the next run's call is the probe.

use authority_client::{Authority, BreakerState, BreakerView, HeldCallers, Operation};
use jiff::Timestamp;

use crate::actors::call_failure::upstream_cause;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::pipeline::Step;
use crate::domain::pipeline::prediction::ContinuationTime;
use crate::domain::pipeline::waiting::BlockingBreaker;
use crate::domain::taxpayer_pause::TaxpayerPause;
use crate::store::lanes::fair_queue::BlockedStep;

pub(super) fn list(authority: &Authority, paused: &[TaxpayerPause]) -> Vec<BlockedStep> {
    let views = authority.breakers();
    Step::ALL
        .iter()
        .filter_map(|step| {
            let held = breaker_view(&views, *step).map(|view| &view.held);
            blocked_step(*step, held.unwrap_or(&HeldCallers::Nobody), paused)
        })
        .collect()
}

pub(super) fn is_blocked(authority: &Authority, step: Step, taxpayer: TaxpayerId) -> bool {
    let views = authority.breakers();
    breaker_view(&views, step).is_some_and(|view| holds_back_taxpayer(view, taxpayer))
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

/// Returns the fault of ours through which the calls of this breaker fail.
pub(super) fn own_fault(view: &BreakerView) -> Option<UpstreamCause> {
    view.cause
        .and_then(upstream_cause)
        .filter(|cause| cause.is_ours())
}

/// Returns the breaker of a step if it is open for this taxpayer or, if no taxpayer is given, for everybody. A breaker
/// that is open for everybody is returned even while a probe is due.
pub(super) fn blocking_breaker(
    views: &[BreakerView],
    step: Step,
    taxpayer: Option<TaxpayerId>,
) -> Option<&BreakerView> {
    breaker_view(views, step).filter(|view| {
        let is_held = match taxpayer {
            Some(taxpayer) => holds_back_taxpayer(view, taxpayer),
            None => view.held == HeldCallers::Everybody,
        };
        view.is_outage || is_held
    })
}

fn blocked_step(step: Step, held: &HeldCallers, paused: &[TaxpayerPause]) -> Option<BlockedStep> {
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
    (!taxpayers.is_empty()).then(|| BlockedStep {
        step: step.as_str(),
        taxpayers: Some(taxpayers),
    })
}

fn holds_back_taxpayer(view: &BreakerView, taxpayer: TaxpayerId) -> bool {
    match &view.held {
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
    use super::*;

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
        assert_eq!(blocked_step(Step::Sign, &nobody, &[]), None);
        assert_eq!(
            blocked_step(Step::Sign, &nobody, &paused),
            blocked(Some(vec![7]))
        );
        assert_eq!(blocked_step(Step::Sign, &everybody, &paused), blocked(None));
    }
}
