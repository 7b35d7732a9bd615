//! API keys, stored as their SHA-256. A request reads its key from the database or from the cache, which `key_leases`
//! keeps up to date.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use database::column::RowRef;
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use sea_orm::sea_query::{Condition, Expr, ExprTrait, LockBehavior, LockType, Query};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::domain::access::api_key::{ApiKey, KeyOwner, KeyScope, NewKey, VALID_KEYS_MAX};
use crate::domain::access::caller::KeyKind;
use crate::domain::access::payer::PayingAccount;
use crate::domain::access::session::OperatorRole;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::store::Store;
use crate::store::accounts::api_key_row::{Column, Entity, Model};
use crate::store::accounts::{key_leases, operator_row, taxpayer_row, taxpayers};
use crate::store::key_cache::{CachedKey, KeyDigest};

/// The last use of a key is stored at most once in this time, so that not every request causes a write.
const USE_WRITTEN_AFTER: Duration = Duration::from_mins(1);

/// The value of `last_used` for a key that was never used.
const NEVER_USED: i64 = i64::MIN;

/// A valid key, as found for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidKey {
    pub account: PayingAccount,
    pub scope: KeyScope,
    /// The current role of the key's operator; `None` for keys of integrators and taxpayers.
    pub role: Option<OperatorRole>,
    pub digest: KeyDigest,
    /// The name that people gave the key; `None` if it has none.
    pub name: Option<Arc<str>>,
    /// True if the caller has to store this use of the key (`record_uses`).
    pub must_store_use: bool,
}

/// Finds a key of this kind by its text. Returns `None` if the key does not exist or has expired, or if its operator is
/// disabled.
pub async fn find_valid(
    store: &Store,
    kind: KeyKind,
    key: &str,
    now: Timestamp,
) -> Result<Option<ValidKey>, StoreError> {
    let digest = KeyDigest::from(Sha256::digest(key));
    let cache = store.key_cache();
    if let Some(key) = cache.find(&digest) {
        return Ok(to_valid_key(&key, kind, digest, now));
    }
    let generation = cache.generation();
    let hash = hex::encode(digest);
    let found = Entity::find_by_id(hash.as_str())
        .one(store.reader())
        .await?;
    let hash = hash.as_bytes();
    let Some(row) = found.filter(|row| bool::from(row.hash.as_bytes().ct_eq(hash))) else {
        return Ok(None);
    };
    let mut key = to_cached_key(store, &row, generation).await?;
    if key.owner.kind == KeyKind::Operator {
        // Reads the role after the generation. Every change of a role raises the generation, so the cache never holds
        // an outdated role.
        let Some(role) = operator_role(store, key.owner.id).await? else {
            return Ok(None);
        };
        key.role = Some(role);
    }
    let valid = to_valid_key(&key, kind, digest, now);
    cache.keep(digest, key);
    Ok(valid)
}

/// Returns the key if it is valid at this time. If the caller has to store this use, marks the use as stored at once,
/// so that other requests do not store it as well.
fn to_valid_key(
    key: &CachedKey,
    kind: KeyKind,
    digest: KeyDigest,
    now: Timestamp,
) -> Option<ValidKey> {
    if key.owner.kind != kind || key.expires_at.is_some_and(|end| end <= now) {
        return None;
    }
    let used = key.last_used.load(Ordering::Relaxed);
    let ago = Duration::from_micros(now.as_microsecond().abs_diff(used));
    let must_store_use = used == NEVER_USED || ago >= USE_WRITTEN_AFTER;
    if must_store_use {
        key.last_used.store(now.as_microsecond(), Ordering::Relaxed);
    }
    Some(ValidKey {
        account: PayingAccount {
            integrator: key.payer,
            owner: key.owner,
        },
        scope: key.scope,
        role: key.role,
        digest,
        name: key.name.clone(),
        must_store_use,
    })
}

/// Returns the role of an operator; `None` if the operator is disabled or no longer exists.
async fn operator_role(store: &Store, operator: i64) -> Result<Option<OperatorRole>, StoreError> {
    let found = operator_row::Entity::find_by_id(operator)
        .one(store.reader())
        .await?;
    let enabled = found.filter(|row| row.disabled_at.is_none());
    enabled
        .map(|row| {
            RowRef {
                table: "operators",
                id: row.id,
            }
            .parse(&row.role)
        })
        .transpose()
}

async fn to_cached_key(
    store: &Store,
    row: &Model,
    generation: i64,
) -> Result<CachedKey, StoreError> {
    let at = RowRef {
        table: "api_keys",
        id: row.owner_id,
    };
    let owner = KeyOwner {
        kind: at.parse(&row.kind)?,
        id: row.owner_id,
    };
    let payer = match owner.kind {
        KeyKind::Taxpayer => taxpayers::load_payer(store, TaxpayerId(owner.id)).await?,
        KeyKind::Integrator => Some(IntegratorId(owner.id)),
        KeyKind::Operator => None,
    };
    Ok(CachedKey {
        owner,
        payer,
        scope: at.parse(&row.scope)?,
        role: None,
        name: row.name.as_deref().map(Arc::from),
        expires_at: row.expires_at.map(|end| at.moment(end)).transpose()?,
        last_used: AtomicI64::new(row.last_used_at.unwrap_or(NEVER_USED)),
        generation,
    })
}

/// True if the account has any key, valid or expired.
pub async fn has_any(store: &Store, kind: KeyKind, owner_id: i64) -> Result<bool, StoreError> {
    let found = Entity::find()
        .filter(is_owned_by(KeyOwner { kind, id: owner_id }))
        .one(store.reader())
        .await?;
    Ok(found.is_some())
}

/// Loads the keys of these accounts, grouped by account id. The keys of an account are ordered newest first and include
/// expired ones.
pub async fn owned_by_accounts(
    store: &Store,
    kind: KeyKind,
    ids: &[i64],
) -> Result<HashMap<i64, Vec<ApiKey>>, StoreError> {
    let mut keys: HashMap<i64, Vec<ApiKey>> = HashMap::new();
    for portion in statement_portions(ids) {
        let rows = Entity::find()
            .filter(Column::Kind.eq(kind.as_str()))
            .filter(Column::OwnerId.is_in(portion.iter().copied()))
            .order_by_desc(Column::CreatedAt)
            .all(store.reader())
            .await?;
        for row in rows {
            keys.entry(row.owner_id)
                .or_default()
                .push(ApiKey::try_from(row)?);
        }
    }
    Ok(keys)
}

/// Adds a key to an account. The terms of the new key say whether the existing keys stay valid, expire at once, or
/// expire after an overlap. The caller must have locked the account, so that concurrent rotations see each other's key.
/// After the commit the caller must call `key_leases::await_key_change_everywhere`.
pub async fn rotate(
    tx: &Transaction,
    owner: KeyOwner,
    new: &NewKey,
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows = Entity::find()
        .filter(is_owned_by(owner))
        .order_by_desc(Column::CreatedAt)
        .all(tx)
        .await?;
    let at = RowRef {
        table: "api_keys",
        id: owner.id,
    };
    if !rows.is_empty() {
        key_leases::start_new_generation(tx).await?;
    }
    let present_scope = rows.first().map(|row| at.parse(&row.scope));
    let present_scope = present_scope.transpose()?;
    let mut kept = 0;
    let replaced = if new.terms.keeps_others {
        Vec::new()
    } else {
        rows
    };
    for row in replaced {
        let had = row.expires_at.map(|end| at.moment(end)).transpose()?;
        let end = new.terms.replaced_key_expiry(now, had);
        if end <= now || kept + 1 >= VALID_KEYS_MAX {
            Entity::delete_by_id(row.hash).exec(tx).await?;
            continue;
        }
        kept += 1;
        Entity::update_many()
            .col_expr(Column::ExpiresAt, Expr::value(end.as_microsecond()))
            .filter(Column::Hash.eq(row.hash))
            .exec(tx)
            .await?;
    }
    let row = Model {
        hash: key_hash(new.text.expose_secret()),
        kind: owner.kind.to_string(),
        owner_id: owner.id,
        created_at: now.as_microsecond(),
        scope: new
            .terms
            .scope
            .or(present_scope)
            .unwrap_or(KeyScope::Full)
            .to_string(),
        expires_at: new.terms.expires_at.map(Timestamp::as_microsecond),
        last_used_at: None,
        name: new.name.clone(),
        last_four: Some(new.last_four()),
        last_used_from: None,
    };
    Entity::insert(row.into_active_model())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Returns the number of keys of an account that are valid at this time.
pub async fn count_valid(
    tx: &Transaction,
    owner: KeyOwner,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let rows = Entity::find().filter(is_owned_by(owner)).all(tx).await?;
    let ends = rows.iter().map(|row| row.expires_at);
    let valid = ends.filter(|end| end.is_none_or(|end| end > now.as_microsecond()));
    Ok(valid.count())
}

/// Revokes all keys of an account. Returns the number of revoked keys.
pub async fn revoke_all(tx: &Transaction, owner: KeyOwner) -> Result<u64, StoreError> {
    key_leases::start_new_generation(tx).await?;
    Ok(Entity::delete_many()
        .filter(is_owned_by(owner))
        .exec(tx)
        .await?
        .rows_affected)
}

/// Revokes the key with this id (`ApiKey::id`), if the account has it. Returns the number of revoked keys.
pub async fn revoke_one(tx: &Transaction, owner: KeyOwner, id: &str) -> Result<u64, StoreError> {
    key_leases::start_new_generation(tx).await?;
    let deleted = Entity::delete_many()
        .filter(is_owned_by(owner))
        .filter(Column::Hash.starts_with(id))
        .exec(tx)
        .await?;
    Ok(deleted.rows_affected)
}

/// Revokes all keys of the taxpayers that an integrator onboarded. Returns the number of revoked keys.
pub async fn revoke_taxpayer_keys(
    tx: &Transaction,
    integrator: IntegratorId,
) -> Result<u64, StoreError> {
    key_leases::start_new_generation(tx).await?;
    let onboarded = Query::select()
        .column(taxpayer_row::Column::Id)
        .from(taxpayer_row::Entity)
        .and_where(taxpayer_row::Column::IntegratorId.eq(integrator.0))
        .to_owned();
    let deleted = Entity::delete_many()
        .filter(Column::Kind.eq(KeyKind::Taxpayer.as_str()))
        .filter(Column::OwnerId.in_subquery(onboarded))
        .exec(tx)
        .await?;
    Ok(deleted.rows_affected)
}

/// A use of a key, with the address of the caller if it is known.
pub type KeyUse = (KeyDigest, Option<IpAddr>);

/// Stores `at` as the time of the last use of these keys. Rows that are locked are skipped, because the exact time does
/// not matter.
pub async fn record_uses(store: &Store, uses: &[KeyUse], at: Timestamp) -> Result<(), StoreError> {
    let at = at.as_microsecond();
    for portion in statement_portions(uses) {
        let mut addresses: HashMap<String, Option<IpAddr>> = portion
            .iter()
            .map(|(digest, address)| (hex::encode(digest), *address))
            .collect();
        let hashes: Vec<_> = addresses.keys().cloned().collect();
        let older = Condition::any()
            .add(Column::LastUsedAt.is_null())
            .add(Expr::col(Column::LastUsedAt).lt(at));
        let tx = store.begin().await?;
        let free: Vec<String> = Entity::find()
            .select_only()
            .column(Column::Hash)
            .filter(Column::Hash.is_in(hashes))
            .filter(older)
            .order_by_asc(Column::Hash)
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .into_tuple()
            .all(&tx)
            .await?;
        let mut by_address: HashMap<Option<IpAddr>, Vec<String>> = HashMap::new();
        for hash in free {
            let address = addresses.remove(&hash).flatten();
            by_address.entry(address).or_default().push(hash);
        }
        for (address, hashes) in by_address {
            let address = address.map(|address| address.to_string());
            Entity::update_many()
                .col_expr(Column::LastUsedAt, Expr::value(at))
                .col_expr(Column::LastUsedFrom, Expr::value(address))
                .filter(Column::Hash.is_in(hashes))
                .exec(&tx)
                .await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

fn is_owned_by(owner: KeyOwner) -> Condition {
    Condition::all()
        .add(Column::Kind.eq(owner.kind.as_str()))
        .add(Column::OwnerId.eq(owner.id))
}

fn key_hash(key: &str) -> String {
    hex::encode(Sha256::digest(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::api_key::KeyTerms;
    use crate::store::testing::stores;

    const OWNER: KeyOwner = KeyOwner {
        kind: KeyKind::Integrator,
        id: 7,
    };
    const HOUR: Duration = Duration::from_hours(1);

    fn key(text: &str, overlap: Duration) -> NewKey {
        NewKey::new(
            text.to_owned().into(),
            KeyTerms {
                overlap,
                ..KeyTerms::default()
            },
        )
    }

    async fn rotate_key(store: &Store, new: NewKey, now: Timestamp) {
        let tx = store.begin().await.unwrap();
        rotate(&tx, OWNER, &new, now).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns the keys of this list that are valid at this time.
    async fn valid_of<'k>(store: &Store, keys: &[&'k str], now: Timestamp) -> Vec<&'k str> {
        let mut found = Vec::new();
        for key in keys {
            if find_valid(store, OWNER.kind, key, now)
                .await
                .unwrap()
                .is_some()
            {
                found.push(*key);
            }
        }
        found
    }

    #[tokio::test]
    async fn a_rotation_ends_the_old_keys_at_once_or_after_its_overlap() {
        for test in stores().await {
            let store = &test.store;
            let start = Timestamp::UNIX_EPOCH;
            let all = ["sik_a", "sik_b", "sik_c", "sik_d"];
            rotate_key(store, key("sik_a", Duration::ZERO), start).await;
            rotate_key(store, key("sik_b", 2 * HOUR), start + HOUR).await;
            assert_eq!(
                valid_of(store, &all, start + HOUR).await,
                ["sik_a", "sik_b"]
            );
            // A later rotation does not extend the life of a key that was replaced earlier.
            rotate_key(store, key("sik_c", 24 * HOUR), start + 2 * HOUR).await;
            assert_eq!(
                valid_of(store, &all, start + 2 * HOUR).await,
                ["sik_a", "sik_b", "sik_c"]
            );
            assert_eq!(
                valid_of(store, &all, start + 3 * HOUR).await,
                ["sik_b", "sik_c"]
            );
            rotate_key(store, key("sik_d", Duration::ZERO), start + 4 * HOUR).await;
            assert_eq!(valid_of(store, &all, start + 4 * HOUR).await, ["sik_d"]);
            assert_eq!(
                find_valid(store, KeyKind::Operator, "sik_d", start)
                    .await
                    .unwrap(),
                None
            );
        }
    }

    #[tokio::test]
    async fn an_account_has_so_many_valid_keys_and_no_more() {
        for test in stores().await {
            let store = &test.store;
            let start = Timestamp::UNIX_EPOCH;
            let count = VALID_KEYS_MAX + 3;
            let texts: Vec<_> = (0..count).map(|number| format!("sik_{number}")).collect();
            for (second, text) in texts.iter().enumerate() {
                let now = start + Duration::from_secs(second as u64);
                rotate_key(store, key(text, HOUR), now).await;
            }
            let texts: Vec<_> = texts.iter().map(String::as_str).collect();
            let now = start + Duration::from_secs(count as u64);
            assert_eq!(
                valid_of(store, &texts, now).await,
                texts[count - VALID_KEYS_MAX..]
            );
        }
    }

    #[tokio::test]
    async fn a_key_that_keeps_the_others_ends_none_and_is_known_by_its_end() {
        for test in stores().await {
            let store = &test.store;
            let start = Timestamp::UNIX_EPOCH;
            rotate_key(store, key("sik_first", Duration::ZERO), start).await;
            let terms = KeyTerms {
                keeps_others: true,
                ..KeyTerms::default()
            };
            let second = NewKey::new("sik_night".to_owned().into(), terms)
                .with_name(Some("Night run".into()));
            rotate_key(store, second, start + HOUR).await;
            assert_eq!(
                valid_of(store, &["sik_first", "sik_night"], start + HOUR).await,
                ["sik_first", "sik_night"]
            );
            let keys = owned_by_accounts(store, OWNER.kind, &[OWNER.id])
                .await
                .unwrap()
                .remove(&OWNER.id)
                .unwrap();
            let labels: Vec<_> = keys.iter().map(ApiKey::label).collect();
            assert_eq!(labels, ["Night run (…ight)", "…irst"]);
        }
    }

    #[tokio::test]
    async fn a_key_ends_when_it_expires_and_its_scope_passes_on() {
        for test in stores().await {
            let store = &test.store;
            let start = Timestamp::UNIX_EPOCH;
            let terms = KeyTerms {
                scope: Some(KeyScope::ReadOnly),
                expires_at: Some(start + HOUR),
                ..KeyTerms::default()
            };
            rotate_key(store, NewKey::new("sik_a".to_owned().into(), terms), start).await;
            let found = find_valid(store, OWNER.kind, "sik_a", start)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                (found.account.owner, found.scope),
                (OWNER, KeyScope::ReadOnly)
            );
            assert_eq!(found.account.integrator, Some(IntegratorId(OWNER.id)));
            assert_eq!(
                find_valid(store, OWNER.kind, "sik_a", start + HOUR)
                    .await
                    .unwrap(),
                None
            );
            rotate_key(store, key("sik_b", Duration::ZERO), start).await;
            let found = find_valid(store, OWNER.kind, "sik_b", start + HOUR)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                found.scope,
                KeyScope::ReadOnly,
                "a rotation that names no scope gives no more rights"
            );
        }
    }

    #[tokio::test]
    async fn the_last_use_is_written_and_then_not_due_for_a_minute() {
        for test in stores().await {
            let store = &test.store;
            let start = Timestamp::UNIX_EPOCH;
            rotate_key(store, key("sik_a", Duration::ZERO), start).await;
            let found = find_valid(store, OWNER.kind, "sik_a", start)
                .await
                .unwrap()
                .unwrap();
            assert!(found.must_store_use);
            record_uses(store, &[(found.digest, None), ([0; 32], None)], start)
                .await
                .unwrap();
            let is_due = async |seconds| {
                let now = start + Duration::from_secs(seconds);
                find_valid(store, OWNER.kind, "sik_a", now)
                    .await
                    .unwrap()
                    .unwrap()
                    .must_store_use
            };
            assert_eq!((is_due(59).await, is_due(60).await), (false, true));
            let listed = owned_by_accounts(store, OWNER.kind, &[7, 8]).await.unwrap();
            assert_eq!(listed.len(), 1);
            assert_eq!(listed[&7][0].last_used_at, Some(start));
        }
    }

    #[tokio::test]
    async fn revoked_keys_are_gone() {
        for test in stores().await {
            let store = &test.store;
            let start = Timestamp::UNIX_EPOCH;
            rotate_key(store, key("sik_a", Duration::ZERO), start).await;
            rotate_key(store, key("sik_b", HOUR), start).await;
            let tx = store.begin().await.unwrap();
            assert_eq!(revoke_all(&tx, OWNER).await.unwrap(), 2);
            tx.commit().await.unwrap();
            assert_eq!(valid_of(store, &["sik_a", "sik_b"], start).await, [""; 0]);
        }
    }
}
