//! How the control interface answers: the thing itself, or `{ error }`.

use actix_web::{
    HttpRequest, HttpResponse,
    error::{Error, InternalError, JsonPayloadError},
};
use serde_json::{Value, json};

pub(super) async fn unknown() -> HttpResponse {
    HttpResponse::NotFound().json(json!({ "error": "no such path in the control interface" }))
}

/// A body the control interface cannot read, in its own form.
pub(crate) fn refuse_json(error: JsonPayloadError, _: &HttpRequest) -> Error {
    let response = refuse(&error.to_string());
    InternalError::from_response(error, response).into()
}

pub(super) fn refuse(why: &str) -> HttpResponse {
    HttpResponse::UnprocessableEntity().json(json!({ "error": why }))
}

pub(super) fn answer(outcome: Result<Value, String>) -> HttpResponse {
    match outcome {
        Ok(body) => HttpResponse::Ok().json(body),
        Err(why) => refuse(&why),
    }
}
