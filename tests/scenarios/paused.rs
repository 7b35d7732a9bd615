//! `einvoice serve --paused`: what is accepted stays, and goes out after a start without the flag.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::patience::eventually;
use testkit::{Backend, each_database};

use crate::support::client::Client;
use crate::support::deployment::Deployment;
use crate::support::receiver::Behaviour;

async fn stop(deployment: &mut Deployment) {
    deployment.service.signal("TERM");
    let status = deployment.service.wait_for_end().await;
    assert_eq!(status.code(), Some(0), "{}", deployment.service.output());
}

/// A call that a paused service does not make says so.
async fn assert_refused(client: &Client, method: Method, path: &str) {
    let answer = client.call(method, path, Some(&json!({}))).await.unwrap();
    let message = answer.body["message"].as_str().unwrap_or_default();
    assert_eq!(answer.status, 503, "{path}: {answer:?}");
    assert!(message.contains("--paused"), "{path}: {message}");
}

#[each_database]
async fn a_paused_service_accepts_and_sends_nothing(backend: Backend) {
    let receiver = Behaviour::PROMPT.start();
    let mut deployment = Deployment::open(backend).await;
    deployment.set_webhook(&receiver.url()).await;
    let operator = deployment.operator();
    stop(&mut deployment).await;
    let calls = deployment.authority.state().calls().len();
    let notifications = receiver.requests();

    deployment.service.launch_with(&["serve", "--paused"]);
    deployment.service.wait_until_ready().await;
    let created = deployment.submit("PAUSED1").await;
    let irn = &created.irn;
    let invoice = format!("/v1/app/invoices/{irn}");
    assert_refused(
        &deployment.taxpayer,
        Method::POST,
        &format!("{invoice}/confirm"),
    )
    .await;
    assert_refused(
        &deployment.taxpayer,
        Method::POST,
        &format!("{invoice}/download"),
    )
    .await;
    let test = format!(
        "/v1/system-integrators/taxpayers/{}/webhook/test",
        deployment.taxpayer_id()
    );
    assert_refused(&deployment.integrator, Method::POST, &test).await;

    let ready = deployment.taxpayer.get("/health/ready").await.unwrap();
    assert_eq!(
        (ready.status, &ready.body["status"]),
        (200, &json!("degraded"))
    );
    let reason = &ready.body["checks"]["authority"]["reason"];
    assert_eq!(reason, "started with --paused: nothing is sent");
    eventually("an incident that tells operators", async || {
        let incidents = operator.get("/ops/incidents").await?.text;
        incidents.contains("service-paused").then_some(())
    })
    .await;
    assert!(
        deployment
            .service
            .output()
            .contains("started with --paused")
    );
    stop(&mut deployment).await;
    assert_eq!(
        deployment.authority.state().calls().len(),
        calls,
        "no call was made"
    );
    assert_eq!(receiver.requests(), notifications, "nothing was sent");

    deployment.service.restart().await;
    deployment
        .taxpayer
        .wait_until_succeeded(irn, "submit")
        .await;
    eventually("a notification", async || {
        let all = receiver.received_notifications();
        all.iter().any(|one| one.irn() == *irn).then_some(())
    })
    .await;
    let status: Value = deployment.taxpayer.get("/health/ready").await.unwrap().body;
    assert_eq!(status["status"], "ok");
}
