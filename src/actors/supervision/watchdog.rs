//! Says who has been at one batch for too long: Busy after the first limit, Stuck after the second.
//!
//! An actor beats at the start and the end of a batch, one atomic store each. `survey` compares, marks the
//! nodes and logs each change of level once. It only reports: a stuck actor is not killed, since a thread that
//! does not yield cannot be.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::tree::{Kind, Tree};

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub busy_after: Duration,
    pub stuck_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { busy_after: Duration::from_secs(1), stuck_after: Duration::from_secs(10) }
    }
}

/// How long the current batch has been running, in classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Light,
    Busy,
    Stuck,
}

impl Level {
    fn of(elapsed: Duration, limits: Limits) -> Self {
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

/// The pulse of one actor. Moments are microseconds since the tree was planted; 0 says no batch runs.
#[derive(Debug, Default)]
pub struct Beat {
    since: AtomicU64,
    level: AtomicU8,
}

impl Beat {
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

    /// Light again once the batch is over, whether or not a survey has passed since.
    pub(super) fn level(&self) -> Level {
        match self.since.load(Ordering::Relaxed) {
            0 => Level::Light,
            _ => Level::from_byte(self.level.load(Ordering::Relaxed)),
        }
    }

    /// The level now and the one at the last survey.
    fn judge(&self, moment: u64, limits: Limits) -> (Level, Level) {
        let since = self.since.load(Ordering::Relaxed);
        let elapsed = if since == 0 { 0 } else { moment.saturating_sub(since) };
        let level = Level::of(Duration::from_micros(elapsed), limits);
        (level, Level::from_byte(self.level.swap(level as u8, Ordering::Relaxed)))
    }
}

/// What a survey found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survey {
    pub busy: usize,
    pub stuck: usize,
}

/// Judges each actor of the tree at `now`, by what its kind may take.
pub fn survey(tree: &Tree, limits: impl Fn(Kind) -> Limits, now: Instant) -> Survey {
    let moment = tree.moment(now);
    let mut found = Survey::default();
    tree.each(|node| {
        let (level, before) = node.beat().judge(moment, limits(node.kind));
        match level {
            Level::Light => {}
            Level::Busy => found.busy += 1,
            Level::Stuck => found.stuck += 1,
        }
        if level != before {
            report(tree, node.name(), level);
        }
    });
    found
}

fn report(tree: &Tree, actor: &str, level: Level) {
    match level {
        Level::Light => tracing::info!(actor, "actor has finished its long batch"),
        Level::Busy => tracing::warn!(actor, "actor is busy with one batch for long"),
        Level::Stuck => {
            tree.counters().stuck.up();
            tracing::error!(actor, "actor is stuck in one batch");
        }
    }
}
