//! Webhook endpoints and their signing secrets. The secrets are sealed on the way in and opened only for
//! the delivery that signs with them.

use jiff::Timestamp;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ActiveValue, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel};

use serde::{Deserialize, Serialize};

use crate::domain::delivery::Endpoint;
use crate::domain::ids::TaxpayerId;
use crate::store::database::Store;
use crate::store::entity::column::{Row, json};
use crate::store::entity::webhook::{Column, Entity, Model};
use crate::store::failure::StoreError;

/// Replaced secrets that sign along at most: a signature header has an end.
const OVERLAPPING_MAX: usize = 10;

pub async fn owned_by(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Option<Endpoint>, StoreError> {
    Entity::find_by_id(taxpayer.0).one(connection).await?.map(Endpoint::try_from).transpose()
}

/// The endpoint and the secrets that sign for it at this moment, the newest first.
pub async fn with_secrets(
    store: &Store,
    taxpayer: TaxpayerId,
    now: Timestamp,
) -> Result<Option<(Endpoint, Vec<String>)>, StoreError> {
    let Some(row) = Entity::find_by_id(taxpayer.0).one(store.reader()).await? else { return Ok(None) };
    let owner = row.taxpayer_id.to_string();
    let previous = previous(&row, now)?;
    let sealed = std::iter::once(&row.secret).chain(previous.iter().map(|old| &old.sealed));
    let secrets = sealed.map(|text| store.vault().open(&owner, text)).collect::<Result<_, _>>()?;
    Ok(Some((Endpoint::try_from(row)?, secrets)))
}

/// Writes an endpoint as it is now; a new one starts with this secret.
pub async fn save(
    store: &Store,
    tx: &DatabaseTransaction,
    endpoint: &Endpoint,
    first_secret: &str,
) -> Result<(), StoreError> {
    let row = Model {
        taxpayer_id: endpoint.taxpayer_id.0,
        id: endpoint.id,
        url: endpoint.url.clone(),
        enabled_events: json(&endpoint.enabled_events),
        is_active: endpoint.is_active,
        disabled_reason: endpoint.disabled_reason.clone(),
        secret: store.vault().seal(&endpoint.taxpayer_id.to_string(), first_secret)?,
        previous_secrets: json(&[(); 0]),
        created_at: endpoint.created_at.as_microsecond(),
        updated_at: endpoint.updated_at.as_microsecond(),
        disabled_after: endpoint.disabled_after,
        retry_schedule: endpoint.retry_schedule.as_ref().map(json),
    };
    let changing = [
        Column::Url,
        Column::EnabledEvents,
        Column::IsActive,
        Column::DisabledReason,
        Column::DisabledAfter,
        Column::RetrySchedule,
        Column::UpdatedAt,
    ];
    Entity::insert(row.into_active_model())
        .on_conflict(OnConflict::column(Column::TaxpayerId).update_columns(changing).to_owned())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// A replaced secret, and until when it signs along, in microseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
struct Previous {
    sealed: String,
    until: i64,
}

/// The replaced secrets that still sign, the newest first.
fn previous(row: &Model, now: Timestamp) -> Result<Vec<Previous>, StoreError> {
    let at = Row { table: "webhooks", id: row.taxpayer_id };
    let mut previous: Vec<Previous> = at.json(&row.previous_secrets)?;
    previous.retain(|old| old.until > now.as_microsecond());
    Ok(previous)
}

/// Replaces the signing secret; the old one signs along until `overlap_until`, as each before it does until its
/// own moment.
pub async fn rotate_secret(
    store: &Store,
    tx: &DatabaseTransaction,
    taxpayer: TaxpayerId,
    secret: &str,
    (now, overlap_until): (Timestamp, Timestamp),
) -> Result<(), StoreError> {
    let row = Entity::find_by_id(taxpayer.0).one(tx).await?.ok_or(StoreError::Stale)?;
    let mut old = previous(&row, now)?;
    old.insert(0, Previous { sealed: row.secret.clone(), until: overlap_until.as_microsecond() });
    old.truncate(OVERLAPPING_MAX);
    let mut row = row.into_active_model();
    row.secret = ActiveValue::Set(store.vault().seal(&taxpayer.to_string(), secret)?);
    row.previous_secrets = ActiveValue::Set(json(&old));
    Entity::update(row).exec(tx).await?;
    Ok(())
}
