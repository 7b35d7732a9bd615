//! Hands lanes that are due to their actors: takes over what is due and free, in turns, at most as many as may run
//! at once, keeps the leases alive meanwhile (`in_hand`), and gives back what an actor could not finish. Who gives a
//! lane something to do may bring it here taken over (`handover`). What was under way when a process ended is taken
//! up apart from the others (`apart`). The timer and the wake-ups only call it; nothing
//! depends on them but the delay.

mod apart;
mod handover;
mod in_hand;

use std::fmt::Display;
use std::hash::Hash;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use futures_util::future::{LocalBoxFuture, ready};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

pub use self::apart::Isolation;
use self::apart::OnCrash;
use self::handover::Arrivals;
pub use self::handover::{Handover, Place};
use self::in_hand::InHand;

use crate::actors::supervision::{
    ActorKind, AdmissionLimits, Arbiters, Registry, RestartPolicy, Tree, supervise,
};
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::fair_queue::{self, BlockedStep, ClaimRequest, FairShare};
use crate::store::lanes::leases;
use crate::store::lanes::{self, LaneKind, Lease};

/// How often to look when nothing wakes us.
const POLL: Duration = Duration::from_millis(250);
/// The longest rest between two claims that found something.
const REST_MAX: Duration = Duration::from_millis(50);
/// When a lane that its actor could not finish is due again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Whether an actor has dealt with its lane, or it must be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    Released,
    /// The lane is still held and there is more to do at once.
    More,
    Unfinished,
}

/// The gates that are shut at present.
type Gates = Arc<dyn Fn() -> Vec<BlockedStep> + Send + Sync>;
type Handoff = Arc<dyn Fn(Lease) -> LocalBoxFuture<'static, Handled> + Send + Sync>;

/// Sends a lane to its actor round by round, so that neighbours get their turn and the watchdog sees each.
pub async fn rounds<K, C>(actors: &Registry<K, C, Handled>, key: &K, round: impl Fn() -> C) -> Handled
where
    K: Hash + Eq + Clone + Display + Send + Sync + 'static,
    C: Send + Sync + 'static,
{
    loop {
        match actors.send(key, round()).await {
            Ok(Handled::More) => {}
            Ok(handled) => return handled,
            Err(_) => return Handled::Unfinished,
        }
    }
}

/// Settings of a dispatcher.
#[derive(Clone)]
pub struct Duty {
    pub kind: LaneKind,
    /// Names this process in the leases.
    pub owner: String,
    pub lease: Duration,
    /// Lanes that are worked on at once.
    pub concurrency_max: usize,
    /// Lanes taken over in one statement.
    pub claim_max: usize,
    pub wake: Arc<Notify>,
    /// The same for all dispatchers of a process.
    pub isolation: Isolation,
}

/// Permits for the actors a dispatcher feeds. A lane is free again a moment before its actor has answered, so
/// the next claim may find it still at work: it waits its turn.
pub fn limits(duty: &Duty) -> AdmissionLimits {
    AdmissionLimits {
        per_key_max: 2,
        process_max: duty.concurrency_max.saturating_mul(2),
        ..AdmissionLimits::default()
    }
}

/// Dispatches the lanes of one kind.
#[derive(Clone)]
pub struct Dispatcher {
    store: Store,
    duty: Duty,
    slots: Arc<Semaphore>,
    in_hand: InHand,
    /// What was taken over elsewhere.
    arrivals: Option<Arc<tokio::sync::Mutex<Arrivals>>>,
    handoff: Handoff,
    on_crash: OnCrash,
    gates: Gates,
    /// The gates that were shut when it last looked.
    shut: Arc<Mutex<Vec<BlockedStep>>>,
    /// Whose turn was the last.
    last: Arc<AtomicI64>,
}

impl Dispatcher {
    /// `handoff` brings a lane to its actor and returns when that has done with it.
    pub fn new<F>(store: Store, duty: Duty, handoff: F) -> Self
    where
        F: Fn(Lease) -> LocalBoxFuture<'static, Handled> + Send + Sync + 'static,
    {
        let slots = Arc::new(Semaphore::new(duty.concurrency_max));
        Self {
            store,
            duty,
            slots,
            in_hand: InHand::default(),
            arrivals: None,
            handoff: Arc::new(handoff),
            on_crash: Arc::new(|_| Box::pin(ready(Handled::More))),
            gates: Arc::new(Vec::new),
            shut: Arc::default(),
            last: Arc::new(AtomicI64::new(fair_queue::START)),
        }
    }

    /// Passes over lanes that stand at one of these gates.
    #[must_use]
    pub fn gated(self, shut: impl Fn() -> Vec<BlockedStep> + Send + Sync + 'static) -> Self {
        Self { gates: Arc::new(shut), ..self }
    }

    /// Also hands out lanes that are brought here taken over.
    #[must_use]
    pub fn receiving(self, handover: &Handover) -> Self {
        let arrivals =
            handover.open((&self.duty.owner, self.duty.lease), (&self.slots, self.duty.concurrency_max));
        Self { arrivals: Some(Arc::new(tokio::sync::Mutex::new(arrivals))), ..self }
    }

    /// Runs under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters, kind: ActorKind) -> Addr<DispatcherActor> {
        let node = tree.node(kind, 0, format!("{}-dispatcher", self.duty.kind.as_str()));
        supervise(arbiters.background(), node, RestartPolicy::default(), |ctx| DispatcherActor {
            dispatcher: self,
            _address: ctx.address(),
        })
    }

    /// Takes over what is due and hands it out; how many lanes that were.
    pub async fn dispatch_due(&self) -> Result<usize, StoreError> {
        let shut = self.gates_now().await?;
        let free = self.slots.available_permits().min(self.duty.claim_max);
        if free == 0 {
            return Ok(0);
        }
        // Kept before the lanes are taken: others take places too.
        let wanted = u32::try_from(free).unwrap_or(u32::MAX);
        let Ok(mut slots) = Arc::clone(&self.slots).try_acquire_many_owned(wanted) else { return Ok(0) };
        let ask = ClaimRequest {
            kind: self.duty.kind,
            owner: &self.duty.owner,
            lease: self.duty.lease,
            limit: free,
            after: self.last.load(Ordering::Relaxed),
            blocked: &shut,
            share: FairShare { max: share(self.duty.concurrency_max), held: self.in_hand.by_taxpayer() },
        };
        let taken = fair_queue::claim(&self.store, &ask).await?;
        if let Some(last) = taken.last {
            self.last.store(last, Ordering::Relaxed);
        }
        let count = taken.leases.len();
        for turn in taken.leases {
            self.hand_out(turn.lease, Some(turn.taxpayer_id), slots.split(1));
        }
        Ok(count)
    }

    /// The gates that are shut. When one opens, whoever was to wait longer there is due: the queue drains at once and
    /// in its order, instead of when each one's wait ends.
    async fn gates_now(&self) -> Result<Vec<BlockedStep>, StoreError> {
        let shut = (self.gates)();
        let before = std::mem::replace(&mut *self.shut(), shut.clone());
        let opened: Vec<_> =
            before.iter().filter(|gate| gate.is_unblocked_for_some(&shut)).map(|gate| gate.step).collect();
        if !opened.is_empty() {
            fair_queue::make_due_now(&self.store, self.duty.kind, &opened, &shut).await?;
        }
        Ok(shut)
    }

    fn shut(&self) -> MutexGuard<'_, Vec<BlockedStep>> {
        self.shut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_out(&self, lease: Lease, taxpayer: Option<i64>, slot: Option<OwnedSemaphorePermit>) {
        let hold = self.in_hand.take(&lease, taxpayer);
        let dispatcher = self.clone();
        let work = (self.handoff)(lease.clone());
        actix_rt::spawn(async move {
            let _at_work = (hold, slot);
            let handled = work.await;
            dispatcher.finish(&lease, handled).await;
        });
    }

    /// Gives back a lane that its actor could not deal with.
    async fn finish(&self, lease: &Lease, handled: Handled) {
        if handled == Handled::Unfinished
            && let Err(error) = give_back(&self.store, lease).await
        {
            tracing::warn!(lane = lease.key, %error, "a lane could not be given back; its lease will end");
        }
    }

    /// Hands out what is brought here for as long as it is polled.
    async fn receive(self) {
        let Some(arrivals) = &self.arrivals else { return };
        let mut arrivals = arrivals.lock().await;
        while let Some((lease, slot)) = arrivals.recv().await {
            self.hand_out(lease, None, Some(slot));
        }
    }

    async fn renew(&self) -> Result<(), StoreError> {
        leases::renew(&self.store, self.duty.kind, &self.in_hand.leases(), self.duty.lease).await
    }

    /// Dispatches for as long as it is polled.
    async fn run(self) {
        let mut renewed = Instant::now();
        loop {
            let begun = Instant::now();
            let handed_out = self.dispatch_due().await.unwrap_or_else(|error| {
                tracing::warn!(kind = self.duty.kind.as_str(), %error, "due lanes could not be taken over");
                0
            });
            if renewed.elapsed() > self.duty.lease / 3 {
                match self.renew().await {
                    Ok(()) => renewed = Instant::now(),
                    Err(error) => tracing::warn!(%error, "leases could not be renewed"),
                }
            }
            if handed_out == 0 || self.slots.available_permits() == 0 {
                // Woken or not, the next look is the same.
                let _ = timeout(POLL, self.duty.wake.notified()).await;
            } else {
                // A claim is a commit, which others wait for: what comes meanwhile is taken with the next.
                sleep(begun.elapsed().min(REST_MAX)).await;
            }
        }
    }
}

/// How many of the lanes that may be worked on at once one taxpayer may have: all but an eighth, so that one whose
/// lanes hang leaves room for others.
fn share(concurrency_max: usize) -> usize {
    (concurrency_max - concurrency_max.div_ceil(8)).max(1)
}

async fn give_back(store: &Store, lease: &Lease) -> Result<(), StoreError> {
    let tx = store.begin().await?;
    lanes::release(&tx, lease, Some(AFTER_FAILURE)).await?;
    tx.commit().await
}

/// The shell that runs a dispatcher.
pub struct DispatcherActor {
    dispatcher: Dispatcher,
    /// Its own address: it stays though nobody sends to it.
    _address: Addr<Self>,
}

impl Actor for DispatcherActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.dispatcher.clone().run().into_actor(self));
        ctx.spawn(self.dispatcher.clone().receive().into_actor(self));
        ctx.spawn(self.dispatcher.clone().take_up_apart().into_actor(self));
    }
}

impl Supervised for DispatcherActor {}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::pending;
    use tokio::sync::mpsc;

    use super::*;
    use crate::domain::kernel::clock::MockClock;
    use crate::store::lanes::fair_queue::QueuedLane;
    use crate::store::testing::stores;

    /// So long that a busy machine renews it in time.
    const LEASE: Duration = Duration::from_millis(1_500);

    fn duty(owner: &str) -> Duty {
        Duty {
            kind: LaneKind::Endpoint,
            owner: owner.to_owned(),
            lease: LEASE,
            concurrency_max: 8,
            claim_max: 8,
            wake: Arc::default(),
            isolation: Isolation::default(),
        }
    }

    async fn make_due(store: &Store, key: &str) {
        let tx = store.begin().await.unwrap();
        lanes::make_due(&tx, LaneKind::Endpoint, &[key.to_owned()]).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// A dispatcher whose actors never end, and the lanes that came to them.
    fn endless(store: &Store, handover: &Handover) -> (Dispatcher, mpsc::UnboundedReceiver<Lease>) {
        let (seen, lanes) = mpsc::unbounded_channel();
        let dispatcher = Dispatcher::new(store.clone(), duty("me"), move |lease| {
            seen.send(lease).unwrap();
            pending().boxed_local()
        });
        (dispatcher.receiving(handover), lanes)
    }

    fn start(dispatcher: Dispatcher) -> (Addr<DispatcherActor>, Arbiters) {
        let arbiters = Arbiters::start(1);
        let tree = Tree::new(Arc::new(MockClock::at(jiff::Timestamp::UNIX_EPOCH)));
        (dispatcher.start(&tree, &arbiters, ActorKind::Webhook), arbiters)
    }

    #[actix::test]
    async fn a_lease_lives_as_long_as_its_lane_is_in_hand_and_no_longer() {
        for test in stores().await {
            let store = &test.store;
            // Taken in our name, but the answer never came: nobody here knows of it.
            make_due(store, "lost").await;
            lanes::claim(store, LaneKind::Endpoint, "me", LEASE, 1).await.unwrap();
            make_due(store, "held").await;
            let (dispatcher, mut lanes_seen) = endless(store, &Handover::default());
            let (_address, arbiters) = start(dispatcher);
            assert_eq!(lanes_seen.recv().await.unwrap().key, "held");
            let again = timeout(LEASE * 10, lanes_seen.recv()).await.expect("it is free when its lease ends");
            assert_eq!(again.unwrap().key, "lost");
            assert!(timeout(LEASE * 2, lanes_seen.recv()).await.is_err(), "both are in hand");
            arbiters.stop();
        }
    }

    #[actix::test]
    async fn a_taxpayer_whose_lanes_hang_leaves_room_for_the_others() {
        for test in stores().await {
            let store = &test.store;
            let (dispatcher, mut lanes_seen) = endless(store, &Handover::default());
            let of = |taxpayer_id: i64, number: i64| QueuedLane {
                key: format!("{taxpayer_id}/{number}"),
                taxpayer_id,
                deadline: number,
                step: None,
            };
            let queue = async |lanes: &[QueuedLane]| {
                let tx = store.begin().await.unwrap();
                fair_queue::enqueue(&tx, LaneKind::Endpoint, lanes).await.unwrap();
                tx.commit().await.unwrap();
            };
            queue(&(0..20).map(|number| of(1, number)).collect::<Vec<_>>()).await;
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 7, "one place of eight is left");
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 0);
            queue(&[of(2, 0)]).await;
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 1);
            let mut keys: Vec<String> =
                std::iter::from_fn(|| lanes_seen.try_recv().ok()).map(|lease| lease.key).collect();
            assert_eq!(keys.pop().as_deref(), Some("2/0"));
            assert_eq!(keys.len(), 7);
        }
    }

    #[actix::test]
    async fn a_lane_that_is_brought_taken_over_needs_no_claim() {
        for test in stores().await {
            let (store, handover) = (&test.store, Handover::default());
            make_due(store, "7").await;
            let (dispatcher, mut lanes_seen) = endless(store, &handover);
            let place = handover.place().unwrap();
            let tx = store.begin().await.unwrap();
            let taken =
                lanes::claim_if_idle(&tx, LaneKind::Endpoint, "7", place.taker()).await.unwrap().unwrap();
            tx.commit().await.unwrap();
            let (_address, arbiters) = start(dispatcher);
            place.hand_over(taken.clone());
            assert_eq!(lanes_seen.recv().await, Some(taken));
            assert!(timeout(LEASE * 2, lanes_seen.recv()).await.is_err(), "it stays ours");
            arbiters.stop();
        }
    }
}
