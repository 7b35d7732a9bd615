//! The table of the calls that runs make, one row for each attempt at a step. The outcome is added later.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::kernel::upstream::CallFailure;
use crate::domain::pipeline::StepRecord;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "pipeline_steps")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub run_id: String,
    pub step: String,
    pub attempt: i32,
    pub outcome: Option<String>,
    pub started_at: i64,
    pub duration_ms: Option<i64>,
    pub error: Option<String>,
    pub cause: Option<String>,
    pub blame: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for StepRecord {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "pipeline_steps",
            id: &row.id,
        };
        let blame = row
            .blame
            .as_deref()
            .map(|word| at.parse(word))
            .transpose()?;
        let failure = row.cause.as_deref().map(|word| -> Result<_, StoreError> {
            Ok(CallFailure {
                cause: at.parse(word)?,
                blame,
            })
        });
        Ok(Self {
            step: at.parse(&row.step)?,
            attempt: at.to_count(row.attempt)?,
            started_at: at.moment(row.started_at)?,
            outcome: row.outcome.clone(),
            duration_ms: row.duration_ms,
            error: row.error.clone(),
            failure: failure.transpose()?,
        })
    }
}
