//! A parsed call to the authority. A body that is not JSON counts as null.

use std::collections::HashMap;

use actix_web::{HttpRequest, web::Query};
use serde_json::Value;

use crate::route::{Operation, Route, Subject};

pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) subject: Subject,
    pub(crate) query: HashMap<String, String>,
    pub(crate) body: Value,
    pub(crate) api_key: String,
    pub(crate) api_secret: String,
    /// The number of this call: 1 for the first call of this operation about this invoice; 0 until the call is counted.
    pub(crate) nth: u32,
    /// True if a fault makes the customer's access point unreachable for this call.
    pub(crate) offline: bool,
    /// True if a fault makes the authority's self health check fail for this call.
    pub(crate) unhealthy: bool,
}

impl Call {
    /// Parses a request. Returns `None` if the authority has no route for its method and path.
    pub(crate) fn read(request: &HttpRequest, body: &[u8]) -> Option<Self> {
        let route = Route::find(request.method().as_str(), path_below_root(request)?)?;
        let query = Query::from_query(request.query_string())
            .map(Query::into_inner)
            .unwrap_or_default();
        Some(Self {
            operation: route.operation,
            subject: route.subject,
            query,
            body: strict_json::from_untrusted(body).unwrap_or_default(),
            api_key: header(request, "x-api-key"),
            api_secret: header(request, "x-api-secret"),
            nth: 0,
            offline: false,
            unhealthy: false,
        })
    }

    /// Returns the reference number (IRN) in the path, or else the member `irn` of the body.
    pub(crate) fn irn(&self) -> Option<&str> {
        match &self.subject {
            Subject::Irn(irn) => Some(irn),
            _ => self.body["irn"].as_str(),
        }
    }
}

/// Returns the path without the prefix `/api` or `/api/v1`; `None` if it has neither.
fn path_below_root(request: &HttpRequest) -> Option<&str> {
    match request.match_info().get("path") {
        Some("v1") => Some(""),
        Some(path) => Some(path),
        None => (request.path() == "/api").then_some(""),
    }
}

fn header(request: &HttpRequest, name: &str) -> String {
    request
        .headers()
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}
