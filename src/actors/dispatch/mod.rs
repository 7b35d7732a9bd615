//! Claims due lanes, fairly between taxpayers and up to a concurrency limit. A lane is the row that schedules a piece
//! of work and is its lock and lease. Hands each claimed lane to its worker, and renews the leases of active lanes.
//! A lost timer or notification only delays work.
//!
//! | File | Content |
//! |---|---|
//! | `active_leases` | the lanes that are active in this process |
//! | `blocked` | the steps that are blocked, and one lane at a time for the probe of a step |
//! | `direct` | direct dispatch: a lane is leased in the transaction that creates its work |
//! | `isolation` | work that was in flight at two crashes, which must begin alone |
//! | `probe_claims` | the probes that are due, and when lanes are claimed for them |
//! | `recovery` | takes over the lanes of processes that crashed |
//! | `work` | dispatchers for lanes whose work is a plain function |

mod active_leases;
mod blocked;
mod direct;
mod isolation;
mod probe_claims;
mod recovery;
mod work;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use futures_util::future::LocalBoxFuture;
use supervision::{Arbiters, NodeKind, RestartPolicy, Tree, supervise};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use self::active_leases::ActiveLeases;
pub use self::direct::{DirectDispatch, ReservedSlot};
use self::direct::{DirectLane, DirectLanes};
pub use self::isolation::{IsolationTurn, IsolationTurns, run_in_turn};
use self::probe_claims::ProbeClaims;
use self::recovery::CountCrashes;
pub use self::work::release_lane;

use database::StoreError;

use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::lanes::claim::{self, ClaimRequest, ClaimableLanes, ClaimedLane, FairShare};
use crate::store::lanes::fair_queue::BlockedStep;
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::lanes::{LaneKind, Lease};

/// The longest pause after a claim that found lanes. The pause lets the next claim find several due lanes instead of
/// one.
const PAUSE_AFTER_CLAIM_MAX: Duration = Duration::from_millis(50);
/// If the work of a lane could not be finished, the lane is due again after this delay.
const DELAY_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// If the work of a lane panicked, the lane is due again after this delay.
const DELAY_AFTER_PANIC: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkStatus {
    Released,
    /// The lane is still held and has more work now.
    More,
    Unfinished,
    /// The work panicked. Its lane rests longer, because the next attempt will probably panic, too.
    Panicked,
}

type ListBlockedSteps = Arc<dyn Fn() -> Vec<BlockedStep> + Send + Sync>;
type Handoff = Arc<dyn Fn(Assignment) -> LocalBoxFuture<'static, WorkStatus> + Send + Sync>;

/// A leased lane on its way to its worker.
#[derive(Debug)]
pub struct Assignment {
    pub lease: Lease,
    /// The turn of isolated work, which must begin alone (`isolation`); `None` for all other work.
    pub turn: Option<IsolationTurn>,
}

impl From<Lease> for Assignment {
    fn from(lease: Lease) -> Self {
        Self { lease, turn: None }
    }
}

#[derive(Clone)]
pub struct DispatcherConfig {
    pub kind: LaneKind,
    /// The id under which this process holds leases.
    pub owner: String,
    pub lease: Duration,
    /// The maximum number of lanes whose work this dispatcher lets run at the same time.
    pub concurrency_max: usize,
    /// The maximum number of lanes claimed in one statement.
    pub claim_max: usize,
    /// The dispatcher claims at this interval if no notification arrives.
    pub poll: Duration,
    pub wake: Arc<Notify>,
}

/// Dispatches the lanes of one kind.
#[derive(Clone)]
pub struct Dispatcher {
    store: Store,
    config: DispatcherConfig,
    slots: Arc<Semaphore>,
    active_leases: ActiveLeases,
    /// Receives the lanes that a transaction of this process has already leased for this dispatcher.
    arrivals: Option<Arc<tokio::sync::Mutex<DirectLanes>>>,
    handoff: Handoff,
    record_crashes: CountCrashes,
    turns: IsolationTurns,
    list_blocked: ListBlockedSteps,
    probes: ProbeClaims,
    /// The steps that were blocked at the last claim.
    blocked: Arc<Mutex<Vec<BlockedStep>>>,
    /// The id of the taxpayer that was served last. The next claim begins with the taxpayer after it.
    last_taxpayer: Arc<AtomicI64>,
}

impl Dispatcher {
    /// Creates a dispatcher. `handoff` sends a lane to its worker and completes when the worker is done with the lane.
    pub fn new<F>(store: Store, config: DispatcherConfig, handoff: F) -> Self
    where
        F: Fn(Assignment) -> LocalBoxFuture<'static, WorkStatus> + Send + Sync + 'static,
    {
        let slots = Arc::new(Semaphore::new(config.concurrency_max));
        Self {
            record_crashes: recovery::lane_crash_counter(store.clone()),
            turns: IsolationTurns::default(),
            store,
            config,
            slots,
            active_leases: ActiveLeases::default(),
            arrivals: None,
            handoff: Arc::new(handoff),
            list_blocked: Arc::new(Vec::new),
            probes: ProbeClaims::default(),
            blocked: Arc::default(),
            last_taxpayer: Arc::new(AtomicI64::new(claim::ROUND_START)),
        }
    }

    /// Makes the dispatcher skip each lane whose next step is among the steps that `blocked` returns at the time of the
    /// claim.
    #[must_use]
    pub fn with_blocked_steps(
        self,
        blocked: impl Fn() -> Vec<BlockedStep> + Send + Sync + 'static,
    ) -> Self {
        Self {
            list_blocked: Arc::new(blocked),
            ..self
        }
    }

    /// Makes the dispatcher keep the id of the taxpayer that it served last in `last_taxpayer`, where others can read
    /// it.
    #[must_use]
    pub fn with_last_taxpayer(self, last_taxpayer: &Arc<AtomicI64>) -> Self {
        Self {
            last_taxpayer: Arc::clone(last_taxpayer),
            ..self
        }
    }

    /// Makes the dispatcher also accept the lanes that transactions of this process lease and send through `handover`.
    #[must_use]
    pub fn with_direct_dispatch(self, handover: &DirectDispatch) -> Self {
        let arrivals = handover.connect_dispatcher(
            &self.config.owner,
            self.config.lease,
            &self.slots,
            &self.blocked,
        );
        Self {
            arrivals: Some(Arc::new(tokio::sync::Mutex::new(arrivals))),
            probes: self
                .probes
                .with_blocked_lane_times(handover.blocked_lane_times()),
            ..self
        }
    }

    /// Returns the worker slots. Closing the semaphore ends the claims; the lanes that were handed out keep their
    /// slots, and their leases are renewed.
    pub fn slots(&self) -> Arc<Semaphore> {
        Arc::clone(&self.slots)
    }

    /// Starts the dispatcher under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters, kind: NodeKind) -> Addr<DispatcherActor> {
        let node = tree.add_node(kind, 0, format!("{}-dispatcher", self.config.kind.as_str()));
        supervise(
            arbiters.background(),
            node,
            RestartPolicy::default(),
            |ctx| DispatcherActor {
                dispatcher: self,
                _address: ctx.address(),
            },
        )
    }

    /// Claims due lanes and hands them to their workers. Returns the number of claimed lanes.
    pub async fn dispatch_due(&self) -> Result<usize, StoreError> {
        let blocked = self.refresh_blocked_steps().await?;
        let permits = self.slots.available_permits();
        let free = permits.min(self.config.claim_max);
        if free == 0 {
            return Ok(0);
        }
        // Acquires the slots before the claim, so that there is a slot for every claimed lane.
        let wanted = u32::try_from(free).unwrap_or(u32::MAX);
        let Ok(mut slots) = Arc::clone(&self.slots).try_acquire_many_owned(wanted) else {
            return Ok(0);
        };
        let probing = self.claim_for_probes(free).await?;
        let probe_count = probing.len();
        self.hand_to_workers(probing, &mut slots);
        let request = self.claim_request(free - probe_count, &blocked);
        if request.limit == 0 {
            return Ok(probe_count);
        }
        let taken = claim::claim(&self.store, ClaimableLanes::Due, &request).await?;
        if let Some(last) = taken.last_taxpayer {
            self.last_taxpayer.store(last, Ordering::Relaxed);
        }
        let count = probe_count + taken.lanes.len();
        self.hand_to_workers(taken.lanes, &mut slots);
        Ok(count)
    }

    /// Hands each claimed lane to its worker, with one of these slots.
    fn hand_to_workers(&self, lanes: Vec<ClaimedLane>, slots: &mut OwnedSemaphorePermit) {
        for claimed in lanes {
            self.hand_to_worker(
                claimed.lane.lease.into(),
                Some(claimed.taxpayer_id),
                slots.split(1),
            );
        }
    }

    fn claim_request<'a>(&'a self, limit: usize, blocked: &'a [BlockedStep]) -> ClaimRequest<'a> {
        ClaimRequest {
            kind: self.config.kind,
            owner: &self.config.owner,
            lease: self.config.lease,
            limit,
            after_taxpayer: self.last_taxpayer.load(Ordering::Relaxed),
            blocked,
            share: self.fair_share(),
        }
    }

    fn fair_share(&self) -> FairShare {
        let held = self.active_leases.counts_by_taxpayer();
        let mut held_by_integrator = HashMap::new();
        for (taxpayer, count) in &held {
            // Each integrator is in memory: it was read when the lane was claimed or worked on.
            if let Some(integrator) = self.store.known_payer(TaxpayerId(*taxpayer)) {
                *held_by_integrator.entry(integrator).or_default() += count;
            }
        }
        let integrator_max = integrator_lanes_max(self.config.concurrency_max);
        FairShare {
            taxpayer_max: taxpayer_lanes_max(self.config.concurrency_max),
            held,
            integrator_max,
            held_by_integrator,
        }
    }

    fn hand_to_worker(
        &self,
        assignment: Assignment,
        taxpayer: Option<i64>,
        slot: Option<OwnedSemaphorePermit>,
    ) {
        let lease = assignment.lease.clone();
        let hold = self.active_leases.mark_active(&lease, taxpayer);
        let dispatcher = self.clone();
        let work = (self.handoff)(assignment);
        actix_rt::spawn(async move {
            let _at_work = (hold, slot);
            let handled = work.await;
            dispatcher.release_unfinished(&lease, handled).await;
        });
    }

    /// Releases the lane if its work could not be finished. The lane is then due again after a delay.
    async fn release_unfinished(&self, lease: &Lease, handled: WorkStatus) {
        let delay = match handled {
            WorkStatus::Released | WorkStatus::More => return,
            WorkStatus::Unfinished => DELAY_AFTER_FAILURE,
            WorkStatus::Panicked => DELAY_AFTER_PANIC,
        };
        if let Err(error) = release(&self.store, lease, delay).await {
            tracing::warn!(lane = lease.key, %error, "failed to release a lane; its lease will expire");
        }
    }

    /// Hands each directly dispatched lane to its worker, until this future is dropped.
    async fn receive_direct_lanes(self) {
        let Some(arrivals) = &self.arrivals else {
            return;
        };
        let mut arrivals = arrivals.lock().await;
        while let Some(DirectLane {
            lease,
            taxpayer,
            slot,
        }) = arrivals.recv().await
        {
            self.hand_to_worker(lease.into(), taxpayer, Some(slot));
        }
    }

    async fn renew_leases(&self) -> Result<(), StoreError> {
        let held = self.active_leases.leases();
        leases::renew(&self.store, &held, self.config.lease).await
    }

    /// Claims due lanes and renews leases in a loop, until this future is dropped.
    async fn run(self) {
        let mut renewed = Instant::now();
        loop {
            let begun = Instant::now();
            let handed_out = self.dispatch_due().await.unwrap_or_else(|error| {
                tracing::warn!(kind = self.config.kind.as_str(), %error, "failed to claim due lanes; will retry");
                0
            });
            if renewed.elapsed() > self.config.lease / 3 {
                match self.renew_leases().await {
                    Ok(()) => renewed = Instant::now(),
                    Err(error) => tracing::warn!(%error, "failed to renew leases; will retry"),
                }
            }
            if handed_out == 0 || self.slots.available_permits() == 0 {
                // A notification and a timeout are treated alike: the next loop claims.
                let notified = self.config.wake.notified();
                let _ = timeout(self.config.poll, notified).await;
            } else {
                // Waits a little, so that the next claim takes several lanes. Each claim commits, which delays other
                // writers.
                sleep(begun.elapsed().min(PAUSE_AFTER_CLAIM_MAX)).await;
            }
        }
    }
}

/// Returns how many lanes one taxpayer may have active: seven eighths of all, so that other taxpayers are served.
fn taxpayer_lanes_max(concurrency_max: usize) -> usize {
    (concurrency_max - concurrency_max.div_ceil(8)).max(1)
}

/// Returns how many lanes one integrator may have active with all its taxpayers together: 31 of 32, so that a system
/// with a single integrator loses little.
fn integrator_lanes_max(concurrency_max: usize) -> usize {
    (concurrency_max - concurrency_max.div_ceil(32)).max(1)
}

async fn release(store: &Store, lease: &Lease, delay: Duration) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    leases::release(&tx, &[LaneRelease::new(lease, Some(delay))]).await?;
    tx.commit().await
}

pub struct DispatcherActor {
    dispatcher: Dispatcher,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

impl Actor for DispatcherActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let dispatcher = &self.dispatcher;
        ctx.spawn(dispatcher.clone().run().into_actor(self));
        ctx.spawn(dispatcher.clone().receive_direct_lanes().into_actor(self));
        ctx.spawn(dispatcher.clone().recover().into_actor(self));
        ctx.spawn(dispatcher.clone().run_isolated().into_actor(self));
    }
}

impl Supervised for DispatcherActor {}

#[cfg(test)]
mod tests {
    use database::sql::dialect;
    use futures_util::FutureExt;
    use futures_util::future::pending;
    use sea_orm::{ConnectionTrait, Statement};
    use timing::clock::MockClock;
    use tokio::sync::mpsc;

    use super::*;
    use crate::actors::kinds;
    use crate::store::lanes::views::lane_state;
    use crate::store::lanes::{self, LanesToWake, QueuedLane};
    use crate::store::testing::{add_taxpayer, claim_due, stores};

    /// Long enough that a slow test machine can renew the lease in time.
    const LEASE: Duration = Duration::from_millis(1_500);

    fn config(owner: &str) -> DispatcherConfig {
        DispatcherConfig {
            kind: LaneKind::Endpoint,
            owner: owner.to_owned(),
            lease: LEASE,
            concurrency_max: 8,
            claim_max: 8,
            poll: Duration::from_millis(250),
            wake: Arc::default(),
        }
    }

    async fn make_due(store: &Store, key: &str) {
        let tx = store.begin().await.unwrap();
        lanes::wake(&tx, LaneKind::Endpoint, &[key.to_owned()], LanesToWake::All)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns a dispatcher whose workers never finish, and a channel that receives its lanes.
    fn endless(
        store: &Store,
        handover: &DirectDispatch,
    ) -> (Dispatcher, mpsc::UnboundedReceiver<Lease>) {
        let (seen, lanes) = mpsc::unbounded_channel();
        let dispatcher = Dispatcher::new(store.clone(), config("me"), move |assignment| {
            seen.send(assignment.lease).unwrap();
            pending().boxed_local()
        });
        (dispatcher.with_direct_dispatch(handover), lanes)
    }

    fn start(dispatcher: Dispatcher) -> (Addr<DispatcherActor>, Arbiters) {
        let arbiters = Arbiters::start(1);
        let tree = Tree::new(
            Arc::new(MockClock::at(jiff::Timestamp::UNIX_EPOCH)),
            kinds::ALL,
        );
        (dispatcher.start(&tree, &arbiters, kinds::WEBHOOK), arbiters)
    }

    #[actix::test]
    async fn a_lease_is_renewed_while_its_lane_is_active_and_no_longer() {
        for test in stores().await {
            let store = &test.store;
            // The lane is leased without the dispatcher, as if the answer to its commit had been lost.
            make_due(store, "lost").await;
            claim_due(store, LaneKind::Endpoint, "me", LEASE, 1)
                .await
                .unwrap();
            make_due(store, "held").await;
            let (dispatcher, mut lanes_seen) = endless(store, &DirectDispatch::default());
            let (_address, arbiters) = start(dispatcher);
            assert_eq!(lanes_seen.recv().await.unwrap().key, "held");
            let again = timeout(LEASE * 10, lanes_seen.recv())
                .await
                .expect("its lease expires");
            assert_eq!(again.unwrap().key, "lost");
            assert!(
                timeout(LEASE * 2, lanes_seen.recv()).await.is_err(),
                "both are active"
            );
            arbiters.stop();
        }
    }

    #[actix::test]
    async fn a_taxpayer_whose_lanes_hang_leaves_slots_for_others() {
        for test in stores().await {
            let store = &test.store;
            let (dispatcher, mut lanes_seen) = endless(store, &DirectDispatch::default());
            let of = |taxpayer_id: i64, number: i64| QueuedLane {
                key: format!("{taxpayer_id}/{number}"),
                taxpayer_id,
                deadline: number,
                next_step: None,
            };
            let queue = async |lanes: &[QueuedLane]| {
                let tx = store.begin().await.unwrap();
                lanes::enqueue(&tx, LaneKind::Endpoint, lanes)
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
            };
            queue(&(0..20).map(|number| of(1, number)).collect::<Vec<_>>()).await;
            assert_eq!(
                dispatcher.dispatch_due().await.unwrap(),
                7,
                "one slot of eight is left"
            );
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 0);
            queue(&[of(2, 0)]).await;
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 1);
            let mut keys: Vec<String> = std::iter::from_fn(|| lanes_seen.try_recv().ok())
                .map(|lease| lease.key)
                .collect();
            assert_eq!(keys.pop().as_deref(), Some("2/0"));
            assert_eq!(keys.len(), 7);
        }
    }

    #[actix::test]
    async fn an_integrator_whose_taxpayers_lanes_hang_leaves_slots_for_others() {
        for test in stores().await {
            let store = &test.store;
            let (dispatcher, mut lanes_seen) = endless(store, &DirectDispatch::default());
            let queue = async |integrator: i64, taxpayers: std::ops::Range<i64>| {
                for taxpayer in taxpayers.clone() {
                    add_taxpayer(store, taxpayer, integrator).await;
                }
                let tx = store.begin().await.unwrap();
                for taxpayer_id in taxpayers {
                    let key = format!("{taxpayer_id}/0");
                    let lane = QueuedLane {
                        key,
                        taxpayer_id,
                        deadline: 0,
                        next_step: None,
                    };
                    lanes::enqueue(&tx, LaneKind::Endpoint, &[lane])
                        .await
                        .unwrap();
                }
                tx.commit().await.unwrap();
            };
            queue(1, 1..26).await;
            assert_eq!(
                dispatcher.dispatch_due().await.unwrap(),
                7,
                "one slot of eight is left"
            );
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 0);
            queue(2, 99..100).await;
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 1);
            let keys = std::iter::from_fn(|| lanes_seen.try_recv().ok()).map(|lease| lease.key);
            assert_eq!(keys.last().as_deref(), Some("99/0"));
        }
    }

    #[actix::test]
    async fn a_directly_dispatched_lane_needs_no_claim() {
        for test in stores().await {
            let store = &test.store;
            let handover = DirectDispatch::default();
            make_due(store, "7").await;
            let (dispatcher, mut lanes_seen) = endless(store, &handover);
            let place = handover.reserve_slot().unwrap();
            let tx = store.begin().await.unwrap();
            let owner = place.owner();
            let lease = place.lease_duration();
            let keys = ["7".to_owned()];
            let taken = claim::claim_idle(&tx, LaneKind::Endpoint, &keys, owner, lease)
                .await
                .unwrap()
                .remove(0);
            tx.commit().await.unwrap();
            let (_address, arbiters) = start(dispatcher);
            place.hand_over(taken.clone(), None);
            assert_eq!(lanes_seen.recv().await, Some(taken));
            assert!(
                timeout(LEASE * 2, lanes_seen.recv()).await.is_err(),
                "this replica keeps the lane"
            );
            arbiters.stop();
        }
    }

    async fn rename_table(store: &Store, from: &str, to: &str) {
        let tx = store.begin().await.unwrap();
        tx.execute_unprepared(&format!("ALTER TABLE {from} RENAME TO {to}"))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    #[actix::test]
    async fn a_lane_whose_step_opens_while_the_database_fails_is_due_afterwards() {
        for test in stores().await {
            let store = &test.store;
            let blocked = Arc::new(Mutex::new(vec![BlockedStep {
                step: "sign",
                taxpayers: None,
            }]));
            let listed = Arc::clone(&blocked);
            let (dispatcher, _lanes_seen) = endless(store, &DirectDispatch::default());
            let dispatcher = dispatcher.with_blocked_steps(move || listed.lock().unwrap().clone());
            make_due(store, "7").await;
            let lease = claim_due(store, LaneKind::Endpoint, "other", LEASE, 1)
                .await
                .unwrap()
                .remove(0);
            let waiting = LaneRelease {
                next_step: Some("sign"),
                ..LaneRelease::new(&lease, Some(Duration::from_hours(1)))
            };
            let tx = store.begin().await.unwrap();
            leases::release(&tx, &[waiting]).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 0);
            blocked.lock().unwrap().clear();
            rename_table(store, "lanes", "lanes_away").await;
            assert!(dispatcher.dispatch_due().await.is_err());
            rename_table(store, "lanes_away", "lanes").await;
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 1);
        }
    }

    #[actix::test]
    async fn a_dispatcher_whose_slots_are_closed_takes_no_lane_and_keeps_its_leases() {
        for test in stores().await {
            let store = &test.store;
            let handover = DirectDispatch::default();
            let (dispatcher, mut lanes_seen) = endless(store, &handover);
            let slots = dispatcher.slots();
            make_due(store, "held").await;
            let (_address, arbiters) = start(dispatcher);
            assert_eq!(lanes_seen.recv().await.unwrap().key, "held");
            slots.close();
            // A claim that has begun may still take a lane.
            sleep(LEASE / 10).await;
            make_due(store, "abandoned").await;
            claim_due(store, LaneKind::Endpoint, "gone", Duration::ZERO, 1)
                .await
                .unwrap();
            make_due(store, "new").await;
            assert!(handover.reserve_slot().is_none());
            assert!(timeout(LEASE * 2, lanes_seen.recv()).await.is_err());
            let held = lane_state(store.reader(), LaneKind::Endpoint, "held").await;
            let holder = held.unwrap().unwrap().holder;
            assert_eq!(holder.unwrap().owner, "me", "its lease is renewed");
            arbiters.stop();
        }
    }

    #[actix::test]
    async fn a_lane_is_due_again_later_the_worse_its_work_ended() {
        for test in stores().await {
            let store = &test.store;
            let (dispatcher, _lanes_seen) = endless(store, &DirectDispatch::default());
            let mut waits = HashMap::new();
            for (key, status) in [
                ("released", WorkStatus::Released),
                ("unfinished", WorkStatus::Unfinished),
                ("panicked", WorkStatus::Panicked),
            ] {
                make_due(store, key).await;
                let lease = claim_due(store, LaneKind::Endpoint, "me", LEASE * 9, 1)
                    .await
                    .unwrap()
                    .remove(0);
                dispatcher.release_unfinished(&lease, status).await;
                let now = dialect(store.backend()).clock();
                let sql =
                    format!("SELECT next_due_at - {now} AS wait FROM lanes WHERE key = '{key}'");
                let row = store
                    .reader()
                    .query_one_raw(Statement::from_string(store.backend(), sql));
                waits.insert(
                    key,
                    row.await
                        .unwrap()
                        .unwrap()
                        .try_get::<i64>("", "wait")
                        .unwrap(),
                );
            }
            let within = |key: &str, wait: Duration| {
                let longest = i64::try_from(wait.as_micros()).unwrap();
                (longest - 4_000_000..=longest).contains(&waits[key])
            };
            assert!(
                within("unfinished", DELAY_AFTER_FAILURE) && within("panicked", DELAY_AFTER_PANIC),
                "{waits:?}"
            );
            assert!(
                waits["released"] <= 0,
                "its worker has released it: {waits:?}"
            );
        }
    }
}
