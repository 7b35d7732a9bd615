//! Checks, signs and confirms a document.
//!
//! A second signature of an IRN is refused with the message that a busy authority also sends, so the caller cannot tell
//! the two cases apart.

use serde_json::Value;

use super::{
    answer::{OperationResult, body, ok, with_invoice},
    irn::check_service_id,
};
use crate::call::Call;
use crate::clock;
use crate::document::{self, SignedValues};
use crate::faults::is_rejected;
use crate::records::{Invoice, PaymentStatus, TransitStage};
use crate::reply::Refusal;
use crate::state::State;

pub(super) fn validate(call: &Call, state: &State) -> OperationResult {
    check_document(body(call)?, state)?;
    Ok(ok())
}

pub(super) fn sign(call: &Call, state: &State) -> OperationResult {
    let document = body(call)?;
    let essence = check_document(document, state)?;
    if record_signed_invoice(state, essence, document) {
        Ok(ok())
    } else {
        Err(Refusal::ambiguous(400))
    }
}

pub(super) fn confirm(call: &Call, state: &State) -> OperationResult {
    let zone = state.settings.utc_offset;
    with_invoice(call, state, |invoice| Ok(invoice.confirmation(zone)))
}

fn check_document(document: &Value, state: &State) -> Result<SignedValues, Refusal> {
    let essence = document::check(document).map_err(Refusal::document)?;
    if is_rejected(&essence.irn) {
        let words = "invoicerequest.invoice.invoiceline[0].hsncode must be a known code";
        return Err(Refusal::document(words.to_owned()));
    }
    check_service_id(state, &essence.business_id, &essence.irn)?;
    Ok(essence)
}

/// Records a signed invoice and its parties. Returns false if the reference number is already signed.
pub(crate) fn record_signed_invoice(
    state: &State,
    essence: SignedValues,
    document: &Value,
) -> bool {
    let document = document.to_string();
    let mut ledger = state.ledger.lock();
    let supplier = &essence.supplier;
    ledger.party(&supplier.tin, &supplier.name);
    let issuer = match &essence.customer {
        Some(customer) if is_self_billed(&essence.invoice_type_code) => customer,
        _ => &essence.supplier,
    };
    ledger
        .business(&essence.business_id)
        .tin
        .get_or_insert_with(|| issuer.tin.clone());
    if let Some(customer) = &essence.customer {
        ledger.party(&customer.tin, &customer.name);
    }
    let payment = essence
        .payment_status
        .as_deref()
        .and_then(PaymentStatus::parse);
    ledger.sign(Invoice {
        irn: essence.irn,
        business_id: essence.business_id.to_lowercase(),
        document,
        type_code: essence.invoice_type_code,
        issue_date: essence.issue_date,
        due_date: essence.due_date,
        supplier_tin: essence.supplier.tin,
        customer_tin: essence.customer.map(|customer| customer.tin),
        signed_at: clock::now(),
        payment: payment.unwrap_or(PaymentStatus::Pending),
        payment_reference: None,
        transit: TransitStage::Signed,
        sign_count: 0,
        transmit_count: 0,
    })
}

/// Returns true for the invoice types that the buyer issues instead of the supplier.
fn is_self_billed(type_code: &str) -> bool {
    matches!(type_code, "385" | "393" | "394")
}
