//! Webhook endpoints and their signing secrets, which are stored sealed and opened only to sign a delivery.
//!
//! | File | Content |
//! |---|---|
//! | `attempt_row` | the table of delivery attempts |
//! | `crashed_deliveries` | crash counts of deliveries |
//! | `deliveries` | writes deliveries and the log of their attempts |
//! | `delivery_heads` | the heads of the chains of deliveries with one order key; only a head may be attempted |
//! | `delivery_log` | lists of deliveries with their attempts, for integrators and operators |
//! | `delivery_queue` | the queue of pending deliveries |
//! | `delivery_row` | the table of deliveries |
//! | `delivery_selection` | the deliveries that a caller selected for a replay: their number, a list of them, and the SQL condition that finds them |
//! | `delivery_stats` | the results of an endpoint's delivery attempts in the last 24 hours, by hour |
//! | `endpoint_list` | webhook endpoints of all taxpayers by their health, for operators |
//! | `integration_row` | the table of the integration settings of taxpayers' ERPs |
//! | `integrations` | the integration settings of taxpayers' ERPs |
//! | `removed_endpoints` | deletes the deliveries of removed endpoints |
//! | `replay_row` | the table of replays |
//! | `replays` | replays, which deliver past events again, in batches |
//! | `secrets` | the signing secrets of endpoints |
//! | `webhook_row` | the table of webhook endpoints: the default one of each taxpayer, and those that were added |

pub mod attempt_row;
pub mod crashed_deliveries;
pub mod deliveries;
pub mod delivery_heads;
pub mod delivery_log;
pub mod delivery_queue;
pub mod delivery_row;
pub mod delivery_selection;
pub mod delivery_stats;
pub mod endpoint_list;
pub mod integration_row;
pub mod integrations;
pub mod removed_endpoints;
pub mod replay_row;
pub mod replays;
pub mod secrets;
pub mod webhook_row;

use std::collections::{HashMap, HashSet};

use database::column::{RowRef, json, select_list};
use database::sql::{AliasedTable, Join, SqlOnce};
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, OnConflict, Query, SelectStatement, UnionType};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, FromQueryResult, IntoActiveModel,
    QueryFilter, QueryOrder, QueryResult, QuerySelect, Statement,
};

use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::endpoint_health::FailureStreak;
use crate::domain::integration::Integration;
use crate::domain::kernel::ids::{DEFAULT_ENDPOINT, EndpointKey, TaxpayerId, parse_id};
use crate::store::Store;
use crate::store::lanes::{self, LaneKind};
use crate::store::webhooks::webhook_row::{Column, Entity, Model};

/// Loads the endpoint with this key.
pub async fn find_by_key(
    connection: &impl ConnectionTrait,
    key: EndpointKey,
) -> Result<Option<Endpoint>, StoreError> {
    Entity::find_by_id(key.0)
        .one(connection)
        .await?
        .map(Endpoint::try_from)
        .transpose()
}

/// Loads the endpoints of these taxpayers: for each taxpayer first the default endpoint, then the added ones, oldest
/// first. Taxpayers without an endpoint are left out.
pub async fn owned_by_taxpayers(
    connection: &impl ConnectionTrait,
    taxpayers: &[TaxpayerId],
) -> Result<HashMap<TaxpayerId, Vec<Endpoint>>, StoreError> {
    let mut found: HashMap<_, Vec<Endpoint>> = HashMap::new();
    for chunk in statement_portions(taxpayers) {
        let ids = || chunk.iter().map(|id| id.0);
        let owned = Condition::any()
            .add(Column::EndpointKey.is_in(ids()))
            .add(Column::OwnerId.is_in(ids()));
        let rows = Entity::find()
            .filter(owned)
            .order_by_desc(Column::EndpointKey)
            .all(connection)
            .await?;
        for row in rows {
            let endpoint = Endpoint::try_from(row)?;
            found
                .entry(endpoint.taxpayer_id)
                .or_default()
                .push(endpoint);
        }
    }
    Ok(found)
}

/// An endpoint and its current streak of failures.
pub type EndpointWithStreak = (Endpoint, Option<FailureStreak>);

/// Loads the endpoints of a taxpayer with their failure streaks: first the default endpoint, then the added ones,
/// oldest first.
pub async fn owned_by_with_streaks(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Vec<EndpointWithStreak>, StoreError> {
    let rows = Entity::find()
        .filter(Column::EndpointKey.in_subquery(select_endpoint_keys(taxpayer)))
        .order_by_desc(Column::EndpointKey)
        .all(connection)
        .await?;
    rows.into_iter().map(to_endpoint_with_streak).collect()
}

/// Loads the endpoint with the name that callers of the API use: `default`, or the id of an added endpoint.
pub async fn find_owned_by_name(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
    name: &str,
) -> Result<Option<EndpointWithStreak>, StoreError> {
    let key = match parse_id(name) {
        _ if name == DEFAULT_ENDPOINT => taxpayer.into(),
        Some(id) => EndpointKey::for_added_endpoint(id),
        None => return Ok(None),
    };
    let found = find_by_key_with_streak(connection, key).await?;
    Ok(found.filter(|(endpoint, _)| endpoint.taxpayer_id == taxpayer))
}

/// Selects the keys of all endpoints of a taxpayer. They always include the key of the default endpoint, even if there
/// is no such endpoint.
pub(in crate::store) fn select_endpoint_keys(taxpayer: TaxpayerId) -> SelectStatement {
    let added = Query::select()
        .column(Column::EndpointKey)
        .from(Entity)
        .and_where(Column::OwnerId.eq(taxpayer.0))
        .to_owned();
    Query::select()
        .expr(Expr::value(taxpayer.0))
        .union(UnionType::All, added)
        .to_owned()
}

/// An endpoint with its settings and its unsealed secrets. It does not implement `Debug`, which could write the secrets
/// into a log.
pub struct LoadedEndpoint {
    pub endpoint: Endpoint,
    /// The unsealed secrets that sign notifications now, newest first.
    pub secrets: Vec<String>,
    /// The settings of the taxpayer's ERP. An endpoint without settings gets plain JSON. Added endpoints never have
    /// settings.
    pub integration: Integration,
    pub failure_streak: Option<FailureStreak>,
    pub is_replaying: bool,
}

static LOAD_ENDPOINTS: SqlOnce = SqlOnce::new(|dialect| {
    let endpoints = AliasedTable {
        table: "webhooks",
        alias: "w",
    };
    let integrations = AliasedTable {
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

/// Loads the endpoints with these keys, for deliveries. Keys without an endpoint are left out.
pub async fn load_endpoints(
    store: &Store,
    keys: &[EndpointKey],
    now: Timestamp,
) -> Result<HashMap<EndpointKey, LoadedEndpoint>, StoreError> {
    let sql = LOAD_ENDPOINTS.get(store.backend());
    let statement = Statement::from_sql_and_values(store.backend(), sql, [json(&keys).into()]);
    let rows = store.reader().query_all_raw(statement).await?;
    rows.iter()
        .map(|row| {
            let loaded = to_loaded_endpoint(store, row, now)?;
            Ok((loaded.endpoint.key, loaded))
        })
        .collect()
}

fn to_loaded_endpoint(
    store: &Store,
    found: &QueryResult,
    now: Timestamp,
) -> Result<LoadedEndpoint, StoreError> {
    let row = Model::from_query_result(found, "w_")?;
    let settings = integration_row::Model::from_query_result_optional(found, "i_")?;
    let owner = row.endpoint_key.to_string();
    let previous = secrets::previous_secrets(&row, now)?;
    let sealed = std::iter::once(&row.secret).chain(previous.iter().map(|old| &old.sealed));
    let secrets = sealed
        .map(|text| store.vault().open(&owner, text))
        .collect::<Result<_, _>>()?;
    let settings = settings
        .map(|settings| integrations::unseal_integration(store.vault(), settings))
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

/// Loads the endpoint with this key, for deliveries.
pub async fn load_endpoint(
    store: &Store,
    key: EndpointKey,
    now: Timestamp,
) -> Result<Option<LoadedEndpoint>, StoreError> {
    Ok(load_endpoints(store, &[key], now).await?.remove(&key))
}

/// Loads an endpoint and its failure streak, without its secrets.
pub async fn find_by_key_with_streak(
    connection: &impl ConnectionTrait,
    key: EndpointKey,
) -> Result<Option<EndpointWithStreak>, StoreError> {
    let found = Entity::find_by_id(key.0).one(connection).await?;
    found.map(to_endpoint_with_streak).transpose()
}

fn to_endpoint_with_streak(row: Model) -> Result<EndpointWithStreak, StoreError> {
    let failure_streak = failure_streak(&row)?;
    Ok((Endpoint::try_from(row)?, failure_streak))
}

pub(in crate::store) fn failure_streak(row: &Model) -> Result<Option<FailureStreak>, StoreError> {
    let at = RowRef {
        table: "webhooks",
        id: row.endpoint_key,
    };
    row.failure_streak
        .as_deref()
        .map(|text| at.parse_json(text))
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
        .filter(Column::EndpointKey.eq(endpoint.key.0))
        .filter(Column::UpdatedAt.eq(endpoint.updated_at.as_microsecond()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Returns those of these endpoints that have a failure streak.
pub async fn find_keys_with_failure_streak(
    tx: &Transaction,
    keys: &[EndpointKey],
) -> Result<HashSet<EndpointKey>, StoreError> {
    let mut found = HashSet::new();
    for chunk in statement_portions(keys) {
        let rows: Vec<i64> = Entity::find()
            .select_only()
            .column(Column::EndpointKey)
            .filter(Column::EndpointKey.is_in(chunk.iter().map(|key| key.0)))
            .filter(Column::FailureStreak.is_not_null())
            .into_tuple()
            .all(tx)
            .await?;
        found.extend(rows.into_iter().map(EndpointKey));
    }
    Ok(found)
}

/// Writes an endpoint, new or existing. A new endpoint gets `first_secret`. If the endpoint is active, its failure
/// streak is cleared. If it was parked or disabled before, its deliveries that wait for a retry are made due at once.
/// The next success would not do this, because it no longer ends a streak. The caller must have locked the lane of the
/// endpoint.
pub async fn save(
    store: &Store,
    tx: &Transaction,
    endpoint: &Endpoint,
    first_secret: &str,
) -> Result<(), StoreError> {
    let stored = find_by_key_with_streak(tx, endpoint.key).await?;
    let was_stopped = stored.is_some_and(|(before, streak)| {
        !before.is_active || streak.as_ref().is_some_and(FailureStreak::was_parked)
    });
    let row = Model {
        endpoint_key: endpoint.key.0,
        id: endpoint.id,
        url: endpoint.url.clone(),
        enabled_events: json(&endpoint.enabled_events),
        is_active: endpoint.is_active,
        disabled_reason: endpoint.disabled_reason.clone(),
        secret: store
            .vault()
            .seal(&endpoint.key.to_string(), first_secret)?,
        previous_secrets: json(&[(); 0]),
        created_at: endpoint.created_at.as_microsecond(),
        updated_at: endpoint.updated_at.as_microsecond(),
        disabled_after: endpoint.disabled_after,
        failure_streak: None,
        public_key: None,
        retry_schedule: endpoint.retry_schedule.as_ref().map(json),
        owner_id: delivery_row::owner_id(endpoint.key, endpoint.taxpayer_id),
        description: endpoint.description.clone(),
    };
    let changing = [
        Column::Url,
        Column::EnabledEvents,
        Column::IsActive,
        Column::DisabledReason,
        Column::DisabledAfter,
        Column::RetrySchedule,
        Column::Description,
        Column::UpdatedAt,
    ];
    let mut known = OnConflict::column(Column::EndpointKey)
        .update_columns(changing)
        .to_owned();
    if endpoint.is_active {
        known.update_column(Column::FailureStreak);
    }
    Entity::insert(row.into_active_model())
        .on_conflict(known)
        .exec_without_returning(tx)
        .await?;
    if was_stopped && endpoint.is_active {
        delivery_queue::make_due_now(tx, endpoint.key, endpoint.updated_at).await?;
    }
    Ok(())
}

/// Removes added endpoints and their lanes, so that a worker that still holds a lane can write nothing more.
/// `removed_endpoints` deletes their deliveries, attempts and replays later, because there may be very many. The caller
/// must have locked the lanes.
pub async fn remove(tx: &Transaction, keys: &[EndpointKey]) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    for key in keys {
        removed_endpoints::add(tx, *key).await?;
    }
    Entity::delete_many()
        .filter(Column::EndpointKey.is_in(keys.iter().map(|key| key.0)))
        .exec(tx)
        .await?;
    let lanes: Vec<_> = keys.iter().map(ToString::to_string).collect();
    lanes::remove(tx, LaneKind::Endpoint, &lanes).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use timing::clock;

    use super::*;
    use crate::domain::events::delivery::{Delivery, DeliveryState};
    use crate::domain::events::event::EventKind;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::store::lanes::LanesToWake;
    use crate::store::testing::{TestStore, claim_due, stores};

    const OWNER: TaxpayerId = TaxpayerId(7);
    const OTHER: TaxpayerId = TaxpayerId(8);

    /// Writes the default endpoint of a taxpayer without the columns that came with added endpoints.
    async fn add_as_before(test: &TestStore, taxpayer: TaxpayerId) {
        let secret = test
            .store
            .vault()
            .seal(&taxpayer.to_string(), "whsec_old")
            .unwrap();
        let sql = format!(
            "INSERT INTO webhooks (taxpayer_id, id, url, enabled_events, is_active, secret, previous_secrets, created_at, \
             updated_at) VALUES ({taxpayer}, 1, 'https://old.example/', '[]', TRUE, '{secret}', '[]', 0, 0)"
        );
        let tx = test.store.begin().await.unwrap();
        tx.execute_unprepared(&sql).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn add(test: &TestStore, id: i64, owner: TaxpayerId) -> Endpoint {
        let url = format!("https://added.example/{id}");
        let endpoint = Endpoint::new_added_endpoint(id, owner, url, Timestamp::UNIX_EPOCH);
        let tx = test.store.begin().await.unwrap();
        save(&test.store, &tx, &endpoint, "whsec_new")
            .await
            .unwrap();
        tx.commit().await.unwrap();
        endpoint
    }

    #[tokio::test]
    async fn a_taxpayer_has_its_default_endpoint_and_those_that_were_added() {
        for test in stores().await {
            let reader = test.store.reader();
            add_as_before(&test, OWNER).await;
            let added = [add(&test, 2, OWNER).await, add(&test, 3, OWNER).await];
            add(&test, 4, OTHER).await;
            let mut found = owned_by_taxpayers(reader, &[OWNER, OTHER, TaxpayerId(9)])
                .await
                .unwrap();
            let of_owner = found.remove(&OWNER).unwrap();
            assert_eq!(
                (of_owner[0].key, of_owner[0].taxpayer_id),
                (OWNER.into(), OWNER)
            );
            assert_eq!(of_owner[1..], added);
            let of_other: Vec<_> = found
                .remove(&OTHER)
                .unwrap()
                .iter()
                .map(|one| one.id)
                .collect();
            assert_eq!((of_other, found.len()), (vec![4], 0));
            let all = owned_by_with_streaks(reader, OWNER).await.unwrap();
            assert_eq!(
                all.into_iter().map(|(one, _)| one).collect::<Vec<_>>(),
                of_owner
            );
            for (name, id) in [
                ("default", Some(1)),
                ("2", Some(2)),
                ("4", None),
                ("9", None),
                ("-2", None),
            ] {
                let named = find_owned_by_name(reader, OWNER, name).await.unwrap();
                assert_eq!(named.map(|(one, _)| one.id), id, "{name}");
            }
            let keys = [OWNER.into(), added[0].key];
            let loaded = load_endpoints(&test.store, &keys, Timestamp::UNIX_EPOCH)
                .await
                .unwrap();
            let secrets = keys.map(|key| loaded[&key].secrets.concat());
            assert_eq!(secrets, ["whsec_old", "whsec_new"]);
        }
    }

    #[tokio::test]
    async fn a_removed_endpoint_leaves_the_others_and_ends_the_lease_of_its_worker() {
        for test in stores().await {
            add_as_before(&test, OWNER).await;
            let [gone, kept] = [add(&test, 2, OWNER).await, add(&test, 3, OWNER).await];
            let keys = [gone.key, kept.key].map(|key| key.to_string());
            let tx = test.store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            remove(&tx, &[gone.key]).await.unwrap();
            tx.commit().await.unwrap();
            let left = owned_by_with_streaks(test.store.reader(), OWNER)
                .await
                .unwrap();
            let left: Vec<_> = left.iter().map(|(one, _)| one.id).collect();
            assert_eq!(left, [1, 3]);
            let lease = Duration::from_secs(30);
            let held = claim_due(&test.store, LaneKind::Endpoint, "me", lease, 9);
            let held: Vec<_> = held
                .await
                .unwrap()
                .into_iter()
                .map(|lease| lease.key)
                .collect();
            assert_eq!(held, [kept.key.to_string()]);
        }
    }

    fn failures(parked_until: Option<Timestamp>) -> FailureStreak {
        FailureStreak {
            since: Timestamp::UNIX_EPOCH,
            last: Timestamp::UNIX_EPOCH,
            failures: 5,
            probes: 1,
            parked_until,
            last_failure: None,
            last_status: None,
        }
    }

    /// Adds a delivery that waits for its second attempt until `next`.
    async fn add_waiting(test: &TestStore, endpoint: &Endpoint, next: Timestamp) {
        let delivery = Delivery {
            id: clock::new_id(),
            taxpayer_id: endpoint.taxpayer_id,
            endpoint: endpoint.key,
            event_id: clock::new_id(),
            sequence: 1,
            order_key: "IRN".to_owned(),
            state: DeliveryState::Pending,
            attempts: 1,
            attempts_before: 0,
            next_attempt_at: Some(next),
            crash_history: CrashHistory::default(),
        };
        let tx = test.store.begin().await.unwrap();
        let added = [(delivery, EventKind::InvoiceCreated)];
        deliveries::add(&tx, &added, endpoint.updated_at)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn what_waits_for_a_retry_is_due_when_an_endpoint_is_trusted_again() {
        let parked = Some(failures(Some(Timestamp::UNIX_EPOCH)));
        let failing = Some(failures(None));
        let changed_at = Timestamp::UNIX_EPOCH + Duration::from_mins(1);
        let later = Timestamp::UNIX_EPOCH + Duration::from_hours(14);
        for (was_active, streak, is_active, is_due) in [
            (true, &None, true, false),
            (true, &failing, true, false),
            (true, &parked, true, true),
            (true, &parked, false, false),
            (false, &None, true, true),
            (false, &parked, true, true),
        ] {
            for test in stores().await {
                let added = Endpoint {
                    is_active: was_active,
                    ..add(&test, 2, OWNER).await
                };
                let other = add(&test, 3, OWNER).await;
                add_waiting(&test, &added, later).await;
                add_waiting(&test, &other, later).await;
                let tx = test.store.begin().await.unwrap();
                save(&test.store, &tx, &added, "whsec_new").await.unwrap();
                set_failure_streak(&tx, &added, streak.as_ref())
                    .await
                    .unwrap();
                let changed = Endpoint {
                    is_active,
                    updated_at: changed_at,
                    ..added.clone()
                };
                save(&test.store, &tx, &changed, "whsec_new").await.unwrap();
                let keys = [added.key, other.key];
                let due = delivery_queue::next_due_by_endpoint(&tx, &keys)
                    .await
                    .unwrap();
                let expected = if is_due { changed_at } else { later };
                assert_eq!(
                    (due[&added.key], due[&other.key]),
                    (expected, later),
                    "{was_active} {streak:?} {is_active}"
                );
                tx.commit().await.unwrap();
            }
        }
    }
}
