//! The table of the authority's outages. The unique index on `open` allows only one open outage. The column is null for
//! an outage that has ended.

use database::StoreError;
use database::column::{RowRef, json};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};

use crate::domain::outage::{AffectedOperation, Outage};

/// The value of `open` while an outage is open.
const AUTHORITY: &str = "authority";

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "outages")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub open: Option<String>,
    pub affected: String,
    pub started_at: i64,
    pub ended_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// An affected operation as stored in JSON. Times are in microseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
struct AffectedOperationRecord {
    operation: String,
    failed_at: i64,
    answered_at: Option<i64>,
}

impl TryFrom<Model> for Outage {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "outages",
            id: &row.id,
        };
        let parts: Vec<AffectedOperationRecord> = at.parse_json(&row.affected)?;
        let affected = parts.into_iter().map(|part| {
            Ok(AffectedOperation {
                operation: part.operation,
                failed_at: at.moment(part.failed_at)?,
                answered_at: part
                    .answered_at
                    .map(|micros| at.moment(micros))
                    .transpose()?,
            })
        });
        Ok(Self {
            id: at.parse(&row.id)?,
            affected: affected.collect::<Result<_, StoreError>>()?,
            started_at: at.moment(row.started_at)?,
            ended_at: at.optional_moment(row.ended_at)?,
        })
    }
}

impl From<&Outage> for Model {
    fn from(outage: &Outage) -> Self {
        let micros = Timestamp::as_microsecond;
        let affected = outage.affected.iter().map(|one| AffectedOperationRecord {
            operation: one.operation.clone(),
            failed_at: micros(one.failed_at),
            answered_at: one.answered_at.map(micros),
        });
        Self {
            id: outage.id.to_string(),
            open: outage.is_open().then(|| AUTHORITY.to_owned()),
            affected: json(&affected.collect::<Vec<_>>()),
            started_at: micros(outage.started_at),
            ended_at: outage.ended_at.map(micros),
        }
    }
}
