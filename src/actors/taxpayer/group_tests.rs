//! Tests of what a commit group leaves out: the other taxpayers of the group do not wait for it and lose nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::command::CommandReply;
use super::handle::TaxpayerError;
use super::tests::{BY, ID, TestTaxpayers, draft, keyed, onboarding, submission, webhook};
use super::write_set::run_lane;
use crate::domain::access::claim::StoredResponse;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::ProfileChange;
use crate::store::lanes::{self, LaneKind};
use crate::store::testing::{TestStore, stores};

/// More neighbours than committers, so that at least one of them shares a committer with `ID`.
const NEIGHBOURS: std::ops::Range<i64> = 2..10;
/// Well below the lock timeout of 3 s, which a group would take if it waited for a lane.
const PROMPT: Duration = Duration::from_secs(1);

async fn with_neighbours(test: TestStore) -> TestTaxpayers {
    let app = TestTaxpayers::with_taxpayer(test).await;
    for neighbour in NEIGHBOURS.map(TaxpayerId) {
        app.taxpayers.onboard(neighbour, onboarding(&format!("n{neighbour}"))).await.unwrap();
        let place = Some("Lagos".to_owned());
        let change = ProfileChange {
            city: place.clone(),
            state: place.clone(),
            country: place,
            ..ProfileChange::default()
        };
        app.taxpayers.change_profile(neighbour, change, BY).await.unwrap();
    }
    app
}

/// Has each neighbour create invoices until `is_over`. Returns the longest time that a create took.
async fn slowest_create(app: &TestTaxpayers, is_over: &AtomicBool) -> Duration {
    let creates = NEIGHBOURS.map(TaxpayerId).map(async |neighbour| {
        let mut slowest = Duration::ZERO;
        for number in 0.. {
            if is_over.load(Ordering::SeqCst) {
                break;
            }
            let begun = Instant::now();
            app.taxpayers.create(neighbour, draft(&format!("N{number}"), 10)).await.unwrap();
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    });
    join_all(creates).await.into_iter().max().unwrap()
}

/// Holds a lane in a transaction while `ID` executes a command that needs the lane. Asserts that the command fails and
/// that no neighbour waits.
async fn assert_delays_only_its_taxpayer(
    app: &TestTaxpayers,
    lane: (LaneKind, &str),
    command: impl AsyncFn() -> Result<(), TaxpayerError>,
) {
    let holder = app.test.store.begin().await.unwrap();
    lanes::lock_unversioned(&holder, lane.0, lane.1).await.unwrap();
    let is_over = AtomicBool::new(false);
    let (failed, slowest) = tokio::join!(
        async {
            let failed = command().await.unwrap_err();
            is_over.store(true, Ordering::SeqCst);
            failed
        },
        slowest_create(app, &is_over)
    );
    assert!(matches!(&failed, TaxpayerError::Store(error) if error.is_lock_conflict()), "{failed}");
    assert!(slowest < PROMPT, "{lane:?}: a neighbour's create took {slowest:?}");
    holder.rollback().await.unwrap();
    command().await.unwrap();
}

#[actix_rt::test]
async fn a_held_lane_delays_only_its_own_taxpayer() {
    // PostgreSQL only: SQLite has one writer, so nobody else can hold a lane.
    for test in stores().await.into_iter().skip(1) {
        let app = with_neighbours(test).await;
        let create = async || app.taxpayers.create(ID, draft("A", 10)).await.map(drop);
        assert_delays_only_its_taxpayer(&app, (LaneKind::Taxpayer, "1"), create).await;

        app.taxpayers.set_webhook(ID, webhook()).await.unwrap();
        let create = async || app.taxpayers.create(ID, draft("B", 10)).await.map(drop);
        assert_delays_only_its_taxpayer(&app, (LaneKind::Endpoint, "1"), create).await;

        let irn = "RELAYED-00000061-20260131";
        let run = app.taxpayers.open_run(ID, submission(irn, "a")).await.unwrap();
        let reopen = async || app.taxpayers.open_run(ID, submission(irn, "b")).await.map(drop);
        assert_delays_only_its_taxpayer(&app, (LaneKind::Run, &run_lane(ID, run.id)), reopen).await;
        app.close().await;
    }
}

#[actix_rt::test]
async fn a_command_that_panics_costs_the_others_of_its_group_nothing() {
    let panics = |_: &CommandReply| -> Option<StoredResponse> { panic!("the answer cannot be rendered") };
    for test in stores().await {
        let app = with_neighbours(test).await;
        let mut poison = keyed("poison", b"1");
        poison.render = Some(Arc::new(panics));
        let poisoned = app.taxpayers.with_idempotency(Some(poison));
        let (failed, created) = tokio::join!(
            poisoned.create(ID, draft("POISON", 10)),
            join_all(NEIGHBOURS.map(|id| app.taxpayers.create(TaxpayerId(id), draft("A", 10))))
        );
        assert!(matches!(failed, Err(TaxpayerError::Quarantined { .. })), "{failed:?}");
        assert!(created.iter().all(|one| one.as_ref().is_ok_and(|created| created.duplicate.is_none())));
        let after = app.taxpayers.create(ID, draft("POISON", 10)).await.unwrap();
        assert_eq!(after.duplicate, None, "the command that panicked has stored nothing");
        assert_eq!(app.verify_log().await, 1);
        app.close().await;
    }
}
