//! The actors that run for the life of the process: dispatchers of runs and deliveries, periodic work, and the janitor.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Addr;
use database::StoreError;
use jiff::SignedDuration;
use supervision::{Period, PeriodicActor, watchdog};
use tokio::sync::Notify;

use crate::actors::checkpoint::{self, Checkpointer};
use crate::actors::clock_watch::{self, ClockWatch};
use crate::actors::delivery::{DeliveryDeps, DeliveryPool};
use crate::actors::dispatch::{Dispatcher, DispatcherActor, DispatcherConfig, WorkStatus};
use crate::actors::inbound::TransitPoller;
use crate::actors::key_leases::KeyLeaseActor;
use crate::actors::key_usage::{self, KeyUsage};
use crate::actors::kinds;
use crate::actors::mail::Mailer;
use crate::actors::outage::{NOTICES_MAX, OBSERVE_EVERY, OutageDetector, OutageNotifier};
use crate::actors::pipeline::{PipelineDeps, RunPool};
use crate::actors::quarantine_lift::{self, QuarantineLift};
use crate::actors::reconciliation::Reconciler;
use crate::actors::reference::ReferenceRefresher;
use crate::actors::request_log::{self, RequestLog};
use crate::actors::sweeper;
use crate::actors::taxpayer::quarantined;
use crate::actors::verification::{VERIFICATIONS_MAX, Verifier};
use crate::app::composition::{BuildContext, ServeMode};
use crate::http::{CORRECTIONS_MAX, CorrectionWorker, IMPORTS_MAX, ImportWorker};
use crate::store::lanes::{LaneKind, Lease};

/// How often the janitor runs.
const JANITOR_INTERVAL: Duration = Duration::from_secs(1);
/// How long an actor that failed too often stays down before it may start again.
const RESTART_PAUSE: Duration = Duration::from_mins(1);
/// The largest number of endpoints that one process delivers to at the same time.
const ENDPOINTS_MAX: usize = 2_048;
/// The maximum number of runs that one claim takes. It is small because the claim's SQL grows with each taxpayer in it.
const RUNS_PER_CLAIM: usize = 32;
const ENDPOINTS_PER_CLAIM: usize = 256;

/// How often dispatchers look for due lanes. Runs and deliveries are urgent; work for the operators can wait longer.
const URGENT_POLL_INTERVAL: Duration = Duration::from_millis(250);
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The work of the background actors.
pub(super) struct BackgroundWork {
    pub(super) pipeline: PipelineDeps,
    pub(super) delivery: Arc<DeliveryDeps>,
    /// `None` if the service is paused.
    pub(super) outgoing: Option<OutgoingWork>,
    pub(super) checkpointer: Option<Checkpointer>,
    pub(super) imports: ImportWorker,
    pub(super) corrections: CorrectionWorker,
}

/// The work that calls the authority or a webhook, besides that of the pools.
pub(super) struct OutgoingWork {
    pub(super) reference_refresher: ReferenceRefresher,
    /// The wait before the reference lists are fetched for the first time.
    pub(super) reference_fresh_for: Duration,
    pub(super) transit_poller: TransitPoller,
    pub(super) reconciler: Reconciler,
    /// `None` if nobody is told by mail.
    pub(super) mailer: Option<Mailer>,
    pub(super) reconciliation_requested: Arc<Notify>,
}

impl OutgoingWork {
    /// Makes the first poll and the timer of reconciliations due at once. Returns `None`, and schedules nothing, in a
    /// process that sends nothing.
    pub(super) async fn schedule_unless_paused(
        self,
        mode: ServeMode,
    ) -> Result<Option<Self>, StoreError> {
        if mode == ServeMode::Paused {
            tracing::warn!(
                "started with --paused: nothing is sent to the authority or to webhooks"
            );
            return Ok(None);
        }
        self.transit_poller.ensure_scheduled().await?;
        self.reconciler.ensure_scheduled().await?;
        Ok(Some(self))
    }
}

/// The background actors of a running process. They stop when this value is dropped.
pub(super) struct BackgroundActors {
    pub(super) runs: Arc<RunPool>,
    pub(super) deliveries: Arc<DeliveryPool>,
    pub(super) key_usage: Arc<KeyUsage>,
    pub(super) request_log: Arc<RequestLog>,
    _dispatchers: Vec<Addr<DispatcherActor>>,
    _periodic: Vec<Addr<PeriodicActor>>,
    _key_leases: Addr<KeyLeaseActor>,
}

impl BackgroundActors {
    pub(super) fn start(context: &BuildContext<'_>, work: BackgroundWork) -> Self {
        let runs = RunPool::new(work.pipeline, &context.tree, &context.arbiters);
        let deliveries = DeliveryPool::new(work.delivery, &context.tree, &context.arbiters);
        let mut dispatchers = vec![
            context.start_import_worker(work.imports),
            context.start_correction_worker(work.corrections),
        ];
        let key_usage = Arc::<KeyUsage>::default();
        let request_log = Arc::new(RequestLog::new(context.settings.http.request_log_days));
        let mut periodic = vec![
            context.start_janitor(),
            context.start_key_usage(&key_usage),
            context.start_request_log(&request_log),
            context.start_sweeper(&request_log),
            context.start_quarantine(),
            context.start_clock_watch(),
        ];
        if let Some(outgoing) = work.outgoing {
            dispatchers.extend([
                context.start_run_dispatcher(&runs),
                context.start_delivery_dispatcher(&deliveries),
                context.start_outage_notifier(),
                context.start_verifier(),
                context.start_transit_dispatcher(outgoing.transit_poller),
                context.start_reconciler(outgoing.reconciler, outgoing.reconciliation_requested),
            ]);
            if let Some(mailer) = outgoing.mailer {
                let (dispatcher, look) = context.start_mailer(mailer);
                dispatchers.push(dispatcher);
                periodic.push(look);
            }
            periodic.extend([
                context.start_outage_detector(),
                context.start_reference_refresh(
                    outgoing.reference_refresher,
                    outgoing.reference_fresh_for,
                ),
            ]);
        }
        periodic.extend(context.start_quarantine_lift());
        periodic.extend(
            work.checkpointer
                .and_then(|checkpointer| context.start_checkpoints(checkpointer)),
        );
        let key_leases =
            KeyLeaseActor::start(context.store.clone(), &context.tree, &context.arbiters);
        Self {
            runs,
            deliveries,
            key_usage,
            request_log,
            _dispatchers: dispatchers,
            _periodic: periodic,
            _key_leases: key_leases,
        }
    }
}

/// The dispatchers of the pools, which run a task for each leased lane.
impl BuildContext<'_> {
    fn start_run_dispatcher(&self, runs: &Arc<RunPool>) -> Addr<DispatcherActor> {
        let config = DispatcherConfig {
            claim_max: RUNS_PER_CLAIM,
            poll: URGENT_POLL_INTERVAL,
            wake: Arc::clone(&self.notifiers.runs),
            ..self.dispatcher_config(LaneKind::Run, self.settings.pipeline.concurrency_max)
        };
        runs.dispatcher(config)
            .with_direct_dispatch(&self.notifiers.direct_runs)
            .start(&self.tree, &self.arbiters, kinds::PIPELINE)
    }

    fn start_delivery_dispatcher(&self, deliveries: &Arc<DeliveryPool>) -> Addr<DispatcherActor> {
        let config = DispatcherConfig {
            claim_max: ENDPOINTS_PER_CLAIM,
            poll: URGENT_POLL_INTERVAL,
            wake: Arc::clone(&self.notifiers.endpoints),
            ..self.dispatcher_config(LaneKind::Endpoint, ENDPOINTS_MAX)
        };
        deliveries
            .dispatcher(config)
            .with_direct_dispatch(&self.notifiers.direct)
            .start(&self.tree, &self.arbiters, kinds::WEBHOOK)
    }

    /// Returns the settings of a dispatcher that polls at `POLL_INTERVAL` and may fill all its slots with one claim.
    pub(super) fn dispatcher_config(
        &self,
        kind: LaneKind,
        concurrency_max: usize,
    ) -> DispatcherConfig {
        DispatcherConfig {
            kind,
            owner: self.owner.clone(),
            lease: self.lease,
            concurrency_max,
            claim_max: concurrency_max,
            poll: POLL_INTERVAL,
            wake: Arc::default(),
        }
    }
}

/// The dispatchers that call a function with each claimed lane.
impl BuildContext<'_> {
    fn start_outage_notifier(&self) -> Addr<DispatcherActor> {
        let notifier = OutageNotifier {
            store: self.store.clone(),
            clock: self.clock.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
        };
        let config = self.dispatcher_config(LaneKind::Outage, NOTICES_MAX);
        self.dispatcher(config, async move |lease| notifier.notify(lease).await)
            .start(&self.tree, &self.arbiters, kinds::INBOUND)
    }

    fn start_verifier(&self) -> Addr<DispatcherActor> {
        let entity_id = &self.settings.authority.entity_id;
        let verifier = Verifier {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            authority: self.authority.clone(),
            clock: self.clock.clone(),
            entity_id: (!entity_id.is_empty()).then(|| entity_id.clone()),
        };
        let config = self.dispatcher_config(LaneKind::Verification, VERIFICATIONS_MAX);
        self.dispatcher(config, async move |lease| verifier.verify(lease).await)
            .start(&self.tree, &self.arbiters, kinds::INBOUND)
    }

    fn start_import_worker(&self, worker: ImportWorker) -> Addr<DispatcherActor> {
        let config = self.dispatcher_config(LaneKind::Import, IMPORTS_MAX);
        self.dispatcher(config, async move |lease| worker.work(lease).await)
            .start(&self.tree, &self.arbiters, kinds::INBOUND)
    }

    fn start_correction_worker(&self, worker: CorrectionWorker) -> Addr<DispatcherActor> {
        let config = self.dispatcher_config(LaneKind::Correction, CORRECTIONS_MAX);
        self.dispatcher(config, async move |lease| worker.work(lease).await)
            .start(&self.tree, &self.arbiters, kinds::INBOUND)
    }

    fn start_transit_dispatcher(&self, poller: TransitPoller) -> Addr<DispatcherActor> {
        let config = self.dispatcher_config(LaneKind::Pull, 1);
        self.dispatcher(config, async move |lease| poller.work(lease).await)
            .start(&self.tree, &self.arbiters, kinds::INBOUND)
    }

    fn start_reconciler(
        &self,
        reconciler: Reconciler,
        requested: Arc<Notify>,
    ) -> Addr<DispatcherActor> {
        let config = DispatcherConfig {
            wake: requested,
            ..self.dispatcher_config(LaneKind::Reconciliation, 1)
        };
        let blocking = reconciler.clone();
        self.dispatcher(config, async move |lease| reconciler.work(lease).await)
            .with_blocked_steps(move || blocking.blocked_steps())
            .start(&self.tree, &self.arbiters, kinds::INBOUND)
    }

    pub(super) fn dispatcher<W>(&self, config: DispatcherConfig, work: W) -> Dispatcher
    where
        W: AsyncFn(&Lease) -> Result<WorkStatus, StoreError> + Clone + Send + Sync + 'static,
    {
        Dispatcher::for_work(self.store.clone(), config, &self.tree, work)
    }
}

/// The periodic work.
impl BuildContext<'_> {
    pub(super) fn start_periodic<W, E>(&self, period: Period, work: W) -> Addr<PeriodicActor>
    where
        W: AsyncFn() -> Result<Option<Duration>, E> + Clone + Send + 'static,
        E: std::fmt::Display + 'static,
    {
        PeriodicActor::start(&self.tree, &self.arbiters, period, work)
    }

    /// Starts periodic checkpoints. Returns `None` if the interval is 0, which means that checkpoints are made on
    /// demand only.
    fn start_checkpoints(&self, checkpointer: Checkpointer) -> Option<Addr<PeriodicActor>> {
        let every = Duration::from_secs(self.settings.checkpoints.every_s);
        if every.is_zero() {
            return None;
        }
        let period = Period::new(kinds::JANITOR, "checkpoints", every);
        let period = Period {
            first_after: every.min(checkpoint::FIRST_DELAY_MAX),
            ..period
        };
        Some(self.start_periodic(period, async move || {
            checkpointer.checkpoint().await.map(|()| None)
        }))
    }

    fn start_key_usage(&self, usage: &Arc<KeyUsage>) -> Addr<PeriodicActor> {
        let usage = Arc::clone(usage);
        let store = self.store.clone();
        let clock = self.clock.clone();
        let period = Period::new(kinds::JANITOR, "key-usage", key_usage::WRITE_EVERY);
        self.start_periodic(period, async move || {
            usage.write(&store, &clock).await.map(|()| None)
        })
    }

    fn start_request_log(&self, log: &Arc<RequestLog>) -> Addr<PeriodicActor> {
        let log = Arc::clone(log);
        let store = self.store.clone();
        let period = Period::new(kinds::JANITOR, "request-log", request_log::WRITE_EVERY);
        self.start_periodic(period, async move || log.write(&store).await)
    }

    fn start_sweeper(&self, log: &Arc<RequestLog>) -> Addr<PeriodicActor> {
        let store = self.store.clone();
        let clock = self.clock.clone();
        let log = Arc::clone(log);
        let period = Period::new(kinds::JANITOR, "sweeper", sweeper::SWEEP_EVERY);
        self.start_periodic(period, async move || {
            sweeper::sweep(&store, &clock, &log).await
        })
    }

    fn start_quarantine(&self) -> Addr<PeriodicActor> {
        let store = self.store.clone();
        let tree = self.tree.clone();
        let period = Period::new(kinds::JANITOR, "quarantine", quarantined::STORE_EVERY);
        self.start_periodic(period, async move || {
            quarantined::store_all(&store, &tree).await.map(|()| None)
        })
    }

    /// Starts the periodic work that lifts quarantines. Returns `None` if `cluster.quarantine_lift_s` is 0, which means
    /// never.
    fn start_quarantine_lift(&self) -> Option<Addr<PeriodicActor>> {
        let after = Duration::from_secs(self.settings.cluster.quarantine_lift_s);
        if after.is_zero() {
            return None;
        }
        let lift = QuarantineLift {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            clock: self.clock.clone(),
            started_at: self.clock.now(),
            lift_after: SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX),
        };
        let every = after.min(quarantine_lift::LOOK_EVERY);
        let period = Period::new(kinds::JANITOR, "quarantine-lift", every);
        Some(self.start_periodic(period, async move || lift.lift_due().await))
    }

    fn start_clock_watch(&self) -> Addr<PeriodicActor> {
        let watch = ClockWatch::new(self.store.clone(), self.clock.clone(), self.lease);
        let period = Period::new(kinds::JANITOR, "clock-watch", clock_watch::LOOK_EVERY);
        let period = Period {
            first_after: Duration::ZERO,
            ..period
        };
        self.start_periodic(period, async move || watch.check_clocks().await)
    }

    fn start_outage_detector(&self) -> Addr<PeriodicActor> {
        let clear_after =
            i64::try_from(self.settings.authority.outage_clear_after_s).unwrap_or(i64::MAX);
        let detector = OutageDetector {
            store: self.store.clone(),
            clock: self.clock.clone(),
            quiet: SignedDuration::from_secs(clear_after),
        };
        let authority = self.authority.clone();
        let period = Period::new(kinds::INBOUND, "outages", OBSERVE_EVERY);
        self.start_periodic(period, async move || {
            detector.observe_authority(&authority).await.map(|()| None)
        })
    }

    fn start_reference_refresh(
        &self,
        refresher: ReferenceRefresher,
        fresh_for: Duration,
    ) -> Addr<PeriodicActor> {
        let period = Period::new(kinds::REFERENCE, "reference-lists", fresh_for);
        self.start_periodic(period, async move || {
            Ok::<_, Infallible>(Some(refresher.refresh_and_schedule().await))
        })
    }

    /// Starts the janitor. It stops idle actors, lets actors that failed too often start again after `RESTART_PAUSE`,
    /// and reports actors that spend too long on one batch.
    fn start_janitor(&self) -> Addr<PeriodicActor> {
        let settings = self.settings;
        let idle = Duration::from_secs(settings.taxpayers.idle_s);
        let active_max = settings.taxpayers.active_max;
        let taxpayers = Arc::clone(&self.taxpayers);
        let tree = self.tree.clone();
        let external_timeout = Duration::from_secs(
            settings
                .authority
                .timeout_s
                .max(settings.webhooks.timeout_s),
        );
        let period = Period::new(kinds::JANITOR, "janitor", JANITOR_INTERVAL);
        self.start_periodic(period, async move || {
            let now = Instant::now();
            taxpayers.registry().passivate_idle(now, idle, active_max);
            taxpayers.registry().allow_restart(now, RESTART_PAUSE);
            watchdog::scan(
                &tree,
                |kind| kinds::watchdog_limits(kind, external_timeout),
                now,
            );
            Ok::<_, Infallible>(None)
        })
    }
}
