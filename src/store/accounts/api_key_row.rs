//! The table of API keys. Its primary key is the SHA-256 of the key's text; the text itself is not stored.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::access::api_key::ApiKey;

/// The length of the hash prefix that identifies a key within its account.
const ID_CHARS: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_keys")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: String,
    pub kind: String,
    pub owner_id: i64,
    pub created_at: i64,
    pub scope: String,
    pub expires_at: Option<i64>,
    pub last_used_at: Option<i64>,
    pub name: Option<String>,
    pub last_four: Option<String>,
    pub last_used_from: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for ApiKey {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let id: String = row.hash.chars().take(ID_CHARS).collect();
        let at = RowRef {
            table: "api_keys",
            id: id.as_str(),
        };
        Ok(Self {
            scope: at.parse(&row.scope)?,
            created_at: at.moment(row.created_at)?,
            expires_at: at.optional_moment(row.expires_at)?,
            last_used_at: at.optional_moment(row.last_used_at)?,
            last_used_from: row
                .last_used_from
                .map(|address| at.parse(&address))
                .transpose()?,
            name: row.name,
            last_four: row.last_four,
            id,
        })
    }
}
