//! GET /ops/supervision: the tree of actors, gravest first.

use std::future::{Ready, ready};

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::respond::envelope::ApiResponse;
use crate::http::state::ApiState;

/// Actors listed of a group; the counts are of all.
const NODES_MAX: usize = 100;

pub(crate) fn supervision(state: web::Data<ApiState>, _: OperatorCaller) -> Ready<ApiResponse> {
    ready(ApiResponse::ok("Supervision retrieved successfully", state.into_inner().tree.snapshot(NODES_MAX)))
}
