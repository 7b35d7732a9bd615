//! What hearing the authority takes, and why it may come to nothing.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::actors::taxpayer::door::{Failure, Taxpayers};
use crate::authority::{Authority, CryptoError, Failure as AuthorityFailure};
use crate::domain::supplier_invoice::OtherInvoice;
use crate::store::database::Store;
use crate::store::failure::StoreError;

/// Notices that are worked on at once; the next one is to be sent again. Who may send them is told by a token, so
/// this bounds what even its holder can make us ask of the authority.
const NOTICES_AT_ONCE: usize = 32;

/// Works with what the authority says of invoices.
pub struct Inbound {
    pub(super) store: Store,
    pub(super) taxpayers: Arc<Taxpayers>,
    pub(super) authority: Authority,
    pub(super) slots: Semaphore,
}

impl Inbound {
    pub fn new(store: Store, taxpayers: Arc<Taxpayers>, authority: Authority) -> Self {
        Self { store, taxpayers, authority, slots: Semaphore::new(NOTICES_AT_ONCE) }
    }
}

/// Why nothing durable came of a notice. All but the first may be different in a moment.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    #[error("nobody here sent or receives this invoice")]
    Nobody,
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
    Books(#[from] Failure),
}

impl From<AuthorityFailure> for Unresolved {
    /// What the authority does not know, or does not let us have, is nobody's here.
    fn from(failure: AuthorityFailure) -> Self {
        if failure.is_final() { Self::Nobody } else { Self::Authority(failure) }
    }
}

impl From<StoreError> for Unresolved {
    fn from(error: StoreError) -> Self {
        Self::Books(Failure::Store(error))
    }
}
