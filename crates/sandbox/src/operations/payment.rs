//! Changes the payment status of a signed invoice.

use super::answer::{OperationResult, body, ok, with_invoice};
use crate::call::Call;
use crate::records::PaymentStatus;
use crate::reply::Refusal;
use crate::state::State;

pub(super) fn update(call: &Call, state: &State) -> OperationResult {
    let body = body(call)?;
    let field = "updateinvoicerequest.paymentstatus";
    let status = body["payment_status"]
        .as_str()
        .ok_or_else(|| Refusal::field(field, "is required"))?;
    let status = PaymentStatus::parse(status)
        .ok_or_else(|| Refusal::field(field, "must be one of PENDING, PARTIAL, PAID, REJECTED"))?;
    let reference = body["reference"].as_str().filter(|text| !text.is_empty());
    with_invoice(call, state, |invoice| {
        invoice
            .set_payment(status, reference)
            .map_err(|words| Refusal::new(400, words))?;
        Ok(ok())
    })
}
