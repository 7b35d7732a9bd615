//! What a fault makes of an answer.
//!
//! Some faults keep the operation from happening and answer in its place; others let it happen and make the answer
//! unreadable, under the status it would have had.

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
};
use serde_json::json;

use crate::faults::{Effect, FaultKind};
use crate::reply::{Refusal, Reply};

const GARBAGE: &str = "<html><body>\u{fffd}\u{fffd} gateway {\"code\":";

/// The answer of a fault that keeps the operation from happening.
pub(crate) fn prevented(effect: &Effect) -> Option<Refusal> {
    let status = |usual| effect.status.unwrap_or(usual);
    Some(match effect.kind {
        FaultKind::ServerError => Refusal::breakdown(status(500), "internal server error"),
        FaultKind::Outage => Refusal::breakdown(status(503), "service unavailable"),
        FaultKind::Busy => Refusal::ambiguous(status(400)),
        FaultKind::Throttled => Refusal::new(429, "too many requests"),
        FaultKind::WrongKey => Refusal::wrong_key(),
        _ => return None,
    })
}

/// An answer as the fault leaves it.
pub(crate) fn spoilt(kind: FaultKind, reply: &Reply) -> HttpResponse {
    let xml = || format!("<response><code>{}</code></response>", reply.status);
    match kind {
        FaultKind::Garbage => text(reply, "text/html", GARBAGE.to_owned()),
        FaultKind::Xml => text(reply, "application/xml", xml()),
        FaultKind::MissingFields => plain(&Reply::bare(reply.status, json!({ "code": reply.status }))),
        _ => plain(reply),
    }
}

/// An answer as it is.
pub(crate) fn plain(reply: &Reply) -> HttpResponse {
    let mut response = HttpResponse::build(status(reply));
    if let Some(seconds) = reply.retry_after_s {
        response.insert_header((RETRY_AFTER, seconds));
    }
    response.json(&reply.body)
}

fn text(reply: &Reply, content_type: &str, body: String) -> HttpResponse {
    HttpResponse::build(status(reply)).insert_header((CONTENT_TYPE, content_type)).body(body)
}

fn status(reply: &Reply) -> StatusCode {
    StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
