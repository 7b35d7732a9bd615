//! Releases work that is in quarantine only because processes crashed. If processes are killed in quick succession,
//! work that did not cause it is quarantined, too. So once a process has lived for a while, quarantined work is tried
//! once more, alone. Work that really crashes processes is quarantined again by its next crash, and then only an
//! operator can release it.

use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use timing::clock::SharedClock;

use crate::actors::taxpayer::commands::{LiftRun, StoppedRun};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::store::Store;
use crate::store::runs;
use crate::store::webhooks::crashed_deliveries;

/// The longest time between two searches for work to release.
pub const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The maximum number of runs, and of deliveries, that one call releases.
const LIFTED_PER_CALL_MAX: u64 = 100;
/// The pause before the next call if there may be more to release.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct QuarantineLift {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub clock: SharedClock,
    /// The time at which this process started.
    pub started_at: Timestamp,
    /// Work is released when it has been in quarantine for this long and this process has lived for this long.
    pub lift_after: SignedDuration,
}

impl QuarantineLift {
    /// Releases the work that has been in quarantine for long enough. Returns the pause before the next call if there
    /// may be more to release, else `None`.
    pub async fn lift_due_quarantines(&self) -> Result<Option<Duration>, StoreError> {
        let now = self.clock.now();
        let since = now - self.lift_after;
        if since < self.started_at {
            return Ok(None);
        }
        let runs = self.lift_runs(since).await?;
        let deliveries =
            crashed_deliveries::lift_quarantine(&self.store, since, LIFTED_PER_CALL_MAX, now)
                .await?;
        if runs + deliveries > 0 {
            tracing::info!(
                runs,
                deliveries,
                "lifted the quarantine of work that only crashes had caused"
            );
        }
        let is_full =
            |count: usize| u64::try_from(count).is_ok_and(|count| count >= LIFTED_PER_CALL_MAX);
        Ok((is_full(runs) || is_full(deliveries)).then_some(PAUSE))
    }

    /// Releases runs and returns their number. A run that cannot be released now is left to the next call.
    async fn lift_runs(&self, since: Timestamp) -> Result<usize, StoreError> {
        let mut lifted = 0;
        for run in
            runs::find_with_liftable_quarantine(&self.store, since, LIFTED_PER_CALL_MAX).await?
        {
            let taxpayer = run.taxpayer_id;
            let id = run.id;
            let stopped = StoppedRun {
                run: id,
                irn: run.irn,
                seen_updated_at: run.updated_at,
            };
            match self.taxpayers.send(taxpayer, LiftRun(stopped)).await {
                Ok(_) => lifted += 1,
                Err(TaxpayerError::Store(error)) => return Err(error),
                Err(error) => {
                    tracing::warn!(%taxpayer, run = %id, %error, "failed to lift a run's quarantine; will retry");
                }
            }
        }
        Ok(lifted)
    }
}

#[cfg(test)]
mod tests {
    use supervision::Arbiters;
    use timing::clock::{Clock, MockClock};

    use super::*;
    use crate::actors::taxpayer::commands::{Onboard, OpenRun};
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::ids::{RunId, TaxpayerId};
    use crate::domain::pipeline::{Operation, Run, RunRequest, RunState, Step, StepResult};
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
            let paused = run.after(Step::IrnCheck, &pause, self.clock.now());
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
