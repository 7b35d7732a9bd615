//! Operators who are signed in. A handler that only reads takes a `Viewer` as a parameter, one that acts an `Operator`,
//! and one that changes accounts an `Admin`.

use std::net::IpAddr;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::future::LocalBoxFuture;
use secrecy::SecretString;

use crate::actors::taxpayer::acting::set_request_actor;
use crate::console::operators::incident_lines::{Headline, headline};
use crate::console::session::{CheckedSession, Refusal, notice, signed_in_with_required_factor};
use crate::domain::access::session::{OperatorRole, Rights, SessionOwner};
use crate::domain::kernel::audit::{Actor, ActorWithName};
use crate::http::extract::role::{self, NeedsRole};
use crate::http::incidents::incidents_for_operators;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::sessions;

#[derive(Debug)]
pub(crate) struct OperatorSession {
    pub(crate) id: i64,
    pub(crate) email: String,
    pub(crate) role: OperatorRole,
    /// The address from which the request came, if it is known.
    pub(crate) address: Option<IpAddr>,
    pub(crate) csrf: String,
    pub(crate) notice: Option<String>,
    /// The gravest incident in one line; `None` if nothing needs an operator.
    pub(crate) headline: Option<Headline>,
    /// The name of the replica that answers.
    pub(crate) replica: String,
}

#[derive(Debug)]
pub(crate) struct Viewer(pub(crate) OperatorSession);

#[derive(Debug)]
pub(crate) struct Operator(pub(crate) OperatorSession);

#[derive(Debug)]
pub(crate) struct Admin(pub(crate) OperatorSession);

/// Returns the session of an operator with at least this role. Anybody who is not an operator gets 404.
async fn operator_session(
    request: &HttpRequest,
    least: OperatorRole,
) -> Result<OperatorSession, Refusal> {
    let signed_in = signed_in_with_required_factor(request).await?;
    let person = signed_in.session.person;
    let (SessionOwner::Operator(id), Rights::Operate(role)) = (person.owner, person.rights) else {
        return Err(ApiError::route_not_found().into());
    };
    if role < least {
        return Err(Refusal::NotAllowed(role::insufficient_role_message(least)));
    }
    request.extensions_mut().insert(CheckedSession);
    let state = request.app_data::<web::Data<ApiState>>();
    // The name of the operator is not recorded, because taxpayers can read who acted.
    let address = client_address(request);
    set_request_actor(ActorWithName {
        address,
        ..Actor::Operator(id).into()
    });
    Ok(OperatorSession {
        id,
        email: person.email,
        role,
        address,
        csrf: signed_in.csrf,
        notice: notice(request),
        headline: state.and_then(|state| {
            let own = state.incidents.last_report();
            headline(&incidents_for_operators(state, &own))
        }),
        replica: state
            .map(|state| state.replicas.identity().name.clone())
            .unwrap_or_default(),
    })
}

/// True while the session of this token may see the pages of operators. This check does not extend the session.
pub(crate) async fn may_view_pages(
    state: &ApiState,
    token: &SecretString,
) -> Result<bool, ApiError> {
    let limits = state.settings.sessions.limits;
    let remembered = match state.health.database_fault() {
        Some(_) => state.remembered_operators.remembered_session(token),
        None => None,
    };
    let found = match remembered {
        Some(session) => Some(session),
        None => sessions::find_without_extending(&state.store, token, limits, state.now()).await?,
    };
    Ok(found.is_some_and(|session| {
        !session.awaits_code && matches!(session.person.rights, Rights::Operate(_))
    }))
}

/// Lets handlers take each type as a parameter. An operator with a lower role than the given one is refused.
macro_rules! role_extractors {
    ($($right:ident = $least:expr;)+) => {$(
        impl FromRequest for $right {
            type Error = Refusal;
            type Future = LocalBoxFuture<'static, Result<Self, Refusal>>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                let request = request.clone();
                Box::pin(async move { operator_session(&request, $least).await.map(Self) })
            }
        }

        impl NeedsRole for $right {
            const LEAST_ROLE: Option<OperatorRole> = Some($least);
        }
    )+};
}

role_extractors! {
    Viewer = OperatorRole::Viewer;
    Operator = OperatorRole::Operator;
    Admin = OperatorRole::Admin;
}
