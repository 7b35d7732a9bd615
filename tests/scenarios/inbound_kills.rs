//! kill -9 while a notice is worked on, while an acknowledgement is in the authority's hands, and while nobody is
//! there to receive it. Every invoice must come into the inbox once, and be acknowledged once.

use std::time::{Duration, Instant};

use reqwest::Method;
use sandbox::{FaultKind, InboundInvoice, Operation};
use serde_json::{Value, json};
use testkit::patience::{PATIENCE, eventually};
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::{Client, kinds};
use crate::support::deployment::Deployment;

const TIN: &str = "12345678-0001";
const TOKEN: &str = "the-token-of-the-scenario";
const OWN_SETTINGS: [(&str, &str); 2] = [
    ("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN", TOKEN),
    // Seldom, since a poll that is under way at three kills is put into quarantine.
    ("EINVOICE__AUTHORITY__PULL_EVERY_S", "5"),
];
/// Long enough that the answer never comes before the kill.
const ANSWER_DELAY: Duration = Duration::from_mins(2);
/// From the authority's answer to the kill: before what follows from it is written, about then, and after it.
const DELAYS_MS: [u64; 4] = [0, 3, 8, 20];
const ACKNOWLEDGE: &str = "/v1/tax-payers/invoices/acknowledge-supplier-invoice";

#[each_database]
async fn notices_and_acknowledgements_survive_kills(backend: Backend) {
    let mut deployment = Deployment::with(backend, &OWN_SETTINGS).await;
    let url = format!(
        "{}/authority/notifications/{TOKEN}",
        deployment.service.url()
    );
    deployment
        .authority
        .state()
        .register_access_point(&url)
        .unwrap();
    let mut irns = Vec::new();

    // The document is in the authority's hands when the process dies; then right after it was handed out.
    let irn = plant_invoice(&deployment, irns.len(), false);
    deployment.order_late(FaultKind::Latency, Operation::Download, &irn, ANSWER_DELAY);
    deployment.authority.state().notify(&irn, "TRANSMITTING");
    wait_for_pending_call(&deployment, Operation::Download, &irn).await;
    deployment.restart_after_kill().await;
    irns.push(irn);
    for delay in DELAYS_MS {
        let irn = plant_invoice(&deployment, irns.len(), true);
        wait_for_answer(&deployment, Operation::Download, &irn).await;
        sleep(Duration::from_millis(delay)).await;
        deployment.restart_after_kill().await;
        irns.push(irn);
    }
    // Nobody is there to receive it.
    deployment.service.kill_9();
    irns.push(plant_invoice(&deployment, irns.len(), true));
    deployment.service.restart().await;
    for irn in &irns {
        wait_in_inbox(&deployment.taxpayer, irn).await;
    }

    // The acknowledgement took effect, and its answer never came; then just came.
    deployment.order_late(
        FaultKind::Latency,
        Operation::Acknowledge,
        &irns[0],
        ANSWER_DELAY,
    );
    for (irn, delay) in irns
        .iter()
        .zip(std::iter::once(None).chain(DELAYS_MS.map(Some)))
    {
        let client = deployment.taxpayer.clone();
        let named = irn.clone();
        let asking = tokio::spawn(async move { acknowledge(&client, &named).await });
        match delay {
            None => wait_for_pending_call(&deployment, Operation::Acknowledge, irn).await,
            Some(delay) => {
                wait_for_answer(&deployment, Operation::Acknowledge, irn).await;
                sleep(Duration::from_millis(delay)).await;
            }
        }
        deployment.restart_after_kill().await;
        let answered = asking.await.unwrap();
        assert!(answered.is_none_or(|status| status == 200), "{answered:?}");
        // Asked again it ends acknowledged, whatever came of the first time.
        let again = acknowledge(&deployment.taxpayer, irn).await.unwrap();
        let expected: &[u16] = if answered.is_some() {
            &[409]
        } else {
            &[200, 409]
        };
        assert!(expected.contains(&again), "{answered:?}, then {again}");
    }
    acknowledge(&deployment.taxpayer, irns.last().unwrap()).await;

    let events = deployment.intact_events().await;
    for irn in &irns {
        assert_eq!(
            wait_in_inbox(&deployment.taxpayer, irn).await["acknowledged"],
            json!(true),
            "{irn}"
        );
        let expected = ["supplier-invoice.received", "supplier-invoice.acknowledged"];
        assert_eq!(kinds(&events, irn), expected, "{irn}");
    }
    println!(
        "{backend:?}: {} invoices received and acknowledged once under kills",
        irns.len()
    );
}

fn plant_invoice(deployment: &Deployment, number: usize, notify: bool) -> String {
    let inbound = InboundInvoice {
        tin: TIN.into(),
        irn: Some(format!("SUP{number}-5A0D0001-20260115")),
        notify: Some(notify),
        ..InboundInvoice::default()
    };
    deployment
        .authority
        .state()
        .plant_invoice(&inbound)
        .unwrap()
}

async fn wait_for_pending_call(deployment: &Deployment, operation: Operation, irn: &str) {
    let what = format!("{operation:?} in flight for {irn}");
    eventually(&what, async || {
        (deployment.pending_calls(operation, irn) > 0).then_some(())
    })
    .await;
}

/// Returns within a millisecond when the authority has answered a call: the kill comes a few of them later.
async fn wait_for_answer(deployment: &Deployment, operation: Operation, irn: &str) {
    let begun = Instant::now();
    while !is_answered(deployment, operation, irn) {
        assert!(begun.elapsed() < PATIENCE, "no {operation:?} of {irn}");
        sleep(Duration::from_millis(1)).await;
    }
}

fn is_answered(deployment: &Deployment, operation: Operation, irn: &str) -> bool {
    let calls = deployment.calls(operation, irn);
    calls.iter().any(|call| call.status().is_some())
}

async fn wait_in_inbox(client: &Client, irn: &str) -> Value {
    eventually(&format!("{irn} in the inbox"), async || {
        let inbox = client
            .get("/v1/tax-payers/supplier-invoices?per_page=100")
            .await?;
        let lines = inbox.body["data"]["data"].as_array()?.clone();
        lines.into_iter().find(|line| line["supplier_irn"] == irn)
    })
    .await
}

async fn acknowledge(client: &Client, irn: &str) -> Option<u16> {
    let body = json!({ "supplier_irn": irn });
    Some(
        client
            .call(Method::POST, ACKNOWLEDGE, Some(&body))
            .await?
            .status,
    )
}
