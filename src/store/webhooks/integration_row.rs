//! The table of the integration settings of taxpayers' ERPs. `settings` holds the sealed credentials.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::integration::IntegrationSummary;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "integrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    pub erp_system: Option<String>,
    pub auth_type: String,
    pub data_format: String,
    pub format: String,
    pub settings: Option<String>,
    pub allowed_networks: Option<String>,
    pub version: i64,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for IntegrationSummary {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "integrations",
            id: row.taxpayer_id,
        };
        Ok(Self {
            auth_type: at.parse(&row.auth_type)?,
            data_format: at.parse(&row.data_format)?,
            erp_system: row.erp_system,
        })
    }
}
