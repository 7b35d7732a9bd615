//! The warnings about a new invoice that depend on more than its fields: on the stored invoices, on the present day and
//! on the letters that the printed document can show.

use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::extract::path_ids;
use crate::http::forms::document_header;
use crate::http::forms::standard_invoice::StandardInvoiceForm;
use crate::http::paper_texts;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices;

/// Returns the warnings about an invoice of Create Invoice (Standard), besides those of its form.
pub(crate) async fn find_draft_warnings(
    state: &ApiState,
    taxpayer: TaxpayerId,
    form: &StandardInvoiceForm,
) -> Result<Vec<String>, ApiError> {
    let unknown_original = match &form.original {
        Some(original) => unknown_original_warning(state, taxpayer, original).await?,
        None => None,
    };
    let issued = form.draft.invoice_date;
    let future = document_header::future_date_warning("invoice_date", issued, state.latest_day());
    let unprintable = paper_texts::unprintable_draft_warning(&form.draft);
    let warnings = [unknown_original, future, unprintable];
    Ok(warnings.into_iter().flatten().collect())
}

/// Returns a warning if the invoice that a credit note refers to is not stored. This is no error, because the invoice
/// may be older than this service.
async fn unknown_original_warning(
    state: &ApiState,
    taxpayer: TaxpayerId,
    original: &InvoiceRef,
) -> Result<Option<String>, ApiError> {
    let is_irn = Irn::parse(&original.text).is_ok();
    let stored_original = match path_ids::check_invoice_ref(original.clone()) {
        Ok(InvoiceRef { kind, text }) => {
            invoices::find_owned_by_unique_no(&state.store, taxpayer, kind, &text).await?
        }
        Err(_) => None,
    };
    let advice = if is_irn {
        ""
    } else {
        ": it can be submitted by its IRN alone only if the reference is an IRN"
    };
    Ok(stored_original
        .is_none()
        .then(|| format!("original_invoice_reference names no invoice of this account{advice}")))
}
