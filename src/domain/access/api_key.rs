//! An API key as it is stored: scope, expiry and last use. The text of a key is shown once and never stored.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::{OperatorRole, SessionOwner};
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{IntegratorId, KeyId, TaxpayerId};

/// The longest time for which a key can stay valid after a new key has replaced it.
pub const OVERLAP_MAX: Duration = Duration::from_hours(7 * 24);
/// The maximum number of valid keys of one account, including replaced keys that are still valid for a while
/// (`KeyTerms::overlap`). The setting `accounts.keys_per_taxpayer_max` cannot be higher.
pub const VALID_KEYS_MAX: usize = 20;
/// The number of characters at the end of a key that lists show.
const SHOWN_CHARS: usize = 4;

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

impl KeyOwner {
    /// Returns the taxpayer whose account this is; `None` for an account of an integrator or an operator.
    pub fn taxpayer(self) -> Option<TaxpayerId> {
        (self.kind == KeyKind::Taxpayer).then_some(TaxpayerId(self.id))
    }

    /// Returns the person who signs in to this account with a password. `None` for a taxpayer, to whose account its
    /// contact persons sign in.
    pub fn session_owner(self) -> Option<SessionOwner> {
        match self.kind {
            KeyKind::Operator => Some(SessionOwner::Operator(self.id)),
            KeyKind::Integrator => Some(SessionOwner::Integrator(IntegratorId(self.id))),
            KeyKind::Taxpayer => None,
        }
    }
}

/// Formats the owner as the access log shows it, such as `taxpayer:7`.
impl fmt::Display for KeyOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

/// The terms that a caller can choose for a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyTerms {
    /// `None` means the scope of the key that the new key replaces, or full access if the account has no key yet.
    pub scope: Option<KeyScope>,
    /// `None` means that the key does not expire.
    pub expires_at: Option<Timestamp>,
    /// The time for which the replaced keys stay valid after the creation of the new key.
    pub overlap: Duration,
    /// True if the other keys of the account stay valid: the new key replaces none of them.
    pub keeps_others: bool,
}

/// A key that is not stored yet, with the text that a caller authenticates with.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub text: SecretString,
    /// The name that people gave the key.
    pub name: Option<String>,
    pub terms: KeyTerms,
}

impl NewKey {
    pub fn new(text: SecretString, terms: KeyTerms) -> Self {
        Self {
            text,
            name: None,
            terms,
        }
    }

    #[must_use]
    pub fn with_name(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    /// Returns the last characters of the key's text, by which people recognise the key.
    pub fn last_four(&self) -> String {
        visible_key_end(self.text.expose_secret())
    }

    /// Returns the key as the audit entry of its creation keeps it: the chosen terms, the id and the label. So a key
    /// that was revoked is still named.
    pub fn to_audit_state(&self) -> String {
        let id = KeyId::from_digest(&Sha256::digest(self.text.expose_secret()).into());
        let label = key_label(self.name.as_deref(), Some(&self.last_four())).unwrap_or_default();
        match self.terms.audit_note() {
            Some(note) => format!("{note}, key {id} {label}"),
            None => format!("key {id} {label}"),
        }
    }
}

/// Returns the id and the label of the key in such a state; `None` in entries from before these were kept.
pub fn split_audit_state(state: &str) -> Option<(&str, &str)> {
    let key = match state.strip_prefix("key ") {
        Some(key) => key,
        None => state.split_once(", key ")?.1,
    };
    key.split_once(' ')
}

/// Returns the last characters of a key's text, which are shown because the whole text is secret.
pub fn visible_key_end(key: &str) -> String {
    let skipped = key.chars().count().saturating_sub(SHOWN_CHARS);
    key.chars().skip(skipped).collect()
}

/// Returns the label of a key in texts: its name and the end of its text; `None` if neither is known.
pub fn key_label(name: Option<&str>, last_four: Option<&str>) -> Option<String> {
    match (name, last_four) {
        (Some(name), Some(last)) => Some(format!("{name} (…{last})")),
        (Some(name), None) => Some(name.to_owned()),
        (None, Some(last)) => Some(format!("…{last}")),
        (None, None) => None,
    }
}

impl ApiKey {
    /// Returns the label of the key in lists: its name and the end of its text, as far as they are known, otherwise its
    /// id.
    pub fn label(&self) -> String {
        key_label(self.name.as_deref(), self.last_four.as_deref())
            .unwrap_or_else(|| self.id.clone())
    }

    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }
}

/// A stored key of an account, without the text of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The id of the key within its account. A caller cannot authenticate with the id.
    pub id: String,
    /// The name that people gave the key; `None` if it has none.
    pub name: Option<String>,
    /// The last characters of the key's text; `None` for a key that was created before these were stored.
    pub last_four: Option<String>,
    pub scope: KeyScope,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// The time of the last use. It is written at most once a minute.
    pub last_used_at: Option<Timestamp>,
    /// The address of the last recorded use, if it is known.
    pub last_used_from: Option<IpAddr>,
}

/// An integrator or an operator with its keys. The newest key is first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountWithKeys {
    pub id: i64,
    /// The name of the integrator. Operators have no name.
    pub name: Option<String>,
    pub email: String,
    /// The role of an operator. Integrators have no role.
    pub role: Option<OperatorRole>,
    pub created_at: Timestamp,
    /// `None` if the account is enabled.
    pub disabled_at: Option<Timestamp>,
    pub keys: Vec<ApiKey>,
}

impl From<SecretString> for NewKey {
    /// Creates a key without expiry that replaces all other keys of the account at once.
    fn from(text: SecretString) -> Self {
        Self::new(text, KeyTerms::default())
    }
}

impl KeyTerms {
    /// Returns the chosen terms as text for the audit, such as `scope full`; `None` if all are defaults.
    pub fn audit_note(&self) -> Option<String> {
        let others = self.keeps_others.then(|| "keeps the other keys".to_owned());
        let overlap =
            (!self.overlap.is_zero()).then(|| format!("overlap_s {}", self.overlap.as_secs()));
        let scope = self.scope.map(|scope| format!("scope {scope}"));
        let end = self.expires_at.map(|end| format!("expires_at {end}"));
        let parts: Vec<_> = [others, overlap, scope, end]
            .into_iter()
            .flatten()
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the time at which a key that is replaced at `now` expires: after the overlap, or at `own_expiry`, the
    /// expiry of that key itself, if this is sooner.
    pub fn replaced_key_expiry(&self, now: Timestamp, own_expiry: Option<Timestamp>) -> Timestamp {
        let overlap = now
            .saturating_add(self.overlap.min(OVERLAP_MAX))
            .unwrap_or(Timestamp::MAX);
        own_expiry.map_or(overlap, |expiry| expiry.min(overlap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_and_integrators_sign_in_and_taxpayers_do_not() {
        let person = |kind| KeyOwner { kind, id: 7 }.session_owner();
        assert_eq!(person(KeyKind::Operator), Some(SessionOwner::Operator(7)));
        assert_eq!(
            person(KeyKind::Integrator),
            Some(SessionOwner::Integrator(IntegratorId(7)))
        );
        assert_eq!(person(KeyKind::Taxpayer), None);
    }

    #[test]
    fn the_audit_of_a_new_key_names_it() {
        let read_only = KeyTerms {
            scope: Some(KeyScope::ReadOnly),
            keeps_others: true,
            ..KeyTerms::default()
        };
        for (name, terms, label) in [
            (None, KeyTerms::default(), "…abcd"),
            (Some("Night run"), KeyTerms::default(), "Night run (…abcd)"),
            (Some("a, key b c"), read_only, "a, key b c (…abcd)"),
        ] {
            let key = NewKey::new(SecretString::from("tpk_abcd"), terms);
            let state = key.with_name(name.map(str::to_owned)).to_audit_state();
            let (id, found) = split_audit_state(&state).unwrap();
            assert!(id.parse::<KeyId>().is_ok(), "{state}");
            assert_eq!(found, label, "{state}");
        }
        for old in ["", "scope full", "keeps the other keys, scope full"] {
            assert_eq!(split_audit_state(old), None, "{old}");
        }
    }

    #[test]
    fn a_replaced_key_never_lives_longer_than_it_would_have_or_than_the_longest_overlap() {
        let now = Timestamp::UNIX_EPOCH;
        let after = |hours| now + Duration::from_hours(hours);
        let terms = |hours| KeyTerms {
            overlap: Duration::from_hours(hours),
            ..KeyTerms::default()
        };
        assert_eq!(terms(2).replaced_key_expiry(now, None), after(2));
        assert_eq!(terms(2).replaced_key_expiry(now, Some(after(1))), after(1));
        assert_eq!(terms(2).replaced_key_expiry(now, Some(after(3))), after(2));
        assert_eq!(terms(24 * 8).replaced_key_expiry(now, None), after(24 * 7));
    }
}
