//! The actors that run for the life of the process: dispatchers of runs and deliveries, periodic work, and the janitor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Addr;
use jiff::SignedDuration;

use crate::actors::checkpoint::{CheckpointActor, Checkpointer};
use crate::actors::clock_watch::{ClockActor, ClockWatch};
use crate::actors::delivery::{DeliveryDeps, WebhookActors};
use crate::actors::dispatch::{DispatcherActor, DispatcherConfig, Isolation};
use crate::actors::inbound::TransitPollerActor;
use crate::actors::key_leases::KeyLeaseActor;
use crate::actors::key_usage::{KeyUsage, KeyUsageActor};
use crate::actors::outage::{OutageActor, OutageDetector, OutageNotifier};
use crate::actors::pipeline::{PipelineActors, PipelineDeps};
use crate::actors::reconciliation::ReconcilerActor;
use crate::actors::reference::ReferenceActor;
use crate::actors::supervision::janitor::{self, Janitor, PeriodicTask};
use crate::actors::supervision::{NodeKind, watchdog};
use crate::actors::sweeper::{ExpiredKeySweeper, SweeperActor};
use crate::actors::verification::{Verifier, VerifierActor};
use crate::actors::{delivery as delivery_pool, pipeline};
use crate::app::composition::BuildContext;
use crate::store::lanes::LaneKind;

/// How often the janitor runs.
const JANITOR_INTERVAL: Duration = Duration::from_secs(1);
/// How long an actor that failed too often stays down before it may start again.
const RESTART_PAUSE: Duration = Duration::from_mins(1);
/// The largest number of endpoints that one process delivers to at the same time.
const MAX_ENDPOINTS: usize = 2_048;
/// How many runs one claim takes at most. It is small because the claim's SQL grows with each taxpayer.
const RUNS_PER_CLAIM: usize = 32;
const ENDPOINTS_PER_CLAIM: usize = 256;

pub(super) struct PeriodicActors {
    pub(super) snapshot: Addr<ReferenceActor>,
    pub(super) transit: Addr<TransitPollerActor>,
    pub(super) reconciler: Addr<ReconcilerActor>,
}

/// The background actors of a running process. They stop when this value is dropped.
pub(super) struct BackgroundActors {
    pub(super) runs: Arc<PipelineActors>,
    pub(super) endpoints: Arc<WebhookActors>,
    pub(super) key_usage: Arc<KeyUsage>,
    _dispatchers: [Addr<DispatcherActor>; 2],
    _snapshot: Addr<ReferenceActor>,
    _transit: Addr<TransitPollerActor>,
    _reconciler: Addr<ReconcilerActor>,
    _sweeper: Addr<SweeperActor>,
    _clock_watch: Addr<ClockActor>,
    _outages: Addr<OutageActor>,
    _key_usage_actor: Addr<KeyUsageActor>,
    _key_leases: Addr<KeyLeaseActor>,
    _checkpoints: Option<Addr<CheckpointActor>>,
    _verifier: Addr<VerifierActor>,
    _janitor: Addr<Janitor>,
}

impl BackgroundActors {
    pub(super) fn start(
        context: &BuildContext<'_>,
        pipeline_deps: PipelineDeps,
        delivery: &Arc<DeliveryDeps>,
        periodic: PeriodicActors,
        checkpointer: Option<Checkpointer>,
    ) -> Self {
        let BuildContext { settings, store, clock, tree, arbiters, notifiers, .. } = context;
        let isolation = Isolation::default();
        let config = |kind, concurrency_max, claim_max, wake: &Arc<_>| DispatcherConfig {
            kind,
            owner: context.owner.clone(),
            lease: context.lease,
            concurrency_max,
            claim_max,
            wake: Arc::clone(wake),
            isolation: isolation.clone(),
        };
        let runs = config(LaneKind::Run, settings.pipeline.concurrency_max, RUNS_PER_CLAIM, &notifiers.runs);
        let (run_dispatcher, runs) = pipeline::dispatcher(Arc::new(pipeline_deps), runs, tree, arbiters);
        let endpoints = config(LaneKind::Endpoint, MAX_ENDPOINTS, ENDPOINTS_PER_CLAIM, &notifiers.endpoints);
        let (endpoint_dispatcher, endpoints) =
            delivery_pool::dispatcher(Arc::clone(delivery), endpoints, tree, arbiters);
        let key_usage = Arc::<KeyUsage>::default();
        let key_usage_actor =
            KeyUsageActor::start(Arc::clone(&key_usage), store.clone(), clock.clone(), tree, arbiters);
        let sweeper = ExpiredKeySweeper { store: store.clone(), clock: clock.clone() };
        let clock_watch = ClockWatch { store: store.clone(), clock: clock.clone(), lease: context.lease };
        let tasks = janitor_tasks(context, &runs, &endpoints);
        Self {
            _dispatchers: [
                run_dispatcher.start(tree, arbiters, NodeKind::Pipeline),
                endpoint_dispatcher.with_direct_dispatch(&notifiers.direct).start(
                    tree,
                    arbiters,
                    NodeKind::Webhook,
                ),
            ],
            runs,
            endpoints,
            key_usage,
            _snapshot: periodic.snapshot,
            _transit: periodic.transit,
            _reconciler: periodic.reconciler,
            _sweeper: sweeper.start(tree, arbiters),
            _clock_watch: clock_watch.start(tree, arbiters),
            _outages: context.outages(),
            _key_usage_actor: key_usage_actor,
            _key_leases: KeyLeaseActor::start(store.clone(), tree, arbiters),
            _checkpoints: context.checkpoints(checkpointer),
            _verifier: context.verifier().start(tree, arbiters),
            _janitor: janitor::start(tree, arbiters, JANITOR_INTERVAL, tasks),
        }
    }
}

impl BuildContext<'_> {
    /// Starts periodic checkpoints. Returns `None` if the interval is 0: checkpoints are then made on demand only.
    fn checkpoints(&self, checkpointer: Option<Checkpointer>) -> Option<Addr<CheckpointActor>> {
        let every_s = self.settings.checkpoints.every_s;
        let every = Duration::from_secs(every_s);
        let checkpointer = checkpointer.filter(|_| every_s > 0)?;
        Some(checkpointer.start(every, &self.tree, &self.arbiters))
    }

    fn verifier(&self) -> Verifier {
        let entity_id = &self.settings.authority.entity_id;
        Verifier {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            authority: self.authority.clone(),
            clock: self.clock.clone(),
            entity_id: (!entity_id.is_empty()).then(|| entity_id.clone()),
            owner: self.owner.clone(),
            lease: self.lease,
        }
    }

    /// Starts the actor that detects outages of the authority and notifies taxpayers about them.
    fn outages(&self) -> Addr<OutageActor> {
        let clear_after = i64::try_from(self.settings.authority.outage_clear_after_s).unwrap_or(i64::MAX);
        let detector = OutageDetector {
            store: self.store.clone(),
            clock: self.clock.clone(),
            quiet: SignedDuration::from_secs(clear_after),
        };
        let notifier = OutageNotifier {
            store: self.store.clone(),
            clock: self.clock.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            owner: self.owner.clone(),
            lease: self.lease,
        };
        OutageActor::start(detector, self.authority.clone(), notifier, &self.tree, &self.arbiters)
    }
}

/// Returns two tasks. One stops idle actors and lets an actor that failed too often start again after `RESTART_PAUSE`.
/// The other reports actors that spend too long on one batch.
fn janitor_tasks(
    context: &BuildContext<'_>,
    runs: &Arc<PipelineActors>,
    endpoints: &Arc<WebhookActors>,
) -> Vec<PeriodicTask> {
    let settings = context.settings;
    let (idle, active_max) = (Duration::from_secs(settings.taxpayers.idle_s), settings.taxpayers.active_max);
    let (taxpayers, runs, endpoints) =
        (Arc::clone(&context.taxpayers), Arc::clone(runs), Arc::clone(endpoints));
    let tree = context.tree.clone();
    let external_timeout = Duration::from_secs(settings.authority.timeout_s.max(settings.webhooks.timeout_s));
    vec![
        Box::new(move |now: Instant| {
            taxpayers.registry().passivate_idle(now, idle, active_max);
            runs.passivate_idle(now, JANITOR_INTERVAL, active_max);
            endpoints.passivate_idle(now, idle, active_max);
            taxpayers.registry().allow_restart(now, RESTART_PAUSE);
            runs.allow_restart(now, RESTART_PAUSE);
            endpoints.allow_restart(now, RESTART_PAUSE);
        }),
        Box::new(move |now| {
            watchdog::scan(&tree, |kind| watchdog_limits(kind, external_timeout), now);
        }),
    ]
}

/// Returns after how long on one batch the watchdog reports an actor as busy or as stuck. A batch may make several
/// external calls, so the limits are multiples of the time for one call.
fn watchdog_limits(kind: NodeKind, external_timeout: Duration) -> watchdog::WatchdogLimits {
    match kind {
        NodeKind::Pipeline => watchdog::WatchdogLimits {
            busy_after: external_timeout.saturating_mul(2),
            stuck_after: external_timeout.saturating_mul(5),
        },
        NodeKind::Webhook => watchdog::WatchdogLimits {
            busy_after: external_timeout,
            stuck_after: external_timeout.saturating_mul(3),
        },
        NodeKind::Taxpayer | NodeKind::Reference | NodeKind::Inbound | NodeKind::Janitor => {
            watchdog::WatchdogLimits::default()
        }
    }
}
