//! The whole application with its sandbox, in a thread of its own; one for each database, started by the
//! first test that needs it and shared by all of them. A test onboards the taxpayers it works with.

use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, LazyLock, mpsc};
use std::thread;
use std::thread::JoinHandle;

use actix_web::dev::ServerHandle;
use einvoice::app::{self, Application, ServeMode};
use einvoice::config::Settings;
use einvoice::internals::{KeyTerms, OperatorRole, Subscription};
use futures_util::future::LocalBoxFuture;
use sandbox::{CallRecord, Operation, PartyEnrolment, State};
use sea_orm::{ConnectionTrait, Database, Statement};
use secrecy::ExposeSecret;
use serde_json::json;
use testkit::Backend;
use testkit::answer::{Answer, check_every_answer};
use testkit::client::Client;
use testkit::documents::{self, number};
use testkit::patience::eventually;
use testkit::roles::{Integrator, Operator, TAXPAYERS, Taxpayer};
use tokio::runtime::Runtime;

use super::{directory, documented};

/// Runs every test; the connections of the HTTP client belong to it.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});
static ON_SQLITE: LazyLock<World> =
    LazyLock::new(|| World::start(Backend::Sqlite, "shared-sqlite", &[]));
static ON_POSTGRESQL: LazyLock<World> =
    LazyLock::new(|| World::start(Backend::Postgres, "shared-postgresql", &[]));

/// An application of its own, with the settings that all have.
pub(crate) const ALONE: &[(&str, &str)] = &[];

/// Settings with which a run that waits does so for longer than any test. A delay is random, from nothing up to the
/// smaller of the two, so it is a day: a retry within seconds would be one test in ten thousand.
pub(crate) const RETRY_LATE: [(&str, &str); 2] = [
    ("PIPELINE__RETRY_INITIAL_MS", "86400000"),
    ("PIPELINE__RETRY_MAX_S", "86400"),
];

/// A running application.
pub(crate) struct World {
    pub(crate) client: Client,
    settings: Settings,
    pub(crate) authority: Arc<State>,
    authority_root: String,
    integrator_key: String,
    ops_address: Option<SocketAddr>,
    handle: ServerHandle,
    thread: JoinHandle<()>,
}

/// What a thread says about the application that it has started.
struct Started {
    address: SocketAddr,
    ops_address: Option<SocketAddr>,
    authority_root: String,
    authority: Arc<State>,
    handle: ServerHandle,
}

/// One type for the cases of all tests: what runs them is compiled once.
pub(crate) type Case = for<'a> fn(&'a World) -> LocalBoxFuture<'a, ()>;

/// Runs a case on the application that the tests share.
pub(crate) fn run_case(backend: Backend, _: &str, case: Case) {
    let world = match backend {
        Backend::Sqlite => &ON_SQLITE,
        Backend::Postgres => &ON_POSTGRESQL,
    };
    run(world, case);
}

/// Runs a case on an application of its own, with these settings. The application also ends after a case that fails:
/// those that went on would slow down the tests that follow, until these fail too.
pub(crate) fn run_case_with(backend: Backend, name: &str, settings: &[(&str, &str)], case: Case) {
    let world = World::start(backend, &name.replace("::", "-"), settings);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| run(&world, case)));
    world.stop();
    if let Err(failure) = outcome {
        panic::resume_unwind(failure);
    }
}

/// Both tests of a case make the same inline snapshots.
fn run(world: &World, case: Case) {
    insta::allow_duplicates! { RUNTIME.block_on(case(world)) };
}

impl World {
    fn start(backend: Backend, name: &str, changes: &[(&str, &str)]) -> Self {
        let (settings, integrator_key) = directory::fresh_settings(backend, name, changes);
        Self::begin(settings, integrator_key)
    }

    pub(crate) fn begin(settings: Settings, integrator_key: &str) -> Self {
        check_every_answer(documented::check);
        let (started_sender, started) = mpsc::channel();
        let for_thread = settings.clone();
        let thread = thread::spawn(move || {
            actix_rt::System::new().block_on(serve(for_thread, started_sender));
        });
        let Started {
            address,
            ops_address,
            authority_root,
            authority,
            handle,
        } = started.recv().unwrap();
        let integrator_key = integrator_key.to_owned();
        let client = Client::new(format!("http://{address}"));
        Self {
            client,
            settings,
            authority,
            authority_root,
            integrator_key,
            ops_address,
            handle,
            thread,
        }
    }

    /// Ends it, so that its timers and connections are not there beside the tests that follow.
    pub(crate) fn stop(self) {
        RUNTIME.block_on(self.handle.stop(false));
        self.thread.join().unwrap();
    }

    pub(crate) fn root(&self) -> String {
        self.client.root().to_owned()
    }

    /// The root of the operators' listener, where they have one of their own.
    pub(crate) fn ops_root(&self) -> Option<String> {
        self.ops_address.map(|address| format!("http://{address}"))
    }

    /// A caller without a key.
    pub(crate) fn anonymous(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// The integrator that onboards the taxpayers of the tests.
    pub(crate) fn integrator(&self) -> Integrator {
        Integrator::new(&self.client, &self.integrator_key)
    }

    /// The path that the authority sends its notices to.
    pub(crate) fn notices_path(&self) -> String {
        let token = self.settings.authority.notification_token.expose_secret();
        format!("/authority/notifications/{token}")
    }

    /// A notice of the authority.
    pub(crate) async fn notice(&self, irn: &str, message: &str) -> Answer {
        let body = json!({ "irn": irn, "message": message });
        self.anonymous()
            .send("POST", &self.notices_path(), &body)
            .await
    }

    /// Returns the authority's own answer to a document, without this service.
    pub(crate) async fn authority_says(&self, document: &serde_json::Value) -> Answer {
        let settings = &self.settings.authority;
        let caller = self
            .client
            .at(self.authority_root.clone())
            .with_key(settings.api_key.expose_secret());
        let request = caller
            .request("POST", "/api/v1/invoice/validate")
            .json(document);
        Answer::to(request.header("x-api-secret", settings.api_secret.expose_secret())).await
    }

    /// Another integrator, without taxpayers.
    pub(crate) async fn new_integrator(&self) -> Integrator {
        Integrator::new(&self.client, &new_integrator(&self.settings).await)
    }

    /// Another integrator, with the email and the password of its person.
    pub(crate) async fn new_integrator_person(&self) -> (Integrator, String, String) {
        let made = made_integrator(&self.settings).await;
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (
            Integrator::new(&self.client, &text("api_key")),
            text("email"),
            text("password"),
        )
    }

    pub(crate) async fn new_operator(&self) -> Operator {
        let email = format!("operator{}@house.example", number());
        let made = app::create_operator(
            self.settings.clone(),
            email,
            OperatorRole::Admin,
            KeyTerms::default(),
        )
        .await
        .unwrap();
        Operator::new(&self.client, made["api_key"].as_str().unwrap())
    }

    /// A taxpayer with a complete profile and a key.
    pub(crate) async fn taxpayer(&self) -> Taxpayer {
        let taxpayer = self.newcomer().await;
        let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
        self.integrator()
            .change_profile(taxpayer.id, &profile)
            .await
            .expect_status(200);
        taxpayer
    }

    /// A taxpayer as it is when it was just onboarded: with a key, its profile incomplete.
    pub(crate) async fn newcomer(&self) -> Taxpayer {
        self.newcomer_of(&self.integrator()).await
    }

    pub(crate) async fn newcomer_of(&self, integrator: &Integrator) -> Taxpayer {
        let body = documents::taxpayer();
        self.enrol(&body, body["tin_no"].as_str().unwrap());
        let made = integrator.create_taxpayer(&body).await.expect_status(201);
        let id = made.data()["id"].as_i64().unwrap();
        let rotated = integrator.rotate_api_key(id).await.expect_status(200);
        Taxpayer::new(
            &self.client,
            rotated.data()["api_key"].as_str().unwrap(),
            id,
            &body,
        )
    }

    /// Has the authority list the business of a taxpayer under a tax number.
    pub(crate) fn enrol(&self, taxpayer: &serde_json::Value, tin: &str) {
        let business_id = taxpayer["authority_business_id"]
            .as_str()
            .map(str::to_owned);
        let tin = Some(tin.to_owned());
        let enrolment = PartyEnrolment {
            business_id,
            tin,
            ..PartyEnrolment::default()
        };
        self.authority.enrol(&enrolment).unwrap();
    }

    /// Waits until the authority was asked about a taxpayer: then what is read of it does not change by itself.
    pub(crate) async fn settled(&self, id: &serde_json::Value) {
        let look = async || {
            let seen = self.integrator().get(&format!("{TAXPAYERS}/{id}")).await;
            (seen.data()["verification"] != "pending").then_some(())
        };
        eventually("the authority's word", look).await;
    }

    /// A taxpayer that was onboarded with this body.
    pub(crate) fn taxpayer_with_key(
        &self,
        key: &str,
        id: i64,
        body: &serde_json::Value,
    ) -> Taxpayer {
        Taxpayer::new(&self.client, key, id, body)
    }

    /// Writes the URL of a webhook as the API would not.
    pub(crate) async fn plant_webhook_url(&self, taxpayer: i64, url: &str) {
        let text = url.replace('\'', "''");
        let update = format!("UPDATE webhooks SET url = '{text}' WHERE taxpayer_id = {taxpayer}");
        assert_eq!(self.execute(&update).await, 1);
    }

    /// Has the database do what the API would not; the rows that it changed.
    pub(crate) async fn execute(&self, statement: &str) -> u64 {
        let database = Database::connect(self.settings.database_url().expose_secret())
            .await
            .unwrap();
        let rows = database
            .execute_unprepared(statement)
            .await
            .unwrap()
            .rows_affected();
        database.close().await.unwrap();
        rows
    }

    /// The number that a query returns.
    pub(crate) async fn number(&self, query: &str) -> i64 {
        let database = Database::connect(self.settings.database_url().expose_secret())
            .await
            .unwrap();
        let statement = Statement::from_string(database.get_database_backend(), query);
        let row = database.query_one_raw(statement).await.unwrap().unwrap();
        database.close().await.unwrap();
        row.try_get_by_index(0).unwrap()
    }

    /// Waits until so many calls about an IRN are in the authority's hands.
    pub(crate) async fn under_way(&self, operation: Operation, irn: &str, wanted: usize) {
        let count = async || {
            let of_it = |call: &CallRecord| {
                call.operation == Some(operation) && call.irn.as_deref() == Some(irn)
            };
            let calls = self.authority.calls();
            let pending = calls
                .iter()
                .filter(|call| of_it(call) && call.is_pending())
                .count();
            (pending == wanted).then_some(())
        };
        eventually("the call of a step", count).await;
    }

    /// Says whether a taxpayer may create invoices, as the command line does beside a running service.
    pub(crate) fn set_subscription(&self, id: i64, to: Subscription) {
        let settings = self.settings.clone();
        let call =
            move || actix_rt::System::new().block_on(app::set_subscription(settings, id, to));
        thread::spawn(call).join().unwrap().unwrap();
    }
}

async fn serve(settings: Settings, started_sender: mpsc::Sender<Started>) {
    let application = Application::build(&settings, ServeMode::Normal)
        .await
        .unwrap();
    let sandbox = application.app().sandbox.as_ref().unwrap();
    let started = Started {
        address: application.address(),
        ops_address: application.ops_address(),
        authority_root: sandbox.base_url(),
        authority: Arc::clone(sandbox.state()),
        handle: application.handle(),
    };
    started_sender.send(started).unwrap();
    application.run_until_stopped().await.unwrap();
}

pub(crate) async fn new_integrator(settings: &Settings) -> String {
    made_integrator(settings).await["api_key"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn made_integrator(settings: &Settings) -> serde_json::Value {
    let email = format!("integrator{}@house.example", number());
    let made = app::create_integrator(
        settings.clone(),
        "An Integrator".into(),
        email,
        KeyTerms::default(),
    );
    made.await.unwrap()
}
