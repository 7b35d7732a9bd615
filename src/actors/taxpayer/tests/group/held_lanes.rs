//! Tests of lanes that another transaction holds for long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use database::StoreError;
use futures_util::future::join_all;

use super::{OTHER_IDS, new_city, onboard, slowest_create, with_neighbours};
use crate::actors::taxpayer::commands::{ChangeProfile, CreateInvoice, OpenRun};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::actors::taxpayer::tests::{BY, ID, TestTaxpayers, draft, submission, webhook};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::run_lane_key;
use crate::store::lanes::{self, IfLocked, LaneKind, LaneName};
use crate::store::testing::stores;

/// Well below the lock timeout of 3 s, which a group would take if it waited for a lane.
const PROMPT: Duration = Duration::from_secs(1);
/// The number of held lanes: more than there are connections for transactions.
const HELD: usize = 20;

/// Holds a lane in a transaction while `ID` executes a command that needs the lane. Asserts that the command fails and
/// that no neighbour waits.
async fn assert_delays_only_its_taxpayer(
    app: &TestTaxpayers,
    lane: (LaneKind, &str),
    command: impl AsyncFn() -> Result<(), TaxpayerError>,
) {
    let holder = app.test.store.begin().await.unwrap();
    lanes::lock(&holder, &[LaneName::new(lane.0, lane.1)], IfLocked::Await)
        .await
        .unwrap();
    let is_over = AtomicBool::new(false);
    let (failed, slowest) = tokio::join!(
        async {
            let failed = command().await.unwrap_err();
            is_over.store(true, Ordering::SeqCst);
            failed
        },
        slowest_create(app, lane.0.as_str(), &is_over)
    );
    assert!(
        matches!(failed, TaxpayerError::Store(StoreError::Locked)),
        "{failed}"
    );
    assert!(
        slowest < PROMPT,
        "{lane:?}: a neighbour's create took {slowest:?}"
    );
    holder.rollback().await.unwrap();
    command().await.unwrap();
}

#[actix_rt::test]
async fn a_held_lane_delays_only_its_own_taxpayer() {
    // PostgreSQL only: SQLite has one writer, so nobody else can hold a lane.
    for test in stores().await.into_iter().skip(1) {
        let app = with_neighbours(test).await;
        let create = async || {
            app.taxpayers
                .send(ID, CreateInvoice(draft("A", 10)))
                .await
                .map(drop)
        };
        assert_delays_only_its_taxpayer(&app, (LaneKind::Taxpayer, "1"), create).await;

        app.taxpayers.send(ID, webhook()).await.unwrap();
        let create = async || {
            app.taxpayers
                .send(ID, CreateInvoice(draft("B", 10)))
                .await
                .map(drop)
        };
        assert_delays_only_its_taxpayer(&app, (LaneKind::Endpoint, "1"), create).await;

        let irn = "RELAYED-00000061-20260131";
        let run = app
            .taxpayers
            .send(ID, OpenRun(submission(irn, "a")))
            .await
            .unwrap();
        let reopen = async || {
            app.taxpayers
                .send(ID, OpenRun(submission(irn, "b")))
                .await
                .map(drop)
        };
        assert_delays_only_its_taxpayer(&app, (LaneKind::Run, &run_lane_key(ID, run.id)), reopen)
            .await;
        app.close().await;
    }
}

#[actix_rt::test]
async fn many_held_lanes_delay_nobody_else() {
    // PostgreSQL only: SQLite has one writer, so nobody else can hold a lane.
    for test in stores().await.into_iter().skip(1) {
        let app = with_neighbours(test).await;
        let held: Vec<_> = OTHER_IDS.take(HELD).map(TaxpayerId).collect();
        for id in &held {
            onboard(&app, *id).await;
        }
        let holder = app.test.store.begin().await.unwrap();
        for id in &held {
            lanes::lock(
                &holder,
                &[LaneName::new(LaneKind::Taxpayer, id.to_string())],
                IfLocked::Await,
            )
            .await
            .unwrap();
        }
        let is_over = AtomicBool::new(false);
        // Half of the commands may share a transaction. The other half set unique values, so they may not.
        let commands = held.iter().map(async |id| {
            if id.0 % 2 == 0 {
                app.taxpayers
                    .send(*id, CreateInvoice(draft("A", 10)))
                    .await
                    .map(drop)
            } else {
                app.taxpayers
                    .send(
                        *id,
                        ChangeProfile {
                            change: new_city("Abuja"),
                            by: BY,
                        },
                    )
                    .await
                    .map(drop)
            }
        });
        let (failed, slowest) = tokio::join!(
            async {
                let failed = join_all(commands).await;
                is_over.store(true, Ordering::SeqCst);
                failed
            },
            slowest_create(&app, "H", &is_over)
        );
        let is_locked = |result: &Result<(), _>| {
            matches!(result, Err(TaxpayerError::Store(StoreError::Locked)))
        };
        assert!(failed.iter().all(is_locked), "{failed:?}");
        assert!(slowest < PROMPT, "a neighbour's create took {slowest:?}");
        holder.rollback().await.unwrap();
        let created = held
            .iter()
            .map(|id| app.taxpayers.send(*id, CreateInvoice(draft("B", 10))));
        assert!(
            join_all(created).await.iter().all(Result::is_ok),
            "each goes on"
        );
        app.close().await;
    }
}
