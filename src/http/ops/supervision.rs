//! GET /ops/supervision: the tree of actors, gravest first.

use std::future::{Ready, ready};

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::envelope::Answer;
use crate::http::state::State;

/// Actors listed of a group; the counts are of all.
const NODES_MAX: usize = 100;

pub(crate) fn supervision(state: web::Data<State>, _: OperatorCaller) -> Ready<Answer> {
    ready(Answer::ok("Supervision retrieved successfully", state.into_inner().tree.snapshot(NODES_MAX)))
}
