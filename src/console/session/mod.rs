//! The people who send requests for pages. A handler takes one of the types of `operators` or `accounts` as a
//! parameter. Only people with this right reach the handler. The session is stored in the database; the browser has a
//! random token in a cookie that scripts cannot read.
//!
//! | File | Content |
//! |---|---|
//! | `accounts` | people who are signed in for a taxpayer: its contact persons, and the integrator that onboarded it |
//! | `confirmed` | the right of a person who entered password and code a short time ago, at the sign-in or on the page that asks for both again |
//! | `cookie` | the cookie of a session, and the other data that the pages read from a request |
//! | `csrf` | refuses forms that other sites send |
//! | `device` | the cookie that marks a browser in which a person has signed in before |
//! | `operators` | operators who are signed in |
//! | `page_quota` | limits the pages that each session may request |
//! | `refusal` | the reasons why a page is not shown |

pub(crate) mod accounts;
mod confirmed;
mod cookie;
mod csrf;
mod device;
pub(crate) mod operators;
mod page_quota;
mod refusal;

pub(crate) use confirmed::Confirmed;
pub(super) use cookie::{
    NoticeRead, confirm_path, notice, removal_cookie, request_id, session_cookie, session_token,
    sign_in_path, sign_in_place,
};
pub(super) use csrf::{check_csrf, check_origin, csrf_token};
pub(crate) use device::{known_device, remember_device};
pub(crate) use refusal::Refusal;

use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpRequest, dev::Payload};
use futures_util::future::LocalBoxFuture;
use secrecy::SecretString;

use crate::domain::access::session::{Person, Session, SessionOwner};
use crate::http::extract::role::NeedsRole;
use crate::http::listener::Listener;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::sessions;

/// The header of a request that the script of a page sends to show how far an import or a correction is.
const PROGRESS_REQUEST: HeaderName = HeaderName::from_static("x-follows");

/// Marks a request whose operator is known, from the database or from memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedSession;

/// A person who is signed in. The person may still have to set up a second factor.
#[derive(Debug)]
pub(crate) struct SignedIn {
    pub(crate) session: Session,
    pub(crate) csrf: String,
}

impl NeedsRole for SignedIn {}

impl FromRequest for SignedIn {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<Self, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { signed_in(&request).await })
    }
}

/// A person whose password was right, and who has yet to enter the code of the second factor.
#[derive(Debug)]
pub(crate) struct PersonAwaitingCode {
    pub(crate) person: Person,
    pub(crate) csrf: String,
}

impl NeedsRole for PersonAwaitingCode {}

impl FromRequest for PersonAwaitingCode {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<Self, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let SignedIn { session, csrf } = find_session(&request).await?;
            if !session.awaits_code {
                return Err(Refusal::NotSignedIn);
            }
            Ok(Self {
                person: session.person,
                csrf,
            })
        })
    }
}

/// Returns the session of a person who is fully signed in.
async fn signed_in(request: &HttpRequest) -> Result<SignedIn, Refusal> {
    let found = find_session(request).await?;
    if found.session.awaits_code {
        return Err(Refusal::CodeMissing);
    }
    Ok(found)
}

/// Returns the session of the request, even if it still waits for a code.
async fn find_session(request: &HttpRequest) -> Result<SignedIn, Refusal> {
    let state = ApiState::from_request(request)?;
    let token = session_token(request).ok_or(Refusal::NotSignedIn)?;
    page_quota::admit_page_request(request, state, &token)?;
    let session = stored_session(request, state, &token).await?;
    let listener = Listener::from_request(request);
    let session = session.filter(|session| listener.serves_person(session.person.owner));
    let session = session.ok_or(Refusal::NotSignedIn)?;
    page_quota::admit_person(request, state, &token, session.person.owner)?;
    Ok(SignedIn {
        session,
        csrf: csrf_token(&token),
    })
}

/// Returns the session of a token. While the database does not answer, an operator can still read pages.
async fn stored_session(
    request: &HttpRequest,
    state: &ApiState,
    token: &SecretString,
) -> Result<Option<Session>, ApiError> {
    let is_read_only = request.method().is_safe();
    let remembered = state
        .remembered_operators
        .remembered_session(token)
        .filter(|_| is_read_only);
    let limits = state.settings.sessions.limits;
    let is_extending = extends_session(request);
    let lookup = async {
        if is_extending {
            sessions::find(&state.store, token, limits, state.now()).await
        } else {
            sessions::find_without_extending(&state.store, token, limits, state.now()).await
        }
    };
    let found = match remembered {
        None => lookup.await?,
        remembered => tokio::select! {
            biased;
            () = state.health.wait_for_database_fault() => return Ok(remembered),
            found = lookup => found?,
        },
    };
    state
        .remembered_operators
        .record_session_lookup(token, found.as_ref());
    Ok(found)
}

/// False for requests that the script of a page sends: for live parts, and for the progress of an import. A page that
/// is merely open must not keep the session alive.
fn extends_session(request: &HttpRequest) -> bool {
    !request.path().contains("/live/") && !request.headers().contains_key(PROGRESS_REQUEST)
}

/// Returns the person who is signed in, unless a second factor has to be set up first.
async fn signed_in_with_required_factor(request: &HttpRequest) -> Result<SignedIn, Refusal> {
    let signed_in = signed_in(request).await?;
    let person = &signed_in.session.person;
    if !person.has_second_factor
        && needs_second_factor(ApiState::from_request(request)?, person.owner)
    {
        return Err(Refusal::SecondFactorMissing);
    }
    Ok(signed_in)
}

/// True if the deployment requires a second factor of this person.
pub(super) fn needs_second_factor(state: &ApiState, owner: SessionOwner) -> bool {
    owner.acts_for_others() && state.settings.sessions.needs_second_factor
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_page_that_is_merely_open_does_not_extend_the_session() {
        for (path, header, expected) in [
            ("/dashboard/7/invoices/9", None, true),
            ("/dashboard/7/invoices/9", Some(PROGRESS_REQUEST), false),
            ("/dashboard/7/imports/IMP1", Some(PROGRESS_REQUEST), false),
            ("/console/live/supervision", None, false),
        ] {
            let request = TestRequest::with_uri(path);
            let request = match header {
                Some(name) => request.insert_header((name, "true")),
                None => request,
            };
            let found = extends_session(&request.to_http_request());
            assert_eq!(found, expected, "{path}");
        }
    }
}
