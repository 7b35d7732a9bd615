//! What an operator has to look into: each case is one warning in the log and one count on the metrics page.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use actix_web::http::StatusCode;
use actix_web::{App, HttpResponse, HttpServer, web};
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;
use testkit::{Backend, each_database};

use crate::support::deployment::Deployment;

/// One attempt at a delivery; an endpoint is parked by its fifth failure and a run given up after a second.
const SETTINGS: [(&str, &str); 4] = [
    ("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[0]"),
    ("EINVOICE__WEBHOOKS__CIRCUIT_OPEN_AFTER_S", "0"),
    ("EINVOICE__WEBHOOKS__CIRCUIT_PROBE_MAX_S", "3"),
    ("EINVOICE__PIPELINE__GIVE_UP_AFTER_S", "1"),
];
const FAILURES: usize = 5;

/// Answers everything with the status of the moment; gives its address.
fn start_answering(status: &Arc<AtomicU16>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let status = web::Data::from(Arc::clone(status));
    let answer = |status: web::Data<AtomicU16>| async move {
        HttpResponse::new(StatusCode::from_u16(status.load(Ordering::SeqCst)).unwrap())
    };
    let app = move || {
        App::new()
            .app_data(status.clone())
            .default_service(web::to(answer))
    };
    tokio::spawn(
        HttpServer::new(app)
            .workers(1)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run(),
    );
    address
}

/// Waits until the log has so many of these lines, and checks that they are counted.
async fn wait_for_warnings(deployment: &Deployment, count: usize, line: &str, metric: &str) {
    eventually(&format!("{count} x {line}"), async || {
        (deployment.service.output().matches(line).count() >= count).then_some(())
    })
    .await;
    let output = deployment.service.output();
    assert_eq!(output.matches(line).count(), count, "{output}");
    assert!(
        output
            .lines()
            .filter(|told| told.contains(line))
            .all(|told| told.contains("WARN")),
        "{output}"
    );
    assert_eq!(
        deployment.metric(metric).await,
        count.to_string(),
        "{metric}"
    );
}

#[each_database]
async fn each_case_for_an_operator_is_one_warning_and_one_count(backend: Backend) {
    let deployment = Deployment::with(backend, &SETTINGS).await;
    let status = Arc::new(AtomicU16::new(503));
    deployment.set_webhook(&start_answering(&status)).await;
    for number in 0..FAILURES {
        deployment
            .taxpayer
            .create_invoice(&invoice_numbered(&format!("DEAD{number}")))
            .await;
        let dead = "gave up on a delivery";
        wait_for_warnings(
            &deployment,
            number + 1,
            dead,
            r#"einvoice_dead_letters_total{reason="given_up"}"#,
        )
        .await;
    }
    wait_for_warnings(
        &deployment,
        1,
        "parked an endpoint that keeps failing",
        "einvoice_endpoints_parked_total",
    )
    .await;
    status.store(410, Ordering::SeqCst);
    deployment
        .taxpayer
        .create_invoice(&invoice_numbered("GONE"))
        .await;
    wait_for_warnings(
        &deployment,
        1,
        "disabled an endpoint",
        "einvoice_endpoints_disabled_total",
    )
    .await;

    deployment.submit("INV1SBXDOWN").await;
    let paused = r#"einvoice_runs_paused_total{reason="given_up"}"#;
    wait_for_warnings(&deployment, 1, "paused a run for an operator", paused).await;
}
