//! Crash counts of deliveries. After a process crash, every delivery that may have been in flight gets a count, and is
//! then attempted in isolation. A crash during an isolated attempt counts only for that delivery.

use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ConnectionTrait, EntityTrait, Statement, Value};

use crate::domain::events::delivery::{Delivery, DeliveryAttempt, DeliveryState, PhaseDurations};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::crash::{self, QUARANTINED};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::column::RowRef;
use crate::store::db::connections::Transaction;
use crate::store::db::error::StoreError;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::delivery_row::{Column, Entity};

/// Counts a process crash for the isolated delivery `alone`, or for the first `limit` due deliveries. Returns `alone`
/// if this crash quarantines it. The caller must hold the endpoint's lane.
pub async fn count_crash(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    alone: Option<&str>,
    limit: usize,
    now: Timestamp,
) -> Result<Option<(Delivery, EventKind)>, StoreError> {
    match alone {
        Some(id) => count_alone(tx, taxpayer, id, now).await,
        None => count_due(tx, taxpayer, limit, now).await.map(|()| None),
    }
}

async fn count_alone(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    id: &str,
    now: Timestamp,
) -> Result<Option<(Delivery, EventKind)>, StoreError> {
    let found = Entity::find_by_id((taxpayer.0, id.to_owned())).one(tx).await?;
    let Some(row) = found.filter(|row| row.state == DeliveryState::Pending.as_str()) else { return Ok(None) };
    let kind: EventKind = RowRef { table: "deliveries", id: row.id.clone() }.parse(&row.kind)?;
    let delivery = Delivery::try_from(row)?;
    let counted = "UPDATE deliveries SET crashes = crashes + 1 WHERE taxpayer_id = $1 AND id = $2";
    let values: [Value; 2] = [taxpayer.0.into(), id.into()];
    tx.execute_raw(Statement::from_sql_and_values(tx.get_database_backend(), counted, values)).await?;
    let crashes = delivery.crashes + 1;
    if !crash::is_quarantined(crashes) {
        return Ok(None);
    }
    let attempts = delivery.attempts + 1;
    let dead = Delivery { state: DeliveryState::Dead, attempts, next_attempt_at: None, crashes, ..delivery };
    deliveries::record(tx, &[(dead.clone(), kind, quarantined_attempt(now))], now).await?;
    Ok(Some((dead, kind)))
}

/// Creates the log entry of the attempt during which the process crashed. Its duration and response are unknown.
fn quarantined_attempt(now: Timestamp) -> DeliveryAttempt {
    DeliveryAttempt {
        at: now,
        status: None,
        failure: Some("quarantined".to_owned()),
        duration_ms: 0,
        phases: PhaseDurations::default(),
        response: QUARANTINED.to_owned(),
    }
}

/// Counts a crash for the first due deliveries, but not for isolated ones, which were not in flight.
async fn count_due(
    tx: &Transaction,
    taxpayer: TaxpayerId,
    limit: usize,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE deliveries SET crashes = 1 WHERE taxpayer_id = $1 AND crashes = 0 AND id IN \
        (SELECT d.id FROM deliveries AS d WHERE d.taxpayer_id = $1 AND d.is_first AND d.next_attempt_at <= $2 \
        ORDER BY d.next_attempt_at, d.sequence LIMIT $3)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values: [Value; 3] = [taxpayer.0.into(), now.as_microsecond().into(), limit.into()];
    tx.execute_raw(Statement::from_sql_and_values(tx.get_database_backend(), sql, values)).await?;
    Ok(())
}

/// The crash count of a delivery after a replay: low enough for an attempt, and one more crash quarantines it again.
pub(crate) fn crashes_after_replay() -> Expr {
    let most = i32::try_from(crash::released(u32::MAX)).unwrap_or(0);
    Expr::case(Expr::col(Column::Crashes).gt(most), most).finally(Expr::col(Column::Crashes)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::clock;
    use crate::store::testing::{TestStore, stores};

    const ID: TaxpayerId = TaxpayerId(7);

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn delivery(sequence: i64, order_key: &str) -> (Delivery, EventKind) {
        let delivery = Delivery {
            id: clock::new_id(),
            taxpayer_id: ID,
            event_id: clock::new_id(),
            sequence,
            order_key: order_key.to_owned(),
            state: DeliveryState::Pending,
            attempts: 0,
            attempts_before: 0,
            next_attempt_at: Some(second(sequence)),
            crashes: 0,
        };
        (delivery, EventKind::InvoiceCreated)
    }

    async fn crash(test: &TestStore, alone: Option<&Delivery>, limit: usize, at: i64) -> Option<i64> {
        let tx = test.store.begin().await.unwrap();
        let alone = alone.map(|one| one.id.to_string());
        let dead = count_crash(&tx, ID, alone.as_deref(), limit, second(at)).await.unwrap();
        tx.commit().await.unwrap();
        dead.map(|(delivery, _)| delivery.sequence)
    }

    /// Returns the crash count of each delivery and whether the delivery is pending, ordered by sequence.
    async fn counts(test: &TestStore) -> Vec<(i32, bool)> {
        use sea_orm::QueryOrder;
        let rows = Entity::find().order_by_asc(Column::Sequence).all(test.store.reader()).await.unwrap();
        rows.into_iter().map(|row| (row.crashes, row.state == "pending")).collect()
    }

    #[tokio::test]
    async fn deliveries_that_may_have_been_in_flight_are_counted_once_and_an_isolated_one_is_quarantined() {
        for test in stores().await {
            let all =
                [delivery(1, "A"), delivery(2, "A"), delivery(3, "B"), delivery(4, "C"), delivery(50, "D")];
            let tx = test.store.begin().await.unwrap();
            deliveries::add(&tx, &all, second(0)).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(crash(&test, None, 2, 9).await, None);
            let waits = |counts: [i32; 5]| counts.map(|count| (count, true)).to_vec();
            assert_eq!(
                counts(&test).await,
                waits([1, 0, 1, 0, 0]),
                "the first of an IRN, as many as may be in flight"
            );
            assert_eq!(crash(&test, None, 9, 9).await, None);
            assert_eq!(
                counts(&test).await,
                waits([1, 0, 1, 1, 0]),
                "those counted before were not in flight"
            );
            assert_eq!(crash(&test, Some(&all[0].0), 9, 9).await, Some(1));
            let mut expected = waits([2, 0, 1, 1, 0]);
            expected[0].1 = false;
            assert_eq!(counts(&test).await, expected, "it alone, and it waits no more");
            assert_eq!(crash(&test, Some(&all[0].0), 9, 9).await, None, "it had ended before");
            let attempt =
                crate::store::webhooks::attempt_row::Entity::find().one(test.store.reader()).await.unwrap();
            let attempt = attempt.unwrap();
            assert_eq!((attempt.failure.as_deref(), attempt.attempt), (Some("quarantined"), 1));
            assert_eq!(attempt.response, QUARANTINED);
        }
    }
}
