//! Why deliveries stop.

use crate::actors::taxpayer::handle::TaxpayerError;
use crate::store::db::error::StoreError;
use crate::webhook;

/// Why deliveries to an endpoint stopped. The endpoint's lane is released, and the deliveries continue later.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
    #[error("the signing secret cannot be used: {0}")]
    Secret(#[from] webhook::SecretFault),
    #[error("an attempt, or the reading or writing for this endpoint, panicked")]
    Panic,
}
