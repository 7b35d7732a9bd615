//! Whom an attempt is made to: the endpoint, what signs for it, and how its ERP takes notifications.

use crate::domain::events::delivery::Endpoint;
use crate::domain::integration::Integration;
use crate::store::webhooks;
use crate::webhook::{Secret, SecretFault};

#[derive(Debug)]
pub(super) struct DeliveryTarget {
    pub(super) endpoint: Endpoint,
    pub(super) secrets: Vec<Secret>,
    pub(super) integration: Integration,
    /// Whether a replay is under way.
    pub(super) is_replaying: bool,
}

impl TryFrom<webhooks::LoadedEndpoint> for DeliveryTarget {
    type Error = SecretFault;

    fn try_from(found: webhooks::LoadedEndpoint) -> Result<Self, SecretFault> {
        let secrets = found.secrets.iter().map(|text| Secret::parse(text)).collect::<Result<_, _>>()?;
        let webhooks::LoadedEndpoint { endpoint, integration, is_replaying, .. } = found;
        Ok(Self { endpoint, secrets, integration, is_replaying })
    }
}
