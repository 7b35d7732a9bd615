//! The listener that a request came on. With `http.ops_bind` operators have one of their own: they sign in there and
//! only there, and everybody else only on the public one, so that a public address takes no operator's password.

use actix_web::HttpRequest;

use crate::domain::access::session::SessionOwner;

/// The people and programs that a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listener {
    /// The only one, which serves everything.
    #[default]
    Only,
    /// Serves the API, integrators and contacts, where operators have a listener of their own.
    Public,
    /// Serves operators, `/ops` and `/metrics`.
    Operators,
}

/// The people and programs that a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Health probes, and the pages that every person needs: who may use them is decided by person.
    Everybody,
    Operators,
    /// Callers of the API, integrators and contacts.
    Customers,
}

impl Listener {
    pub(crate) fn of_request(request: &HttpRequest) -> Self {
        request.app_data().copied().unwrap_or_default()
    }

    pub(crate) fn serves(self, audience: Audience) -> bool {
        match (self, audience) {
            (Self::Only, _) | (_, Audience::Everybody) => true,
            (Self::Public, audience) => audience == Audience::Customers,
            (Self::Operators, audience) => audience == Audience::Operators,
        }
    }

    /// Returns true if this person signs in here. Elsewhere the person's password, code and session count for nothing.
    pub(crate) fn serves_person(self, owner: SessionOwner) -> bool {
        self.serves(match owner {
            SessionOwner::Operator(_) => Audience::Operators,
            SessionOwner::Contact { .. } | SessionOwner::Integrator(_) => Audience::Customers,
        })
    }
}
