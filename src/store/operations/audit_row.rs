//! The table of audit entries. The database refuses to change or delete a row.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::kernel::audit::{Actor, ActorKind, AuditEntry};
use crate::domain::kernel::ids::{ContactId, IntegratorId, KeyId, TaxpayerId};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub at: i64,
    pub actor: String,
    pub operator_id: Option<i64>,
    pub integrator_id: Option<i64>,
    pub contact_id: Option<i64>,
    pub action: String,
    pub taxpayer_id: Option<i64>,
    pub subject: String,
    pub from_state: Option<String>,
    pub to_state: Option<String>,
    pub reason: Option<String>,
    pub address: Option<String>,
    pub key_id: Option<String>,
    /// The trace of the request that caused the action, in the form of the header `traceparent`.
    pub trace: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for AuditEntry {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "audit",
            id: row.id.clone(),
        };
        let integrator_id = row.integrator_id.map(IntegratorId);
        let actor = match (
            at.parse(&row.actor)?,
            row.operator_id,
            integrator_id,
            row.contact_id,
        ) {
            (ActorKind::Operator, Some(id), _, None) => Actor::Operator(id),
            (ActorKind::Integrator, None, Some(id), None) => Actor::Integrator(id),
            (ActorKind::Contact, None, _, Some(id)) => Actor::Contact(ContactId(id)),
            (ActorKind::TaxpayerKey, None, _, None) => Actor::TaxpayerKey(key_id(&row, &at)?),
            (ActorKind::CommandLine, None, _, None) => Actor::CommandLine,
            (ActorKind::Authority, None, _, None) => Actor::Authority,
            (ActorKind::Service, None, _, None) => Actor::Service,
            _ => return Err(at.corrupt("its actor is not the one it names")),
        };
        Ok(Self {
            id: at.parse(&row.id)?,
            at: at.moment(row.at)?,
            actor,
            integrator_id,
            action: at.parse(&row.action)?,
            taxpayer_id: row.taxpayer_id.map(TaxpayerId),
            subject: row.subject,
            from_state: row.from_state,
            to_state: row.to_state,
            reason: row.reason,
            address: row.address.map(|address| at.parse(&address)).transpose()?,
            trace: row.trace.map(|trace| at.parse(&trace)).transpose()?,
        })
    }
}

fn key_id(row: &Model, at: &RowRef<String>) -> Result<KeyId, StoreError> {
    at.parse(row.key_id.as_deref().unwrap_or_default())
}

impl From<&AuditEntry> for Model {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            at: entry.at.as_microsecond(),
            actor: entry.actor.kind().to_string(),
            operator_id: entry.actor.operator_id(),
            integrator_id: entry.integrator_id.map(|id| id.0),
            contact_id: entry.actor.contact_id().map(|id| id.0),
            action: entry.action.to_string(),
            taxpayer_id: entry.taxpayer_id.map(|id| id.0),
            subject: entry.subject.clone(),
            from_state: entry.from_state.clone(),
            to_state: entry.to_state.clone(),
            reason: entry.reason.clone(),
            address: entry.address.map(|address| address.to_string()),
            key_id: entry.actor.key_id().map(|id| id.to_string()),
            trace: entry.trace.map(|trace| trace.to_string()),
        }
    }
}
