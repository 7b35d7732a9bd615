//! Faults: order, list, clear.

use actix_web::{
    HttpResponse,
    web::{Data, Json},
};
use serde_json::json;

use super::answer::refuse;
use crate::{faults::FaultOrder, state::State};

pub(super) async fn add(state: Data<State>, order: Json<FaultOrder>) -> HttpResponse {
    match state.add_fault(order.into_inner()) {
        Ok(id) => HttpResponse::Created().json(json!({ "id": id })),
        Err(why) => refuse(&why),
    }
}

pub(super) async fn list(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "faults": state.faults.list() }))
}

pub(super) async fn clear(state: Data<State>) -> HttpResponse {
    state.clear_faults();
    HttpResponse::Ok().json(json!({ "faults": [] }))
}
