//! Authenticated callers. A handler that needs a right takes one of these types as a parameter.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

/// A taxpayer that authenticated with a `tpk_` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaxpayerCaller(pub TaxpayerId);

/// An integrator that authenticated with a `sik_` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegratorCaller(pub IntegratorId);

/// A caller of the core and access point APIs, which taxpayers and integrators can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Taxpayer(TaxpayerId),
    Integrator(IntegratorId),
}

/// The id of an operator, of any role, that authenticated with an `opk_` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpsViewer(pub i64);

/// The id of an operator with the role operator or admin, who may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpsOperator(pub i64);

/// The id of an operator with the role admin, who may change accounts, keys and integrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpsAdmin(pub i64);

words! {
    /// The type of account to which a key belongs. The prefix of the key shows the type.
    KeyKind { Taxpayer = "taxpayer", Integrator = "integrator", Operator = "operator" }
}

impl KeyKind {
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Taxpayer => "tpk_",
            Self::Integrator => "sik_",
            Self::Operator => "opk_",
        }
    }

    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| key.starts_with(kind.prefix()))
    }
}

/// Creates a key from 32 random bytes: the prefix of its kind, followed by the bytes in URL-safe base64.
pub fn new_key(kind: KeyKind, random: [u8; 32]) -> SecretString {
    format!("{}{}", kind.prefix(), URL_SAFE_NO_PAD.encode(random)).into()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_new_key_names_its_kind() {
        for kind in KeyKind::ALL {
            let key = new_key(*kind, [255; 32]);
            assert_eq!(KeyKind::from_key(key.expose_secret()), Some(*kind));
            assert_eq!(key.expose_secret().len(), 4 + 43);
        }
    }
}
