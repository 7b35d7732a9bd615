//! GET /v1/app/invoices/{irn}/run: the pipeline run of an invoice and its steps.

use actix_web::web;

use crate::domain::caller::Caller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::state::State;
use crate::http::views::run::RunView;
use crate::http::{acting, ident};
use crate::store::runs;

pub(crate) async fn get_run(
    state: web::Data<State>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<Answer, ApiError> {
    let irn = ident::irn(&irn)?;
    let taxpayer = acting::for_irn(&state, caller, &irn).await?;
    let run = state.pipeline.run(taxpayer.id, &irn).await?;
    let steps = runs::steps_owned_by(&state.store, taxpayer.id, run.id).await?;
    Ok(Answer::ok("Pipeline run retrieved successfully", RunView::new(&run, &steps)))
}
