//! A notification in the format of its receiver, and what the receiver's answer means there. An empty answer with
//! a 2xx is taken at its word; one that is none of the format is not, since sign-in pages come with a 200 too.

use std::borrow::Cow;

use super::{graphql, jsonrpc, odata, soap};
use crate::domain::integration::Format;
use crate::webhook::attempt::{Attempt, Outcome};

/// What is sent: these headers beside the signature's, and exactly these bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter<'n> {
    pub headers: Vec<(&'static str, String)>,
    pub body: Cow<'n, str>,
}

impl<'n> Letter<'n> {
    /// Bytes of an answer that have to be read to know what it means.
    pub const ANSWER_MAX: usize = 64 * 1_024;

    /// Writes a notification, which is the JSON text that everybody gets who wants no other format.
    pub fn written(format: &Format, id: &str, notification: &'n str) -> Self {
        let letter = |headers: &[(&'static str, &str)], body: String| Self {
            headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            body: Cow::Owned(body),
        };
        match format {
            Format::Rest => Self { headers: Vec::new(), body: Cow::Borrowed(notification) },
            Format::Soap { action, namespace, method } => {
                let action = format!("\"{action}\"");
                let headers = [("content-type", soap::CONTENT_TYPE), ("soapaction", action.as_str())];
                letter(&headers, soap::written((namespace, method), notification))
            }
            Format::GraphQl { mutation } => {
                letter(&[("accept", graphql::ACCEPT)], graphql::written(mutation, notification))
            }
            Format::OData => letter(&odata::HEADERS, odata::written(notification)),
            Format::JsonRpc { method } => {
                letter(&[("accept", "application/json")], jsonrpc::written(method, id, notification))
            }
        }
    }

    /// How much of an answer has to be kept for `judged`, where its receiver wants so much of it.
    pub fn keep(format: &Format, keep: usize) -> usize {
        if is_judged(format) { Self::ANSWER_MAX.max(keep) } else { keep }
    }
}

/// The attempt as the format has it, with no more of the answer than is wanted.
pub fn judged(mut attempt: Attempt, (format, id): (&Format, &str), keep: usize) -> Attempt {
    let status = attempt.status.filter(|_| attempt.is_delivered() && is_judged(format));
    if let Some(status) = status.filter(|_| !is_taken(format, id, attempt.response_head.trim())) {
        attempt.outcome = Outcome::NotTaken(status);
    }
    attempt.response_head.truncate(attempt.response_head.floor_char_boundary(keep));
    attempt
}

fn is_judged(format: &Format) -> bool {
    matches!(format, Format::Soap { .. } | Format::GraphQl { .. } | Format::JsonRpc { .. })
}

fn is_taken(format: &Format, id: &str, answer: &str) -> bool {
    match format {
        Format::Rest | Format::OData => true,
        _ if answer.is_empty() => true,
        Format::Soap { .. } => soap::is_taken(answer),
        Format::GraphQl { .. } => graphql::is_taken(answer),
        Format::JsonRpc { .. } => jsonrpc::is_taken(id, answer),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOTIFICATION: &str = r#"{"id":"e1","type":"invoice.created","data":{"irn":"I1"}}"#;

    fn answered(status: u16, body: &str) -> Attempt {
        Attempt {
            status: Some(status),
            response_head: body.to_owned(),
            duration: Duration::ZERO,
            ..Attempt::unanswered(Outcome::of_answer(status, false))
        }
    }

    #[test]
    fn plain_notifications_are_sent_as_they_are() {
        let letter = Letter::written(&Format::Rest, "e1", NOTIFICATION);
        assert!(matches!(letter.body, Cow::Borrowed(NOTIFICATION)) && letter.headers.is_empty());
        assert_eq!(Letter::keep(&Format::Rest, 7), 7);
    }

    #[test]
    fn an_error_in_an_answer_with_a_200_is_no_delivery() {
        let call = Format::JsonRpc { method: "notify".into() };
        let error = r#"{"jsonrpc":"2.0","id":"e1","error":{"code":-32601,"message":"no such method"}}"#;
        let attempt = judged(answered(200, error), (&call, "e1"), 12);
        assert_eq!(attempt.outcome, Outcome::NotTaken(200));
        assert_eq!((attempt.outcome.name(), attempt.response_head.as_str()), ("rejected", r#"{"jsonrpc":""#));
        for (format, status, body, outcome) in [
            (&call, 200, "", Outcome::Delivered),
            (&call, 204, " \n", Outcome::Delivered),
            (&call, 500, error, Outcome::Rejected(500)),
            (&call, 200, "<html>Sign in</html>", Outcome::NotTaken(200)),
            (&Format::Rest, 200, error, Outcome::Delivered),
            (&Format::OData, 201, error, Outcome::Delivered),
        ] {
            assert_eq!(judged(answered(status, body), (format, "e1"), 9).outcome, outcome, "{body}");
        }
    }
}
