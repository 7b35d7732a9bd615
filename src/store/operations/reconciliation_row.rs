//! The table of reconciliations, each of one day of one taxpayer. `is_latest` marks the last completed one of a day.

use database::StoreError;
use database::column::{RowRef, to_count_column};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reconciliation::day::{Reconciliation, ReconciliationCounts};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "reconciliations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub day: String,
    pub asked_by: String,
    pub state: String,
    pub attempts: i32,
    pub compared: i32,
    pub agreed: i32,
    pub in_progress: i32,
    pub repaired: i32,
    pub listed: i32,
    pub decided: i32,
    pub error: Option<String>,
    pub is_latest: bool,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
}

/// The condition of the latest reconciliations of their days, for queries about one taxpayer. `IS TRUE` keeps SQLite
/// from using the index on the column, in which it would read the reconciliations of all taxpayers.
pub(super) const IS_LATEST: &str = "is_latest IS TRUE";

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Reconciliation {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "reconciliations",
            id: &row.id,
        };
        Ok(Self {
            id: at.parse(&row.id)?,
            taxpayer_id: TaxpayerId(row.taxpayer_id),
            day: at.parse(&row.day)?,
            by: at.parse(&row.asked_by)?,
            state: at.parse(&row.state)?,
            attempts: at.to_count(row.attempts)?,
            counts: ReconciliationCounts {
                compared: at.to_count(row.compared)?,
                agreed: at.to_count(row.agreed)?,
                in_progress: at.to_count(row.in_progress)?,
                repaired: at.to_count(row.repaired)?,
                listed: at.to_count(row.listed)?,
                decided: at.to_count(row.decided)?,
            },
            created_at: at.moment(row.created_at)?,
            started_at: at.optional_moment(row.started_at)?,
            ended_at: at.optional_moment(row.ended_at)?,
            error: row.error,
        })
    }
}

impl From<&Reconciliation> for Model {
    fn from(reconciliation: &Reconciliation) -> Self {
        let ReconciliationCounts {
            compared,
            agreed,
            in_progress,
            repaired,
            listed,
            decided,
        } = reconciliation.counts;
        Self {
            taxpayer_id: reconciliation.taxpayer_id.0,
            id: reconciliation.id.to_string(),
            day: reconciliation.day.to_string(),
            asked_by: reconciliation.by.to_string(),
            state: reconciliation.state.to_string(),
            attempts: to_count_column(reconciliation.attempts),
            compared: to_count_column(compared),
            agreed: to_count_column(agreed),
            in_progress: to_count_column(in_progress),
            repaired: to_count_column(repaired),
            listed: to_count_column(listed),
            decided: to_count_column(decided),
            error: reconciliation.error.clone(),
            is_latest: false,
            created_at: reconciliation.created_at.as_microsecond(),
            started_at: reconciliation.started_at.map(Timestamp::as_microsecond),
            ended_at: reconciliation.ended_at.map(Timestamp::as_microsecond),
        }
    }
}
