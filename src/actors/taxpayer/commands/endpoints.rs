//! The commands that add, change or remove a webhook endpoint other than the default one.

use webhook_client::SigningSecret;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::endpoint_audit_entry;
use crate::actors::taxpayer::commands::webhook::{
    configured_endpoint, emit_webhook_updated, record_endpoint_change, url_origin,
};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::endpoint::{ADDED_ENDPOINTS_MAX, Endpoint, RetryScheduleChange};
use crate::domain::kernel::audit::{Actor, AuditAction};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::settings::SettingChange;
use crate::store::ids::IdKind;

/// Adds an endpoint. It gets the events that happen from now on.
pub struct AddEndpoint {
    pub url: String,
    pub enabled_events: Vec<String>,
    pub description: Option<String>,
    pub retry_schedule: RetryScheduleChange,
    pub secret: SigningSecret,
    pub by: Actor,
}

/// Changes the settings of an endpoint. A new URL also enables the endpoint, because a caller who sets the URL wants
/// notifications there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeEndpoint {
    pub endpoint: EndpointKey,
    /// `None` keeps the URL. The other settings are kept likewise.
    pub url: Option<String>,
    pub enabled_events: Option<Vec<String>>,
    pub description: SettingChange<String>,
    pub retry_schedule: RetryScheduleChange,
    pub by: Actor,
}

/// Removes an added endpoint with its undelivered deliveries. Refuses to remove the default endpoint.
pub struct RemoveEndpoint {
    pub endpoint: EndpointKey,
    pub by: Actor,
}

impl TaxpayerCommand for AddEndpoint {
    type Output = Endpoint;

    const NAME: &'static str = "add-endpoint";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        wanted.add(IdKind::Webhook, 1);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Endpoint, Refusal> {
        uow.taxpayer()?;
        let added = uow.endpoints.iter().filter(|one| !one.key.is_default());
        if added.count() >= ADDED_ENDPOINTS_MAX {
            let sentence = format!(
                "The taxpayer has {ADDED_ENDPOINTS_MAX} endpoints beside the default one, which is the limit: \
                 delete one of them first."
            );
            return Err(Fault::new("url", "max", sentence).into());
        }
        let id = uow.ids.next(IdKind::Webhook);
        let endpoint = Endpoint {
            enabled_events: self.enabled_events.clone(),
            description: self.description.clone(),
            retry_schedule: self.retry_schedule.clone().apply_to(None),
            public_key: self.secret.public_key(),
            ..Endpoint::new_added_endpoint(id, uow.id, self.url.clone(), uow.now)
        };
        let secret = (endpoint.key, self.secret.clone());
        uow.writes.first_secrets.push(secret);
        record_endpoint_change(uow, self.by, None, &endpoint);
        uow.put_endpoint(endpoint.clone());
        Ok(endpoint)
    }
}

impl TaxpayerCommand for ChangeEndpoint {
    type Output = Endpoint;

    const NAME: &'static str = "change-endpoint";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Endpoint, Refusal> {
        let before = configured_endpoint(uow, self.endpoint)?;
        let mut endpoint = match &self.url {
            Some(url) => Endpoint {
                url: url.clone(),
                ..before.clone().enable(uow.now)
            },
            None => before.clone(),
        };
        if let Some(events) = &self.enabled_events {
            endpoint.enabled_events.clone_from(events);
        }
        self.description.clone().apply(&mut endpoint.description);
        endpoint.retry_schedule = self
            .retry_schedule
            .clone()
            .apply_to(endpoint.retry_schedule);
        endpoint.updated_at = uow.now;
        uow.put_endpoint(endpoint.clone());
        record_endpoint_change(uow, self.by, Some(&before), &endpoint);
        Ok(endpoint)
    }
}

impl TaxpayerCommand for RemoveEndpoint {
    type Output = ();

    const NAME: &'static str = "remove-endpoint";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        let endpoint = configured_endpoint(uow, self.endpoint)?;
        if endpoint.key.is_default() {
            return Err(Refusal::DefaultEndpointStays);
        }
        uow.remove_endpoint(endpoint.key);
        let entry = endpoint_audit_entry(uow, self.by, AuditAction::UpdateWebhook, endpoint.key);
        let entry = entry.with_states(url_origin(&endpoint), Some("deleted".to_owned()));
        uow.writes.audit.push(entry);
        emit_webhook_updated(uow, Some(&endpoint), &["deleted"]);
        Ok(())
    }
}
