//! GET /ops/pipeline/runs: the runs of all taxpayers, newest first.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::domain::kernel::fault::Faults;
use crate::domain::pipeline::{Operation, RunState};
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::operated_run::OperatedRun;
use crate::http::views::paginator::Paginator;
use crate::store::runs::{self, RunFilter};

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_runs(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (filter, page) = (filter(&query)?, query.page(PER_PAGE_DEFAULT));
    let (found, total) = runs::page(&state.store, filter, page).await?;
    let items = found.iter().map(OperatedRun::from).collect();
    Ok(ApiResponse::ok("Pipeline runs retrieved successfully", Paginator::new(page, total, items)))
}

fn filter(query: &Query) -> Result<RunFilter, Faults> {
    let state = query.word("state", RunState::parse, RunState::allowed);
    let operation = query.word("operation", Operation::parse, Operation::allowed);
    match (state, operation) {
        (Ok(state), Ok(operation)) => {
            Ok(RunFilter { state, operation, taxpayer_id: query.taxpayer_id("taxpayer_id") })
        }
        (state, operation) => Err([state.err(), operation.err()].into_iter().flatten().collect()),
    }
}
