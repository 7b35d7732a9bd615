//! A request with an idempotency key, from its arrival to its response.
//!
//! `answer_write` runs around the handler. It returns the response that is stored for the key, or executes the request
//! and stores its response. A repeated key is accepted only with the same request; the policy middleware has read its
//! body before. The handler sends its command through `IdempotentRequest`, so that the response is stored in the transaction
//! of the command. A stored response is replayed with `idempotent-replayed: true`. Temporary failures are not stored.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, HttpResponse, web};
use database::StoreError;
use tokio::time::sleep;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::handle::{OnceClaim, Render, TaxpayerError, TaxpayerHandle};
use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::claim::{IdempotencyClaim, StoredResponse};
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::extract::role::NeedsRole;
use crate::http::idempotency::in_progress::{InProgressGuard, KeyInUse};
use crate::http::idempotency::key::idempotency_key;
use crate::http::idempotency::request_claim::make_claim;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::respond::logged_failure::LoggedFailure;
use crate::http::respond::render::{self, ResponsePrefs};
use crate::http::state::ApiState;
use crate::store::accounts::key_leases;
use crate::store::idempotency::{self, KeyEntry, StoredKey};

const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The number of times that a response is stored if the database fails, and the pause between two tries. The caller
/// waits meanwhile.
const STORE_TRIES_MAX: u32 = 3;
const STORE_RETRY_DELAY: Duration = Duration::from_millis(200);

/// The result of looking up the idempotency key of a request.
enum KeyStatus {
    /// The request has no key.
    Unkeyed,
    /// No earlier request had this key.
    First(IdempotencyClaim, InProgressGuard),
    Repeated(HttpResponse),
}

/// The claim of a request on its idempotency key; `None` if the request has no key.
#[derive(Debug, Clone)]
pub(crate) struct IdempotentRequest(Option<IdempotencyClaim>);

/// Marks a response that the command stored in its own transaction, so that it is not stored again.
#[derive(Debug, Clone, Copy)]
struct StoredByCommand;

/// Answers a write request. If it has an idempotency key, it is executed at most once for that key.
pub(crate) async fn answer_write(
    state: &web::Data<ApiState>,
    account: KeyOwner,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    match look_up_key(state, account, &request).await {
        Err(error) => Ok(request.error_response(error)),
        Ok(KeyStatus::Unkeyed) => next.call(request).await,
        Ok(KeyStatus::Repeated(answer)) => Ok(request.into_response(answer)),
        Ok(KeyStatus::First(claim, _guard)) => {
            request.extensions_mut().insert(claim.clone());
            let (request, answer) = next.call(request).await?.into_parts();
            let answer = store_final_response(state, claim, &request, answer)
                .await
                .unwrap_or_else(HttpResponse::from_error);
            Ok(ServiceResponse::new(request, answer))
        }
    }
}

async fn look_up_key(
    state: &web::Data<ApiState>,
    account: KeyOwner,
    request: &ServiceRequest,
) -> Result<KeyStatus, ApiError> {
    let Some(key) = idempotency_key(request.headers())?.map(str::to_owned) else {
        return Ok(KeyStatus::Unkeyed);
    };
    let claim = make_claim(state, account, &key, request);
    let guard = state
        .in_progress
        .begin_request(&claim)
        .map_err(key_in_use_error)?;
    match idempotency::find(&state.store, &claim, state.now()).await? {
        None => Ok(KeyStatus::First(claim, guard)),
        Some(stored_key) => repeated_response(state, &claim, stored_key)
            .await
            .map(KeyStatus::Repeated),
    }
}

fn key_in_use_error(occupied: KeyInUse) -> ApiError {
    if occupied.is_same_request {
        ApiError::idempotency_in_progress()
    } else {
        key_reused_error()
    }
}

fn key_reused_error() -> ApiError {
    let message = "This Idempotency-Key came with another request before. To repeat that request, send it as it was; \
                   use a new key only for something that is to be done in addition";
    ApiError::new(ErrorCode::IdempotencyKeyReused, message)
}

fn secret_shown_once_error() -> ApiError {
    let message = "The request with this Idempotency-Key was carried out, and the secret in its answer is shown \
                   only once; to get another secret, send the request with a new key";
    ApiError::new(ErrorCode::IdempotencyKeyReused, message)
}

/// Returns the stored response. Fails if the key was used for a different request, or if the response contained a
/// secret and was therefore not stored.
async fn repeated_response(
    state: &ApiState,
    claim: &IdempotencyClaim,
    stored_key: StoredKey,
) -> Result<HttpResponse, ApiError> {
    if !stored_key.fingerprint.is_same_request(&claim.fingerprint) {
        return Err(key_reused_error());
    }
    if let Some(answer) = stored_key.answer {
        return Ok(replayed_response(answer));
    }
    // The first request may have rotated an API key and ended before all processes knew the new key. Waits for them.
    key_leases::await_key_change_everywhere(&state.store).await;
    Err(secret_shown_once_error())
}

/// Stores the response of the first request with a key, unless it must not be stored, and returns it.
async fn store_final_response(
    state: &ApiState,
    claim: IdempotencyClaim,
    request: &HttpRequest,
    answer: HttpResponse,
) -> Result<HttpResponse, ApiError> {
    let error = answer
        .error()
        .and_then(|error| error.as_error::<ApiError>());
    // If another request with the same key was first, its response is returned.
    if error.is_some_and(may_result_from_first_request)
        && let Some(stored_key) = idempotency::find(&state.store, &claim, state.now()).await?
    {
        return repeated_response(state, &claim, stored_key).await;
    }
    match error {
        Some(error) if is_final_refusal(error) => {
            let failure = LoggedFailure::from(error);
            let mut answer = store_response(state, claim, render_refusal(request, error)).await?;
            answer.extensions_mut().insert(failure);
            Ok(answer)
        }
        None if must_be_stored(&answer) => store_response(state, claim, answer).await,
        _ => Ok(answer),
    }
}

/// Renders a refusal in the format that this caller prefers.
fn render_refusal(request: &HttpRequest, error: &ApiError) -> HttpResponse {
    let prefs = request
        .extensions()
        .get::<ResponsePrefs>()
        .cloned()
        .unwrap_or_default();
    render::render_failure(error, &prefs)
}

/// Stores a response for its key. If it cannot be stored, this is only logged, because the request was carried out. A
/// repeated request is then executed again.
async fn store_response(
    state: &ApiState,
    claim: IdempotencyClaim,
    answer: HttpResponse,
) -> Result<HttpResponse, ApiError> {
    let answer: StoredResponse = to_stored_response(answer)
        .ok_or_else(|| ApiError::internal("an answer that is no text"))?;
    let entry = KeyEntry {
        claim,
        command_id: None,
        answer: Some(answer.clone()),
    };
    let stored = retry_store(async || {
        idempotency::store_key_without_command(&state.store, entry.clone(), state.now()).await
    });
    if let Err(error) = stored.await {
        tracing::warn!(%error, "an answer could not be kept for its idempotency key");
    }
    Ok(rebuild_response(answer))
}

/// Calls `store_once` again if the database failed, or if it is not known whether the commit happened: the request may
/// have sent a call to the authority, which must not be sent once more. A key that is stored already stays as it is.
async fn retry_store(
    store_once: impl AsyncFn() -> Result<bool, StoreError>,
) -> Result<bool, StoreError> {
    for _ in 1..STORE_TRIES_MAX {
        match store_once().await {
            Err(
                StoreError::Unavailable(_)
                | StoreError::Unsettled
                | StoreError::NotCommitted
                | StoreError::Locked,
            ) => sleep(STORE_RETRY_DELAY).await,
            result => return result,
        }
    }
    store_once().await
}

impl NeedsRole for IdempotentRequest {}

impl FromRequest for IdempotentRequest {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::from_extensions(request)))
    }
}

impl IdempotentRequest {
    /// Returns the claim that `answer_write` has put into the request, for a handler that takes the request itself.
    pub(crate) fn from_extensions(request: &HttpRequest) -> Self {
        Self(request.extensions().get::<IdempotencyClaim>().cloned())
    }

    /// Executes the command. Its transaction also stores the request's idempotency key and the response, which `show`
    /// renders: a second request with this key gets this response, and the command is not executed again. Without a
    /// key, every request executes the command.
    pub(crate) async fn answer_once<C: TaxpayerCommand>(
        self,
        taxpayers: &TaxpayerHandle,
        taxpayer: TaxpayerId,
        command: C,
        show: impl Fn(&C::Output) -> ApiResponse + Send + Sync + 'static,
    ) -> Result<ApiResponse, ApiError> {
        let Some(claim) = self.0 else {
            return Ok(show(&taxpayers.send(taxpayer, command).await?));
        };
        let show = Arc::new(show);
        let render_answer = Arc::clone(&show);
        let render: Render<C::Output> =
            Arc::new(move |output| to_stored_response(render_answer(output).into()));
        let once = OnceClaim {
            claim,
            render: Some(render),
        };
        let output = taxpayers.send_once(taxpayer, command, Some(once)).await?;
        Ok(show(&output).with_extension(StoredByCommand))
    }

    /// Returns the claim, for a change that stores the key itself, in its own transaction.
    pub(crate) fn into_claim(self) -> Option<IdempotencyClaim> {
        self.0
    }

    /// Executes a command whose response contains a secret. Its transaction stores the request's idempotency key, but
    /// never the response: a second request with this key executes nothing and fails.
    pub(crate) async fn send<C: TaxpayerCommand>(
        self,
        taxpayers: &TaxpayerHandle,
        taxpayer: TaxpayerId,
        command: C,
    ) -> Result<C::Output, TaxpayerError> {
        taxpayers
            .send_once(taxpayer, command, self.0.map(OnceClaim::without_answer))
            .await
    }
}

/// Converts a response for storage. Returns `None` if the body is a stream or is not UTF-8.
fn to_stored_response(answer: HttpResponse<BoxBody>) -> Option<StoredResponse> {
    let status = answer.status().as_u16();
    let headers = answer
        .headers()
        .iter()
        .filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.to_string(), value.to_owned()))
        })
        .collect();
    let body = answer.into_body().try_into_bytes().ok()?;
    Some(StoredResponse {
        status,
        headers,
        body: String::from_utf8(body.to_vec()).ok()?,
    })
}

/// Rebuilds the response that was stored.
fn rebuild_response(stored: StoredResponse) -> HttpResponse {
    let mut answer = HttpResponse::build(StatusCode::from_u16(stored.status).unwrap_or_default());
    for (name, value) in stored.headers {
        answer.append_header((name, value));
    }
    answer.body(stored.body)
}

/// Rebuilds the response that was stored, and marks it as a replay. A stored failure also counts as a failure in the
/// access log.
fn replayed_response(stored: StoredResponse) -> HttpResponse {
    let is_failure = stored.status >= StatusCode::BAD_REQUEST.as_u16();
    let failure = is_failure.then(|| LoggedFailure::from_stored_body(&stored.body));
    let mut answer = rebuild_response(stored);
    answer
        .headers_mut()
        .insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
    if let Some(failure) = failure.flatten() {
        answer.extensions_mut().insert(failure);
    }
    answer
}

/// Returns true for a success that has to be stored now. Three kinds of success are not stored: a 202, because the same
/// request later returns the outcome or continues the work; a response with a secret, marked by `Cache-Control`; and a
/// response that the command has already stored.
fn must_be_stored(answer: &HttpResponse) -> bool {
    let is_done = answer.status().is_success() && answer.status() != StatusCode::ACCEPTED;
    let is_already_stored = answer.extensions().get::<StoredByCommand>().is_some();
    is_done && !is_already_stored && !answer.headers().contains_key(CACHE_CONTROL)
}

/// Returns true if the refusal may be an effect of the first request with the same key, which another replica answers
/// or whose caller has gone. That request may have given the invoice a version other than the one in `If-Match`,
/// removed the endpoint, or acknowledged the supplier's invoice. The handler checks these before it sends the command,
/// and only the command recognises the key.
fn may_result_from_first_request(error: &ApiError) -> bool {
    matches!(
        error.code,
        ErrorCode::IdempotencyInProgress
            | ErrorCode::PreconditionFailed
            | ErrorCode::EndpointNotFound
            | ErrorCode::AlreadyAcknowledged
    )
}

/// Returns true if a repetition of the request would be refused again, as after most 409 and 422, so that the refusal
/// is stored for the key. Faults of the body are not final, because the caller may correct the body and keep the key.
/// Errors about the key itself are not final either, because they say nothing about the request.
fn is_final_refusal(error: &ApiError) -> bool {
    let is_never_final = matches!(
        error.code,
        ErrorCode::ValidationFailed
            | ErrorCode::IrnMalformed
            | ErrorCode::IrnServiceIdMismatch
            | ErrorCode::BatchTooLarge
            | ErrorCode::IdempotencyKeyReused
            | ErrorCode::IdempotencyInProgress
    );
    matches!(
        error.status,
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY
    ) && !is_never_final
        && !error.is_temporary
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::domain::kernel::codes::WorkflowStatus;
    use crate::domain::kernel::refusal::Refusal;

    #[actix_rt::test]
    async fn an_answer_is_stored_again_after_a_failure_of_the_database() {
        for (errors, calls_expected, is_stored) in [
            (vec![], 1, true),
            (vec![StoreError::Unsettled], 2, true),
            (vec![StoreError::Unsettled, StoreError::Locked], 3, true),
            (vec![StoreError::Unsettled; 3], 3, false),
            (vec![StoreError::Stale], 1, false),
        ] {
            let calls = Cell::new(0_usize);
            let stored = retry_store(async || {
                let call = calls.replace(calls.get() + 1);
                errors.get(call).cloned().map_or(Ok(true), Err)
            });
            assert_eq!(stored.await.is_ok(), is_stored, "{errors:?}");
            assert_eq!(calls.get(), calls_expected, "{errors:?}");
        }
    }

    #[test]
    fn a_refusal_that_asks_to_send_the_request_again_is_not_kept() {
        let cases = [
            (Refusal::ChangedDuringApproval, false),
            (Refusal::ChangedDuringPreparation, false),
            (Refusal::PaymentUnderWay, false),
            (Refusal::PaidUnderWay, false),
            (Refusal::PaidAtAuthority, true),
            (Refusal::NotYetCorrectable(String::new()), false),
            (Refusal::NotCorrectable(String::new()), true),
            (Refusal::TooManyReplays, false),
            (
                Refusal::BatchBeingImported {
                    import_no: String::new(),
                    done: 0,
                    documents: 1,
                },
                false,
            ),
            (Refusal::ImportEnded, true),
            (Refusal::InvoiceChanged, false),
            (Refusal::CustomerChanged, false),
            (Refusal::InvoiceLocked(WorkflowStatus::Submitted), true),
            (Refusal::IrnContentChanged, true),
            (Refusal::WebhookDisabled, true),
            (Refusal::ReplayEnded, true),
            (Refusal::AlreadyAcknowledged, true),
        ];
        for (refusal, expected) in cases {
            let sentence = refusal.to_string();
            let error = ApiError::from(refusal);
            assert_eq!(is_final_refusal(&error), expected, "{sentence}");
        }
    }

    #[test]
    fn a_refusal_that_the_first_request_may_have_caused_gets_the_first_answer() {
        let all = ErrorCode::ALL.iter().copied();
        let codes: Vec<_> = all
            .filter(|code| may_result_from_first_request(&ApiError::new(*code, "")))
            .collect();
        let expected = [
            ErrorCode::EndpointNotFound,
            ErrorCode::IdempotencyInProgress,
            ErrorCode::AlreadyAcknowledged,
            ErrorCode::PreconditionFailed,
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn a_replayed_answer_equals_the_first_one() {
        let first = || {
            HttpResponse::Created()
                .insert_header(("content-type", "application/json"))
                .append_header(("x-system-warning", "one"))
                .append_header(("x-system-warning", "two"))
                .body("{\"success\":true}")
        };
        let replayed = replayed_response(to_stored_response(first()).unwrap());
        assert_eq!(replayed.headers().get(REPLAYED_HEADER).unwrap(), "true");
        let mut replayed = to_stored_response(replayed).unwrap();
        replayed
            .headers
            .retain(|(name, _)| name != REPLAYED_HEADER.as_str());
        let mut first = to_stored_response(first()).unwrap();
        replayed.headers.sort();
        first.headers.sort();
        assert_eq!(replayed, first);
    }

    #[test]
    fn a_replayed_refusal_has_its_code_in_the_logs() {
        let body = r#"{"success":false,"error_code":"INVOICE_LOCKED"}"#;
        for (status, code) in [(409, Some("INVOICE_LOCKED")), (200, None)] {
            let replayed = replayed_response(StoredResponse {
                status,
                headers: Vec::new(),
                body: body.to_owned(),
            });
            let extensions = replayed.extensions();
            let logged_code = extensions
                .get::<LoggedFailure>()
                .map(|failure| failure.code);
            assert_eq!(logged_code, code, "{status}");
        }
    }

    #[test]
    fn decisions_are_kept_and_passing_failures_are_not() {
        let kept: Vec<_> = ErrorCode::ALL
            .iter()
            .filter(|code| is_final_refusal(&ApiError::new(**code, "")))
            .map(|code| code.as_str())
            .collect();
        insta::assert_snapshot!(kept.join("\n"));
        assert!(must_be_stored(&HttpResponse::Created().finish()));
        assert!(!must_be_stored(&HttpResponse::Accepted().finish()));
        assert!(!must_be_stored(
            &HttpResponse::Ok()
                .insert_header((CACHE_CONTROL, "no-store"))
                .finish()
        ));
    }
}
