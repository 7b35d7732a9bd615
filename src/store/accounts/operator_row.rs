//! The table of operators of the service.

use sea_orm::entity::prelude::*;

use crate::domain::access::api_key::KeyHolder;
use crate::store::db::column::RowRef;
use crate::store::db::error::StoreError;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "operators")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub email: String,
    pub email_key: String,
    pub password_hash: String,
    pub role: String,
    pub created_at: i64,
    /// Sealed; `None` if the operator has no second factor.
    pub totp_secret: Option<String>,
    pub totp_confirmed_at: Option<i64>,
    pub totp_last_step: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for KeyHolder {
    type Error = StoreError;

    /// Converts the account without its keys, which are rows of another table.
    fn try_from(row: Model) -> Result<Self, StoreError> {
        let created_at = RowRef { table: "operators", id: row.id }.moment(row.created_at)?;
        Ok(Self { id: row.id, name: None, email: row.email, created_at, keys: Vec::new() })
    }
}
