//! Returns a signed document, encrypted for the caller.

use serde_json::Value;

use super::answer::{OperationResult, with_invoice};
use crate::call::Call;
use crate::crypto;
use crate::records::Invoice;
use crate::reply::Refusal;
use crate::state::State;

pub(super) fn download(call: &Call, state: &State) -> OperationResult {
    let document = with_invoice(call, state, |invoice| {
        Ok(with_current_status(&invoice.document, invoice))
    })?;
    crypto::encrypt_document(&document, &call.api_key)
        .map_err(|_| Refusal::new(500, "unable to encrypt the invoice"))
}

/// Returns the signed document with the current payment status, and with `issue_time`, null if the document was signed
/// without one. The stored document is not changed.
fn with_current_status(document: &str, invoice: &Invoice) -> String {
    let Ok(mut document) = strict_json::from_trusted::<Value>(document) else {
        return document.to_owned();
    };
    document["payment_status"] = invoice.payment.name().into();
    if let Value::Object(members) = &mut document {
        members.entry("issue_time").or_insert(Value::Null);
    }
    document.to_string()
}
