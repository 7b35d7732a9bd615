//! Finds the taxpayer that an invoice is addressed to, and withholds invoices whose addressee is not certain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Semaphore;

use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::authority::{Authority, AuthorityFailure, CryptoError};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::supplier_invoice::OtherInvoice;
use crate::store::accounts::taxpayers::{self, TinHolder};
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;

/// Notices processed concurrently; further ones are refused and sent again by the authority. It bounds the calls that
/// even the holder of the notification token can cause.
const MAX_CONCURRENT_NOTICES: usize = 32;

/// Processes notices and the authority's list of invoices in transit, and reads the inbox.
pub struct Inbound {
    pub(super) store: Store,
    pub(super) taxpayers: Arc<TaxpayerHandle>,
    pub(super) authority: Authority,
    pub(super) slots: Semaphore,
    policy: VerificationPolicy,
    withheld: [AtomicU64; WithheldReason::ALL.len()],
}

impl Inbound {
    pub fn new(
        store: Store,
        taxpayers: Arc<TaxpayerHandle>,
        authority: Authority,
        policy: VerificationPolicy,
    ) -> Self {
        let slots = Semaphore::new(MAX_CONCURRENT_NOTICES);
        Self { store, taxpayers, authority, slots, policy, withheld: Default::default() }
    }

    /// Counts of invoices withheld from their buyer, by reason.
    pub fn withheld(&self) -> [(&'static str, u64); WithheldReason::ALL.len()] {
        WithheldReason::ALL
            .map(|reason| (reason.as_str(), self.withheld[reason as usize].load(Ordering::Relaxed)))
    }

    /// The taxpayer with the tax number of a document. The invoice is withheld if several taxpayers share the number,
    /// because it must not go to a stranger, or if the taxpayer is not verified and verification is required.
    pub(super) async fn addressee(&self, irn: &Irn, tin: &str) -> Result<TaxpayerId, NoticeError> {
        let (reason, holders) = match taxpayers::with_tin(&self.store, tin).await? {
            TinHolder::Nobody => return Err(NoticeError::UnknownInvoice),
            TinHolder::One(taxpayer) if taxpayer.check_verified(self.policy).is_ok() => {
                return Ok(taxpayer.id);
            }
            TinHolder::One(taxpayer) => (WithheldReason::Unverified, vec![taxpayer.id]),
            TinHolder::Several(holders) => (WithheldReason::Ambiguous, holders),
        };
        self.withheld[reason as usize].fetch_add(1, Ordering::Relaxed);
        let taxpayers: Vec<i64> = holders.iter().map(|id| id.0).collect();
        tracing::warn!(%irn, reason = reason.as_str(), ?taxpayers, "withheld an invoice from its buyer");
        Err(NoticeError::Withheld)
    }
}

/// Why an invoice is withheld from its possible buyer.
#[derive(Debug, Clone, Copy)]
enum WithheldReason {
    Ambiguous,
    Unverified,
}

impl WithheldReason {
    const ALL: [Self; 2] = [Self::Ambiguous, Self::Unverified];

    fn as_str(self) -> &'static str {
        match self {
            Self::Ambiguous => "several_taxpayers_share_the_tin",
            Self::Unverified => "unverified_taxpayer",
        }
    }
}

/// Why a notice had no durable effect. All but the first two are transient.
#[derive(Debug, thiserror::Error)]
pub enum NoticeError {
    #[error("nobody here sent or receives this invoice")]
    UnknownInvoice,
    #[error("the buyer of this invoice is not certain")]
    Withheld,
    #[error("too many notices are being processed")]
    Busy,
    #[error("the authority did not answer in time")]
    TimedOut,
    #[error(transparent)]
    Authority(AuthorityFailure),
    #[error("the authority's document cannot be read: {0}")]
    Undecryptable(#[from] CryptoError),
    #[error(transparent)]
    WrongDocument(#[from] OtherInvoice),
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
}

impl From<AuthorityFailure> for NoticeError {
    /// A final failure means that the authority does not know the invoice or does not let us have it.
    fn from(failure: AuthorityFailure) -> Self {
        if failure.is_final() { Self::UnknownInvoice } else { Self::Authority(failure) }
    }
}

impl From<StoreError> for NoticeError {
    fn from(error: StoreError) -> Self {
        Self::Taxpayer(TaxpayerError::Store(error))
    }
}
