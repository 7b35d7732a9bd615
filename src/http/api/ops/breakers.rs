//! GET /ops/breakers: the breaker and the limit of each of the authority's operations, in this process.

use std::future::{Ready, ready};

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::respond::envelope::ApiResponse;
use crate::http::state::ApiState;
use crate::http::views::breaker::Breaker;

pub(crate) fn breakers(state: web::Data<ApiState>, _: OperatorCaller) -> Ready<ApiResponse> {
    let state = state.into_inner();
    let (breakers, limits) = (state.authority.breakers(), state.authority.limits());
    let views: Vec<_> = breakers.iter().zip(&limits).map(Breaker::from).collect();
    ready(ApiResponse::ok("Breakers retrieved successfully", views))
}
