//! What working on a reconciliation takes, and why it may break off.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::Offset;

use crate::actors::reconciliation::door::Reconciliations;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::authority::{Authority, AuthorityFailure};
use crate::domain::kernel::clock::SharedClock;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;

/// What a reconciler does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rhythm {
    /// Today's ledgers so often, and those of each day once it has ended.
    Every(Duration),
    /// Only what is asked for.
    OnDemand,
    /// Only what is asked for, beside a service whose appointments stay as they are.
    Guest,
}

/// How often, how far back, in which zone; by whom and for how long.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub rhythm: Rhythm,
    /// Days that the timer looks at, today included.
    pub days: u32,
    pub zone: Offset,
    /// Names this process in the lease.
    pub owner: String,
    pub lease: Duration,
}

/// Compares ledgers.
#[derive(Clone)]
pub struct Reconciler {
    pub(super) store: Store,
    pub(super) taxpayers: Arc<TaxpayerHandle>,
    pub(super) authority: Authority,
    pub(super) clock: SharedClock,
    pub(super) schedule: Schedule,
    pub(super) door: Arc<Reconciliations>,
}

impl Reconciler {
    pub fn new(
        (store, clock): (Store, SharedClock),
        taxpayers: Arc<TaxpayerHandle>,
        authority: Authority,
        schedule: Schedule,
        door: Arc<Reconciliations>,
    ) -> Self {
        Self { store, taxpayers, authority, clock, schedule, door }
    }
}

/// Why a reconciliation came to no end.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokenOff {
    #[error("there is no such taxpayer any more")]
    Nobody,
    #[error("the day lies too far back: {0} pages of the authority's search did not reach it")]
    TooFarBack(u32),
    #[error("it was begun too often and never came to an end")]
    TooOften,
    #[error(transparent)]
    Authority(#[from] AuthorityFailure),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Books(#[from] TaxpayerError),
}

impl BrokenOff {
    /// Whether trying again would come to the same.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Nobody | Self::TooFarBack(_) | Self::TooOften => true,
            Self::Authority(failure) => failure.is_final(),
            Self::Store(error) => matches!(error, StoreError::Corrupt { .. }),
            Self::Books(failure) => matches!(failure, TaxpayerError::Quarantined { .. }),
        }
    }
}
