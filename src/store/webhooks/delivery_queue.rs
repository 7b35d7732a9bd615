//! The queue of pending deliveries. Only chain heads (see `delivery_heads`) are loaded, which keeps the order of the
//! events of each IRN.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use database::column::{RowRef, json, select_list};
use database::sql::{AliasedTable, FirstRows, Join, SqlOnce, dialect};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, IdenStatic, Iterable, QueryFilter,
    QueryResult, QuerySelect, Statement, Value,
};

use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::Event;
use crate::domain::kernel::ids::EndpointKey;
use crate::store::Store;
use crate::store::events::event_row;
use crate::store::webhooks::delivery_row;

/// The data of an event of more bytes than this is loaded separately, within `LARGE_EVENTS_BYTES_MAX`.
const SMALL_EVENT_BYTES_MAX: i64 = 64 * 1_024;

/// The maximum total size of the large events that are loaded for one endpoint, in bytes. At least one is loaded.
/// Without this limit, the deliveries of large invoices to a few endpoints could take all memory.
const LARGE_EVENTS_BYTES_MAX: i64 = 8 * 1_024 * 1_024;

/// Selects the due deliveries of each endpoint through an index, without reading deliveries that are not due. The data
/// of a large event is left empty; the event is recognised by its size, which is selected, too.
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
        "SELECT {}, {}, CAST(octet_length(e.data) AS BIGINT) AS data_bytes FROM {} AS given {due} \
         LEFT JOIN events AS e ON e.taxpayer_id = COALESCE(d.owner_id, d.taxpayer_id) AND e.sequence = d.sequence",
        select_list::<delivery_row::Column>("d"),
        event_columns(),
        dialect.json_numbers("$1"),
    )
});

fn event_columns() -> String {
    let columns = event_row::Column::iter().map(|column| match column {
        event_row::Column::Data => format!(
            "CASE WHEN octet_length(e.data) > {SMALL_EVENT_BYTES_MAX} THEN '' ELSE e.data END AS e_data"
        ),
        column => format!("e.{name} AS e_{name}", name = column.as_str()),
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// A due delivery and its event.
struct DueDelivery {
    delivery: Delivery,
    /// If the event is large, its data is empty until `load_large_events` has loaded it.
    event: Event,
    data_bytes: i64,
}

impl DueDelivery {
    fn is_large(&self) -> bool {
        self.data_bytes > SMALL_EVENT_BYTES_MAX
    }
}

/// Loads up to `limit` due chain heads of each endpoint with their events, the longest due first. Of large events, it
/// loads only as many as `LARGE_EVENTS_BYTES_MAX` allows; the others follow when these are delivered.
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
    let mut found: HashMap<EndpointKey, Vec<DueDelivery>> = HashMap::new();
    for row in store.reader().query_all_raw(statement).await? {
        let due = to_due_delivery(&row)?;
        found.entry(due.delivery.endpoint).or_default().push(due);
    }
    for next in found.values_mut() {
        next.sort_unstable_by_key(|due| (due.delivery.next_attempt_at, due.delivery.sequence));
        drop_beyond_memory_limit(next);
    }
    load_large_events(store, &mut found).await?;
    let found = found.into_iter().map(|(endpoint, next)| {
        let next = next.into_iter().map(|due| (due.delivery, due.event));
        (endpoint, next.collect::<Vec<_>>())
    });
    Ok(found.collect())
}

fn to_due_delivery(row: &QueryResult) -> Result<DueDelivery, StoreError> {
    let delivery = Delivery::try_from(delivery_row::Model::from_query_result(row, "d_")?)?;
    let Some(event) = event_row::Model::from_query_result_optional(row, "e_")? else {
        return Err(missing_event_error(&delivery));
    };
    let data_bytes: Option<i64> = row.try_get("", "data_bytes")?;
    Ok(DueDelivery {
        delivery,
        event: Event::try_from(event)?,
        data_bytes: data_bytes.unwrap_or_default(),
    })
}

fn missing_event_error(delivery: &Delivery) -> StoreError {
    StoreError::Corrupt {
        table: "deliveries",
        id: delivery.id.to_string(),
        reason: format!("event {} is not in the log", delivery.sequence),
    }
}

/// Drops the deliveries of large events that exceed `LARGE_EVENTS_BYTES_MAX` together with those before them. The first
/// one stays whatever its size.
fn drop_beyond_memory_limit(next: &mut Vec<DueDelivery>) {
    let mut bytes = 0_i64;
    next.retain(|due| {
        if !due.is_large() {
            return true;
        }
        let is_first = bytes == 0;
        bytes = bytes.saturating_add(due.data_bytes);
        is_first || bytes <= LARGE_EVENTS_BYTES_MAX
    });
}

/// Loads the data of the large events.
async fn load_large_events(
    store: &Store,
    found: &mut HashMap<EndpointKey, Vec<DueDelivery>>,
) -> Result<(), StoreError> {
    let mut wanted: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for due in found.values().flatten().filter(|due| due.is_large()) {
        let owner = due.event.taxpayer_id.0;
        wanted.entry(owner).or_default().insert(due.event.sequence);
    }
    for (owner, sequences) in wanted {
        let rows: Vec<(i64, String)> = event_row::Entity::find()
            .select_only()
            .columns([event_row::Column::Sequence, event_row::Column::Data])
            .filter(event_row::Column::TaxpayerId.eq(owner))
            .filter(event_row::Column::Sequence.is_in(sequences))
            .into_tuple()
            .all(store.reader())
            .await?;
        let loaded: HashMap<i64, String> = rows.into_iter().collect();
        let owned = found.values_mut().flatten();
        for due in owned.filter(|due| due.is_large() && due.event.taxpayer_id.0 == owner) {
            let data = loaded.get(&due.event.sequence);
            let data = data.ok_or_else(|| missing_event_error(&due.delivery))?;
            due.event.data.clone_from(data);
        }
    }
    Ok(())
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

/// Returns those of these endpoints that are active, each with a flag: true if the endpoint has a running replay.
pub async fn replay_flags_by_active_endpoint(
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
        let lines: Vec<_> = irns
            .iter()
            .map(|irn| ((*irn).to_owned(), "{}".to_owned()))
            .collect();
        fill_queue(test, owned, &lines).await
    }

    /// Like `filled_queue`, for events of these IRNs with these data.
    async fn fill_queue(
        test: &TestStore,
        owned: (TaxpayerId, EndpointKey),
        lines: &[(String, String)],
    ) -> Vec<Delivery> {
        let (taxpayer_id, endpoint) = owned;
        let mut head = LogHead::default();
        let now = second(0);
        let event = |(irn, data): &(String, String)| {
            let kind = EventKind::InvoiceCreated;
            let occurrence = NewEvent {
                kind,
                irn: Some(irn.clone()),
                data: data.clone(),
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
        let log: Vec<_> = lines.iter().map(event).collect();
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
            let other = EndpointKey::for_added_endpoint(1);
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
    async fn large_events_are_loaded_within_a_budget_and_at_least_one_of_them() {
        const MIB: usize = 1_024 * 1_024;
        let cases: [(&[usize], &[i64]); 3] = [
            (&[2, 5 * MIB, 5 * MIB, 2], &[1, 2, 4]),
            (&[9 * MIB, 2, 5 * MIB], &[1, 2]),
            (&[MIB / 8, MIB / 8], &[1, 2]),
        ];
        for test in stores().await {
            for (taxpayer, (sizes, expected)) in (1..).map(TaxpayerId).zip(cases) {
                let lines = sizes.iter().enumerate();
                let lines = lines.map(|(number, size)| (format!("IRN{number}"), "x".repeat(*size)));
                let endpoint = EndpointKey::from(taxpayer);
                fill_queue(&test, (taxpayer, endpoint), &lines.collect::<Vec<_>>()).await;
                let mut found = load_due_by_endpoint(&test.store, &[endpoint], second(9), 9)
                    .await
                    .unwrap();
                let next = found.remove(&endpoint).unwrap().into_iter();
                let next: Vec<_> = next
                    .map(|(_, event)| (event.sequence, event.data.len()))
                    .collect();
                let expected = expected.iter();
                let expected: Vec<_> = expected
                    .map(|one| (*one, sizes[usize::try_from(one - 1).unwrap()]))
                    .collect();
                assert_eq!(next, expected);
            }
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
                replay_flags_by_active_endpoint(&tx, &[ID]).await.unwrap(),
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
