//! Standard Webhooks 1.0.0: the keys (`secret`) and the signatures made with them (`signature`).

mod secret;
mod signature;

pub use secret::{SecretFault, SigningSecret};
pub use signature::SignedMessage;
