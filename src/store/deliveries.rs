//! Deliveries and the log of their attempts, as they are written.

use jiff::Timestamp;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter,
};

use crate::domain::delivery::{Attempt, Delivery, DeliveryState};
use crate::domain::event::EventKind;
use crate::store::database::portions;
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
    }
}

/// How many deliveries wait, over all taxpayers.
pub async fn count_pending(connection: &impl ConnectionTrait) -> Result<u64, StoreError> {
    let pending = Entity::find().filter(Column::State.eq(DeliveryState::Pending.as_str()));
    Ok(pending.count(connection).await?)
}
