//! The way of every call to the authority: count, keys, fault, operation, record.
//!
//! The gate is the only place where a fault touches a call. Operations never see faults: they see conditions, such
//! as an access point that is offline.

use std::{collections::HashMap, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    web::{self, Bytes, Data, Query, ServiceConfig},
};
use serde_json::{Value, json};

use crate::{
    calls::{Ending, Recording},
    clock,
    faults::{Effect, FaultKind, Moment, is_offline, magic},
    operations,
    reply::{Refusal, Reply},
    route::{Operation, Route, Subject},
    state::State,
    wire,
};

/// A call as an operation sees it.
pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) subject: Subject,
    pub(crate) query: HashMap<String, String>,
    /// Null when there was none or it was no JSON.
    pub(crate) body: Value,
    pub(crate) api_key: String,
    /// The customer's access point does not answer.
    pub(crate) offline: bool,
    pub(crate) unhealthy: bool,
}

impl Call {
    /// The reference number it is about: of the path, else of the body.
    pub(crate) fn irn(&self) -> Option<&str> {
        match &self.subject {
            Subject::Irn(irn) => Some(irn),
            _ => self.body["irn"].as_str(),
        }
    }
}

pub(crate) fn routes(routes: &mut ServiceConfig) {
    routes.route("/api/v1/{path:.*}", web::to(answer));
    routes.route("/api/{path:.*}", web::to(answer));
    routes.route("/api", web::to(answer));
    routes.default_service(web::to(answer));
}

async fn answer(request: HttpRequest, body: Bytes, state: Data<State>) -> HttpResponse {
    let mut recording = state.calls.begin(request.method().as_str(), request.path());
    let Some(mut call) = read(&request, &body) else {
        let reply = Refusal::unknown_route().reply("", "");
        recording.ending = Ending::Answered(reply.status);
        return http(&reply);
    };
    recording.operation = Some(call.operation);
    recording.irn = call.irn().map(str::to_owned);
    if let Some(refusal) = refuse_keys(&request, &call, &state) {
        return finish(&mut recording, &fail(&call, &refusal));
    }
    let effect = strike(&mut call, &state);
    if let Some(kind) = effect.map(|effect| effect.kind) {
        tracing::debug!(?kind, operation = call.operation.name(), "a fault strikes");
    }
    suffer(&request, &call, &state, effect, &mut recording).await
}

fn read(request: &HttpRequest, body: &[u8]) -> Option<Call> {
    let path = match request.match_info().get("path") {
        Some(path) => path,
        None if matches!(request.path(), "/api" | "/api/") => "",
        None => return None,
    };
    let path = path.strip_prefix("v1").filter(|rest| rest.is_empty()).unwrap_or(path);
    let route = Route::find(request.method().as_str(), path)?;
    let query = Query::from_query(request.query_string()).map(Query::into_inner).unwrap_or_default();
    Some(Call {
        operation: route.operation,
        subject: route.subject,
        query,
        body: serde_json::from_slice(body).unwrap_or_default(),
        api_key: header(request, "x-api-key").to_owned(),
        offline: false,
        unhealthy: false,
    })
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> &'a str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn refuse_keys(request: &HttpRequest, call: &Call, state: &State) -> Option<Refusal> {
    let (key, secret) = (&state.settings.api_key, &state.settings.api_secret);
    let fits = call.api_key == *key && header(request, "x-api-secret") == secret;
    (!fits && !call.operation.is_public()).then(|| Refusal::new(400, "unable to validate api key"))
}

/// Counts the call and says what goes wrong with it; conditions are noted on the call itself.
fn strike(call: &mut Call, state: &State) -> Option<Effect> {
    let irn = call.irn().map(str::to_owned);
    let nth = state.books.open().tally.count(call.operation, irn.as_deref().unwrap_or_default());
    let moment = Moment { operation: call.operation, irn: irn.as_deref(), nth, at: clock::now() };
    let effect = state.faults.strike(&moment).or_else(|| magic(&moment));
    let kind = effect.map(|effect| effect.kind);
    call.offline = kind == Some(FaultKind::AccessPointOffline) || irn.as_deref().is_some_and(is_offline);
    call.unhealthy = kind == Some(FaultKind::HealthDown);
    effect
}

async fn suffer(
    request: &HttpRequest,
    call: &Call,
    state: &State,
    effect: Option<Effect>,
    recording: &mut Recording<'_>,
) -> HttpResponse {
    let Some(effect) = effect else { return finish(recording, &perform(call, state)) };
    let reply = match effect.kind {
        FaultKind::Reset => None,
        FaultKind::CommitThenDrop => {
            perform(call, state);
            None
        }
        kind => Some(prevented(call, kind, &effect).unwrap_or_else(|| perform(call, state))),
    };
    tokio::time::sleep(Duration::from_millis(effect.latency_ms)).await;
    match reply {
        Some(reply) => spoil(recording, effect.kind, reply),
        None => {
            recording.ending = Ending::Dropped;
            if effect.kind == FaultKind::Reset { wire::reset(request) } else { wire::drop_reply() }
        }
    }
}

/// The answer of a fault that keeps the operation from happening.
fn prevented(call: &Call, kind: FaultKind, effect: &Effect) -> Option<Reply> {
    let refusal = match kind {
        FaultKind::ServerError => Refusal::new(effect.status.unwrap_or(500), "internal server error"),
        FaultKind::Outage => Refusal::new(effect.status.unwrap_or(503), "service unavailable"),
        FaultKind::Busy => Refusal::ambiguous(effect.status.unwrap_or(400)),
        FaultKind::Throttled => Refusal::new(429, "too many requests"),
        _ => return None,
    };
    let mut reply = fail(call, &refusal);
    reply.retry_after_s = (kind == FaultKind::Throttled).then_some(effect.retry_after_s);
    Some(reply)
}

/// Sends an answer whose operation happened, unreadable where the fault says so.
fn spoil(recording: &mut Recording<'_>, kind: FaultKind, mut reply: Reply) -> HttpResponse {
    let (content_type, body) = match kind {
        FaultKind::Garbage => ("text/html", "<html><body>\u{fffd}\u{fffd} gateway {\"code\":".to_owned()),
        FaultKind::Xml => ("application/xml", format!("<response><code>{}</code></response>", reply.status)),
        FaultKind::MissingFields => {
            reply.body = json!({ "code": reply.status });
            return finish(recording, &reply);
        }
        _ => return finish(recording, &reply),
    };
    recording.ending = Ending::Answered(reply.status);
    HttpResponse::build(status(&reply)).insert_header((CONTENT_TYPE, content_type)).body(body)
}

fn perform(call: &Call, state: &State) -> Reply {
    match operations::perform(call, state) {
        Ok(data) if call.operation == Operation::Root => Reply::bare(200, data),
        Ok(data) => Reply::success(call.operation.success_code(), &data),
        Err(refusal) => fail(call, &refusal),
    }
}

fn fail(call: &Call, refusal: &Refusal) -> Reply {
    let name = call.operation.name();
    let id = format!("{name}-{}", clock::now().as_nanosecond());
    refusal.reply(&id, &format!("{name}_handler"))
}

fn finish(recording: &mut Recording<'_>, reply: &Reply) -> HttpResponse {
    recording.ending = Ending::Answered(reply.status);
    http(reply)
}

fn http(reply: &Reply) -> HttpResponse {
    let mut response = HttpResponse::build(status(reply));
    if let Some(seconds) = reply.retry_after_s {
        response.insert_header((RETRY_AFTER, seconds));
    }
    response.json(&reply.body)
}

fn status(reply: &Reply) -> StatusCode {
    StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
