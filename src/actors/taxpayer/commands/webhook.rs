//! The commands about webhook endpoints: the settings of the default endpoint, and the actions on any endpoint.

use jiff::Timestamp;
use serde_json::json;
use webhook_client::SigningSecret;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::endpoint_audit_entry;
use crate::actors::taxpayer::commands::replays::start_replay;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::endpoint::{Endpoint, RetryScheduleChange};
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::{Replay, ReplayRange, ReplayScope};
use crate::domain::integration::origin::Origin;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::notice::NoticeKind;
use crate::store::ids::IdKind;

/// Sets the URL, events and schedule of the default endpoint, and creates the endpoint at the first call. Every call
/// also enables the endpoint, because a caller who sets the URL wants notifications there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetWebhook {
    pub url: String,
    /// `None` keeps the enabled events as they are stored.
    pub enabled_events: Option<Vec<String>>,
    pub retry_schedule: RetryScheduleChange,
    pub by: Actor,
}

/// Gives the endpoint a new signing secret.
pub struct RotateSecret {
    pub endpoint: EndpointKey,
    pub secret: SigningSecret,
    pub by: Actor,
}

/// Disables the endpoint, unless it was changed since the sender read it: `as_of` is the `updated_at` that it had then.
pub struct DisableEndpoint {
    pub endpoint: EndpointKey,
    pub as_of: Timestamp,
    pub reason: String,
}

/// Enables the endpoint and starts a replay if one is given. A replay of failed deliveries covers the whole event log;
/// any other replay covers the events since the endpoint was last disabled.
pub struct EnableEndpoint {
    pub endpoint: EndpointKey,
    pub replay: Option<ReplayScope>,
    /// The reason that an operator gave.
    pub reason: Option<String>,
}

/// The enabled endpoint, and the replay if one was started.
pub struct EnabledEndpoint {
    pub endpoint: Endpoint,
    pub replay: Option<Replay>,
}

impl TaxpayerCommand for SetWebhook {
    type Output = Endpoint;

    const NAME: &'static str = "set-webhook";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        wanted.add(IdKind::Webhook, 1);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Endpoint, Refusal> {
        uow.taxpayer()?;
        let now = uow.now;
        let before = uow.endpoint(uow.id.into()).cloned();
        let stored = before.clone().unwrap_or_else(|| {
            let id = uow.ids.next(IdKind::Webhook);
            Endpoint::new(id, uow.id, self.url.clone(), now)
        });
        let mut endpoint = stored.enable(now);
        self.url.clone_into(&mut endpoint.url);
        if let Some(events) = &self.enabled_events {
            endpoint.enabled_events.clone_from(events);
        }
        endpoint.retry_schedule = self
            .retry_schedule
            .clone()
            .apply_to(endpoint.retry_schedule);
        uow.put_endpoint(endpoint.clone());
        record_endpoint_change(uow, self.by, before.as_ref(), &endpoint);
        Ok(endpoint)
    }
}

impl TaxpayerCommand for RotateSecret {
    type Output = ();

    const NAME: &'static str = "rotate-secret";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        uow.taxpayer()?;
        let endpoint = configured_endpoint(uow, self.endpoint)?;
        uow.put_endpoint(Endpoint {
            public_key: self.secret.public_key(),
            updated_at: uow.now,
            ..endpoint.clone()
        });
        let secret = (self.endpoint, self.secret.clone());
        uow.writes.secrets.push(secret);
        let entry = endpoint_audit_entry(
            uow,
            self.by,
            AuditAction::RotateWebhookSecret,
            self.endpoint,
        );
        uow.writes.audit.push(entry);
        emit_webhook_updated(uow, Some(&endpoint), &["secret"]);
        Ok(())
    }
}

impl TaxpayerCommand for DisableEndpoint {
    /// True if this command has disabled the endpoint, which was enabled and unchanged since `as_of`.
    type Output = bool;

    const NAME: &'static str = "disable-endpoint";

    fn execute(&self, uow: &mut UnitOfWork) -> Result<bool, Refusal> {
        let endpoint = configured_endpoint(uow, self.endpoint)?;
        // Compares microseconds, because the cached endpoint may have nanoseconds, which the database does not store.
        let is_changed = endpoint.updated_at.as_microsecond() != self.as_of.as_microsecond();
        if is_changed || !endpoint.is_active {
            return Ok(false);
        }
        uow.add_notice(
            NoticeKind::EndpointDisabled,
            &endpoint.name_in_mails(),
            &self.reason,
        );
        uow.put_endpoint(Endpoint {
            disabled_after: Some(uow.head.sequence),
            is_active: false,
            disabled_reason: Some(self.reason.clone()),
            updated_at: uow.now,
            ..endpoint
        });
        Ok(true)
    }
}

impl TaxpayerCommand for EnableEndpoint {
    type Output = EnabledEndpoint;

    const NAME: &'static str = "enable-endpoint";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        if self.replay.is_some() {
            wanted.add_replays();
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<EnabledEndpoint, Refusal> {
        let before = configured_endpoint(uow, self.endpoint)?;
        let endpoint = before.clone().enable(uow.now);
        let range = self.replay.map(|scope| {
            let is_failed = scope == ReplayScope::Failed;
            let after = before.disabled_after.filter(|_| !is_failed);
            let after = after.unwrap_or(0);
            ReplayRange::from_sequence(scope, after.saturating_add(1))
        });
        let replay = range
            .map(|range| start_replay(uow, &endpoint, range))
            .transpose()?;
        uow.put_endpoint(endpoint.clone());
        let scope = self.replay.map(|scope| format!("replay {scope}"));
        let entry = endpoint_audit_entry(
            uow,
            uow.acting.actor,
            AuditAction::EnableWebhook,
            self.endpoint,
        );
        uow.writes.audit.push(AuditEntry {
            reason: self.reason.clone(),
            ..entry.with_states(None, scope)
        });
        Ok(EnabledEndpoint { endpoint, replay })
    }
}

/// Records the change of an endpoint, or its creation, in the audit trail and the event log. Does nothing if nothing
/// changed.
pub(super) fn record_endpoint_change(
    uow: &mut UnitOfWork,
    by: Actor,
    before: Option<&Endpoint>,
    endpoint: &Endpoint,
) {
    let changed = endpoint.changed_fields_since(before);
    if changed.is_empty() {
        return;
    }
    let to = format!(
        "{} ({})",
        url_origin(endpoint).unwrap_or_default(),
        changed.join(", ")
    );
    let entry = endpoint_audit_entry(uow, by, AuditAction::UpdateWebhook, endpoint.key);
    let entry = entry.with_states(before.and_then(url_origin), Some(to));
    uow.writes.audit.push(entry);
    emit_webhook_updated(uow, Some(endpoint), &changed);
}

pub(super) fn url_origin(endpoint: &Endpoint) -> Option<String> {
    Origin::from_url(&endpoint.url).map(|origin| origin.to_string())
}

/// Emits the event that an endpoint was changed. It names the origin of the URL only, because the path may contain a
/// secret of the receiver.
pub(super) fn emit_webhook_updated(
    uow: &mut UnitOfWork,
    endpoint: Option<&Endpoint>,
    changed: &[&str],
) {
    let data = json!({
        "taxpayer_id": uow.id,
        "webhook_id": endpoint.map(|endpoint| endpoint.id),
        "webhook_origin": endpoint.and_then(|endpoint| Origin::from_url(&endpoint.url)),
        "changed": changed,
    });
    uow.emit(EventKind::WebhookUpdated, None, &data);
}

/// Returns the endpoint with this key. Fails with `WebhookNotConfigured` if the taxpayer has no default endpoint, and
/// with `EndpointNotFound` if there is no such other endpoint.
pub(super) fn configured_endpoint(uow: &UnitOfWork, key: EndpointKey) -> Result<Endpoint, Refusal> {
    uow.endpoint(key).cloned().ok_or(if key.is_default() {
        Refusal::WebhookNotConfigured
    } else {
        Refusal::EndpointNotFound
    })
}
