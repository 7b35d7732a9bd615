//! kill -9 while a report, a payment status or a receipt is in the authority's hands. If nobody asks again, reports and
//! payments must end by themselves, with one report and one payment, and the database must say what the authority says.
//! A caller that asks again with the same `Idempotency-Key` must get an answer, and from then on the same one.

use std::time::Duration;

use sandbox::{FaultKind, Operation};
use serde_json::json;
use testkit::answer::Answer;
use testkit::documents::{Registration, report};
use testkit::patience::eventually;
use testkit::{Backend, each_database};

use crate::support::client::{Client, kinds};
use crate::support::deployment::Deployment;

/// Long enough that the answer never comes before the kill.
const ANSWER_DELAY: Duration = Duration::from_mins(2);
/// With the effect done and the answer late; and with no effect, the failure late.
const LATE_FAULTS: [FaultKind; 2] = [FaultKind::Latency, FaultKind::ServerError];

/// A call with an `Idempotency-Key` that is relayed to the authority.
#[derive(Clone)]
struct KeyedRelay {
    irn: String,
    /// The authority's call that is in flight at the kill: the only one of a payment, one of the two of a receipt.
    operation: Operation,
    fault: FaultKind,
}

impl KeyedRelay {
    async fn send(&self, client: &Client) -> Option<Answer> {
        let irn = &self.irn;
        let payment = json!({ "payment_status": "PAID" });
        let (path, body) = match self.operation {
            Operation::Update => (format!("{irn}/update-payment-status"), Some(&payment)),
            _ => (format!("transmit/{irn}/confirm-receipt"), None),
        };
        let path = format!("/v1/app/invoices/{path}");
        client.patch_once(irn, &path, body).await
    }

    /// The numbers of receipts and of payments that reach the authority. A payment is sent a second time only if the
    /// first one had no effect; a receipt in any case, because it counts once at the authority.
    fn expected_attempts(&self) -> (u32, u32) {
        match (self.operation, self.fault) {
            (Operation::Update, FaultKind::Latency) => (0, 1),
            (Operation::Update, _) => (0, 2),
            _ => (2, 0),
        }
    }
}

#[each_database]
async fn reports_and_payments_killed_in_flight_end_by_themselves(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let mut signed = Vec::new();
    for kind in LATE_FAULTS {
        let created = deployment.submit(&format!("RELAY{kind:?}")).await;
        deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, "submit")
            .await;
        deployment.order_late(kind, Operation::Report, &created.irn, ANSWER_DELAY);
        deployment.order_late(kind, Operation::Update, &created.irn, ANSWER_DELAY);
        deployment
            .taxpayer
            .start_run("report", &report(&Registration::demo(), &created.irn))
            .await;
        assert_eq!(
            deployment
                .taxpayer
                .relay_payment(&created.irn, "PAID")
                .await,
            202
        );
        for operation in [Operation::Report, Operation::Update] {
            let what = format!("{operation:?} in flight for {}", created.irn);
            eventually(&what, async || {
                (deployment.pending_calls(operation, &created.irn) > 0).then_some(())
            })
            .await;
        }
        signed.push(created);
    }
    deployment.restart_after_kill().await;
    for created in &signed {
        deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, "report")
            .await;
        deployment
            .taxpayer
            .wait_until_succeeded(&created.irn, "update-payment-status")
            .await;
    }
    let events = deployment.intact_events().await;
    for created in &signed {
        let irn = &created.irn;
        let sheet = deployment.authority.state().invoice(irn).unwrap();
        assert_eq!(
            (sheet.report_count, sheet.payment_status),
            (1, Some("PAID")),
            "{irn}"
        );
        assert_eq!(deployment.taxpayer.status(created).await, "reported");
        let sent = kinds(&events, irn);
        for (kind, times) in [
            ("payment.status-updated", 1),
            ("invoice.reported", 1),
            ("invoice.failed", 0),
        ] {
            assert_eq!(
                sent.iter().filter(|sent| **sent == kind).count(),
                times,
                "{kind} of {irn}: {sent:?}"
            );
        }
        // Asked again, the end of each run is the answer, and nothing is called.
        assert_eq!(
            deployment
                .taxpayer
                .start_run("report", &report(&Registration::demo(), irn))
                .await,
            200
        );
        let again = deployment.taxpayer.relay_payment(irn, "PAID").await;
        assert!([200, 202].contains(&again), "{again}");
        deployment
            .taxpayer
            .wait_until_succeeded(irn, "update-payment-status")
            .await;
        let after = deployment.authority.state().invoice(irn).unwrap();
        assert_eq!(
            (after.report_attempts, after.update_attempts),
            (sheet.report_attempts, sheet.update_attempts)
        );
    }
}

/// Starts a call whose answer comes too late, and returns when the authority has it.
async fn start_late_relay(
    deployment: &Deployment,
    fault: FaultKind,
    operation: Operation,
) -> KeyedRelay {
    let taxpayer = &deployment.taxpayer;
    let created = deployment
        .submit(&format!("KEY{fault:?}{operation:?}"))
        .await;
    taxpayer.wait_until_succeeded(&created.irn, "submit").await;
    deployment.transmit(&created).await;
    taxpayer
        .wait_until_succeeded(&created.irn, "transmit")
        .await;
    deployment.order_late(fault, operation, &created.irn, ANSWER_DELAY);
    let relay = KeyedRelay {
        irn: created.irn,
        operation,
        fault,
    };
    let sent = relay.clone();
    let client = taxpayer.clone();
    tokio::spawn(async move { sent.send(&client).await });
    let awaited = format!("{operation:?} in flight for {}", relay.irn);
    eventually(&awaited, async || {
        (deployment.pending_calls(operation, &relay.irn) > 0).then_some(())
    })
    .await;
    relay
}

#[each_database]
async fn relays_killed_in_flight_get_one_answer_for_their_key(backend: Backend) {
    let mut deployment = Deployment::open(backend).await;
    let mut relays = Vec::new();
    for fault in LATE_FAULTS {
        for operation in [
            Operation::Acknowledge,
            Operation::Confirm,
            Operation::Update,
        ] {
            relays.push(start_late_relay(&deployment, fault, operation).await);
        }
    }
    deployment.restart_after_kill().await;
    for relay in &relays {
        let irn = &relay.irn;
        // The key is not in progress any more: nothing but the run of a payment is left of the first call.
        let first = eventually(&format!("an answer about {irn}"), async || {
            let answer = relay.send(&deployment.taxpayer).await?;
            assert_ne!(answer.status, 409, "{irn}: {answer:?}");
            (answer.status == 200).then_some(answer)
        })
        .await;
        assert!(!first.headers.contains_key("idempotent-replayed"), "{irn}");
        let again = relay.send(&deployment.taxpayer).await.unwrap();
        assert_eq!(again.headers["idempotent-replayed"], "true", "{irn}");
        assert_eq!((again.status, &again.body), (200, &first.body), "{irn}");
        let sheet = deployment.authority.state().invoice(irn).unwrap();
        assert_eq!(
            (sheet.acknowledge_attempts, sheet.update_attempts),
            relay.expected_attempts(),
            "{irn}"
        );
    }
    let events = deployment.intact_events().await;
    for relay in &relays {
        let event = match relay.operation {
            Operation::Update => "payment.status-updated",
            _ => "invoice.acknowledged",
        };
        let sent = kinds(&events, &relay.irn);
        let count = sent.iter().filter(|sent| **sent == event).count();
        assert_eq!(count, 1, "{event} of {}: {sent:?}", relay.irn);
    }
}
