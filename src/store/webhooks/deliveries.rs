//! Writes deliveries and the log of their attempts. `delivery_queue` and `delivery_log` read them.

use std::borrow::Borrow;
use std::collections::HashSet;

use database::column::json;
use database::{StoreError, Transaction, statement_portions};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, OnConflict, Query};
use sea_orm::{ConnectionTrait, EntityTrait, IntoActiveModel, Iterable, ModelTrait, Statement};

use crate::domain::events::delivery::{Delivery, DeliveryAttempt, DeliveryState};
use crate::domain::events::event::EventKind;
use crate::store::webhooks::attempt_row;
use crate::store::webhooks::delivery_heads;
use crate::store::webhooks::delivery_row::{Column, Entity, Model};

/// Adds deliveries. The caller must have locked, or hold, the lanes of their endpoints.
pub async fn add<D: Borrow<(Delivery, EventKind)>>(
    tx: &Transaction,
    deliveries: &[D],
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut lines = HashSet::new();
    for chunk in statement_portions(deliveries) {
        let mut insert = Query::insert();
        insert.into_table(Entity).columns(Column::iter());
        for (delivery, kind) in chunk.iter().map(Borrow::borrow) {
            let row = Model::from_delivery(delivery, kind.as_str(), now);
            let is_first_of_added = lines.insert((delivery.endpoint, &delivery.order_key));
            insert.values_panic(Column::iter().map(|column| match column {
                Column::IsFirst => delivery_heads::is_new_head(delivery, is_first_of_added),
                column => Expr::value(row.get(column)),
            }));
        }
        tx.execute(&insert).await?;
    }
    Ok(())
}

/// Writes the results of attempts: the states of the deliveries, a log entry for each attempt, and the deliveries that
/// may be attempted next (`delivery_heads`).
pub async fn record_attempts(
    tx: &Transaction,
    outcomes: &[(Delivery, EventKind, DeliveryAttempt)],
    now: Timestamp,
) -> Result<(), StoreError> {
    for chunk in statement_portions(outcomes) {
        let rows = chunk.iter().map(|(delivery, kind, _)| {
            Model::from_delivery(delivery, kind.as_str(), now).into_active_model()
        });
        Entity::insert_many(rows)
            .on_conflict(
                OnConflict::columns([Column::EndpointKey, Column::Id])
                    .update_columns([
                        Column::State,
                        Column::Attempts,
                        Column::AttemptsBefore,
                        Column::NextAttemptAt,
                        Column::UpdatedAt,
                        Column::Crashes,
                        Column::IsLifted,
                    ])
                    .value(Column::IsFirst, delivery_heads::is_still_head())
                    .to_owned(),
            )
            .exec_without_returning(tx)
            .await?;
        let log = chunk
            .iter()
            .map(|(delivery, _, attempt)| to_attempt_row(delivery, attempt).into_active_model());
        attempt_row::Entity::insert_many(log)
            .exec_without_returning(tx)
            .await?;
    }
    let ended = outcomes
        .iter()
        .filter(|(delivery, ..)| delivery.state != DeliveryState::Pending);
    delivery_heads::promote_next_heads(
        tx,
        ended.map(|(delivery, ..)| (delivery.endpoint, delivery.order_key.as_str())),
    )
    .await
}

fn to_attempt_row(delivery: &Delivery, attempt: &DeliveryAttempt) -> attempt_row::Model {
    let headers = attempt.headers.as_ref();
    attempt_row::Model {
        endpoint_key: delivery.endpoint.0,
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
        request_headers: headers.map(|headers| json(&headers.request)),
        response_headers: headers.map(|headers| json(&headers.response)),
    }
}

/// The states are literals, because with parameters PostgreSQL could not use the partial indexes of pending and dead
/// deliveries.
const COUNT_PENDING: &str = "SELECT COUNT(*) FROM deliveries WHERE state = 'pending'";

const COUNT_DEAD: &str = "SELECT COUNT(*) FROM deliveries WHERE state = 'dead'";

/// Counts the pending deliveries of all taxpayers.
pub async fn count_pending(connection: &impl ConnectionTrait) -> Result<i64, StoreError> {
    count(connection, COUNT_PENDING).await
}

/// Counts the dead letters of all taxpayers.
pub async fn count_dead(connection: &impl ConnectionTrait) -> Result<i64, StoreError> {
    count(connection, COUNT_DEAD).await
}

async fn count(connection: &impl ConnectionTrait, sql: &str) -> Result<i64, StoreError> {
    let statement = Statement::from_string(connection.get_database_backend(), sql);
    let row = connection.query_one_raw(statement).await?;
    row.map_or(Ok(0), |row| Ok(row.try_get_by_index(0)?))
}

#[cfg(test)]
mod tests {
    use sea_orm::DbBackend;

    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn pending_and_dead_deliveries_are_counted_by_indexes_of_their_own() {
        for test in stores().await {
            for (sql, index) in [
                (COUNT_PENDING, "deliveries_in_line"),
                (COUNT_DEAD, "deliveries_dead"),
            ] {
                let by_index = match test.store.backend() {
                    DbBackend::Postgres => index.to_owned(),
                    _ => format!("USING COVERING INDEX {index}"),
                };
                let steps = query_plan(&test.store, sql, []).await;
                assert!(
                    steps.iter().any(|step| step.contains(&by_index)),
                    "{steps:#?}"
                );
            }
            assert_eq!(count_pending(test.store.reader()).await.unwrap(), 0);
            assert_eq!(count_dead(test.store.reader()).await.unwrap(), 0);
        }
    }
}
