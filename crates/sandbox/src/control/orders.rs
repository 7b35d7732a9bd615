//! Handlers of the control interface: faults, latencies, dialect and random seed.

use actix_web::{HttpResponse, web::Data};
use serde::Deserialize;
use serde_json::json;

use super::answer::{JsonBody, refuse};
use crate::dialect::Dialect;
use crate::faults::FaultOrder;
use crate::latencies::LatencyOrder;
use crate::state::State;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeedOrder {
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DialectOrder {
    dialect: Dialect,
}

fn order_response(outcome: Result<u64, String>) -> HttpResponse {
    match outcome {
        Ok(id) => HttpResponse::Created().json(json!({ "id": id })),
        Err(why) => refuse(&why),
    }
}

pub(super) async fn add_fault(state: Data<State>, order: JsonBody<FaultOrder>) -> HttpResponse {
    order_response(state.add_fault(order.0))
}

pub(super) async fn list_faults(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "faults": state.faults.list() }))
}

pub(super) async fn clear_faults(state: Data<State>) -> HttpResponse {
    state.clear_faults();
    HttpResponse::Ok().json(json!({ "faults": [] }))
}

pub(super) async fn add_latency(state: Data<State>, order: JsonBody<LatencyOrder>) -> HttpResponse {
    order_response(state.add_latency(order.0))
}

pub(super) async fn list_latencies(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "latencies": state.latencies.list() }))
}

pub(super) async fn clear_latencies(state: Data<State>) -> HttpResponse {
    state.clear_latencies();
    HttpResponse::Ok().json(json!({ "latencies": [] }))
}

pub(super) async fn show_seed(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "seed": state.seed() }))
}

pub(super) async fn set_seed(state: Data<State>, body: JsonBody<SeedOrder>) -> HttpResponse {
    state.set_seed(body.0.seed);
    show_seed(state).await
}

pub(super) async fn show_dialect(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "dialect": state.dialect() }))
}

pub(super) async fn set_dialect(state: Data<State>, order: JsonBody<DialectOrder>) -> HttpResponse {
    state.set_dialect(order.0.dialect);
    show_dialect(state).await
}
