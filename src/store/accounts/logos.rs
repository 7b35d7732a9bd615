//! The logos that taxpayers print on their documents. The format of a logo is stored in the settings of the taxpayer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use database::column::RowRef;
use database::insert::{Insert, update_on_conflict};
use database::{StoreError, Transaction};
use sea_orm::entity::prelude::*;

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::settings::LogoFile;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "taxpayer_logos")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    /// The file in base64.
    pub picture: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

static PUT: Insert<Entity> =
    Insert::with_conflict(|| update_on_conflict(&[Column::TaxpayerId], &[Column::Picture]));

/// Loads the file of a taxpayer's logo.
pub async fn owned_by(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(row) = Entity::find_by_id(taxpayer.0).one(connection).await? else {
        return Ok(None);
    };
    let at = RowRef {
        table: "taxpayer_logos",
        id: row.taxpayer_id,
    };
    let bytes = STANDARD.decode(&row.picture);
    bytes.map(Some).map_err(|fault| at.corrupt(fault))
}

pub(crate) async fn put(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    logo: &LogoFile,
) -> Result<(), StoreError> {
    let row = Model {
        taxpayer_id: taxpayer.0,
        picture: STANDARD.encode(&logo.bytes),
    };
    PUT.execute(tx, [row]).await.map(drop)
}

pub(crate) async fn remove(tx: &Transaction, taxpayer: TaxpayerId) -> Result<(), StoreError> {
    Entity::delete_by_id(taxpayer.0).exec(tx).await?;
    Ok(())
}
