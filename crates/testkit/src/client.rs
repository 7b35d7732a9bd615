//! The HTTP client: the address of the service, and the API key of the caller, if any.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::answer::Answer;
use crate::patience::PATIENCE;

/// The time after which an idle connection is closed. It is shorter than that of the service, so that no request is
/// sent on a connection that the service is closing.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// A caller of the API. Clones share their connections, which belong to the async runtime that uses them first.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    root: String,
    key: Option<String>,
}

impl Client {
    /// Returns a caller without a key. It speaks plain HTTP only, because reading the certificates of the system takes
    /// longer than a call.
    pub fn new(root: String) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .timeout(PATIENCE)
            .pool_idle_timeout(IDLE_MAX)
            .build()
            .unwrap();
        Self {
            http,
            root,
            key: None,
        }
    }

    /// Returns the same caller with another key.
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    /// Returns the same caller at another address.
    pub fn at(&self, root: String) -> Self {
        Self {
            root,
            ..self.clone()
        }
    }

    pub fn root(&self) -> &str {
        &self.root
    }

    /// Returns the key; an empty text if there is none.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    /// Returns a request that [`Answer::to`] can send, for calls that the methods below do not offer.
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.http.request(method, format!("{}{path}", self.root));
        match &self.key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request("GET", path)).await
    }

    pub async fn call(&self, method: &str, path: &str) -> Answer {
        Answer::to(self.request(method, path)).await
    }

    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(method, path).json(body)).await
    }

    /// Sends a write with an `Idempotency-Key`.
    pub async fn send_keyed(&self, key: &str, method: &str, path: &str, body: &Value) -> Answer {
        Answer::to(
            self.request(method, path)
                .header("idempotency-key", key)
                .json(body),
        )
        .await
    }

    /// Sends a body as it is, JSON or not.
    pub async fn send_text(
        &self,
        method: &str,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let request = self
            .request(method, path)
            .header("content-type", "application/json")
            .body(body);
        Answer::to(request).await
    }
}
