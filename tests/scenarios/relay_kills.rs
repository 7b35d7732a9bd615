//! kill -9 while a report or a payment status is in the authority's hands. Nobody asks again: each must end by
//! itself, with one report and one payment, and the database must say what the authority says.

use std::time::Duration;

use sandbox::{FaultKind, Operation};
use testkit::documents::{Registration, report};
use testkit::patience::eventually;
use testkit::{Backend, each_database};

use crate::support::client::kinds;
use crate::support::deployment::Deployment;

/// Long enough that the answer never comes before the kill.
const ANSWER_DELAY: Duration = Duration::from_mins(2);
/// With the effect done and the answer late; and with no effect, the failure late.
const LATE_FAULTS: [FaultKind; 2] = [FaultKind::Latency, FaultKind::ServerError];

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
