//! Builds the store, the authority's client and the actors. `App` keeps all of these parts, because a part stops when
//! it is dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use address_policy::AddressPolicy;
use authority_client::Authority;
use database::StoreError;
use sandbox::Sandbox;
use supervision::{Arbiters, Tree, assert_unwinding, install_hook};
use timing::clock::{SharedClock, SystemClock, new_id};

use crate::actors::checkpoint::LastCheckpoint;
use crate::actors::delivery::DeliveryDeps;
use crate::actors::inbound::InboundInvoices;
use crate::actors::key_usage::KeyUsage;
use crate::actors::pipeline::handle::PipelineHandle;
use crate::actors::reconciliation::ReconciliationHandle;
use crate::actors::request_log::RequestLog;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::app::authority_connection::AuthorityConnection;
use crate::app::background_actors::{BackgroundActors, BackgroundWork, OutgoingWork};
use crate::app::build_context::BuildContext;
use crate::app::checkpoint::checkpointer;
use crate::app::database::{open_for_service, open_store};
use crate::app::error::StartError;
use crate::app::process_lock::ProcessLock;
use crate::app::serve_mode::ServeMode;
use crate::config::{Environment, Settings};
use crate::domain::reference::catalog::SharedCatalog;
use crate::store::Store;
use crate::store::lanes::leases::{self, LeasesToEnd};
use crate::store::operations::{replicas, taxpayer_pauses};

/// The parts of a running process.
pub struct App {
    pub store: Store,
    pub authority: Authority,
    /// The length of the longest IRN that fits into a QR code; `None` if this process makes no QR codes.
    pub(super) irn_chars_max: Option<usize>,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
    pub tree: Tree,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub pipeline: Arc<PipelineHandle>,
    pub inbound: Arc<InboundInvoices>,
    pub reconciliations: Arc<ReconciliationHandle>,
    pub webhook_urls: AddressPolicy,
    pub delivery: Arc<DeliveryDeps>,
    /// `None` if this process makes no checkpoints.
    pub(super) last_checkpoint: Option<Arc<LastCheckpoint>>,
    pub sandbox: Option<Sandbox>,
    arbiters: Arc<Arbiters>,
    background: BackgroundActors,
    /// The id under which this process holds leases on work in the database. Each start of a process has a new one.
    owner: String,
    _process_lock: Option<ProcessLock>,
}

impl App {
    pub async fn build(settings: &Settings, mode: ServeMode) -> Result<Self, StartError> {
        assert_unwinding().map_err(StartError::Panics)?;
        install_hook();
        let clock: SharedClock = Arc::new(SystemClock);
        // A paused service sends nothing, so it may run on a copy of a database whose encryption key is not known.
        let store = match mode {
            ServeMode::Normal => open_for_service(settings).await?,
            ServeMode::Paused => open_store(settings).await?,
        };
        let owner = new_id().to_string();
        let process_lock = ProcessLock::acquire(settings, &store, &owner).await?;
        let AuthorityConnection {
            authority,
            keys,
            irn_chars_max,
            sandbox,
        } = AuthorityConnection::connect(settings, mode, &clock).await?;
        let context = BuildContext::start(settings, store, clock, authority, owner);
        let pauses = taxpayer_pauses::list(&context.store).await?;
        context.taxpayers.paused_taxpayers().set(pauses);
        let pipeline = context.pipeline();
        let reference_refresher = context.reference_refresher(&context.catalog);
        let is_fetched_at_start = sandbox.is_some() && mode == ServeMode::Normal;
        let reference_fetch_delay = reference_refresher.load(is_fetched_at_start).await?;
        let webhook_urls = webhook_addresses(settings);
        let delivery = Arc::new(context.delivery_deps(&webhook_urls)?);
        let inbound = context.inbound_invoices();
        let reconciliations = reconciliation_handle(settings, &context.store, &context.clock);
        let checkpointer = checkpointer(settings, &context.store, &context.clock)?;
        let last_checkpoint = checkpointer
            .as_ref()
            .map(|checkpointer| Arc::clone(&checkpointer.last));
        let outgoing = OutgoingWork {
            reference_refresher,
            reference_fetch_delay,
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
            imports: context.import_worker(&context.catalog),
            corrections: context.correction_worker(&context.catalog, irn_chars_max),
        };
        let background = BackgroundActors::start(&context, work);
        Ok(Self {
            store: context.store,
            authority: context.authority,
            irn_chars_max,
            catalog: context.catalog,
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

    /// Returns the id under which this process holds leases.
    pub(super) fn lease_owner(&self) -> &str {
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
        let drain_deadline = Instant::now() + drain_max;
        let time_left = || drain_deadline.saturating_duration_since(Instant::now());
        let drained = self.background.runs.drain(time_left()).await
            & self.background.deliveries.drain(time_left()).await
            & taxpayers.drain(time_left()).await;
        if !drained {
            tracing::warn!("some work did not finish in time; it will continue at the next start");
        }
        taxpayers.close();
        self.arbiters.stop();
        if !self.arbiters.join().await {
            tracing::warn!("the actor threads did not stop cleanly");
        }
        // The release opens the connections that all other writes need, so it comes first.
        let released = release_leases(&self.store, &self.owner).await;
        if let Err(error) = &released {
            tracing::warn!(%error, "failed to release leases; they will expire");
        }
        if let Err(error) = self.background.request_log.write_all(&self.store).await {
            tracing::warn!(%error, "failed to write the last requests to the request log");
        }
        // This is skipped if the leases could not be released. The database then does not answer, and each write that
        // waits for it delays the end of the process.
        if released.is_ok()
            && let Err(error) = self
                .background
                .key_usage
                .write_recorded_uses(&self.store, &self.clock)
                .await
        {
            tracing::warn!(%error, "failed to write the last uses of keys");
        }
        if let Err(error) = replicas::forget_stopped(&self.store, &self.owner).await {
            tracing::warn!(%error, "failed to deregister; the other replicas will report this one as missing");
        }
        self.store.close().await;
        if let Some(sandbox) = self.sandbox {
            sandbox.stop().await;
        }
    }
}

/// Releases this process's leases at shutdown; otherwise their work would count as interrupted by a crash. The
/// database connections ended with the actor threads, so new ones are opened first.
pub(super) async fn release_leases(store: &Store, owner: &str) -> Result<(), StoreError> {
    store.replace_write_connections().await?;
    leases::end_leases(store, LeasesToEnd::Stopped(owner)).await?;
    Ok(())
}

/// Returns the rule for the addresses of webhooks. In production every allowed network must name a port.
pub(super) fn webhook_addresses(settings: &Settings) -> AddressPolicy {
    let needs_ports = settings.environment == Environment::Production;
    AddressPolicy::new(settings.allowed_networks()).with_required_ports(needs_ports)
}

pub(super) fn reconciliation_handle(
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
