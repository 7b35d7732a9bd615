//! The actors that run for the life of the process: the dispatchers of runs, deliveries and other work, and the start
//! of all of them. The periodic actors are in `periodic_actors`.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use database::StoreError;
use supervision::PeriodicActor;
use tokio::sync::Notify;

use crate::actors::checkpoint::Checkpointer;
use crate::actors::delivery::{DeliveryDeps, DeliveryPool};
use crate::actors::dispatch::{Dispatcher, DispatcherActor, DispatcherConfig, WorkStatus};
use crate::actors::inbound::TransitPoller;
use crate::actors::key_leases::KeyLeaseActor;
use crate::actors::key_usage::KeyUsage;
use crate::actors::kinds;
use crate::actors::mail::Mailer;
use crate::actors::outage::{NOTICES_MAX, OutageNotifier};
use crate::actors::pipeline::{PipelineDeps, RunPool};
use crate::actors::reconciliation::Reconciler;
use crate::actors::reference::ReferenceRefresher;
use crate::actors::request_log::RequestLog;
use crate::actors::verification::{VERIFICATIONS_MAX, Verifier};
use crate::app::build_context::BuildContext;
use crate::app::serve_mode::ServeMode;
use crate::http::{CORRECTIONS_MAX, CorrectionWorker, IMPORTS_MAX, ImportWorker};
use crate::store::lanes::{LaneKind, Lease};

/// The largest number of endpoints that one process delivers to at the same time.
const ENDPOINTS_MAX: usize = 2_048;
/// The maximum number of runs that a dispatcher claims in one statement. It is small, because the statement grows with
/// each taxpayer in it.
const RUNS_PER_CLAIM: usize = 32;
const ENDPOINTS_PER_CLAIM: usize = 256;

/// The intervals at which dispatchers look for due work. Runs and deliveries are urgent; other work can wait longer.
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

/// The work, besides runs and deliveries, that calls the authority or sends something to people.
pub(super) struct OutgoingWork {
    pub(super) reference_refresher: ReferenceRefresher,
    /// The delay before the reference lists are fetched from the authority. It is 0 for a remote authority, so that the
    /// lists are fetched right after the start.
    pub(super) reference_fetch_delay: Duration,
    pub(super) transit_poller: TransitPoller,
    pub(super) reconciler: Reconciler,
    /// `None` if this service sends no mails.
    pub(super) mailer: Option<Mailer>,
    pub(super) reconciliation_requested: Arc<Notify>,
}

impl OutgoingWork {
    /// Makes the poll of invoices in transit and the periodic reconciliations due now. Returns `None` for a paused
    /// process, which does none of this work.
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
            context.start_key_usage_writer(&key_usage),
            context.start_request_log_writer(&request_log),
            context.start_sweeper(&request_log),
            context.start_quarantine_writer(),
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
                let (dispatcher, lane_waker) = context.start_mailer(mailer);
                dispatchers.push(dispatcher);
                periodic.push(lane_waker);
            }
            periodic.extend([
                context.start_outage_detector(),
                context.start_reference_refresh(
                    outgoing.reference_refresher,
                    outgoing.reference_fetch_delay,
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

/// The dispatchers of runs and deliveries. Each gives its work to a pool, which starts a task for each run or endpoint.
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

/// The dispatchers of all other work. Each calls a function with the work that it has claimed.
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
