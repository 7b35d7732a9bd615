//! Deletes old rows.

use database::StoreError;
use jiff::Timestamp;
use sea_orm::sea_query::{LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select};

use crate::store::Store;

/// Deletes up to `limit` rows with a time before `before`, oldest first. Returns true if more such rows may be left.
/// The time must be the first column of an index.
pub(super) async fn delete_before<E: EntityTrait>(
    store: &Store,
    id: E::Column,
    time: E::Column,
    before: Timestamp,
    limit: u64,
) -> Result<bool, StoreError> {
    let old = E::find()
        .filter(time.lt(before.as_microsecond()))
        .order_by_asc(time);
    delete_selected(store, id, old, limit).await
}

/// Deletes the first `limit` of these rows, in their order. Returns true if more of them may be left.
pub(super) async fn delete_selected<E: EntityTrait>(
    store: &Store,
    id: E::Column,
    old: Select<E>,
    limit: u64,
) -> Result<bool, StoreError> {
    let mut oldest = old.select_only().column(id).limit(limit);
    let first = oldest.clone().into_tuple::<String>();
    if first.one(store.reader()).await?.is_none() {
        return Ok(false);
    }
    // Skips rows that are locked, because another replica may be deleting the same rows.
    let oldest = QueryTrait::query(&mut oldest)
        .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
        .to_owned();
    let tx = store.begin().await?;
    let deleted = E::delete_many()
        .filter(id.in_subquery(oldest))
        .exec(&tx)
        .await?;
    tx.commit().await?;
    Ok(deleted.rows_affected == limit)
}
