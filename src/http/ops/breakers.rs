//! GET /ops/breakers: the breaker of each of the authority's operations, in this process.

use std::future::{Ready, ready};

use actix_web::web;

use crate::domain::caller::OperatorCaller;
use crate::http::envelope::Answer;
use crate::http::state::State;
use crate::http::views::breaker::Breaker;

pub(crate) fn breakers(state: web::Data<State>, _: OperatorCaller) -> Ready<Answer> {
    let views: Vec<_> = state.into_inner().authority.breakers().iter().map(Breaker::from).collect();
    ready(Answer::ok("Breakers retrieved successfully", views))
}
