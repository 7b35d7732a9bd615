//! Drills: each causes an incident, finds it where operators look, mends the cause and finds it gone. What is printed is
//! for people; no time is asserted.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use sandbox::{FaultKind, FaultOrder, LatencyOrder};
use serde_json::{Value, json};
use testkit::documents::{Registration, invoice_numbered, submission};
use testkit::patience::eventually;
use testkit::{Backend, each_database, on_postgresql};
use tokio::time::sleep;

use crate::support::client::Client;
use crate::support::database::server;
use crate::support::deployment::Deployment;
use crate::support::proxy::Proxy;

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
/// How long nothing is the matter before the first drill.
const CALM_SPAN: Duration = Duration::from_secs(2);

/// What an operator sees: the incidents, the metrics page and nothing else.
struct Watch<'a> {
    deployment: &'a Deployment,
    operator: Client,
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

    /// Waits for an incident, and checks that it says all that an operator needs, and that the alert has its gauge.
    async fn appears(&self, name: &str, cause: &str, words: &str) {
        let begun = Instant::now();
        let incident = eventually(name, async || {
            self.find(name)
                .await
                .filter(|incident| incident["cause"] == cause)
        })
        .await;
        println!(
            "  {name} after {:?}: {}",
            begun.elapsed(),
            incident["summary"]
        );
        let summary = incident["summary"].as_str().unwrap();
        assert!(summary.contains(words), "{incident}");
        for field in [
            "severity", "title", "effect", "since", "ends", "to_do", "page",
        ] {
            assert!(
                !incident[field].as_str().unwrap().is_empty(),
                "{field}: {incident}"
            );
        }
        let gauge = format!(
            "einvoice_incident{{incident=\"{name}\",severity={},cause=\"{cause}\"}} ",
            incident["severity"]
        );
        let url = format!("{}/metrics", self.deployment.service.url());
        let page = reqwest::get(url).await.unwrap().text().await.unwrap();
        assert!(page.contains(&gauge), "{gauge} in {page}");
    }

    /// Moves all runs in a state; gives how many moved.
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

    async fn is_gone(&self, name: &str) {
        let begun = Instant::now();
        eventually(&format!("the end of {name}"), async || {
            let incidents = self.incidents().await?;
            let is_over = incidents
                .iter()
                .all(|incident| incident["incident"] != name);
            is_over.then_some(())
        })
        .await;
        println!("  {name} gone after {:?}", begun.elapsed());
    }
}

impl Deployment {
    fn watch(&self) -> Watch<'_> {
        Watch {
            deployment: self,
            operator: self.operator(),
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
        let order = FaultOrder {
            for_s: Some(FAULT_S),
            ..FaultOrder::new(kind)
        };
        self.authority.state().add_fault(order).unwrap();
    }

    fn clear_faults(&self) {
        self.authority.state().clear_faults();
        self.authority.state().clear_latencies();
    }
}

#[each_database]
async fn what_is_wrong_with_the_authority_is_told_by_its_cause(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS[3..]).await;
    let watch = deployment.watch();
    deployment.submit_some("CALM").await;
    sleep(CALM_SPAN).await;
    assert_eq!(
        watch.incidents().await.unwrap(),
        [json!(null); 0],
        "nothing is the matter"
    );

    deployment.order_fault(FaultKind::Outage);
    deployment.submit_some("OUT").await;
    watch
        .appears("authority-out", "5xx", "errors of its own")
        .await;
    deployment.clear_faults();
    watch.is_gone("authority-out").await;

    deployment.order_fault(FaultKind::WrongKey);
    deployment.submit_some("KEY").await;
    watch
        .appears(
            "authority-refuses-key",
            "",
            "does not accept this service's key",
        )
        .await;
    assert_eq!(
        watch.find("authority-out").await,
        None,
        "the authority is not out"
    );
    deployment.clear_faults();
    watch.is_gone("authority-refuses-key").await;

    deployment.order_fault(FaultKind::Throttled);
    deployment.submit_some("OFTEN").await;
    watch.appears("authority-throttles", "", "less often").await;
    deployment.clear_faults();
    watch.is_gone("authority-throttles").await;

    let slow = LatencyOrder {
        fixed_ms: Some(2_500),
        ..LatencyOrder::default()
    };
    deployment.authority.state().add_latency(slow).unwrap();
    deployment.submit_some("SLOW").await;
    watch
        .appears("authority-slow", "sign", "s to answer a call to sign")
        .await;
    deployment.clear_faults();
    watch.is_gone("authority-slow").await;
    watch.is_gone("deadlines-missed").await;
    let outages = watch.operator.get("/ops/outages").await.unwrap();
    let outages = outages.body["data"]["data"].as_array().unwrap().len();
    assert_eq!(outages, 1, "the wrong key was told to nobody as an outage");
}

#[each_database]
async fn work_that_needs_an_operator_is_told_until_it_is_done(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let watch = deployment.watch();
    let gone = "http://127.0.0.1:9/hook";
    deployment.set_webhook(gone).await;
    for number in 0..6 {
        deployment
            .taxpayer
            .create_invoice(&invoice_numbered(&format!("DEAD{number}")))
            .await;
    }
    watch.appears("dead-letters", "", "dead letters").await;
    watch
        .appears(
            "endpoints-parked",
            "connect",
            "each attempt failed: connect",
        )
        .await;

    deployment.order_fault(FaultKind::Outage);
    deployment.submit("LATE").await;
    watch
        .appears("deadlines-missed", "", "missed the legal deadline")
        .await;
    eventually("a run that can be paused", async || {
        (watch.move_runs("pause", "waiting").await > 0).then_some(())
    })
    .await;
    watch.appears("runs-paused", "", "1 run is paused").await;
    assert_eq!(watch.move_runs("cancel", "paused").await, 1);
    deployment.clear_faults();
    watch.is_gone("runs-paused").await;
    watch.is_gone("deadlines-missed").await;

    for number in 0..5 {
        deployment.submit(&format!("INV{number}SBXREJECT")).await;
    }
    watch
        .appears(
            "documents-refused",
            "",
            &format!("of taxpayer {}", deployment.taxpayer_id()),
        )
        .await;

    let stranger = Client::new(deployment.service.url(), "ink_0123456789abcdef");
    for _ in 0..60 {
        stranger.get("/v1/system-integrators/taxpayers").await;
    }
    watch.appears("authentications-fail", "", "wrong").await;
}

#[on_postgresql]
async fn operators_see_what_the_process_knows_while_the_database_is_silent(backend: Backend) {
    let proxy = Proxy::start(&server()).await;
    let deployment = Deployment::behind(&proxy, backend).await;
    let watch = deployment.watch();
    assert!(watch.incidents().await.is_some());
    proxy.freeze();
    watch
        .appears("database-silent", "silent", "does not answer")
        .await;
    let ready = deployment.taxpayer.get("/health/ready").await.unwrap();
    assert_eq!(ready.status, 503, "{ready:?}");
    let tree = watch.operator.get("/ops/supervision").await.unwrap();
    assert_eq!(tree.status, 200, "{tree:?}");
    proxy.thaw();
    watch.is_gone("database-silent").await;
}
