//! A request to the authority. Text from outside is encoded, so it cannot change other parts of the URL.

use reqwest::Method;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::operation::Operation;

#[derive(Debug)]
pub(crate) struct AuthorityRequest<'a> {
    pub(crate) operation: Operation,
    pub(crate) method: Method,
    /// The encoded path below the root, with its query: `/api/v1/invoice/transmit/pull?confirmed=false`.
    pub(crate) path: String,
    pub(crate) body: Option<&'a Value>,
    /// The IRN that the request concerns, for the log and the breaker.
    pub(crate) irn: Option<&'a str>,
    /// False for reference lists, which are requested without the API keys.
    pub(crate) with_keys: bool,
}

impl<'a> AuthorityRequest<'a> {
    /// Makes a request for `path`, which is relative to `/api/v1` and already encoded.
    pub(crate) fn new(operation: Operation, method: Method, path: &str) -> Self {
        let path = format!("/api/v1{path}");
        Self {
            operation,
            method,
            path,
            body: None,
            irn: None,
            with_keys: true,
        }
    }

    pub(crate) fn for_irn(mut self, irn: &'a str) -> Self {
        self.irn = Some(irn);
        self
    }

    pub(crate) fn with_body(mut self, body: &'a Value) -> Self {
        let irn = body.get("irn").and_then(Value::as_str);
        self.irn = self.irn.or(irn);
        self.body = Some(body);
        self
    }

    pub(crate) fn with_query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let pair = Serializer::new(String::new())
                .append_pair(name, &value.to_string())
                .finish();
            self.path
                .push(if self.path.contains('?') { '&' } else { '?' });
            self.path.push_str(&pair);
        }
        self
    }

    pub(crate) fn without_keys(mut self) -> Self {
        self.with_keys = false;
        self
    }
}
