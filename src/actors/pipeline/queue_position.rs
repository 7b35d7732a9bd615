//! Estimates the position of a run in the queue, and when the run ends. Each round of claims takes one run of each
//! taxpayer. So if a run is claimed in round 3, at most three runs of each other taxpayer are claimed before it.
//!
//! The result is only an estimate: the counts of queued runs may be a second old.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use authority_client::Authority;
use database::StoreError;
use jiff::Timestamp;
use timing::clock::SharedClock;
use tokio::sync::Mutex;

use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::throughput::Throughput;
use crate::domain::pipeline::{Run, run_lane};
use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::lanes::views;

/// Loaded queue counts are reused for this long.
const COUNTS_MAX_AGE: Duration = Duration::from_secs(1);
/// A time in which no run ended counts as a standstill only if it is at least this long.
const STANDSTILL_MIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePosition {
    /// The position in the queue. The run that is claimed next has position 1.
    pub position: u64,
    /// The time at which the run is expected to end.
    pub predicted_clear_at: Timestamp,
}

/// The number of due runs of each taxpayer, and the number of processes that work on runs.
#[derive(Debug, Default)]
struct QueueCounts {
    due: HashMap<i64, u64>,
    processes: u64,
}

pub struct QueueEstimator {
    store: Store,
    authority: Authority,
    clock: SharedClock,
    pub throughput: Arc<Throughput>,
    cached_counts: Mutex<Option<(Instant, Arc<QueueCounts>)>>,
}

impl QueueEstimator {
    pub fn new(store: Store, authority: Authority, clock: SharedClock) -> Self {
        Self {
            store,
            authority,
            clock,
            throughput: Arc::default(),
            cached_counts: Mutex::default(),
        }
    }

    /// Returns the position of a run in the queue. Returns None if the run is not open or has no next step.
    pub async fn position(&self, run: &Run) -> Result<Option<QueuePosition>, StoreError> {
        let Some(step) = run.next_step().filter(|_| run.state().is_open()) else {
            return Ok(None);
        };
        let counts = self.counts().await?;
        let taxpayer = run.taxpayer_id.0;
        let deadline = run.deadline_at.as_microsecond();
        let key = run_lane(run.taxpayer_id, run.id);
        let own = views::more_urgent(&self.store, LaneKind::Run, taxpayer, deadline, &key).await?;
        let position = queue_position(&counts.due, taxpayer, own);
        let now = self.clock.now();
        let open_at = blocked_steps::available_at(&self.authority, step, run.taxpayer_id, now);
        let waited = Duration::try_from(now.duration_since(run.created_at)).unwrap_or_default();
        // If the step is blocked, no standstill is added: `open_at` already estimates the end of the block.
        let standstill = open_at
            .is_none()
            .then(|| standstill(self.throughput.quiet_for(now), waited));
        let start = open_at
            .unwrap_or(now)
            .max(run.next_attempt_at().unwrap_or(now));
        let takes =
            self.throughput.time_for(position, counts.processes) + standstill.unwrap_or_default();
        let predicted_clear_at = start.saturating_add(takes).unwrap_or(Timestamp::MAX);
        Ok(Some(QueuePosition {
            position,
            predicted_clear_at,
        }))
    }

    async fn counts(&self) -> Result<Arc<QueueCounts>, StoreError> {
        let mut cached_counts = self.cached_counts.lock().await;
        if let Some((at, counts)) = &*cached_counts
            && at.elapsed() < COUNTS_MAX_AGE
        {
            return Ok(Arc::clone(counts));
        }
        let due = views::due_by_taxpayer(&self.store, LaneKind::Run).await?;
        let owners = views::counts_by_owner(&self.store).await?;
        let of_runs = owners
            .iter()
            .filter(|owner| owner.kind == LaneKind::Run && owner.held > 0);
        let processes = u64::try_from(of_runs.count()).unwrap_or(u64::MAX);
        let counts = Arc::new(QueueCounts { due, processes });
        *cached_counts = Some((Instant::now(), Arc::clone(&counts)));
        Ok(counts)
    }
}

/// Returns the additional delay to expect if no run has ended for a while: as long as that time, but at most as long as
/// this run has waited, because no run ends either while a process has no runs. Zero if it is shorter than
/// `STANDSTILL_MIN`.
fn standstill(quiet_for: Option<Duration>, waited: Duration) -> Duration {
    let standstill = quiet_for.map_or(waited, |quiet| quiet.min(waited));
    if standstill < STANDSTILL_MIN {
        Duration::ZERO
    } else {
        standstill
    }
}

/// Returns the queue position of a run. `own` more urgent runs of the same taxpayer are claimed first, one per round,
/// so each other taxpayer gets at most `own + 1` runs claimed before it.
fn queue_position(due: &HashMap<i64, u64>, taxpayer: i64, own: u64) -> u64 {
    let turns = own + 1;
    due.iter()
        .filter(|(other, _)| **other != taxpayer)
        .fold(turns, |sum, (_, count)| sum + count.min(&turns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_nothing_moves_a_run_is_expected_to_wait_as_long_again() {
        let seconds = Duration::from_secs;
        assert_eq!(
            standstill(Some(seconds(90)), seconds(40)),
            seconds(40),
            "it came in the middle of it"
        );
        assert_eq!(standstill(Some(seconds(25)), seconds(300)), seconds(25));
        assert_eq!(
            standstill(None, seconds(120)),
            seconds(120),
            "no run has ended yet"
        );
        assert_eq!(
            standstill(Some(seconds(86_400)), seconds(0)),
            Duration::ZERO,
            "after a quiet night"
        );
        assert_eq!(standstill(Some(seconds(9)), seconds(9)), Duration::ZERO);
    }

    #[test]
    fn a_taxpayer_with_many_runs_delays_others_by_one_run_a_round() {
        let due = HashMap::from([(1, 100_000), (2, 1), (3, 40)]);
        assert_eq!(
            queue_position(&due, 2, 0),
            3,
            "one of each neighbour goes first"
        );
        assert_eq!(queue_position(&due, 3, 9), 10 + 10 + 1);
        assert_eq!(queue_position(&due, 1, 99_999), 100_000 + 1 + 40);
        assert_eq!(queue_position(&HashMap::new(), 7, 0), 1);
    }
}
