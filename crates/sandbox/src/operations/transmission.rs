//! The exchange between access points: lookup, transmission and acknowledgement.
//!
//! An invoice can be transmitted once. It must be signed, and both access points must be online.

use serde_json::{Value, json};

use super::answer::{OperationResult, ok, with_invoice};
use crate::call::Call;
use crate::records::Ledger;
use crate::reply::Refusal;
use crate::route::Subject;
use crate::state::State;

/// Returns the supplier and the customer of the invoice in the path, or the party whose tax number is in the path.
pub(super) fn lookup(call: &Call, state: &State) -> OperationResult {
    let mut ledger = state.ledger.lock();
    if let Subject::Tin(tin) = &call.subject {
        return Ok(party_json(&mut ledger, tin, !call.offline));
    }
    let irn = call.irn().unwrap_or_default();
    let (supplier, customer) = ledger
        .invoice(irn)
        .map(|invoice| (invoice.supplier_tin.clone(), invoice.customer_tin.clone()))
        .ok_or_else(|| Refusal::new(404, "invoice not found"))?;
    let customer = customer.map(|tin| party_json(&mut ledger, &tin, !call.offline));
    Ok(
        json!({ "irn": irn, "supplier": party_json(&mut ledger, &supplier, true), "customer": customer }),
    )
}

fn party_json(ledger: &mut Ledger, tin: &str, reachable: bool) -> Value {
    let party = ledger.party(tin, "");
    let online = party.online && reachable;
    json!({
        "tin": party.tin,
        "party_name": party.name,
        "online": online,
        "access_point": { "name": "Simulated access point", "status": if online { "ONLINE" } else { "OFFLINE" } },
    })
}

pub(super) fn transmit(call: &Call, state: &State) -> OperationResult {
    let irn = call.irn().unwrap_or_default();
    {
        let mut ledger = state.ledger.lock();
        check_reachable(&mut ledger, irn, call.offline)?;
        let invoice = ledger
            .invoice_mut(irn)
            .ok_or_else(|| Refusal::new(404, "invoice not found"))?;
        invoice
            .transmit()
            .map_err(|words| Refusal::new(400, words))?;
    }
    state.notices.notify(irn, "TRANSMITTING");
    state.notices.notify(irn, "TRANSMITTED");
    Ok(ok())
}

/// Refuses the transmission if the supplier or the customer is offline, or if the invoice has no customer.
fn check_reachable(ledger: &mut Ledger, irn: &str, offline: bool) -> Result<(), Refusal> {
    let Some(invoice) = ledger.invoice(irn) else {
        return Err(Refusal::new(404, "invoice not found"));
    };
    let supplier = invoice.supplier_tin.clone();
    let Some(customer) = invoice.customer_tin.clone() else {
        return Err(Refusal::new(400, "invoice has no customer to transmit to"));
    };
    if !ledger.party(&supplier, "").online {
        return Err(Refusal::new(
            400,
            "the access point of the supplier is offline",
        ));
    }
    if offline || !ledger.party(&customer, "").online {
        return Err(Refusal::new(
            400,
            "the access point of the customer is offline",
        ));
    }
    Ok(())
}

pub(super) fn acknowledge(call: &Call, state: &State) -> OperationResult {
    if call.body["message"] != "ACKNOWLEDGED" {
        return Err(Refusal::field(
            "transmitrequest.message",
            "must be ACKNOWLEDGED",
        ));
    }
    with_invoice(call, state, |invoice| {
        invoice
            .acknowledge()
            .map_err(|words| Refusal::new(400, words))
    })?;
    state
        .notices
        .notify(call.irn().unwrap_or_default(), "ACKNOWLEDGED");
    Ok(ok())
}
