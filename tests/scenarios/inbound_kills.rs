//! kill -9 while a notice is worked on, while an acknowledgement is in the authority's hands, and while nobody is
//! there to be told. Every invoice must come into the inbox once, and be acknowledged once.

use std::time::Duration;

use reqwest::Method;
use sandbox::{FaultKind, Inbound, Operation};
use serde_json::{Value, json};
use testkit::patience::eventually;
use testkit::{Backend, each_database};
use tokio::time::sleep;

use crate::support::client::{Client, kinds};
use crate::support::scene::Scene;

const TIN: &str = "12345678-0001";
const TOKEN: &str = "the-token-of-the-scenario";
const OWN: [(&str, &str); 2] =
    [("EINVOICE__AUTHORITY__NOTIFICATION_TOKEN", TOKEN), ("EINVOICE__AUTHORITY__PULL_EVERY_S", "1")];
/// Long enough that the answer never comes before the kill.
const LATE: Duration = Duration::from_mins(2);
/// From the authority's answer to the kill: before what follows from it is written, about then, and after it.
const DELAYS_MS: [u64; 4] = [0, 3, 8, 20];
const ACKNOWLEDGE: &str = "/v1/tax-payers/invoices/acknowledge-supplier-invoice";

#[each_database]
async fn notices_and_acknowledgements_survive_kills(backend: Backend) {
    let mut scene = Scene::with(backend, &OWN).await;
    let told = format!("{}/authority/notifications/{TOKEN}", scene.service.url());
    scene.authority.state().register_access_point(&told).unwrap();
    let mut irns = Vec::new();

    // The document is in the authority's hands when the process dies; then right after it was handed out.
    let irn = planted(&scene, irns.len(), false);
    scene.order_late(FaultKind::Latency, Operation::Download, &irn, LATE);
    scene.authority.state().notify(&irn, "TRANSMITTING");
    in_hand(&scene, Operation::Download, &irn).await;
    scene.restart_after_kill().await;
    irns.push(irn);
    for delay in DELAYS_MS {
        let irn = planted(&scene, irns.len(), true);
        called(&scene, Operation::Download, &irn).await;
        sleep(Duration::from_millis(delay)).await;
        scene.restart_after_kill().await;
        irns.push(irn);
    }
    // Nobody is there to be told.
    scene.service.kill_9();
    irns.push(planted(&scene, irns.len(), true));
    scene.service.restart().await;
    for irn in &irns {
        arrived(&scene.taxpayer, irn).await;
    }

    // The acknowledgement took effect, and its answer never came; then just came.
    scene.order_late(FaultKind::Latency, Operation::Acknowledge, &irns[0], LATE);
    for (irn, delay) in irns.iter().zip(std::iter::once(None).chain(DELAYS_MS.map(Some))) {
        let (client, named) = (scene.taxpayer.clone(), irn.clone());
        let asking = tokio::spawn(async move { acknowledge(&client, &named).await });
        match delay {
            None => in_hand(&scene, Operation::Acknowledge, irn).await,
            Some(delay) => {
                called(&scene, Operation::Acknowledge, irn).await;
                sleep(Duration::from_millis(delay)).await;
            }
        }
        scene.restart_after_kill().await;
        let answered = asking.await.unwrap();
        assert!(answered.is_none_or(|status| status == 200), "{answered:?}");
        // Asked again it ends acknowledged, whatever came of the first time.
        let again = acknowledge(&scene.taxpayer, irn).await.unwrap();
        let expected: &[u16] = if answered.is_some() { &[409] } else { &[200, 409] };
        assert!(expected.contains(&again), "{answered:?}, then {again}");
    }
    acknowledge(&scene.taxpayer, irns.last().unwrap()).await;

    let events = scene.intact_events().await;
    for irn in &irns {
        assert_eq!(arrived(&scene.taxpayer, irn).await["acknowledged"], json!(true), "{irn}");
        let expected = ["supplier-invoice.received", "supplier-invoice.acknowledged"];
        assert_eq!(kinds(&events, irn), expected, "{irn}");
    }
    println!("{backend:?}: {} invoices received and acknowledged once under kills", irns.len());
}

fn planted(scene: &Scene, number: usize, notify: bool) -> String {
    let inbound = Inbound {
        tin: TIN.into(),
        irn: Some(format!("SUP{number}-5A0D0001-20260115")),
        notify: Some(notify),
        ..Inbound::default()
    };
    scene.authority.state().plant(&inbound).unwrap()
}

async fn in_hand(scene: &Scene, operation: Operation, irn: &str) {
    let what = format!("{operation:?} in flight for {irn}");
    eventually(&what, async || (scene.in_hand(operation, irn) > 0).then_some(())).await;
}

/// Waits until the authority has answered a call.
async fn called(scene: &Scene, operation: Operation, irn: &str) {
    let what = format!("{operation:?} of {irn}");
    let answered = || scene.calls(operation, irn).iter().any(|call| call.status().is_some());
    eventually(&what, async || answered().then_some(())).await;
}

async fn arrived(client: &Client, irn: &str) -> Value {
    eventually(&format!("{irn} in the inbox"), async || {
        let inbox = client.get("/v1/tax-payers/supplier-invoices?per_page=100").await?;
        let lines = inbox.body["data"]["data"].as_array()?.clone();
        lines.into_iter().find(|line| line["supplier_irn"] == irn)
    })
    .await
}

async fn acknowledge(client: &Client, irn: &str) -> Option<u16> {
    let body = json!({ "supplier_irn": irn });
    Some(client.call(Method::POST, ACKNOWLEDGE, Some(&body)).await?.status)
}
