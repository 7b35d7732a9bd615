//! An API key as stored on its account: scope, expiry and last use. The text of a key is shown once, when it
//! is made, and is not stored.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;

use crate::domain::access::caller::KeyKind;
use crate::domain::kernel::codes::words;

/// The longest time for which a replaced key stays valid.
pub const OVERLAP_MAX: Duration = Duration::from_hours(7 * 24);
/// Keys of one account that may be valid at a time: the newest, and those it replaced with an overlap.
pub const VALID_KEYS_MAX: usize = 5;

words! {
    /// The permissions of a key.
    KeyScope { Full = "full", ReadOnly = "read_only" }
}

/// The account that a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyOwner {
    pub kind: KeyKind,
    pub id: i64,
}

/// As the access log shows it: `taxpayer:7`.
impl fmt::Display for KeyOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

/// The scope, expiry and overlap of a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyTerms {
    /// None keeps the scope of the replaced key; a first key gets full access.
    pub scope: Option<KeyScope>,
    /// None means that the key does not expire.
    pub expires_at: Option<Timestamp>,
    /// How long replaced keys stay valid beside the new one.
    pub overlap: Duration,
}

/// A key that is not stored yet, with its text.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub text: SecretString,
    pub terms: KeyTerms,
}

/// A key of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Identifies a key within its account; it does not authenticate.
    pub id: String,
    pub scope: KeyScope,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Written at most once a minute.
    pub last_used_at: Option<Timestamp>,
}

/// An integrator or an operator with its keys, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    pub id: i64,
    /// Operators have none.
    pub name: Option<String>,
    pub email: String,
    pub created_at: Timestamp,
    pub keys: Vec<ApiKey>,
}

impl From<SecretString> for NewKey {
    /// Makes a key without expiry that replaces all others at once and keeps the scope of the newest.
    fn from(text: SecretString) -> Self {
        Self { text, terms: KeyTerms::default() }
    }
}

impl KeyTerms {
    /// Returns the terms as audit text; `None` for a plain replacement.
    pub fn noted(&self) -> Option<String> {
        let overlap = (!self.overlap.is_zero()).then(|| format!("overlap_s {}", self.overlap.as_secs()));
        let scope = self.scope.map(|scope| format!("scope {scope}"));
        let end = self.expires_at.map(|end| format!("expires_at {end}"));
        let parts: Vec<_> = [overlap, scope, end].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns when a key replaced now ends: at its own expiry or after the overlap, whichever is sooner.
    pub fn end_of_replaced(&self, now: Timestamp, had: Option<Timestamp>) -> Timestamp {
        let overlap = now.saturating_add(self.overlap.min(OVERLAP_MAX)).unwrap_or(Timestamp::MAX);
        had.map_or(overlap, |had| had.min(overlap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_key_never_lives_longer_than_it_would_have_or_than_the_longest_overlap() {
        let now = Timestamp::UNIX_EPOCH;
        let after = |hours| now + Duration::from_hours(hours);
        let terms = |hours| KeyTerms { overlap: Duration::from_hours(hours), ..KeyTerms::default() };
        assert_eq!(terms(2).end_of_replaced(now, None), after(2));
        assert_eq!(terms(2).end_of_replaced(now, Some(after(1))), after(1));
        assert_eq!(terms(2).end_of_replaced(now, Some(after(3))), after(2));
        assert_eq!(terms(24 * 8).end_of_replaced(now, None), after(24 * 7));
    }
}
