//! The table of recovery codes. A row holds the SHA-256 of a code that is not used yet.

use sea_orm::entity::prelude::*;

use crate::domain::access::second_factor::RecoveryCode;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "recovery_codes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub operator_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub(super) fn new(operator_id: i64, code: &RecoveryCode) -> Self {
        Self { operator_id, hash: code.hash() }
    }
}
