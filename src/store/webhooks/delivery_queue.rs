//! The queue of pending deliveries. Only chain heads (see `delivery_heads`) are loaded, which keeps the order of the
//! events of each IRN.

use std::collections::HashMap;

use database::column::{RowRef, json, select_list};
use database::sql::{AliasedTable, FirstRows, Join, SqlOnce, dialect};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::{ConnectionTrait, FromQueryResult, QueryResult, Statement, Value};

use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::Event;
use crate::domain::kernel::ids::EndpointKey;
use crate::store::Store;
use crate::store::events::event_row;
use crate::store::webhooks::delivery_row;

/// Selects the due deliveries of each endpoint through an index, without reading deliveries that are not due.
static DUE_DELIVERIES: SqlOnce = SqlOnce::new(|dialect| {
    let due = dialect.lateral_first_rows(FirstRows {
        rows: AliasedTable {
            table: "deliveries",
            alias: "d",
        },
        owner_column: "taxpayer_id",
        owner: "given.value",
        inner: "d",
        selection: "d.taxpayer_id = given.value AND d.is_first AND d.next_attempt_at <= $2 \
            ORDER BY d.next_attempt_at, d.sequence LIMIT $3",
        sqlite_index: None,
    });
    format!(
        "SELECT {}, {} FROM {} AS given {due} \
         LEFT JOIN events AS e ON e.taxpayer_id = COALESCE(d.owner_id, d.taxpayer_id) AND e.sequence = d.sequence",
        select_list::<delivery_row::Column>("d"),
        select_list::<event_row::Column>("e"),
        dialect.json_numbers("$1"),
    )
});

/// Loads up to `limit` due chain heads of each endpoint with their events, the longest due first.
pub async fn load_due_by_endpoint(
    store: &Store,
    endpoints: &[EndpointKey],
    now: Timestamp,
    limit: usize,
) -> Result<HashMap<EndpointKey, Vec<(Delivery, Event)>>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values: [Value; 3] = [
        json(&endpoints).into(),
        now.as_microsecond().into(),
        limit.into(),
    ];
    let statement = Statement::from_sql_and_values(
        store.backend(),
        DUE_DELIVERIES.get(store.backend()),
        values,
    );
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for row in store.reader().query_all_raw(statement).await? {
        let (delivery, event) = to_delivery_and_event(&row)?;
        found
            .entry(delivery.endpoint)
            .or_default()
            .push((delivery, event));
    }
    for next in found.values_mut() {
        next.sort_unstable_by_key(|(delivery, _)| (delivery.next_attempt_at, delivery.sequence));
    }
    Ok(found)
}

fn to_delivery_and_event(row: &QueryResult) -> Result<(Delivery, Event), StoreError> {
    let delivery = Delivery::try_from(delivery_row::Model::from_query_result(row, "d_")?)?;
    let Some(event) = event_row::Model::from_query_result_optional(row, "e_")? else {
        let reason = format!("event {} is not in the log", delivery.sequence);
        return Err(StoreError::Corrupt {
            table: "deliveries",
            id: delivery.id.to_string(),
            reason,
        });
    };
    Ok((delivery, Event::try_from(event)?))
}

/// Returns when the next delivery of each endpoint is due. Endpoints without a pending delivery are left out.
pub async fn next_due_by_endpoint(
    tx: &Transaction,
    endpoints: &[EndpointKey],
) -> Result<HashMap<EndpointKey, Timestamp>, StoreError> {
    let sql = format!(
        "SELECT given.value AS id, (SELECT d.next_attempt_at FROM deliveries AS d \
         WHERE d.taxpayer_id = given.value AND d.is_first ORDER BY d.next_attempt_at, d.sequence LIMIT 1) AS due \
         FROM {} AS given",
        dialect(tx.get_database_backend()).json_numbers("$1")
    );
    let statement =
        Statement::from_sql_and_values(tx.get_database_backend(), sql, [json(&endpoints).into()]);
    let mut found = HashMap::new();
    for row in tx.query_all_raw(statement).await? {
        let id: i64 = row.try_get("", "id")?;
        if let Some(due) = row.try_get("", "due")? {
            found.insert(
                EndpointKey(id),
                RowRef {
                    table: "deliveries",
                    id,
                }
                .moment(due)?,
            );
        }
    }
    Ok(found)
}

/// Returns those of these endpoints that are active, each with true if it has a running replay.
pub async fn has_replay_by_active_endpoint(
    tx: &Transaction,
    keys: &[EndpointKey],
) -> Result<HashMap<EndpointKey, bool>, StoreError> {
    let backend = tx.get_database_backend();
    let dialect = dialect(backend);
    let endpoints = AliasedTable {
        table: "webhooks",
        alias: "w",
    };
    let sql = format!(
        "SELECT w.taxpayer_id AS id, EXISTS (SELECT 1 FROM replays AS r WHERE r.taxpayer_id = w.taxpayer_id \
         AND r.state = 'running') AS is_replaying FROM {} AS given {}",
        dialect.json_numbers("$1"),
        dialect.lateral_join(
            Join::Inner,
            endpoints,
            "w.taxpayer_id = given.value AND w.is_active"
        ),
    );
    let statement = Statement::from_sql_and_values(backend, sql, [json(&keys).into()]);
    let rows = tx.query_all_raw(statement).await?;
    rows.iter()
        .map(|row| {
            Ok((
                EndpointKey(row.try_get("", "id")?),
                row.try_get("", "is_replaying")?,
            ))
        })
        .collect()
}

/// Sets the due time of those deliveries of an endpoint that wait for a retry to `now`.
pub async fn make_due_now(
    tx: &Transaction,
    endpoint: EndpointKey,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE deliveries SET next_attempt_at = $2 \
        WHERE taxpayer_id = $1 AND state = 'pending' AND next_attempt_at > $2";
    let values: [Value; 2] = [endpoint.0.into(), now.as_microsecond().into()];
    tx.execute_raw(Statement::from_sql_and_values(
        tx.get_database_backend(),
        sql,
        values,
    ))
    .await?;
    Ok(())
}

/// Shortens the wait of deliveries that were scheduled before the clock was set back, so that they wait for as long
/// from `now` as was intended. They are identified by an `updated_at` in the future. Returns the number of changed
/// deliveries.
pub async fn restore_delays_after_clock_set_back(
    store: &Store,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let sql = "UPDATE deliveries SET next_attempt_at = next_attempt_at - (updated_at - $1), updated_at = $1 \
        WHERE state = 'pending' AND updated_at > $1";
    let values: [Value; 1] = [now.as_microsecond().into()];
    let tx = store.begin().await?;
    let changed = tx
        .execute_raw(Statement::from_sql_and_values(store.backend(), sql, values))
        .await?;
    tx.commit().await?;
    Ok(changed.rows_affected())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sea_orm::DbBackend;
    use timing::clock;

    use super::*;
    use crate::domain::events::delivery::{DeliveryAttempt, DeliveryState, PhaseDurations};
    use crate::domain::events::event::{EventKind, EventStamp, LogHead, NewEvent};
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::store::events;
    use crate::store::testing::{TestStore, query_plan, stores};
    use crate::store::webhooks::deliveries;

    const ID: EndpointKey = EndpointKey(7);
    const OWNER: TaxpayerId = TaxpayerId(7);

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    async fn queue(test: &TestStore, irns: &[&str]) -> Vec<Delivery> {
        filled_queue(test, (OWNER, ID), irns).await
    }

    /// Adds an event and a delivery for each of these IRNs. The delivery of event 5 is due at second 5, and so on.
    async fn filled_queue(
        test: &TestStore,
        owned: (TaxpayerId, EndpointKey),
        irns: &[&str],
    ) -> Vec<Delivery> {
        let (taxpayer_id, endpoint) = owned;
        let mut head = LogHead::default();
        let now = second(0);
        let event = |irn: &&str| {
            let kind = EventKind::InvoiceCreated;
            let occurrence = NewEvent {
                kind,
                irn: Some((*irn).to_owned()),
                data: "{}".to_owned(),
                actor: None,
            };
            let id = clock::new_id();
            head.append(
                occurrence,
                EventStamp {
                    id,
                    taxpayer_id,
                    command_id: id,
                    trace: None,
                    now,
                },
            )
        };
        let log: Vec<_> = irns.iter().map(event).collect();
        let due: Vec<_> = log
            .iter()
            .map(|event| {
                (
                    Delivery::for_event(clock::new_id(), endpoint, event, second(event.sequence)),
                    event.kind,
                )
            })
            .collect();
        let tx = test.store.begin().await.unwrap();
        events::append(&tx, &log).await.unwrap();
        deliveries::add(&tx, &due, now).await.unwrap();
        tx.commit().await.unwrap();
        due.into_iter().map(|(delivery, _)| delivery).collect()
    }

    async fn next(test: &TestStore, at: i64, limit: usize) -> Vec<i64> {
        let mut next = load_due_by_endpoint(&test.store, &[ID], second(at), limit)
            .await
            .unwrap();
        let next = next.remove(&ID).unwrap_or_default();
        assert!(
            next.iter()
                .all(|(delivery, event)| delivery.sequence == event.sequence)
        );
        next.into_iter()
            .map(|(delivery, _)| delivery.sequence)
            .collect()
    }

    async fn end(test: &TestStore, delivery: &Delivery) {
        let ended = Delivery {
            state: DeliveryState::Delivered,
            attempts: 1,
            next_attempt_at: None,
            ..delivery.clone()
        };
        let attempt = DeliveryAttempt {
            at: second(0),
            status: Some(204),
            failure: None,
            duration_ms: 1,
            phases: PhaseDurations::default(),
            response: String::new(),
            headers: None,
        };
        let tx = test.store.begin().await.unwrap();
        let outcome = (ended, EventKind::InvoiceCreated, attempt);
        deliveries::record_attempts(&tx, &[outcome], second(0))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn the_earliest_pending_delivery_of_each_irn_is_next() {
        for test in stores().await {
            let due = queue(&test, &["A", "A", "B", "A", "C"]).await;
            assert_eq!(next(&test, 9, 9).await, [1, 3, 5]);
            assert_eq!(next(&test, 9, 2).await, [1, 3]);
            assert_eq!(next(&test, 3, 9).await, [1, 3], "what is not due yet");
            end(&test, &due[0]).await;
            assert_eq!(next(&test, 9, 9).await, [2, 3, 5]);
            let others = load_due_by_endpoint(&test.store, &[EndpointKey(8)], second(9), 9)
                .await
                .unwrap();
            assert_eq!(others, HashMap::new());
        }
    }

    #[tokio::test]
    async fn each_endpoint_has_its_own_next_and_as_many_as_the_others() {
        for test in stores().await {
            let one = ID;
            let other = EndpointKey::for_added(1);
            filled_queue(&test, (OWNER, one), &["A", "B", "A", "C"]).await;
            filled_queue(&test, (TaxpayerId(8), other), &["A", "A", "B"]).await;
            let both = [one, other, EndpointKey(9)];
            let found = load_due_by_endpoint(&test.store, &both, second(9), 2)
                .await
                .unwrap();
            let next = |id| {
                found[&id]
                    .iter()
                    .map(|(delivery, _)| delivery.sequence)
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                (next(one), next(other), found.len()),
                (vec![1, 2], vec![1, 3], 2)
            );
        }
    }

    #[tokio::test]
    async fn due_deliveries_are_found_by_index_however_many_wait() {
        for test in stores().await {
            let irns: Vec<_> = (0..600)
                .map(|number| format!("IRN{}", number / 10))
                .collect();
            queue(&test, &irns.iter().map(String::as_str).collect::<Vec<_>>()).await;
            let backend = test.store.backend();
            let by_index = match backend {
                DbBackend::Postgres => "using deliveries_first",
                _ => "deliveries_first (taxpayer_id=? AND next_attempt_at<?)",
            };
            let sql = DUE_DELIVERIES.get(backend);
            let values: [Value; 3] = [json(&[ID]).into(), i64::MAX.into(), 32_i64.into()];
            let steps = query_plan(&test.store, sql, values).await;
            let is_found = steps.iter().any(|step| step.contains(by_index));
            assert!(
                is_found && !steps.iter().any(|step| step.contains("Filter")),
                "{steps:#?}"
            );
        }
    }

    #[tokio::test]
    async fn the_next_moment_is_that_of_the_first_of_an_irn() {
        for test in stores().await {
            queue(&test, &["A", "B"]).await;
            let tx = test.store.begin().await.unwrap();
            let due = next_due_by_endpoint(&tx, &[ID, EndpointKey(8)])
                .await
                .unwrap();
            assert_eq!(due, HashMap::from([(ID, second(1))]));
            assert_eq!(
                has_replay_by_active_endpoint(&tx, &[ID]).await.unwrap(),
                HashMap::new(),
                "no endpoint"
            );
            make_due_now(&tx, ID, second(0)).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(next(&test, 0, 9).await, [1, 2]);
        }
    }

    #[tokio::test]
    async fn a_delivery_waits_as_long_as_was_meant_and_is_moved_once() {
        /// How far the clock is set back.
        const SET_BACK: Duration = Duration::from_mins(10);
        for test in stores().await {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let later = |seconds: u64| now + Duration::from_secs(seconds);
            let delivery = |sequence: i64, next: Timestamp| Delivery {
                id: clock::new_id(),
                taxpayer_id: OWNER,
                endpoint: ID,
                event_id: clock::new_id(),
                sequence,
                order_key: sequence.to_string(),
                state: DeliveryState::Pending,
                attempts: 1,
                attempts_before: 0,
                next_attempt_at: Some(next),
                crash_history: CrashHistory::default(),
            };
            let tx = test.store.begin().await.unwrap();
            let kind = EventKind::InvoiceCreated;
            deliveries::add(&tx, &[(delivery(1, later(605)), kind)], now + SET_BACK)
                .await
                .unwrap();
            deliveries::add(&tx, &[(delivery(2, later(300)), kind)], now)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            for moved in [1, 0] {
                assert_eq!(
                    restore_delays_after_clock_set_back(&test.store, now)
                        .await
                        .unwrap(),
                    moved
                );
            }
            let tx = test.store.begin().await.unwrap();
            let due = next_due_by_endpoint(&tx, &[ID]).await.unwrap();
            assert_eq!(due[&ID], later(5), "5 s was meant");
        }
    }
}
