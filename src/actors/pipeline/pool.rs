//! Drives the runs whose lanes this process holds: a supervised task for each run. If a run cannot be driven, for
//! example because the database fails, its lane is released and the run continues later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::time::sleep;

use crate::actors::dispatch::{Assignment, Dispatcher, DispatcherConfig, WorkStatus, run_in_turn};
use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::runner::{PipelineDeps, RunStart};
use crate::actors::supervision::task::{TaskEnd, run_task};
use crate::actors::supervision::{Arbiters, NodeKind, Tree, hash_of};
use crate::store::db::error::StoreError;
use crate::store::lanes::Lease;

/// The active runs of this process.
pub struct RunPool {
    deps: Arc<PipelineDeps>,
    tree: Tree,
    arbiters: Arc<Arbiters>,
    active: AtomicUsize,
    is_closed: Arc<AtomicBool>,
}

impl RunPool {
    pub fn new(deps: PipelineDeps, tree: &Tree, arbiters: &Arc<Arbiters>) -> Arc<Self> {
        let (tree, arbiters, deps) = (tree.clone(), Arc::clone(arbiters), Arc::new(deps));
        Arc::new(Self { deps, tree, arbiters, active: AtomicUsize::new(0), is_closed: Arc::default() })
    }

    /// Returns the dispatcher that sends leased lanes to this pool.
    pub fn dispatcher(self: &Arc<Self>, config: DispatcherConfig) -> Dispatcher {
        let authority = self.deps.authority.clone();
        let (working, counting) = (Arc::clone(self), Arc::clone(&self.deps));
        Dispatcher::new(self.deps.store.clone(), config, move |assignment| {
            let pool = Arc::clone(&working);
            async move { pool.drive(assignment).await }.boxed_local()
        })
        .with_blocked_steps(move || blocked_steps::list(&authority))
        .with_crash_counter(move |crashed| {
            let deps = Arc::clone(&counting);
            async move { deps.count_crashes(&crashed).await }.boxed_local()
        })
    }

    async fn drive(&self, Assignment { lease, turn }: Assignment) -> WorkStatus {
        if self.is_closed.load(Ordering::SeqCst) {
            return WorkStatus::Unfinished;
        }
        let (shard, arbiter) = self.arbiters.for_key(hash_of(&lease.key));
        let node = self.tree.node(NodeKind::Pipeline, shard, lease.key.as_str());
        let (deps, is_closed, held) = (Arc::clone(&self.deps), Arc::clone(&self.is_closed), lease.clone());
        self.active.fetch_add(1, Ordering::SeqCst);
        let ended = run_task(arbiter, node, move |node| async move {
            let has_turn = turn.is_some();
            run_in_turn(turn, deps.drive(RunStart { lease: &held, node: &node, has_turn }, &is_closed)).await
        })
        .await;
        self.active.fetch_sub(1, Ordering::SeqCst);
        match ended {
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

    /// Takes no further runs. Each active run ends after the call that it is making.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Waits until no run is active, but at most `timeout`. Returns false if runs were still active at the timeout.
    pub async fn drain(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        while self.active.load(Ordering::SeqCst) > 0 {
            if start.elapsed() >= timeout {
                return false;
            }
            sleep(Duration::from_millis(10)).await;
        }
        true
    }
}

/// Counts a panic for the lane's run. If counting fails, the lane keeps its lease until the lease expires, because the
/// run must not continue uncounted.
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

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::actors::supervision::panics;
    use crate::actors::taxpayer::command::Onboarding;
    use crate::actors::taxpayer::handle::TaxpayerHandle;
    use crate::authority::RetryPolicy;
    use crate::authority::testing::authority;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::kernel::clock::{Clock, SharedClock, SystemClock};
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::{Operation, RunRequest, RunState};
    use crate::store::lanes::LaneKind;
    use crate::store::runs;
    use crate::store::testing::{claim_due, stores};

    const ID: TaxpayerId = TaxpayerId(1);
    const LEASE: Duration = Duration::from_secs(30);

    /// A clock that panics as often as the number says.
    struct PanickingClock(AtomicUsize);

    impl Clock for PanickingClock {
        fn now(&self) -> Timestamp {
            let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            assert!(left.is_err(), "the clock is broken");
            SystemClock.now()
        }
    }

    #[actix::test]
    async fn a_run_that_panics_twice_is_quarantined_at_its_third_start() {
        panics::install_hook();
        for test in stores().await {
            let (store, arbiters) = (&test.store, Arc::new(Arbiters::start(1)));
            let clock: SharedClock = Arc::new(SystemClock);
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(store, clock.clone(), &arbiters));
            taxpayers.onboard(ID, Onboarding::sample(ID)).await.unwrap();
            let irn = Irn::parse("INV1-94AD90FB-20260115").unwrap();
            let request = RunRequest { operation: Operation::Submit, document: json!({ "irn": irn }), irn };
            let run = taxpayers.open_run(ID, request).await.unwrap();
            let lease = claim_due(store, LaneKind::Run, "me", LEASE, 1).await.unwrap().remove(0);
            let second = Duration::from_secs(1);
            let deps = PipelineDeps {
                store: store.clone(),
                taxpayers,
                authority: authority("http://127.0.0.1:9", clock.clone()),
                keys: None,
                retry: RetryPolicy { initial: second, max: second, give_up_after: second },
                clock: Arc::new(PanickingClock(AtomicUsize::new(2))),
                throughput: Arc::default(),
                incidents: Arc::default(),
                durations: Arc::default(),
            };
            let tree = Tree::new(clock);
            let pool = RunPool::new(deps, &tree, &arbiters);
            for panics in [1, 2] {
                assert_eq!(pool.drive(lease.clone().into()).await, WorkStatus::Unfinished);
                let stored = runs::owned_by_with_id(store.reader(), ID, run.id).await.unwrap().unwrap();
                let CrashHistory { panics: counted, crashes, .. } = stored.crash_history;
                assert_eq!((counted, crashes, stored.state), (panics, 0, RunState::Running));
            }
            assert_eq!(pool.drive(lease.clone().into()).await, WorkStatus::Released);
            let stored = runs::owned_by_with_id(store.reader(), ID, run.id).await.unwrap().unwrap();
            assert_eq!(stored.state, RunState::Paused);
            assert_eq!(stored.last_error.as_deref(), Some(stored.crash_history.reason()));
            assert!(!stored.crash_history.may_be_lifted(), "a panic names its work");
            assert_eq!((tree.counters().snapshot().panics, tree.count()), (2, 0));
            assert!(pool.drain(Duration::ZERO).await);
            arbiters.stop();
        }
    }
}
