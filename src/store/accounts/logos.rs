//! The picture that a taxpayer prints on its documents. The settings of the taxpayer tell its kind.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use database::column::RowRef;
use database::insert::{Insert, update_on_conflict};
use database::{StoreError, Transaction};
use sea_orm::{ConnectionTrait, EntityTrait};

use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::settings::LogoFile;
use crate::store::accounts::logo_row::{Column, Entity, Model};

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
