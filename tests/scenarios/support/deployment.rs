//! A service on a fresh database, with an authority in this process that outlives it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::Offset;
use reqwest::Method;
use sandbox::{CallRecord, FaultKind, FaultOrder, Operation, PartyEnrolment, Sandbox};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::Backend;
use testkit::documents::{Registration, invoice_numbered, number, submission, taxpayer_registered};
use testkit::patience::eventually;

use crate::support::client::{Client, Created, assert_gapless, kinds};
use crate::support::database::PostgresDatabase;
use crate::support::proxy::Proxy;
use crate::support::service::{DATABASE_URL, Service, Settings};
use crate::support::template::Template;

const API_KEY: &str = "3f6a1c9e-5b0d-4b52-9a55-0a4d1c9f7e21";
const API_SECRET: &str = "a-secret-that-both-sides-know";
/// Base64 of 32 bytes; every process of a scenario seals with the same.
pub(crate) const ENCRYPTION_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

const FAILED_EVENT: &str = "invoice.failed";
const SUBMITTED_EVENTS: [&str; 5] = [
    "invoice.created",
    "invoice.status-updated",
    "invoice.validated",
    "invoice.status-updated",
    "invoice.submitted",
];
const TRANSMITTED_EVENTS: [&str; 2] = ["invoice.status-updated", "invoice.transmitted"];

/// Fields are dropped in this order: the process before its database and directory.
pub(crate) struct Deployment {
    pub(crate) service: Service,
    pub(crate) taxpayer: Client,
    taxpayer_id: i64,
    pub(crate) integrator: Client,
    pub(crate) authority: Sandbox,
    pub(crate) postgres: Option<PostgresDatabase>,
    settings: Settings,
    directory: TempDir,
}

/// A taxpayer beside the first one.
pub(crate) struct Newcomer {
    pub(crate) id: i64,
    pub(crate) client: Client,
    pub(crate) registration: Registration,
}

impl Deployment {
    pub(crate) async fn open(backend: Backend) -> Self {
        Self::with(backend, &[]).await
    }

    /// With settings of its own beside those that all scenes have.
    pub(crate) async fn with(backend: Backend, own: &[(&'static str, &str)]) -> Self {
        Self::build(backend, own, None).await
    }

    /// With a proxy between the service and PostgreSQL.
    pub(crate) async fn behind(proxy: &Proxy, backend: Backend) -> Self {
        Self::build(backend, &[], Some(proxy)).await
    }

    async fn build(backend: Backend, own: &[(&'static str, &str)], proxy: Option<&Proxy>) -> Self {
        let directory = TempDir::new().unwrap();
        let authority = authority().await;
        let keys = write_keys(&authority, directory.path());
        let mut settings = settings(&directory, &authority, &keys);
        let template = Template::for_backend(backend, &settings).await;
        let postgres = template.copy_to(directory.path()).await;
        let url = |database: &PostgresDatabase| match proxy {
            Some(proxy) => proxy.url(&database.url()),
            None => database.url(),
        };
        settings.extend(
            postgres
                .iter()
                .map(|database| (DATABASE_URL, url(database))),
        );
        settings.extend(own.iter().map(|(key, value)| (*key, (*value).to_owned())));
        let service = Service::start(directory.path().to_owned(), "first", settings.clone()).await;
        // The database of another place is no copy of the template.
        let is_elsewhere = own.iter().any(|(key, _)| *key == DATABASE_URL);
        let integrator_key = if is_elsewhere {
            service.new_integrator()
        } else {
            template.integrator_key.clone()
        };
        let integrator = Client::new(service.url(), &integrator_key);
        let Newcomer {
            id: taxpayer_id,
            client: taxpayer,
            ..
        } = onboard(&service, &integrator, Registration::demo()).await;
        let deployment = Self {
            service,
            taxpayer,
            taxpayer_id,
            integrator,
            authority,
            postgres,
            settings,
            directory,
        };
        deployment.wait_for_lists().await;
        deployment
    }

    /// Another process on the same database, and the taxpayer's client there.
    pub(crate) async fn another_process(&self, name: &str) -> (Service, Client) {
        let service = Service::start(
            self.directory.path().to_owned(),
            name,
            self.settings.clone(),
        )
        .await;
        let client = self.taxpayer.at(service.url());
        (service, client)
    }

    /// The first taxpayer's id.
    pub(crate) fn taxpayer_id(&self) -> i64 {
        self.taxpayer_id
    }

    /// Onboards another taxpayer of the same integrator, with a key and a complete profile.
    pub(crate) async fn newcomer(&self) -> Newcomer {
        let registration = Registration::with_number(number());
        enrol(&self.authority, &registration);
        onboard(&self.service, &self.integrator, registration).await
    }

    /// Has the first taxpayer's creates and moves notified to a URL.
    pub(crate) async fn set_webhook(&self, url: &str) {
        self.set_webhook_for(self.taxpayer_id(), url).await;
    }

    /// The same for any taxpayer.
    pub(crate) async fn set_webhook_for(&self, taxpayer: i64, url: &str) {
        let path = format!("/v1/system-integrators/taxpayers/{taxpayer}/webhook");
        let body = json!({ "webhook_url": url, "enabled_events": ["invoice.created", "invoice.status-updated"] });
        let answer = self
            .integrator
            .call(Method::PUT, &path, Some(&body))
            .await
            .unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// An operator, made by a call of the program.
    pub(crate) fn operator(&self) -> Client {
        let made = self.new_operator();
        Client::new(self.service.url(), made["api_key"].as_str().expect("a key"))
    }

    /// The same, with the operator's email and password.
    pub(crate) fn new_operator(&self) -> Value {
        let email = format!("ops{}@einvoice.example", number());
        let call = ["operator", "create", "--email", &email];
        let done = self.service.call(&call).output().unwrap();
        strict_json::from_untrusted(&done.stdout).expect("an operator")
    }

    /// Kills the process and starts it with another value of a setting.
    pub(crate) async fn restart_with(&mut self, setting: &'static str, value: &str) {
        self.service.kill_9();
        self.service.change_setting(setting, value);
        self.service.restart().await;
    }

    /// The directory of the process.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Waits until all runs have ended. An operator resumes the quarantined ones, which three kills have met. A
    /// quarantined run also ends when the authority lists its invoice as transmitted.
    pub(crate) async fn end_runs(&self, operator: &Client) {
        eventually("the end of all runs", async || {
            // One list of all: between two lists a run could change its state and be in neither.
            let listed =
                operator.get("/ops/pipeline/runs?per_page=100").await?.body["data"]["data"].clone();
            let runs = listed.as_array()?;
            assert!(runs.len() < 100, "more runs than the page shows");
            let is_open = |run: &&Value| {
                ["running", "waiting", "paused"]
                    .map(Value::from)
                    .contains(&run["state"])
            };
            for run in runs.iter().filter(|run| run["state"] == json!("paused")) {
                let error = run["last_error"].as_str().unwrap_or_default();
                assert!(error.starts_with("quarantined"), "{run}");
                let path = format!("/ops/pipeline/runs/{}/resume", run["id"].as_str().unwrap());
                let answer = operator.call(Method::POST, &path, Some(&json!({}))).await?;
                let has_succeeded = answer
                    .text
                    .contains("A run that is succeeded takes no resume");
                assert!(answer.status == 200 || has_succeeded, "{answer:?}");
            }
            (runs.iter().filter(is_open).count() == 0).then_some(())
        })
        .await;
    }

    /// The value of a line of the metrics page.
    pub(crate) async fn metric(&self, name: &str) -> String {
        let url = format!("{}/metrics", self.service.url());
        let page = reqwest::get(url).await.unwrap().text().await.unwrap();
        let line = page.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{name} in {page}"))
            .rsplit(' ')
            .next()
            .unwrap()
            .to_owned()
    }

    /// The SQLite file.
    pub(crate) fn sqlite_url(&self) -> String {
        format!(
            "sqlite://{}",
            self.directory.path().join("einvoice.db").display()
        )
    }

    /// Until the authority's lists are there, forms only warn and a submission lacks its tax.
    async fn wait_for_lists(&self) {
        let mut number = 0;
        eventually("the authority's reference lists", async || {
            number += 1;
            let body = invoice_numbered(&format!("LISTS{number}"));
            let path = "/v1/tax-payers/invoices";
            let answer = self.taxpayer.call(Method::POST, path, Some(&body)).await?;
            (!answer.headers.contains_key("x-system-warning")).then_some(())
        })
        .await;
    }

    pub(crate) async fn restart_after_kill(&mut self) {
        self.service.kill_9();
        self.service.restart().await;
    }

    /// Creates an invoice and starts its Submit.
    pub(crate) async fn submit(&self, invoice_no: &str) -> Created {
        let created = self
            .taxpayer
            .create_invoice(&invoice_numbered(invoice_no))
            .await;
        self.taxpayer
            .start_run("submit", &submission(&Registration::demo(), invoice_no))
            .await;
        created
    }

    pub(crate) async fn transmit(&self, created: &Created) {
        self.taxpayer
            .start_run("transmit", &json!({ "irn": created.irn }))
            .await;
    }

    /// The authority's record of calls of an operation, about an invoice where it is about one.
    pub(crate) fn calls(&self, operation: Operation, irn: &str) -> Vec<CallRecord> {
        let mut calls = self.authority.state().calls();
        calls.retain(|call| {
            call.operation == Some(operation)
                && call.irn.as_deref().is_none_or(|named| named == irn)
        });
        calls
    }

    /// How many calls of this operation the authority has in hand.
    pub(crate) fn pending_calls(&self, operation: Operation, irn: &str) -> usize {
        self.calls(operation, irn)
            .iter()
            .filter(|call| call.is_pending())
            .count()
    }

    /// Orders that the next call of this operation about the invoice is answered so late.
    pub(crate) fn order_late(
        &self,
        kind: FaultKind,
        operation: Operation,
        irn: &str,
        late: Duration,
    ) {
        let mut order = FaultOrder::new(kind).on(operation);
        order.latency_ms = Some(u64::try_from(late.as_millis()).unwrap());
        order.irn = (operation != Operation::Health).then(|| irn.to_owned());
        self.authority.state().add_fault(order).unwrap();
    }

    /// What must hold of an invoice whose runs have ended: signed and, where it was, transmitted once; the
    /// status; each event once and in order. Gives the number of signatures that were tried.
    pub(crate) async fn assert_done(
        &self,
        created: &Created,
        events: &[Value],
        is_transmitted: bool,
    ) -> u32 {
        let irn = &created.irn;
        let sheet = self.authority.state().invoice(irn).unwrap();
        assert_eq!(sheet.sign_count, 1, "one signature for {irn}");
        assert_eq!(
            sheet.transmit_count,
            u32::from(is_transmitted),
            "transmissions of {irn}"
        );
        let mut expected = SUBMITTED_EVENTS.to_vec();
        if is_transmitted {
            expected.extend(TRANSMITTED_EVENTS);
        }
        for failed in events
            .iter()
            .filter(|event| event["irn"] == **irn && event["type"] == FAILED_EVENT)
        {
            let error = failed["data"]["error"].as_str().unwrap_or_default();
            assert!(
                error.starts_with("quarantined"),
                "{irn} failed only in quarantine: {failed}"
            );
        }
        let mut others = kinds(events, irn);
        others.retain(|kind| *kind != FAILED_EVENT);
        assert_eq!(others, expected, "the events of {irn}");
        let status = if is_transmitted {
            "transmitted"
        } else {
            "submitted"
        };
        assert_eq!(self.taxpayer.status(created).await, status);
        sheet.sign_attempts
    }

    /// The log without gaps, its chain whole.
    pub(crate) async fn intact_events(&self) -> Vec<Value> {
        let events = self.taxpayer.events().await;
        assert_gapless(&events);
        let (is_intact, said) = self.service.verify().await;
        assert!(is_intact, "verify: {said}");
        events
    }
}

/// Onboards a taxpayer with a whole profile and a key.
async fn onboard(service: &Service, integrator: &Client, registration: Registration) -> Newcomer {
    let body = taxpayer_registered(number(), &registration);
    let taxpayers = "/v1/system-integrators/taxpayers";
    let made = integrator
        .call(Method::POST, taxpayers, Some(&body))
        .await
        .unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.body["data"]["id"].as_i64().expect("an id");
    let profile = format!("{taxpayers}/{id}/profile");
    let place = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    let changed = integrator
        .call(Method::PATCH, &profile, Some(&place))
        .await
        .unwrap();
    assert_eq!(changed.status, 200, "{changed:?}");
    let rotate = format!("{taxpayers}/{id}/api-key/rotate");
    let rotated = integrator
        .call(Method::POST, &rotate, Some(&json!({})))
        .await
        .unwrap();
    let key = rotated.body["data"]["api_key"]
        .as_str()
        .expect("a key")
        .to_owned();
    Newcomer {
        id,
        client: Client::new(service.url(), &key),
        registration,
    }
}

/// A simulator in this process.
pub(crate) async fn authority() -> Sandbox {
    let settings = sandbox::Settings {
        bind: "127.0.0.1:0".into(),
        api_key: API_KEY.into(),
        api_secret: API_SECRET.into(),
        seed: 1,
        utc_offset: Offset::UTC,
    };
    let sandbox = sandbox::start(settings).await.unwrap();
    enrol(&sandbox, &Registration::demo());
    sandbox
}

/// Has the authority list a taxpayer, so that it is confirmed.
fn enrol(authority: &Sandbox, registration: &Registration) {
    let business_id = Some(registration.business_id.clone());
    let tin = Some(registration.tin.clone());
    let enrolment = PartyEnrolment {
        business_id,
        tin,
        ..PartyEnrolment::default()
    };
    authority.state().enrol(&enrolment).unwrap();
}

/// Writes the authority's keys for QR codes where a process reads them.
pub(crate) fn write_keys(authority: &Sandbox, directory: &Path) -> PathBuf {
    let keys = directory.join("authority-keys.json");
    std::fs::write(&keys, authority.state().crypto_keys().unwrap().to_string()).unwrap();
    keys
}

fn settings(directory: &TempDir, authority: &Sandbox, keys: &Path) -> Settings {
    vec![
        ("EINVOICE__DATA_DIR", directory.path().display().to_string()),
        ("EINVOICE__AUTHORITY__MODE", "remote".into()),
        (
            "EINVOICE__AUTHORITY__ALLOW_REMOTE_IN_DEVELOPMENT",
            "true".into(),
        ),
        ("EINVOICE__AUTHORITY__BASE_URL", authority.base_url()),
        ("EINVOICE__AUTHORITY__API_KEY", API_KEY.into()),
        ("EINVOICE__AUTHORITY__API_SECRET", API_SECRET.into()),
        (
            "EINVOICE__AUTHORITY__CRYPTO_KEYS_FILE",
            keys.display().to_string(),
        ),
        ("EINVOICE__SECRETS__ENCRYPTION_KEY", ENCRYPTION_KEY.into()),
        ("EINVOICE__CLUSTER__LEASE_S", "1".into()),
        ("EINVOICE__PIPELINE__RETRY_INITIAL_MS", "20".into()),
        ("EINVOICE__PIPELINE__RETRY_MAX_S", "1".into()),
        ("EINVOICE__RATE_LIMIT__REQUESTS_PER_S", "0".into()),
        ("EINVOICE__LOG__LEVEL", "info".into()),
        ("EINVOICE__LOG__FORMAT", "text".into()),
    ]
}
