//! Counters of supervision, one set per process. All only grow, except `queue_depth`.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::metrics::ActorMetrics;

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn decrement(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub struct Counters {
    pub actors_started: Counter,
    pub actors_passivated: Counter,
    pub panics: Counter,
    pub restarts: Counter,
    pub escalations: Counter,
    /// Batches that the watchdog found running for longer than its `stuck_after`.
    pub stuck: Counter,
    pub commands_admitted: Counter,
    /// Commands that were refused because their key had no free permit (429).
    pub commands_refused_key: Counter,
    /// Commands that were refused because the process had no free permit (503).
    pub commands_refused_process: Counter,
    pub commands_answered: Counter,
    pub commands_interrupted: Counter,
    pub commands_quarantined: Counter,
    /// Commands that came back from their actor unstarted and were sent again.
    pub commands_resent: Counter,
    /// Commands that were given up: their actor returned them unstarted at every try.
    pub commands_stopped: Counter,
    /// Commands that were admitted and whose permit is not yet returned.
    pub queue_depth: Counter,
    pub by_kind: ActorMetrics,
}

/// The values of all counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterValues {
    pub actors_started: u64,
    pub actors_passivated: u64,
    pub panics: u64,
    pub restarts: u64,
    pub escalations: u64,
    pub stuck: u64,
    pub commands_admitted: u64,
    pub commands_refused_key: u64,
    pub commands_refused_process: u64,
    pub commands_answered: u64,
    pub commands_interrupted: u64,
    pub commands_quarantined: u64,
    pub commands_resent: u64,
    pub commands_stopped: u64,
    pub queue_depth: u64,
}

impl Counters {
    pub fn snapshot(&self) -> CounterValues {
        CounterValues {
            actors_started: self.actors_started.get(),
            actors_passivated: self.actors_passivated.get(),
            panics: self.panics.get(),
            restarts: self.restarts.get(),
            escalations: self.escalations.get(),
            stuck: self.stuck.get(),
            commands_admitted: self.commands_admitted.get(),
            commands_refused_key: self.commands_refused_key.get(),
            commands_refused_process: self.commands_refused_process.get(),
            commands_answered: self.commands_answered.get(),
            commands_interrupted: self.commands_interrupted.get(),
            commands_quarantined: self.commands_quarantined.get(),
            commands_resent: self.commands_resent.get(),
            commands_stopped: self.commands_stopped.get(),
            queue_depth: self.queue_depth.get(),
        }
    }
}
