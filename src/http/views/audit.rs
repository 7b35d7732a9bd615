//! An entry of the audit log, as operators see it and as an integrator sees it.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::audit::{ActorKind, AuditAction, AuditEntry};
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(crate) struct AuditView<'a> {
    id: uuid::Uuid,
    at: String,
    actor: ActorKind,
    /// Id of the operator who acted; null if the actor is not an operator.
    operator_id: Option<i64>,
    operator: Option<&'a str>,
    /// Id of the contact person who acted; null if the actor is not a contact person.
    contact_id: Option<ContactId>,
    /// The integrator that may read this entry, too; null if only operators may.
    integrator_id: Option<IntegratorId>,
    action: AuditAction,
    taxpayer_id: Option<TaxpayerId>,
    subject: &'a str,
    from_state: Option<&'a str>,
    to_state: Option<&'a str>,
    reason: Option<&'a str>,
    /// IP address from which a person signed in or tried to; null for other actions.
    #[schema(value_type = Option<String>)]
    address: Option<IpAddr>,
}

/// An audit entry as integrators see it. It does not name the operator and shows no reason.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IntegratorAuditEntry)]
pub(crate) struct IntegratorAuditView<'a> {
    id: uuid::Uuid,
    at: String,
    actor: ActorKind,
    action: AuditAction,
    taxpayer_id: Option<TaxpayerId>,
    subject: &'a str,
    from_state: Option<&'a str>,
    to_state: Option<&'a str>,
}

impl<'a> AuditView<'a> {
    pub(crate) fn new(entry: &'a AuditEntry, operators: &'a HashMap<i64, String>) -> Self {
        let operator_id = entry.actor.operator_id();
        Self {
            id: entry.id,
            at: precise_time(entry.at),
            actor: entry.actor.kind(),
            operator_id,
            operator: operator_id
                .and_then(|id| operators.get(&id))
                .map(String::as_str),
            contact_id: entry.actor.contact_id(),
            integrator_id: entry.integrator_id,
            action: entry.action,
            taxpayer_id: entry.taxpayer_id,
            subject: &entry.subject,
            from_state: entry.from_state.as_deref(),
            to_state: entry.to_state.as_deref(),
            reason: entry.reason.as_deref(),
            address: entry.address,
        }
    }
}

impl<'a> From<&'a AuditEntry> for IntegratorAuditView<'a> {
    fn from(entry: &'a AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: precise_time(entry.at),
            actor: entry.actor.kind(),
            action: entry.action,
            taxpayer_id: entry.taxpayer_id,
            subject: &entry.subject,
            from_state: entry.from_state.as_deref(),
            to_state: entry.to_state.as_deref(),
        }
    }
}
