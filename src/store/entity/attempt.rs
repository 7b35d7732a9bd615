//! The log of delivery attempts.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "attempts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub delivery_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub attempt: i32,
    pub at: i64,
    pub status: Option<i32>,
    pub failure: Option<String>,
    pub duration_ms: i64,
    pub response: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
