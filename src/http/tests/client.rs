//! Requests to the routes with all middleware, without a network.

use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::header::HeaderMap;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, read_body};
use actix_web::{App, HttpResponse, web};
use serde_json::Value;

use crate::http::testing::TestApp;

pub(super) const INVOICES: &str = "/v1/tax-payers/invoices";
pub(super) const TAXPAYERS: &str = "/v1/system-integrators/taxpayers";

/// A response as the caller receives it.
pub(super) struct Seen {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Seen {
    pub(super) fn json(&self) -> Value {
        strict_json::from_trusted(&self.text).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(super) fn code(&self) -> (u16, String) {
        (self.status, self.json()["error_code"].as_str().unwrap_or_default().to_owned())
    }
}

pub(super) async fn ask(test_app: &TestApp, request: TestRequest) -> Seen {
    let app = App::new()
        .app_data(test_app.state.clone())
        .app_data(test_app.listener)
        .wrap(from_fn(crate::http::request_context))
        .configure(crate::http::routes)
        .route("/panic", web::get().to(raise_panic));
    let app = init_service(app).await;
    read_response(app.call(request.to_request()).await).await
}

async fn raise_panic() -> HttpResponse {
    std::future::ready(()).await;
    panic!("boom")
}

async fn read_response(response: Result<ServiceResponse, actix_web::Error>) -> Seen {
    match response {
        Ok(response) => {
            let status = response.status().as_u16();
            let headers = response.headers().clone();
            let text = String::from_utf8(read_body(response).await.to_vec()).unwrap();
            Seen { status, headers, text }
        }
        Err(error) => {
            let response = error.error_response();
            let status = response.status().as_u16();
            let headers = response.headers().clone();
            let bytes = actix_web::body::to_bytes(response.into_body()).await.unwrap();
            Seen { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
        }
    }
}

pub(super) fn get(path: &str, key: &str) -> TestRequest {
    TestRequest::get().uri(path).insert_header(("x-api-key", key))
}

pub(super) fn post(path: &str, key: &str, body: &Value) -> TestRequest {
    TestRequest::post().uri(path).insert_header(("x-api-key", key)).set_json(body)
}
