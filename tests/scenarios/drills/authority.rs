//! Incidents of the authority, and of our connection to it.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use sandbox::{FaultKind, FaultOrder, LatencyOrder, Operation};
use serde_json::json;
use testkit::documents::{Registration, invoice_numbered, submission};
use testkit::patience::eventually;
use testkit::{Backend, each_database, on_sqlite};
use tokio::time::sleep;

use super::{Expected, SETTINGS};
use crate::support::deployment::Deployment;

/// How long nothing is the matter before the first drill.
const CALM_SPAN: Duration = Duration::from_secs(2);

/// Runs that are started at a time. More of them would find the service busy.
const STARTS_AT_ONCE: usize = 16;

#[on_sqlite]
async fn what_is_wrong_with_the_authority_is_told_by_its_cause(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS[3..]).await;
    let watch = deployment.watch().await;
    deployment.submit_some("CALM").await;
    sleep(CALM_SPAN).await;
    watch.is_calm().await;

    deployment.order_fault(FaultKind::Outage);
    deployment.submit_some("OUT").await;
    let out = Expected::new("authority-out", "errors of its own")
        .caused_by("5xx")
        .blamed_on("authority");
    watch.appears(out).await;
    deployment.clear_faults();
    watch.is_gone("authority-out").await;

    deployment.order_fault(FaultKind::WrongKey);
    deployment.submit_some("KEY").await;
    let key = Expected::new(
        "authority-refuses-key",
        "does not accept this service's key",
    )
    .blamed_on("our-key");
    watch.appears(key).await;
    deployment.clear_faults();
    watch.is_gone("authority-refuses-key").await;
    // No call that failed so is on its way any more.
    watch.is_gone("deadlines-missed").await;

    deployment.order_fault(FaultKind::Throttled);
    deployment.submit_some("OFTEN").await;
    let throttled = Expected::new("authority-throttles", "less often");
    watch.appears(throttled).await;
    deployment.clear_faults();
    watch.is_gone("authority-throttles").await;
    // No call that failed so is on its way any more.
    watch.is_gone("deadlines-missed").await;

    let slow = LatencyOrder {
        fixed_ms: Some(2_500),
        ..LatencyOrder::default()
    };
    deployment.authority.state().add_latency(slow).unwrap();
    deployment.submit_some("SLOW").await;
    let slow = Expected::new("authority-slow", "s to answer a call to")
        .caused_by("validate_irn")
        .blamed_on("authority");
    watch.appears(slow).await;
    deployment.clear_faults();
    watch.is_gone("authority-slow").await;
    watch.is_gone("deadlines-missed").await;
    let outages = watch.operator.get("/ops/outages").await.unwrap();
    let outages = outages.body["data"]["data"].as_array().unwrap().len();
    assert_eq!(outages, 1, "the wrong key was told to nobody as an outage");
}

#[on_sqlite]
async fn an_authority_that_cannot_be_reached_is_told_apart_from_a_network_that_reaches_nobody(
    backend: Backend,
) {
    let settings = [&SETTINGS[3..], &[("EINVOICE__AUTHORITY__TIMEOUT_S", "2")]].concat();
    let deployment = Deployment::with(backend, &settings).await;
    let watch = deployment.watch().await;
    for (kind, cause, words) in [
        (FaultKind::Reset, "connect", "cannot be reached"),
        (FaultKind::Stall, "timeout", "end without an answer"),
    ] {
        deployment.order_fault(kind);
        deployment.submit_some(&cause.to_uppercase()).await;
        let out = Expected::new("authority-out", words)
            .caused_by(cause)
            .blamed_on("authority")
            .seen_within_s(20);
        watch.appears(out).await;
        deployment.clear_faults();
        watch.is_gone("authority-out").await;
        watch.is_gone("deadlines-missed").await;
    }

    deployment.set_webhook("http://127.0.0.1:9/hook").await;
    deployment.order_fault(FaultKind::Reset);
    for number in 0..4 {
        let invoice = invoice_numbered(&format!("NOBODY{number}"));
        deployment.taxpayer.create_invoice(&invoice).await;
    }
    deployment.submit_some("CUT").await;
    let cut = Expected::new("authority-out", "look at our own network")
        .caused_by("connect")
        .blamed_on("our-network")
        .seen_within_s(20);
    watch.appears(cut).await;
    deployment.clear_faults();
    watch.is_gone("authority-out").await;
}

#[on_sqlite]
async fn a_certificate_that_is_not_accepted_is_no_outage(backend: Backend) {
    let mut deployment = Deployment::with(backend, &SETTINGS[3..]).await;
    let url = deployment.authority.base_url();
    // The simulator has no certificate, so no handshake succeeds.
    let without_certificate = url.replace("http:", "https:");
    deployment
        .restart_with("EINVOICE__AUTHORITY__BASE_URL", &without_certificate)
        .await;
    let watch = deployment.watch().await;
    deployment.submit("TLS").await;
    let tls = Expected::new("authority-tls", "certificate is not accepted here");
    watch.appears(tls).await;
    drop(watch);
    deployment
        .restart_with("EINVOICE__AUTHORITY__BASE_URL", &url)
        .await;
    let watch = deployment.watch().await;
    watch.is_gone("authority-tls").await;
    watch.is_gone("deadlines-missed").await;
}

#[each_database]
async fn calls_that_an_operator_holds_back_are_told_until_they_are_let_through(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS[3..]).await;
    let watch = deployment.watch().await;
    let reason = [("reason", "a drill")];
    watch
        .console
        .submit("/console/breakers/sign/trip", &reason)
        .await;
    let tripped =
        Expected::new("breaker-tripped", "holds back all calls to sign").caused_by("sign");
    watch.appears(tripped).await;
    watch
        .console
        .submit("/console/breakers/sign/reset", &reason)
        .await;
    watch.is_gone("breaker-tripped").await;
}

#[on_sqlite]
async fn a_limit_that_fell_is_told_while_calls_wait(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS[3..]).await;
    let watch = deployment.watch().await;
    deployment.submit_some("FAST").await;
    // Two at a time: the more calls are made, the longer each of them takes.
    let narrow = LatencyOrder {
        fixed_ms: Some(300),
        at_once: Some(2),
        ..LatencyOrder::default()
    };
    deployment
        .authority
        .state()
        .add_latency(narrow.on(Operation::IrnValidate))
        .unwrap();
    let bodies: Vec<_> = (0..200)
        .map(|number| submission(&Registration::demo(), &format!("MANY{number}")))
        .collect();
    stream::iter(&bodies)
        .for_each_concurrent(STARTS_AT_ONCE, async |body| {
            deployment.taxpayer.start_run("submit", body).await;
        })
        .await;
    let low = Expected::new("authority-limit-low", "for a place among")
        .caused_by("validate_irn")
        .entailing(&["authority-slow"])
        .seen_within_s(40);
    watch.appears(low).await;
    deployment.clear_faults();
    watch.is_gone("authority-limit-low").await;
}

#[each_database]
async fn a_document_at_which_the_authority_fails_is_told_apart_from_an_authority_that_fails(
    backend: Backend,
) {
    let deployment = Deployment::with(backend, &SETTINGS[3..]).await;
    let watch = deployment.watch().await;
    let poisonous = deployment
        .taxpayer
        .create_invoice(&invoice_numbered("POISON"))
        .await;
    deployment.add_fault(FaultOrder {
        irn: Some(poisonous.irn.clone()),
        status: Some(502),
        ..FaultOrder::new(FaultKind::ServerError).on(Operation::IrnValidate)
    });
    let body = submission(&Registration::demo(), "POISON");
    deployment.taxpayer.start_run("submit", &body).await;
    let failed_run = async || {
        let path = format!("/ops/pipeline/runs?irn={}", poisonous.irn);
        let listed = watch.operator.get(&path).await?;
        let id = listed.body["data"]["data"][0]["id"].as_str()?.to_owned();
        let path = format!("/ops/pipeline/runs/{id}");
        let run = watch.operator.get(&path).await?.body["data"].clone();
        let steps = run["steps"].as_array()?;
        eprintln!("STEPS {}", json!(steps));
        let has_failed = steps.iter().any(|step| step["outcome"] == "retry");
        has_failed.then_some(run)
    };
    eventually("the first failure", failed_run).await;
    // Answers in the second of the first failure do not count: they may be older than it.
    sleep(Duration::from_secs(1)).await;
    for number in 0..3 {
        deployment.submit(&format!("WELL{number}")).await;
    }
    let run = eventually("whose fault it is", async || {
        let run = failed_run().await?;
        let steps = run["steps"].as_array()?;
        let blamed = steps.iter().any(|step| step["blame"] == "document");
        blamed.then_some(run)
    })
    .await;
    let failed = run["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(failed["cause"], json!("5xx"), "{run}");
    let page = format!("/console/runs/{}", run["id"].as_str().unwrap());
    let page = watch.console.page(&page).await.unwrap();
    assert!(
        page.contains("the authority answers others, also of this taxpayer"),
        "{page}"
    );
    watch
        .tells_only(Expected::new("deadlines-missed", ""))
        .await;
    deployment.clear_faults();
    watch.is_gone("deadlines-missed").await;
}
