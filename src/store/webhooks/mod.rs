//! Webhook endpoints and their signing secrets, which are stored sealed and opened only to sign a delivery.

pub mod attempt_row;
pub mod crashed_deliveries;
pub mod deliveries;
pub mod delivery_heads;
pub mod delivery_log;
pub mod delivery_queue;
pub mod delivery_row;
pub mod endpoint_list;
pub mod integration_row;
pub mod integrations;
pub mod replay_row;
pub mod replays;
pub mod webhook_row;

use std::collections::HashMap;

use database::column::{RowRef, json, select_list};
use database::sql::{Aliased, Join, SqlOnce};
use database::vault::Vault;
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ActiveValue, ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, IntoActiveModel,
    QueryFilter, QueryResult, Statement,
};
use serde::{Deserialize, Serialize};

use crate::domain::events::delivery::Endpoint;
use crate::domain::events::endpoint_health::FailureStreak;
use crate::domain::integration::Integration;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::webhooks::webhook_row::{Column, Entity, Model};

/// How many replaced secrets still sign. Each adds a signature to a request header, whose size is limited.
const OVERLAPPING_SECRETS_MAX: usize = 10;

pub async fn owned_by(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Option<Endpoint>, StoreError> {
    Entity::find_by_id(taxpayer.0)
        .one(connection)
        .await?
        .map(Endpoint::try_from)
        .transpose()
}

/// Loads the endpoints of these taxpayers. Taxpayers without an endpoint are left out.
pub async fn with_owners(
    connection: &impl ConnectionTrait,
    taxpayers: &[TaxpayerId],
) -> Result<HashMap<TaxpayerId, Endpoint>, StoreError> {
    let mut found = HashMap::new();
    for chunk in statement_portions(taxpayers) {
        let rows = Entity::find()
            .filter(Column::TaxpayerId.is_in(chunk.iter().map(|id| id.0)))
            .all(connection)
            .await?;
        for row in rows {
            found.insert(TaxpayerId(row.taxpayer_id), Endpoint::try_from(row)?);
        }
    }
    Ok(found)
}

/// An endpoint with its settings and its unsealed secrets. It has no `Debug`, which could write the secrets into a log.
pub struct LoadedEndpoint {
    pub endpoint: Endpoint,
    /// The unsealed secrets with which notifications are signed now, newest first.
    pub secrets: Vec<String>,
    /// The settings of the taxpayer's ERP. Without settings, the endpoint gets plain JSON.
    pub integration: Integration,
    pub failure_streak: Option<FailureStreak>,
    pub is_replaying: bool,
}

static LOAD_ENDPOINTS: SqlOnce = SqlOnce::new(|dialect| {
    let endpoints = Aliased {
        table: "webhooks",
        alias: "w",
    };
    let integrations = Aliased {
        table: "integrations",
        alias: "i",
    };
    format!(
        "SELECT {}, {}, EXISTS (SELECT 1 FROM replays AS r WHERE r.taxpayer_id = w.taxpayer_id \
         AND r.state = 'running') AS is_replaying \
         FROM {} AS given {} {}",
        select_list::<Column>("w"),
        select_list::<integration_row::Column>("i"),
        dialect.json_numbers("$1"),
        dialect.lateral_join(Join::Inner, endpoints, "w.taxpayer_id = given.value"),
        dialect.lateral_join(Join::Left, integrations, "i.taxpayer_id = given.value"),
    )
});

/// Loads the endpoints of these taxpayers, keyed by taxpayer id. Taxpayers without an endpoint are left out.
pub async fn recipients(
    store: &Store,
    taxpayers: &[TaxpayerId],
    now: Timestamp,
) -> Result<HashMap<TaxpayerId, LoadedEndpoint>, StoreError> {
    let sql = LOAD_ENDPOINTS.get(store.backend());
    let statement = Statement::from_sql_and_values(store.backend(), sql, [json(&taxpayers).into()]);
    let rows = store.reader().query_all_raw(statement).await?;
    rows.iter()
        .map(|row| {
            Ok((
                TaxpayerId(row.try_get("", "w_taxpayer_id")?),
                read(store, row, now)?,
            ))
        })
        .collect()
}

fn read(store: &Store, found: &QueryResult, now: Timestamp) -> Result<LoadedEndpoint, StoreError> {
    let row = Model::from_query_result(found, "w_")?;
    let settings = integration_row::Model::from_query_result_optional(found, "i_")?;
    let owner = row.taxpayer_id.to_string();
    let previous = previous_secrets(&row, now)?;
    let sealed = std::iter::once(&row.secret).chain(previous.iter().map(|old| &old.sealed));
    let secrets = sealed
        .map(|text| store.vault().open(&owner, text))
        .collect::<Result<_, _>>()?;
    let settings = settings
        .map(|settings| integrations::open(store.vault(), settings))
        .transpose()?;
    let failure_streak = failure_streak(&row)?;
    let integration = settings.unwrap_or_default();
    let is_replaying = found.try_get("", "is_replaying")?;
    Ok(LoadedEndpoint {
        endpoint: Endpoint::try_from(row)?,
        secrets,
        integration,
        failure_streak,
        is_replaying,
    })
}

/// Loads the endpoint of one taxpayer with its settings and state.
pub async fn recipient(
    store: &Store,
    taxpayer: TaxpayerId,
    now: Timestamp,
) -> Result<Option<LoadedEndpoint>, StoreError> {
    Ok(recipients(store, &[taxpayer], now).await?.remove(&taxpayer))
}

/// Loads the endpoint of a taxpayer and its failure streak, without its secrets.
pub async fn with_failure_streak(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Option<(Endpoint, Option<FailureStreak>)>, StoreError> {
    let Some(row) = Entity::find_by_id(taxpayer.0).one(connection).await? else {
        return Ok(None);
    };
    let failure_streak = failure_streak(&row)?;
    Ok(Some((Endpoint::try_from(row)?, failure_streak)))
}

pub(in crate::store) fn failure_streak(row: &Model) -> Result<Option<FailureStreak>, StoreError> {
    let at = RowRef {
        table: "webhooks",
        id: row.taxpayer_id,
    };
    row.failure_streak
        .as_deref()
        .map(|text| at.json(text))
        .transpose()
}

/// Writes the failure streak of an endpoint, unless the endpoint has changed since the caller read it.
pub async fn set_failure_streak(
    tx: &Transaction,
    endpoint: &Endpoint,
    streak: Option<&FailureStreak>,
) -> Result<(), StoreError> {
    Entity::update_many()
        .col_expr(Column::FailureStreak, Expr::value(streak.map(json)))
        .filter(Column::TaxpayerId.eq(endpoint.taxpayer_id.0))
        .filter(Column::UpdatedAt.eq(endpoint.updated_at.as_microsecond()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Writes the state of an endpoint. A new endpoint gets `first_secret`. Writing an active endpoint clears its failure
/// streak.
pub async fn save(
    store: &Store,
    tx: &Transaction,
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
        secret: store
            .vault()
            .seal(&endpoint.taxpayer_id.to_string(), first_secret)?,
        previous_secrets: json(&[(); 0]),
        created_at: endpoint.created_at.as_microsecond(),
        updated_at: endpoint.updated_at.as_microsecond(),
        disabled_after: endpoint.disabled_after,
        failure_streak: None,
        public_key: None,
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
    let mut known = OnConflict::column(Column::TaxpayerId)
        .update_columns(changing)
        .to_owned();
    if endpoint.is_active {
        known.update_column(Column::FailureStreak);
    }
    Entity::insert(row.into_active_model())
        .on_conflict(known)
        .exec_without_returning(tx)
        .await?;
    Ok(())
}

/// A replaced secret. It still signs until `until`, in microseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
struct ReplacedSecret {
    sealed: String,
    until: i64,
}

/// Returns the replaced secrets that still sign at `now`, newest first.
fn previous_secrets(row: &Model, now: Timestamp) -> Result<Vec<ReplacedSecret>, StoreError> {
    let at = RowRef {
        table: "webhooks",
        id: row.taxpayer_id,
    };
    let mut previous: Vec<ReplacedSecret> = at.json(&row.previous_secrets)?;
    previous.retain(|old| old.until > now.as_microsecond());
    Ok(previous)
}

/// Seals each replaced secret again with the current key. Returns `None` if all are sealed with it already.
pub(super) fn reseal_previous_secrets(
    vault: &Vault,
    taxpayer: &str,
    list: &str,
) -> Result<Option<String>, StoreError> {
    let at = RowRef {
        table: "webhooks",
        id: taxpayer,
    };
    let mut previous: Vec<ReplacedSecret> = at.json(list)?;
    let mut is_changed = false;
    for old in &mut previous {
        if let Some(text) = vault.reseal(taxpayer, &old.sealed)? {
            old.sealed = text;
            is_changed = true;
        }
    }
    Ok(is_changed.then(|| json(&previous)))
}

/// A new signing secret, with its public key if it is a key pair. The old secret still signs until `overlap_until`.
#[derive(Debug)]
pub struct SecretRotation<'a> {
    pub secret: &'a str,
    pub public_key: Option<String>,
    pub now: Timestamp,
    pub overlap_until: Timestamp,
}

/// Replaces the signing secret and the public key. Secrets that were replaced earlier do not stay valid longer.
pub async fn rotate_secret(
    store: &Store,
    tx: &Transaction,
    taxpayer: TaxpayerId,
    rotation: SecretRotation<'_>,
) -> Result<(), StoreError> {
    let row = Entity::find_by_id(taxpayer.0)
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
    row.secret = ActiveValue::Set(store.vault().seal(&taxpayer.to_string(), rotation.secret)?);
    row.previous_secrets = ActiveValue::Set(json(&old));
    row.public_key = ActiveValue::Set(rotation.public_key);
    Entity::update(row).exec(tx).await?;
    Ok(())
}
