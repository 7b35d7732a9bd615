//! What a running process is made of, from the ground up: the store, the authority, the actors. Dropped parts
//! would stop; so the house holds them all, and `close` ends them in order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sandbox::Sandbox;
use secrecy::ExposeSecret;

use crate::actors::delivery::{DeliveryDeps, TokenCache};
use crate::actors::inbound::{Inbound, Pull, Schedule as PullSchedule};
use crate::actors::key_usage::KeyUsage;
use crate::actors::pipeline::Gear;
use crate::actors::pipeline::backlog::Backlog;
use crate::actors::pipeline::door::Pipeline;
use crate::actors::reconciliation::{Reconciler, Reconciliations, Rhythm, Schedule as ReconcilerSchedule};
use crate::actors::reference::Snapshot;
use crate::actors::supervision::{AdmissionLimits, Arbiters, Tree, assert_unwinding, install_hook};
use crate::actors::taxpayer::TaxpayerDeps;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::actors::wake::Wakers;
use crate::app::checkpoint::checkpointer;
use crate::app::error::StartError;
use crate::app::sole::Sole;
use crate::app::staff::Staff;
use crate::app::upstream::{Upstream, retry_policy};
use crate::authority::Authority;
use crate::config::{Environment, Settings};
use crate::domain::events::endpoint_health::CircuitPolicy;
use crate::domain::kernel::clock::{SharedClock, SystemClock, new_id};
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reference::catalog::SharedCatalog;
use crate::store::db::connections::{PoolSettings, Store};
use crate::store::db::error::StoreError;
use crate::store::db::vault::Vault;
use crate::store::lanes::leases;
use crate::webhook::{AddressPolicy, GuardedClient, Schedule};

/// Bytes read of an endpoint's answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How long a call of the command line waits for an SQLite database that is written to.
const CALL_BUSY_WAIT: Duration = Duration::from_secs(30);

/// The parts of a process.
pub struct House {
    pub store: Store,
    pub authority: Authority,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
    pub tree: Tree,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub pipeline: Arc<Pipeline>,
    pub inbound: Arc<Inbound>,
    pub reconciliations: Arc<Reconciliations>,
    pub webhook_urls: AddressPolicy,
    pub delivery: Arc<DeliveryDeps>,
    pub sandbox: Option<Sandbox>,
    arbiters: Arc<Arbiters>,
    staff: Staff,
    /// Names this process in its leases.
    owner: String,
    _sole: Option<Sole>,
}

/// Opens the database of the settings and brings its schema up to date.
pub async fn open_store(settings: &Settings) -> Result<Store, StartError> {
    open_with(settings, &pool_settings(settings)).await
}

/// The same for a call of the command line: it may come beside a service that writes without a pause, and nobody waits
/// for it but its caller.
pub(super) async fn open_patiently(settings: &Settings) -> Result<Store, StartError> {
    open_with(settings, &PoolSettings { busy_wait: CALL_BUSY_WAIT, ..pool_settings(settings) }).await
}

async fn open_with(settings: &Settings, pools: &PoolSettings) -> Result<Store, StartError> {
    let opened = Store::open(settings.database_url().expose_secret(), pools, vault(settings)?).await;
    let store = opened.map_err(|source| unopened(settings, source))?;
    store.migrate().await.map_err(|source| unopened(settings, source))?;
    Ok(store)
}

/// Names the database, without the credentials of its URL.
fn unopened(settings: &Settings, source: StoreError) -> StartError {
    StartError::Database { place: settings.database_place(), source }
}

fn pool_settings(settings: &Settings) -> PoolSettings {
    let given = &settings.database;
    PoolSettings {
        writers_max: given.writer_connections_max,
        readers_max: given.reader_connections_max,
        lock_timeout: Duration::from_secs(given.lock_timeout_s),
        statement_timeout: Duration::from_secs(given.statement_timeout_s),
        idle_in_transaction_timeout: Duration::from_secs(given.idle_in_transaction_timeout_s),
        ..PoolSettings::default()
    }
}

/// Opens the database of the settings as it is.
pub(super) async fn open_existing(settings: &Settings) -> Result<Store, StartError> {
    let (url, pools) = (settings.database_url(), pool_settings(settings));
    let opened = Store::open_existing(url.expose_secret(), &pools, vault(settings)?).await;
    opened.map_err(|source| unopened(settings, source))
}

fn vault(settings: &Settings) -> Result<Vault, StartError> {
    let secrets = &settings.secrets;
    let old = secrets.encryption_keys.iter().map(ExposeSecret::expose_secret);
    Ok(Vault::new(secrets.encryption_key.expose_secret())?.with_old(old)?)
}

impl House {
    pub async fn build(settings: &Settings) -> Result<Self, StartError> {
        assert_unwinding().map_err(StartError::Panics)?;
        install_hook();
        let clock: SharedClock = Arc::new(SystemClock);
        let store = open_store(settings).await?;
        let sole = Sole::claim(settings, &store).await?;
        let Upstream { authority, keys, sandbox } = Upstream::reach(settings, &clock).await?;
        let tree = Tree::new(clock.clone());
        let arbiters = Arc::new(Arbiters::start(std::thread::available_parallelism().map_or(1, Into::into)));
        let wakers = Wakers::default();
        let desktop = desktop(settings, &store, &clock, &wakers);
        let taxpayers = Arc::new(TaxpayerHandle::new(desktop, &tree, &arbiters, limits(settings)));
        let pipeline = Pipeline {
            taxpayers: Arc::clone(&taxpayers),
            store: store.clone(),
            authority: authority.clone(),
            waiters: wakers.waiters.clone(),
            backlog: Backlog::new(store.clone(), authority.clone(), clock.clone()),
        };
        let inbound = inbound(settings, &store, &taxpayers, &authority);
        let catalog = SharedCatalog::default();
        let snapshot = Snapshot {
            store: store.clone(),
            authority: authority.clone(),
            catalog: catalog.clone(),
            clock: clock.clone(),
        };
        let fresh_for = snapshot.begin(sandbox.is_some()).await?;
        let webhook_urls = webhook_addresses(settings);
        let delivery = Arc::new(delivery(settings, &webhook_urls, (&store, &taxpayers, &clock), &wakers)?);
        let gear = Gear {
            store: store.clone(),
            taxpayers: Arc::clone(&taxpayers),
            authority: authority.clone(),
            keys,
            retry: retry_policy(settings),
            clock: clock.clone(),
            pace: Arc::clone(&pipeline.backlog.pace),
            incidents: Arc::clone(&delivery.incidents),
        };
        let owner = new_id().to_string();
        let snapshot = snapshot.start(&tree, &arbiters, fresh_for);
        let pull = pull(settings, &inbound, &clock, &owner).await?.start(&tree, &arbiters);
        let reconciliations = reconciliations(settings, &store, &clock);
        let (upstream, ours) = ((&taxpayers, &authority), (settings, owner.as_str()));
        let reconciler = reconciler(ours, (&store, &clock), upstream, &reconciliations).await?;
        let others = (snapshot, pull, reconciler.start(&tree, &arbiters));
        let own = (owner.as_str(), &wakers, &taxpayers);
        let staff = Staff::hire(settings, (&tree, &arbiters), own, (gear, &delivery), others);
        let checkpointer = checkpointer(settings, &store, &clock)?;
        let staff = staff.checkpointing(checkpointer, settings.checkpoints.every_s, (&tree, &arbiters));
        Ok(Self {
            store,
            authority,
            catalog,
            clock,
            tree,
            taxpayers,
            pipeline: Arc::new(pipeline),
            inbound,
            reconciliations,
            webhook_urls,
            delivery,
            sandbox,
            arbiters,
            staff,
            owner,
            _sole: sole,
        })
    }

    /// The uses of API keys that wait to be written.
    pub(super) fn key_usage(&self) -> Arc<KeyUsage> {
        Arc::clone(&self.staff.key_usage)
    }

    /// Ends the parts in order: what is under way is finished within `patience`, what waits stays in the database.
    pub async fn close(self, patience: Duration) {
        self.staff.runs.close();
        self.delivery.close();
        let books = self.taxpayers.registry();
        let ends_at = Instant::now() + patience;
        let left = || ends_at.saturating_duration_since(Instant::now());
        let drained = self.staff.runs.drain(left()).await
            & self.staff.endpoints.drain(left()).await
            & books.drain(left()).await;
        if !drained {
            tracing::warn!("some work was still under way; it will go on at the next start");
        }
        self.staff.endpoints.close();
        books.close();
        self.arbiters.stop();
        if !self.arbiters.join().await {
            tracing::warn!("the threads of the actors have not ended in order");
        }
        if let Err(error) = give_back(&self.store, &self.owner).await {
            tracing::warn!(%error, "failed to give back what was under way; its leases will end");
        }
        self.store.close().await;
        if let Some(sandbox) = self.sandbox {
            sandbox.stop().await;
        }
    }
}

/// Gives back what was still under way when the threads of the actors ended, and their connections with them. It did not
/// end the process: at the next start it is not counted.
async fn give_back(store: &Store, owner: &str) -> Result<(), StoreError> {
    store.renew_writers().await?;
    leases::release_owned_by(store, owner).await
}

/// Where webhooks may go.
fn webhook_addresses(settings: &Settings) -> AddressPolicy {
    let wants_ports = settings.environment == Environment::Production;
    AddressPolicy::new(settings.allowed_networks()).requiring_ports(wants_ports)
}

/// What works with the authority's word of invoices.
fn inbound(
    settings: &Settings,
    store: &Store,
    taxpayers: &Arc<TaxpayerHandle>,
    authority: &Authority,
) -> Arc<Inbound> {
    let policy = settings.accounts.verification;
    Arc::new(Inbound::new(store.clone(), Arc::clone(taxpayers), authority.clone(), policy))
}

/// What reads the authority's list for missed notices, its first turn due at once.
async fn pull(
    settings: &Settings,
    inbound: &Arc<Inbound>,
    clock: &SharedClock,
    owner: &str,
) -> Result<Pull, StartError> {
    let schedule = PullSchedule {
        every: Duration::from_secs(settings.authority.pull_every_s),
        owner: owner.to_owned(),
        lease: Duration::from_secs(settings.cluster.lease_s),
    };
    let pull = Pull::new(Arc::clone(inbound), clock.clone(), schedule);
    pull.appoint().await?;
    Ok(pull)
}

/// What every bookkeeper works with.
pub(super) fn desktop(
    settings: &Settings,
    store: &Store,
    clock: &SharedClock,
    wakers: &Wakers,
) -> TaxpayerDeps {
    TaxpayerDeps {
        store: store.clone(),
        clock: clock.clone(),
        wakers: wakers.clone(),
        deadlines: deadlines(settings),
        verification: settings.accounts.verification,
    }
}

/// By when each category of invoice must be with the authority.
fn deadlines(settings: &Settings) -> DeadlinePolicy {
    let given = &settings.deadlines;
    DeadlinePolicy {
        b2b: Duration::from_hours(given.b2b_h),
        b2c: Duration::from_hours(given.b2c_h),
        b2g: Duration::from_hours(given.b2g_h),
        offset: settings.authority.utc_offset,
    }
}

/// Who asks for reconciliations.
pub(super) fn reconciliations(
    settings: &Settings,
    store: &Store,
    clock: &SharedClock,
) -> Arc<Reconciliations> {
    Arc::new(Reconciliations::new(store.clone(), clock.clone(), settings.authority.utc_offset))
}

/// What compares ledgers, its first round due at once.
async fn reconciler(
    (settings, owner): (&Settings, &str),
    (store, clock): (&Store, &SharedClock),
    (taxpayers, authority): (&Arc<TaxpayerHandle>, &Authority),
    door: &Arc<Reconciliations>,
) -> Result<Reconciler, StartError> {
    let schedule = ReconcilerSchedule { owner: owner.to_owned(), ..reconciler_schedule(settings) };
    let reconciler = Reconciler::new(
        (store.clone(), clock.clone()),
        Arc::clone(taxpayers),
        authority.clone(),
        schedule,
        Arc::clone(door),
    );
    reconciler.appoint().await?;
    Ok(reconciler)
}

/// How the settings have ledgers compared.
pub(super) fn reconciler_schedule(settings: &Settings) -> ReconcilerSchedule {
    let rhythm = match settings.reconcile.every_s {
        0 => Rhythm::OnDemand,
        every_s => Rhythm::Every(Duration::from_secs(every_s)),
    };
    ReconcilerSchedule {
        rhythm,
        days: settings.reconcile.days,
        zone: settings.authority.utc_offset,
        owner: new_id().to_string(),
        lease: Duration::from_secs(settings.cluster.lease_s),
    }
}

fn limits(settings: &Settings) -> AdmissionLimits {
    AdmissionLimits {
        per_key_max: settings.taxpayers.commands_per_taxpayer_max,
        process_max: settings.taxpayers.commands_max,
        ..AdmissionLimits::default()
    }
}

/// What delivers notifications, and how often it tries.
fn delivery(
    settings: &Settings,
    urls: &AddressPolicy,
    (store, taxpayers, clock): (&Store, &Arc<TaxpayerHandle>, &SharedClock),
    wakers: &Wakers,
) -> Result<DeliveryDeps, StartError> {
    let webhooks = &settings.webhooks;
    let timeout = Duration::from_secs(webhooks.timeout_s);
    Ok(DeliveryDeps {
        store: store.clone(),
        taxpayers: Arc::clone(taxpayers),
        client: GuardedClient::new(urls.clone(), timeout, ANSWER_BYTES_MAX)?,
        tokens: TokenCache::default(),
        schedule: Schedule::new(webhooks.retry_schedule_s.iter().copied().map(Duration::from_secs).collect()),
        circuit: CircuitPolicy {
            open_after: Duration::from_secs(webhooks.circuit_open_after_s),
            probe_interval_max: Duration::from_secs(webhooks.circuit_probe_max_s),
            disable_after: Duration::from_secs(webhooks.disable_after_s),
        },
        max_concurrent: webhooks.max_concurrent_per_endpoint,
        wakeups: wakers.couriers.clone(),
        is_closing: AtomicBool::new(false),
        clock: clock.clone(),
        incidents: Arc::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn said(url: String) -> String {
        let variable = ("EINVOICE__DATABASE__URL".to_owned(), url);
        let key = (
            "EINVOICE__SECRETS__ENCRYPTION_KEY".to_owned(),
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".into(),
        );
        let settings = Settings::load(None, [variable, key].into_iter()).unwrap();
        open_store(&settings).await.unwrap_err().to_string()
    }

    #[actix_web::test]
    async fn a_database_that_cannot_be_opened_is_named_without_its_password() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("nowhere").join("einvoice.db");
        let expected = format!("the database {} cannot be opened", file.display());
        assert_eq!(said(format!("sqlite://{}", file.display())).await, expected);
        let server = said("postgres://user:s3cret@127.0.0.1:9/einvoice".to_owned()).await;
        assert_eq!(server, "the database 127.0.0.1:9/einvoice cannot be opened");
    }
}
