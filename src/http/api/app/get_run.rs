//! GET /v1/app/invoices/{irn}/run: the pipeline run of an invoice and its steps; `?operation=` says which.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::Operation;
use crate::http::api::app::run_response;
use crate::http::extract::acting_taxpayer;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::run::RunView;
use crate::store::runs;

pub(crate) async fn get_run(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let run_not_found = || ApiError::from(Refusal::RunNotFound);
    let named = query.text("operation").map(|word| Operation::parse(word).ok_or_else(run_not_found));
    let run = state.pipeline.run(taxpayer.id, &irn, named.transpose()?).await?;
    let steps = runs::steps_owned_by(&state.store, taxpayer.id, run.id).await?;
    let queue = run_response::queue(&state, &run).await?;
    Ok(ApiResponse::ok("Pipeline run retrieved successfully", RunView::new(&run, &steps, queue)))
}
