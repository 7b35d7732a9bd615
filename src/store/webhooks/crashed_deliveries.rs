//! Crash counts of deliveries. After a crash of a process, this adds one to the crash count of each delivery that was
//! or may have been in flight, and an entry to its log of attempts. The ids of deliveries that were in flight at an
//! earlier crash are recorded in the lane before an attempt begins. For other deliveries it is not known which of them
//! were in flight, so the crash is counted for the first due ones.

use std::collections::BTreeMap;

use database::column::RowRef;
use database::{StoreError, Transaction};
use jiff::Timestamp;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::domain::events::delivery::{Delivery, DeliveryAttempt, DeliveryState, PhaseDurations};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::crash::{CRASHES_MAX, CrashHistory};
use crate::domain::kernel::ids::EndpointKey;
use crate::store::Store;
use crate::store::lanes::{self, LaneKind, LanesToWake};
use crate::store::operations::audit;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::delivery_heads;
use crate::store::webhooks::delivery_row::{Column, Entity, Model};

/// The failure classes in the log of attempts.
const FAILURE_INTERRUPTED: &str = "interrupted";
const FAILURE_QUARANTINED: &str = "quarantined";

const INTERRUPTED_ERROR: &str =
    "the process ended while this attempt was under way; the next one follows";
const MAYBE_INTERRUPTED_ERROR: &str =
    "the process ended while this attempt was, or may have been, under way; the next one follows";

/// An endpoint whose lane was held by a process that crashed.
#[derive(Debug)]
pub struct InterruptedEndpoint {
    pub key: EndpointKey,
    /// The ids of the deliveries that were recorded in the lane before their attempts began.
    pub recorded: Vec<String>,
    /// The maximum number of other deliveries that may have been in flight. The crash is counted for so many of those
    /// that were due.
    pub others_max: usize,
}

/// A quarantined delivery with the kind of its event.
pub type QuarantinedDelivery = (Delivery, EventKind);

/// Counts a process crash for the deliveries of these endpoints that were or may have been in flight. Returns those
/// that this crash quarantines. The caller must hold the endpoints' lanes.
pub async fn count_crash(
    tx: &Transaction,
    endpoints: &[InterruptedEndpoint],
    now: Timestamp,
) -> Result<Vec<QuarantinedDelivery>, StoreError> {
    let mut outcomes = Vec::new();
    for endpoint in endpoints {
        let recorded = load_deliveries(tx, select_recorded_in_flight(endpoint)).await?;
        // While a delivery runs alone, no other delivery of the endpoint is in flight.
        let was_alone = recorded
            .iter()
            .any(|(delivery, _)| delivery.must_run_alone());
        let others = if was_alone {
            Vec::new()
        } else {
            load_deliveries(tx, select_first_due(endpoint, now)).await?
        };
        outcomes.extend(
            recorded
                .into_iter()
                .map(|one| interrupted_attempt(one, INTERRUPTED_ERROR, now)),
        );
        outcomes.extend(
            others
                .into_iter()
                .map(|one| interrupted_attempt(one, MAYBE_INTERRUPTED_ERROR, now)),
        );
    }
    deliveries::record_attempts(tx, &outcomes, now).await?;
    exclude_from_retry_schedule(tx, outcomes.iter().map(|(delivery, ..)| delivery)).await?;
    let dead = outcomes
        .into_iter()
        .filter(|(delivery, ..)| delivery.state == DeliveryState::Dead);
    Ok(dead.map(|(delivery, kind, _)| (delivery, kind)).collect())
}

fn pending_condition(endpoint: EndpointKey) -> Condition {
    Condition::all()
        .add(Column::EndpointKey.eq(endpoint.0))
        .add(Expr::cust("state = 'pending'"))
}

fn select_recorded_in_flight(endpoint: &InterruptedEndpoint) -> sea_orm::Select<Entity> {
    let ids = endpoint.recorded.iter().map(String::as_str);
    Entity::find()
        .filter(pending_condition(endpoint.key))
        .filter(Column::Id.is_in(ids))
}

/// Selects the longest due deliveries that may be attempted (chain heads, see `delivery_heads`), have no crash count
/// yet, and are not recorded in the lane.
fn select_first_due(endpoint: &InterruptedEndpoint, now: Timestamp) -> sea_orm::Select<Entity> {
    Entity::find()
        .filter(pending_condition(endpoint.key))
        .filter(Expr::cust("is_first"))
        .filter(Column::Crashes.eq(0))
        .filter(Column::Id.is_not_in(endpoint.recorded.iter().map(String::as_str)))
        .filter(Column::NextAttemptAt.lte(now.as_microsecond()))
        .order_by_asc(Column::NextAttemptAt)
        .order_by_asc(Column::Sequence)
        .limit(u64::try_from(endpoint.others_max).unwrap_or(u64::MAX))
}

async fn load_deliveries(
    tx: &Transaction,
    selection: sea_orm::Select<Entity>,
) -> Result<Vec<(Delivery, EventKind)>, StoreError> {
    let rows = selection.all(tx).await?;
    rows.into_iter()
        .map(|row| {
            let kind = RowRef {
                table: "deliveries",
                id: row.id.clone(),
            }
            .parse(&row.kind)?;
            Ok((Delivery::try_from(row)?, kind))
        })
        .collect()
}

/// Returns the delivery after a crash during an attempt, with the log entry of that attempt, whose duration and
/// response are not known. The due time of the delivery stays, unless this crash quarantines it.
fn interrupted_attempt(
    pending: (Delivery, EventKind),
    words: &'static str,
    now: Timestamp,
) -> (Delivery, EventKind, DeliveryAttempt) {
    let (before, kind) = pending;
    let crash_history = before.crash_history.after_crash();
    let mut attempt = DeliveryAttempt {
        at: now,
        status: None,
        failure: Some(FAILURE_INTERRUPTED.to_owned()),
        duration_ms: 0,
        phases: PhaseDurations::default(),
        response: words.to_owned(),
        headers: None,
    };
    let mut delivery = Delivery {
        attempts: before.attempts + 1,
        crash_history,
        ..before
    };
    if crash_history.is_quarantined() {
        delivery.state = DeliveryState::Dead;
        delivery.next_attempt_at = None;
        attempt.failure = Some(FAILURE_QUARANTINED.to_owned());
        crash_history
            .quarantine_message()
            .clone_into(&mut attempt.response);
    }
    (delivery, kind, attempt)
}

/// Leaves interrupted attempts out of the retry schedules, because a crash of this service is not the receiver's fault.
async fn exclude_from_retry_schedule<'a>(
    tx: &Transaction,
    deliveries: impl Iterator<Item = &'a Delivery>,
) -> Result<(), StoreError> {
    let mut by_endpoint: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for delivery in deliveries.filter(|delivery| delivery.state == DeliveryState::Pending) {
        by_endpoint
            .entry(delivery.endpoint.0)
            .or_default()
            .push(delivery.id.to_string());
    }
    for (endpoint, ids) in by_endpoint {
        Entity::update_many()
            .col_expr(
                Column::AttemptsBefore,
                Expr::col(Column::AttemptsBefore).add(1),
            )
            .filter(Column::EndpointKey.eq(endpoint))
            .filter(Column::Id.is_in(ids))
            .exec(tx)
            .await?;
    }
    Ok(())
}

/// Returns the crash count of a delivery after a replay. It is low enough for another attempt, but the next crash
/// quarantines the delivery again.
pub(crate) fn crashes_after_replay() -> Expr {
    let highest = CrashHistory {
        crashes: u32::MAX,
        ..CrashHistory::default()
    };
    let most = i32::try_from(highest.release().crashes).unwrap_or(0);
    Expr::case(Expr::col(Column::Crashes).gt(most), most)
        .finally(Expr::col(Column::Crashes))
        .into()
}

/// The condition of dead letters in quarantine; only crashes lead there. The partial index `deliveries_quarantined` has
/// it, word for word.
pub(in crate::store) const QUARANTINED_CONDITION: &str = "state = 'dead' AND crashes >= 3";
const _: () = assert!(
    CRASHES_MAX == 3,
    "QUARANTINED_CONDITION and the migration say so"
);
/// The condition, in addition to `QUARANTINED_CONDITION`, that the quarantine of a dead letter can be lifted: it was
/// never lifted.
const LIFTABLE_CONDITION: &str = "NOT is_lifted";

/// Takes a delivery out of the quarantine and records this in the audit. It is then an ordinary dead letter. Returns
/// the delivery as it was before; `None` if no delivery with this id is in quarantine.
pub async fn release_to_dead_letters(
    store: &Store,
    id: uuid::Uuid,
    by: &OperatorRequest,
    now: Timestamp,
) -> Result<Option<QuarantinedDelivery>, StoreError> {
    let tx = store.begin().await?;
    let quarantined = || {
        Condition::all()
            .add(Column::Id.eq(id.to_string()))
            .add(Expr::cust(QUARANTINED_CONDITION))
    };
    let Some(row) = Entity::find().filter(quarantined()).one(&tx).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    let kind = RowRef {
        table: "deliveries",
        id: row.id.clone(),
    }
    .parse(&row.kind)?;
    let delivery = Delivery::try_from(row)?;
    let released = Entity::update_many()
        .col_expr(Column::Crashes, Expr::value(0))
        .filter(Column::EndpointKey.eq(delivery.endpoint.0))
        .filter(quarantined())
        .exec(&tx)
        .await?;
    if released.rows_affected == 0 {
        tx.rollback().await?;
        return Ok(None);
    }
    let entry = AuditEntry::for_operator_request(by, AuditAction::DropDelivery, &id, now);
    audit::append(&tx, &[entry.for_taxpayer(delivery.taxpayer_id)]).await?;
    tx.commit().await?;
    Ok(Some((delivery, kind)))
}

/// Lifts the quarantine of up to `limit` deliveries that were quarantined before `since`. They are due at once, and
/// their attempts run alone. Returns the number of these deliveries.
pub async fn lift_quarantine(
    store: &Store,
    since: Timestamp,
    limit: u64,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let found = Entity::find()
        .filter(Expr::cust(QUARANTINED_CONDITION))
        .filter(Expr::cust(LIFTABLE_CONDITION))
        .filter(Column::UpdatedAt.lte(since.as_microsecond()))
        .order_by_asc(Column::UpdatedAt)
        .limit(limit)
        .all(store.reader())
        .await?;
    let mut by_endpoint: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for row in found {
        by_endpoint
            .entry(row.endpoint_key)
            .or_default()
            .push(row.id);
    }
    let mut lifted = 0;
    for (endpoint, ids) in by_endpoint {
        lifted += lift_quarantine_for_endpoint(store, EndpointKey(endpoint), &ids, now).await?;
    }
    Ok(lifted)
}

async fn lift_quarantine_for_endpoint(
    store: &Store,
    endpoint: EndpointKey,
    ids: &[String],
    now: Timestamp,
) -> Result<usize, StoreError> {
    let tx = store.begin().await?;
    // This locks the lane of the endpoint, because pending deliveries are written only under that lock.
    lanes::wake(
        &tx,
        LaneKind::Endpoint,
        &[endpoint.to_string()],
        LanesToWake::NotParked,
    )
    .await?;
    // Since `lift_quarantine` read them, a replay may have taken some of these deliveries out of the quarantine.
    let rows: Vec<Model> = Entity::find()
        .filter(Column::EndpointKey.eq(endpoint.0))
        .filter(Column::Id.is_in(ids.iter().map(String::as_str)))
        .filter(Expr::cust(QUARANTINED_CONDITION))
        .filter(Expr::cust(LIFTABLE_CONDITION))
        .all(&tx)
        .await?;
    Entity::update_many()
        .col_expr(Column::State, Expr::value(DeliveryState::Pending.as_str()))
        .col_expr(Column::AttemptsBefore, Expr::col(Column::Attempts))
        .col_expr(Column::NextAttemptAt, Expr::value(now.as_microsecond()))
        .col_expr(Column::UpdatedAt, Expr::value(now.as_microsecond()))
        .col_expr(Column::Crashes, crashes_after_replay())
        .col_expr(Column::IsLifted, Expr::value(true))
        .filter(Column::EndpointKey.eq(endpoint.0))
        .filter(Column::Id.is_in(rows.iter().map(|row| row.id.as_str())))
        .exec(&tx)
        .await?;
    let keys: Vec<_> = rows.iter().map(|row| row.order_key.as_str()).collect();
    delivery_heads::recompute_heads(&tx, endpoint, &keys).await?;
    tx.commit().await?;
    Ok(rows.len())
}

#[cfg(test)]
mod tests {
    use timing::clock;

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::store::testing::{TestStore, query_plan, stores};
    use crate::store::webhooks::attempt_row;

    const ID: EndpointKey = EndpointKey(7);

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn delivery(sequence: i64, order_key: &str) -> (Delivery, EventKind) {
        let delivery = Delivery {
            id: clock::new_id(),
            taxpayer_id: TaxpayerId(7),
            endpoint: ID,
            event_id: clock::new_id(),
            sequence,
            order_key: order_key.to_owned(),
            state: DeliveryState::Pending,
            attempts: 0,
            attempts_before: 0,
            next_attempt_at: Some(second(sequence)),
            crash_history: CrashHistory::default(),
        };
        (delivery, EventKind::InvoiceCreated)
    }

    /// Counts a crash at second 9. Returns the sequences of the quarantined deliveries.
    async fn crash(
        test: &TestStore,
        recorded: &[&(Delivery, EventKind)],
        others_max: usize,
    ) -> Vec<i64> {
        let recorded = recorded
            .iter()
            .map(|(delivery, _)| delivery.id.to_string())
            .collect();
        let endpoint = InterruptedEndpoint {
            key: ID,
            recorded,
            others_max,
        };
        let tx = test.store.begin().await.unwrap();
        let dead = count_crash(&tx, &[endpoint], second(9)).await.unwrap();
        tx.commit().await.unwrap();
        dead.into_iter()
            .map(|(delivery, _)| delivery.sequence)
            .collect()
    }

    async fn add(test: &TestStore, all: &[(Delivery, EventKind)]) {
        let tx = test.store.begin().await.unwrap();
        deliveries::add(&tx, all, second(0)).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn rows(test: &TestStore) -> Vec<Model> {
        Entity::find()
            .order_by_asc(Column::Sequence)
            .all(test.store.reader())
            .await
            .unwrap()
    }

    /// Returns the crash count of each delivery and whether the delivery is pending, ordered by sequence.
    async fn counts(test: &TestStore) -> Vec<(i32, bool)> {
        rows(test)
            .await
            .into_iter()
            .map(|row| (row.crashes, row.state == "pending"))
            .collect()
    }

    /// Returns the failures in the log of a delivery.
    async fn failures(test: &TestStore, delivery: &Delivery) -> Vec<String> {
        let log = attempt_row::Entity::find()
            .filter(attempt_row::Column::DeliveryId.eq(delivery.id.to_string()))
            .order_by_asc(attempt_row::Column::Attempt);
        let rows = log.all(test.store.reader()).await.unwrap();
        rows.into_iter().filter_map(|row| row.failure).collect()
    }

    #[tokio::test]
    async fn deliveries_that_may_have_been_in_flight_are_counted_and_recorded_ones_exactly() {
        for test in stores().await {
            let all = [
                delivery(1, "A"),
                delivery(2, "A"),
                delivery(3, "B"),
                delivery(4, "C"),
                delivery(50, "D"),
            ];
            add(&test, &all).await;
            let waits = |counts: [i32; 5]| counts.map(|count| (count, true)).to_vec();
            assert_eq!(crash(&test, &[], 2).await, [] as [i64; 0]);
            assert_eq!(
                counts(&test).await,
                waits([1, 0, 1, 0, 0]),
                "the heads, as many as may be in flight"
            );
            assert_eq!(crash(&test, &[&all[0]], 9).await, [] as [i64; 0]);
            assert_eq!(
                counts(&test).await,
                waits([2, 0, 1, 1, 0]),
                "the third was not recorded, so it waited"
            );
            assert_eq!(crash(&test, &[&all[0]], 9).await, [1], "it went alone");
            let mut expected = waits([3, 0, 1, 1, 0]);
            expected[0].1 = false;
            assert_eq!(
                counts(&test).await,
                expected,
                "it alone is counted, and it waits no more"
            );
            assert_eq!(
                crash(&test, &[&all[0]], 0).await,
                [] as [i64; 0],
                "it had ended before"
            );
            assert!(rows(&test).await[1].is_first, "the next of its IRN goes on");
        }
    }

    #[tokio::test]
    async fn a_crash_is_counted_once_for_a_recorded_delivery_that_was_also_due() {
        for test in stores().await {
            let all = [delivery(1, "A"), delivery(3, "B")];
            add(&test, &all).await;
            assert_eq!(crash(&test, &[&all[0]], 9).await, [] as [i64; 0]);
            assert_eq!(counts(&test).await, [(1, true), (1, true)]);
        }
    }

    #[tokio::test]
    async fn an_interrupted_attempt_is_in_the_log_and_does_not_use_up_the_schedule() {
        for test in stores().await {
            let all = [delivery(1, "A")];
            add(&test, &all).await;
            crash(&test, &[], 2).await;
            crash(&test, &[&all[0]], 2).await;
            let row = rows(&test).await.remove(0);
            assert_eq!(
                (row.attempts, row.attempts_before, row.next_attempt_at),
                (2, 2, Some(1_000_000))
            );
            crash(&test, &[&all[0]], 2).await;
            let log = failures(&test, &all[0].0).await;
            assert_eq!(
                log,
                [
                    FAILURE_INTERRUPTED,
                    FAILURE_INTERRUPTED,
                    FAILURE_QUARANTINED
                ]
            );
        }
    }

    #[tokio::test]
    async fn a_quarantine_is_lifted_once_when_it_is_old_enough() {
        for test in stores().await {
            let all = [delivery(1, "A"), delivery(2, "A")];
            add(&test, &all).await;
            for _ in 0..3 {
                crash(&test, &[&all[0]], 0).await;
            }
            assert_eq!(counts(&test).await, [(3, false), (0, true)]);
            let lift = async |since| {
                lift_quarantine(&test.store, second(since), 9, second(700))
                    .await
                    .unwrap()
            };
            assert_eq!(lift(8).await, 0, "it was quarantined later");
            assert_eq!(lift(9).await, 1);
            let lifted = rows(&test).await;
            assert_eq!(
                (lifted[0].crashes, lifted[0].is_lifted, lifted[0].is_first),
                (2, true, true)
            );
            assert!(!lifted[1].is_first, "the earlier one of the IRN goes first");
            assert_eq!(
                crash(&test, &[&all[0]], 9).await,
                [1],
                "its next crash quarantines it again"
            );
            assert_eq!(lift(999).await, 0, "and then only a replay releases it");
        }
    }

    #[tokio::test]
    async fn what_can_be_lifted_is_found_by_an_index_of_its_own() {
        for test in stores().await {
            let sql = format!(
                "SELECT id FROM deliveries WHERE {QUARANTINED_CONDITION} AND {LIFTABLE_CONDITION} \
                 AND updated_at <= 9 ORDER BY updated_at"
            );
            let steps = query_plan(&test.store, &sql, []).await;
            assert!(
                steps
                    .iter()
                    .any(|step| step.contains("deliveries_quarantined")),
                "{steps:#?}"
            );
        }
    }
}
