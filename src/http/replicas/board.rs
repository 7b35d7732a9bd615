//! The state of all replicas, including this one, as this process last read it from the database.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync;

use crate::domain::breaker::BreakerOrder;
use crate::domain::replica::{Replica, ReplicaIdentity, ReplicaList};

/// The longest time between two reads of the list. After a longer gap, this process does not know what the other
/// replicas did in between.
const GAP_MAX: SignedDuration = SignedDuration::from_millis(2_500);

#[derive(Debug)]
pub struct ReplicaBoard {
    identity: ReplicaIdentity,
    started_at: Timestamp,
    last_list: Mutex<Arc<ReplicaList>>,
    clock_ahead_ms: AtomicI64,
    /// The last order about each operation that this process has obeyed.
    obeyed_orders: Mutex<HashMap<String, BreakerOrder>>,
    order_turn: sync::Mutex<()>,
}

impl ReplicaBoard {
    pub fn new(identity: ReplicaIdentity, started_at: Timestamp) -> Self {
        Self {
            identity,
            started_at,
            last_list: Mutex::default(),
            clock_ahead_ms: AtomicI64::new(0),
            obeyed_orders: Mutex::default(),
            order_turn: sync::Mutex::default(),
        }
    }

    pub(crate) fn identity(&self) -> &ReplicaIdentity {
        &self.identity
    }

    pub(crate) fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Returns the replicas as they were when the database last answered.
    pub(crate) fn last_list(&self) -> Arc<ReplicaList> {
        Arc::clone(&lock(&self.last_list))
    }

    pub(super) fn record_list(&self, read_at: Timestamp, replicas: Vec<Replica>) {
        let mut last = lock(&self.last_list);
        let gap = last.read_at.map(|earlier| read_at.duration_since(earlier));
        let is_gapless = gap.is_some_and(|gap| gap <= GAP_MAX && !gap.is_negative());
        let watched_since = last.watched_since.filter(|_| is_gapless);
        *last = Arc::new(ReplicaList {
            read_at: Some(read_at),
            watched_since: watched_since.or(Some(read_at)),
            replicas,
        });
    }

    pub(super) fn record_clock_difference(&self, ahead: SignedDuration) {
        let millis = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
        self.clock_ahead_ms.store(millis, Ordering::Relaxed);
    }

    pub(super) fn clock_ahead_ms(&self) -> i64 {
        self.clock_ahead_ms.load(Ordering::Relaxed)
    }

    /// Waits until nobody else reads the operators' orders. The caller keeps the turn until it has obeyed the orders:
    /// otherwise a slow reader could replace a newer state with an older one.
    pub(super) async fn wait_for_order_turn(&self) -> sync::MutexGuard<'_, ()> {
        self.order_turn.lock().await
    }

    /// Records that this process obeys an order. Returns false if it has obeyed this order before.
    pub(super) fn mark_order_obeyed(&self, order: &BreakerOrder) -> bool {
        let previous = lock(&self.obeyed_orders).insert(order.operation.clone(), order.clone());
        previous.is_none_or(|previous| previous.number != order.number)
    }

    /// Returns the time of the last order about an operation that this process has obeyed.
    pub(crate) fn last_order_at(&self, operation: &str) -> Option<Timestamp> {
        let obeyed = lock(&self.obeyed_orders);
        obeyed.get(operation).map(|order| order.ordered_at)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::breaker::BreakerOrderKind;

    fn board() -> ReplicaBoard {
        let identity = ReplicaIdentity {
            id: "1".into(),
            name: "a:1".into(),
        };
        ReplicaBoard::new(identity, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_reader_that_was_held_up_begins_to_watch_again() {
        let board = board();
        let at = |second| Timestamp::from_second(second).unwrap();
        for (read, watched_since) in [(10, 10), (11, 10), (13, 10), (16, 16), (17, 16), (5, 5)] {
            board.record_list(at(read), Vec::new());
            let list = board.last_list();
            assert_eq!(list.read_at, Some(at(read)));
            assert_eq!(list.watched_since, Some(at(watched_since)), "at {read}");
        }
    }

    #[test]
    fn an_order_is_new_only_once() {
        let board = board();
        let order = |operation: &str, number| BreakerOrder {
            operation: operation.into(),
            kind: BreakerOrderKind::Trip,
            number,
            ordered_at: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(number),
        };
        for (operation, number, is_new) in [
            ("sign", 1, true),
            ("sign", 1, false),
            ("health", 1, true),
            ("sign", 2, true),
        ] {
            let order = order(operation, number);
            assert_eq!(board.mark_order_obeyed(&order), is_new);
            assert_eq!(board.last_order_at(operation), Some(order.ordered_at));
        }
        assert_eq!(board.last_order_at("pull"), None);
    }
}
