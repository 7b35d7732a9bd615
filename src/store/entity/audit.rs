//! What operators did; the database refuses to change or delete a row.

use sea_orm::entity::prelude::*;

use crate::domain::audit::AuditEntry;
use crate::domain::ids::TaxpayerId;
use crate::store::entity::column::Row;
use crate::store::failure::StoreError;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub at: i64,
    pub operator_id: i64,
    pub action: String,
    pub taxpayer_id: Option<i64>,
    pub subject: String,
    pub from_state: Option<String>,
    pub to_state: Option<String>,
    pub reason: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for AuditEntry {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = Row { table: "audit", id: row.id.clone() };
        Ok(Self {
            id: at.parse(&row.id)?,
            at: at.moment(row.at)?,
            operator_id: row.operator_id,
            action: at.parse(&row.action)?,
            taxpayer_id: row.taxpayer_id.map(TaxpayerId),
            subject: row.subject,
            from_state: row.from_state,
            to_state: row.to_state,
            reason: row.reason,
        })
    }
}

impl From<&AuditEntry> for Model {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            at: entry.at.as_microsecond(),
            operator_id: entry.operator_id,
            action: entry.action.to_string(),
            taxpayer_id: entry.taxpayer_id.map(|id| id.0),
            subject: entry.subject.clone(),
            from_state: entry.from_state.clone(),
            to_state: entry.to_state.clone(),
            reason: entry.reason.clone(),
        }
    }
}
