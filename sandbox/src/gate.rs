//! The way of every call to the authority: record, keys, count, fault, operation.
//!
//! The gate is the only place where a fault touches a call. Operations never see faults: they see conditions, such
//! as an access point that is offline.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Bytes, Data, ServiceConfig},
};

use crate::{
    call::Call,
    calls::{Arrival, Ending, Recording},
    clock,
    faults::{Effect, FaultKind, Moment, is_offline, magic},
    operations,
    reply::{Refusal, Reply},
    route::Operation,
    spoil::{self, plain, spoilt},
    state::State,
    wire,
};

pub(crate) fn routes(routes: &mut ServiceConfig) {
    routes.route("/api/v1/{path:.*}", web::to(answer));
    routes.route("/api/{path:.*}", web::to(answer));
    routes.route("/api", web::to(answer));
    routes.default_service(web::to(answer));
}

async fn answer(request: HttpRequest, body: Bytes, state: Data<State>) -> HttpResponse {
    let call = Call::read(&request, &body);
    let mut recording = state.calls.begin(&Arrival {
        method: request.method().as_str(),
        path: request.path(),
        operation: call.as_ref().map(|call| call.operation),
        irn: call.as_ref().and_then(Call::irn),
    });
    let Some(mut call) = call else {
        return send(&mut recording, &Refusal::unknown_route().reply("", ""));
    };
    if let Some(refusal) = refuse_keys(&call, &state) {
        return send(&mut recording, &fail(&call, &refusal));
    }
    match strike(&mut call, &state) {
        None => send(&mut recording, &perform(&call, &state)),
        Some(effect) => suffer(&request, &call, &state, effect, &mut recording).await,
    }
}

fn refuse_keys(call: &Call, state: &State) -> Option<Refusal> {
    let settings = &state.settings;
    let fits = call.api_key == settings.api_key && call.api_secret == settings.api_secret;
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

/// A call that a fault hits. What is late is the answer: the effect, if there is one, happens at once.
async fn suffer(
    request: &HttpRequest,
    call: &Call,
    state: &State,
    effect: Effect,
    recording: &mut Recording<'_>,
) -> HttpResponse {
    let reply = match spoil::prevented(&effect) {
        _ if effect.kind == FaultKind::Reset => None,
        Some(refusal) => {
            let mut reply = fail(call, &refusal);
            reply.retry_after_s = effect.retry_after();
            Some(reply)
        }
        None => Some(perform(call, state)).filter(|_| effect.kind != FaultKind::CommitThenDrop),
    };
    tokio::time::sleep(Duration::from_millis(effect.latency_ms)).await;
    if let Some(reply) = reply {
        recording.ending = Ending::Answered(reply.status);
        return spoilt(effect.kind, &reply);
    }
    recording.ending = Ending::Dropped;
    if effect.kind == FaultKind::Reset { wire::reset(request) } else { wire::drop_reply() }
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

fn send(recording: &mut Recording<'_>, reply: &Reply) -> HttpResponse {
    recording.ending = Ending::Answered(reply.status);
    plain(reply)
}
