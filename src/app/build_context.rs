//! The parts that most actors need, and the functions that build handles and workers from them while the app starts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use address_policy::AddressPolicy;
use authority_client::{Authority, CryptoKeys};
use supervision::{AdmissionLimits, Arbiters, Tree};
use timing::clock::SharedClock;
use webhook_client::{GuardedClient, RetrySchedule};

use crate::actors::delivery::{DeliveryDeps, TokenCache};
use crate::actors::dispatch::IsolationTurns;
use crate::actors::inbound::{InboundInvoices, TransitPoller};
use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::pipeline::PipelineDeps;
use crate::actors::pipeline::handle::PipelineHandle;
use crate::actors::pipeline::queue_position::QueueEstimator;
use crate::actors::reconciliation::{Reconciler, ReconciliationSchedule};
use crate::actors::reference::ReferenceRefresher;
use crate::actors::taxpayer::TaxpayerDeps;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::actors::taxpayer::scheduled_panics::ScheduledPanics;
use crate::app::authority_connection::retry_policy;
use crate::app::error::StartError;
use crate::config::{Environment, Settings};
use crate::domain::events::endpoint_health::CircuitPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reference::catalog::SharedCatalog;
use crate::http::{CorrectionWorker, ImportWorker};
use crate::store::Store;

/// At most this many bytes of a webhook endpoint's response are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The `User-Agent` header of the requests to webhooks.
const USER_AGENT: &str = concat!("einvoice/", env!("CARGO_PKG_VERSION"));

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
    /// The id under which this process holds leases on work in the database. Each start of a process has a new one.
    pub(super) owner: String,
    pub(super) lease: Duration,
}

impl<'a> BuildContext<'a> {
    /// Starts the actor threads, on which the taxpayers' actors start on demand.
    pub(super) fn start(
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
    pub(super) fn pipeline(&self) -> PipelineHandle {
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

    pub(super) fn reference_refresher(&self, catalog: &SharedCatalog) -> ReferenceRefresher {
        ReferenceRefresher {
            store: self.store.clone(),
            authority: self.authority.clone(),
            catalog: catalog.clone(),
            clock: self.clock.clone(),
        }
    }

    pub(super) fn pipeline_deps(
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

    pub(super) fn inbound_invoices(&self) -> Arc<InboundInvoices> {
        Arc::new(InboundInvoices::new(
            self.store.clone(),
            Arc::clone(&self.taxpayers),
            self.authority.clone(),
            self.settings.accounts.verification,
        ))
    }

    /// Returns the poller of the authority's list of invoices in transit.
    pub(super) fn transit_poller(&self, inbound: &Arc<InboundInvoices>) -> TransitPoller {
        let interval = Duration::from_secs(self.settings.authority.pull_every_s);
        TransitPoller::new(Arc::clone(inbound), self.clock.clone(), interval)
    }

    pub(super) fn import_worker(&self, catalog: &SharedCatalog) -> ImportWorker {
        ImportWorker {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            catalog: catalog.clone(),
            clock: self.clock.clone(),
            utc_offset: self.settings.authority.utc_offset,
        }
    }

    pub(super) fn correction_worker(
        &self,
        catalog: &SharedCatalog,
        irn_chars_max: Option<usize>,
    ) -> CorrectionWorker {
        CorrectionWorker {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            catalog: catalog.clone(),
            clock: self.clock.clone(),
            irn_chars_max,
        }
    }

    pub(super) fn reconciler(&self) -> Reconciler {
        Reconciler {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            authority: self.authority.clone(),
            clock: self.clock.clone(),
            schedule: reconciler_schedule(self.settings),
        }
    }

    pub(super) fn delivery_deps(
        &self,
        webhook_urls: &AddressPolicy,
    ) -> Result<DeliveryDeps, StartError> {
        let webhooks = &self.settings.webhooks;
        let timeout = Duration::from_secs(webhooks.timeout_s);
        Ok(DeliveryDeps {
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            client: GuardedClient::new(
                webhook_urls.clone(),
                timeout,
                ANSWER_BYTES_MAX,
                USER_AGENT,
            )?,
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
            turns: IsolationTurns::default(),
            is_closing: AtomicBool::new(false),
            is_paused: self.authority.is_paused(),
            clock: self.clock.clone(),
            incidents: Arc::default(),
            durations: Arc::default(),
        })
    }
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
        deadlines: deadline_policy(settings),
        verification: settings.accounts.verification,
        scheduled_panics: match settings.environment {
            Environment::Development => ScheduledPanics::enabled(),
            Environment::Production => ScheduledPanics::default(),
        },
        catalog: catalog.clone(),
    }
}

pub(super) fn deadline_policy(settings: &Settings) -> DeadlinePolicy {
    let deadlines = &settings.deadlines;
    DeadlinePolicy {
        b2b: Duration::from_hours(deadlines.b2b_h),
        b2c: Duration::from_hours(deadlines.b2c_h),
        b2g: Duration::from_hours(deadlines.b2g_h),
        offset: settings.authority.utc_offset,
    }
}

pub(super) fn reconciler_schedule(settings: &Settings) -> ReconciliationSchedule {
    let interval = Duration::from_secs(settings.reconcile.every_s);
    ReconciliationSchedule {
        every: (!interval.is_zero()).then_some(interval),
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
