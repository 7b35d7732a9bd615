//! Webhook endpoints and their signing secrets. The secrets are sealed on the way in and opened only for
//! the delivery that signs with them.

use jiff::Timestamp;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ActiveValue, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel};

use crate::domain::delivery::Endpoint;
use crate::domain::ids::TaxpayerId;
use crate::store::database::Store;
use crate::store::entity::column::json;
use crate::store::entity::webhook::{Column, Entity, Model};
use crate::store::failure::StoreError;

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
    let overlapping = row.previous_until.is_some_and(|until| until > now.as_microsecond());
    let sealed = std::iter::once(&row.secret).chain(row.previous_secret.iter().filter(|_| overlapping));
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
        previous_secret: None,
        previous_until: None,
        created_at: endpoint.created_at.as_microsecond(),
        updated_at: endpoint.updated_at.as_microsecond(),
    };
    let changing =
        [Column::Url, Column::EnabledEvents, Column::IsActive, Column::DisabledReason, Column::UpdatedAt];
    Entity::insert(row.into_active_model())
        .on_conflict(OnConflict::column(Column::TaxpayerId).update_columns(changing).to_owned())
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// Replaces the signing secret; the old one signs along until `overlap_until`.
pub async fn rotate_secret(
    store: &Store,
    tx: &DatabaseTransaction,
    taxpayer: TaxpayerId,
    secret: &str,
    overlap_until: Timestamp,
) -> Result<(), StoreError> {
    let row = Entity::find_by_id(taxpayer.0).one(tx).await?.ok_or(StoreError::Stale)?;
    let sealed = store.vault().seal(&taxpayer.to_string(), secret)?;
    let old = row.secret.clone();
    let mut row = row.into_active_model();
    row.secret = ActiveValue::Set(sealed);
    row.previous_secret = ActiveValue::Set(Some(old));
    row.previous_until = ActiveValue::Set(Some(overlap_until.as_microsecond()));
    Entity::update(row).exec(tx).await?;
    Ok(())
}
