//! The signing secrets of endpoints. For some time after a rotation, the replaced secret signs beside the new one.

use database::column::{RowRef, json};
use database::vault::Vault;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::{ActiveValue, EntityTrait, IntoActiveModel};
use serde::{Deserialize, Serialize};

use crate::domain::kernel::ids::EndpointKey;
use crate::store::Store;
use crate::store::webhooks::webhook_row::{Entity, Model};

/// The maximum number of replaced secrets that still sign. Each adds a signature to a request header, whose size is
/// limited.
const OVERLAPPING_SECRETS_MAX: usize = 10;

/// A replaced secret. It signs until `until`, in microseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReplacedSecret {
    pub(super) sealed: String,
    until: i64,
}

/// Returns the replaced secrets that still sign at `now`, newest first.
pub(super) fn previous_secrets(
    row: &Model,
    now: Timestamp,
) -> Result<Vec<ReplacedSecret>, StoreError> {
    let at = RowRef {
        table: "webhooks",
        id: row.endpoint_key,
    };
    let mut previous: Vec<ReplacedSecret> = at.parse_json(&row.previous_secrets)?;
    previous.retain(|old| old.until > now.as_microsecond());
    Ok(previous)
}

/// Seals each replaced secret again with the current key. Returns `None` if all of them are sealed with it already.
pub(in crate::store) fn reseal_previous_secrets(
    vault: &Vault,
    endpoint: &str,
    list: &str,
) -> Result<Option<String>, StoreError> {
    let at = RowRef {
        table: "webhooks",
        id: endpoint,
    };
    let mut previous: Vec<ReplacedSecret> = at.parse_json(list)?;
    let mut is_changed = false;
    for old in &mut previous {
        if let Some(text) = vault.reseal(endpoint, &old.sealed)? {
            old.sealed = text;
            is_changed = true;
        }
    }
    Ok(is_changed.then(|| json(&previous)))
}

/// A new signing secret, with its public key if it is a key pair. The replaced secret signs until `overlap_until`.
#[derive(Debug)]
pub struct SecretRotation<'a> {
    pub secret: &'a str,
    pub public_key: Option<String>,
    pub now: Timestamp,
    pub overlap_until: Timestamp,
}

/// Replaces the signing secret and the public key. The times until which earlier secrets sign are not prolonged.
pub async fn rotate_secret(
    store: &Store,
    tx: &Transaction,
    key: EndpointKey,
    rotation: SecretRotation<'_>,
) -> Result<(), StoreError> {
    let row = Entity::find_by_id(key.0)
        .one(tx)
        .await?
        .ok_or(StoreError::Stale)?;
    let mut old = previous_secrets(&row, rotation.now)?;
    let until = rotation.overlap_until.as_microsecond();
    old.insert(
        0,
        ReplacedSecret {
            sealed: row.secret.clone(),
            until,
        },
    );
    old.truncate(OVERLAPPING_SECRETS_MAX);
    let mut row = row.into_active_model();
    row.secret = ActiveValue::Set(store.vault().seal(&key.to_string(), rotation.secret)?);
    row.previous_secrets = ActiveValue::Set(json(&old));
    row.public_key = ActiveValue::Set(rotation.public_key);
    Entity::update(row).exec(tx).await?;
    Ok(())
}
