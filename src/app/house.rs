//! What a running process is made of, from the ground up: the store, the authority, the actors. Dropped parts
//! would stop; so the house holds them all, and `close` ends them in order.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Addr;
use sandbox::Sandbox;
use secrecy::ExposeSecret;

use crate::actors::dispatch::{DispatcherActor, Duty};
use crate::actors::pipeline::door::Pipeline;
use crate::actors::pipeline::{Gear, PipelineActors};
use crate::actors::reference::{Snapshot, SnapshotActor};
use crate::actors::supervision::janitor::{self, Duty as Chore, Janitor};
use crate::actors::supervision::watchdog;
use crate::actors::supervision::{Arbiters, Kind, Limits, Tree, assert_unwinding, install_hook};
use crate::actors::taxpayer::Desktop;
use crate::actors::taxpayer::door::Taxpayers;
use crate::actors::wake::Wakers;
use crate::actors::webhook::{Satchel, WebhookActors};
use crate::actors::{pipeline, webhook as pool};
use crate::app::error::StartError;
use crate::app::sole::Sole;
use crate::authority::{self, Authority, CryptoKeys, RetryPolicy};
use crate::config::{AuthorityMode, Settings};
use crate::domain::catalog::SharedCatalog;
use crate::domain::clock::{self, SharedClock, SystemClock};
use crate::store::database::Store;
use crate::store::lanes::LaneKind;
use crate::store::vault::Vault;
use crate::webhook::{AddressPolicy, GuardedClient, Schedule};

/// How often the janitor looks around.
const CHORES_EVERY: Duration = Duration::from_secs(1);
/// Bytes read of an endpoint's answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Endpoints served at once.
const ENDPOINTS_AT_ONCE: usize = 256;
/// How long work under way may take when the process ends.
const DRAIN: Duration = Duration::from_secs(10);

/// The parts of a process.
pub struct House {
    pub store: Store,
    pub authority: Authority,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
    pub tree: Tree,
    pub taxpayers: Arc<Taxpayers>,
    pub pipeline: Arc<Pipeline>,
    pub webhook_urls: AddressPolicy,
    pub sandbox: Option<Sandbox>,
    arbiters: Arc<Arbiters>,
    staff: Staff,
    _sole: Option<Sole>,
}

/// The actors that nobody else holds on to.
struct Staff {
    runs: Arc<PipelineActors>,
    endpoints: Arc<WebhookActors>,
    _dispatchers: [Addr<DispatcherActor>; 2],
    _snapshot: Addr<SnapshotActor>,
    _janitor: Addr<Janitor>,
}

/// Opens the database of the settings and brings its schema up to date.
pub async fn open_store(settings: &Settings) -> Result<Store, StartError> {
    let vault = Vault::new(settings.secrets.encryption_key.expose_secret())?;
    let store = Store::open(settings.database_url().expose_secret(), vault).await?;
    store.migrate().await?;
    Ok(store)
}

/// Opens the database of the settings as it is.
pub(super) async fn open_existing(settings: &Settings) -> Result<Store, StartError> {
    let vault = Vault::new(settings.secrets.encryption_key.expose_secret())?;
    Ok(Store::open_existing(settings.database_url().expose_secret(), vault).await?)
}

impl House {
    pub async fn build(settings: &Settings) -> Result<Self, StartError> {
        assert_unwinding().map_err(StartError::Panics)?;
        install_hook();
        let clock: SharedClock = Arc::new(SystemClock);
        let store = open_store(settings).await?;
        let sole = Sole::claim(settings, &store).await?;
        let sandbox = match settings.authority.mode {
            AuthorityMode::Sandbox => Some(start_sandbox(settings, settings.sandbox.bind.to_string()).await?),
            AuthorityMode::Remote => None,
        };
        let authority = Authority::new(authority_settings(settings, sandbox.as_ref())?, clock.clone())?;
        let keys = crypto_keys(settings, sandbox.as_ref())?;
        let tree = Tree::new(clock.clone());
        let arbiters = Arc::new(Arbiters::start(std::thread::available_parallelism().map_or(1, Into::into)));
        let wakers = Wakers::default();
        let desktop = Desktop { store: store.clone(), clock: clock.clone(), wakers: wakers.clone() };
        let taxpayers = Arc::new(Taxpayers::new(desktop, &tree, &arbiters, limits(settings)));
        let pipeline = Arc::new(Pipeline {
            taxpayers: Arc::clone(&taxpayers),
            store: store.clone(),
            authority: authority.clone(),
            waiters: wakers.waiters.clone(),
        });
        let catalog = SharedCatalog::default();
        let snapshot = Snapshot {
            store: store.clone(),
            authority: authority.clone(),
            catalog: catalog.clone(),
            clock: clock.clone(),
        };
        snapshot.load().await?;
        // The embedded authority answers at once: the first request finds the lists there.
        let fresh_for = if sandbox.is_some() { snapshot.keep_fresh().await } else { Duration::ZERO };
        let webhook_urls = AddressPolicy::new(settings.allowed_networks());
        let gear = Gear {
            store: store.clone(),
            taxpayers: Arc::clone(&taxpayers),
            authority: authority.clone(),
            keys,
            retry: retry_policy(settings),
            clock: clock.clone(),
        };
        let satchel = Satchel {
            store: store.clone(),
            taxpayers: Arc::clone(&taxpayers),
            client: GuardedClient::new(
                webhook_urls.clone(),
                secs(settings.webhooks.timeout_s),
                ANSWER_BYTES_MAX,
            )?,
            schedule: Schedule::new(settings.webhooks.retry_schedule_s.iter().copied().map(secs).collect()),
            clock: clock.clone(),
        };
        let snapshot = snapshot.start(&tree, &arbiters, fresh_for);
        let staff =
            Staff::hire(settings, (&tree, &arbiters), (&wakers, &taxpayers), (gear, satchel), snapshot);
        Ok(Self {
            store,
            authority,
            catalog,
            clock,
            tree,
            taxpayers,
            pipeline,
            webhook_urls,
            sandbox,
            arbiters,
            staff,
            _sole: sole,
        })
    }

    /// Ends the parts in order: what is under way is finished, what waits stays in the database.
    pub async fn close(self) {
        self.staff.runs.close();
        self.staff.endpoints.close();
        let books = self.taxpayers.registry();
        let drained = self.staff.runs.drain(DRAIN).await
            & self.staff.endpoints.drain(DRAIN).await
            & books.drain(DRAIN).await;
        if !drained {
            tracing::warn!("some work was still under way; it will go on at the next start");
        }
        books.close();
        self.arbiters.stop();
        self.arbiters.join().await;
        self.store.close().await;
        if let Some(sandbox) = self.sandbox {
            sandbox.stop().await;
        }
    }
}

impl Staff {
    fn hire(
        settings: &Settings,
        (tree, arbiters): (&Tree, &Arc<Arbiters>),
        (wakers, taxpayers): (&Wakers, &Arc<Taxpayers>),
        (gear, satchel): (Gear, Satchel),
        snapshot: Addr<SnapshotActor>,
    ) -> Self {
        let owner = clock::new_id().to_string();
        let lease = secs(settings.cluster.lease_s);
        let duty =
            |kind, concurrency_max, wake| Duty { kind, owner: owner.clone(), lease, concurrency_max, wake };
        let runs = duty(LaneKind::Run, settings.pipeline.concurrency_max, Arc::clone(&wakers.runs));
        let (run_dispatcher, runs) = pipeline::dispatcher(Arc::new(gear), runs, tree, arbiters);
        let endpoints = duty(LaneKind::Endpoint, ENDPOINTS_AT_ONCE, Arc::clone(&wakers.endpoints));
        let (endpoint_dispatcher, endpoints) = pool::dispatcher(Arc::new(satchel), endpoints, tree, arbiters);
        let chores = chores(settings, tree, (taxpayers, &runs, &endpoints));
        Self {
            runs,
            endpoints,
            _dispatchers: [
                run_dispatcher.start(tree, arbiters, Kind::Pipeline),
                endpoint_dispatcher.start(tree, arbiters, Kind::Webhook),
            ],
            _snapshot: snapshot,
            _janitor: janitor::start(tree, arbiters, CHORES_EVERY, chores),
        }
    }
}

type Registries<'a> = (&'a Arc<Taxpayers>, &'a Arc<PipelineActors>, &'a Arc<WebhookActors>);

/// What the janitor does: actors without work leave, actors at one thing for too long are reported.
fn chores(settings: &Settings, tree: &Tree, (taxpayers, runs, endpoints): Registries<'_>) -> Vec<Chore> {
    let (idle, active_max) = (secs(settings.taxpayers.idle_s), settings.taxpayers.active_max);
    let (taxpayers, runs, endpoints) = (Arc::clone(taxpayers), Arc::clone(runs), Arc::clone(endpoints));
    let tree = tree.clone();
    let outside = secs(settings.authority.timeout_s.max(settings.webhooks.timeout_s));
    vec![
        Box::new(move |now: Instant| {
            taxpayers.registry().passivate_idle(now, idle, active_max);
            runs.passivate_idle(now, CHORES_EVERY, active_max);
            endpoints.passivate_idle(now, idle, active_max);
        }),
        Box::new(move |now| {
            watchdog::survey(&tree, |kind| patience(kind, outside), now);
        }),
    ]
}

/// How long an actor may be at one batch. Who calls the outside may wait for it, and ask once more.
fn patience(kind: Kind, outside: Duration) -> watchdog::Limits {
    match kind {
        Kind::Pipeline | Kind::Webhook => {
            watchdog::Limits { busy_after: outside, stuck_after: outside.saturating_mul(3) }
        }
        Kind::Taxpayer | Kind::Reference | Kind::Janitor => watchdog::Limits::default(),
    }
}

/// Starts the simulator with the key pair of the settings.
pub(super) async fn start_sandbox(settings: &Settings, bind: String) -> Result<Sandbox, StartError> {
    let started = sandbox::start(sandbox::Settings {
        bind,
        api_key: settings.authority.api_key.expose_secret().to_owned(),
        api_secret: settings.authority.api_secret.expose_secret().to_owned(),
        seed: 1,
    });
    started.await.map_err(|error| StartError::Sandbox(error.to_string()))
}

fn authority_settings(
    settings: &Settings,
    sandbox: Option<&Sandbox>,
) -> Result<authority::Settings, StartError> {
    let base_url = match sandbox {
        Some(sandbox) => sandbox.base_url().parse().ok(),
        None => settings.authority.base_url.clone(),
    };
    Ok(authority::Settings {
        base_url: base_url.ok_or(StartError::NoAuthority)?,
        api_key: settings.authority.api_key.clone(),
        api_secret: settings.authority.api_secret.clone(),
        extra_ca_pem: settings.authority.extra_ca_file.as_deref().map(read).transpose()?,
        timeout: secs(settings.authority.timeout_s),
    })
}

/// The platform's keys for QR codes; the simulator has its own.
fn crypto_keys(settings: &Settings, sandbox: Option<&Sandbox>) -> Result<Option<CryptoKeys>, StartError> {
    let file = match (sandbox, &settings.authority.crypto_keys_file) {
        (_, Some(path)) => read(path)?,
        (Some(sandbox), None) => {
            let keys = sandbox.state().crypto_keys();
            keys.map_err(StartError::Sandbox)?.to_string().into_bytes()
        }
        (None, None) => {
            tracing::warn!("authority.crypto_keys_file is not set: QR codes stay provisional");
            return Ok(None);
        }
    };
    Ok(Some(CryptoKeys::parse(&file)?))
}

fn read(path: &Path) -> Result<Vec<u8>, StartError> {
    fs::read(path).map_err(|source| StartError::File { path: path.to_owned(), source })
}

fn limits(settings: &Settings) -> Limits {
    Limits {
        per_key_max: settings.taxpayers.commands_per_taxpayer_max,
        process_max: settings.taxpayers.commands_max,
        ..Limits::default()
    }
}

fn retry_policy(settings: &Settings) -> RetryPolicy {
    RetryPolicy {
        initial: Duration::from_millis(settings.pipeline.retry_initial_ms),
        max: secs(settings.pipeline.retry_max_s),
        give_up_after: secs(settings.pipeline.give_up_after_s),
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
