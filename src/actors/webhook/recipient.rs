//! Whom an attempt is made to: the endpoint, what signs for it, and how its ERP takes notifications.

use crate::domain::delivery::Endpoint;
use crate::domain::integration::Integration;
use crate::store::webhooks;
use crate::webhook::{Secret, SecretFault};

#[derive(Debug)]
pub(super) struct Recipient {
    pub(super) endpoint: Endpoint,
    pub(super) secrets: Vec<Secret>,
    pub(super) integration: Integration,
}

impl TryFrom<webhooks::Recipient> for Recipient {
    type Error = SecretFault;

    fn try_from(found: webhooks::Recipient) -> Result<Self, SecretFault> {
        let secrets = found.secrets.iter().map(|text| Secret::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self { endpoint: found.endpoint, secrets, integration: found.integration })
    }
}
