//! The table of quarantined commands. The contents are sealed and are read only for a replay.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::quarantine::QuarantinedCommand;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "quarantine")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub reference: String,
    pub actor: String,
    pub command: String,
    pub taxpayer_id: Option<i64>,
    pub at: i64,
    pub panic: String,
    pub state: String,
    pub moved_at: Option<i64>,
    pub result: Option<String>,
    pub contents: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for QuarantinedCommand {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "quarantine",
            id: row.reference,
        };
        Ok(Self {
            reference: at.parse(&at.id)?,
            taxpayer_id: row.taxpayer_id.map(TaxpayerId),
            at: at.moment(row.at)?,
            state: at.parse(&row.state)?,
            moved_at: row.moved_at.map(|moment| at.moment(moment)).transpose()?,
            has_contents: row.contents.is_some(),
            actor: row.actor,
            command: row.command,
            panic: row.panic,
            result: row.result,
        })
    }
}
