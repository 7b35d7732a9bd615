//! The table of second factors.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "second_factors")]
pub struct Model {
    /// The kind and the id of the account, such as `operator/3`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub owner: String,
    /// The TOTP secret, sealed by the vault.
    pub secret: String,
    pub confirmed_at: Option<i64>,
    pub last_step: i64,
    /// The number of wrong codes since `refused_since`.
    pub refused: i64,
    pub refused_since: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
