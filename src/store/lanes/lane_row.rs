//! Lanes: one row for each serialised thing.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "lanes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub kind: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    pub epoch: i64,
    pub owner: Option<String>,
    pub lease_until: Option<i64>,
    pub next_due_at: Option<i64>,
    pub version: i64,
    /// The taxpayer for fair claims; 0 for none.
    pub taxpayer_id: i64,
    pub deadline: i64,
    pub next_step: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
