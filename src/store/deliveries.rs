//! Deliveries and the log of their attempts. Within one order key (an IRN) only the earliest pending
//! delivery is ready: that is what keeps the order.

use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, Select,
};

use crate::domain::delivery::{Attempt, Delivery, DeliveryState};
use crate::domain::event::EventKind;
use crate::domain::ids::TaxpayerId;
use crate::store::database::{Store, portions};
use crate::store::entity::attempt;
use crate::store::entity::delivery::{Column, Entity, Model};
use crate::store::failure::StoreError;

pub async fn add(
    tx: &DatabaseTransaction,
    deliveries: &[(Delivery, EventKind)],
    now: Timestamp,
) -> Result<(), StoreError> {
    for chunk in portions(deliveries) {
        let rows =
            chunk.iter().map(|(delivery, kind)| Model::of(delivery, kind.as_str(), now).into_active_model());
        Entity::insert_many(rows).exec_without_returning(tx).await?;
    }
    Ok(())
}

/// The pending deliveries that are first of their order key: the others wait for them, whatever their own time.
fn first_owned_by(taxpayer: TaxpayerId) -> Select<Entity> {
    let first = Query::select()
        .expr(Expr::col(Column::Sequence).min())
        .from(Entity)
        .and_where(Expr::col(Column::TaxpayerId).eq(taxpayer.0))
        .and_where(Expr::col(Column::State).eq(DeliveryState::Pending.as_str()))
        .group_by_col(Column::OrderKey)
        .to_owned();
    Entity::find()
        .filter(Column::TaxpayerId.eq(taxpayer.0))
        .filter(Column::State.eq(DeliveryState::Pending.as_str()))
        .filter(Column::Sequence.in_subquery(first))
}

/// The deliveries that are due and first of their order key, the oldest first.
pub async fn ready_owned_by(
    store: &Store,
    taxpayer: TaxpayerId,
    now: Timestamp,
    limit: u64,
) -> Result<Vec<Delivery>, StoreError> {
    let rows = first_owned_by(taxpayer)
        .filter(Column::NextAttemptAt.lte(now.as_microsecond()))
        .order_by_asc(Column::Sequence)
        .limit(limit)
        .all(store.reader())
        .await?;
    rows.into_iter().map(Delivery::try_from).collect()
}

/// When the next delivery can be attempted; `None` when none is pending.
pub async fn next_due_owned_by(
    tx: &DatabaseTransaction,
    taxpayer: TaxpayerId,
) -> Result<Option<Timestamp>, StoreError> {
    let next = first_owned_by(taxpayer).order_by_asc(Column::NextAttemptAt).one(tx).await?;
    Ok(next.map(Delivery::try_from).transpose()?.and_then(|delivery| delivery.next_attempt_at))
}

/// Writes what came of attempts: the deliveries as they are now and a log entry each.
pub async fn record(
    tx: &DatabaseTransaction,
    outcomes: &[(Delivery, EventKind, Attempt)],
    now: Timestamp,
) -> Result<(), StoreError> {
    for chunk in portions(outcomes) {
        let rows = chunk
            .iter()
            .map(|(delivery, kind, _)| Model::of(delivery, kind.as_str(), now).into_active_model());
        Entity::insert_many(rows)
            .on_conflict(
                OnConflict::columns([Column::TaxpayerId, Column::Id])
                    .update_columns([
                        Column::State,
                        Column::Attempts,
                        Column::NextAttemptAt,
                        Column::UpdatedAt,
                    ])
                    .to_owned(),
            )
            .exec_without_returning(tx)
            .await?;
        let log = chunk.iter().map(|(delivery, _, attempt)| row_of(delivery, attempt).into_active_model());
        attempt::Entity::insert_many(log).exec_without_returning(tx).await?;
    }
    Ok(())
}

fn row_of(delivery: &Delivery, attempt: &Attempt) -> attempt::Model {
    attempt::Model {
        taxpayer_id: delivery.taxpayer_id.0,
        delivery_id: delivery.id.to_string(),
        attempt: i32::try_from(delivery.attempts).unwrap_or(i32::MAX),
        at: attempt.at.as_microsecond(),
        status: attempt.status.map(i32::from),
        failure: attempt.failure.clone(),
        duration_ms: attempt.duration_ms,
        response: attempt.response.clone(),
        dns_ms: attempt.phases.dns_ms,
        connect_ms: attempt.phases.connect_ms,
        wait_ms: attempt.phases.wait_ms,
        read_ms: attempt.phases.read_ms,
    }
}

/// How many deliveries wait, over all taxpayers.
pub async fn count_pending(connection: &impl ConnectionTrait) -> Result<u64, StoreError> {
    let pending = Entity::find().filter(Column::State.eq(DeliveryState::Pending.as_str()));
    Ok(pending.count(connection).await?)
}
