//! The errors that stop the work on a run.

use database::StoreError;

use crate::actors::taxpayer::handle::TaxpayerError;

/// An error that stops the work on a run for now. Unless another process holds the lane by then, the lane is released,
/// and the run continues later.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
}

impl RunError {
    /// True if another process has taken over the lane, so that this process must not release the lane.
    pub(super) fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Stale)
                | Self::Taxpayer(TaxpayerError::Store(StoreError::Stale))
        )
    }
}
