//! The steps that a breaker blocks at present, for all taxpayers or for some. The dispatcher skips runs whose next step
//! is blocked. When a breaker is due for a probe (a trial call), it blocks nothing, and the next run's call is the
//! probe.

use authority_client::{Authority, BreakerView, HeldCallers, Operation};
use jiff::{SignedDuration, Timestamp};

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::Step;
use crate::domain::pipeline::waiting::StepBlock;
use crate::store::lanes::fair_queue::BlockedStep;

pub(super) fn list(authority: &Authority) -> Vec<BlockedStep> {
    let views = authority.breakers();
    Step::ALL
        .iter()
        .filter_map(|step| blocked_step(*step, breaker_view(&views, *step)?))
        .collect()
}

pub(super) fn is_blocked(authority: &Authority, step: Step, taxpayer: TaxpayerId) -> bool {
    let views = authority.breakers();
    breaker_view(&views, step).is_some_and(|view| is_taxpayer_held(view, taxpayer))
}

/// Returns when a step that is blocked for a taxpayer will probably be available again; `None` if it is not blocked.
/// Nobody knows when an outage ends, so the step is expected to stay blocked for as long again as it has been blocked
/// so far, and at least until the breaker's next probe.
pub(super) fn available_at(
    authority: &Authority,
    step: Step,
    taxpayer: TaxpayerId,
    now: Timestamp,
) -> Option<Timestamp> {
    let views = authority.breakers();
    let view = breaker_view(&views, step).filter(|view| is_taxpayer_held(view, taxpayer))?;
    let blocked_for = view
        .since
        .map(|since| now.duration_since(since))
        .unwrap_or_default();
    let reopens = now
        .saturating_add(blocked_for.max(SignedDuration::ZERO))
        .unwrap_or(Timestamp::MAX);
    Some(
        view.next_probe_at
            .map_or(reopens, |probe| probe.max(reopens)),
    )
}

/// Describes the breaker that blocks a step for a taxpayer; `None` if the step is not blocked.
pub(super) fn step_block(
    authority: &Authority,
    step: Step,
    taxpayer: TaxpayerId,
) -> Option<StepBlock> {
    let views = authority.breakers();
    let view = breaker_view(&views, step).filter(|view| is_taxpayer_held(view, taxpayer))?;
    Some(StepBlock {
        since: view.since,
        next_probe_at: view.next_probe_at,
        is_tripped: view.is_tripped,
    })
}

fn blocked_step(step: Step, view: &BreakerView) -> Option<BlockedStep> {
    let taxpayers = match &view.held {
        HeldCallers::Nobody => return None,
        HeldCallers::Everybody => None,
        HeldCallers::Accounts(accounts) => Some(
            accounts
                .iter()
                .filter_map(|account| account.taxpayer())
                .collect(),
        ),
    };
    Some(BlockedStep {
        step: step.as_str(),
        taxpayers,
    })
}

fn is_taxpayer_held(view: &BreakerView, taxpayer: TaxpayerId) -> bool {
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
fn called_operation(step: Step) -> Operation {
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
