//! Reports actors that spend too long on one batch: `Busy`, then `Stuck`. It cannot stop a thread that hangs. Time in
//! which the whole process stood still, such as between SIGSTOP and SIGCONT, is no actor's work and does not count.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::node_state::NodeKind;
use super::tree::Tree;

#[derive(Debug, Clone, Copy)]
pub struct WatchdogLimits {
    pub busy_after: Duration,
    pub stuck_after: Duration,
}

impl Default for WatchdogLimits {
    fn default() -> Self {
        Self {
            busy_after: Duration::from_secs(1),
            stuck_after: Duration::from_secs(10),
        }
    }
}

/// The duration of the current batch, compared with the watchdog's two limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BatchLoad {
    Light,
    Busy,
    Stuck,
}

impl BatchLoad {
    fn after(elapsed: Duration, limits: WatchdogLimits) -> Self {
        if elapsed > limits.stuck_after {
            Self::Stuck
        } else if elapsed > limits.busy_after {
            Self::Busy
        } else {
            Self::Light
        }
    }

    fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Light,
            1 => Self::Busy,
            _ => Self::Stuck,
        }
    }
}

/// The heartbeat of one actor. Times are in microseconds since the tree was created; `since` is 0 while no batch runs.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    since: AtomicU64,
    level: AtomicU8,
}

impl Heartbeat {
    pub(crate) fn start(&self, moment: u64) {
        self.since.store(moment.max(1), Ordering::Relaxed);
    }

    /// Ends the batch and returns when it began; `None` if there was none. Resets the level, so that the next batch
    /// begins without one.
    pub(crate) fn finish(&self, kind: &str, actor: &str) -> Option<u64> {
        let since = self.since.swap(0, Ordering::Relaxed);
        let level = self.level.swap(BatchLoad::Light as u8, Ordering::Relaxed);
        if BatchLoad::from_byte(level) != BatchLoad::Light {
            tracing::info!(kind, actor, "actor finished its long batch");
        }
        Some(since).filter(|since| *since != 0)
    }

    /// Returns when the batch in progress began; `None` if there is none.
    pub(crate) fn running_since(&self) -> Option<u64> {
        Some(self.since.load(Ordering::Relaxed)).filter(|since| *since != 0)
    }

    /// Returns the level of the last scan, or `Light` if the batch has ended since.
    pub(crate) fn level(&self) -> BatchLoad {
        match self.since.load(Ordering::Relaxed) {
            0 => BatchLoad::Light,
            _ => BatchLoad::from_byte(self.level.load(Ordering::Relaxed)),
        }
    }

    /// Computes and stores the actor's level at `moment`. Returns the new level and the previous one.
    fn classify(
        &self,
        moment: u64,
        standstills: &Standstills,
        limits: WatchdogLimits,
    ) -> (BatchLoad, BatchLoad) {
        let since = self.since.load(Ordering::Relaxed);
        let elapsed = if since == 0 {
            0
        } else {
            let lost = standstills.micros_since(since);
            moment.saturating_sub(since).saturating_sub(lost)
        };
        let level = BatchLoad::after(Duration::from_micros(elapsed), limits);
        (
            level,
            BatchLoad::from_byte(self.level.swap(level as u8, Ordering::Relaxed)),
        )
    }
}

/// The number of actors that a scan found at each level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchdogScan {
    pub busy: usize,
    pub stuck: usize,
}

/// A scan that comes later than this after its time shows that the whole process stood still.
const STANDSTILL_MIN: Duration = Duration::from_secs(2);
/// The number of standstills that are remembered, the latest ones.
const STANDSTILLS_MAX: usize = 16;

/// A time in which the process did not run, in microseconds since the tree was created.
#[derive(Debug, Clone, Copy)]
struct Standstill {
    ended_at: u64,
    micros: u64,
}

/// The last standstills of the process, oldest first.
#[derive(Debug, Clone, Default)]
struct Standstills {
    scanned_at: Option<Instant>,
    latest: VecDeque<Standstill>,
}

impl Standstills {
    /// Records the time since the previous scan as a standstill if this scan, at `now`, is late by seconds.
    fn record_scan(&mut self, tree: &Tree, every: Duration, now: Instant) {
        let previous = self.scanned_at.replace(now).unwrap_or(now);
        let late = now
            .saturating_duration_since(previous)
            .saturating_sub(every);
        if late < STANDSTILL_MIN {
            return;
        }
        tracing::warn!(
            seconds = late.as_secs(),
            "the process stood still: it was stopped, or got no processor"
        );
        if self.latest.len() == STANDSTILLS_MAX {
            self.latest.pop_front();
        }
        self.latest.push_back(Standstill {
            ended_at: tree.micros_at(now),
            micros: u64::try_from(late.as_micros()).unwrap_or(u64::MAX),
        });
    }

    /// Returns the length of all standstills after the moment `since`.
    fn micros_since(&self, since: u64) -> u64 {
        let parts = self.latest.iter().map(|one| {
            let after = one.ended_at.saturating_sub(since);
            after.min(one.micros)
        });
        parts.sum()
    }
}

/// Scans the tree at an interval.
#[derive(Debug)]
pub struct Watchdog {
    every: Duration,
    standstills: Mutex<Standstills>,
}

impl Watchdog {
    /// Returns a watchdog whose caller scans at this interval.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            standstills: Mutex::default(),
        }
    }

    /// Computes and stores the level of each actor in the tree. `limits` returns the limits for a kind of actor.
    pub fn scan(
        &self,
        tree: &Tree,
        limits: impl Fn(NodeKind) -> WatchdogLimits,
        now: Instant,
    ) -> WatchdogScan {
        let standstills = self.record_scan(tree, now);
        let moment = tree.micros_at(now);
        let mut found = WatchdogScan::default();
        tree.for_each_node(|node| {
            let (level, before) =
                node.heartbeat()
                    .classify(moment, &standstills, limits(node.kind));
            match level {
                BatchLoad::Light => {}
                BatchLoad::Busy => found.busy += 1,
                BatchLoad::Stuck => found.stuck += 1,
            }
            if level != before {
                log_load(tree, node.kind, node.name(), level);
            }
        });
        found
    }

    fn record_scan(&self, tree: &Tree, now: Instant) -> Standstills {
        let mut standstills = self
            .standstills
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        standstills.record_scan(tree, self.every, now);
        standstills.clone()
    }
}

fn log_load(tree: &Tree, kind: NodeKind, actor: &str, level: BatchLoad) {
    let kind = kind.name();
    match level {
        BatchLoad::Light => {}
        BatchLoad::Busy => tracing::warn!(kind, actor, "actor is busy with a long batch"),
        BatchLoad::Stuck => {
            tree.counters().stuck.up();
            tracing::error!(kind, actor, "actor is stuck in one batch");
        }
    }
}
