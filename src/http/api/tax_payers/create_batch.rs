//! POST /v1/tax-payers/invoices/bulk: Create Invoices (Bulk). What is wrong with an invoice fails that invoice
//! only; the batch is there with all of its invoices or not at all.

use actix_web::http::StatusCode;
use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::batch::{Batch, Candidate};
use crate::domain::kernel::fault::Faults;
use crate::domain::reference::catalog::Catalog;
use crate::http::api::tax_payers::create_preconditions;
use crate::http::extract::body::Body;
use crate::http::extract::json;
use crate::http::forms::batch;
use crate::http::forms::report::{self, Accepted};
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::batch::BatchCreated;

pub(crate) async fn create_batch(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let text = body.up_to(state.settings.bulk_bytes_max).text().await?;
    let _turn = state.bodies.bulk_turn().await?;
    let room = text.room_for_values(&state).await?;
    let catalog = state.catalog.get();
    // So much text takes a while to read: the requests beside it need not wait for it.
    let read = web::block(move || text.read_in(room, |text| read(text, &catalog)))
        .await
        .map_err(ApiError::internal)?;
    let form = match read? {
        Ok(form) => form,
        Err(faults) => return Err(create_preconditions::or_faults(&state, id, faults).await),
    };
    let (candidates, warnings) = (form.value, form.warnings);
    let show = move |batch: &Batch| answer(batch).warn(&warnings);
    idempotent
        .answer(&state.taxpayers, show, async |taxpayers| taxpayers.create_batch(id, candidates).await)
        .await
}

fn answer(batch: &Batch) -> ApiResponse {
    let place = format!("/v1/tax-payers/invoices/batches/{}", batch.batch_no);
    let message = "Invoices created successfully";
    ApiResponse::with_status(StatusCode::CREATED, message, BatchCreated::from(batch)).located(&place)
}

type Read = Result<Accepted<Vec<Candidate>>, Faults>;

fn read(text: &[u8], catalog: &Catalog) -> Result<Read, ApiError> {
    let body = json::batch(text)?;
    let mut read = report::read(&body.object, catalog, batch::read);
    if let Ok(form) = &mut read {
        batch::fail_items(&mut form.value, body.key_faults);
    }
    Ok(read)
}
