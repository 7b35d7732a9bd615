//! Identifiers in paths. What is no integer names nothing: 404, never 400.

use crate::domain::ids::{IntegratorId, InvoiceId, TaxpayerId};
use crate::domain::irn::Irn;
use crate::domain::party::Taxpayer;
use crate::http::error::ApiError;
use crate::http::state::State;
use crate::store::taxpayers;

pub(crate) fn invoice_id(text: &str) -> Result<InvoiceId, ApiError> {
    number(text).map(InvoiceId).ok_or_else(ApiError::invoice_not_found)
}

pub(crate) fn irn(text: &str) -> Result<Irn, ApiError> {
    Irn::parse(text).map_err(|_| ApiError::invoice_not_found())
}

/// The integrator's taxpayer that a path names.
pub(crate) async fn taxpayer(
    state: &State,
    integrator: IntegratorId,
    text: &str,
) -> Result<Taxpayer, ApiError> {
    let id = number(text).map(TaxpayerId).ok_or_else(ApiError::taxpayer_not_found)?;
    let found = taxpayers::owned_by_with_id(&state.store, integrator, id).await?;
    found.ok_or_else(ApiError::taxpayer_not_found)
}

/// Decimal digits and nothing else, so that an id has one spelling.
pub(crate) fn number(text: &str) -> Option<i64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    is_plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_names_no_invoice() {
        for text in ["", "abc", "1.5", "-1", "+1", " 1", "99999999999999999999", "1e3", "0x1", "007", "0"] {
            assert_eq!(invoice_id(text).unwrap_err().status.as_u16(), 404, "{text:?}");
        }
        assert_eq!(invoice_id("42").unwrap(), InvoiceId(42));
    }
}
