//! Which steps can be called at present. A run waits at the gate of its next step; while the breaker of that call
//! is open the gate is shut, and whoever stands there is passed over without being tried. When a probe is due the
//! gate is ajar: whoever comes first finds out.

use jiff::Timestamp;

use crate::authority::{Authority, BreakerState, BreakerView, Operation};
use crate::domain::pipeline::Step;

/// The gates that are shut.
pub(super) fn shut(authority: &Authority, now: Timestamp) -> Vec<&'static str> {
    let views = authority.breakers();
    let is_shut =
        |step: &&Step| views.iter().any(|view| view.operation == call_of(**step) && holds(view, now));
    Step::ALL.iter().filter(is_shut).map(|step| step.as_str()).collect()
}

/// When calls of a step may be made again, as far as that is known: now, or at the next probe.
pub(super) fn opens_at(authority: &Authority, step: Step, now: Timestamp) -> Timestamp {
    let view = authority.breakers().into_iter().find(|view| view.operation == call_of(step));
    view.and_then(|view| view.next_probe_at).map_or(now, |at| at.max(now))
}

fn holds(view: &BreakerView, now: Timestamp) -> bool {
    match view.state {
        BreakerState::Closed => false,
        BreakerState::HalfOpen => true,
        BreakerState::Open => view.next_probe_at.is_some_and(|at| at > now),
    }
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
