//! Chain heads. The deliveries to one endpoint with the same order key (usually an IRN) form a chain. Only the earliest
//! pending delivery of a chain, its head, may be attempted. Heads are marked in a column, which makes them quick to
//! find. Every writer of pending deliveries must hold the endpoint's lane, because two concurrent writers could leave a
//! chain without a head.

use std::collections::BTreeSet;

use database::column::json;
use database::sql::{AliasedTable, Dialect, FirstRows, dialect};
use database::{StoreError, Transaction};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, ConnectionTrait, IdenStatic, Iterable, Statement, Value};

use crate::domain::events::delivery::{Delivery, DeliveryState};
use crate::domain::kernel::ids::EndpointKey;
use crate::store::webhooks::delivery_row::{Column, Entity};

/// Returns the SQL condition that a new delivery is a chain head: no stored delivery of its chain is pending, and it is
/// the first of its chain among the new deliveries (`is_first_of_added`).
pub(crate) fn is_new_head(delivery: &Delivery, is_first_of_added: bool) -> Expr {
    let waiting = Query::select()
        .expr(Expr::val(1))
        .from(Entity)
        .and_where(Column::EndpointKey.eq(delivery.endpoint.0))
        .and_where(Column::OrderKey.eq(delivery.order_key.as_str()))
        .and_where(Expr::cust("state = 'pending'"))
        .to_owned();
    Expr::value(is_first_of_added).and(Expr::exists(waiting).not())
}

/// Returns the SQL condition that a delivery is still a chain head after an attempt: it was the head before and is
/// still pending.
pub(crate) fn is_still_head() -> Expr {
    let is_waiting = Expr::col(("excluded", Column::State)).eq(DeliveryState::Pending.as_str());
    Expr::col((Entity, Column::IsFirst)).and(is_waiting)
}

/// Marks the new heads of these chains, after their previous heads were delivered or became dead letters.
pub(crate) async fn promote_next_heads<'a>(
    tx: &Transaction,
    chains: impl IntoIterator<Item = (EndpointKey, &'a str)>,
) -> Result<(), StoreError> {
    let chains: BTreeSet<_> = chains
        .into_iter()
        .map(|(endpoint, order_key)| (endpoint.0, order_key))
        .collect();
    if chains.is_empty() {
        return Ok(());
    }
    let backend = tx.get_database_backend();
    tx.execute_raw(Statement::from_sql_and_values(
        backend,
        promote_statement(dialect(backend)),
        [json(&chains).into()],
    ))
    .await?;
    Ok(())
}

/// Marks the heads of these chains again, after deliveries that may be earlier than the marked heads have become
/// pending.
pub(crate) async fn recompute_heads(
    tx: &Transaction,
    endpoint: EndpointKey,
    keys: &[&str],
) -> Result<(), StoreError> {
    let backend = tx.get_database_backend();
    let given = dialect(backend).json_text_rows("$2");
    let sql = format!(
        "UPDATE deliveries SET is_first = FALSE WHERE taxpayer_id = $1 AND is_first AND order_key IN ({given})"
    );
    let values: [Value; 2] = [endpoint.0.into(), json(&keys).into()];
    tx.execute_raw(Statement::from_sql_and_values(backend, sql, values))
        .await?;
    promote_next_heads(tx, keys.iter().map(|key| (endpoint, *key))).await
}

/// Builds the statement that marks the heads. Its parameter is a JSON list of pairs (endpoint key, order key). It is an
/// upsert, because that finds each head by an index; an update could scan all deliveries.
fn promote_statement(dialect: &dyn Dialect) -> String {
    let endpoint = "CAST(given.value ->> 0 AS BIGINT)";
    let head = dialect.lateral_first_rows(FirstRows {
        rows: AliasedTable {
            table: "deliveries",
            alias: "first",
        },
        owner_column: "taxpayer_id",
        owner: endpoint,
        inner: "waiting",
        selection: &format!(
            "waiting.taxpayer_id = {endpoint} AND waiting.state = 'pending' \
             AND waiting.order_key = given.value ->> 1 ORDER BY waiting.sequence LIMIT 1"
        ),
        sqlite_index: Some("deliveries_in_line"),
    });
    let found = format!("{} {head}", dialect.json_elements("$1", "given"));
    let columns: Vec<_> = Column::iter()
        .map(|column| column.as_str().to_owned())
        .collect();
    format!(
        "INSERT INTO deliveries ({}) SELECT first.{} FROM {found} WHERE NOT first.is_first \
         ON CONFLICT (taxpayer_id, id) DO UPDATE SET is_first = TRUE",
        columns.join(", "),
        columns.join(", first."),
    )
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use sea_orm::{EntityTrait, QueryFilter, QueryOrder};
    use timing::clock;

    use sea_orm::DbBackend;

    use super::*;
    use crate::domain::events::delivery::{DeliveryAttempt, PhaseDurations};
    use crate::domain::events::event::EventKind;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::store::testing::{TestStore, query_plan, stores};
    use crate::store::webhooks::deliveries;

    const ID: EndpointKey = EndpointKey(7);
    const KIND: EventKind = EventKind::InvoiceCreated;

    fn delivery(endpoint: EndpointKey, sequence: i64, order_key: &str) -> Delivery {
        Delivery {
            id: clock::new_id(),
            taxpayer_id: TaxpayerId(7),
            endpoint,
            event_id: clock::new_id(),
            sequence,
            order_key: order_key.to_owned(),
            state: DeliveryState::Pending,
            attempts: 0,
            attempts_before: 0,
            next_attempt_at: Some(Timestamp::UNIX_EPOCH),
            crash_history: CrashHistory::default(),
        }
    }

    async fn add(test: &TestStore, added: &[Delivery]) {
        let added: Vec<_> = added
            .iter()
            .map(|delivery| (delivery.clone(), KIND))
            .collect();
        let tx = test.store.begin().await.unwrap();
        deliveries::add(&tx, &added, Timestamp::UNIX_EPOCH)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    async fn record(test: &TestStore, attempted: &[(&Delivery, DeliveryState)]) {
        let outcome = |(delivery, state): &(&Delivery, DeliveryState)| {
            let attempts = delivery.attempts + 1;
            let attempt = DeliveryAttempt {
                at: Timestamp::UNIX_EPOCH,
                status: None,
                failure: None,
                duration_ms: 1,
                phases: PhaseDurations::default(),
                response: String::new(),
                headers: None,
            };
            (
                Delivery {
                    state: *state,
                    attempts,
                    ..(*delivery).clone()
                },
                KIND,
                attempt,
            )
        };
        let outcomes: Vec<_> = attempted.iter().map(outcome).collect();
        let tx = test.store.begin().await.unwrap();
        deliveries::record_attempts(&tx, &outcomes, Timestamp::UNIX_EPOCH)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns the sequences of the endpoint's chain heads.
    async fn first(test: &TestStore, endpoint: EndpointKey) -> Vec<i64> {
        let found = Entity::find()
            .filter(Column::EndpointKey.eq(endpoint.0))
            .filter(Column::IsFirst.eq(true))
            .order_by_asc(Column::Sequence);
        found
            .all(test.store.reader())
            .await
            .unwrap()
            .into_iter()
            .map(|row| row.sequence)
            .collect()
    }

    #[tokio::test]
    async fn the_first_that_waits_of_each_line_is_marked_as_they_come_and_end() {
        for test in stores().await {
            let all: Vec<_> = ["A", "A", "B"]
                .iter()
                .zip(1..)
                .map(|(key, number)| delivery(ID, number, key))
                .collect();
            add(&test, &all).await;
            let later = [delivery(ID, 4, "A"), delivery(ID, 5, "C")];
            add(&test, &later).await;
            let other = EndpointKey::for_added_endpoint(8);
            add(&test, &[delivery(other, 1, "A")]).await;
            assert_eq!(
                (first(&test, ID).await, first(&test, other).await),
                (vec![1, 3, 5], vec![1])
            );
            record(
                &test,
                &[
                    (&all[0], DeliveryState::Pending),
                    (&all[2], DeliveryState::Delivered),
                ],
            )
            .await;
            assert_eq!(
                first(&test, ID).await,
                [1, 5],
                "what waits for another attempt stays first"
            );
            let again = Delivery {
                attempts: 1,
                ..all[0].clone()
            };
            record(&test, &[(&again, DeliveryState::Dead)]).await;
            assert_eq!(
                first(&test, ID).await,
                [2, 5],
                "a dead letter holds back nothing"
            );
            record(&test, &[(&all[1], DeliveryState::Delivered)]).await;
            record(&test, &[(&later[0], DeliveryState::Delivered)]).await;
            assert_eq!(
                (first(&test, ID).await, first(&test, other).await),
                (vec![5], vec![1])
            );
        }
    }

    #[tokio::test]
    async fn a_replayed_delivery_goes_before_a_newer_one_even_if_that_is_in_flight() {
        for test in stores().await {
            let newer = delivery(ID, 2, "A");
            add(&test, std::slice::from_ref(&newer)).await;
            let older = delivery(ID, 1, "A");
            add(&test, std::slice::from_ref(&older)).await;
            let tx = test.store.begin().await.unwrap();
            recompute_heads(&tx, ID, &["A", "B", "A"]).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(first(&test, ID).await, [1]);
            record(&test, &[(&newer, DeliveryState::Pending)]).await;
            assert_eq!(first(&test, ID).await, [1]);
            record(&test, &[(&older, DeliveryState::Delivered)]).await;
            assert_eq!(first(&test, ID).await, [2]);
        }
    }

    #[tokio::test]
    async fn the_first_is_marked_by_index_however_many_deliveries_there_are() {
        for test in stores().await {
            let all: Vec<_> = (1..=600)
                .map(|number| delivery(ID, number, &format!("IRN{}", number / 10)))
                .collect();
            add(&test, &all).await;
            let backend = test.store.backend();
            let by_index = match backend {
                DbBackend::Postgres => "using deliveries_in_line",
                _ => "INDEX deliveries_in_line (taxpayer_id=? AND order_key=?)",
            };
            let sql = promote_statement(dialect(backend));
            let steps = query_plan(&test.store, &sql, ["[]".into()]).await;
            assert!(
                steps.iter().any(|step| step.contains(by_index)),
                "{steps:#?}"
            );
            let is_scan = |step: &String| step.contains("Seq Scan") || step.contains("SCAN first");
            assert!(!steps.iter().any(is_scan), "{steps:#?}");
        }
    }
}
