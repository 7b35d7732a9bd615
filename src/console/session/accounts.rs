//! People who are signed in for a taxpayer: its contact persons, and the integrator that onboarded it. The path of a
//! page names the taxpayer. A handler that only reads takes a `Reader` as a parameter, one that acts on invoices an
//! `Accountant`, and one that changes the account an `Owner`.

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::future::LocalBoxFuture;
use secrecy::SecretString;

use crate::actors::taxpayer::acting::set_request_actor;
use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::handle::{OnceClaim, TaxpayerError};
use crate::console::session::{
    Refusal, SignedIn, needs_second_factor, notice, session_token, signed_in_with_required_factor,
};
use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::access::session::{ContactRole, Person, Rights, SessionOwner};
use crate::domain::kernel::audit::{Actor, ActorWithName};
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId, parse_id};
use crate::http::extract::reading_right::ReadingRight;
use crate::http::extract::role::NeedsRole;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::{sessions, taxpayers};

/// The account whose pages are shown, as the top bar and the title name it.
#[derive(Debug, Clone)]
pub(crate) struct AccountLabel {
    pub(crate) name: String,
    pub(crate) tin: String,
    pub(crate) path: String,
    /// True if an operator has paused the account, so that nobody can change anything in it.
    pub(crate) is_paused: bool,
}

#[derive(Debug)]
pub(crate) struct AccountSession {
    pub(crate) taxpayer: TaxpayerId,
    pub(crate) account: AccountLabel,
    /// The person as an actor of the audit.
    pub(crate) by: Actor,
    pub(crate) person: Person,
    pub(crate) role: ContactRole,
    pub(crate) csrf: String,
    pub(crate) notice: Option<String>,
    /// The idempotency claim of the form that was sent; `None` if the request sends no form.
    claim: Option<IdempotencyClaim>,
}

impl AccountSession {
    /// Sends the only command of a form. The command also stores the form's claim, so that the form takes effect only
    /// once, even if it is sent again.
    pub(crate) async fn send<C: TaxpayerCommand>(
        &self,
        state: &ApiState,
        command: C,
    ) -> Result<C::Output, TaxpayerError> {
        state
            .taxpayers
            .send_once(
                self.taxpayer,
                command,
                self.claim.clone().map(OnceClaim::without_answer),
            )
            .await
    }
}

#[derive(Debug)]
pub(crate) struct Reader(pub(crate) AccountSession);

#[derive(Debug)]
pub(crate) struct Accountant(pub(crate) AccountSession);

#[derive(Debug)]
pub(crate) struct Owner(pub(crate) AccountSession);

/// An integrator who is signed in, for pages about all its taxpayers.
#[derive(Debug)]
pub(crate) struct SignedInIntegrator {
    pub(crate) id: IntegratorId,
    pub(crate) person: Person,
    pub(crate) csrf: String,
    pub(crate) notice: Option<String>,
}

/// Returns the session for the taxpayer in the path. A person without a right to this account gets 404, so that nobody
/// learns which accounts exist.
async fn account_session(
    request: &HttpRequest,
    least: ContactRole,
) -> Result<AccountSession, Refusal> {
    let SignedIn { session, csrf } = signed_in_with_required_factor(request).await?;
    let person = session.person;
    let id_in_path = request
        .match_info()
        .get("taxpayer")
        .and_then(parse_id)
        .map(TaxpayerId);
    let taxpayer = id_in_path.ok_or_else(ApiError::route_not_found)?;
    let store = &ApiState::from_request(request)?.store;
    let visible = match person.owner {
        SessionOwner::Contact { taxpayer: own, .. } if own == taxpayer => {
            taxpayers::find_by_id(store.reader(), taxpayer).await
        }
        SessionOwner::Integrator(id) => taxpayers::find_owned_by_id(store, id, taxpayer).await,
        SessionOwner::Contact { .. } | SessionOwner::Operator(_) => Ok(None),
    };
    let (Some(visible), Rights::Account(role)) = (visible.map_err(ApiError::from)?, person.rights)
    else {
        return Err(ApiError::route_not_found().into());
    };
    let holds = ApiState::from_request(request)?.pipeline.backlog.holds();
    let account = AccountLabel {
        name: visible.name,
        tin: visible.tin,
        is_paused: holds.find_hold(taxpayer, None).is_some(),
        path: format!("/dashboard/{taxpayer}"),
    };
    if role < least {
        return Err(Refusal::NotAllowed(match least {
            ContactRole::Owner => "Only an owner of the account may do this.",
            ContactRole::Accountant | ContactRole::ReadOnly => {
                "Your role may look, not act. An accountant or an owner of the account may do this."
            }
        }));
    }
    let claim = request.extensions().get::<IdempotencyClaim>().cloned();
    let by = person.owner.actor();
    record_person_name(request, &person);
    Ok(AccountSession {
        taxpayer,
        account,
        by,
        person,
        role,
        csrf,
        notice: notice(request),
        claim,
    })
}

/// Stores the person's name for the activity entries that this request makes.
fn record_person_name(request: &HttpRequest, person: &Person) {
    let name = person.name.as_deref().unwrap_or(&person.email);
    set_request_actor(ActorWithName {
        actor: person.owner.actor(),
        name: Some(name.into()),
        address: client_address(request),
    });
}

/// True while the session of this token may see the pages of this account. This check does not extend the session.
pub(crate) async fn may_view_account(
    state: &ApiState,
    token: &SecretString,
    taxpayer: TaxpayerId,
) -> Result<bool, ApiError> {
    let limits = state.settings.sessions.limits;
    let Some(session) =
        sessions::find_without_extending(&state.store, token, limits, state.now()).await?
    else {
        return Ok(false);
    };
    let person = session.person;
    let lacks_factor = !person.has_second_factor && needs_second_factor(state, person.owner);
    if session.awaits_code || lacks_factor || !matches!(person.rights, Rights::Account(_)) {
        return Ok(false);
    }
    Ok(match person.owner {
        SessionOwner::Contact { taxpayer: own, .. } => own == taxpayer,
        SessionOwner::Integrator(id) => {
            let owned = taxpayers::find_owned_by_id(&state.store, id, taxpayer).await?;
            owned.is_some()
        }
        SessionOwner::Operator(_) => false,
    })
}

/// Returns the right that the session of the request gives to read an answer about this account.
pub(crate) fn reading_right(
    request: &HttpRequest,
    state: &web::Data<ApiState>,
    taxpayer: TaxpayerId,
) -> ReadingRight {
    let token = session_token(request).unwrap_or_default();
    let state = state.clone();
    ReadingRight::new(move || {
        let state = state.clone();
        let token = token.clone();
        Box::pin(async move { may_view_account(&state, &token, taxpayer).await })
    })
}

/// Returns the session if the person may see the account in the path, for the frame of a failure page.
pub(crate) async fn find_visible_account(request: &HttpRequest) -> Option<AccountSession> {
    account_session(request, ContactRole::ReadOnly).await.ok()
}

/// Lets handlers take each type as a parameter. A person with a lower role than the given one is refused.
macro_rules! role_extractors {
    ($($right:ident = $least:expr;)+) => {$(
        impl FromRequest for $right {
            type Error = Refusal;
            type Future = LocalBoxFuture<'static, Result<Self, Refusal>>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                let request = request.clone();
                Box::pin(async move { account_session(&request, $least).await.map(Self) })
            }
        }

        impl NeedsRole for $right {}
    )+};
}

role_extractors! {
    Reader = ContactRole::ReadOnly;
    Accountant = ContactRole::Accountant;
    Owner = ContactRole::Owner;
}

impl NeedsRole for SignedInIntegrator {}

impl FromRequest for SignedInIntegrator {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<Self, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let SignedIn { session, csrf } = signed_in_with_required_factor(&request).await?;
            let SessionOwner::Integrator(id) = session.person.owner else {
                return Err(ApiError::route_not_found().into());
            };
            let person = session.person;
            record_person_name(&request, &person);
            Ok(Self {
                id,
                person,
                csrf,
                notice: notice(&request),
            })
        })
    }
}
