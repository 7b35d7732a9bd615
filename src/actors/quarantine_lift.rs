//! Releases work that is in quarantine only because processes crashed. If processes are killed in quick succession,
//! work that did not cause it is quarantined, too. So once a process has lived for a while, quarantined work is tried
//! once more, alone. Work that really crashes processes is quarantined again by its next crash, and then only an
//! operator can release it. The work is released piece by piece, so that after a crash in between, all that was not
//! tried yet is still in quarantine and is released later.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use timing::clock::SharedClock;

use crate::actors::taxpayer::commands::{LiftQuarantine, StoppedRun};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::RunState;
use crate::store::Store;
use crate::store::runs;
use crate::store::webhooks::crashed_deliveries;

/// The longest time between two searches for work to release.
pub const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The maximum number of runs that one call tries to release. It releases the first of them that it can.
const TRIED_PER_CALL_MAX: u64 = 100;
/// The maximum number of deliveries that one call releases.
const DELIVERIES_PER_CALL_MAX: u64 = 1;
/// The pause before the next call if there may be more to release.
const PAUSE: Duration = Duration::from_millis(250);
/// No longer than this, other runs wait for the end of the run that was released before them. That run may be held up,
/// for example because its taxpayer is paused.
const TRY_MAX: SignedDuration = SignedDuration::from_mins(2);

/// A run whose quarantine was lifted.
#[derive(Debug, Clone, Copy)]
pub struct LiftedRun {
    taxpayer: TaxpayerId,
    id: RunId,
    at: Timestamp,
}

#[derive(Clone)]
pub struct QuarantineLift {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub clock: SharedClock,
    /// The time at which this process started.
    pub started_at: Timestamp,
    /// Work is released when it has been in quarantine for this long and this process has lived for this long.
    pub lift_after: SignedDuration,
    /// The run that this process released last.
    pub last_run: Arc<Mutex<Option<LiftedRun>>>,
}

impl QuarantineLift {
    /// Releases a run and a delivery that have been in quarantine for long enough, the run only if the one before it
    /// has been tried. Returns the pause before the next call if there may be more to release, else `None`.
    pub async fn lift_due_quarantines(&self) -> Result<Option<Duration>, StoreError> {
        let now = self.clock.now();
        let since = now - self.lift_after;
        if since < self.started_at {
            return Ok(None);
        }
        let is_trying = self.is_last_run_under_way(now).await?;
        let runs = if is_trying {
            0
        } else {
            self.lift_next_run(since, now).await?
        };
        let deliveries =
            crashed_deliveries::lift_quarantine(&self.store, since, DELIVERIES_PER_CALL_MAX, now)
                .await?;
        if runs + deliveries > 0 {
            tracing::info!(
                runs,
                deliveries,
                "lifted the quarantine of work that only crashes had caused"
            );
        }
        let may_have_more = is_trying || runs + deliveries > 0;
        Ok(may_have_more.then_some(PAUSE))
    }

    /// True if the run that was released last has not ended its try.
    async fn is_last_run_under_way(&self, now: Timestamp) -> Result<bool, StoreError> {
        let last = *self.last_run.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = last.filter(|last| now < last.at + TRY_MAX) else {
            return Ok(false);
        };
        let run = runs::find_owned_by_id(self.store.reader(), last.taxpayer, last.id).await?;
        Ok(run.is_some_and(|run| {
            run.state() == RunState::Running && run.progress.crash_history.is_last_try()
        }))
    }

    /// Releases the run that has been in quarantine for the longest time. Returns the number of released runs, 0 or 1.
    /// A run that cannot be released now is left to the next call.
    async fn lift_next_run(&self, since: Timestamp, now: Timestamp) -> Result<usize, StoreError> {
        for run in
            runs::find_with_liftable_quarantine(&self.store, since, TRIED_PER_CALL_MAX).await?
        {
            let taxpayer = run.taxpayer_id;
            let id = run.id;
            let stopped = StoppedRun {
                run: id,
                irn: run.irn,
                seen_updated_at: run.updated_at,
            };
            match self.taxpayers.send(taxpayer, LiftQuarantine(stopped)).await {
                Ok(run) if run.state() == RunState::Running => {
                    let lifted = LiftedRun {
                        taxpayer,
                        id,
                        at: now,
                    };
                    *self.last_run.lock().unwrap_or_else(PoisonError::into_inner) = Some(lifted);
                    return Ok(1);
                }
                // An operator has moved the run meanwhile, or only an operator may release it.
                Ok(_) => {}
                Err(TaxpayerError::Store(error)) => return Err(error),
                Err(error) => {
                    tracing::warn!(%taxpayer, run = %id, %error, "failed to lift a run's quarantine; will retry");
                }
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use supervision::Arbiters;
    use timing::clock::{Clock, MockClock};

    use super::*;
    use crate::actors::taxpayer::commands::{Onboard, OpenRun};
    use crate::domain::invoice::irn::Irn;
    use crate::domain::pipeline::{Operation, Run, RunRequest, Step, StepResult};
    use crate::store::testing::{TestStore, stores};

    const ID: TaxpayerId = TaxpayerId(1);
    const AFTER: SignedDuration = SignedDuration::from_mins(10);

    struct Fixture {
        test: TestStore,
        lift: QuarantineLift,
        clock: Arc<MockClock>,
        arbiters: Arc<Arbiters>,
    }

    impl Fixture {
        async fn new(test: TestStore) -> Self {
            let clock = Arc::new(MockClock::at(
                Timestamp::from_second(1_800_000_000).unwrap(),
            ));
            let shared: SharedClock = clock.clone();
            let arbiters = Arc::new(Arbiters::start(1));
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(
                &test.store,
                shared.clone(),
                &arbiters,
            ));
            taxpayers.send(ID, Onboard::sample(ID)).await.unwrap();
            let store = test.store.clone();
            let started_at = clock.now();
            let lift = QuarantineLift {
                store,
                taxpayers,
                clock: shared,
                started_at,
                lift_after: AFTER,
                last_run: Arc::default(),
            };
            Self {
                test,
                lift,
                clock,
                arbiters,
            }
        }

        /// Opens a run, counts crashes and panics for it with `change`, and stores it paused, as a quarantine does.
        async fn quarantine(&self, number: &str, change: impl Fn(Run) -> Run) -> RunId {
            let irn = Irn::parse(&format!("{number}-94AD90FB-20260115")).unwrap();
            let request = RunRequest::sample(irn.as_str(), Operation::Submit);
            let run = self
                .lift
                .taxpayers
                .send(ID, OpenRun(request))
                .await
                .unwrap();
            self.pause(change(run)).await
        }

        async fn pause(&self, run: Run) -> RunId {
            let pause = StepResult::Pause {
                error: run.progress.crash_history.quarantine_message().to_owned(),
            };
            let paused = run.after_step(Step::IrnCheck, &pause, self.clock.now());
            let tx = self.test.store.begin().await.unwrap();
            runs::save(&tx, &[&paused]).await.unwrap();
            tx.commit().await.unwrap();
            paused.id
        }

        async fn run(&self, id: RunId) -> Run {
            runs::find_owned_by_id(self.test.store.reader(), ID, id)
                .await
                .unwrap()
                .unwrap()
        }

        async fn states(&self, ids: &[RunId]) -> Vec<RunState> {
            let mut states = Vec::new();
            for id in ids {
                states.push(self.run(*id).await.state());
            }
            states
        }
    }

    #[actix::test]
    async fn only_what_crashes_quarantined_is_lifted_and_only_when_the_process_has_lived() {
        for test in stores().await {
            let fixture = Fixture::new(test).await;
            let crashed = |run: Run| run.after_crash().after_crash().after_crash();
            let ids = [
                fixture.quarantine("CRASHED", crashed).await,
                fixture
                    .quarantine("PANICKED", |run| run.after_panic().after_panic())
                    .await,
                fixture
                    .quarantine("BOTH", move |run| crashed(run).after_panic())
                    .await,
                fixture.quarantine("GIVENUP", Run::after_crash).await,
            ];
            let paused = RunState::Paused;
            fixture.clock.advance(Duration::from_mins(9));
            assert_eq!(fixture.lift.lift_due_quarantines().await.unwrap(), None);
            assert_eq!(
                fixture.states(&ids).await,
                [paused; 4],
                "the process may crash soon"
            );
            let late = fixture.quarantine("LATE", crashed).await;
            fixture.clock.advance(Duration::from_mins(1));
            fixture.lift.lift_due_quarantines().await.unwrap();
            assert_eq!(
                fixture.states(&ids).await,
                [RunState::Running, paused, paused, paused]
            );
            assert!(fixture.run(ids[0]).await.must_run_alone());
            assert_eq!(
                fixture.run(late).await.state(),
                paused,
                "another process crashed a minute ago"
            );
            fixture.clock.advance(Duration::from_mins(9));
            fixture.lift.lift_due_quarantines().await.unwrap();
            assert_eq!(fixture.run(late).await.state(), RunState::Running);
            fixture.arbiters.stop();
        }
    }

    #[actix::test]
    async fn runs_are_lifted_one_after_the_other() {
        for test in stores().await {
            let fixture = Fixture::new(test).await;
            let crashed = |run: Run| run.after_crash().after_crash().after_crash();
            let mut ids = Vec::new();
            for number in ["FIRST", "SECOND", "THIRD"] {
                ids.push(fixture.quarantine(number, crashed).await);
                fixture.clock.advance(Duration::from_secs(1));
            }
            fixture.clock.advance(Duration::from_mins(10));
            let running = RunState::Running;
            let paused = RunState::Paused;
            let moment = Duration::from_secs(1);
            let held_up = Duration::from_mins(2);
            // The time before each call, whether the first run has ended, and the states after the call.
            let calls = [
                (moment, false, [running, paused, paused]),
                (moment, false, [running, paused, paused]),
                (moment, true, [RunState::Cancelled, running, paused]),
                (moment, false, [RunState::Cancelled, running, paused]),
                (held_up, false, [RunState::Cancelled, running, running]),
            ];
            for (wait, has_ended, states) in calls {
                fixture.clock.advance(wait);
                if has_ended {
                    let ended = fixture.run(ids[0]).await.cancel(fixture.clock.now());
                    let tx = fixture.test.store.begin().await.unwrap();
                    runs::save(&tx, &[&ended]).await.unwrap();
                    tx.commit().await.unwrap();
                }
                let again = fixture.lift.lift_due_quarantines().await.unwrap();
                assert_eq!(again, Some(PAUSE), "{states:?}");
                assert_eq!(fixture.states(&ids).await, states);
            }
            fixture.clock.advance(held_up);
            assert_eq!(fixture.lift.lift_due_quarantines().await.unwrap(), None);
            fixture.arbiters.stop();
        }
    }

    #[actix::test]
    async fn a_run_that_crashes_again_after_its_lift_waits_for_an_operator() {
        for test in stores().await {
            let fixture = Fixture::new(test).await;
            let id = fixture
                .quarantine("FATAL", |run| run.after_crash().after_crash().after_crash())
                .await;
            fixture.clock.advance(Duration::from_mins(10));
            fixture.lift.lift_due_quarantines().await.unwrap();
            let again = fixture.run(id).await.after_crash();
            assert!(again.is_quarantined());
            fixture.pause(again).await;
            fixture.clock.advance(Duration::from_hours(48));
            fixture.lift.lift_due_quarantines().await.unwrap();
            assert_eq!(fixture.run(id).await.state(), RunState::Paused);
            fixture.arbiters.stop();
        }
    }
}
