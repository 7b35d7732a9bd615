//! The table of contact persons of taxpayers.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::party::Contact;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "contacts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub email_key: String,
    pub phone: Option<String>,
    /// `None` until the person chooses a password through an invitation.
    pub password_hash: Option<String>,
    pub role: String,
    pub created_at: i64,
    pub updated_at: i64,
    /// `None` if the person may sign in.
    pub disabled_at: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Contact {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "contacts",
            id: row.id,
        };
        Ok(Self {
            id: row.id,
            created_at: at.moment(row.created_at)?,
            updated_at: at.moment(row.updated_at)?,
            first_name: row.first_name,
            last_name: row.last_name,
            email: row.email,
            phone: row.phone,
        })
    }
}
