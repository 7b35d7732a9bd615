//! Handles a request with an idempotency key. Returns the response that is stored for the key, or executes the request
//! and stores its response. A repeated key is accepted only with the same body, which the policy middleware has read
//! before.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse, web};
use jiff::Timestamp;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::claim::{IdempotencyClaim, StoredResponse};
use crate::http::extract::acting_taxpayer::TAXPAYER_ID_HEADER;
use crate::http::extract::body::BodyText;
use crate::http::idempotency::in_progress::{InProgressGuard, KeyInUse};
use crate::http::idempotency::key::idempotency_key;
use crate::http::idempotency::stored_response;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::logged_failure::LoggedFailure;
use crate::http::respond::render::{self, ResponsePrefs};
use crate::http::state::ApiState;
use crate::store::accounts::key_leases;
use crate::store::idempotency::{self, KeyEntry, StoredKey};

/// The result of looking up the idempotency key of a request.
enum KeyStatus {
    /// The request has no key.
    Unkeyed,
    /// No earlier request had this key.
    First(IdempotencyClaim, InProgressGuard),
    Repeated(HttpResponse),
}

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
        Ok(KeyStatus::First(claim, _place)) => {
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
    let place = state.in_progress.enter(&claim).map_err(in_use_error)?;
    match idempotency::find(&state.store, &claim, state.now()).await? {
        None => Ok(KeyStatus::First(claim, place)),
        Some(taken) => repeated_response(state, &claim, taken)
            .await
            .map(KeyStatus::Repeated),
    }
}

/// Makes the claim of a request. Requests are the same if method, path with query, body and `x-taxpayer-id` are equal.
fn make_claim(
    state: &ApiState,
    account: KeyOwner,
    key: &str,
    request: &ServiceRequest,
) -> IdempotencyClaim {
    let extensions = request.extensions();
    let body = extensions
        .get::<BodyText>()
        .map_or(&[][..], |body| &body.bytes);
    let target = request
        .uri()
        .path_and_query()
        .map_or("", |target| target.as_str());
    let acting = request
        .headers()
        .get(TAXPAYER_ID_HEADER)
        .map_or(&[][..], |value| value.as_bytes());
    let parts = [
        request.method().as_str().as_bytes(),
        target.as_bytes(),
        acting,
        body,
    ];
    let expires_at = state.now().saturating_add(state.settings.idempotency_keep);
    IdempotencyClaim::new(account, key, &parts, expires_at.unwrap_or(Timestamp::MAX))
}

fn in_use_error(occupied: KeyInUse) -> ApiError {
    if occupied.is_same_request {
        ApiError::idempotency_in_progress()
    } else {
        reuse_error()
    }
}

fn reuse_error() -> ApiError {
    let message =
        "This Idempotency-Key came with another request before; a new request needs a new key";
    ApiError::new(ErrorCode::IdempotencyKeyReused, message)
}

fn secret_shown_once_error() -> ApiError {
    let message = "The request with this Idempotency-Key was carried out, and the secret in its answer is shown \
                   only once; to get another secret, send the request with a new key";
    ApiError::new(ErrorCode::IdempotencyKeyReused, message)
}

/// Returns the stored response. Fails if the key was used for a different request, or if the response was secret.
async fn repeated_response(
    state: &ApiState,
    claim: &IdempotencyClaim,
    taken: StoredKey,
) -> Result<HttpResponse, ApiError> {
    if taken.fingerprint != claim.fingerprint {
        return Err(reuse_error());
    }
    if let Some(answer) = taken.answer {
        return Ok(stored_response::replayed_response(answer));
    }
    // The first request may have rotated an API key and ended before all processes knew the new key. Waits for them.
    key_leases::await_acknowledgements(&state.store).await;
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
    match error {
        // Another request with the same key was first, so its response is returned.
        Some(error) if error.code == ErrorCode::IdempotencyInProgress => {
            match idempotency::find(&state.store, &claim, state.now()).await? {
                Some(taken) => repeated_response(state, &claim, taken).await,
                None => Ok(answer),
            }
        }
        Some(error) if stored_response::is_final_refusal(error) => {
            let failure = LoggedFailure::from(error);
            let mut answer = store_response(state, claim, render_refusal(request, error)).await?;
            answer.extensions_mut().insert(failure);
            Ok(answer)
        }
        None if stored_response::must_be_stored(&answer) => {
            store_response(state, claim, answer).await
        }
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

/// Stores a response for its key. If it cannot be stored, this is only logged: a repeated request is then executed
/// again and has the same result.
async fn store_response(
    state: &ApiState,
    claim: IdempotencyClaim,
    answer: HttpResponse,
) -> Result<HttpResponse, ApiError> {
    let answer: StoredResponse = stored_response::to_stored_response(answer)
        .ok_or_else(|| ApiError::internal("an answer that is no text"))?;
    let entry = KeyEntry {
        claim,
        command_id: None,
        answer: Some(answer.clone()),
    };
    if let Err(error) = idempotency::keep_alone(&state.store, entry, state.now()).await {
        tracing::warn!(%error, "an answer could not be kept for its idempotency key");
    }
    Ok(stored_response::rebuild_response(answer))
}
