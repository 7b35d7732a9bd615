//! Tests of the lanes of runs and endpoints, which commits of their taxpayers lease and release.

use std::sync::Arc;
use std::time::Duration;

use timing::clock;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{ID, TestTaxpayers, draft, submission, webhook};
use crate::actors::notifiers::Notifiers;
use crate::actors::taxpayer::commands::{ApplyOperatorAction, CreateInvoice, OpenRun, RecordSteps};
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::pipeline::{OperatorAction, Run, RunState, Step};
use crate::store::lanes::fair_queue::BlockedStep;
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::lanes::{LaneKind, Lease};
use crate::store::testing::{claim_due, stores};

const LEASE: Duration = Duration::from_secs(30);

/// Returns a command that records no step. The lane's holder sends it to learn the run's state.
fn no_progress(lease: &Lease, run: &Run) -> RecordSteps {
    RecordSteps {
        lease: lease.clone(),
        run: run.id,
        irn: run.irn.clone(),
        digest: run.digest.clone(),
        steps: Vec::new(),
        next_attempt: clock::new_id(),
    }
}

#[actix_rt::test]
async fn a_run_is_leased_by_the_commit_that_opens_it_if_a_slot_is_free() {
    for test in stores().await {
        let notifiers = Notifiers::default();
        let slots = Arc::new(Semaphore::new(4));
        let blocked = Arc::default();
        let mut arrivals = notifiers
            .direct_runs
            .connect_dispatcher("me", LEASE, &slots, &blocked);
        let app = TestTaxpayers::with_wakers(test, notifiers).await;
        let irns = ["A", "B", "C", "D", "E"].map(|name| format!("{name}-00000061-20260131"));
        for irn in &irns {
            blocked.lock().unwrap().clear();
            if irn.starts_with('B') {
                blocked.lock().unwrap().push(BlockedStep {
                    step: "irn-check",
                    taxpayers: None,
                });
            }
            app.taxpayers
                .send(ID, OpenRun(submission(irn, "a")))
                .await
                .unwrap();
        }
        let mut started = Vec::new();
        for _ in 0..3 {
            let arrival = timeout(LEASE, arrivals.recv())
                .await
                .expect("the lane arrives")
                .unwrap();
            assert_eq!((arrival.lease.epoch, arrival.taxpayer), (1, Some(ID.0)));
            started.push(arrival);
        }
        assert_eq!(
            slots.available_permits(),
            1,
            "one slot is left for lanes that are claimed"
        );
        // B was blocked, and E found no free slot.
        let others = claim_due(&app.test.store, LaneKind::Run, "you", LEASE, 9)
            .await
            .unwrap();
        assert_eq!((others.len(), arrivals.try_recv().is_err()), (2, true));
        assert!(
            others
                .iter()
                .all(|lease| started.iter().all(|arrival| arrival.lease.key != lease.key))
        );
        app.close().await;
    }
}

#[actix_rt::test]
async fn the_lane_of_a_run_that_is_reopened_is_not_released() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let run = app
            .taxpayers
            .send(ID, OpenRun(submission("A-00000061-20260131", "a")))
            .await
            .unwrap();
        let operate = async |to| {
            let by = OperatorRequest {
                operator_id: 1,
                reason: None,
            };
            let request = ApplyOperatorAction {
                run: run.id,
                irn: run.irn.clone(),
                to,
                by,
            };
            app.taxpayers.send(ID, request).await.unwrap()
        };
        let claim = async || {
            claim_due(&app.test.store, LaneKind::Run, "me", LEASE, 9)
                .await
                .unwrap()
        };
        let lease = claim().await.remove(0);
        // The lane's holder reads that the run is paused, and an operator resumes the run before the holder sends its
        // record.
        let paused = operate(OperatorAction::Pause).await;
        operate(OperatorAction::Resume).await;
        let resumed = app
            .taxpayers
            .send(ID, no_progress(&lease, &paused))
            .await
            .unwrap();
        assert_eq!(
            resumed.callable_step(),
            Some(Step::IrnCheck),
            "the holder goes on"
        );
        let paused = operate(OperatorAction::Pause).await;
        let recorded = app
            .taxpayers
            .send(ID, no_progress(&lease, &paused))
            .await
            .unwrap();
        assert_eq!(
            (recorded.state(), claim().await),
            (RunState::Paused, vec![])
        );
        operate(OperatorAction::Resume).await;
        let lease = claim()
            .await
            .pop()
            .expect("the holder has released the lane");
        let cancelled = operate(OperatorAction::Cancel).await;
        app.taxpayers
            .send(ID, no_progress(&lease, &cancelled))
            .await
            .unwrap();
        app.taxpayers
            .send(ID, OpenRun(submission(run.irn.as_str(), "a")))
            .await
            .unwrap();
        assert_eq!(
            claim().await.len(),
            1,
            "the lane is released although nothing else was written"
        );
        app.close().await;
    }
}

#[actix_rt::test]
async fn new_work_for_a_free_endpoint_takes_its_lane() {
    for test in stores().await {
        let notifiers = Notifiers::default();
        let slots = Arc::new(Semaphore::new(4));
        let mut arrivals =
            notifiers
                .direct
                .connect_dispatcher("me", LEASE, &slots, &Arc::default());
        let app = TestTaxpayers::with_wakers(test, notifiers).await;
        app.taxpayers.send(ID, webhook()).await.unwrap();
        let mut arrived = async || {
            timeout(LEASE, arrivals.recv())
                .await
                .expect("the lane arrives")
                .unwrap()
        };
        let arrival = arrived().await;
        let lease = arrival.lease;
        let slot = arrival.slot;
        assert_eq!(
            (lease.kind, lease.key.as_str(), slots.available_permits()),
            (LaneKind::Endpoint, "1", 3)
        );
        app.taxpayers
            .send(ID, CreateInvoice(draft("A", 10)))
            .await
            .unwrap();
        assert_eq!(
            slots.available_permits(),
            3,
            "the lane is held: its worker picks up the new work"
        );
        let tx = app.test.store.begin().await.unwrap();
        leases::release(&tx, &[LaneRelease::new(&lease, None)])
            .await
            .unwrap();
        tx.commit().await.unwrap();
        drop(slot);
        app.taxpayers
            .send(ID, CreateInvoice(draft("B", 10)))
            .await
            .unwrap();
        let again = arrived().await.lease;
        assert_eq!(again.epoch, lease.epoch + 1);
        let others = claim_due(&app.test.store, LaneKind::Endpoint, "you", LEASE, 9)
            .await
            .unwrap();
        assert_eq!(others, []);
        app.close().await;
    }
}
