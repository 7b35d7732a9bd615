//! The queue as somebody in it sees it: how many go first, and when the turn comes at the present pace. Runs are
//! taken in turns between taxpayers, so of each other taxpayer only as many go first as this one has turns to wait.
//!
//! The counts are a second old at most; the answer is an estimate and nothing depends on it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::actors::pipeline::gates;
use crate::actors::pipeline::pace::Pace;
use crate::authority::Authority;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::pipeline::Run;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::LaneKind;
use crate::store::lanes::fair_queue;

/// How long counts are good for.
const FRESH: Duration = Duration::from_secs(1);

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// 1 is who is next.
    pub position: u64,
    /// When the run should have come to its end.
    pub predicted_clear_at: Timestamp,
}

/// Runs that are due, by taxpayer, and how many processes work on them.
#[derive(Debug, Default)]
struct Counts {
    due: HashMap<i64, u64>,
    processes: u64,
}

/// Looks at the queue.
pub struct Backlog {
    store: Store,
    authority: Authority,
    clock: SharedClock,
    pub pace: Arc<Pace>,
    seen: Mutex<Option<(Instant, Arc<Counts>)>>,
}

impl Backlog {
    pub fn new(store: Store, authority: Authority, clock: SharedClock) -> Self {
        Self { store, authority, clock, pace: Arc::default(), seen: Mutex::default() }
    }

    /// Where a run stands; `None` where it does not go on by itself.
    pub async fn place(&self, run: &Run) -> Result<Option<Place>, StoreError> {
        let Some(step) = run.next_step().filter(|_| run.state.is_open()) else { return Ok(None) };
        let counts = self.counts().await?;
        let (taxpayer, deadline) = (run.taxpayer_id.0, run.deadline_at.as_microsecond());
        let own = fair_queue::more_urgent(&self.store, LaneKind::Run, taxpayer, deadline).await?;
        let position = position(&counts.due, taxpayer, own);
        let now = self.clock.now();
        let start = gates::opens_at(&self.authority, step, run.taxpayer_id, now)
            .max(run.next_attempt_at.unwrap_or(now));
        let takes = self.pace.time_for(position, counts.processes);
        let predicted_clear_at = start.saturating_add(takes).unwrap_or(Timestamp::MAX);
        Ok(Some(Place { position, predicted_clear_at }))
    }

    async fn counts(&self) -> Result<Arc<Counts>, StoreError> {
        let mut seen = self.seen.lock().await;
        if let Some((at, counts)) = &*seen
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(counts));
        }
        let due = fair_queue::due_by_taxpayer(&self.store, LaneKind::Run).await?;
        let processes = fair_queue::workers(&self.store, LaneKind::Run).await?;
        let counts = Arc::new(Counts { due, processes });
        *seen = Some((Instant::now(), Arc::clone(&counts)));
        Ok(counts)
    }
}

/// The own ones that are more urgent, and of each other taxpayer as many as there are turns until then.
fn position(due: &HashMap<i64, u64>, taxpayer: i64, own: u64) -> u64 {
    let turn = own + 1;
    due.iter().filter(|(other, _)| **other != taxpayer).fold(turn, |sum, (_, count)| sum + count.min(&turn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_with_much_to_do_is_ahead_by_one_turn_and_no_more() {
        let due = HashMap::from([(1, 100_000), (2, 1), (3, 40)]);
        assert_eq!(position(&due, 2, 0), 3, "one of each neighbour goes first");
        assert_eq!(position(&due, 3, 9), 10 + 10 + 1);
        assert_eq!(position(&due, 1, 99_999), 100_000 + 1 + 40);
        assert_eq!(position(&HashMap::new(), 7, 0), 1);
    }
}
