//! Who calls. A handler that needs a right takes one of these as a parameter; without it there is no
//! value to call with.

use crate::domain::codes::words;
use crate::domain::ids::{IntegratorId, TaxpayerId};

/// A taxpayer, by its `tpk_` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaxpayerCaller(pub TaxpayerId);

/// An integrator, by its `sik_` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegratorCaller(pub IntegratorId);

/// Either of them, on the core and access point surfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Taxpayer(TaxpayerId),
    Integrator(IntegratorId),
}

words! {
    /// The account type that a key's prefix names.
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

    pub fn of(key: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| key.starts_with(kind.prefix()))
    }
}
