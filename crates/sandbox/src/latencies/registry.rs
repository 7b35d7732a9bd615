//! The latencies in force: at most one for each operation, and one for all other operations.
//!
//! If a latency is replaced or cleared, the calls that are already waiting keep the old latency and its limit.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64, atomic::Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::request::{CheckedLatency, LatencyOrder};
use crate::faults::{FaultContext, draw_millionths};
use crate::route::Operation;

struct Latency {
    id: u64,
    order: LatencyOrder,
    checked: CheckedLatency,
    /// One permit for each concurrent call; `None` means no limit.
    slots: Option<Arc<Semaphore>>,
    counts: Arc<LatencyCounts>,
}

#[derive(Default)]
struct LatencyCounts {
    waiting: AtomicU64,
    waiting_max: AtomicU64,
    in_service: AtomicU64,
    served: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Latencies(Mutex<LatenciesInForce>);

#[derive(Default)]
struct LatenciesInForce {
    last_id: u64,
    latencies: Vec<Latency>,
}

/// The slot of a call that is being served. Dropping it frees the slot.
pub(crate) struct ServiceSlot {
    ms: u64,
    counts: Arc<LatencyCounts>,
    _slot: Option<OwnedSemaphorePermit>,
}

impl Latencies {
    /// Puts a latency in force and returns its id. Replaces an earlier latency of the same operation.
    pub(crate) fn add(&self, order: LatencyOrder) -> Result<u64, String> {
        let checked = order.check()?;
        let slots = order
            .at_once
            .map(|calls| Arc::new(Semaphore::new(calls as usize)));
        let mut state = self.lock();
        state.last_id += 1;
        let id = state.last_id;
        state
            .latencies
            .retain(|known| known.checked.operation != checked.operation);
        state.latencies.push(Latency {
            id,
            order,
            checked,
            slots,
            counts: Arc::default(),
        });
        Ok(id)
    }

    /// Waits for a free slot and takes it. Returns `None` at once if no latency applies to the call.
    pub(crate) async fn acquire(
        &self,
        seed: u64,
        moment: &FaultContext<'_>,
    ) -> Option<ServiceSlot> {
        let (ms, slots, counts) = self.find(seed, moment)?;
        let slot = match slots {
            None => None,
            Some(slots) => match Arc::clone(&slots).try_acquire_owned() {
                Ok(slot) => Some(slot),
                Err(_) => counts.wait_for_permit(slots).await,
            },
        };
        counts.in_service.fetch_add(1, Ordering::Relaxed);
        Some(ServiceSlot {
            ms,
            counts,
            _slot: slot,
        })
    }

    /// Returns the latency of this call in milliseconds, the semaphore of its limit, and the counters to update.
    fn find(
        &self,
        seed: u64,
        moment: &FaultContext<'_>,
    ) -> Option<(u64, Option<Arc<Semaphore>>, Arc<LatencyCounts>)> {
        let state = self.lock();
        let found = state
            .find(Some(moment.operation))
            .or_else(|| state.find(None))?;
        let drawn = draw_millionths(seed, &format!("latency-{}", found.id), moment);
        Some((
            found.checked.spread.latency_ms(drawn),
            found.slots.clone(),
            Arc::clone(&found.counts),
        ))
    }

    pub(crate) fn list(&self) -> Value {
        let state = self.lock();
        state.latencies.iter().map(Latency::to_json).collect()
    }

    pub(crate) fn clear(&self) {
        *self.lock() = LatenciesInForce::default();
    }

    fn lock(&self) -> MutexGuard<'_, LatenciesInForce> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LatenciesInForce {
    /// Finds the latency of one operation, or with `None` the latency of all other operations.
    fn find(&self, operation: Option<Operation>) -> Option<&Latency> {
        let mut latencies = self.latencies.iter();
        latencies.find(|known| known.checked.operation == operation)
    }
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

impl Latency {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "order": self.order,
            "waiting": load(&self.counts.waiting),
            "waiting_max": load(&self.counts.waiting_max),
            "in_service": load(&self.counts.in_service),
            "served": load(&self.counts.served),
        })
    }
}

impl LatencyCounts {
    async fn wait_for_permit(&self, slots: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        self.waiting_max.fetch_max(waiting, Ordering::Relaxed);
        let _counted = CountedWait(&self.waiting);
        slots.acquire_owned().await.ok()
    }
}

/// Counts one waiting call. Dropping it decrements the counter, even if the wait was cancelled.
struct CountedWait<'a>(&'a AtomicU64);

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServiceSlot {
    /// Sleeps for the latency of the call, then frees the slot.
    pub(crate) async fn sleep(self) {
        tokio::time::sleep(Duration::from_millis(self.ms)).await;
    }
}

impl Drop for ServiceSlot {
    fn drop(&mut self) {
        self.counts.in_service.fetch_sub(1, Ordering::Relaxed);
        self.counts.served.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::UniformLatency;
    use super::*;
    use crate::clock;
    use crate::route::Operation;

    fn draw_latencies(seed: u64) -> Vec<u64> {
        let latencies = Latencies::default();
        let uniform_ms = Some(UniformLatency { min: 100, max: 900 });
        latencies
            .add(LatencyOrder {
                uniform_ms,
                ..LatencyOrder::default()
            })
            .unwrap();
        let moment = |nth| FaultContext {
            operation: Operation::Sign,
            irn: Some("I"),
            nth,
            at: clock::now(),
        };
        (1..=20)
            .map(|nth| latencies.find(seed, &moment(nth)).unwrap().0)
            .collect()
    }

    #[test]
    fn the_same_seed_draws_the_same_times() {
        assert_eq!(draw_latencies(7), draw_latencies(7));
        assert_ne!(draw_latencies(7), draw_latencies(8));
        assert!(draw_latencies(7).iter().all(|ms| (100..=900).contains(ms)));
    }
}
