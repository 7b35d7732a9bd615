//! An HTTP client that prints each exchange: the request, the status and the message. It does not print API keys.

use std::net::SocketAddr;

use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::app::error::StartError;

pub(super) struct Client {
    http: reqwest::Client,
    address: SocketAddr,
}

/// The method and the path of a request.
pub(super) struct Route<'a> {
    method: Method,
    path: &'a str,
}

impl<'a> Route<'a> {
    pub(super) fn new(method: Method, path: &'a str) -> Self {
        Self { method, path }
    }
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Result<Self, StartError> {
        let http = reqwest::Client::builder().no_proxy().build();
        Ok(Self {
            http: http.map_err(|error| StartError::Demo(error.to_string()))?,
            address,
        })
    }

    /// Sends a request, prints the exchange and returns the response.
    pub(super) async fn call(
        &self,
        route: Route<'_>,
        key: &SecretString,
        body: Option<&Value>,
    ) -> Result<Answer, StartError> {
        let Route { method, path } = route;
        println!("{method} {path}");
        let url = format!("http://{}{path}", self.address);
        let mut request = self
            .http
            .request(method, url)
            .header("x-api-key", key.expose_secret());
        if let Some(body) = body {
            request = request.json(body);
        }
        let demo_error = |error: reqwest::Error| StartError::Demo(error.to_string());
        let response = request.send().await.map_err(demo_error)?;
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(demo_error)?;
        let body: Value = strict_json::from_untrusted(&body)
            .map_err(|error| StartError::Demo(error.to_string()))?;
        println!("  {status} {}", response_text(&body));
        Ok(Answer { status, body })
    }
}

/// Returns the text of a response to print: `message`, or `data` if `message` is not text.
fn response_text(body: &Value) -> &str {
    ["message", "data"]
        .into_iter()
        .find_map(|field| body.get(field)?.as_str())
        .unwrap_or_default()
}
