//! Reports actors that spend too long on one batch: `Busy`, then `Stuck`. It cannot stop a thread that hangs.
//!
//! An actor is stuck only if two scans, some time apart, find the same batch beyond its limit. If the whole process
//! stood still, as between SIGSTOP and SIGCONT, the batch in progress seems overdue to the first scan, but has ended
//! before the second one.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
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

/// The time between the two scans is at least `stuck_after` divided by this: 2 s if `stuck_after` is 10 s.
const CONFIRMATION_PART: u32 = 5;

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
    /// The milliseconds for which the batch had run when a scan first found it beyond its limit; 0 if none did.
    overdue_ms: AtomicU32,
}

impl Heartbeat {
    pub(crate) fn start(&self, moment: u64) {
        self.since.store(moment.max(1), Ordering::Relaxed);
    }

    /// Ends the batch and returns when it began; `None` if there was none. Resets the level to `Light` for the next
    /// batch.
    pub(crate) fn finish(&self, kind: &str, actor: &str) -> Option<u64> {
        let since = self.since.swap(0, Ordering::Relaxed);
        let level = self.level.swap(BatchLoad::Light as u8, Ordering::Relaxed);
        self.overdue_ms.store(0, Ordering::Relaxed);
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
    pub(crate) fn batch_load(&self) -> BatchLoad {
        match self.since.load(Ordering::Relaxed) {
            0 => BatchLoad::Light,
            _ => BatchLoad::from_byte(self.level.load(Ordering::Relaxed)),
        }
    }

    /// Computes and stores the actor's level at `moment`. Returns the new level and the previous one.
    fn classify(&self, moment: u64, limits: WatchdogLimits) -> (BatchLoad, BatchLoad) {
        let since = self.since.load(Ordering::Relaxed);
        let elapsed = if since == 0 {
            0
        } else {
            moment.saturating_sub(since)
        };
        let elapsed = Duration::from_micros(elapsed);
        let mut level = BatchLoad::after(elapsed, limits);
        if level == BatchLoad::Stuck && !self.is_overdue_for_long(elapsed, limits) {
            level = BatchLoad::Busy;
        }
        (
            level,
            BatchLoad::from_byte(self.level.swap(level as u8, Ordering::Relaxed)),
        )
    }

    /// True if an earlier scan found the batch beyond its limit, too. Records the first such scan.
    fn is_overdue_for_long(&self, elapsed: Duration, limits: WatchdogLimits) -> bool {
        let millis = u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX);
        let recorded =
            self.overdue_ms
                .compare_exchange(0, millis, Ordering::Relaxed, Ordering::Relaxed);
        recorded.is_err_and(|first| {
            let passed = Duration::from_millis(u64::from(millis.saturating_sub(first)));
            passed >= limits.stuck_after / CONFIRMATION_PART
        })
    }
}

/// The number of actors that a scan found at each level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchdogScan {
    pub busy: usize,
    pub stuck: usize,
}

/// Computes and stores the level of each actor in the tree. `limits` returns the limits for a kind of actor.
pub fn scan(
    tree: &Tree,
    limits: impl Fn(NodeKind) -> WatchdogLimits,
    now: Instant,
) -> WatchdogScan {
    let moment = tree.micros_at(now);
    let mut found = WatchdogScan::default();
    tree.for_each_node(|node| {
        let (level, before) = node.heartbeat().classify(moment, limits(node.kind));
        match level {
            BatchLoad::Light => {}
            BatchLoad::Busy => found.busy += 1,
            BatchLoad::Stuck => found.stuck += 1,
        }
        if level != before {
            log_batch_load(tree, node.kind, node.name(), level);
        }
    });
    found
}

fn log_batch_load(tree: &Tree, kind: NodeKind, actor: &str, level: BatchLoad) {
    let kind = kind.name();
    match level {
        BatchLoad::Light => {}
        BatchLoad::Busy => tracing::warn!(kind, actor, "actor is busy with a long batch"),
        BatchLoad::Stuck => {
            tree.counters().stuck.increment();
            tracing::error!(kind, actor, "actor is stuck in one batch");
        }
    }
}
