//! The account and the document of a call, and who pays for it. The calls of one payer must not block those of another.

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::Taxpayer;

/// The account that a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerAccount {
    /// This service itself, which polls the transit list and fetches the reference lists.
    Service,
    Taxpayer {
        id: TaxpayerId,
        integrator: IntegratorId,
    },
    /// An integrator whose call is not on behalf of any taxpayer.
    Integrator(IntegratorId),
}

/// The payer of a call. Breakers and limits count by payer first, because an integrator creates as many taxpayers as it
/// likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallPayer {
    Service,
    Integrator(IntegratorId),
}

impl CallerAccount {
    pub fn taxpayer(self) -> Option<TaxpayerId> {
        if let Self::Taxpayer { id, .. } = self {
            Some(id)
        } else {
            None
        }
    }

    pub(crate) fn payer(self) -> CallPayer {
        match self {
            Self::Service => CallPayer::Service,
            Self::Taxpayer { integrator, .. } | Self::Integrator(integrator) => {
                CallPayer::Integrator(integrator)
            }
        }
    }
}

impl From<&Taxpayer> for CallerAccount {
    fn from(taxpayer: &Taxpayer) -> Self {
        Self::Taxpayer {
            id: taxpayer.id,
            integrator: taxpayer.integrator_id,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallOrigin {
    pub(crate) account: CallerAccount,
    /// `None` if the call concerns no document.
    pub(crate) irn: Option<Box<str>>,
}

impl CallOrigin {
    pub(crate) fn new(account: CallerAccount, irn: Option<&str>) -> Self {
        Self {
            account,
            irn: irn.map(Box::from),
        }
    }
}
