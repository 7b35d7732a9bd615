//! How the taxpayer's ERP takes notifications, as an operator sets it, and the refresh tokens that its server hands
//! out in between.

use crate::actors::taxpayer::command::{IntegrationOrder, RenewedToken, Reply};
use crate::actors::taxpayer::decide::account::announce;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::integration::origin::Origin;
use crate::domain::integration::{AuthType, Integration, IntegrationSummary};
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;

/// Secrets that were not sent stay, of the same type of authentication and for the same origin.
pub(super) fn set(desk: &mut Desk, cause: CommandId, order: &IntegrationOrder) -> Result<Reply, Refusal> {
    desk.taxpayer()?;
    let origin = origin(desk, order)?;
    let stored = desk.integration.as_ref();
    let same_kind = stored.filter(|one| one.auth.kind() == order.auth.kind());
    let kept = same_kind.filter(|one| one.origin == origin).map(|one| &one.auth);
    let other = same_kind.and_then(|one| one.origin.as_ref()).filter(|other| Some(*other) != origin.as_ref());
    let auth = order.auth.clone().completed(kept).map_err(|names| missing(&names, other))?;
    let integration = Integration {
        erp_system: order.erp_system.clone(),
        auth,
        origin,
        format: order.format.clone(),
        allowed_networks: order.allowed_networks.clone(),
        version: stored.map_or(0, |one| one.version) + 1,
        created_at: stored.map_or(desk.now, |one| one.created_at),
        updated_at: desk.now,
    };
    let changed = integration.changed_since(&stored.cloned().unwrap_or_default());
    let before = stored.map(words);
    let entry = AuditEntry::ordered(&order.by, AuditAction::SetIntegration, &desk.id, desk.now);
    let entry = entry.of_taxpayer(desk.id).between(before, Some(words(&integration)));
    desk.changes.audit.push(entry);
    desk.put_integration(integration.clone());
    if !changed.is_empty() {
        announce(desk, cause, &changed);
    }
    Ok(Reply::Integration(Box::new(integration)))
}

/// The origin that credentials are for: the one that is named, else that of the URL at this moment. Where there is
/// neither, whoever sets the URL first would choose it.
fn origin(desk: &Desk, order: &IntegrationOrder) -> Result<Option<Origin>, Refusal> {
    if order.auth.kind() == AuthType::None {
        return Ok(None);
    }
    let of_url = || Origin::of(&desk.books.endpoint.as_ref()?.url);
    let origin = order.origin.clone().or_else(of_url);
    let unknown = || {
        let message = "The origin field is required while the taxpayer has no webhook_url.";
        Refusal::from(Fault::new("origin", "required", message))
    };
    origin.map(Some).ok_or_else(unknown)
}

/// A token that takes the place of one that is not there any more comes too late and is dropped. Whatever else an
/// operator has changed meanwhile, the one that was used is spent.
pub(super) fn keep_refresh_token(desk: &mut Desk, token: &RenewedToken) -> Reply {
    let stored = desk.integration.as_ref();
    let renewed = stored.and_then(|one| Some((one.clone(), one.auth.renewed(&token.used, &token.given)?)));
    if let Some((stored, auth)) = renewed {
        desk.put_integration(Integration { auth, ..stored });
    }
    Reply::Done
}

/// Secrets that neither were sent nor may be kept; `other` is the origin of those that are stored.
fn missing(names: &[&'static str], other: Option<&Origin>) -> Refusal {
    let why = other.map(|other| format!(": the stored one is for {other}")).unwrap_or_default();
    let fault = |name: &&str| {
        let path = format!("auth.{name}");
        let message = format!("The {path} field is required{why}.");
        Fault::new(path, "required", message)
    };
    names.iter().map(fault).collect::<Faults>().into()
}

fn words(integration: &Integration) -> String {
    let IntegrationSummary { erp_system, auth_type, data_format } = integration.kinds();
    let erp = erp_system.as_deref().unwrap_or("no system named");
    let origin = integration.origin.as_ref().map(|origin| format!(", for {origin}")).unwrap_or_default();
    let networks: Vec<_> = integration.allowed_networks.iter().map(ToString::to_string).collect();
    let networks = if networks.is_empty() { String::new() } else { format!(", in {}", networks.join(" ")) };
    format!("{auth_type}, {data_format}, {erp}{origin}{networks}")
}
