//! The account and the document of a call, and who pays for it. The calls of one payer must not block those of another.

/// The account that a call is made for. The ids are the service's own: here they are only compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerAccount {
    /// The service itself, which polls the transit list and fetches the reference lists.
    Service,
    Taxpayer {
        id: i64,
        /// The payer of this taxpayer's calls. One payer may pay for many taxpayers.
        payer: i64,
    },
    /// A payer whose call is not on behalf of any taxpayer.
    Payer(i64),
}

/// The payer of a call. Breakers and limits count by payer first, because a payer creates as many taxpayers as it
/// likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PayerOrService {
    Service,
    Payer(i64),
}

impl PayerOrService {
    /// Returns the id of the payer; `None` for the service itself.
    pub(crate) fn id(self) -> Option<i64> {
        match self {
            Self::Service => None,
            Self::Payer(id) => Some(id),
        }
    }
}

impl CallerAccount {
    /// Returns the id of the taxpayer that the call is made for.
    pub fn taxpayer(self) -> Option<i64> {
        if let Self::Taxpayer { id, .. } = self {
            Some(id)
        } else {
            None
        }
    }

    pub(crate) fn payer(self) -> PayerOrService {
        match self {
            Self::Service => PayerOrService::Service,
            Self::Taxpayer { payer, .. } | Self::Payer(payer) => PayerOrService::Payer(payer),
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
