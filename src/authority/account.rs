//! For whom a call is made. Breakers and wait lines tell accounts apart, so that what one of them does costs the
//! others nothing.

use crate::domain::access::caller::Caller;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

/// The account that a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Account {
    /// This service itself: the pull and the copies of the reference lists.
    Service,
    Taxpayer(TaxpayerId),
    /// An integrator that acts for none of its taxpayers.
    Integrator(IntegratorId),
}

impl From<Caller> for Account {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::Taxpayer(id) => Self::Taxpayer(id),
            Caller::Integrator(id) => Self::Integrator(id),
        }
    }
}

/// Where a call comes from: the account, and the document that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) account: Account,
    /// `None` for a call that is about no document.
    pub(super) irn: Option<Box<str>>,
}

impl Origin {
    pub(super) fn new(account: Account, irn: Option<&str>) -> Self {
        Self { account, irn: irn.map(Box::from) }
    }
}
