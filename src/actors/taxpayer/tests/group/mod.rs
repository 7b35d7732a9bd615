//! Tests that a batch that is left out of a commit group neither delays nor harms the other taxpayers of the group.

mod failures;
mod held_lanes;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{BY, TestTaxpayers, draft};
use crate::actors::taxpayer::commands::{ChangeProfile, CreateInvoice, Onboard};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::ProfileChange;
use crate::store::testing::TestStore;

/// More neighbours than committers, so that at least one of them shares a committer with `ID`.
const NEIGHBOUR_IDS: std::ops::Range<i64> = 2..10;
/// The ids of taxpayers that are not among the neighbours.
const OTHER_IDS: std::ops::RangeFrom<i64> = 100..;

async fn with_neighbours(test: TestStore) -> TestTaxpayers {
    let app = TestTaxpayers::with_taxpayer(test).await;
    for neighbour in NEIGHBOUR_IDS.map(TaxpayerId) {
        onboard(&app, neighbour).await;
    }
    app
}

async fn onboard(app: &TestTaxpayers, id: TaxpayerId) {
    app.taxpayers.send(id, Onboard::sample(id)).await.unwrap();
    app.taxpayers
        .send(
            id,
            ChangeProfile {
                change: new_city("Lagos"),
                by: BY,
            },
        )
        .await
        .unwrap();
}

fn new_city(city: &str) -> ProfileChange {
    let place = Some("Lagos".to_owned());
    let city = Some(city.to_owned());
    ProfileChange {
        city,
        state: place.clone(),
        country: place,
        ..ProfileChange::default()
    }
}

/// Has each neighbour create invoices until `is_over`. Asserts that no create is refused. Returns the longest time that
/// a create took.
async fn slowest_create(app: &TestTaxpayers, series: &str, is_over: &AtomicBool) -> Duration {
    let creates = NEIGHBOUR_IDS.map(TaxpayerId).map(async |neighbour| {
        let mut slowest = Duration::ZERO;
        for number in 0.. {
            if is_over.load(Ordering::SeqCst) {
                break;
            }
            let begun = Instant::now();
            let created = app
                .taxpayers
                .send(
                    neighbour,
                    CreateInvoice(draft(&format!("{series}N{number}"), 10)),
                )
                .await;
            assert!(
                created
                    .as_ref()
                    .is_ok_and(|created| created.duplicate.is_none()),
                "{series}: {created:?}"
            );
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    });
    join_all(creates).await.into_iter().max().unwrap()
}
