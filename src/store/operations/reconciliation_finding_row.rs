//! The table of the findings of reconciliations. The findings of one reconciliation are numbered from 1.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::reconciliation::day::{Finding, Reconciliation};

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
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Finding {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let id = format!("{}/{}", row.reconciliation_id, row.number);
        let at = RowRef {
            table: "reconciliation_findings",
            id,
        };
        Ok(Self {
            kind: at.parse(&row.kind)?,
            action: at.parse(&row.action)?,
            irn: row.irn,
            local: row.local,
            remote: row.remote,
            detail: row.detail,
        })
    }
}

impl Model {
    pub(crate) fn from_finding(owner: &Reconciliation, number: i32, finding: &Finding) -> Self {
        Self {
            taxpayer_id: owner.taxpayer_id.0,
            reconciliation_id: owner.id.to_string(),
            number,
            kind: finding.kind.to_string(),
            irn: finding.irn.clone(),
            local: finding.local.clone(),
            remote: finding.remote.clone(),
            action: finding.action.to_string(),
            detail: finding.detail.clone(),
        }
    }
}
