//! Checks that a reference number is well formed and not yet signed.

use super::answer::{OperationResult, body, ok};
use crate::call::Call;
use crate::document::{Node, check_irn};
use crate::irn::Irn;
use crate::records::ServiceId;
use crate::reply::Refusal;
use crate::state::State;

pub(super) fn validate(call: &Call, state: &State) -> OperationResult {
    let root = Node::root("irnrequest", body(call)?);
    root.at("invoice_reference").text().map_err(refuse_irn)?;
    let business_id = root.at("business_id").uuid().map_err(refuse_irn)?;
    let irn = check_irn(&root.at("irn")).map_err(refuse_irn)?;
    check_service_id(state, business_id, irn)?;
    if state.ledger.lock().invoice(irn).is_some() {
        return Err(Refusal::ambiguous(400));
    }
    Ok(ok())
}

/// Enrols the business if it is unknown. Refuses the IRN if the business was enrolled with another service id.
pub(super) fn check_service_id(state: &State, business_id: &str, irn: &str) -> Result<(), Refusal> {
    let mut ledger = state.ledger.lock();
    let found = Irn::parse(irn)
        .map(|irn| irn.service_id)
        .unwrap_or_default();
    match ledger
        .business(business_id)
        .service_id
        .get_or_insert_with(|| ServiceId::Seen(found.to_owned()))
    {
        ServiceId::Enrolled(expected) if !expected.eq_ignore_ascii_case(found) => {}
        _ => return Ok(()),
    }
    Err(Refusal::field(
        "irnrequest.irn",
        "must hold the service id of the business",
    ))
}

fn refuse_irn(fault: String) -> Refusal {
    match fault.split_once(' ') {
        Some((field, rule)) => Refusal::field(field, rule),
        None => Refusal::document(fault),
    }
}
