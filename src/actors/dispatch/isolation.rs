//! Work that was in flight at two crashes is isolated, together with its lane: it must begin alone. Each dispatcher has
//! one turn, a permit that one piece of isolated work holds at a time, and isolated work begins only when it has got
//! the turn. Work that waits for an answer from outside gives the turn up after a short time (`TURN_MAX`), so that work
//! that hangs does not hold up the rest. Work that is tried for the last time keeps its turn until it has ended: its
//! next crash is counted for good, so no other isolated work may be under way beside it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::actors::dispatch::{Assignment, Dispatcher};
use crate::domain::kernel::crash::CrashHistory;
use crate::store::lanes::abandoned::LanesWithEndedLease;
use crate::store::lanes::claim::{self, ClaimableLanes};

/// Work that still waits after this time gives its turn up, because it then waits for an answer from outside. A
/// computation keeps the turn, however long it takes, because this time is checked only while the work waits. If the
/// answer comes within this time, the work handles the answer while it still has the turn.
const TURN_MAX: Duration = Duration::from_millis(100);

/// Work that is tried for the last time gives its turn up after this time only. Each call to the outside has ended long
/// before.
const LAST_TRY_TURN_MAX: Duration = Duration::from_mins(2);

/// Hands out one turn, to one holder at a time. Clones share the turn.
#[derive(Debug, Clone)]
pub struct IsolationTurns {
    turn: Arc<Semaphore>,
    /// Counts the isolated work under way, with the work that has given its turn up.
    under_way: TaskTracker,
}

/// The permit to begin isolated work. Dropping it lets the next isolated work begin.
#[derive(Debug)]
pub struct IsolationTurn {
    permit: OwnedSemaphorePermit,
    /// Counts the work as under way.
    under_way: TaskTrackerToken,
    is_alone: bool,
}

impl Default for IsolationTurns {
    fn default() -> Self {
        Self {
            turn: Arc::new(Semaphore::new(1)),
            under_way: TaskTracker::new(),
        }
    }
}

impl IsolationTurns {
    /// Waits for the turn. `None` never occurs, because the semaphore is never closed.
    pub async fn take(&self) -> Option<IsolationTurn> {
        let permit = Arc::clone(&self.turn).acquire_owned().await.ok()?;
        Some(IsolationTurn {
            permit,
            is_alone: self.under_way.is_empty(),
            under_way: self.under_way.token(),
        })
    }
}

impl IsolationTurn {
    /// True if no other isolated work was under way when the turn began. None begins as long as the turn lasts.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }
}

/// Runs work to its end. If the work is isolated, `turn` is its permit to begin, and `history` tells how long it may
/// keep the turn. The turn is given up when the work has ended, or earlier if the work still waits after that time.
/// Call this in the task that does the work: only then does a long computation keep the turn.
pub async fn run_in_turn<F: Future>(
    turn: Option<IsolationTurn>,
    history: CrashHistory,
    work: F,
) -> F::Output {
    let Some(turn) = turn else { return work.await };
    let IsolationTurn {
        permit, under_way, ..
    } = turn;
    let turn_max = if history.is_last_try() {
        LAST_TRY_TURN_MAX
    } else {
        TURN_MAX
    };
    let mut work = pin!(work);
    let ended = timeout(turn_max, &mut work).await;
    drop(permit);
    let output = match ended {
        Ok(output) => output,
        Err(_) => work.await,
    };
    drop(under_way);
    output
}

impl Dispatcher {
    /// Claims and runs isolated lanes in a loop, until this future is dropped.
    pub(super) async fn run_isolated(self) {
        loop {
            let has_claimed = self.claim_isolated().await.unwrap_or_else(|error| {
                let kind = self.config.kind.as_str();
                tracing::warn!(kind, %error, "failed to claim a lane that goes alone; will retry");
                false
            });
            if !has_claimed {
                sleep(self.config.poll).await;
            }
        }
    }

    /// Waits for the turn of the kind, claims one isolated lane and hands it out. Returns false if no isolated lane is
    /// due.
    pub(super) async fn claim_isolated(&self) -> Result<bool, StoreError> {
        let blocked = self.list_steps_blocked_for_ended_leases();
        let ask = self.claim_request(1, &blocked);
        if !LanesWithEndedLease::Isolated
            .has_due(&self.store, &ask)
            .await?
        {
            return Ok(false);
        }
        // The slot is acquired before the turn, so that the turn is never held while its work waits for a slot.
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let (Ok(slot), Some(turn)) = (slot, self.turns.take().await) else {
            return Ok(false);
        };
        let claimed = claim::claim(
            &self.store,
            ClaimableLanes::Ended(LanesWithEndedLease::Isolated),
            &ask,
        )
        .await?;
        let Some(claimed) = claimed.lanes.into_iter().next() else {
            return Ok(false);
        };
        let assignment = Assignment {
            lease: claimed.lane.lease,
            turn: Some(turn),
        };
        self.hand_to_worker(assignment, Some(claimed.taxpayer_id), Some(slot));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::sync::oneshot;

    use super::*;

    const ISOLATED: CrashHistory = CrashHistory {
        crashes: 2,
        panics: 0,
        is_lifted: false,
    };
    const LAST_TRY: CrashHistory = CrashHistory {
        is_lifted: true,
        ..ISOLATED
    };

    /// Starts three pieces of work, each in a turn, and returns the steps that they took.
    async fn record_steps(
        history: CrashHistory,
        work: impl AsyncFn(&RefCell<Vec<String>>, usize),
    ) -> Vec<String> {
        let turns = IsolationTurns::default();
        let steps = RefCell::new(Vec::new());
        let run = async |number| {
            let turn = turns.take().await;
            assert!(turn.is_some());
            run_in_turn(turn, history, work(&steps, number)).await;
        };
        tokio::join!(run(1), run(2), run(3));
        steps.into_inner()
    }

    #[tokio::test]
    async fn work_in_a_turn_ends_before_the_next_begins() {
        // The second column is how long the work waits for an answer.
        for (history, wait) in [
            (ISOLATED, Duration::ZERO),
            (LAST_TRY, Duration::ZERO),
            (LAST_TRY, 2 * TURN_MAX),
        ] {
            let steps = record_steps(history, async |steps, number| {
                steps.borrow_mut().push(format!("{number} begins"));
                sleep(wait).await;
                steps.borrow_mut().push(format!("{number} ends"));
            });
            let expected = [
                "1 begins", "1 ends", "2 begins", "2 ends", "3 begins", "3 ends",
            ];
            assert_eq!(steps.await, expected, "{history:?} {wait:?}");
        }
    }

    #[tokio::test]
    async fn work_that_has_given_its_turn_up_is_still_under_way() {
        let turns = IsolationTurns::default();
        let (answer, answered) = oneshot::channel::<()>();
        let first = turns.take().await;
        assert!(first.as_ref().unwrap().is_alone());
        let beside = async {
            let second = turns.take().await.unwrap();
            assert!(!second.is_alone());
            answer.send(()).unwrap();
        };
        let (ended, ()) = tokio::join!(run_in_turn(first, ISOLATED, answered), beside);
        ended.unwrap();
        assert!(turns.take().await.unwrap().is_alone());
    }

    #[tokio::test]
    async fn work_that_waits_for_an_answer_gives_its_turn_up() {
        let (answer, answered) = oneshot::channel();
        let answer = RefCell::new(Some(answer));
        let answered = RefCell::new(Some(answered));
        let steps = record_steps(ISOLATED, async |steps, number| {
            steps.borrow_mut().push(format!("{number} begins"));
            // The first waits for an answer that comes only when the last has begun.
            let (answer, answered) = match number {
                1 => (None, answered.borrow_mut().take()),
                3 => (answer.borrow_mut().take(), None),
                _ => (None, None),
            };
            if let Some(answer) = answer {
                answer.send(()).unwrap();
            }
            if let Some(answered) = answered {
                answered.await.unwrap();
            }
            steps.borrow_mut().push(format!("{number} ends"));
        });
        let steps = steps.await;
        assert_eq!(steps[..4], ["1 begins", "2 begins", "2 ends", "3 begins"]);
    }
}
