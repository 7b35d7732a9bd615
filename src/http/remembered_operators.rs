//! The operators whose sessions and keys this process has lately found in the database. While the database is silent
//! they still see the pages and answers that need no database, which is when they need them most. Nobody else is
//! remembered, and a right that was taken away ends at the next look into the database.

use std::time::{Duration, Instant};

use dashmap::DashMap;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::access::session::{Session, SessionOwner};
use crate::store::accounts::keys::ValidKey;

/// For so long an operator is remembered.
const REMEMBERED_FOR: Duration = Duration::from_mins(10);
/// The most sessions, and the most keys, that are remembered.
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
        note(
            &self.sessions,
            digest(token.expose_secret()),
            operator.cloned(),
        );
    }

    pub(crate) fn session(&self, token: &SecretString) -> Option<Session> {
        find(&self.sessions, digest(token.expose_secret()))
    }

    /// Remembers what the database says of an operator's key.
    pub(crate) fn note_key(&self, key: &str, found: Option<&ValidKey>) {
        let operator = found.filter(|key| key.role.is_some());
        note(&self.keys, digest(key), operator.cloned());
    }

    pub(crate) fn key(&self, key: &str) -> Option<ValidKey> {
        find(&self.keys, digest(key))
    }
}

fn is_operator(session: &Session) -> bool {
    matches!(session.person.owner, SessionOwner::Operator(_)) && !session.awaits_code
}

fn digest(secret: &str) -> SecretDigest {
    Sha256::digest(secret).into()
}

fn note<T>(known: &DashMap<SecretDigest, (Instant, T)>, secret: SecretDigest, found: Option<T>) {
    let Some(found) = found else {
        known.remove(&secret);
        return;
    };
    if known.len() >= OPERATORS_MAX {
        known.retain(|_, (seen, _)| seen.elapsed() < REMEMBERED_FOR);
    }
    if known.len() < OPERATORS_MAX {
        known.insert(secret, (Instant::now(), found));
    }
}

fn find<T: Clone>(known: &DashMap<SecretDigest, (Instant, T)>, secret: SecretDigest) -> Option<T> {
    let entry = known.get(&secret)?;
    let (seen, found) = entry.value();
    (seen.elapsed() < REMEMBERED_FOR).then(|| found.clone())
}
