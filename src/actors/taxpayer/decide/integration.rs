//! How the taxpayer's ERP takes notifications, as an operator sets it, and the refresh tokens that its server hands
//! out in between.

use crate::actors::taxpayer::command::{IntegrationOrder, RenewedToken, Reply};
use crate::actors::taxpayer::decide::account::announce;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::audit::{AuditAction, AuditEntry};
use crate::domain::fault::{Fault, Faults};
use crate::domain::ids::CommandId;
use crate::domain::integration::{Integration, Kinds};
use crate::domain::refusal::Refusal;

/// Secrets that were not sent stay, of the same type of authentication.
pub(super) fn set(desk: &mut Desk, cause: CommandId, order: &IntegrationOrder) -> Result<Reply, Refusal> {
    desk.taxpayer()?;
    let stored = desk.integration.as_ref();
    let auth = order.auth.clone().completed(stored.map(|one| &one.auth)).map_err(missing)?;
    let integration = Integration {
        erp_system: order.erp_system.clone(),
        auth,
        format: order.format.clone(),
        version: stored.map_or(0, |one| one.version) + 1,
        created_at: stored.map_or(desk.now, |one| one.created_at),
        updated_at: desk.now,
    };
    let before = stored.map(|one| words(&one.kinds()));
    let entry = AuditEntry::ordered(&order.by, AuditAction::SetIntegration, &desk.id, desk.now);
    let entry = entry.of_taxpayer(desk.id).between(before, Some(words(&integration.kinds())));
    desk.changes.audit.push(entry);
    desk.put_integration(integration.clone());
    announce(desk, cause, &["integration"]);
    Ok(Reply::Integration(Box::new(integration)))
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

fn missing(names: Vec<&'static str>) -> Refusal {
    let fault = |name| {
        let path = format!("auth.{name}");
        let message = format!("The {path} field is required.");
        Fault::new(path, "required", message)
    };
    names.into_iter().map(fault).collect::<Faults>().into()
}

fn words(kinds: &Kinds) -> String {
    let erp = kinds.erp_system.as_deref().unwrap_or("no system named");
    format!("{}, {}, {erp}", kinds.auth_type, kinds.data_format)
}
