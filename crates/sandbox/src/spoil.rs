//! Applies a fault to an answer: sends the fault's refusal in its place, or makes its body unreadable.

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
};
use serde_json::json;

use crate::faults::{Effect, FaultKind};
use crate::reply::{AuthorityReply, Refusal};

const GARBAGE_BODY: &str = "<html><body>\u{fffd}\u{fffd} gateway {\"code\":";

/// Returns the refusal that is sent without performing the operation; `None` for a fault that sends no refusal.
pub(crate) fn early_refusal(effect: &Effect) -> Option<Refusal> {
    Some(match effect.kind {
        FaultKind::ServerError => {
            Refusal::server_error(effect.status.unwrap_or(500), "internal server error")
        }
        FaultKind::Outage => {
            Refusal::server_error(effect.status.unwrap_or(503), "service unavailable")
        }
        FaultKind::Busy => Refusal::ambiguous(effect.status.unwrap_or(400)),
        FaultKind::Throttled => Refusal::new(429, "too many requests"),
        FaultKind::WrongKey => Refusal::wrong_key(),
        _ => return None,
    })
}

/// Returns the HTTP response for this answer. `Garbage`, `Xml` and `MissingFields` spoil the body and keep the status.
pub(crate) fn spoilt_response(kind: FaultKind, reply: &AuthorityReply) -> HttpResponse {
    match kind {
        FaultKind::Garbage => text_response(reply, "text/html", GARBAGE_BODY.to_owned()),
        FaultKind::Xml => {
            let body = format!("<response><code>{}</code></response>", reply.status);
            text_response(reply, "application/xml", body)
        }
        FaultKind::MissingFields => plain_response(&AuthorityReply::without_envelope(
            reply.status,
            json!({ "code": reply.status }),
        )),
        _ => plain_response(reply),
    }
}

/// Returns the HTTP response for this answer, without a fault.
pub(crate) fn plain_response(reply: &AuthorityReply) -> HttpResponse {
    let mut response = HttpResponse::build(status_code(reply));
    if let Some(seconds) = reply.retry_after_s {
        response.insert_header((RETRY_AFTER, seconds));
    }
    response.json(&reply.body)
}

fn text_response(reply: &AuthorityReply, content_type: &str, body: String) -> HttpResponse {
    HttpResponse::build(status_code(reply))
        .insert_header((CONTENT_TYPE, content_type))
        .body(body)
}

fn status_code(reply: &AuthorityReply) -> StatusCode {
    StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
