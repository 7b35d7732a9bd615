//! The answer of a webhook endpoint to a test delivery. A body that is not valid JSON is shown as text.

use serde_json::Value;
use webhook_client::AttemptResult;

use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::{ApiError, capitalize};

#[derive(Debug)]
pub(crate) struct EndpointAnswer {
    pub(crate) status: u16,
    /// The body as JSON or as text; null if the answer has no body.
    pub(crate) body: Value,
}

impl EndpointAnswer {
    /// Returns the answer of the endpoint, whatever its status is. Returns an error if the endpoint did not answer.
    pub(crate) fn from_attempt(attempt: &AttemptResult) -> Result<Self, ApiError> {
        let status = attempt.status.ok_or_else(|| {
            let why = attempt.outcome.failure_sentence().unwrap_or_default();
            ApiError::new(ErrorCode::WebhookUnreachable, capitalize(&why))
        })?;
        let text = &attempt.response_head;
        let body = strict_json::from_untrusted(text.as_bytes()).unwrap_or_else(|_| {
            if text.is_empty() {
                Value::Null
            } else {
                Value::from(text.as_str())
            }
        });
        Ok(Self { status, body })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use webhook_client::{AttemptOutcome, PhaseTimes, TransportFault};

    use super::*;

    fn attempt(outcome: AttemptOutcome, status: Option<u16>, text: &str) -> AttemptResult {
        let response_head = text.to_owned();
        let phases = PhaseTimes::default();
        AttemptResult {
            status,
            duration: Duration::ZERO,
            phases,
            response_head,
            ..AttemptResult::without_response(outcome)
        }
    }

    #[test]
    fn an_answer_that_is_valid_json_is_shown_as_json() {
        let deep = "[".repeat(100_000);
        for (text, body) in [
            (
                r#"{"ok": true, "n": 1.50}"#,
                strict_json::from_trusted(r#"{"ok": true, "n": 1.50}"#).unwrap(),
            ),
            ("", Value::Null),
            ("thanks", json!("thanks")),
            (r#"{"cut": "#, json!(r#"{"cut": "#)),
            (deep.as_str(), json!(deep)),
        ] {
            let answer = EndpointAnswer::from_attempt(&attempt(
                AttemptOutcome::Rejected(500),
                Some(500),
                text,
            ))
            .unwrap();
            assert_eq!((answer.status, answer.body), (500, body));
        }
    }

    #[test]
    fn no_answer_is_a_failure_that_says_why() {
        let error = EndpointAnswer::from_attempt(&attempt(
            AttemptOutcome::Unreachable(TransportFault::Dns),
            None,
            "",
        ))
        .unwrap_err();
        assert_eq!(
            (error.status.as_u16(), error.code),
            (502, ErrorCode::WebhookUnreachable)
        );
        assert_eq!(&*error.message, "The endpoint's name does not resolve");
    }
}
