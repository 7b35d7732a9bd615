//! The errors that stop the deliveries to an endpoint.

use database::StoreError;

use crate::actors::taxpayer::handle::TaxpayerError;

/// An error that stops the deliveries to an endpoint for now. The process releases its lease of the endpoint, if it
/// still holds it, and the deliveries continue later.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
    #[error("the signing secret cannot be used: {0}")]
    Secret(#[from] webhook_client::SecretFault),
    #[error("an attempt, or the reading or writing for this endpoint, panicked")]
    Panic,
}
