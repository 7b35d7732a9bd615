//! The operators whose sessions and keys this process has recently found in the database. While the database does not
//! answer, these operators can still read the pages and responses that need no database, because they need them most
//! then. Nobody else is remembered. A revoked session or key is forgotten at the next lookup that the database answers.

use std::time::{Duration, Instant};

use dashmap::DashMap;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::access::session::{Session, SessionOwner};
use crate::store::accounts::keys::ValidKey;

/// The time for which a session or a key is remembered.
const REMEMBERED_FOR: Duration = Duration::from_mins(10);
/// The maximum number of remembered sessions, and likewise of remembered keys.
const OPERATORS_MAX: usize = 1_000;

type SecretDigest = [u8; 32];

#[derive(Debug, Default)]
pub struct RememberedOperators {
    sessions: DashMap<SecretDigest, (Instant, Session)>,
    keys: DashMap<SecretDigest, (Instant, ValidKey)>,
}

impl RememberedOperators {
    /// Remembers the session that the database has for this token, or forgets the token if it has none.
    pub(crate) fn note_session(&self, token: &SecretString, found: Option<&Session>) {
        let operator = found.filter(|session| is_operator(session));
        remember_or_forget(
            &self.sessions,
            digest(token.expose_secret()),
            operator.cloned(),
        );
    }

    pub(crate) fn remembered_session(&self, token: &SecretString) -> Option<Session> {
        find(&self.sessions, digest(token.expose_secret()))
    }

    /// Remembers the operator's key that the database has for this text, or forgets it if the database has none.
    pub(crate) fn note_key(&self, key: &str, found: Option<&ValidKey>) {
        let operator = found.filter(|key| key.role.is_some());
        remember_or_forget(&self.keys, digest(key), operator.cloned());
    }

    pub(crate) fn remembered_key(&self, key: &str) -> Option<ValidKey> {
        find(&self.keys, digest(key))
    }
}

fn is_operator(session: &Session) -> bool {
    matches!(session.person.owner, SessionOwner::Operator(_)) && !session.awaits_code
}

fn digest(secret: &str) -> SecretDigest {
    Sha256::digest(secret).into()
}

fn remember_or_forget<T>(
    known: &DashMap<SecretDigest, (Instant, T)>,
    secret: SecretDigest,
    found: Option<T>,
) {
    let Some(found) = found else {
        known.remove(&secret);
        return;
    };
    if known.len() >= OPERATORS_MAX {
        known.retain(|_, (seen, _)| seen.elapsed() < REMEMBERED_FOR);
    }
    if known.len() < OPERATORS_MAX || known.contains_key(&secret) {
        known.insert(secret, (Instant::now(), found));
    }
}

fn find<T: Clone>(known: &DashMap<SecretDigest, (Instant, T)>, secret: SecretDigest) -> Option<T> {
    let entry = known.get(&secret)?;
    let (seen, found) = entry.value();
    (seen.elapsed() < REMEMBERED_FOR).then(|| found.clone())
}
