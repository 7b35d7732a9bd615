//! Handles every call to the authority: logs it, checks the keys, selects a fault, waits for a free slot, and performs
//! the operation.
//!
//! An operation does not know faults. It only reads fields of the call that a fault has set, such as `offline`.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{self, Bytes, Data, ServiceConfig},
};

use crate::call::Call;
use crate::calls::{ArrivedCall, CallEnding, Recording};
use crate::clock;
use crate::faults::{Effect, FaultContext, FaultKind, fault_for_all, is_offline, magic_effect};
use crate::operations;
use crate::reply::{AuthorityReply, Refusal};
use crate::route::Operation;
use crate::spoil::{self, plain_response, spoilt_response};
use crate::state::State;
use crate::wire;

/// The simulator closes a stalled connection after this time, so that abandoned connections do not pile up.
const STALL: Duration = Duration::from_mins(10);

pub(crate) fn routes(routes: &mut ServiceConfig) {
    routes.route("/api/v1/{path:.*}", web::to(answer_call));
    routes.route("/api/{path:.*}", web::to(answer_call));
    routes.route("/api", web::to(answer_call));
    routes.default_service(web::to(answer_call));
}

async fn answer_call(request: HttpRequest, body: Bytes, state: Data<State>) -> HttpResponse {
    let call = Call::read(&request, &body);
    let mut recording = state.calls.begin(&ArrivedCall {
        method: request.method().as_str(),
        path: request.path(),
        operation: call.as_ref().map(|call| call.operation),
        irn: call.as_ref().and_then(Call::irn),
    });
    let Some(mut call) = call else {
        return record_and_respond(&mut recording, &Refusal::unknown_route().reply("", ""));
    };
    if let Some(refusal) = check_keys(&call, &state) {
        return record_and_respond(&mut recording, &refusal_reply(&call, &state, &refusal));
    }
    match count_and_find_fault(&mut call, &state) {
        None => record_and_respond(&mut recording, &perform_with_latency(&call, &state).await),
        Some(effect) => apply_fault(&request, &call, &state, effect, &mut recording).await,
    }
}

fn check_keys(call: &Call, state: &State) -> Option<Refusal> {
    let settings = &state.settings;
    let fits = call.api_key == settings.api_key && call.api_secret == settings.api_secret;
    (!fits && !call.operation.is_public()).then(Refusal::wrong_key)
}

/// Counts the call and returns the effect of its fault, if any. Sets `call.offline` and `call.unhealthy`.
fn count_and_find_fault(call: &mut Call, state: &State) -> Option<Effect> {
    let irn = call.irn().map(str::to_owned);
    call.nth = state
        .ledger
        .lock()
        .tally
        .count(call.operation, irn.as_deref().unwrap_or_default());
    let moment = fault_context(call);
    if let Some(Err(error)) = fault_for_all(&moment).map(|order| state.add_fault(order)) {
        tracing::warn!(error, "a magic word gave an invalid fault");
    }
    let effect = state
        .faults
        .apply(state.seed(), &moment)
        .or_else(|| magic_effect(&moment));
    let kind = effect.map(|effect| effect.kind);
    call.offline =
        kind == Some(FaultKind::AccessPointOffline) || irn.as_deref().is_some_and(is_offline);
    call.unhealthy = kind == Some(FaultKind::HealthDown);
    effect
}

fn fault_context(call: &Call) -> FaultContext<'_> {
    FaultContext {
        operation: call.operation,
        irn: call.irn(),
        nth: call.nth,
        at: clock::now(),
    }
}

/// Handles a call with a fault. A latency delays only the answer: the operation itself is performed at once.
async fn apply_fault(
    request: &HttpRequest,
    call: &Call,
    state: &State,
    effect: Effect,
    recording: &mut Recording<'_>,
) -> HttpResponse {
    let reply = match (spoil::early_refusal(&effect), effect.kind) {
        (Some(refusal), _) => {
            let mut reply = refusal_reply(call, state, &refusal);
            reply.retry_after_s = effect.retry_after();
            Some(reply)
        }
        (None, FaultKind::Reset | FaultKind::Stall) => None,
        (None, _) => Some(perform_with_latency(call, state).await),
    };
    tokio::time::sleep(Duration::from_millis(effect.latency_ms)).await;
    if let Some(reply) = reply.filter(|_| effect.kind.is_answered()) {
        recording.ending = CallEnding::Answered(reply.status);
        return spoilt_response(effect.kind, &reply);
    }
    if effect.kind.is_stall() {
        tokio::time::sleep(STALL).await;
    }
    recording.ending = CallEnding::Dropped;
    if effect.kind == FaultKind::Reset {
        wire::reset_connection(request)
    } else {
        wire::drop_reply()
    }
}

/// Waits for a free slot and performs the operation. Answers after the operation's latency.
async fn perform_with_latency(call: &Call, state: &State) -> AuthorityReply {
    let slot = state
        .latencies
        .acquire(state.seed(), &fault_context(call))
        .await;
    let reply = perform(call, state);
    if let Some(slot) = slot {
        slot.sleep().await;
    }
    reply
}

fn perform(call: &Call, state: &State) -> AuthorityReply {
    match operations::perform(call, state) {
        Ok(data) if call.operation == Operation::Root => {
            AuthorityReply::without_envelope(200, data)
        }
        Ok(data) => {
            let data = state.dialect().shape_data(call.operation, data);
            AuthorityReply::success(call.operation.success_code(), &data)
        }
        Err(refusal) => refusal_reply(call, state, &refusal),
    }
}

fn refusal_reply(call: &Call, state: &State, refusal: &Refusal) -> AuthorityReply {
    let name = call.operation.name();
    let id = format!("{name}-{}", clock::now().as_nanosecond());
    refusal
        .clone()
        .in_dialect(state.dialect())
        .reply(&id, &format!("{name}_handler"))
}

fn record_and_respond(recording: &mut Recording<'_>, reply: &AuthorityReply) -> HttpResponse {
    recording.ending = CallEnding::Answered(reply.status);
    plain_response(reply)
}
