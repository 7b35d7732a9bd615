//! Finds the taxpayer that an invoice is addressed to, and withholds invoices from unverified addressees.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use authority_client::{Authority, AuthorityFailure, CryptoError};
use database::StoreError;
use tokio::sync::Semaphore;

use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::supplier_invoice::IrnMismatch;
use crate::store::Store;
use crate::store::accounts::taxpayers;

/// The maximum number of notices that are processed at the same time. If we refuse a notice, the authority repeats it
/// later.
const MAX_CONCURRENT_NOTICES: usize = 32;

/// Processes notices and the authority's list of invoices in transit, and serves the taxpayers' inboxes.
pub struct InboundInvoices {
    pub(super) store: Store,
    pub(super) taxpayers: Arc<TaxpayerHandle>,
    pub(super) authority: Authority,
    pub(super) slots: Semaphore,
    policy: VerificationPolicy,
    withheld: AtomicU64,
}

impl InboundInvoices {
    pub fn new(
        store: Store,
        taxpayers: Arc<TaxpayerHandle>,
        authority: Authority,
        policy: VerificationPolicy,
    ) -> Self {
        let slots = Semaphore::new(MAX_CONCURRENT_NOTICES);
        Self {
            store,
            taxpayers,
            authority,
            slots,
            policy,
            withheld: AtomicU64::default(),
        }
    }

    /// Returns how often since the start of the process an invoice was kept from its buyer's inbox, because the buyer
    /// was not verified.
    pub fn withheld_invoice_count(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed)
    }

    /// Returns the taxpayer with the tax number `tin`. Fails with `Withheld` if this taxpayer must be verified first.
    pub(super) async fn find_verified_addressee(
        &self,
        irn: &Irn,
        tin: &str,
    ) -> Result<TaxpayerId, NoticeError> {
        let Some(taxpayer) = taxpayers::find_by_tin(&self.store, tin).await? else {
            return Err(NoticeError::UnknownInvoice);
        };
        if taxpayer.check_verified(self.policy).is_ok() {
            return Ok(taxpayer.id);
        }
        self.withheld.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(%irn, taxpayer = taxpayer.id.0, "withheld an invoice from its unverified buyer");
        Err(NoticeError::Withheld)
    }
}

/// The reason why a notice had no lasting effect. The same notice may succeed soon, except after `UnknownInvoice` and
/// `Withheld`.
#[derive(Debug, thiserror::Error)]
pub enum NoticeError {
    #[error("nobody here sent or receives this invoice")]
    UnknownInvoice,
    #[error("the buyer of this invoice is not verified")]
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
    WrongDocument(#[from] IrnMismatch),
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
}

impl From<AuthorityFailure> for NoticeError {
    /// A final refusal means that the authority does not have the invoice or does not give it to us.
    fn from(failure: AuthorityFailure) -> Self {
        if failure.is_final() {
            Self::UnknownInvoice
        } else {
            Self::Authority(failure)
        }
    }
}

impl From<StoreError> for NoticeError {
    fn from(error: StoreError) -> Self {
        Self::Taxpayer(TaxpayerError::Store(error))
    }
}
