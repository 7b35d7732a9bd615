//! API keys, known by the SHA-256 of their text. A rotated key is gone with the transaction that replaced
//! it: every request asks here, so it is refused at once on every replica.

use jiff::Timestamp;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::domain::caller::KeyKind;
use crate::store::database::{Store, Transaction};
use crate::store::entity::api_key::{Column, Entity, Model};
use crate::store::failure::StoreError;

/// The owner of a key, if any account has it.
pub async fn owner(store: &Store, kind: KeyKind, key: &str) -> Result<Option<i64>, StoreError> {
    let hash = hash(key);
    let found = Entity::find_by_id(hash.as_str()).one(store.reader()).await?;
    Ok(found
        .filter(|row| bool::from(row.hash.as_bytes().ct_eq(hash.as_bytes())) && row.kind == kind.as_str())
        .map(|row| row.owner_id))
}

/// Whether an account has a key.
pub async fn any_of(store: &Store, kind: KeyKind, owner_id: i64) -> Result<bool, StoreError> {
    let found = Entity::find()
        .filter(Column::Kind.eq(kind.as_str()))
        .filter(Column::OwnerId.eq(owner_id))
        .one(store.reader())
        .await?;
    Ok(found.is_some())
}

/// Makes a key the only one of its owner.
pub async fn replace(
    tx: &Transaction,
    kind: KeyKind,
    owner_id: i64,
    key: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    Entity::delete_many()
        .filter(Column::Kind.eq(kind.as_str()))
        .filter(Column::OwnerId.eq(owner_id))
        .exec(tx)
        .await?;
    let row = Model { hash: hash(key), kind: kind.to_string(), owner_id, created_at: now.as_microsecond() };
    Entity::insert(row.into_active_model()).exec_without_returning(tx).await?;
    Ok(())
}

fn hash(key: &str) -> String {
    hex::encode(Sha256::digest(key))
}
