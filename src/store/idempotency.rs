//! Idempotency keys of processed requests. A key is stored in the transaction of the request's change, so a request
//! that crashed before its commit leaves no key. An expired key counts as absent.

use database::column::{RowRef, json};
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{IntoActiveModel, QuerySelect};
use timing::CommandId;

use crate::domain::access::claim::{Fingerprint, IdempotencyClaim, StoredResponse};
use crate::store::Store;
use crate::store::old_rows::delete_before;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "idempotency_keys")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub fingerprint: String,
    /// `None` if the content was not read, and in rows of an earlier version.
    pub content_fingerprint: Option<String>,
    pub command_id: Option<String>,
    /// The sealed response; `None` if it was not stored because it held a secret.
    pub answer: Option<String>,
    pub expires_at: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The key of a processed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    pub fingerprint: Fingerprint,
    /// The response for repeats of the request; `None` if it was not stored because it held a secret.
    pub answer: Option<StoredResponse>,
}

/// A key to store, with the response that repeats of the request get.
#[derive(Debug, Clone)]
pub struct KeyEntry {
    pub claim: IdempotencyClaim,
    /// The command that processed the request; `None` if it needed no command of a taxpayer.
    pub command_id: Option<CommandId>,
    pub answer: Option<StoredResponse>,
}

/// Finds the stored key for a claim; `None` if no request has taken the key.
pub async fn find(
    store: &Store,
    claim: &IdempotencyClaim,
    now: Timestamp,
) -> Result<Option<StoredKey>, StoreError> {
    let found = Entity::find_by_id(claim.id.as_str())
        .filter(Column::ExpiresAt.gt(now.as_microsecond()))
        .one(store.reader())
        .await?;
    let Some(row) = found else { return Ok(None) };
    let sealed = row
        .answer
        .map(|sealed| store.vault().open(&row.id, &sealed))
        .transpose()?;
    let at = RowRef {
        table: "idempotency_keys",
        id: row.id,
    };
    let answer = sealed.map(|text| at.parse_json(&text)).transpose()?;
    Ok(Some(StoredKey {
        fingerprint: Fingerprint {
            bytes: row.fingerprint,
            content: row.content_fingerprint,
        },
        answer,
    }))
}

/// Returns the ids of those claims whose keys are stored already.
pub(crate) async fn find_taken_keys(
    tx: &Transaction,
    claims: &[&IdempotencyClaim],
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let ids = claims.iter().map(|claim| claim.id.as_str());
    let rows = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(Column::Id.is_in(ids))
        .filter(Column::ExpiresAt.gt(now.as_microsecond()))
        .into_tuple();
    Ok(rows.all(tx).await?)
}

/// Stores the keys of these entries. Fails with `Duplicate` if one of them is stored already, by another request.
pub(crate) async fn store_keys(
    store: &Store,
    tx: &Transaction,
    entries: &[&KeyEntry],
    now: Timestamp,
) -> Result<(), StoreError> {
    for chunk in statement_portions(entries) {
        let rows = chunk
            .iter()
            .map(|entry| to_row(store, entry))
            .collect::<Result<Vec<_>, _>>()?;
        let expired = Expr::col((Entity, Column::ExpiresAt)).lte(now.as_microsecond());
        let written = Entity::insert_many(rows.into_iter().map(IntoActiveModel::into_active_model))
            .on_conflict(
                OnConflict::column(Column::Id)
                    .update_columns([
                        Column::Fingerprint,
                        Column::ContentFingerprint,
                        Column::CommandId,
                        Column::Answer,
                        Column::ExpiresAt,
                    ])
                    .action_and_where(expired)
                    .to_owned(),
            )
            .exec_without_returning(tx)
            .await?;
        if written < chunk.len() as u64 {
            return Err(StoreError::Duplicate("idempotency_keys.id".to_owned()));
        }
    }
    Ok(())
}

fn to_row(store: &Store, entry: &KeyEntry) -> Result<Model, StoreError> {
    let seal = |answer: &StoredResponse| store.vault().seal(&entry.claim.id, &json(answer));
    Ok(Model {
        id: entry.claim.id.clone(),
        fingerprint: entry.claim.fingerprint.bytes.clone(),
        content_fingerprint: entry.claim.fingerprint.content.clone(),
        command_id: entry.command_id.map(|id| id.to_string()),
        answer: entry.answer.as_ref().map(seal).transpose()?,
        expires_at: entry.claim.expires_at.as_microsecond(),
    })
}

/// Stores the key of a request that needed no command of a taxpayer. Returns false if the key is stored already.
pub async fn store_key_without_command(
    store: &Store,
    entry: KeyEntry,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let tx = store.begin().await?;
    match store_keys(store, &tx, &[&entry], now).await {
        Ok(()) => tx.commit().await.map(|()| true),
        Err(StoreError::Duplicate(_)) => tx.rollback().await.map(|()| false),
        Err(error) => Err(error),
    }
}

/// Adds the response for repeats to a key that a command has stored without one.
pub async fn add_answer(
    store: &Store,
    claim: &IdempotencyClaim,
    answer: &StoredResponse,
) -> Result<(), StoreError> {
    let sealed = store.vault().seal(&claim.id, &json(answer))?;
    let tx = store.begin().await?;
    Entity::update_many()
        .col_expr(Column::Answer, Expr::value(sealed))
        .filter(Column::Id.eq(claim.id.as_str()))
        .filter(Column::Answer.is_null())
        .exec(&tx)
        .await?;
    tx.commit().await
}

/// Deletes the key of a request that changed nothing, so that the request can be sent again with the same key.
pub async fn release(store: &Store, claim: &IdempotencyClaim) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    Entity::delete_by_id(claim.id.as_str()).exec(&tx).await?;
    tx.commit().await
}

/// True if one of these commands stored one of the claimed keys. The transaction of the commands was then committed,
/// even if the response to the commit was lost.
pub(crate) async fn has_stored_claim(
    tx: &Transaction,
    claims: &[&IdempotencyClaim],
    commands: &[CommandId],
) -> Result<bool, StoreError> {
    if claims.is_empty() {
        return Ok(false);
    }
    let found = Entity::find()
        .filter(Column::Id.is_in(claims.iter().map(|claim| claim.id.as_str())))
        .filter(Column::CommandId.is_in(commands.iter().map(ToString::to_string)))
        .one(tx)
        .await?;
    Ok(found.is_some())
}

/// Deletes up to `limit` expired keys, oldest first. Returns true if more expired keys may be left.
pub async fn sweep(store: &Store, now: Timestamp, limit: u64) -> Result<bool, StoreError> {
    delete_before::<Entity>(store, Column::Id, Column::ExpiresAt, now, limit).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use timing::clock;

    use super::*;
    use crate::domain::access::api_key::KeyOwner;
    use crate::domain::access::caller::KeyKind;
    use crate::store::testing::stores;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn claim(key: &str, body: &str, until: i64) -> IdempotencyClaim {
        IdempotencyClaim::new(
            KeyOwner {
                kind: KeyKind::Taxpayer,
                id: 7,
            },
            key,
            &[b"POST", b"/", body.as_bytes()],
            at(until),
        )
    }

    fn entry(claim: &IdempotencyClaim) -> KeyEntry {
        let headers = vec![("content-type".into(), "application/json".into())];
        let answer = StoredResponse {
            status: 201,
            headers,
            body: "{\"tin\":\"1\"}".into(),
        };
        KeyEntry {
            claim: claim.clone(),
            command_id: Some(clock::new_id()),
            answer: Some(answer),
        }
    }

    async fn keep_one(store: &Store, entry: &KeyEntry, now: Timestamp) -> Result<(), StoreError> {
        let tx = store.begin().await.unwrap();
        store_keys(store, &tx, &[entry], now).await?;
        tx.commit().await
    }

    #[actix_rt::test]
    async fn a_key_is_taken_once_until_it_expires() {
        for test in stores().await {
            let store = &test.store;
            let first = entry(&claim("k", "a", 100));
            let second = entry(&claim("k", "b", 200));
            assert_eq!(find(store, &first.claim, at(1)).await.unwrap(), None);
            keep_one(store, &first, at(1)).await.unwrap();
            let known = |entry: &KeyEntry| {
                let fingerprint = entry.claim.fingerprint.clone();
                let answer = entry.answer.clone();
                Some(StoredKey {
                    fingerprint,
                    answer,
                })
            };
            assert_eq!(
                find(store, &second.claim, at(99)).await.unwrap(),
                known(&first)
            );
            assert!(matches!(
                keep_one(store, &second, at(99)).await,
                Err(StoreError::Duplicate(_))
            ));
            store_key_without_command(store, second.clone(), at(99))
                .await
                .unwrap();
            assert_eq!(
                find(store, &second.claim, at(99)).await.unwrap(),
                known(&first)
            );
            assert_eq!(find(store, &first.claim, at(100)).await.unwrap(), None);
            keep_one(store, &second, at(100)).await.unwrap();
            assert_eq!(
                find(store, &first.claim, at(101)).await.unwrap(),
                known(&second)
            );
        }
    }

    #[actix_rt::test]
    async fn the_digest_of_the_content_is_stored_and_missing_in_rows_of_an_earlier_version() {
        for test in stores().await {
            let store = &test.store;
            let new = claim("new", "75.0", 100).with_content(&[b"POST", b"/", b"75"]);
            keep_one(store, &entry(&new), at(1)).await.unwrap();
            let stored = find(store, &new, at(2)).await.unwrap().unwrap();
            assert_eq!(stored.fingerprint, new.fingerprint);
            let old = claim("old", "75.0", 100);
            let insert = format!(
                "INSERT INTO idempotency_keys (id, fingerprint, expires_at) VALUES ('{}', '{}', {})",
                old.id,
                old.fingerprint.bytes,
                old.expires_at.as_microsecond()
            );
            let tx = store.begin().await.unwrap();
            tx.execute_unprepared(&insert).await.unwrap();
            tx.commit().await.unwrap();
            let stored = find(store, &old, at(2)).await.unwrap().unwrap();
            assert_eq!(stored.fingerprint, old.fingerprint);
            let same_bytes = old.clone().with_content(&[b"POST", b"/", b"75"]);
            assert!(stored.fingerprint.is_same_request(&same_bytes.fingerprint));
        }
    }

    #[actix_rt::test]
    async fn an_answer_is_added_once_to_a_key_without_one() {
        for test in stores().await {
            let full = entry(&claim("k", "a", 100));
            let bare = KeyEntry {
                answer: None,
                ..full.clone()
            };
            keep_one(&test.store, &bare, at(1)).await.unwrap();
            let first = full.answer.unwrap();
            let second = StoredResponse {
                status: 303,
                ..first.clone()
            };
            for answer in [&first, &second] {
                add_answer(&test.store, &bare.claim, answer).await.unwrap();
                let found = find(&test.store, &bare.claim, at(2)).await.unwrap();
                assert_eq!(found.unwrap().answer.as_ref(), Some(&first));
            }
        }
    }

    #[actix_rt::test]
    async fn an_answer_is_sealed() {
        for test in stores().await {
            let one = entry(&claim("k", "a", 100));
            keep_one(&test.store, &one, at(1)).await.unwrap();
            let row = Entity::find()
                .one(test.store.reader())
                .await
                .unwrap()
                .unwrap();
            assert!(!row.answer.unwrap().contains("tin"));
        }
    }

    #[actix_rt::test]
    async fn a_command_is_known_by_the_key_it_took() {
        for test in stores().await {
            let one = entry(&claim("k", "a", 100));
            keep_one(&test.store, &one, at(1)).await.unwrap();
            let tx = test.store.begin().await.unwrap();
            let command = one.command_id.unwrap();
            assert!(
                has_stored_claim(&tx, &[&one.claim], &[clock::new_id(), command])
                    .await
                    .unwrap()
            );
            assert!(
                !has_stored_claim(&tx, &[&one.claim], &[clock::new_id()])
                    .await
                    .unwrap()
            );
            assert!(!has_stored_claim(&tx, &[], &[command]).await.unwrap());
            let found = find_taken_keys(&tx, &[&one.claim], at(99)).await.unwrap();
            assert_eq!(found, std::slice::from_ref(&one.claim.id));
            assert!(
                find_taken_keys(&tx, &[&one.claim], at(100))
                    .await
                    .unwrap()
                    .is_empty()
            );
            tx.rollback().await.unwrap();
        }
    }

    #[actix_rt::test]
    async fn expired_keys_are_swept_in_bounded_batches() {
        for test in stores().await {
            let store = &test.store;
            for n in 0..5 {
                keep_one(store, &entry(&claim(&n.to_string(), "a", 100 + n)), at(1))
                    .await
                    .unwrap();
            }
            let now = at(103).saturating_add(Duration::from_millis(1)).unwrap();
            assert!(!sweep(store, at(99), 3).await.unwrap());
            assert!(sweep(store, now, 3).await.unwrap(), "there is one more");
            assert!(!sweep(store, now, 3).await.unwrap());
            let left = Entity::find().all(store.reader()).await.unwrap();
            assert_eq!(left.len(), 1);
            assert_eq!(left[0].id, claim("4", "a", 0).id);
        }
    }
}
