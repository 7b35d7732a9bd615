//! Which steps can be called at present, and by whom. A run waits at the gate of its next step; while the breaker of
//! that call holds its taxpayer's calls back the gate is shut, and it is passed over without being tried. When a
//! probe is due the gate is ajar: whoever comes first finds out.

use jiff::Timestamp;

use crate::authority::{Authority, BreakerView, CallerAccount, HeldCallers, Operation};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::Step;
use crate::store::lanes::fair_queue::BlockedStep;

/// The gates that are shut.
pub(super) fn shut(authority: &Authority) -> Vec<BlockedStep> {
    let views = authority.breakers();
    Step::ALL.iter().filter_map(|step| shut_gate(*step, view_of(&views, *step)?)).collect()
}

/// Whether the gate of a step is shut for a taxpayer.
pub(super) fn is_shut(authority: &Authority, step: Step, taxpayer: TaxpayerId) -> bool {
    let views = authority.breakers();
    view_of(&views, step).is_some_and(|view| holds(view, taxpayer))
}

/// When a taxpayer's calls of a step may be made again, as far as that is known: now, or at the next probe.
pub(super) fn opens_at(authority: &Authority, step: Step, taxpayer: TaxpayerId, now: Timestamp) -> Timestamp {
    let views = authority.breakers();
    let view = view_of(&views, step).filter(|view| holds(view, taxpayer));
    view.and_then(|view| view.next_probe_at).map_or(now, |at| at.max(now))
}

fn shut_gate(step: Step, view: &BreakerView) -> Option<BlockedStep> {
    let taxpayers = match &view.held {
        HeldCallers::Nobody => return None,
        HeldCallers::Everybody => None,
        HeldCallers::Accounts(accounts) => Some(accounts.iter().filter_map(taxpayer).collect()),
    };
    Some(BlockedStep { step: step.as_str(), taxpayers })
}

fn holds(view: &BreakerView, taxpayer: TaxpayerId) -> bool {
    match &view.held {
        HeldCallers::Nobody => false,
        HeldCallers::Everybody => true,
        HeldCallers::Accounts(accounts) => accounts.contains(&CallerAccount::Taxpayer(taxpayer)),
    }
}

fn taxpayer(account: &CallerAccount) -> Option<i64> {
    match account {
        CallerAccount::Taxpayer(id) => Some(id.0),
        CallerAccount::Service | CallerAccount::Integrator(_) => None,
    }
}

fn view_of(views: &[BreakerView], step: Step) -> Option<&BreakerView> {
    views.iter().find(|view| view.operation == call_of(step))
}

/// What a step calls.
fn call_of(step: Step) -> Operation {
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
