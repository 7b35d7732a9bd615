//! The table of integrators.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::access::api_key::AccountWithKeys;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "integrators")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub name: String,
    pub email: String,
    pub email_key: String,
    pub password_hash: Option<String>,
    pub created_at: i64,
    /// `None` if the account is enabled.
    pub disabled_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for AccountWithKeys {
    type Error = StoreError;

    /// Converts the account without its keys, which are rows of another table.
    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "integrators",
            id: row.id,
        };
        Ok(Self {
            id: row.id,
            name: Some(row.name),
            email: row.email,
            role: None,
            created_at: at.moment(row.created_at)?,
            disabled_at: row
                .disabled_at
                .map(|micros| at.moment(micros))
                .transpose()?,
            keys: Vec::new(),
        })
    }
}
