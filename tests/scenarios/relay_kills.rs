//! kill -9 while a report or a payment status is in the authority's hands. Nobody asks again: each must end by
//! itself, with one report and one payment, and the books must say what the authority says.

use std::time::Duration;

use sandbox::{FaultKind, Operation};
use testkit::documents::{Registration, report};
use testkit::patience::eventually;
use testkit::{Backend, each_database};

use crate::support::client::kinds;
use crate::support::scene::Scene;

/// Long enough that the answer never comes before the kill.
const LATE: Duration = Duration::from_mins(2);
/// With the effect done and the answer late; and with no effect, the failure late.
const COMMITS_OR_NOT: [FaultKind; 2] = [FaultKind::Latency, FaultKind::ServerError];

#[each_database]
async fn reports_and_payments_killed_in_flight_end_by_themselves(backend: Backend) {
    let mut scene = Scene::open(backend).await;
    let mut signed = Vec::new();
    for kind in COMMITS_OR_NOT {
        let created = scene.submit(&format!("RELAY{kind:?}")).await;
        scene.taxpayer.succeeded(&created.irn, "submit").await;
        scene.order_late(kind, Operation::Report, &created.irn, LATE);
        scene.order_late(kind, Operation::Update, &created.irn, LATE);
        scene.taxpayer.start_run("report", &report(&Registration::demo(), &created.irn)).await;
        assert_eq!(scene.taxpayer.relay_payment(&created.irn, "PAID").await, 202);
        for operation in [Operation::Report, Operation::Update] {
            let what = format!("{operation:?} in flight for {}", created.irn);
            eventually(&what, async || (scene.in_hand(operation, &created.irn) > 0).then_some(())).await;
        }
        signed.push(created);
    }
    scene.restart_after_kill().await;
    for created in &signed {
        scene.taxpayer.succeeded(&created.irn, "report").await;
        scene.taxpayer.succeeded(&created.irn, "update-payment-status").await;
    }
    let events = scene.intact_events().await;
    for created in &signed {
        let irn = &created.irn;
        let sheet = scene.authority.state().invoice(irn).unwrap();
        assert_eq!((sheet.report_count, sheet.payment_status), (1, Some("PAID")), "{irn}");
        assert_eq!(scene.taxpayer.status(created).await, "reported");
        let told = kinds(&events, irn);
        for (kind, times) in [("payment.status-updated", 1), ("invoice.reported", 1), ("invoice.failed", 0)] {
            assert_eq!(told.iter().filter(|told| **told == kind).count(), times, "{kind} of {irn}: {told:?}");
        }
        // Asked again, what has ended is told, and nothing is called.
        assert_eq!(scene.taxpayer.start_run("report", &report(&Registration::demo(), irn)).await, 200);
        let again = scene.taxpayer.relay_payment(irn, "PAID").await;
        assert!([200, 202].contains(&again), "{again}");
        scene.taxpayer.succeeded(irn, "update-payment-status").await;
        let after = scene.authority.state().invoice(irn).unwrap();
        assert_eq!(
            (after.report_attempts, after.update_attempts),
            (sheet.report_attempts, sheet.update_attempts)
        );
    }
}
