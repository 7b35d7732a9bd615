//! The reconciler: its dependencies, schedule and errors.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::Offset;

use crate::actors::reconciliation::handle::ReconciliationHandle;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::authority::{Authority, AuthorityFailure};
use crate::domain::kernel::clock::SharedClock;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;

/// The days that a reconciler compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconciliationMode {
    /// Compares today at this interval, and each day once after its end.
    Periodic(Duration),
    /// Compares only requested days.
    OnDemand,
    /// Compares only requested days, in a process that runs beside the service and does not change the service's
    /// schedule.
    OneShot,
}

/// The mode of a reconciler, the days that it compares, and the owner and duration of its lease.
#[derive(Debug, Clone)]
pub struct ReconciliationSchedule {
    pub mode: ReconciliationMode,
    /// The number of days that are compared periodically, including today.
    pub days: u32,
    pub zone: Offset,
    /// The owner name that this process writes into its leases.
    pub owner: String,
    pub lease: Duration,
}

/// Compares our ledger with the authority's ledger.
#[derive(Clone)]
pub struct Reconciler {
    pub(super) store: Store,
    pub(super) taxpayers: Arc<TaxpayerHandle>,
    pub(super) authority: Authority,
    pub(super) clock: SharedClock,
    pub(super) schedule: ReconciliationSchedule,
    pub(super) handle: Arc<ReconciliationHandle>,
}

impl Reconciler {
    pub fn new(
        taxpayers: Arc<TaxpayerHandle>,
        authority: Authority,
        schedule: ReconciliationSchedule,
        handle: Arc<ReconciliationHandle>,
    ) -> Self {
        let (store, clock) = (handle.store.clone(), handle.clock.clone());
        Self { store, taxpayers, authority, clock, schedule, handle }
    }
}

/// Why a reconciliation did not complete.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconciliationError {
    #[error("the taxpayer no longer exists")]
    UnknownTaxpayer,
    #[error("the day is too far back: {0} pages of the authority's search did not reach it")]
    TooFarBack(u32),
    #[error("it was started too often and never completed")]
    AttemptsExhausted,
    #[error(transparent)]
    Authority(#[from] AuthorityFailure),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
}

impl ReconciliationError {
    /// True if another try would fail in the same way.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::UnknownTaxpayer | Self::TooFarBack(_) | Self::AttemptsExhausted => true,
            Self::Authority(failure) => failure.is_final(),
            Self::Store(error) => matches!(error, StoreError::Corrupt { .. }),
            Self::Taxpayer(failure) => matches!(failure, TaxpayerError::Quarantined { .. }),
        }
    }
}
