//! A client that prints each exchange: the request, the status, the message. Keys are not printed.

use std::net::SocketAddr;

use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::app::error::StartError;

pub(super) struct Client {
    http: reqwest::Client,
    address: SocketAddr,
}

/// A response.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Result<Self, StartError> {
        let http = reqwest::Client::builder().no_proxy().build();
        Ok(Self { http: http.map_err(|error| StartError::Demo(error.to_string()))?, address })
    }

    /// Makes a request and prints the exchange.
    pub(super) async fn call(
        &self,
        (method, path): (Method, &str),
        key: &SecretString,
        body: Option<&Value>,
    ) -> Result<Answer, StartError> {
        println!("{method} {path}");
        let url = format!("http://{}{path}", self.address);
        let mut request = self.http.request(method, url).header("x-api-key", key.expose_secret());
        if let Some(body) = body {
            request = request.json(body);
        }
        let wrong = |error: reqwest::Error| StartError::Demo(error.to_string());
        let response = request.send().await.map_err(wrong)?;
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(wrong)?;
        let body: Value =
            strict_json::from_untrusted(&body).map_err(|error| StartError::Demo(error.to_string()))?;
        println!("  {status} {}", said(&body));
        Ok(Answer { status, body })
    }
}

/// The sentence of a response: Submit has it under `data`.
fn said(body: &Value) -> &str {
    let text = |field: &str| body.get(field).and_then(Value::as_str);
    text("message").or_else(|| text("data")).unwrap_or_default()
}
