//! GET /v1/app/invoices/{irn}/run: the pipeline run of an invoice and its steps; `?operation=` says which.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::Operation;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::query::Query;
use crate::http::state::State;
use crate::http::views::run::RunView;
use crate::http::{acting, ident, outcome};
use crate::store::runs;

pub(crate) async fn get_run(
    state: web::Data<State>,
    caller: Caller,
    irn: web::Path<String>,
    query: Query,
) -> Result<Answer, ApiError> {
    let irn = ident::irn(&irn)?;
    let taxpayer = acting::for_irn(&state, caller, &irn).await?;
    let run_not_found = || ApiError::from(Refusal::RunNotFound);
    let named = query.text("operation").map(|word| Operation::parse(word).ok_or_else(run_not_found));
    let run = state.pipeline.run(taxpayer.id, &irn, named.transpose()?).await?;
    let steps = runs::steps_owned_by(&state.store, taxpayer.id, run.id).await?;
    let queue = outcome::queue(&state, &run).await?;
    Ok(Answer::ok("Pipeline run retrieved successfully", RunView::new(&run, &steps, queue)))
}
