//! Dispatches a call to its operation.

use serde_json::json;

use super::answer::OperationResult;
use super::{catalog, download, irn, payment, report, search, sign, transmission};
use crate::call::Call;
use crate::route::Operation;
use crate::state::State;

pub(crate) fn perform(call: &Call, state: &State) -> OperationResult {
    match call.operation {
        Operation::Root => Ok(json!({ "healthy": true })),
        Operation::IrnValidate => irn::validate(call, state),
        Operation::Validate => sign::validate(call, state),
        Operation::Sign => sign::sign(call, state),
        Operation::Confirm => sign::confirm(call, state),
        Operation::Download => download::download(call, state),
        Operation::Update => payment::update(call, state),
        Operation::Search => search::search(call, state),
        Operation::Health => Ok(json!({ "ok": !call.unhealthy })),
        Operation::Lookup => transmission::lookup(call, state),
        Operation::Transmit => transmission::transmit(call, state),
        Operation::Acknowledge => transmission::acknowledge(call, state),
        Operation::Pull => search::pull(call, state),
        Operation::Report => report::report(call, state),
        Operation::Entity => catalog::show_entity(call, state),
        Operation::Resources => catalog::show_reference_list(call),
    }
}
