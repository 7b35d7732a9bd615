//! The listener (address and port) on which a request arrived. If `http.ops_bind` is set, operators have a listener of
//! their own: they sign in only there, and everybody else only on the public one. So no operator's password is accepted
//! at a public address.

use actix_web::HttpRequest;

use crate::domain::access::session::SessionOwner;

/// The people and programs that a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listener {
    /// The only listener, which serves everything.
    #[default]
    Only,
    /// Serves the API, integrators and contact persons, while operators have a listener of their own.
    Public,
    /// Serves operators, `/ops` and `/metrics`.
    Operators,
}

/// The people and programs that a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Health probes, and the pages that every person needs, such as sign-in. These pages decide with `serves_person`.
    Everybody,
    Operators,
    /// Callers of the API, integrators and contact persons.
    Customers,
}

impl Listener {
    pub(crate) fn from_request(request: &HttpRequest) -> Self {
        request.app_data().copied().unwrap_or_default()
    }

    pub(crate) fn serves(self, audience: Audience) -> bool {
        match (self, audience) {
            (Self::Only, _) | (_, Audience::Everybody) => true,
            (Self::Public, audience) => audience == Audience::Customers,
            (Self::Operators, audience) => audience == Audience::Operators,
        }
    }

    /// Returns true if this person may sign in on this listener. On another one, the person's password, code and
    /// session are not accepted.
    pub(crate) fn serves_person(self, owner: SessionOwner) -> bool {
        self.serves(match owner {
            SessionOwner::Operator(_) => Audience::Operators,
            SessionOwner::Contact { .. } | SessionOwner::Integrator(_) => Audience::Customers,
        })
    }
}
