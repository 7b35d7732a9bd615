//! Handlers of the control interface that show calls, invoices and keys.

use actix_web::{
    HttpResponse,
    web::{Data, Path},
};
use serde_json::json;

use super::answer::answer;
use crate::state::State;

pub(super) async fn show_calls(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "calls": state.calls() }))
}

pub(super) async fn clear_calls(state: Data<State>) -> HttpResponse {
    state.clear_calls();
    HttpResponse::Ok().json(json!({ "calls": [] }))
}

pub(super) async fn show_invoice(state: Data<State>, irn: Path<String>) -> HttpResponse {
    match state.invoice(&irn) {
        Some(sheet) => HttpResponse::Ok().json(sheet),
        None => HttpResponse::NotFound()
            .json(json!({ "error": "no call ever named this reference number" })),
    }
}

pub(super) async fn show_invoices(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "invoices": state.invoices() }))
}

pub(super) async fn show_crypto_keys(state: Data<State>) -> HttpResponse {
    answer(state.crypto_keys())
}
