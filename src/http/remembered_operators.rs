//! The operators whose sessions and keys this process has recently found in the database. While the database does not
//! answer, these operators can still read the pages and responses that need no database, because they need these most
//! at such a time. Nobody else is remembered. A revoked session or key is forgotten at the next lookup that the
//! database answers.

use std::time::{Duration, Instant};

use dashmap::DashMap;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::access::session::{Session, SessionOwner};
use crate::store::accounts::keys::ValidKey;

/// The time for which a session or a key is remembered.
const REMEMBERED_AGE_MAX: Duration = Duration::from_mins(10);
/// The maximum number of remembered sessions. The same maximum applies to remembered keys.
const OPERATORS_MAX: usize = 1_000;

type SecretDigest = [u8; 32];

#[derive(Debug, Default)]
pub struct RememberedOperators {
    sessions: DashMap<SecretDigest, (Instant, Session)>,
    keys: DashMap<SecretDigest, (Instant, ValidKey)>,
}

impl RememberedOperators {
    /// Records the result of looking up a session token in the database. Remembers the session of an operator who has
    /// entered the code, and forgets the token otherwise.
    pub(crate) fn record_session_lookup(&self, token: &SecretString, found: Option<&Session>) {
        let operator = found.filter(|session| is_operator(session));
        remember_if_found_else_forget(
            &self.sessions,
            digest(token.expose_secret()),
            operator.cloned(),
        );
    }

    pub(crate) fn remembered_session(&self, token: &SecretString) -> Option<Session> {
        find_remembered(&self.sessions, digest(token.expose_secret()))
    }

    /// Records the result of looking up a key in the database. Remembers the key of an operator. Forgets any other key.
    pub(crate) fn record_key_lookup(&self, key: &str, found: Option<&ValidKey>) {
        let operator = found.filter(|key| key.role.is_some());
        remember_if_found_else_forget(&self.keys, digest(key), operator.cloned());
    }

    pub(crate) fn remembered_key(&self, key: &str) -> Option<ValidKey> {
        find_remembered(&self.keys, digest(key))
    }
}

fn is_operator(session: &Session) -> bool {
    matches!(session.person.owner, SessionOwner::Operator(_)) && !session.awaits_code
}

fn digest(secret: &str) -> SecretDigest {
    Sha256::digest(secret).into()
}

fn remember_if_found_else_forget<T>(
    remembered: &DashMap<SecretDigest, (Instant, T)>,
    secret: SecretDigest,
    value: Option<T>,
) {
    let Some(value) = value else {
        remembered.remove(&secret);
        return;
    };
    if remembered.len() >= OPERATORS_MAX {
        remembered.retain(|_, (remembered_at, _)| remembered_at.elapsed() < REMEMBERED_AGE_MAX);
    }
    if remembered.len() < OPERATORS_MAX || remembered.contains_key(&secret) {
        remembered.insert(secret, (Instant::now(), value));
    }
}

fn find_remembered<T: Clone>(
    remembered: &DashMap<SecretDigest, (Instant, T)>,
    secret: SecretDigest,
) -> Option<T> {
    let entry = remembered.get(&secret)?;
    let (remembered_at, value) = entry.value();
    (remembered_at.elapsed() < REMEMBERED_AGE_MAX).then(|| value.clone())
}
