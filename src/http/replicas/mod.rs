//! The heartbeats of the replicas. Every second, each replica writes its state and figures to the database, reads those
//! of the other replicas, and obeys the operators' orders about breakers and taxpayers. Pages, responses and metrics
//! show the values that were read last, without a query.
//!
//! | Concept | File |
//! |---|---|
//! | the figures of this process, for its heartbeat | `figures` |
//! | the worst actors of a replica, and of all replicas | `actors` |
//! | the state of all replicas as last read | `board` |
//! | the pause of a taxpayer on all replicas | `taxpayer_pauses` |

pub(crate) mod actors;
pub(crate) mod board;
mod figures;
pub(crate) mod taxpayer_pauses;

use std::time::Duration;

use actix_web::web;
use authority_client::Operation;
use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use crate::domain::breaker::{
    BreakerFigures, BreakerOrder, BreakerOrderKind, MergedBreaker, merge_breakers,
};
use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::http::state::ApiState;
use crate::store::operations::{breaker_orders, replicas};

/// The interval at which a replica records a heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Records heartbeats until the process stops. The last heartbeat says that the process stops.
pub async fn record_heartbeats(state: web::Data<ApiState>) {
    let mut has_removed_predecessors = false;
    while !state.stopping.is_requested() {
        let result = exchange_with_replicas(&state, &mut has_removed_predecessors).await;
        if let Err(error) = result {
            // Not a warning: a database that does not answer is reported as an incident anyway.
            tracing::debug!(%error, "this replica could not record a heartbeat");
        }
        tokio::select! {
            () = sleep(HEARTBEAT_INTERVAL) => {}
            () = state.stopping.wait_for_stop() => {}
        }
    }
    if let Err(error) = record_heartbeat(&state).await {
        tracing::debug!(%error, "this replica could not say that it stops");
    }
}

/// Records a heartbeat, reads the heartbeats of the other replicas, and obeys new orders.
async fn exchange_with_replicas(
    state: &ApiState,
    has_removed_predecessors: &mut bool,
) -> Result<(), StoreError> {
    if !*has_removed_predecessors {
        remove_predecessors(state).await?;
        *has_removed_predecessors = true;
    }
    let now = record_heartbeat(state).await?;
    let replica_list = replicas::list(&state.store, now).await?;
    state.replicas.record_list(now, replica_list);
    taxpayer_pauses::load_pauses(state).await?;
    obey_orders(state).await
}

/// Removes the records of the processes that ran under this name before. Logs a warning if the last one did not stop in
/// order.
async fn remove_predecessors(state: &ApiState) -> Result<(), StoreError> {
    let identity = state.replicas.identity();
    if let Some(last_heartbeat) = replicas::remove_predecessors(&state.store, identity).await? {
        tracing::warn!(
            replica = identity.name,
            last_heartbeat = %last_heartbeat,
            "the process before this one did not stop in order; its work goes on here or elsewhere"
        );
    }
    Ok(())
}

/// Writes the heartbeat of this replica, and compares its clock with that of the database. Returns the time of the
/// database.
async fn record_heartbeat(state: &ApiState) -> Result<Timestamp, StoreError> {
    let figures = figures::gather_figures(state);
    let before = state.now();
    let now = replicas::record_heartbeat(&state.store, state.replicas.identity(), &figures).await?;
    let ahead = clock_ahead(before, now, state.now());
    state.replicas.record_clock_difference(ahead);
    Ok(now)
}

/// Returns how far this process's clock is ahead of the database's clock, which was read between `before` and `after`.
/// Returns zero if the difference is no longer than the read took.
fn clock_ahead(before: Timestamp, database: Timestamp, after: Timestamp) -> SignedDuration {
    if before > database {
        before.duration_since(database)
    } else {
        after.duration_since(database).min(SignedDuration::ZERO)
    }
}

/// Stores an operator's order for all replicas, and obeys it here at once. Returns false if the breaker was already as
/// ordered; the audit has no entry then.
pub(crate) async fn give_breaker_order(
    state: &ApiState,
    operation: Operation,
    kind: BreakerOrderKind,
    by: &OperatorRequest,
) -> Result<bool, StoreError> {
    let is_change = !is_order_in_effect(state, operation, kind).await?;
    let action = match kind {
        BreakerOrderKind::Trip => AuditAction::TripBreaker,
        BreakerOrderKind::Reset => AuditAction::ResetBreaker,
    };
    let now = state.now();
    let entry = AuditEntry::for_operator_request(by, action, &operation.name(), now);
    let entry = is_change.then_some(entry);
    breaker_orders::give_order(&state.store, operation.name(), kind, entry, now).await?;
    obey_orders(state).await.map(|()| is_change)
}

/// True if the breaker of an operation is already as this order wants it, on all replicas.
async fn is_order_in_effect(
    state: &ApiState,
    operation: Operation,
    kind: BreakerOrderKind,
) -> Result<bool, StoreError> {
    let orders = breaker_orders::list(&state.store).await?;
    let last = orders
        .into_iter()
        .find(|order| order.operation == operation.name());
    let is_tripped = last.is_some_and(|order| order.kind == BreakerOrderKind::Trip);
    Ok(match kind {
        BreakerOrderKind::Trip => is_tripped,
        BreakerOrderKind::Reset => {
            let breakers = shared_breakers(state);
            let own = breakers
                .iter()
                .find(|breaker| breaker.figures.operation == operation.name());
            !is_tripped && own.is_some_and(|breaker| breaker.held_on.is_empty())
        }
    })
}

/// Obeys the orders about breakers that this process has not obeyed yet.
async fn obey_orders(state: &ApiState) -> Result<(), StoreError> {
    let _turn = state.replicas.wait_for_order_turn().await;
    for order in breaker_orders::list(&state.store).await? {
        if state.replicas.mark_order_obeyed(&order) {
            obey_order(state, &order);
        }
    }
    Ok(())
}

fn obey_order(state: &ApiState, order: &BreakerOrder) {
    // A replica of another version may have stored an operation that this version does not know.
    let known = Operation::ALL
        .into_iter()
        .find(|operation| operation.name() == order.operation);
    let Some(operation) = known else {
        return;
    };
    match order.kind {
        BreakerOrderKind::Trip => state.authority.trip_breaker(operation),
        BreakerOrderKind::Reset => state.authority.reset_breaker(operation),
    }
}

/// Returns the breaker of an operation in this process.
pub(crate) fn local_breaker(state: &ApiState, operation: Operation) -> BreakerFigures {
    // The breakers are in the order of the operations.
    figures::breaker_figures(state).swap_remove(operation as usize)
}

/// Returns the breakers of all replicas together. The breakers of this process are current. Those of other replicas are
/// about a second old.
pub(crate) fn shared_breakers(state: &ApiState) -> Vec<MergedBreaker> {
    let own = figures::breaker_figures(state);
    let identity = state.replicas.identity();
    let list = state.replicas.last_list();
    let others = list
        .present_replicas()
        .filter(|replica| replica.identity.id != identity.id)
        .map(|replica| {
            (
                replica.identity.name.as_str(),
                replica.figures.breakers.as_slice(),
            )
        });
    let first = (identity.name.as_str(), own.as_slice());
    merge_breakers([first].into_iter().chain(others))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::time::timeout;

    use super::*;
    use crate::domain::taxpayer_pause::TaxpayerPause;
    use crate::http::testing::{TAXPAYER, start_app};
    use crate::store::operations::taxpayer_pauses as stored_pauses;

    #[actix_web::test]
    async fn orders_are_read_after_earlier_readers_have_obeyed_theirs() {
        let app = start_app().await;
        let state = &app.state;
        let by = OperatorRequest {
            operator_id: 1,
            reason: None,
        };
        let turn = state.replicas.wait_for_order_turn().await;
        let mut loading = pin!(taxpayer_pauses::load_pauses(state));
        let mut obeying = pin!(obey_orders(state));
        let moment = Duration::from_millis(100);
        assert!(timeout(moment, &mut loading).await.is_err());
        assert!(timeout(moment, &mut obeying).await.is_err());
        let pause = TaxpayerPause {
            taxpayer_id: TAXPAYER,
            since: state.now(),
            reason: None,
        };
        let action = AuditAction::PauseTaxpayer;
        let entry = AuditEntry::for_operator_request(&by, action, &TAXPAYER, state.now());
        stored_pauses::pause(&state.store, pause, entry)
            .await
            .unwrap();
        let operation = Operation::ALL[0].name();
        let kind = BreakerOrderKind::Trip;
        breaker_orders::give_order(&state.store, operation, kind, None, state.now())
            .await
            .unwrap();
        drop(turn);
        loading.await.unwrap();
        obeying.await.unwrap();
        let found = state.taxpayers.paused_taxpayers().find(TAXPAYER);
        assert!(found.is_some());
        assert!(state.replicas.last_order_at(operation).is_some());
    }

    #[test]
    fn a_clock_difference_that_a_delay_explains_counts_as_none() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ahead =
            |before, database, after| clock_ahead(at(before), at(database), at(after)).as_secs();
        assert_eq!(ahead(10, 10, 10), 0);
        assert_eq!(ahead(10, 12, 15), 0, "the write took its time");
        assert_eq!(ahead(20, 12, 25), 8);
        assert_eq!(ahead(3, 12, 5), -7);
    }
}
