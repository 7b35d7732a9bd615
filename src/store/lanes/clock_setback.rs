//! Repairs stored times after the clock was set back. Due times and leases that were computed from the old
//! clock lie too far in the future, so work would wait too long. All repairs are idempotent, and several
//! replicas may run them at once.

use std::time::Duration;

use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ConnectionTrait, Statement, Value};

use crate::store::db::column::RowRef;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::db::sql::{self, dialect};
use crate::store::lanes::{self, ABANDONED};

pub async fn database_now(store: &Store) -> Result<Timestamp, StoreError> {
    let backend = store.backend();
    let sql = format!("SELECT {} AS present", dialect(backend).clock());
    let row = store.reader().query_one_raw(Statement::from_string(backend, sql)).await?;
    let present = row.ok_or(StoreError::Stale)?.try_get("", "present")?;
    RowRef { table: "clock", id: "now" }.moment(present)
}

/// Makes all waiting lanes due now. This does no harm to a lane without work, because its next holder releases
/// it with a new due time. Returns the number of changed lanes.
pub async fn make_waiting_lanes_due(store: &Store) -> Result<u64, StoreError> {
    let now = sql::now(store.backend());
    let statement = Query::update()
        .table("lanes")
        .value("next_due_at", now.clone())
        .and_where(Expr::col("next_due_at").gt(now))
        .to_owned();
    let tx = store.begin().await?;
    let changed = tx.execute(&statement).await?.rows_affected();
    tx.commit().await?;
    Ok(changed)
}

/// Expires the leases that end more than `longest` from now. A lease that was taken or renewed after the clock
/// was set back ends earlier, so a live holder keeps its lease. Returns the number of expired leases.
pub async fn expire_leases_beyond(store: &Store, longest: Duration) -> Result<u64, StoreError> {
    let latest = lanes::later(&sql::now(store.backend()), longest);
    let statement = Query::update()
        .table("lanes")
        .value("lease_until", ABANDONED)
        .and_where(Expr::col("lease_until").gt(latest))
        .to_owned();
    let tx = store.begin().await?;
    let changed = tx.execute(&statement).await?.rows_affected();
    tx.commit().await?;
    Ok(changed)
}

/// Shortens the wait of deliveries that were scheduled before the clock was set back, so that they wait as long
/// from `now` as intended. Their `updated_at` in the future identifies these deliveries. Returns the number of
/// changed deliveries.
pub async fn restore_delivery_delays(store: &Store, now: Timestamp) -> Result<u64, StoreError> {
    let sql = "UPDATE deliveries SET next_attempt_at = next_attempt_at - (updated_at - $1), updated_at = $1 \
        WHERE state = 'pending' AND updated_at > $1";
    let values: [Value; 1] = [now.as_microsecond().into()];
    let tx = store.begin().await?;
    let changed = tx.execute_raw(Statement::from_sql_and_values(store.backend(), sql, values)).await?;
    tx.commit().await?;
    Ok(changed.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::events::delivery::{Delivery, DeliveryState};
    use crate::domain::events::event::EventKind;
    use crate::domain::kernel::clock;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::store::lanes::LaneKind;
    use crate::store::lanes::abandoned;
    use crate::store::lanes::leases::{self, LaneRelease};
    use crate::store::testing::{claim_due, stores};
    use crate::store::webhooks::deliveries;
    use crate::store::webhooks::delivery_queue;

    const ID: TaxpayerId = TaxpayerId(7);
    const LEASE: Duration = Duration::from_secs(30);
    /// How far the clock is set back. Times written before the setback lie this far in the future.
    const SET_BACK: Duration = Duration::from_mins(10);

    #[tokio::test]
    async fn lanes_and_leases_from_before_are_free_again() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::make_due(&tx, LaneKind::Endpoint, &keys).await.unwrap();
            tx.commit().await.unwrap();
            let claim = async |lease| claim_due(store, LaneKind::Endpoint, "me", lease, 9).await.unwrap();
            let claimed = claim(SET_BACK + LEASE).await;
            let tx = store.begin().await.unwrap();
            leases::release(&tx, &[LaneRelease::new(&claimed[0], Some(SET_BACK))]).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(claim(LEASE).await, [], "one waits, and the holder of the other seems to live");
            assert_eq!(make_waiting_lanes_due(store).await.unwrap(), 1);
            let again = claim(LEASE).await;
            assert_eq!((again.len(), &again[0].key), (1, &claimed[0].key));
            assert_eq!(expire_leases_beyond(store, LEASE * 2).await.unwrap(), 1, "not what is held now");
            let tx = store.begin().await.unwrap();
            abandoned::schedule_at_start(&tx, LaneKind::Endpoint, "3").await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(claim(LEASE).await.len(), 2);
            let behind =
                database_now(store).await.unwrap().duration_since(database_now(store).await.unwrap());
            assert!(behind.is_negative() || behind.is_zero());
        }
    }

    #[tokio::test]
    async fn a_delivery_waits_as_long_as_was_meant_and_is_moved_once() {
        for test in stores().await {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let later = |seconds: u64| now + Duration::from_secs(seconds);
            let delivery = |sequence: i64, next: Timestamp| Delivery {
                id: clock::new_id(),
                taxpayer_id: ID,
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
            deliveries::add(&tx, &[(delivery(1, later(605)), kind)], now + SET_BACK).await.unwrap();
            deliveries::add(&tx, &[(delivery(2, later(300)), kind)], now).await.unwrap();
            tx.commit().await.unwrap();
            for moved in [1, 0] {
                assert_eq!(restore_delivery_delays(&test.store, now).await.unwrap(), moved);
            }
            let tx = test.store.begin().await.unwrap();
            let due = delivery_queue::next_due_owned_by_each(&tx, &[ID]).await.unwrap();
            assert_eq!(due[&ID], later(5), "5 s was meant");
        }
    }
}
