//! The account and the document of a call. Breakers and queues keep accounts apart, so that one account's calls
//! cannot block the others'.

use crate::domain::access::caller::Caller;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

/// The account that a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerAccount {
    /// This service itself: the polling of the transit list and the copies of the reference lists.
    Service,
    Taxpayer(TaxpayerId),
    /// An integrator that acts for none of its taxpayers.
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

/// The account and the document of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallOrigin {
    pub(crate) account: CallerAccount,
    /// `None` for a call that concerns no document.
    pub(crate) irn: Option<Box<str>>,
}

impl CallOrigin {
    pub(crate) fn new(account: CallerAccount, irn: Option<&str>) -> Self {
        Self { account, irn: irn.map(Box::from) }
    }
}
