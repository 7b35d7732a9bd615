//! A form of a page has its effect once, however often the browser sends it: by a double click, by a reload, or with
//! the Back button. Each form carries a token of its own, which is its idempotency key.
//!
//! Before the handler runs, an intent is stored, which marks the form as begun. After the handler, the claim is stored,
//! which marks the form as done; if the handler changed nothing, the intent is removed instead. A taxpayer's command
//! stores the claim itself, in its own transaction; the address to which the handler redirects is added to it. After a
//! crash only the intent may be left: the outcome of the form is then unknown, and the person is asked to check before
//! sending it again.

use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, LOCATION};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use database::StoreError;
use jiff::Timestamp;
use rand::RngExt;
use secrecy::{ExposeSecret, SecretString};
use timing::clock;
use tokio::time::sleep;

use crate::domain::access::claim::{IdempotencyClaim, StoredResponse};
use crate::http::extract::form;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::redirect::go_to;
use crate::http::state::ApiState;
use crate::store::accounts::sessions;
use crate::store::idempotency::{self, KeyEntry, StoredKey};

/// The name of the field with the form's token.
const TOKEN_FIELD: &str = "once";
/// The name of the field that proves that the form comes from a page of this session. Its value does not distinguish
/// two requests.
const CSRF_FIELD: &str = "csrf";
const DONE_NOTICE: &str = "This was done already.";
const UNKNOWN_OUTCOME_NOTICE: &str = "This was sent before, and its outcome is not known. Check the state below before you send it again.";
/// The number of times that a repeated form looks for the outcome of the first one, and the pause between two checks.
const OUTCOME_CHECKS_MAX: u32 = 50;
const OUTCOME_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The number of times that a repeated form looks for the answer to the first one after its command was executed. The
/// answer is missing after a crash.
const ANSWER_CHECKS_MAX: u32 = 10;

/// The page that shows the result of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultPage {
    /// The form's own path, which also shows a page.
    Own,
    /// The page above the form's path: that path's first `segments` segments. `None` if no page is above it.
    Above { segments: Option<usize> },
}

struct SentForm {
    claim: IdempotencyClaim,
    /// The path of the page that shows the result.
    page: String,
}

enum FormStatus {
    First,
    Repeated(HttpResponse),
}

impl ResultPage {
    /// Returns the path of the page that shows the result of a form with this path.
    pub(crate) fn page_path(self, form_path: &str) -> &str {
        match self {
            Self::Own => form_path,
            Self::Above {
                segments: Some(count),
            } => first_segments(form_path, count),
            Self::Above { segments: None } => "/",
        }
    }
}

/// Returns the first `count` segments of a path. The empty text before the first slash counts as a segment.
fn first_segments(path: &str, count: usize) -> &str {
    let end = path.match_indices('/').nth(count - 1);
    end.map_or(path, |(end, _)| &path[..end])
}

/// Returns a random token for one form of one rendered page.
pub(crate) fn new_token() -> String {
    let random: [u8; 16] = clock::system_rng().random();
    URL_SAFE_NO_PAD.encode(random)
}

/// Answers a form. Without a valid session, the form goes to the handler without a claim: it is a sign-in, or the
/// handler refuses it.
pub(crate) async fn answer_form(
    state: &web::Data<ApiState>,
    result_page: ResultPage,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let session = match session_token(state, request.request()).await {
        Err(error) => return Ok(request.error_response(error)),
        Ok(None) => return next.call(request).await,
        Ok(Some(session)) => session,
    };
    let form = match read_sent_form(
        state,
        session.expose_secret(),
        result_page,
        request.request(),
    ) {
        Err(error) => return Ok(request.error_response(error)),
        Ok(form) => form,
    };
    match store_intent_or_wait(state, &form).await {
        Err(error) => Ok(request.error_response(error)),
        Ok(FormStatus::Repeated(answer)) => Ok(request.into_response(answer)),
        Ok(FormStatus::First) => {
            request.extensions_mut().insert(form.claim.clone());
            let response = next.call(request).await?;
            store_outcome(state, &form.claim, &response).await;
            Ok(response)
        }
    }
}

/// Returns the token of the session in which the form was sent; `None` if there is no valid session.
pub(crate) async fn session_token(
    state: &ApiState,
    request: &HttpRequest,
) -> Result<Option<SecretString>, ApiError> {
    let settings = state.settings.sessions;
    let Some(cookie) = request.cookie(settings.cookie_name()) else {
        return Ok(None);
    };
    let token = SecretString::from(cookie.value().to_owned());
    let session =
        sessions::find_without_extending(&state.store, &token, settings.limits, state.now())
            .await?;
    Ok(session.map(|_valid_session| token))
}

fn read_sent_form(
    state: &ApiState,
    session: &str,
    result_page: ResultPage,
    request: &HttpRequest,
) -> Result<SentForm, ApiError> {
    let body = form::peek_form(request)?;
    let claim =
        make_claim(state, session, request.path(), &body).ok_or_else(token_missing_error)?;
    let page = result_page.page_path(request.path()).to_owned();
    Ok(SentForm { claim, page })
}

/// Makes the claim of a form; `None` if the form does not have exactly one token.
fn make_claim(
    state: &ApiState,
    session: &str,
    path: &str,
    body: &[u8],
) -> Option<IdempotencyClaim> {
    let fields: Vec<_> = url::form_urlencoded::parse(body).collect();
    let mut tokens = fields
        .iter()
        .filter(|(name, _)| name == TOKEN_FIELD)
        .map(|(_, value)| value);
    let token = tokens.next().filter(|token| !token.is_empty())?;
    if tokens.next().is_some() {
        return None;
    }
    let content_fields = fields
        .iter()
        .filter(|(name, _)| name != TOKEN_FIELD && name != CSRF_FIELD);
    let parts = content_fields.flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let request: Vec<_> = std::iter::once(path.as_bytes()).chain(parts).collect();
    let expires_at = state
        .now()
        .saturating_add(state.settings.idempotency_keep)
        .unwrap_or(Timestamp::MAX);
    Some(IdempotencyClaim::for_form(
        session, token, &request, expires_at,
    ))
}

fn token_missing_error() -> ApiError {
    let message = "This form has no token that makes it count once. Go back, reload the page and send it again.";
    ApiError::new(ErrorCode::ValidationFailed, message)
}

/// Stores the intent, or waits for the outcome of the form that stored it first.
async fn store_intent_or_wait(state: &ApiState, form: &SentForm) -> Result<FormStatus, ApiError> {
    let mut answer_checks = 0;
    for _ in 0..OUTCOME_CHECKS_MAX {
        if let Some(stored_key) = idempotency::find(&state.store, &form.claim, state.now()).await? {
            if stored_key.answer.is_some() || answer_checks == ANSWER_CHECKS_MAX {
                let page = result_path(form, stored_key);
                return Ok(FormStatus::Repeated(go_to(&page, DONE_NOTICE)));
            }
            answer_checks += 1;
            sleep(OUTCOME_CHECK_INTERVAL).await;
            continue;
        }
        let intent = KeyEntry {
            claim: form.claim.begun_request_claim(),
            command_id: None,
            answer: None,
        };
        if idempotency::store_key_without_command(&state.store, intent, state.now()).await? {
            return Ok(FormStatus::First);
        }
        sleep(OUTCOME_CHECK_INTERVAL).await;
    }
    Ok(FormStatus::Repeated(go_to(
        &form.page,
        UNKNOWN_OUTCOME_NOTICE,
    )))
}

/// Returns the address to which the first form redirected. If the first form showed a page directly, that page is not
/// shown again, and the address is the form's result page.
fn result_path(form: &SentForm, stored_key: StoredKey) -> String {
    let headers = stored_key
        .answer
        .map(|answer| answer.headers)
        .unwrap_or_default();
    headers
        .into_iter()
        .next()
        .map_or_else(|| form.page.clone(), |(_, location)| location)
}

/// Stores that the form is done, or removes its intent if it changed nothing. A failure of the store leaves the intent,
/// which prevents a second effect.
async fn store_outcome(
    state: &ApiState,
    claim: &IdempotencyClaim,
    response: &ServiceResponse<BoxBody>,
) {
    let status = response.status();
    let is_refused = response.response().error().is_some();
    let result = if !is_refused && (status.is_success() || status.is_redirection()) {
        let location = response
            .headers()
            .get(LOCATION)
            .and_then(|value: &HeaderValue| value.to_str().ok());
        let location = location.map(|location| (LOCATION.to_string(), location.to_owned()));
        let answer = StoredResponse {
            status: StatusCode::SEE_OTHER.as_u16(),
            headers: location.into_iter().collect(),
            body: String::new(),
        };
        store_done_form(state, claim, &answer).await
    } else if is_without_effect(status) {
        idempotency::release(&state.store, &claim.begun_request_claim()).await
    } else {
        Ok(())
    };
    if let Err(error) = result {
        tracing::warn!(%error, "the outcome of a form could not be stored");
    }
}

/// Stores the claim of a form that is done, with the answer to it. If a command has stored the claim already, only adds
/// the answer.
async fn store_done_form(
    state: &ApiState,
    claim: &IdempotencyClaim,
    answer: &StoredResponse,
) -> Result<(), StoreError> {
    let entry = KeyEntry {
        claim: claim.clone(),
        command_id: None,
        answer: Some(answer.clone()),
    };
    if idempotency::store_key_without_command(&state.store, entry, state.now()).await? {
        return Ok(());
    }
    idempotency::add_answer(&state.store, claim, answer).await
}

/// True if a form that failed with this status has certainly changed nothing: it was refused, redirected to the
/// sign-in, or answered with 503. After any other server error, it is unknown whether the handler has changed
/// something.
fn is_without_effect(status: StatusCode) -> bool {
    !status.is_server_error() || status == StatusCode::SERVICE_UNAVAILABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_form_is_on_the_page_above_it_or_on_its_own() {
        let above = |segments| ResultPage::Above { segments };
        let form = "/a/5%2F/keys/7/x";
        for (page, expected) in [
            (above(Some(4)), "/a/5%2F/keys"),
            (above(Some(3)), "/a/5%2F"),
            (above(Some(9)), form),
            (above(None), "/"),
            (ResultPage::Own, form),
        ] {
            assert_eq!(page.page_path(form), expected, "{page:?}");
        }
    }
}
