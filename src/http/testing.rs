//! Test support: the API with a database of its own, two integrators and one taxpayer. The authority is unreachable.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use actix_web::web;
use address_policy::AddressPolicy;
use authority_client::Authority;
use authority_client::testing::authority;
use jiff::Timestamp;
use jiff::tz::Offset;
use secrecy::SecretString;
use supervision::{AdmissionLimits, Arbiters, Tree};
use timing::clock::{MockClock, SharedClock};
use webhook_client::{GuardedClient, RetrySchedule};

use crate::actors::delivery::{DeliveryDeps, TokenCache};
use crate::actors::dispatch::IsolationTurns;
use crate::actors::inbound::InboundInvoices;
use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::pipeline::handle::PipelineHandle;
use crate::actors::pipeline::queue_position::QueueEstimator;
use crate::actors::reconciliation::ReconciliationHandle;
use crate::actors::request_log::RequestLog;
use crate::actors::taxpayer::TaxpayerDeps;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::actors::taxpayer::scheduled_panics::ScheduledPanics;
use crate::domain::access::api_key::{KeyOwner, NewKey};
use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::{OperatorRole, SessionLimits};
use crate::domain::events::endpoint_health::CircuitPolicy;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::mail_links::MailLinks;
use crate::domain::party::Taxpayer;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::domain::reference::catalog::SharedCatalog;
use crate::domain::replica::ReplicaIdentity;
use crate::http::forms::testing::catalog;
use crate::http::health::Health;
use crate::http::idempotency::in_progress::InProgressRequests;
use crate::http::incidents::log::IncidentLog;
use crate::http::incidents::schedules::Schedules;
use crate::http::limits::AnswerMemory;
use crate::http::limits::AnswerMemoryLimits;
use crate::http::limits::BodyMemory;
use crate::http::limits::BodyMemoryLimits;
use crate::http::limits::ConcurrentCalls;
use crate::http::limits::ConcurrentLimits;
use crate::http::limits::PageLimits;
use crate::http::limits::PageRates;
use crate::http::limits::PrintingLimit;
use crate::http::limits::Rates;
use crate::http::limits::SignInAttempts;
use crate::http::limits::SignInRates;
use crate::http::metrics::database_counts::CachedCounts;
use crate::http::metrics::traffic::Traffic;
use crate::http::middleware::client_address::TrustedProxies;
use crate::http::password::Passwords;
use crate::http::remembered_operators::RememberedOperators;
use crate::http::replicas::board::ReplicaBoard;
use crate::http::state::{ApiSettings, ApiState, MailSettings, SessionSettings};
use crate::http::stopping::StopSignal;
use crate::store::Store;
use crate::store::accounts::contact_row;
use crate::store::accounts::keys;
use crate::store::accounts::taxpayers;
use crate::store::accounts::{self, NewIntegrator, NewOperator};
use crate::store::lanes::{self, LaneKind, LanesToWake};
use crate::store::testing::{TestStore, sqlite_store, stores};

pub(crate) const TAXPAYER_KEY: &str = "tpk_one";
pub(crate) const INTEGRATOR_KEY: &str = "sik_one";
pub(crate) const OTHER_INTEGRATOR_KEY: &str = "sik_other";
pub(crate) const OPERATOR_KEY: &str = "opk_one";
const NOTIFICATION_TOKEN: &str = "a-token-of-the-tests";
pub(crate) const TAXPAYER: TaxpayerId = TaxpayerId(7);

/// The state of the API, together with the resources that must live as long as the state.
pub(crate) struct TestApp {
    pub(crate) state: web::Data<ApiState>,
    arbiters: Arc<Arbiters>,
    _database: TestStore,
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.arbiters.stop();
    }
}

fn settings() -> ApiSettings {
    ApiSettings {
        pipeline_wait: Duration::from_millis(10),
        public_url: None,
        body_bytes_max: 4_096,
        bulk_bytes_max: 8_192,
        import_bytes_max: 16_384,
        idempotency_keep: Duration::from_hours(24),
        body_timeout: Duration::from_millis(300),
        utc_offset: Offset::constant(1),
        deadlines: DeadlinePolicy::default(),
        verification: VerificationPolicy::Warn,
        taxpayers_per_integrator_max: 0,
        keys_per_taxpayer_max: 5,
        notification_token: NOTIFICATION_TOKEN.into(),
        erp_systems: vec!["sap".into(), "custom".into()],
        irn_chars_max: None,
        is_sandbox: false,
        metrics_public: false,
        mails: MailSettings {
            are_sent: true,
            are_readable: false,
            links: MailLinks::new("a secret".to_owned().into()),
        },
        trusted_proxies: TrustedProxies::default(),
        sessions: SessionSettings {
            limits: SESSION_LIMITS,
            is_secure: false,
            needs_second_factor: false,
        },
    }
}

const SESSION_LIMITS: SessionLimits = SessionLimits {
    idle: Duration::from_mins(30),
    longest: Duration::from_hours(12),
};

/// Returns an app on SQLite, without rate limits.
pub(crate) async fn start_app() -> TestApp {
    start_app_on(sqlite_store().await).await
}

/// Returns one app for each kind of database that is available.
pub(crate) async fn start_apps() -> Vec<TestApp> {
    let mut apps = Vec::new();
    for database in stores().await {
        apps.push(start_app_on(database).await);
    }
    apps
}

fn reconciliations(store: &Store, clock: &SharedClock) -> Arc<ReconciliationHandle> {
    Arc::new(ReconciliationHandle::new(
        store.clone(),
        clock.clone(),
        Offset::constant(1),
    ))
}

fn taxpayer_deps(store: &Store, clock: &SharedClock, notifiers: &Notifiers) -> TaxpayerDeps {
    TaxpayerDeps {
        store: store.clone(),
        clock: clock.clone(),
        notifiers: notifiers.clone(),
        deadlines: DeadlinePolicy::default(),
        verification: VerificationPolicy::Warn,
        scheduled_panics: ScheduledPanics::enabled(),
        catalog: SharedCatalog::default(),
    }
}

async fn start_app_on(database: TestStore) -> TestApp {
    let store = database.store.clone();
    insert_fixtures(&store).await;
    let clock: SharedClock = Arc::new(MockClock::at(now()));
    let tree = Tree::new(clock.clone(), kinds::ALL);
    let arbiters = Arc::new(Arbiters::start(1));
    let notifiers = Notifiers::default();
    let deps = taxpayer_deps(&store, &clock, &notifiers);
    let limits = AdmissionLimits::default();
    let taxpayers = Arc::new(TaxpayerHandle::new(deps, &tree, &arbiters, limits));
    let authority = unreachable_authority(&clock);
    let shared_catalog = SharedCatalog::default();
    shared_catalog.set(catalog());
    let delivery = delivery_deps(&store, &taxpayers, &clock, &notifiers);
    let state = ApiState {
        pipeline: Arc::new(PipelineHandle {
            taxpayers: Arc::clone(&taxpayers),
            store: store.clone(),
            authority: authority.clone(),
            run_changes: notifiers.run_changes,
            backlog: queue_estimator(&taxpayers, &store, &authority, &clock),
        }),
        inbound: inbound(&store, &taxpayers, &authority),
        reconciliations: reconciliations(&store, &clock),
        store,
        taxpayers,
        authority,
        catalog: shared_catalog,
        clock,
        tree,
        webhook_urls: AddressPolicy::default(),
        delivery: Arc::new(delivery),
        settings: settings(),
        health: Health::default(),
        incidents: IncidentLog::default(),
        replicas: replica_board(),
        schedules: Schedules {
            started_at: Timestamp::UNIX_EPOCH,
            checkpoint_every: Duration::ZERO,
            last_checkpoint: None,
            reconcile_every: Duration::ZERO,
        },
        remembered_operators: RememberedOperators::default(),
        database_counts: CachedCounts::default(),
        traffic: Traffic::default(),
        limits: Rates::default().into(),
        key_usage: Arc::default(),
        request_log: Arc::new(RequestLog::new(7)),
        passwords: Passwords::default(),
        calls: ConcurrentCalls::new(CALL_LIMITS, CALL_LIMITS),
        bodies: BodyMemory::new(BODY_LIMITS),
        sign_ins: SignInAttempts::new(SignInRates::default()),
        pages: PageLimits::new(PageRates {
            per_s: 0,
            concurrent_max: 16,
        }),
        answers: AnswerMemory::new(ANSWER_LIMITS),
        in_progress: InProgressRequests::default(),
        printing: PrintingLimit::default(),
        workbooks: PrintingLimit::default(),
        stopping: StopSignal::default(),
    };
    TestApp {
        state: web::Data::new(state),
        arbiters,
        _database: database,
    }
}

fn delivery_deps(
    store: &Store,
    taxpayers: &Arc<TaxpayerHandle>,
    clock: &SharedClock,
    notifiers: &Notifiers,
) -> DeliveryDeps {
    let policy = AddressPolicy::default();
    let timeout = Duration::from_secs(1);
    DeliveryDeps {
        wakeups: notifiers.endpoint_work.clone(),
        turns: IsolationTurns::default(),
        is_closing: AtomicBool::new(false),
        is_paused: false,
        max_concurrent: 4,
        circuit: CircuitPolicy::default(),
        store: store.clone(),
        taxpayers: Arc::clone(taxpayers),
        client: GuardedClient::new(policy, timeout, 4_096, "einvoice").unwrap(),
        tokens: TokenCache::default(),
        schedule: RetrySchedule::default(),
        clock: clock.clone(),
        incidents: Arc::default(),
        durations: Arc::default(),
    }
}

fn inbound(
    store: &Store,
    taxpayers: &Arc<TaxpayerHandle>,
    authority: &Authority,
) -> Arc<InboundInvoices> {
    Arc::new(InboundInvoices::new(
        store.clone(),
        Arc::clone(taxpayers),
        authority.clone(),
        VerificationPolicy::Warn,
    ))
}

fn queue_estimator(
    taxpayers: &TaxpayerHandle,
    store: &Store,
    authority: &Authority,
    clock: &SharedClock,
) -> QueueEstimator {
    QueueEstimator::new(
        store.clone(),
        authority.clone(),
        clock.clone(),
        taxpayers.paused_taxpayers().clone(),
        64,
    )
}

const BODY_LIMITS: BodyMemoryLimits = BodyMemoryLimits {
    process_max: 1 << 20,
    integrator_max: 1 << 20,
    account_max: 1 << 20,
};
const ANSWER_LIMITS: AnswerMemoryLimits = AnswerMemoryLimits {
    process_max: 1 << 20,
    integrator_max: 1 << 20,
    account_max: 1 << 20,
};
const CALL_LIMITS: ConcurrentLimits = ConcurrentLimits {
    brief_max: 64,
    relays_max: 64,
};

fn replica_board() -> ReplicaBoard {
    let identity = ReplicaIdentity {
        id: "replica".into(),
        name: "host:8080".into(),
    };
    ReplicaBoard::new(identity, now())
}

/// Returns a client of an authority that refuses connections.
fn unreachable_authority(clock: &SharedClock) -> Authority {
    authority("http://127.0.0.1:9", clock.clone())
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// Returns an integrator with this key and without a password, so nobody can sign in for it.
pub(crate) fn new_integrator(name: &str, key: &str) -> NewIntegrator {
    let email = format!("{}@example.com", name.to_lowercase());
    NewIntegrator {
        name: name.into(),
        email,
        password_hash: None,
        key: new_key(key),
    }
}

/// Returns an API key with this text.
pub(crate) fn new_key(text: &str) -> NewKey {
    SecretString::from(text).into()
}

async fn insert_fixtures(store: &Store) {
    let [one, two] = [("One", INTEGRATOR_KEY), ("Two", OTHER_INTEGRATOR_KEY)];
    let integrator = accounts::add_integrator(store, &new_integrator(one.0, one.1), now()).await;
    accounts::add_integrator(store, &new_integrator(two.0, two.1), now())
        .await
        .unwrap();
    let operator = NewOperator {
        email: "op@example.com".into(),
        password_hash: "hash".into(),
        role: OperatorRole::Admin,
        key: new_key(OPERATOR_KEY),
    };
    accounts::add_operator(store, &operator, now())
        .await
        .unwrap();
    let owner = KeyOwner {
        kind: KeyKind::Taxpayer,
        id: TAXPAYER.0,
    };
    let tx = store.begin().await.unwrap();
    taxpayers::add(
        &tx,
        &Taxpayer::sample(TAXPAYER, integrator.unwrap()),
        contact_person(),
    )
    .await
    .unwrap();
    lanes::wake(
        &tx,
        LaneKind::Run,
        &["a".to_owned(), "b".to_owned()],
        LanesToWake::All,
    )
    .await
    .unwrap();
    keys::rotate(&tx, owner, &new_key(TAXPAYER_KEY), now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

fn contact_person() -> contact_row::Model {
    contact_row::Model {
        taxpayer_id: TAXPAYER.0,
        id: 1,
        first_name: "Ada".into(),
        last_name: "Obi".into(),
        email: "ada@example.com".into(),
        email_key: "ada@example.com".into(),
        phone: None,
        password_hash: Some("secret hash".into()),
        role: "owner".into(),
        created_at: now().as_microsecond(),
        updated_at: now().as_microsecond(),
        disabled_at: None,
    }
}
