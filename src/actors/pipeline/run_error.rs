//! The errors that stop the work on a run.

use database::StoreError;

use crate::actors::taxpayer::handle::TaxpayerError;

/// An error that stops the work on a run for now. The lease of the run is released, unless another process has taken
/// over the run, and the run continues later.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
}

impl RunError {
    /// True if another process has taken over the run, so that this process has no lease to release.
    pub(super) fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Stale)
                | Self::Taxpayer(TaxpayerError::Store(StoreError::Stale))
        )
    }
}
