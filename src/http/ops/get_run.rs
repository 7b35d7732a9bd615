//! GET /ops/pipeline/runs/{id}: one run with its steps, whose ever it is.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::operated_run::OperatedRunWithSteps;
use crate::store::runs;

pub(crate) async fn get_run(
    state: web::Data<State>,
    _: OperatorCaller,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let run = ident::run(&state, &id).await?;
    let steps = runs::steps_owned_by(&state.store, run.taxpayer_id, run.id).await?;
    Ok(Answer::ok("Pipeline run retrieved successfully", OperatedRunWithSteps::new(&run, &steps)))
}
