//! GET /ops/pipeline/runs/{id}: one run with its steps, whose ever it is.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::operated_run::OperatedRunWithSteps;
use crate::store::runs;

pub(crate) async fn get_run(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let run = path_ids::run(&state, &id).await?;
    let steps = runs::steps_owned_by(&state.store, run.taxpayer_id, run.id).await?;
    Ok(ApiResponse::ok("Pipeline run retrieved successfully", OperatedRunWithSteps::new(&run, &steps)))
}
