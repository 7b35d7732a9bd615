//! The account and the document of a call. The calls of one account must not block another account.

use crate::domain::access::caller::Caller;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

/// The account that a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerAccount {
    /// This service itself, which polls the transit list and fetches the reference lists.
    Service,
    Taxpayer(TaxpayerId),
    /// An integrator whose call is not on behalf of any taxpayer.
    Integrator(IntegratorId),
}

impl From<Caller> for CallerAccount {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::Taxpayer(id) => Self::Taxpayer(id),
            Caller::Integrator(id) => Self::Integrator(id),
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
        Self { account, irn: irn.map(Box::from) }
    }
}
