//! The commands about the integration, which defines how the taxpayer's ERP receives notifications. An operator or
//! an owner of the account sets it; the server of the ERP issues new refresh tokens for it.

use address_policy::AllowedNetwork;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::commands::webhook::emit_webhook_updated;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::integration::origin::Origin;
use crate::domain::integration::{
    Auth, AuthType, Format, Integration, IntegrationSummary, SecretText,
};
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::refusal::Refusal;

/// Replaces the settings for how the ERP receives notifications. A secret that is absent keeps its stored value, if the
/// type of authentication and the origin stay the same.
#[derive(Debug, Clone)]
pub struct SetIntegration {
    pub erp_system: Option<String>,
    pub auth: Auth<Option<SecretText>>,
    /// The origin to which the credentials may be sent. `None` means the origin of the webhook's URL.
    pub origin: Option<Origin>,
    pub format: Format,
    /// `None` keeps the networks. Only an operator may change them.
    pub allowed_networks: Option<Vec<AllowedNetwork>>,
    pub by: Actor,
    pub reason: Option<String>,
}

/// Stores a new refresh token in place of the used one, even if an operator has changed other settings since. Drops the
/// new token if the used one is no longer stored.
#[derive(Debug, Clone)]
pub struct StoreRefreshToken {
    pub used_token: SecretText,
    pub new_token: SecretText,
}

impl TaxpayerCommand for SetIntegration {
    type Output = Integration;

    const NAME: &'static str = "set-integration";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_integration();
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Integration, Refusal> {
        uow.taxpayer()?;
        let origin = origin_to_store(uow, self)?;
        let stored = uow.integration.as_ref();
        let kind = self.auth.kind();
        let same_kind = stored.filter(|one| one.auth.kind() == kind);
        let kept = same_kind
            .filter(|one| one.origin == origin)
            .map(|one| &one.auth);
        let other = same_kind
            .and_then(|one| one.origin.as_ref())
            .filter(|other| Some(*other) != origin.as_ref());
        let auth = self
            .auth
            .clone()
            .fill_secrets(kept)
            .map_err(|names| missing_secrets_refusal(&names, other))?;
        let networks = stored
            .map(|one| one.allowed_networks.clone())
            .unwrap_or_default();
        let integration = Integration {
            erp_system: self.erp_system.clone(),
            auth,
            origin,
            format: self.format.clone(),
            allowed_networks: self.allowed_networks.clone().unwrap_or(networks),
            version: stored.map_or(0, |one| one.version) + 1,
            created_at: stored.map_or(uow.now, |one| one.created_at),
            updated_at: uow.now,
        };
        let changed = integration.changed_fields_since(&stored.cloned().unwrap_or_default());
        let before = stored.map(describe_integration);
        let entry = audit_entry(uow, self.by, AuditAction::SetIntegration);
        let entry = entry.with_states(before, Some(describe_integration(&integration)));
        uow.writes.audit.push(AuditEntry {
            reason: self.reason.clone(),
            ..entry
        });
        *uow.integration = Some(integration.clone());
        if !changed.is_empty() {
            let endpoint = uow.endpoint(uow.id.into()).cloned();
            emit_webhook_updated(uow, endpoint.as_ref(), &changed);
        }
        Ok(integration)
    }
}

impl TaxpayerCommand for StoreRefreshToken {
    type Output = ();

    const NAME: &'static str = "store-refresh-token";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_integration();
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        let stored = uow.integration.as_ref();
        let renewed = stored.and_then(|one| {
            Some((
                one.clone(),
                one.auth
                    .replace_refresh_token(&self.used_token, &self.new_token)?,
            ))
        });
        if let Some((stored, auth)) = renewed {
            *uow.integration = Some(Integration { auth, ..stored });
        }
        Ok(())
    }
}

/// Returns the origin to which the credentials may be sent: the one that the operator named, or that of the current
/// URL. Refuses the change if there is neither, because otherwise the next caller who sets a URL would choose the
/// origin.
fn origin_to_store(uow: &UnitOfWork, change: &SetIntegration) -> Result<Option<Origin>, Refusal> {
    if change.auth.kind() == AuthType::None {
        return Ok(None);
    }
    let origin = change
        .origin
        .clone()
        .or_else(|| Origin::from_url(&uow.endpoint(uow.id.into())?.url));
    origin.map(Some).ok_or_else(|| {
        let message = "The origin field is required while the taxpayer has no webhook_url.";
        Refusal::from(Fault::new("origin", "required", message))
    })
}

/// Returns the refusal for absent secrets whose stored values may not be kept. `stored_origin` is the origin of the
/// stored values, if it differs from the new origin.
fn missing_secrets_refusal(names: &[&'static str], stored_origin: Option<&Origin>) -> Refusal {
    let why = stored_origin
        .map(|origin| format!(": the stored one is for {origin}"))
        .unwrap_or_default();
    let faults = names.iter().map(|name| {
        let path = format!("auth.{name}");
        let message = format!("The {path} field is required{why}.");
        Fault::new(path, "required", message)
    });
    faults.collect::<Faults>().into()
}

fn describe_integration(integration: &Integration) -> String {
    let IntegrationSummary {
        erp_system,
        auth_type,
        data_format,
    } = integration.summary();
    let erp = erp_system.as_deref().unwrap_or("no system named");
    let origin = integration
        .origin
        .as_ref()
        .map(|origin| format!(", for {origin}"))
        .unwrap_or_default();
    let networks: Vec<_> = integration
        .allowed_networks
        .iter()
        .map(ToString::to_string)
        .collect();
    let networks = if networks.is_empty() {
        String::new()
    } else {
        format!(", in {}", networks.join(" "))
    };
    format!("{auth_type}, {data_format}, {erp}{origin}{networks}")
}
