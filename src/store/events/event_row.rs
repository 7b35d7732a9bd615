//! The table of events. `data` is the JSON text exactly as it was hashed.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::events::event::Event;
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "events")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub sequence: i64,
    pub id: String,
    pub kind: String,
    pub at: i64,
    pub irn: Option<String>,
    pub data: String,
    pub hash: String,
    pub command_id: String,
    pub actor: Option<String>,
    /// The trace of the request that caused the event, in the form of the header `traceparent`.
    pub trace: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Event {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "events",
            id: format!("{}/{}", row.taxpayer_id, row.sequence),
        };
        Ok(Self {
            id: at.parse(&row.id)?,
            taxpayer_id: TaxpayerId(row.taxpayer_id),
            sequence: row.sequence,
            kind: at.parse(&row.kind)?,
            timestamp: at.moment(row.at)?,
            command_id: at.parse(&row.command_id)?,
            trace: row
                .trace
                .as_deref()
                .map(|text| at.parse(text))
                .transpose()?,
            irn: row.irn,
            data: row.data,
            actor: row.actor,
            hash: row.hash,
        })
    }
}

impl From<&Event> for Model {
    fn from(event: &Event) -> Self {
        Self {
            taxpayer_id: event.taxpayer_id.0,
            sequence: event.sequence,
            id: event.id.to_string(),
            kind: event.kind.to_string(),
            at: event.timestamp.as_microsecond(),
            irn: event.irn.clone(),
            data: event.data.clone(),
            hash: event.hash.clone(),
            command_id: event.command_id.to_string(),
            actor: event.actor.clone(),
            trace: event.trace.map(|trace| trace.to_string()),
        }
    }
}
