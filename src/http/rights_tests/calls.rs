//! Requests with any number of keys, and their responses.

use actix_web::dev::ServiceResponse;
use actix_web::http::Method;
use actix_web::test::{TestRequest, read_body};
use serde_json::Value;

use super::tenant::MARK;

pub(super) struct CallResponse {
    pub(super) status: u16,
    pub(super) text: String,
}

impl CallResponse {
    pub(super) fn data(&self) -> Value {
        let json: Value =
            strict_json::from_trusted(&self.text).unwrap_or_else(|_| panic!("{}", self.text));
        assert!(self.status < 300, "{}", self.text);
        json["data"].clone()
    }

    pub(super) fn code(&self) -> String {
        let json: Value = strict_json::from_trusted(&self.text).unwrap_or_default();
        json["error_code"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn is_marked(&self) -> bool {
        self.text.to_ascii_lowercase().contains(MARK)
    }
}

pub(super) struct TestCall {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) keys: Vec<String>,
    pub(super) body: Option<Value>,
}

pub(super) fn get(path: &str, key: &str) -> TestCall {
    TestCall {
        method: Method::GET,
        path: path.to_owned(),
        keys: vec![key.to_owned()],
        body: None,
    }
}

pub(super) fn send(method: Method, path: &str, key: &str, body: Value) -> TestCall {
    TestCall {
        method,
        path: path.to_owned(),
        keys: vec![key.to_owned()],
        body: Some(body),
    }
}

pub(super) fn request(call: TestCall) -> TestRequest {
    let mut request = TestRequest::default().method(call.method).uri(&call.path);
    for key in call.keys {
        request = request.append_header(("x-api-key", key));
    }
    match call.body {
        Some(body) => request.set_json(body),
        None => request,
    }
}

pub(super) async fn read_response(response: ServiceResponse) -> CallResponse {
    let status = response.status().as_u16();
    CallResponse {
        status,
        text: String::from_utf8_lossy(&read_body(response).await).into_owned(),
    }
}

/// Posts a body and returns the data of the response.
pub(super) async fn post(
    ask: &impl AsyncFn(TestCall) -> CallResponse,
    path: &str,
    key: &str,
    body: Value,
) -> Value {
    ask(send(Method::POST, path, key, body)).await.data()
}
