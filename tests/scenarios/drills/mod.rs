//! Drills: each causes an incident from outside, finds it where operators look, mends the cause and finds it gone.
//! Meanwhile nothing else is told that wakes somebody, but what the fault entails. How long each took is printed, beside
//! what is wanted; no time is asserted.
//!
//! Every row of the table has a drill but three. `queue-growing` looks back five minutes, so only its condition is tested
//! (`domain::incident`), as is that of `replica-not-ready`; `replica-missing` needs several replicas (`replicas`). `calm`
//! is the drill of all rows: nothing is told while nothing is the matter.
//!
//! | Incidents of | File |
//! |---|---|
//! | the authority, and our connection to it | `authority` |
//! | runs, refusals, endpoints and deliveries | `work` |
//! | the ledger, checkpoints, reference lists, replicas and tasks | `upkeep` |
//! | the process: its database, actors, requests, memory and files | `process` |
//! | the command `einvoice drill` | `command` |
//!
//! On one database where the process knows by itself what it tells; on both where the database says it.

mod authority;
mod command;
mod process;
mod upkeep;
mod work;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use sandbox::{FaultKind, FaultOrder};
use serde_json::{Value, json};
use testkit::documents::{Registration, submission};
use testkit::patience::{PATIENCE, eventually, eventually_within};

use crate::support::client::Client;
use crate::support::console::Console;
use crate::support::deployment::Deployment;

/// One attempt at a delivery, an endpoint parked by its fifth failure, retries of runs
/// each second, and an outage over as soon as calls are answered.
const SETTINGS: [(&str, &str); 5] = [
    ("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[0]"),
    ("EINVOICE__WEBHOOKS__CIRCUIT_OPEN_AFTER_S", "0"),
    ("EINVOICE__WEBHOOKS__CIRCUIT_PROBE_MAX_S", "1"),
    ("EINVOICE__PIPELINE__RETRY_MAX_S", "1"),
    ("EINVOICE__AUTHORITY__OUTAGE_CLEAR_AFTER_S", "1"),
];
/// Submissions at a time, so that breakers see more than one document fail.
const SUBMISSIONS: usize = 8;
/// A fault lasts until it is cleared.
const FAULT_S: u64 = 3_600;
/// The invoices of the tests are dated months ago, so each that waits for a moment has missed its deadline.
const ALWAYS_OVERDUE: &str = "deadlines-missed";
/// How soon an incident is told, and how soon its end.
const SEEN_WITHIN: Duration = Duration::from_secs(10);
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// An incident that a fault must bring.
#[derive(Debug, Clone, Copy)]
struct Expected<'a> {
    incident: &'a str,
    cause: &'a str,
    /// Whose fault it is; empty if the service cannot know.
    blame: &'a str,
    /// A part of the summary.
    words: &'a str,
    /// What the fault entails beside it.
    entails: &'a [&'a str],
    seen_within: Duration,
}

impl<'a> Expected<'a> {
    fn new(incident: &'a str, words: &'a str) -> Self {
        Self {
            incident,
            cause: "",
            blame: "",
            words,
            entails: &[],
            seen_within: SEEN_WITHIN,
        }
    }

    fn caused_by(self, cause: &'a str) -> Self {
        Self { cause, ..self }
    }

    fn blamed_on(self, blame: &'a str) -> Self {
        Self { blame, ..self }
    }

    fn entailing(self, entails: &'a [&'a str]) -> Self {
        Self { entails, ..self }
    }

    /// Some conditions look at a time span: so much longer the incident takes.
    fn seen_within_s(self, seconds: u64) -> Self {
        Self {
            seen_within: Duration::from_secs(seconds),
            ..self
        }
    }
}

/// What operators see: the incidents, the overview and the metrics page.
struct Watch<'a> {
    deployment: &'a Deployment,
    operator: Client,
    console: Console,
    /// Incidents that look back at an hour or a day. They are told until the end of the scenario.
    lasting: Mutex<BTreeSet<String>>,
}

impl Watch<'_> {
    async fn incidents(&self) -> Option<Vec<Value>> {
        let answer = self.operator.get("/ops/incidents").await?;
        let found = answer.body["data"]["incidents"].as_array().cloned();
        found.filter(|_| answer.status == 200)
    }

    async fn find(&self, name: &str) -> Option<Value> {
        let mut incidents = self.incidents().await?.into_iter();
        incidents.find(|incident| incident["incident"] == name)
    }

    /// Waits for an incident, and checks that all who look see it and that nothing else is told.
    async fn appears(&self, expected: Expected<'_>) -> Value {
        let Expected {
            incident: name,
            cause,
            blame,
            words,
            ..
        } = expected;
        let begun = Instant::now();
        let incident = eventually(name, async || {
            let incidents = self.incidents().await?;
            let mut found = incidents
                .into_iter()
                .filter(|incident| incident["incident"] == name);
            found.find(|incident| {
                incident["cause"] == cause && incident["summary"].as_str().unwrap().contains(words)
            })
        })
        .await;
        let took = begun.elapsed();
        println!("  {name} after {took:?}: {}", incident["summary"]);
        if took > expected.seen_within {
            println!("  {name}: wanted within {:?}", expected.seen_within);
        }
        let told_blame = incident["blame"].as_str().unwrap_or_default();
        assert_eq!(told_blame, blame, "{incident}");
        for field in [
            "severity", "title", "effect", "since", "ends", "to_do", "page",
        ] {
            let text = incident[field].as_str().unwrap();
            assert!(!text.is_empty(), "{field}: {incident}");
        }
        self.is_gauged(&incident).await;
        self.is_on_overview(&incident).await;
        self.tells_only(expected).await;
        incident
    }

    async fn is_gauged(&self, incident: &Value) {
        let text = |field: &str| incident[field].as_str().unwrap();
        let gauge = format!(
            "einvoice_incident{{incident=\"{}\",severity=\"{}\",cause=\"{}\"}} ",
            text("incident"),
            text("severity"),
            text("cause")
        );
        let url = format!("{}/metrics", self.deployment.service.url());
        // On a busy machine the incident may end for a moment, just when the metrics are read.
        eventually("the gauge of the incident", async || {
            let page = reqwest::get(&url).await.ok()?.text().await.ok()?;
            page.contains(&gauge).then_some(())
        })
        .await;
    }

    async fn is_on_overview(&self, incident: &Value) {
        let text = |field: &str| incident[field].as_str().unwrap();
        eventually("the incident on the overview", async || {
            let page = self.console.page("/console").await?;
            let mut fields = ["title", "effect", "to_do"].into_iter();
            fields.all(|field| page.contains(text(field))).then_some(())
        })
        .await;
    }

    async fn tells_only(&self, expected: Expected<'_>) {
        let told = self.incidents().await.expect("the incidents");
        let lasting = self.lasting.lock().unwrap().clone();
        let others: Vec<_> = told
            .iter()
            .filter(|incident| {
                let name = incident["incident"].as_str().unwrap();
                // A machine that is busy with other tests may make other things slow, which is a warning.
                incident["severity"] == "page"
                    && name != expected.incident
                    && name != ALWAYS_OVERDUE
                    && !expected.entails.contains(&name)
                    && !lasting.contains(name)
            })
            .collect();
        assert!(
            others.is_empty(),
            "beside {}: {others:?}",
            expected.incident
        );
    }

    /// Waits for the end of an incident after its cause was mended.
    async fn is_gone(&self, name: &str) {
        self.is_gone_within(name, GONE_WITHIN).await;
    }

    async fn is_gone_within(&self, name: &str, wanted: Duration) {
        let begun = Instant::now();
        eventually_within(
            wanted.max(PATIENCE),
            &format!("the end of {name}"),
            async || {
                let incidents = self.incidents().await?;
                let is_over = incidents
                    .iter()
                    .all(|incident| incident["incident"] != name);
                is_over.then_some(())
            },
        )
        .await;
        let took = begun.elapsed();
        println!("  {name} gone after {took:?}");
        if took > wanted {
            println!("  {name}: wanted to be gone within {wanted:?}");
        }
    }

    /// Checks that an incident which looks back longer than a drill lasts says when it would end. It is told from now on.
    async fn lasts(&self, incident: &Value, ends: &str) {
        let told = incident["ends"].as_str().unwrap();
        assert!(told.contains(ends), "{incident}");
        let name = incident["incident"].as_str().unwrap();
        println!("  {name} lasts: {told}");
        assert!(self.find(name).await.is_some(), "{name} ended at once");
        self.lasting.lock().unwrap().insert(name.to_owned());
    }

    /// Moves all runs in a state. Returns how many moved.
    async fn move_runs(&self, action: &str, state: &str) -> u64 {
        let body = json!({ "action": action, "filter": { "state": state } });
        let path = "/ops/pipeline/runs/move";
        let moved = self
            .operator
            .call(Method::POST, path, Some(&body))
            .await
            .unwrap();
        assert_eq!(moved.status, 200, "{moved:?}");
        moved.body["data"]["moved"].as_u64().unwrap()
    }

    /// Checks that nothing is the matter but what lasts.
    async fn is_calm(&self) {
        self.tells_only(Expected::new("", "")).await;
    }
}

impl Deployment {
    async fn watch(&self) -> Watch<'_> {
        let made = self.new_operator();
        let text = |field: &str| made[field].as_str().unwrap();
        let root = self.service.url();
        Watch {
            deployment: self,
            operator: Client::new(root.clone(), text("api_key")),
            console: Console::sign_in(root, text("email"), text("password")).await,
            lasting: Mutex::default(),
        }
    }

    async fn submit_some(&self, name: &str) {
        let numbers = (0..SUBMISSIONS).map(|number| format!("{name}{number}"));
        let bodies: Vec<_> = numbers
            .map(|number| submission(&Registration::demo(), &number))
            .collect();
        join_all(
            bodies
                .iter()
                .map(|body| self.taxpayer.start_run("submit", body)),
        )
        .await;
    }

    fn order_fault(&self, kind: FaultKind) {
        self.add_fault(FaultOrder::new(kind));
    }

    /// Adds a fault that lasts until it is cleared.
    fn add_fault(&self, order: FaultOrder) {
        let order = FaultOrder {
            for_s: Some(FAULT_S),
            ..order
        };
        self.authority.state().add_fault(order).unwrap();
    }

    fn clear_faults(&self) {
        self.authority.state().clear_faults();
        self.authority.state().clear_latencies();
    }
}
