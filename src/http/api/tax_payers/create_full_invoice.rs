//! POST /v1/tax-payers/invoices/full: Create Invoice (Full). An invoice with the same IRN or number is no error.

use actix_web::web;

use crate::actors::taxpayer::command::Created;
use crate::domain::access::caller::TaxpayerCaller;
use crate::http::api::tax_payers::create_preconditions;
use crate::http::api::tax_payers::create_response;
use crate::http::extract::body::Body;
use crate::http::forms::full_invoice::{self, Account};
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

const DUPLICATE: &str = "Invoice with this IRN already exists";

pub(crate) async fn create_full_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let (catalog, account) = (state.catalog.get(), Account { today: state.today(), service_id: None });
    let form = match full_invoice::read(&body, account, &catalog) {
        Ok(form) => form,
        Err(faults) => {
            // Whose IRN it is belongs to the faults; where there are no others, the taxpayer's actor asks.
            let taxpayer = create_preconditions::passed(&state, id).await?;
            let account = Account { service_id: Some(&taxpayer.service_id), ..account };
            let all = full_invoice::read(&body, account, &catalog).err();
            return Err(all.unwrap_or(faults).into());
        }
    };
    drop(body);
    let (draft, warnings) = (form.value, form.warnings);
    let show = move |made: &Created| create_response::answer(made, DUPLICATE).warn(&warnings);
    idempotent.answer(&state.taxpayers, show, async |taxpayers| taxpayers.create(id, draft).await).await
}
