//! Says who has been at one batch for too long: Busy after the first limit, Stuck after the second.
//!
//! An actor beats at the start and the end of a batch, one atomic store each. `scan` compares, marks the
//! nodes and logs each change of level once. It only reports: a stuck actor is not killed, since a thread that
//! does not yield cannot be.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::tree::{ActorKind, Tree};

#[derive(Debug, Clone, Copy)]
pub struct WatchdogLimits {
    pub busy_after: Duration,
    pub stuck_after: Duration,
}

impl Default for WatchdogLimits {
    fn default() -> Self {
        Self { busy_after: Duration::from_secs(1), stuck_after: Duration::from_secs(10) }
    }
}

/// How long the current batch has been running, in classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BatchLoad {
    Light,
    Busy,
    Stuck,
}

impl BatchLoad {
    fn of(elapsed: Duration, limits: WatchdogLimits) -> Self {
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

/// The pulse of one actor. Moments are microseconds since the tree was created; 0 says no batch runs.
#[derive(Debug, Default)]
pub struct Heartbeat {
    since: AtomicU64,
    level: AtomicU8,
}

impl Heartbeat {
    pub(super) fn start(&self, moment: u64) {
        self.since.store(moment.max(1), Ordering::Relaxed);
    }

    pub(super) fn finish(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// True while a batch runs.
    pub(super) fn is_at_work(&self) -> bool {
        self.since.load(Ordering::Relaxed) != 0
    }

    /// Light again once the batch is over, whether or not a scan has passed since.
    pub(super) fn level(&self) -> BatchLoad {
        match self.since.load(Ordering::Relaxed) {
            0 => BatchLoad::Light,
            _ => BatchLoad::from_byte(self.level.load(Ordering::Relaxed)),
        }
    }

    /// The level now and the one at the last scan.
    fn judge(&self, moment: u64, limits: WatchdogLimits) -> (BatchLoad, BatchLoad) {
        let since = self.since.load(Ordering::Relaxed);
        let elapsed = if since == 0 { 0 } else { moment.saturating_sub(since) };
        let level = BatchLoad::of(Duration::from_micros(elapsed), limits);
        (level, BatchLoad::from_byte(self.level.swap(level as u8, Ordering::Relaxed)))
    }
}

/// What a scan found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchdogScan {
    pub busy: usize,
    pub stuck: usize,
}

/// Judges each actor of the tree at `now`, by what its kind may take.
pub fn scan(tree: &Tree, limits: impl Fn(ActorKind) -> WatchdogLimits, now: Instant) -> WatchdogScan {
    let moment = tree.moment(now);
    let mut found = WatchdogScan::default();
    tree.each(|node| {
        let (level, before) = node.heartbeat().judge(moment, limits(node.kind));
        match level {
            BatchLoad::Light => {}
            BatchLoad::Busy => found.busy += 1,
            BatchLoad::Stuck => found.stuck += 1,
        }
        if level != before {
            report(tree, node.name(), level);
        }
    });
    found
}

fn report(tree: &Tree, actor: &str, level: BatchLoad) {
    match level {
        BatchLoad::Light => tracing::info!(actor, "actor has finished its long batch"),
        BatchLoad::Busy => tracing::warn!(actor, "actor is busy with one batch for long"),
        BatchLoad::Stuck => {
            tree.counters().stuck.up();
            tracing::error!(actor, "actor is stuck in one batch");
        }
    }
}
