//! Tests of large commands, which are decided on a snapshot while others write.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use supervision::Arbiters;
use timing::clock::SystemClock;
use tokio::time::timeout;

use super::{ID, TestTaxpayers, draft};
use crate::actors::taxpayer::commands::{CreateInvoice, CreatedInvoice};
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::invoice::batch::Duplicate;
use crate::domain::invoice::{Draft, Line};
use crate::store::lanes::{self, IfLocked, LaneKind, LaneName};
use crate::store::testing::stores;

const LINES: usize = 250;

fn large(number: &str, series: &str) -> Draft {
    let names = (0..LINES).map(|at| format!("Item {series}{at}"));
    let lines = names.map(|item_name| Line {
        item_no: None,
        item_name,
        ..Line::sample()
    });
    Draft {
        lines: lines.collect(),
        ..draft(number, 100)
    }
}

async fn create(taxpayers: &TaxpayerHandle, number: &str, series: &str) -> CreatedInvoice {
    taxpayers
        .send(ID, CreateInvoice(large(number, series)))
        .await
        .unwrap()
}

#[actix_rt::test]
async fn a_large_command_that_changes_nothing_waits_for_no_writer() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        create(&app.taxpayers, "L-1", "A").await;
        let writer = app.test.store.begin().await.unwrap();
        lanes::lock(
            &writer,
            &[LaneName::new(LaneKind::Taxpayer, ID.to_string())],
            IfLocked::Await,
        )
        .await
        .unwrap();
        let again = timeout(Duration::from_mins(1), create(&app.taxpayers, "L-1", "A")).await;
        assert_eq!(
            again.expect("it reads only").duplicate,
            Some(Duplicate::Identical)
        );
        writer.rollback().await.unwrap();
        assert_eq!(
            create(&app.taxpayers, "L-2", "A").await.duplicate,
            None,
            "and what it kept is current"
        );
        assert_eq!(app.verify_log().await, 2);
        app.close().await;
    }
}

/// Two processes write for one taxpayer, as happens while its actor moves to another process. The decision of one is
/// out of date whenever the other has written.
#[actix_rt::test]
async fn a_decision_that_is_out_of_date_is_made_again() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let arbiters = Arc::new(Arbiters::start(2));
        let other = TaxpayerHandle::in_tests(&app.test.store, Arc::new(SystemClock), &arbiters);
        let created = join_all((0..24).map(async |number: usize| {
            let taxpayers = if number.is_multiple_of(2) {
                &*app.taxpayers
            } else {
                &other
            };
            // Each number comes from both processes, and each item is in several invoices.
            create(
                taxpayers,
                &format!("L-{}", number / 2),
                &format!("S{}", number / 2 % 3),
            )
            .await
        }));
        let created = created.await;
        assert_eq!(
            created.iter().filter(|one| one.duplicate.is_none()).count(),
            12
        );
        assert_eq!(app.verify_log().await, 12, "one event each, in one chain");
        for pair in created.chunks(2) {
            let [first, second] = [&pair[0].invoice, &pair[1].invoice];
            assert_eq!(
                (first.id, &first.lines),
                (second.id, &second.lines),
                "both got the same one"
            );
        }
        let items: HashSet<_> = created
            .iter()
            .flat_map(|one| &one.invoice.lines)
            .map(|line| line.item_id)
            .collect();
        assert_eq!(
            items.len(),
            3 * LINES,
            "an item of several invoices is stored once"
        );
        arbiters.stop();
        arbiters.join().await;
        app.close().await;
    }
}
