//! The claim of a request on its idempotency key: the parts that make it the same request as another one.

use actix_web::HttpMessage;
use actix_web::dev::ServiceRequest;
use actix_web::http::header::HeaderMap;
use jiff::Timestamp;
use serde_json::Value;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::kernel::digest::canonical_text;
use crate::http::extract::acting_taxpayer::TAXPAYER_ID_HEADER;
use crate::http::extract::body::is_json_body;
use crate::http::extract::body_text::BodyText;
use crate::http::extract::json;
use crate::http::limits::SMALL_BODY_BYTES_MAX;
use crate::http::state::ApiState;

/// Makes the claim of a request. Requests are the same if method, path with query, `x-taxpayer-id` and body are equal.
/// Small JSON bodies are equal if their contents are, however they are spelled: otherwise a payment of `75.0` that is sent
/// again as `75` would be refused, and its caller might pay a second time with a new key.
pub(super) fn make_claim(
    state: &ApiState,
    account: KeyOwner,
    key: &str,
    request: &ServiceRequest,
) -> IdempotencyClaim {
    let extensions = request.extensions();
    let body = extensions
        .get::<BodyText>()
        .map_or(&[][..], |body| &body.bytes);
    let method = request.method().as_str().as_bytes();
    let target = request
        .uri()
        .path_and_query()
        .map_or("", |target| target.as_str())
        .as_bytes();
    let taxpayer_id = request
        .headers()
        .get(TAXPAYER_ID_HEADER)
        .map_or(&[][..], |value| value.as_bytes());
    let expires_at = state.now().saturating_add(state.settings.idempotency_keep);
    let claim = IdempotencyClaim::new(
        account,
        key,
        &[method, target, taxpayer_id, body],
        expires_at.unwrap_or(Timestamp::MAX),
    );
    match json_content(request.headers(), body) {
        Some(content) => claim.with_content(&[method, target, taxpayer_id, content.as_bytes()]),
        None => claim,
    }
}

/// Returns the content of a JSON body in one spelling: without white space, with its keys in order, and with each number
/// in its shortest form. `None` for a body that is no JSON object or is refused as one, and for a body that is too large
/// to be parsed a second time.
fn json_content(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    if body.len() > SMALL_BODY_BYTES_MAX || !is_json_body(headers) {
        return None;
    }
    let object = json::parse_object(body).ok()?;
    Some(canonical_text(&Value::Object(object)))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{CONTENT_TYPE, HeaderValue};

    use super::*;

    fn content(content_type: &'static str, body: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        json_content(&headers, body.as_bytes())
    }

    #[test]
    fn the_spelling_of_a_json_body_does_not_matter() {
        let payment = content("application/json", r#"{"amount":75,"remark":"é"}"#);
        assert!(payment.is_some());
        for same in [
            r#"{"amount":75.0,"remark":"é"}"#,
            r#"{"amount":7.5e1,"remark":"é"}"#,
            r#"{"remark":"\u00e9","amount":75}"#,
            "{\n  \"amount\": 75,\n  \"remark\": \"é\"\n}\n",
        ] {
            assert_eq!(content("application/json", same), payment, "{same}");
            assert_eq!(content("application/merge-patch+json", same), payment);
        }
        for other in [
            r#"{"amount":75.01,"remark":"é"}"#,
            r#"{"amount":"75","remark":"é"}"#,
            r#"{"amount":75,"remark":"é "}"#,
            r#"{"amount":75,"remark":"é","part":null}"#,
        ] {
            assert_ne!(content("application/json", other), payment, "{other}");
        }
    }

    #[test]
    fn any_other_body_counts_byte_by_byte() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(SMALL_BODY_BYTES_MAX));
        for (content_type, body) in [
            ("text/csv", "{}"),
            ("application/x-ndjson", "{}"),
            ("application/json", ""),
            ("application/json", "{"),
            ("application/json", "[]"),
            ("application/json", r#"{"amount":1,"amount":2}"#),
            ("application/json", long.as_str()),
        ] {
            assert_eq!(content(content_type, body), None, "{content_type}");
        }
    }
}
