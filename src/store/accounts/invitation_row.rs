//! The table of invitations. A row holds the SHA-256 of the token, never the token.

use database::StoreError;
use database::column::RowRef;
use sea_orm::entity::prelude::*;

use crate::domain::access::session::SessionOwner;
use crate::store::accounts::session_row::to_owner;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "invitations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: String,
    pub kind: String,
    pub account_id: i64,
    pub taxpayer_id: Option<i64>,
    pub created_at: i64,
    pub expires_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub(super) fn owner(&self) -> Result<SessionOwner, StoreError> {
        let place = RowRef {
            table: "invitations",
            id: self.account_id,
        };
        to_owner(&place, &self.kind, self.account_id, self.taxpayer_id)
    }
}
