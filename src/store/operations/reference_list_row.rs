//! The snapshot of the authority's reference lists; items are JSON.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "reference_lists")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub list: String,
    pub items: String,
    pub fetched_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
