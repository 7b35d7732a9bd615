//! The table of delivery attempts, one row for each attempt.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::events::delivery::{DeliveryAttempt, PhaseDurations};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "attempts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_name = "taxpayer_id")]
    pub endpoint_key: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub delivery_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub attempt: i32,
    pub at: i64,
    pub status: Option<i32>,
    pub failure: Option<String>,
    pub duration_ms: i64,
    pub response: String,
    pub dns_ms: Option<i64>,
    pub connect_ms: Option<i64>,
    pub wait_ms: Option<i64>,
    pub read_ms: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for DeliveryAttempt {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "attempts",
            id: format!("{}/{}", row.delivery_id, row.attempt),
        };
        let status = row
            .status
            .map(u16::try_from)
            .transpose()
            .map_err(|fault| at.corrupt(fault))?;
        Ok(Self {
            at: at.moment(row.at)?,
            status,
            failure: row.failure,
            duration_ms: row.duration_ms,
            phases: PhaseDurations {
                dns_ms: row.dns_ms,
                connect_ms: row.connect_ms,
                wait_ms: row.wait_ms,
                read_ms: row.read_ms,
            },
            response: row.response,
        })
    }
}
