//! The work that timers of this process repeat, with the time at which it was last done.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::actors::checkpoint::LastCheckpoint;
use crate::domain::incident::{PeriodicWork, WorkFacts};

/// The intervals of the repeated work. With an interval of zero, the work is done on demand only.
#[derive(Debug)]
pub struct Schedules {
    pub started_at: Timestamp,
    pub checkpoint_every: Duration,
    /// `None` if this process makes no checkpoints.
    pub last_checkpoint: Option<Arc<LastCheckpoint>>,
    pub reconcile_every: Duration,
}

impl Schedules {
    pub(super) fn checkpoint_schedule(&self) -> Option<PeriodicWork> {
        let last = self.last_checkpoint.as_ref()?;
        self.to_periodic_work(self.checkpoint_every, last.get())
    }

    /// Returns the schedule of the comparison with the authority's ledger. `None` while there is nothing to compare,
    /// because no taxpayer has had a run for a day.
    pub(super) fn reconciliation_schedule(&self, work: &WorkFacts) -> Option<PeriodicWork> {
        let needed_since = work.oldest_recent_run_at?;
        let last = work.reconciled_at.unwrap_or(needed_since);
        self.to_periodic_work(self.reconcile_every, Some(last.max(needed_since)))
    }

    /// Returns how often the work is repeated, and when it was last done: at the earliest, the start of this process.
    /// `None` if the work is done on demand only.
    fn to_periodic_work(&self, every: Duration, last: Option<Timestamp>) -> Option<PeriodicWork> {
        if every.is_zero() {
            return None;
        }
        Some(PeriodicWork {
            every: SignedDuration::try_from(every).ok()?,
            last: last.unwrap_or(self.started_at).max(self.started_at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn time_before_the_start_of_the_process_does_not_count() {
        let last_checkpoint = Arc::new(LastCheckpoint::default());
        let schedules = Schedules {
            started_at: second(100),
            checkpoint_every: Duration::from_secs(10),
            last_checkpoint: Some(Arc::clone(&last_checkpoint)),
            reconcile_every: Duration::from_mins(1),
        };
        let checkpointed = || {
            schedules
                .checkpoint_schedule()
                .map(|schedule| schedule.last)
        };
        assert_eq!(checkpointed(), Some(second(100)));
        last_checkpoint.set(second(120));
        assert_eq!(checkpointed(), Some(second(120)));
        let reconciled = |oldest_recent_run_at, reconciled_at| {
            let work = WorkFacts {
                oldest_recent_run_at,
                reconciled_at,
                ..WorkFacts::default()
            };
            schedules
                .reconciliation_schedule(&work)
                .map(|schedule| schedule.last)
        };
        assert_eq!(reconciled(None, Some(second(1))), None);
        assert_eq!(reconciled(Some(second(5)), None), Some(second(100)));
        assert_eq!(reconciled(Some(second(130)), None), Some(second(130)));
        let both = reconciled(Some(second(5)), Some(second(150)));
        assert_eq!(both, Some(second(150)));
        let on_demand = Schedules {
            checkpoint_every: Duration::ZERO,
            reconcile_every: Duration::ZERO,
            ..schedules
        };
        assert_eq!(on_demand.checkpoint_schedule(), None);
    }
}
