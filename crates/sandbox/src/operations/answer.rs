use serde_json::{Value, json};

use crate::call::Call;
use crate::records::Invoice;
use crate::reply::Refusal;
use crate::state::State;

/// The data of a successful answer, or a refusal.
pub(super) type OperationResult = Result<Value, Refusal>;

pub(super) fn ok() -> Value {
    json!({ "ok": true })
}

pub(super) fn body(call: &Call) -> Result<&Value, Refusal> {
    if call.body.is_object() {
        Ok(&call.body)
    } else {
        Err(Refusal::new(400, "unable to parse the request body"))
    }
}

/// Runs `work` on the signed invoice whose IRN is in the path. Refuses the call with 404 if there is none.
pub(super) fn with_invoice<T>(
    call: &Call,
    state: &State,
    work: impl FnOnce(&mut Invoice) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let mut ledger = state.ledger.lock();
    let invoice = ledger.invoice_mut(call.irn().unwrap_or_default());
    work(invoice.ok_or_else(|| Refusal::new(404, "invoice not found"))?)
}
