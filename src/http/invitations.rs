//! Makes the one-time links with which people choose a password, for pages and for the API, or has them mailed. The
//! calling handler checks the right to make a link. Nobody may make a link for themselves, because a session or a key
//! alone must not be enough to set a password.

use std::time::Duration;

use actix_web::HttpRequest;
use database::StoreError;
use jiff::Timestamp;
use rand::RngExt as _;
use timing::clock;

use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::access::invitation::InvitationToken;
use crate::domain::access::session::{Person, SessionOwner};
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::notice::NoticeKind;
use crate::http::listener::Listener;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::invitation::InvitationView;
use crate::store::accounts::invitations::{self, NewInvitation};
use crate::store::accounts::{person_accounts, taxpayers};
use crate::store::operations::mails;

/// The `Retry-After` for an email address that got the maximum number of links of a day. The first of these links may
/// be nearly a day old, so another link may be allowed soon.
const LINK_RETRY_AFTER: Duration = Duration::from_hours(1);

/// An invitation that was just made. Its link is shown once.
#[derive(Debug)]
pub(crate) struct Invitation {
    pub(crate) owner: SessionOwner,
    pub(crate) email: String,
    pub(crate) link: String,
    pub(crate) expires_at: Timestamp,
}

impl<'a> From<&'a Invitation> for InvitationView<'a> {
    fn from(invitation: &'a Invitation) -> Self {
        Self {
            id: invitation.owner.id(),
            email: &invitation.email,
            link: &invitation.link,
            expires_at: precise_time(invitation.expires_at),
        }
    }
}

/// The person who is invited, the actor who invites, and the reason.
#[derive(Debug)]
pub(crate) struct InvitationRequest {
    pub(crate) owner: SessionOwner,
    pub(crate) by: Actor,
    pub(crate) reason: Option<String>,
    /// The claim of a request with an idempotency key. A repeat of the request makes no second link.
    pub(crate) claim: Option<IdempotencyClaim>,
}

/// Makes an invitation, which ends an earlier invitation of the same person. Returns `None` if there is no such person,
/// if the account is disabled, or if the maker has meanwhile lost the right to make links.
pub(crate) async fn make_invitation(
    state: &ApiState,
    request: &HttpRequest,
    invitation: InvitationRequest,
) -> Result<Option<Invitation>, ApiError> {
    let InvitationRequest {
        owner,
        by,
        reason,
        claim,
    } = invitation;
    if by == owner.actor() {
        let message = "Nobody makes a link for itself. Change your password, or ask somebody else for a link.";
        return Err(ApiError::new(ErrorCode::InvalidTransition, message));
    }
    let Some(person) = person_accounts::find_person(&state.store, owner).await? else {
        return Ok(None);
    };
    let token = InvitationToken::new(clock::system_rng().random());
    let new_invitation = NewInvitation {
        owner,
        token: &token,
        by,
        reason,
        claim,
        now: state.now(),
    };
    let expires_at = match invitations::add(&state.store, new_invitation).await {
        Ok(Some(expires_at)) => expires_at,
        Ok(None) => return Ok(None),
        Err(StoreError::Duplicate(_)) => return Err(ApiError::idempotency_in_progress()),
        Err(error) => return Err(error.into()),
    };
    let link = page_url(state, request, owner, token.page_path());
    Ok(Some(Invitation {
        owner,
        email: person.email,
        link,
        expires_at,
    }))
}

/// Has a link mailed to a contact person of this account. Fails if the address, the account or its integrator has
/// reached its maximum of such mails in a day.
pub(crate) async fn mail_invitation(
    state: &ApiState,
    taxpayer: TaxpayerId,
    person: &Person,
    by: Actor,
) -> Result<(), ApiError> {
    let store = &state.store;
    let now = state.now();
    if !mails::may_get_link_mail(store, &person.email, NoticeKind::Invited, now).await? {
        let message = "No mail was sent: this address got as many links in a day as it may. Show the link instead, or \
                       try again tomorrow.";
        return Err(
            ApiError::new(ErrorCode::RateLimited, message).with_retry_after(LINK_RETRY_AFTER)
        );
    }
    let integrator = taxpayers::load_payer(store, taxpayer).await?;
    let next_mail_at = invitations::find_next_mail_time(store, taxpayer, integrator, now).await?;
    if let Some(next_mail_at) = next_mail_at {
        let message = format!(
            "No mail was sent: in a day so many people may be invited by mail, and no more. The next mail may be sent \
             at {}. Show the link instead, and hand it over yourself.",
            next_mail_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        );
        let wait = next_mail_at.duration_since(now).unsigned_abs();
        return Err(ApiError::new(ErrorCode::RateLimited, message).with_retry_after(wait));
    }
    Ok(invitations::add_mail(store, person.owner, by, integrator, now).await?)
}

/// Returns the full URL of a page, with the host of this request. Returns only the path if the owner of the link signs
/// in on another listener, because its host is not known here.
fn page_url(state: &ApiState, request: &HttpRequest, owner: SessionOwner, path: String) -> String {
    let is_served_here = Listener::from_request(request).serves_person(owner);
    match state.origin(request).filter(|_| is_served_here) {
        Some(origin) => format!("{origin}{path}"),
        None => path,
    }
}
