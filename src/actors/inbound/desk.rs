//! What hearing the authority takes, and why it may come to nothing.

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

/// Notices that are worked on at once; the next one is to be sent again. Who may send them is told by a token, so
/// this bounds what even its holder can make us ask of the authority.
const NOTICES_AT_ONCE: usize = 32;

/// Works with what the authority says of invoices.
pub struct Inbound {
    pub(super) store: Store,
    pub(super) taxpayers: Arc<TaxpayerHandle>,
    pub(super) authority: Authority,
    pub(super) slots: Semaphore,
    policy: VerificationPolicy,
    withheld: [AtomicU64; Withheld::ALL.len()],
}

impl Inbound {
    pub fn new(
        store: Store,
        taxpayers: Arc<TaxpayerHandle>,
        authority: Authority,
        policy: VerificationPolicy,
    ) -> Self {
        let slots = Semaphore::new(NOTICES_AT_ONCE);
        Self { store, taxpayers, authority, slots, policy, withheld: Default::default() }
    }

    /// How often an invoice was withheld from its buyer, by the reason.
    pub fn withheld(&self) -> [(&'static str, u64); Withheld::ALL.len()] {
        Withheld::ALL.map(|why| (why.as_str(), self.withheld[why as usize].load(Ordering::Relaxed)))
    }

    /// The taxpayer that a tax number on a document names. Where several share it, none gets the invoice: it must not
    /// go to a stranger. Nor does who is not confirmed, where that is required.
    pub(super) async fn addressee(&self, irn: &Irn, tin: &str) -> Result<TaxpayerId, Unresolved> {
        let (why, holders) = match taxpayers::with_tin(&self.store, tin).await? {
            TinHolder::Nobody => return Err(Unresolved::Nobody),
            TinHolder::One(taxpayer) if taxpayer.check_verified(self.policy).is_ok() => {
                return Ok(taxpayer.id);
            }
            TinHolder::One(taxpayer) => (Withheld::Unverified, vec![taxpayer.id]),
            TinHolder::Several(holders) => (Withheld::Ambiguous, holders),
        };
        self.withheld[why as usize].fetch_add(1, Ordering::Relaxed);
        let taxpayers: Vec<i64> = holders.iter().map(|id| id.0).collect();
        tracing::warn!(%irn, reason = why.as_str(), ?taxpayers, "an invoice is withheld from its buyer");
        Err(Unresolved::Withheld)
    }
}

/// Why an invoice is not given to the taxpayer that its buyer may be.
#[derive(Debug, Clone, Copy)]
enum Withheld {
    Ambiguous,
    Unverified,
}

impl Withheld {
    const ALL: [Self; 2] = [Self::Ambiguous, Self::Unverified];

    fn as_str(self) -> &'static str {
        match self {
            Self::Ambiguous => "several_taxpayers_share_the_tin",
            Self::Unverified => "unverified_taxpayer",
        }
    }
}

/// Why nothing durable came of a notice. All but the first two may be different in a moment.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    #[error("nobody here sent or receives this invoice")]
    Nobody,
    #[error("the buyer of this invoice cannot be told for certain")]
    Withheld,
    #[error("too many notices are under way")]
    Busy,
    #[error("the authority was not heard in time")]
    TimedOut,
    #[error(transparent)]
    Authority(AuthorityFailure),
    #[error("the authority's document cannot be read: {0}")]
    Sealed(#[from] CryptoError),
    #[error(transparent)]
    Other(#[from] OtherInvoice),
    #[error(transparent)]
    Books(#[from] TaxpayerError),
}

impl From<AuthorityFailure> for Unresolved {
    /// What the authority does not know, or does not let us have, is nobody's here.
    fn from(failure: AuthorityFailure) -> Self {
        if failure.is_final() { Self::Nobody } else { Self::Authority(failure) }
    }
}

impl From<StoreError> for Unresolved {
    fn from(error: StoreError) -> Self {
        Self::Books(TaxpayerError::Store(error))
    }
}
