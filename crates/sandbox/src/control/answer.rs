//! Reads requests and writes answers of the control interface. A failure is answered with `{ error }`.

use std::{future::Future, pin::Pin};

use actix_web::{
    FromRequest, HttpRequest, HttpResponse,
    dev::Payload,
    error::{Error, InternalError},
    web::Bytes,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The JSON body of a request. The header Content-Type is ignored.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + 'static> FromRequest for JsonBody<T> {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Error>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = Bytes::from_request(request, payload);
        Box::pin(async move {
            strict_json::from_untrusted(&body.await?)
                .map(Self)
                .map_err(|error| {
                    let response = refuse(&error.to_string());
                    Error::from(InternalError::from_response(error, response))
                })
        })
    }
}

pub(super) async fn answer_unknown_path() -> HttpResponse {
    HttpResponse::NotFound().json(json!({ "error": "no such path in the control interface" }))
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
