//! Writes a notification in the receiver's format and interprets the response. If the format has a result in the body,
//! a 2xx with another body is no success: the body may be a sign-in page.

use std::borrow::Cow;

use super::{graphql, jsonrpc, odata, soap};
use crate::attempt::{AttemptOutcome, AttemptResult};

/// The format of a body, with the names that it needs, such as the SOAP action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat<'a> {
    Rest,
    Soap {
        action: &'a str,
        namespace: &'a str,
        method: &'a str,
    },
    GraphQl {
        mutation: &'a str,
    },
    OData {
        /// The properties of the entity, other than `Data`, each with the JSON pointer of its value in the
        /// notification.
        properties: &'a [(&'a str, &'a str)],
    },
    JsonRpc {
        method: &'a str,
    },
}

/// The exact body to send, and the headers of the data format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormattedRequest<'n> {
    pub headers: Vec<(&'static str, String)>,
    pub body: Cow<'n, str>,
}

impl<'n> FormattedRequest<'n> {
    /// The number of bytes of a response body that are read to find the result in it.
    pub const ANSWER_BYTES_MAX: usize = 64 * 1_024;

    /// Writes a notification in a format. `notification` is JSON; `id` is the id of the event.
    pub fn new(format: BodyFormat<'_>, id: &str, notification: &'n str) -> Self {
        let wrapped = |headers: &[(&'static str, &str)], body: String| Self {
            headers: headers
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            body: Cow::Owned(body),
        };
        match format {
            BodyFormat::Rest => Self {
                headers: Vec::new(),
                body: Cow::Borrowed(notification),
            },
            BodyFormat::Soap {
                action,
                namespace,
                method,
            } => {
                let action = format!("\"{action}\"");
                let headers = [
                    ("content-type", soap::CONTENT_TYPE),
                    ("soapaction", action.as_str()),
                ];
                wrapped(&headers, soap::render(namespace, method, notification))
            }
            BodyFormat::GraphQl { mutation } => wrapped(
                &[("accept", graphql::ACCEPTED_TYPES)],
                graphql::render(mutation, notification),
            ),
            BodyFormat::OData { properties } => {
                wrapped(&odata::HEADERS, odata::render(properties, notification))
            }
            BodyFormat::JsonRpc { method } => wrapped(
                &[("accept", "application/json")],
                jsonrpc::render(method, id, notification),
            ),
        }
    }

    /// Returns how many bytes of the response body to read: `keep_bytes`, or more if `interpret_body` needs them.
    pub fn body_bytes_to_keep(format: BodyFormat<'_>, keep_bytes: usize) -> usize {
        if has_result_in_body(format) {
            Self::ANSWER_BYTES_MAX.max(keep_bytes)
        } else {
            keep_bytes
        }
    }
}

/// Marks a delivered attempt as not accepted if the response body does not confirm the message. Then cuts the body to
/// `keep_bytes` bytes.
pub fn interpret_body(
    mut attempt: AttemptResult,
    format: BodyFormat<'_>,
    id: &str,
    keep_bytes: usize,
) -> AttemptResult {
    let status = attempt
        .status
        .filter(|_| attempt.is_delivered() && has_result_in_body(format));
    if let Some(status) = status.filter(|_| !is_accepted(format, id, attempt.response_head.trim()))
    {
        attempt.outcome = AttemptOutcome::NotAccepted(status);
    }
    attempt
        .response_head
        .truncate(attempt.response_head.floor_char_boundary(keep_bytes));
    attempt
}

fn has_result_in_body(format: BodyFormat<'_>) -> bool {
    matches!(
        format,
        BodyFormat::Soap { .. } | BodyFormat::GraphQl { .. } | BodyFormat::JsonRpc { .. }
    )
}

fn is_accepted(format: BodyFormat<'_>, id: &str, answer: &str) -> bool {
    match format {
        BodyFormat::Rest | BodyFormat::OData { .. } => true,
        _ if answer.is_empty() => true,
        BodyFormat::Soap { .. } => soap::is_accepted(answer),
        BodyFormat::GraphQl { .. } => graphql::is_accepted(answer),
        BodyFormat::JsonRpc { .. } => jsonrpc::is_accepted(id, answer),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOTIFICATION: &str = r#"{"id":"e1","type":"book.created","data":{"isbn":"I1"}}"#;

    fn attempt_result(status: u16, body: &str) -> AttemptResult {
        AttemptResult {
            status: Some(status),
            response_head: body.to_owned(),
            duration: Duration::ZERO,
            ..AttemptResult::without_response(AttemptOutcome::from_response(status, false))
        }
    }

    #[test]
    fn a_rest_notification_is_sent_as_it_is() {
        let request = FormattedRequest::new(BodyFormat::Rest, "e1", NOTIFICATION);
        assert!(matches!(request.body, Cow::Borrowed(NOTIFICATION)) && request.headers.is_empty());
        assert_eq!(FormattedRequest::body_bytes_to_keep(BodyFormat::Rest, 7), 7);
    }

    #[test]
    fn an_error_in_an_answer_with_a_200_is_no_delivery() {
        let call = BodyFormat::JsonRpc { method: "notify" };
        let entity = BodyFormat::OData { properties: &[] };
        let error =
            r#"{"jsonrpc":"2.0","id":"e1","error":{"code":-32601,"message":"no such method"}}"#;
        let attempt = interpret_body(attempt_result(200, error), call, "e1", 12);
        assert_eq!(attempt.outcome, AttemptOutcome::NotAccepted(200));
        assert_eq!(
            (attempt.outcome.name(), attempt.response_head.as_str()),
            ("rejected", r#"{"jsonrpc":""#)
        );
        for (format, status, body, outcome) in [
            (call, 200, "", AttemptOutcome::Delivered),
            (call, 204, " \n", AttemptOutcome::Delivered),
            (call, 500, error, AttemptOutcome::Rejected(500)),
            (
                call,
                200,
                "<html>Sign in</html>",
                AttemptOutcome::NotAccepted(200),
            ),
            (BodyFormat::Rest, 200, error, AttemptOutcome::Delivered),
            (entity, 201, error, AttemptOutcome::Delivered),
        ] {
            assert_eq!(
                interpret_body(attempt_result(status, body), format, "e1", 9).outcome,
                outcome,
                "{body}"
            );
        }
    }
}
