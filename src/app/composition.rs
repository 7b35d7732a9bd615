//! Builds the store, the authority's client and the actors. `App` owns every part; dropping one would stop it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use address_policy::AddressPolicy;
use authority_client::{Authority, CryptoKeys};
use database::StoreError;
use sandbox::Sandbox;
use supervision::{AdmissionLimits, Arbiters, Tree, assert_unwinding, install_hook};
use timing::clock::{SharedClock, SystemClock, new_id};
use webhook_client::{GuardedClient, RetrySchedule};

use crate::actors::checkpoint::LastCheckpoint;
use crate::actors::delivery::{DeliveryDeps, TokenCache};
use crate::actors::dispatch::Turns;
use crate::actors::inbound::{Inbound, TransitPoller};
use crate::actors::key_usage::KeyUsage;
use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::pipeline::PipelineDeps;
use crate::actors::pipeline::handle::PipelineHandle;
use crate::actors::pipeline::queue_position::QueueEstimator;
use crate::actors::reconciliation::{Reconciler, ReconciliationHandle, ReconciliationSchedule};
use crate::actors::reference::ReferenceRefresher;
use crate::actors::request_log::RequestLog;
use crate::actors::taxpayer::TaxpayerDeps;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::actors::taxpayer::panic_orders::PanicOrders;
use crate::app::authority_connection::{AuthorityConnection, retry_policy};
use crate::app::background_actors::{BackgroundActors, BackgroundWork, OutgoingWork};
use crate::app::checkpoint::checkpointer;
use crate::app::database::{open_for_service, open_store};
use crate::app::error::StartError;
use crate::app::process_lock::ProcessLock;
use crate::config::{Environment, Settings};
use crate::domain::events::endpoint_health::CircuitPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reference::catalog::SharedCatalog;
use crate::http::{CorrectionWorker, ImportWorker};
use crate::store::Store;
use crate::store::lanes::leases::{self, LeasesToEnd};
use crate::store::operations::{replicas, taxpayer_pauses};

/// At most this many bytes of a webhook endpoint's response are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The sender that webhooks name.
const USER_AGENT: &str = concat!("einvoice/", env!("CARGO_PKG_VERSION"));

/// Whether the process does what it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServeMode {
    Normal,
    /// Nothing is sent: no call to the authority, and no webhook. For a copy of a database beside the live one.
    Paused,
}

/// The parts of a running process.
pub struct App {
    pub store: Store,
    pub authority: Authority,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
    pub tree: Tree,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub pipeline: Arc<PipelineHandle>,
    pub inbound: Arc<Inbound>,
    pub reconciliations: Arc<ReconciliationHandle>,
    pub webhook_urls: AddressPolicy,
    pub delivery: Arc<DeliveryDeps>,
    /// `None` if this process makes no checkpoints.
    pub(super) last_checkpoint: Option<Arc<LastCheckpoint>>,
    pub sandbox: Option<Sandbox>,
    arbiters: Arc<Arbiters>,
    background: BackgroundActors,
    /// The name that this process writes into its leases.
    owner: String,
    _process_lock: Option<ProcessLock>,
}

/// The parts that most actors need. This value is used only while the app is built.
pub(super) struct BuildContext<'a> {
    pub(super) settings: &'a Settings,
    pub(super) store: Store,
    pub(super) clock: SharedClock,
    pub(super) authority: Authority,
    pub(super) taxpayers: Arc<TaxpayerHandle>,
    pub(super) catalog: SharedCatalog,
    pub(super) notifiers: Notifiers,
    pub(super) tree: Tree,
    pub(super) arbiters: Arc<Arbiters>,
    /// The name that this process writes into its leases.
    pub(super) owner: String,
    pub(super) lease: Duration,
}

impl App {
    pub async fn build(settings: &Settings, mode: ServeMode) -> Result<Self, StartError> {
        assert_unwinding().map_err(StartError::Panics)?;
        install_hook();
        let clock: SharedClock = Arc::new(SystemClock);
        // A copy of a database may have to do without its secrets, and nothing is sent with them.
        let store = match mode {
            ServeMode::Normal => open_for_service(settings).await?,
            ServeMode::Paused => open_store(settings).await?,
        };
        let owner = new_id().to_string();
        let process_lock = ProcessLock::acquire(settings, &store, &owner).await?;
        let AuthorityConnection {
            authority,
            keys,
            sandbox,
        } = AuthorityConnection::connect(settings, mode, &clock).await?;
        let context = BuildContext::start(settings, store, clock, authority, owner);
        let pauses = taxpayer_pauses::list(&context.store).await?;
        context.taxpayers.paused_taxpayers().set(pauses);
        let pipeline = context.pipeline();
        let catalog = context.catalog.clone();
        let reference_refresher = context.reference_refresher(&catalog);
        let asks_at_once = sandbox.is_some() && mode == ServeMode::Normal;
        let reference_fresh_for = reference_refresher.load(asks_at_once).await?;
        let webhook_urls = webhook_addresses(settings);
        let delivery = Arc::new(context.delivery(&webhook_urls)?);
        let inbound = context.inbound();
        let reconciliations = reconciliations(settings, &context.store, &context.clock);
        let checkpointer = checkpointer(settings, &context.store, &context.clock)?;
        let last_checkpoint = checkpointer
            .as_ref()
            .map(|checkpointer| Arc::clone(&checkpointer.last));
        let outgoing = OutgoingWork {
            reference_refresher,
            reference_fresh_for,
            transit_poller: context.transit_poller(&inbound),
            reconciler: context.reconciler(),
            mailer: context.mailer(delivery.client.clone())?,
            reconciliation_requested: Arc::clone(&reconciliations.requested),
        };
        let work = BackgroundWork {
            pipeline: context.pipeline_deps(&pipeline, keys, &delivery),
            delivery: Arc::clone(&delivery),
            outgoing: outgoing.schedule_unless_paused(mode).await?,
            checkpointer,
            imports: context.import_worker(&catalog),
            corrections: context.correction_worker(&catalog),
        };
        let background = BackgroundActors::start(&context, work);
        Ok(Self {
            store: context.store,
            authority: context.authority,
            catalog,
            clock: context.clock,
            tree: context.tree,
            taxpayers: context.taxpayers,
            pipeline: Arc::new(pipeline),
            inbound,
            reconciliations,
            webhook_urls,
            delivery,
            last_checkpoint,
            sandbox,
            arbiters: context.arbiters,
            background,
            owner: context.owner,
            _process_lock: process_lock,
        })
    }

    /// Returns the name that this process writes into its leases.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the record of the API key uses that are not yet written to the database.
    pub(super) fn key_usage(&self) -> Arc<KeyUsage> {
        Arc::clone(&self.background.key_usage)
    }

    /// Returns the requests that are not yet written to the request log.
    pub(super) fn request_log(&self) -> Arc<RequestLog> {
        Arc::clone(&self.background.request_log)
    }

    /// Stops the parts in order. Work in flight gets at most `drain_max`. Queued work stays in the database.
    pub async fn close(self, drain_max: Duration) {
        self.background.runs.close();
        self.background.deliveries.close();
        let taxpayers = self.taxpayers.registry();
        let ends_at = Instant::now() + drain_max;
        let left = || ends_at.saturating_duration_since(Instant::now());
        let drained = self.background.runs.drain(left()).await
            & self.background.deliveries.drain(left()).await
            & taxpayers.drain(left()).await;
        if !drained {
            tracing::warn!("some work did not finish in time; it will continue at the next start");
        }
        taxpayers.close();
        self.arbiters.stop();
        if !self.arbiters.join().await {
            tracing::warn!("the actor threads did not stop cleanly");
        }
        if let Err(error) = self.background.request_log.write_all(&self.store).await {
            tracing::warn!(%error, "failed to write the last requests to the request log");
        }
        if let Err(error) = release_leases(&self.store, &self.owner).await {
            tracing::warn!(%error, "failed to release leases; they will expire");
        }
        if let Err(error) = replicas::forget_stopped(&self.store, &self.owner).await {
            tracing::warn!(%error, "failed to say good-bye; the other replicas will miss this one");
        }
        self.store.close().await;
        if let Some(sandbox) = self.sandbox {
            sandbox.stop().await;
        }
    }
}

impl<'a> BuildContext<'a> {
    /// Starts the actor threads, on which the taxpayers' actors start on demand.
    fn start(
        settings: &'a Settings,
        store: Store,
        clock: SharedClock,
        authority: Authority,
        owner: String,
    ) -> Self {
        let tree = Tree::new(clock.clone(), kinds::ALL);
        let arbiters = Arc::new(Arbiters::start(
            std::thread::available_parallelism().map_or(1, Into::into),
        ));
        let notifiers = Notifiers::default();
        let catalog = SharedCatalog::default();
        let taxpayers = Arc::new(TaxpayerHandle::new(
            taxpayer_deps(settings, &store, &clock, &notifiers, &catalog),
            &tree,
            &arbiters,
            command_limits(settings),
        ));
        Self {
            settings,
            store,
            clock,
            authority,
            taxpayers,
            catalog,
            notifiers,
            tree,
            arbiters,
            owner,
            lease: Duration::from_secs(settings.cluster.lease_s),
        }
    }
}

impl BuildContext<'_> {
    fn pipeline(&self) -> PipelineHandle {
        PipelineHandle {
            taxpayers: Arc::clone(&self.taxpayers),
            store: self.store.clone(),
            authority: self.authority.clone(),
            run_changes: self.notifiers.run_changes.clone(),
            backlog: QueueEstimator::new(
                self.store.clone(),
                self.authority.clone(),
                self.clock.clone(),
                self.taxpayers.paused_taxpayers().clone(),
                self.settings.pipeline.concurrency_max,
            ),
        }
    }

    fn reference_refresher(&self, catalog: &SharedCatalog) -> ReferenceRefresher {
        ReferenceRefresher {
            store: self.store.clone(),
            authority: self.authority.clone(),
            catalog: catalog.clone(),
            clock: self.clock.clone(),
        }
    }

    fn pipeline_deps(
        &self,
        pipeline: &PipelineHandle,
        keys: Option<CryptoKeys>,
        delivery: &DeliveryDeps,
    ) -> PipelineDeps {
        PipelineDeps {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            authority: self.authority.clone(),
            keys,
            retry: retry_policy(self.settings),
            clock: self.clock.clone(),
            measurements: Arc::clone(&pipeline.backlog.measurements),
            incidents: Arc::clone(&delivery.incidents),
            durations: Arc::clone(&delivery.durations),
        }
    }

    fn inbound(&self) -> Arc<Inbound> {
        Arc::new(Inbound::new(
            self.store.clone(),
            Arc::clone(&self.taxpayers),
            self.authority.clone(),
            self.settings.accounts.verification,
        ))
    }

    /// Returns the poller of the authority's list of invoices in transit.
    fn transit_poller(&self, inbound: &Arc<Inbound>) -> TransitPoller {
        let every = Duration::from_secs(self.settings.authority.pull_every_s);
        TransitPoller::new(Arc::clone(inbound), self.clock.clone(), every)
    }

    fn import_worker(&self, catalog: &SharedCatalog) -> ImportWorker {
        ImportWorker {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            catalog: catalog.clone(),
            clock: self.clock.clone(),
            utc_offset: self.settings.authority.utc_offset,
        }
    }

    fn correction_worker(&self, catalog: &SharedCatalog) -> CorrectionWorker {
        CorrectionWorker {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            catalog: catalog.clone(),
            clock: self.clock.clone(),
        }
    }

    fn reconciler(&self) -> Reconciler {
        Reconciler {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            authority: self.authority.clone(),
            clock: self.clock.clone(),
            schedule: reconciler_schedule(self.settings),
        }
    }

    fn delivery(&self, urls: &AddressPolicy) -> Result<DeliveryDeps, StartError> {
        let webhooks = &self.settings.webhooks;
        let timeout = Duration::from_secs(webhooks.timeout_s);
        Ok(DeliveryDeps {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            client: GuardedClient::new(urls.clone(), timeout, ANSWER_BYTES_MAX, USER_AGENT)?,
            tokens: TokenCache::default(),
            schedule: RetrySchedule::new(
                webhooks
                    .retry_schedule_s
                    .iter()
                    .copied()
                    .map(Duration::from_secs)
                    .collect(),
            ),
            circuit: CircuitPolicy {
                open_after: Duration::from_secs(webhooks.circuit_open_after_s),
                probe_interval_max: Duration::from_secs(webhooks.circuit_probe_max_s),
                disable_after: Duration::from_secs(webhooks.disable_after_s),
            },
            max_concurrent: webhooks.max_concurrent_per_endpoint,
            wakeups: self.notifiers.endpoint_work.clone(),
            turns: Turns::default(),
            is_closing: AtomicBool::new(false),
            is_paused: self.authority.is_paused(),
            clock: self.clock.clone(),
            incidents: Arc::default(),
            durations: Arc::default(),
        })
    }
}

/// Releases this process's leases at shutdown; otherwise their work would count as interrupted by a crash. The
/// database connections ended with the actor threads, so new ones are opened first.
pub(super) async fn release_leases(store: &Store, owner: &str) -> Result<(), StoreError> {
    store.renew_writers().await?;
    leases::end(store, LeasesToEnd::Stopped(owner)).await?;
    Ok(())
}

/// Returns the rule for the addresses of webhooks. In production every allowed network must name a port.
pub(super) fn webhook_addresses(settings: &Settings) -> AddressPolicy {
    let wants_ports = settings.environment == Environment::Production;
    AddressPolicy::new(settings.allowed_networks()).with_required_ports(wants_ports)
}

pub(super) fn taxpayer_deps(
    settings: &Settings,
    store: &Store,
    clock: &SharedClock,
    notifiers: &Notifiers,
    catalog: &SharedCatalog,
) -> TaxpayerDeps {
    TaxpayerDeps {
        store: store.clone(),
        clock: clock.clone(),
        notifiers: notifiers.clone(),
        deadlines: deadlines(settings),
        verification: settings.accounts.verification,
        panic_orders: match settings.environment {
            Environment::Development => PanicOrders::for_development(),
            Environment::Production => PanicOrders::default(),
        },
        catalog: catalog.clone(),
    }
}

fn deadlines(settings: &Settings) -> DeadlinePolicy {
    let given = &settings.deadlines;
    DeadlinePolicy {
        b2b: Duration::from_hours(given.b2b_h),
        b2c: Duration::from_hours(given.b2c_h),
        b2g: Duration::from_hours(given.b2g_h),
        offset: settings.authority.utc_offset,
    }
}

pub(super) fn reconciliations(
    settings: &Settings,
    store: &Store,
    clock: &SharedClock,
) -> Arc<ReconciliationHandle> {
    Arc::new(ReconciliationHandle::new(
        store.clone(),
        clock.clone(),
        settings.authority.utc_offset,
    ))
}

pub(super) fn reconciler_schedule(settings: &Settings) -> ReconciliationSchedule {
    let every = Duration::from_secs(settings.reconcile.every_s);
    ReconciliationSchedule {
        every: (!every.is_zero()).then_some(every),
        days: settings.reconcile.days,
        zone: settings.authority.utc_offset,
    }
}

fn command_limits(settings: &Settings) -> AdmissionLimits {
    AdmissionLimits {
        per_key_max: settings.taxpayers.commands_per_taxpayer_max,
        process_max: settings.taxpayers.commands_max,
        ..AdmissionLimits::default()
    }
}
