//! The table of the findings of reconciliations. The findings of one reconciliation are numbered from 1.

use database::StoreError;
use database::column::{RowRef, to_count_column};
use sea_orm::entity::prelude::*;

use crate::domain::reconciliation::day::{
    Finding, OperatorDecision, Reconciliation, RecordedFinding,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "reconciliation_findings")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub reconciliation_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub number: i32,
    pub kind: String,
    pub irn: String,
    pub local: Option<String>,
    pub remote: Option<String>,
    pub action: String,
    pub detail: String,
    /// The time of an operator's decision on a listed finding. It is set together with the next two columns.
    pub decided_at: Option<i64>,
    pub decided_by: Option<i64>,
    pub decided_because: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for RecordedFinding {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let id = format!("{}/{}", row.reconciliation_id, row.number);
        let at = RowRef {
            table: "reconciliation_findings",
            id,
        };
        let decision = match (at.optional_moment(row.decided_at)?, row.decided_by) {
            (Some(decided_at), Some(operator_id)) => Some(OperatorDecision {
                operator_id,
                reason: row.decided_because.unwrap_or_default(),
                decided_at,
            }),
            _ => None,
        };
        Ok(Self {
            number: at.to_count(row.number)?,
            finding: Finding {
                kind: at.parse(&row.kind)?,
                action: at.parse(&row.action)?,
                irn: row.irn,
                local: row.local,
                remote: row.remote,
                detail: row.detail,
            },
            decision,
        })
    }
}

impl Model {
    pub(crate) fn new(owner: &Reconciliation, recorded: RecordedFinding) -> Self {
        let RecordedFinding {
            number,
            finding,
            decision,
        } = recorded;
        Self {
            taxpayer_id: owner.taxpayer_id.0,
            reconciliation_id: owner.id.to_string(),
            number: to_count_column(number),
            kind: finding.kind.to_string(),
            irn: finding.irn,
            local: finding.local,
            remote: finding.remote,
            action: finding.action.to_string(),
            detail: finding.detail,
            decided_at: decision.as_ref().map(|one| one.decided_at.as_microsecond()),
            decided_by: decision.as_ref().map(|one| one.operator_id),
            decided_because: decision.map(|one| one.reason),
        }
    }
}
