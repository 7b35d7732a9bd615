//! The actors that nobody else holds on to: who drives runs, who delivers, who keeps the lists fresh, who looks
//! after all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Addr;
use jiff::SignedDuration;

use crate::actors::checkpoint::{CheckpointActor, Checkpointer};
use crate::actors::clock_watch::{ClockActor, ClockWatch};
use crate::actors::delivery::{DeliveryDeps, WebhookActors};
use crate::actors::dispatch::{DispatcherActor, Duty, Isolation};
use crate::actors::inbound::PullActor;
use crate::actors::key_usage::{KeyUsage, KeyUsageActor};
use crate::actors::outage::{Crier, OutageActor, Watch};
use crate::actors::pipeline::{Gear, PipelineActors};
use crate::actors::reconciliation::ReconcilerActor;
use crate::actors::reference::SnapshotActor;
use crate::actors::supervision::janitor::{self, Janitor, PeriodicTask as Chore};
use crate::actors::supervision::{ActorKind, Arbiters, Tree, watchdog};
use crate::actors::sweeper::{Broom, SweeperActor};
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::actors::verification::{Verifier, VerifierActor};
use crate::actors::wake::Wakers;
use crate::actors::{delivery as pool, pipeline};
use crate::config::Settings;
use crate::store::lanes::LaneKind;

/// How often the janitor looks around.
const CHORES_EVERY: Duration = Duration::from_secs(1);
/// How long an actor that gave up stays down before it may start again: the window of its budget of restarts.
const REST: Duration = Duration::from_mins(1);
/// Endpoints served at once.
const ENDPOINTS_AT_ONCE: usize = 2_048;
/// Lanes taken over at a time: runs in turns between taxpayers, a part of the statement for each.
const RUNS_A_CLAIM: usize = 32;
const ENDPOINTS_A_CLAIM: usize = 256;

/// The actors that nobody else holds on to.
pub(super) struct Staff {
    pub(super) runs: Arc<PipelineActors>,
    pub(super) endpoints: Arc<WebhookActors>,
    _dispatchers: [Addr<DispatcherActor>; 2],
    _snapshot: Addr<SnapshotActor>,
    _sweeper: Addr<SweeperActor>,
    _clock_watch: Addr<ClockActor>,
    _pull: Addr<PullActor>,
    _outages: Addr<OutageActor>,
    _reconciler: Addr<ReconcilerActor>,
    pub(super) key_usage: Arc<KeyUsage>,
    _key_usage_actor: Addr<KeyUsageActor>,
    _checkpoints: Option<Addr<CheckpointActor>>,
    _verifier: Addr<VerifierActor>,
    _janitor: Addr<Janitor>,
}

impl Staff {
    pub(super) fn hire(
        settings: &Settings,
        (tree, arbiters): (&Tree, &Arc<Arbiters>),
        (owner, wakers, taxpayers): (&str, &Wakers, &Arc<TaxpayerHandle>),
        (gear, delivery): (Gear, &Arc<DeliveryDeps>),
        (snapshot, pull, reconciler): (Addr<SnapshotActor>, Addr<PullActor>, Addr<ReconcilerActor>),
    ) -> Self {
        let broom = Broom { store: gear.store.clone(), clock: gear.clock.clone() };
        let key_usage = Arc::<KeyUsage>::default();
        let writes = (gear.store.clone(), gear.clock.clone());
        let key_usage_actor = KeyUsageActor::start(Arc::clone(&key_usage), writes, tree, arbiters);
        let lease = Duration::from_secs(settings.cluster.lease_s);
        let clock_watch = ClockWatch { store: gear.store.clone(), clock: gear.clock.clone(), lease };
        let isolation = Isolation::default();
        let duty = |kind, (concurrency_max, claim_max), wake| Duty {
            kind,
            owner: owner.to_owned(),
            lease,
            concurrency_max,
            claim_max,
            wake,
            isolation: isolation.clone(),
        };
        let verifier = verifier(settings, (taxpayers, &gear), (owner, lease)).start(tree, arbiters);
        let outages = outages(settings, (taxpayers, &gear), (owner, lease));
        let outages = OutageActor::start((outages.0, gear.authority.clone()), outages.1, tree, arbiters);
        let runs =
            duty(LaneKind::Run, (settings.pipeline.concurrency_max, RUNS_A_CLAIM), Arc::clone(&wakers.runs));
        let (run_dispatcher, runs) = pipeline::dispatcher(Arc::new(gear), runs, tree, arbiters);
        let endpoints =
            duty(LaneKind::Endpoint, (ENDPOINTS_AT_ONCE, ENDPOINTS_A_CLAIM), Arc::clone(&wakers.endpoints));
        let (endpoint_dispatcher, endpoints) =
            pool::dispatcher(Arc::clone(delivery), endpoints, tree, arbiters);
        let chores = chores(settings, tree, (taxpayers, &runs, &endpoints));
        Self {
            runs,
            endpoints,
            _dispatchers: [
                run_dispatcher.start(tree, arbiters, ActorKind::Pipeline),
                endpoint_dispatcher.receiving(&wakers.pool).start(tree, arbiters, ActorKind::Webhook),
            ],
            _snapshot: snapshot,
            _sweeper: broom.start(tree, arbiters),
            _clock_watch: clock_watch.start(tree, arbiters),
            _pull: pull,
            _outages: outages,
            _reconciler: reconciler,
            key_usage,
            _key_usage_actor: key_usage_actor,
            _checkpoints: None,
            _verifier: verifier,
            _janitor: janitor::start(tree, arbiters, CHORES_EVERY, chores),
        }
    }
}

impl Staff {
    /// Has the event log checkpointed at an interval; 0 is on demand only.
    pub(super) fn checkpointing(
        self,
        checkpointer: Option<Checkpointer>,
        every_s: u64,
        (tree, arbiters): (&Tree, &Arc<Arbiters>),
    ) -> Self {
        let periodic = checkpointer.filter(|_| every_s > 0);
        let every = Duration::from_secs(every_s);
        let actor = periodic.map(|checkpointer| checkpointer.start(every, tree, arbiters));
        Self { _checkpoints: actor, ..self }
    }
}

/// What asks the authority who taxpayers are.
fn verifier(
    settings: &Settings,
    (taxpayers, gear): (&Arc<TaxpayerHandle>, &Gear),
    (owner, lease): (&str, Duration),
) -> Verifier {
    let entity_id = &settings.authority.entity_id;
    Verifier {
        store: gear.store.clone(),
        taxpayers: Arc::clone(taxpayers),
        authority: gear.authority.clone(),
        clock: gear.clock.clone(),
        entity_id: (!entity_id.is_empty()).then(|| entity_id.clone()),
        owner: owner.to_owned(),
        lease,
    }
}

/// Who sees outages of the authority, and who tells of them.
fn outages(
    settings: &Settings,
    (taxpayers, gear): (&Arc<TaxpayerHandle>, &Gear),
    (owner, lease): (&str, Duration),
) -> (Watch, Crier) {
    let quiet = i64::try_from(settings.authority.outage_clear_after_s).unwrap_or(i64::MAX);
    let watch = Watch {
        store: gear.store.clone(),
        clock: gear.clock.clone(),
        quiet: SignedDuration::from_secs(quiet),
    };
    let crier = Crier {
        store: gear.store.clone(),
        clock: gear.clock.clone(),
        taxpayers: Arc::clone(taxpayers),
        owner: owner.to_owned(),
        lease,
    };
    (watch, crier)
}

type Registries<'a> = (&'a Arc<TaxpayerHandle>, &'a Arc<PipelineActors>, &'a Arc<WebhookActors>);

/// What the janitor does: actors without work leave, those that gave up may start again once they have rested,
/// actors at one thing for too long are reported.
fn chores(settings: &Settings, tree: &Tree, (taxpayers, runs, endpoints): Registries<'_>) -> Vec<Chore> {
    let (idle, active_max) = (Duration::from_secs(settings.taxpayers.idle_s), settings.taxpayers.active_max);
    let (taxpayers, runs, endpoints) = (Arc::clone(taxpayers), Arc::clone(runs), Arc::clone(endpoints));
    let tree = tree.clone();
    let outside = Duration::from_secs(settings.authority.timeout_s.max(settings.webhooks.timeout_s));
    vec![
        Box::new(move |now: Instant| {
            taxpayers.registry().passivate_idle(now, idle, active_max);
            runs.passivate_idle(now, CHORES_EVERY, active_max);
            endpoints.passivate_idle(now, idle, active_max);
            taxpayers.registry().allow_restart(now, REST);
            runs.allow_restart(now, REST);
            endpoints.allow_restart(now, REST);
        }),
        Box::new(move |now| {
            watchdog::scan(&tree, |kind| patience(kind, outside), now);
        }),
    ]
}

/// How long an actor may be at one batch. Who calls the outside may wait for it, and ask once more; who calls
/// the authority may wait as long for its turn each time.
fn patience(kind: ActorKind, outside: Duration) -> watchdog::WatchdogLimits {
    match kind {
        ActorKind::Pipeline => watchdog::WatchdogLimits {
            busy_after: outside.saturating_mul(2),
            stuck_after: outside.saturating_mul(5),
        },
        ActorKind::Webhook => {
            watchdog::WatchdogLimits { busy_after: outside, stuck_after: outside.saturating_mul(3) }
        }
        ActorKind::Taxpayer | ActorKind::Reference | ActorKind::Inbound | ActorKind::Janitor => {
            watchdog::WatchdogLimits::default()
        }
    }
}
