//! The session of a person who signed in: who it is, what the person may do, and when the session ends.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};

words! {
    /// The rights of an operator. Each role includes the rights of the roles before it.
    OperatorRole { Viewer = "viewer", Operator = "operator", Admin = "admin" }
}

words! {
    /// The rights of a contact person on the account of its taxpayer. Each role includes the rights of the roles before
    /// it.
    ContactRole { ReadOnly = "read_only", Accountant = "accountant", Owner = "owner" }
}

words! {
    /// The kind of an account that a person signs in to.
    SessionKind { Operator = "operator", Contact = "contact", Integrator = "integrator" }
}

/// The account to which a person signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionOwner {
    Operator(i64),
    Contact { taxpayer: TaxpayerId, id: ContactId },
    Integrator(IntegratorId),
}

/// A person that a session or a sign-in belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub owner: SessionOwner,
    pub email: String,
    /// The name of a contact person or of an integrator. Operators have no name.
    pub name: Option<String>,
    pub rights: Rights,
    /// True if a sign-in needs a code in addition to the password.
    pub has_second_factor: bool,
}

/// The address and the browser of a sign-in, by which a person recognises a session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignInPlace {
    pub address: Option<IpAddr>,
    /// The name that the browser sends (header `User-Agent`).
    pub browser: Option<String>,
}

/// One of a person's sessions, as the person's list of sessions shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// The id of the session within the list. Nobody can sign in with this id.
    pub id: String,
    pub times: SessionTimes,
    pub place: SignInPlace,
    /// True for the session in which the person opened the list.
    pub is_own: bool,
}

/// The rights of a person who signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    Operate(OperatorRole),
    Account(ContactRole),
}

/// A session that has not expired or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub person: Person,
    pub times: SessionTimes,
    /// True if the person has entered the password but not yet the code. The session then opens only the page that asks
    /// for the code.
    pub awaits_code: bool,
    /// The time when the person last signed in, or last entered password and code again.
    pub confirmed_at: Timestamp,
}

/// For this long after `confirmed_at`, a person may change who has access: people, keys and second factors.
const CONFIRMATION_LIFETIME: Duration = Duration::from_mins(5);

impl Session {
    /// True if the person signed in, or entered password and code again, within the last `CONFIRMATION_LIFETIME`.
    pub fn is_recently_confirmed(&self, now: Timestamp) -> bool {
        let end = self
            .confirmed_at
            .saturating_add(CONFIRMATION_LIFETIME)
            .unwrap_or(Timestamp::MAX);
        now < end
    }
}

/// The times that decide whether a session is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimes {
    pub created_at: Timestamp,
    /// The time when the person last opened a page, exact to a minute.
    pub seen_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The lengths of sessions (settings `console.session_idle_s` and `console.session_max_s`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    pub idle: Duration,
    pub longest: Duration,
}

/// `seen_at` is stored again only after this time, so that not every page causes a write.
const SEEN_WRITE_INTERVAL: Duration = Duration::from_mins(1);

impl SessionLimits {
    pub fn new_session_times(&self, now: Timestamp) -> SessionTimes {
        let expires_at = now.saturating_add(self.longest).unwrap_or(Timestamp::MAX);
        SessionTimes {
            created_at: now,
            seen_at: now,
            expires_at,
        }
    }

    /// True if the session has not expired and its last use is less than `idle` ago.
    pub fn is_session_valid(&self, times: &SessionTimes, now: Timestamp) -> bool {
        let idle_end = times
            .seen_at
            .saturating_add(self.idle)
            .unwrap_or(Timestamp::MAX);
        now < times.expires_at && now < idle_end
    }
}

impl SessionTimes {
    /// True if a use of the session at this time must be stored in `seen_at`.
    pub fn must_update_seen_at(&self, now: Timestamp) -> bool {
        now.duration_since(self.seen_at).unsigned_abs() >= SEEN_WRITE_INTERVAL
    }
}

impl SessionOwner {
    pub fn kind(self) -> SessionKind {
        match self {
            Self::Operator(_) => SessionKind::Operator,
            Self::Contact { .. } => SessionKind::Contact,
            Self::Integrator(_) => SessionKind::Integrator,
        }
    }

    pub fn id(self) -> i64 {
        match self {
            Self::Operator(id) => id,
            Self::Contact { id, .. } => id.0,
            Self::Integrator(id) => id.0,
        }
    }

    /// True for operators and integrators, who act for other accounts: an integrator owns the accounts of all its
    /// taxpayers.
    pub fn acts_for_others(self) -> bool {
        matches!(self, Self::Operator(_) | Self::Integrator(_))
    }

    pub fn taxpayer(self) -> Option<TaxpayerId> {
        if let Self::Contact { taxpayer, .. } = self {
            Some(taxpayer)
        } else {
            None
        }
    }

    pub fn actor(self) -> Actor {
        match self {
            Self::Operator(id) => Actor::Operator(id),
            Self::Contact { id, .. } => Actor::Contact(id),
            Self::Integrator(id) => Actor::Integrator(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_it_is_old_or_was_not_used() {
        let limits = SessionLimits {
            idle: Duration::from_mins(30),
            longest: Duration::from_hours(12),
        };
        let now = Timestamp::UNIX_EPOCH;
        let after = |minutes| now + Duration::from_mins(minutes);
        let times = limits.new_session_times(now);
        assert!(limits.is_session_valid(&times, after(29)));
        assert!(!limits.is_session_valid(&times, after(30)), "idle");
        let used = |minutes| SessionTimes {
            seen_at: after(minutes),
            ..times
        };
        assert!(limits.is_session_valid(&used(719), after(719)));
        assert!(!limits.is_session_valid(&used(719), after(720)), "old");
        assert!(!times.must_update_seen_at(now) && times.must_update_seen_at(after(1)));
    }
}
