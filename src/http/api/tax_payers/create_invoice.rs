//! POST /v1/tax-payers/invoices: Create Invoice (Standard). An invoice with the same number is no error.

use actix_web::web;

use crate::actors::taxpayer::command::Created;
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::api::tax_payers::create_preconditions;
use crate::http::api::tax_payers::create_response;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::report;
use crate::http::forms::standard_invoice;
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices;

pub(crate) async fn create_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let read = report::read(&*body.object().await?, &state.catalog.get(), standard_invoice::read);
    let mut form = match read {
        Ok(form) => form,
        Err(faults) => return Err(create_preconditions::or_faults(&state, id, faults).await),
    };
    if let Some(original) = &form.value.original {
        form.warnings.extend(unresolved(&state, id, original).await?);
    }
    let (draft, warnings) = (form.value.draft, form.warnings);
    let show = move |made: &Created| create_response::answer(made, "Invoice already exist").warn(&warnings);
    idempotent.answer(&state.taxpayers, show, async |taxpayers| taxpayers.create(id, draft).await).await
}

/// The original may be older than this service, so that not knowing it is a warning.
async fn unresolved(
    state: &ApiState,
    id: TaxpayerId,
    original: &InvoiceRef,
) -> Result<Option<String>, ApiError> {
    let found = match path_ids::which(original.clone()) {
        Ok(InvoiceRef { kind, text }) => {
            invoices::owned_by_with_unique_no(&state.store, id, kind, &text).await?
        }
        Err(_) => None,
    };
    Ok(found.is_none().then(|| "original_invoice_reference names no invoice of this account".to_owned()))
}
