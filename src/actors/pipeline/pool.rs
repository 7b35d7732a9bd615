//! Drives the runs that this process has leased, each in a supervised task. If a run cannot be driven, for example
//! because the database fails, its lease is released, and the run continues later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use database::StoreError;
use futures_util::FutureExt;
use supervision::{Arbiters, TaskEnd, Tree, hash_key, run_task};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::actors::dispatch::{Assignment, Dispatcher, DispatcherConfig, WorkStatus};
use crate::actors::kinds;
use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::runner::{PipelineDeps, RunStart};
use crate::store::lanes::Lease;

/// The active runs of this process.
pub struct RunPool {
    deps: Arc<PipelineDeps>,
    tree: Tree,
    arbiters: Arc<Arbiters>,
    tasks: TaskTracker,
    /// The worker slots of the dispatcher that claims runs for this pool. Set when the dispatcher is made.
    slots: OnceLock<Arc<Semaphore>>,
    is_closed: Arc<AtomicBool>,
}

impl RunPool {
    pub fn new(deps: PipelineDeps, tree: &Tree, arbiters: &Arc<Arbiters>) -> Arc<Self> {
        let tree = tree.clone();
        let arbiters = Arc::clone(arbiters);
        let deps = Arc::new(deps);
        Arc::new(Self {
            deps,
            tree,
            arbiters,
            tasks: TaskTracker::new(),
            slots: OnceLock::new(),
            is_closed: Arc::default(),
        })
    }

    /// Returns the dispatcher that claims runs for this pool.
    pub fn dispatcher(self: &Arc<Self>, config: DispatcherConfig) -> Dispatcher {
        let authority = self.deps.authority.clone();
        let paused = self.deps.taxpayers.paused_taxpayers().clone();
        let probed = authority.clone();
        let unprobed = paused.clone();
        let working = Arc::clone(self);
        let counting = Arc::clone(&self.deps);
        let dispatcher = Dispatcher::new(self.deps.store.clone(), config, move |assignment| {
            let pool = Arc::clone(&working);
            async move { pool.drive(assignment).await }.boxed_local()
        })
        .with_blocked_steps(move || blocked_steps::list(&authority, &paused.list()))
        .with_due_probes(move || blocked_steps::list_due_probes(&probed, &unprobed.list()))
        .with_last_taxpayer(&self.deps.measurements.last_taxpayer)
        .with_crash_counter(move |crashed| {
            let deps = Arc::clone(&counting);
            async move { deps.record_crashes(&crashed).await }.boxed_local()
        });
        self.slots.get_or_init(|| dispatcher.slots());
        dispatcher
    }

    async fn drive(&self, Assignment { lease, turn }: Assignment) -> WorkStatus {
        if self.is_closed.load(Ordering::SeqCst) {
            return WorkStatus::Unfinished;
        }
        let (shard, arbiter) = self.arbiters.for_key(hash_key(&lease.key));
        let node = self
            .tree
            .add_node(kinds::PIPELINE, shard, lease.key.as_str());
        let deps = Arc::clone(&self.deps);
        let is_closed = Arc::clone(&self.is_closed);
        let held = lease.clone();
        let ended = run_task(arbiter, node, move |node| async move {
            let start = RunStart {
                lease: &held,
                node: &node,
                turn,
            };
            Box::pin(deps.drive(start, &is_closed)).await
        });
        match self.tasks.track_future(ended).await {
            TaskEnd::Returned(Ok(status)) => status,
            TaskEnd::Returned(Err(stop)) if stop.is_stale() => WorkStatus::Released,
            TaskEnd::Returned(Err(stop)) => {
                tracing::warn!(lane = lease.key, error = %stop, "failed to drive a run; will retry");
                WorkStatus::Unfinished
            }
            // After the second panic the run is quarantined.
            TaskEnd::Panicked => count_panic(&self.deps, &lease).await,
            TaskEnd::Stopped => WorkStatus::Released,
        }
    }

    /// Starts no further runs, and claims none, so that other replicas get them at once. The task of each active run
    /// stops after its current call.
    pub fn close(&self) {
        if let Some(slots) = self.slots.get() {
            slots.close();
        }
        self.is_closed.store(true, Ordering::SeqCst);
        self.tasks.close();
    }

    /// Waits until no run is active, but at most `max_wait`. Returns false if a run is still active then. Call `close`
    /// first.
    pub async fn drain(&self, max_wait: Duration) -> bool {
        timeout(max_wait, self.tasks.wait()).await.is_ok()
    }
}

/// Counts a panic of a run. If that fails, the run stays leased until the lease expires, so that it does not panic
/// again at once.
async fn count_panic(deps: &PipelineDeps, lease: &Lease) -> WorkStatus {
    match deps.count_panic(lease).await {
        Ok(()) => WorkStatus::Unfinished,
        Err(StoreError::Stale) => WorkStatus::Released,
        Err(error) => {
            tracing::warn!(lane = lease.key, %error, "failed to count a panic; will retry");
            WorkStatus::Released
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::actors::dispatch::IsolationTurns;
    use crate::actors::taxpayer::commands::{Onboard, OpenRun};
    use crate::actors::taxpayer::handle::TaxpayerHandle;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::{RunId, TaxpayerId};
    use crate::domain::pipeline::{Operation, Run, RunRequest, RunState, Step, StepRecord};
    use crate::store::Store;
    use crate::store::lanes::abandoned::LanesWithEndedLease;
    use crate::store::lanes::claim::{self, ClaimRequest, ClaimableLanes, FairShare, ROUND_START};
    use crate::store::lanes::{self, LaneKind, LeasedLane, WaitingLanes};
    use crate::store::runs;
    use crate::store::runs::step_log::{StepAttempt, log_attempts, newest_steps};
    use crate::store::testing::{claim_due, stores};
    use authority_client::testing::authority;
    use authority_client::{Operation as AuthorityOperation, RetryPolicy};
    use jiff::Timestamp;
    use sea_orm::{ConnectionTrait, Statement};
    use supervision::install_hook;
    use timing::clock::{Clock, SharedClock, SystemClock};
    use uuid::Uuid;

    const ID: TaxpayerId = TaxpayerId(1);
    const LEASE: Duration = Duration::from_secs(30);

    /// A clock whose first calls panic. The number says how many calls.
    struct PanickingClock(AtomicUsize);

    impl Clock for PanickingClock {
        fn now(&self) -> Timestamp {
            let left = self
                .0
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                });
            assert!(left.is_err(), "the clock is broken");
            SystemClock.now()
        }
    }

    /// A pool with one open run, whose lane is leased.
    struct Fixture<'a> {
        store: &'a Store,
        pool: Arc<RunPool>,
        tree: Tree,
        arbiters: Arc<Arbiters>,
        run: RunId,
        lease: Lease,
    }

    impl<'a> Fixture<'a> {
        /// Opens the run. The first `panics` calls of the pool's clock panic.
        async fn new(store: &'a Store, panics: usize) -> Self {
            let arbiters = Arc::new(Arbiters::start(1));
            let clock: SharedClock = Arc::new(SystemClock);
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(store, clock.clone(), &arbiters));
            taxpayers.send(ID, Onboard::sample(ID)).await.unwrap();
            let irn = Irn::parse("INV1-94AD90FB-20260115").unwrap();
            let request = RunRequest::sample(irn.as_str(), Operation::Submit);
            let run = taxpayers.send(ID, OpenRun(request)).await.unwrap().id;
            let lease = claim_due(store, LaneKind::Run, "me", LEASE, 1)
                .await
                .unwrap()
                .remove(0);
            let second = Duration::from_secs(1);
            let deps = PipelineDeps {
                store: store.clone(),
                taxpayers,
                authority: authority("http://127.0.0.1:9", clock.clone()),
                keys: None,
                retry: RetryPolicy {
                    initial: second,
                    max: second,
                    give_up_after: second,
                },
                clock: Arc::new(PanickingClock(AtomicUsize::new(panics))),
                measurements: Arc::default(),
                incidents: Arc::default(),
                durations: Arc::default(),
            };
            let tree = Tree::new(clock, kinds::ALL);
            let pool = RunPool::new(deps, &tree, &arbiters);
            Self {
                store,
                pool,
                tree,
                arbiters,
                run,
                lease,
            }
        }

        async fn stored_run(&self) -> Run {
            runs::find_owned_by_id(self.store.reader(), ID, self.run)
                .await
                .unwrap()
                .unwrap()
        }

        /// Returns the number of notices that an invoice failed, which are mailed to the people of the account.
        async fn failure_notices(&self) -> i64 {
            let count = "SELECT COUNT(*) AS count FROM notices WHERE kind = 'invoice-failed'";
            let count = Statement::from_string(self.store.backend(), count);
            let row = self.store.reader().query_one_raw(count).await.unwrap();
            row.unwrap().try_get("", "count").unwrap()
        }

        /// Counts a crash of the process that held the lane. Returns the leases whose runs go on now.
        async fn count_crash(&self, lease: &Lease) -> Vec<Lease> {
            let crashed = LeasedLane {
                lease: lease.clone(),
                crashes: 1,
                working_on: None,
            };
            self.pool.deps.record_crashes(&[crashed]).await.unwrap()
        }

        /// Claims the run's lane if it goes alone.
        async fn claim_isolated(&self) -> Option<Lease> {
            let request = ClaimRequest {
                kind: LaneKind::Run,
                owner: "me",
                lease: LEASE,
                limit: 1,
                after_taxpayer: ROUND_START,
                blocked: &[],
                share: FairShare::without_limits(),
            };
            let isolated = ClaimableLanes::Ended(LanesWithEndedLease::Isolated);
            let claimed = claim::claim(self.store, isolated, &request).await.unwrap();
            claimed.lanes.into_iter().next().map(|one| one.lane.lease)
        }
    }

    #[actix::test]
    async fn a_run_that_was_in_flight_at_two_crashes_is_driven_only_in_its_turn() {
        for test in stores().await {
            let fixture = Fixture::new(&test.store, 0).await;
            let lease = fixture.lease.clone();
            assert_eq!(
                fixture.count_crash(&lease).await.len(),
                1,
                "after one it goes on at once"
            );
            assert_eq!(
                fixture.count_crash(&lease).await,
                [],
                "after two it is released to go alone"
            );
            let lease = fixture.claim_isolated().await.unwrap();
            assert_eq!(fixture.pool.drive(lease.into()).await, WorkStatus::Released);
            assert_eq!(
                fixture.stored_run().await.progress.attempt,
                0,
                "nothing is called without the turn"
            );
            let lease = fixture.claim_isolated().await.unwrap();
            let turn = IsolationTurns::default().take().await;
            let alone = Assignment {
                lease: lease.clone(),
                turn,
            };
            assert_eq!(fixture.pool.drive(alone).await, WorkStatus::Released);
            let tried = fixture.stored_run().await;
            assert_eq!(
                (tried.state(), tried.progress.attempt),
                (RunState::Waiting, 1),
                "{tried:?}"
            );
            fixture.arbiters.stop();
        }
    }

    #[actix::test]
    async fn a_waiting_run_whose_call_is_held_back_goes_back_and_stores_nothing() {
        for test in stores().await {
            let fixture = Fixture::new(&test.store, 0).await;
            let authority = &fixture.pool.deps.authority;
            let drive_again = async || {
                lanes::make_waiting_due(fixture.store, WaitingLanes::All)
                    .await
                    .unwrap();
                let lease = claim_due(fixture.store, LaneKind::Run, "me", LEASE, 1)
                    .await
                    .unwrap()
                    .remove(0);
                let status = fixture.pool.drive(lease.into()).await;
                assert_eq!(status, WorkStatus::Released);
                let calls = newest_steps(fixture.store, ID, fixture.run).await.unwrap();
                let outcomes = calls.into_iter().filter_map(|call| call.outcome);
                outcomes.collect::<Vec<_>>()
            };
            let lease = fixture.lease.clone();
            assert_eq!(fixture.pool.drive(lease.into()).await, WorkStatus::Released);
            let failed = fixture.stored_run().await;
            authority.trip_breaker(AuthorityOperation::ValidateIrn);
            for _ in 0..3 {
                assert_eq!(drive_again().await, ["retry"]);
                assert_eq!(fixture.stored_run().await, failed);
            }
            authority.reset_breaker(AuthorityOperation::ValidateIrn);
            assert_eq!(drive_again().await.len(), 2);
            fixture.arbiters.stop();
        }
    }

    #[actix::test]
    async fn a_call_that_a_crash_cut_off_says_so_when_the_run_goes_on() {
        for test in stores().await {
            let fixture = Fixture::new(&test.store, 0).await;
            let now = SystemClock.now();
            let begun = fixture.stored_run().await.begin_attempt(Step::Sign, now);
            let call = StepAttempt {
                taxpayer: ID,
                id: Uuid::from_u128(1),
                run: fixture.run,
                record: StepRecord {
                    step: Step::Sign,
                    attempt: 1,
                    outcome: None,
                    started_at: now,
                    duration_ms: None,
                    error: None,
                    failure: None,
                },
            };
            let tx = test.store.begin().await.unwrap();
            runs::save(&tx, &[&begun]).await.unwrap();
            log_attempts(&tx, &[&call]).await.unwrap();
            tx.commit().await.unwrap();
            let lease = fixture.lease.clone();
            assert_eq!(fixture.pool.drive(lease.into()).await, WorkStatus::Released);
            let calls = newest_steps(fixture.store, ID, fixture.run).await.unwrap();
            let outcomes: Vec<_> = calls.iter().map(|call| call.outcome.as_deref()).collect();
            assert_eq!(outcomes, [Some("interrupted"), Some("retry")]);
            fixture.arbiters.stop();
        }
    }

    #[actix::test]
    async fn a_run_that_was_in_flight_at_three_crashes_is_quarantined_without_a_turn() {
        for test in stores().await {
            let fixture = Fixture::new(&test.store, 0).await;
            let mut lease = fixture.lease.clone();
            for crashes in 1..=3 {
                let going_on = fixture.count_crash(&lease).await;
                assert_eq!(
                    fixture.stored_run().await.progress.crash_history.crashes,
                    crashes
                );
                if going_on.is_empty() {
                    lease = fixture.claim_isolated().await.unwrap();
                }
            }
            assert_eq!(fixture.pool.drive(lease.into()).await, WorkStatus::Released);
            let stored = fixture.stored_run().await;
            let reason = stored.progress.crash_history.quarantine_message();
            assert_eq!(
                (stored.state(), stored.last_error.as_deref()),
                (RunState::Paused, Some(reason))
            );
            assert!(stored.progress.crash_history.may_lift_quarantine());
            assert_eq!(fixture.failure_notices().await, 0, "it is tried once more");
            fixture.arbiters.stop();
        }
    }

    #[actix::test]
    async fn a_run_that_panics_twice_is_quarantined_at_its_third_start() {
        install_hook();
        for test in stores().await {
            let fixture = Fixture::new(&test.store, 2).await;
            let Fixture {
                pool, tree, lease, ..
            } = &fixture;
            for panics in [1, 2] {
                assert_eq!(
                    pool.drive(lease.clone().into()).await,
                    WorkStatus::Unfinished
                );
                let stored = fixture.stored_run().await;
                let CrashHistory {
                    panics: counted,
                    crashes,
                    ..
                } = stored.progress.crash_history;
                assert_eq!(
                    (counted, crashes, stored.state()),
                    (panics, 0, RunState::Running)
                );
            }
            assert_eq!(pool.drive(lease.clone().into()).await, WorkStatus::Released);
            let stored = fixture.stored_run().await;
            assert_eq!(stored.state(), RunState::Paused);
            assert_eq!(
                stored.last_error.as_deref(),
                Some(stored.progress.crash_history.quarantine_message())
            );
            assert!(
                !stored.progress.crash_history.may_lift_quarantine(),
                "a panic names its work"
            );
            assert_eq!(fixture.failure_notices().await, 1);
            assert_eq!(
                (tree.counters().snapshot().panics, tree.node_count()),
                (2, 0)
            );
            pool.close();
            assert!(pool.drain(Duration::ZERO).await);
            fixture.arbiters.stop();
        }
    }
}
