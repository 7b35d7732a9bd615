//! Replays, which deliver past events again, in batches. A batch and the new position of its replay are stored in one
//! transaction.

use std::collections::HashSet;

use database::page::{self, Page};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};
use timing::clock;

use crate::domain::events::delivery::{Delivery, DeliveryState};
use crate::domain::events::event::{Event, EventKind};
use crate::domain::events::replay::{Replay, ReplayScope, ReplayState};
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::store::Store;
use crate::store::events::event_row;
use crate::store::webhooks::crashed_deliveries;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::delivery_heads;
use crate::store::webhooks::delivery_row;
use crate::store::webhooks::delivery_selection::is_selected;
use crate::store::webhooks::replay_row::{Column, Entity, Model};
use crate::store::webhooks::select_endpoint_keys;

/// The maximum number of events in one batch.
pub const EVENTS_PER_BATCH: i64 = 250;

/// Loads the running replays of all endpoints of a taxpayer, oldest first.
pub async fn running_owned_by(
    connection: &impl ConnectionTrait,
    taxpayer: TaxpayerId,
) -> Result<Vec<Replay>, StoreError> {
    load_running(
        connection,
        Column::EndpointKey.in_subquery(select_endpoint_keys(taxpayer)),
    )
    .await
}

/// Loads the running replays of one endpoint, oldest first.
pub async fn running_for_endpoint(
    connection: &impl ConnectionTrait,
    endpoint: EndpointKey,
) -> Result<Vec<Replay>, StoreError> {
    load_running(connection, Column::EndpointKey.eq(endpoint.0)).await
}

async fn load_running(
    connection: &impl ConnectionTrait,
    endpoints: Expr,
) -> Result<Vec<Replay>, StoreError> {
    let rows = Entity::find()
        .filter(endpoints)
        .filter(Column::State.eq(ReplayState::Running.as_str()))
        .order_by_asc(Column::Id)
        .all(connection)
        .await?;
    rows.into_iter().map(Replay::try_from).collect()
}

/// Loads the newest replay of an endpoint, running or ended.
pub async fn latest_for_endpoint(
    connection: &impl ConnectionTrait,
    endpoint: EndpointKey,
) -> Result<Option<Replay>, StoreError> {
    let found = Entity::find()
        .filter(Column::EndpointKey.eq(endpoint.0))
        .order_by_desc(Column::Id);
    found
        .one(connection)
        .await?
        .map(Replay::try_from)
        .transpose()
}

/// Loads one page of an endpoint's replays, newest first, and the number of all of them.
pub async fn page_for_endpoint(
    store: &Store,
    endpoint: EndpointKey,
    page: Page,
) -> Result<(Vec<Replay>, u64), StoreError> {
    let found = Entity::find().filter(Column::EndpointKey.eq(endpoint.0));
    page::load(store, found.order_by_desc(Column::Id), page).await
}

/// Loads one page of the replays of all endpoints of a taxpayer, newest first, and the number of all of them.
pub async fn page_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    page: Page,
) -> Result<(Vec<Replay>, u64), StoreError> {
    let found =
        Entity::find().filter(Column::EndpointKey.in_subquery(select_endpoint_keys(taxpayer)));
    page::load(store, found.order_by_desc(Column::Id), page).await
}

/// Finds a replay of any endpoint of a taxpayer.
pub async fn find_owned_by_id(
    store: &Store,
    taxpayer: TaxpayerId,
    id: uuid::Uuid,
) -> Result<Option<Replay>, StoreError> {
    let found = Entity::find()
        .filter(Column::EndpointKey.in_subquery(select_endpoint_keys(taxpayer)))
        .filter(Column::Id.eq(id.to_string()))
        .one(store.reader())
        .await?;
    found.map(Replay::try_from).transpose()
}

/// Cancels these running replays. The caller must have locked the endpoint's lane, as for `queue_next_batch`, to
/// prevent deadlocks.
pub async fn cancel(
    tx: &Transaction,
    replays: &[Replay],
    now: Timestamp,
) -> Result<(), StoreError> {
    if replays.is_empty() {
        return Ok(());
    }
    let cancelled = replays.iter().fold(Condition::any(), |any, replay| {
        any.add(
            Condition::all()
                .add(Column::EndpointKey.eq(replay.endpoint.0))
                .add(Column::Id.eq(replay.id.to_string())),
        )
    });
    Entity::update_many()
        .col_expr(Column::State, Expr::value(ReplayState::Cancelled.as_str()))
        .col_expr(Column::UpdatedAt, Expr::value(now.as_microsecond()))
        .filter(cancelled)
        .filter(Column::State.eq(ReplayState::Running.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

/// Writes the current state of these replays. Inserts new replays and updates existing ones.
pub async fn save(tx: &Transaction, replays: &[Replay]) -> Result<(), StoreError> {
    if replays.is_empty() {
        return Ok(());
    }
    let changing = [
        Column::State,
        Column::Position,
        Column::Queued,
        Column::UpdatedAt,
    ];
    Entity::insert_many(
        replays
            .iter()
            .map(|replay| Model::from(replay).into_active_model()),
    )
    .on_conflict(
        OnConflict::columns([Column::EndpointKey, Column::Id])
            .update_columns(changing)
            .to_owned(),
    )
    .exec_without_returning(tx)
    .await?;
    Ok(())
}

/// A batch of a replay that was queued.
struct QueuedBatch {
    /// The new position of the replay: the sequence of the last event that the batch covers.
    position: i64,
    /// The number of deliveries that the batch has made pending.
    deliveries: usize,
}

/// Queues the next batch of a replay and advances the replay. Does nothing if the replay is not running any more.
pub async fn queue_next_batch(
    tx: &Transaction,
    replay: Replay,
    enabled: &[EventKind],
    now: Timestamp,
) -> Result<Replay, StoreError> {
    let key = (replay.endpoint.0, replay.id.to_string());
    let held = Entity::find_by_id(key)
        .lock_exclusive()
        .one(tx)
        .await?
        .ok_or(StoreError::Stale)?;
    let replay = Replay::try_from(held)?;
    if !replay.is_open() {
        return Ok(replay);
    }
    let batch = match replay.scope {
        ReplayScope::Failed => {
            let dead = delivery_row::Column::State.eq(DeliveryState::Dead.as_str());
            requeue_batch(tx, &replay, Condition::all().add(dead), replay.until, now).await?
        }
        ReplayScope::Selected => {
            let selection = replay.selection.as_ref().ok_or(StoreError::Stale)?;
            let selected = is_selected(replay.taxpayer_id, selection);
            requeue_batch(tx, &replay, selected, replay.until, now).await?
        }
        ReplayScope::Missing => add_missing_deliveries(tx, &replay, enabled, now).await?,
        ReplayScope::All => {
            let added = add_missing_deliveries(tx, &replay, enabled, now).await?;
            let end = added.position;
            let repeated = requeue_batch(tx, &replay, Condition::all(), end, now).await?;
            QueuedBatch {
                position: end,
                deliveries: added.deliveries + repeated.deliveries,
            }
        }
    };
    let replay = replay.advance(batch.position, batch.deliveries, now);
    save(tx, std::slice::from_ref(&replay)).await?;
    Ok(replay)
}

/// Makes the next batch of the deliveries that the condition `which` selects pending again. Deliveries that were queued
/// already and have not been attempted since then are not changed.
async fn requeue_batch(
    tx: &Transaction,
    replay: &Replay,
    which: Condition,
    until: i64,
    now: Timestamp,
) -> Result<QueuedBatch, StoreError> {
    let batch = usize::try_from(EVENTS_PER_BATCH).unwrap_or(usize::MAX);
    let found = delivery_row::Entity::find()
        .filter(delivery_row::Column::EndpointKey.eq(replay.endpoint.0))
        .filter(delivery_row::Column::Sequence.gt(replay.position))
        .filter(delivery_row::Column::Sequence.lte(until))
        .filter(which);
    let rows = found
        .order_by_asc(delivery_row::Column::Sequence)
        .limit(batch as u64)
        .all(tx)
        .await?;
    let is_last = rows.len() < batch;
    let position = rows
        .last()
        .filter(|_| !is_last)
        .map_or(until, |row| row.sequence);
    let rows: Vec<_> = rows
        .into_iter()
        .filter(|row| !is_queued_unattempted(row))
        .collect();
    let ids = rows.iter().map(|row| row.id.clone());
    delivery_row::Entity::update_many()
        .col_expr(
            delivery_row::Column::State,
            Expr::value(DeliveryState::Pending.as_str()),
        )
        .col_expr(
            delivery_row::Column::AttemptsBefore,
            Expr::col(delivery_row::Column::Attempts),
        )
        .col_expr(
            delivery_row::Column::NextAttemptAt,
            Expr::value(now.as_microsecond()),
        )
        .col_expr(
            delivery_row::Column::UpdatedAt,
            Expr::value(now.as_microsecond()),
        )
        .col_expr(
            delivery_row::Column::Crashes,
            crashed_deliveries::crashes_after_replay(),
        )
        .filter(delivery_row::Column::EndpointKey.eq(replay.endpoint.0))
        .filter(delivery_row::Column::Id.is_in(ids))
        .exec(tx)
        .await?;
    let keys: Vec<_> = rows.iter().map(|row| row.order_key.as_str()).collect();
    delivery_heads::recompute_heads(tx, replay.endpoint, &keys).await?;
    Ok(QueuedBatch {
        position,
        deliveries: rows.len(),
    })
}

/// True if the delivery is already queued and has not been attempted since it was queued.
fn is_queued_unattempted(row: &delivery_row::Model) -> bool {
    row.state == DeliveryState::Pending.as_str() && row.attempts == row.attempts_before
}

/// Goes through the next `EVENTS_PER_BATCH` sequences of the log and adds a delivery for each event whose kind is
/// enabled and that has no delivery yet.
async fn add_missing_deliveries(
    tx: &Transaction,
    replay: &Replay,
    enabled: &[EventKind],
    now: Timestamp,
) -> Result<QueuedBatch, StoreError> {
    let position = replay
        .until
        .min(replay.position.saturating_add(EVENTS_PER_BATCH));
    let rows = event_row::Entity::find()
        .filter(event_row::Column::TaxpayerId.eq(replay.taxpayer_id.0))
        .filter(event_row::Column::Sequence.gt(replay.position))
        .filter(event_row::Column::Sequence.lte(position))
        .filter(event_row::Column::Kind.is_in(enabled.iter().map(|kind| kind.as_str())))
        .order_by_asc(event_row::Column::Sequence)
        .all(tx)
        .await?;
    let known: Vec<i64> = delivery_row::Entity::find()
        .select_only()
        .column(delivery_row::Column::Sequence)
        .filter(delivery_row::Column::EndpointKey.eq(replay.endpoint.0))
        .filter(delivery_row::Column::Sequence.gt(replay.position))
        .filter(delivery_row::Column::Sequence.lte(position))
        .into_tuple()
        .all(tx)
        .await?;
    let known: HashSet<i64> = known.into_iter().collect();
    let mut added = Vec::new();
    for row in rows
        .into_iter()
        .filter(|row| !known.contains(&row.sequence))
    {
        let event = Event::try_from(row)?;
        added.push((
            Delivery::for_event(clock::new_id(), replay.endpoint, &event, now),
            event.kind,
        ));
    }
    deliveries::add(tx, &added, now).await?;
    let keys: Vec<_> = added
        .iter()
        .map(|(delivery, _)| delivery.order_key.as_str())
        .collect();
    delivery_heads::recompute_heads(tx, replay.endpoint, &keys).await?;
    Ok(QueuedBatch {
        position,
        deliveries: added.len(),
    })
}

/// Returns those of these IRNs about which the replay still has events to queue. Newer events about these IRNs must
/// wait until the replay has queued them.
pub async fn irns_still_to_queue(
    connection: &impl ConnectionTrait,
    replay: &Replay,
    irns: Vec<String>,
) -> Result<HashSet<String>, StoreError> {
    let found: Vec<Option<String>> = event_row::Entity::find()
        .select_only()
        .column(event_row::Column::Irn)
        .distinct()
        .filter(event_row::Column::TaxpayerId.eq(replay.taxpayer_id.0))
        .filter(event_row::Column::Irn.is_in(irns))
        .filter(event_row::Column::Sequence.gt(replay.position))
        .filter(event_row::Column::Sequence.lte(replay.until))
        .into_tuple()
        .all(connection)
        .await?;
    Ok(found.into_iter().flatten().collect())
}
