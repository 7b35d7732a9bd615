//! Tests that at shutdown every sender gets the outcome of its command.

use super::*;

#[actix::test]
async fn stopping_the_arbiters_interrupts_started_commands_and_returns_waiting_ones() {
    let harness = Harness::with(1, AdmissionLimits::default(), quick());
    let begun = harness.send("t", TestCommand::Sleep(1, Duration::from_secs(30)));
    let waits = async {
        sleep(Duration::from_millis(20)).await;
        harness.send("t", TestCommand::Write(2)).await
    };
    let stop = async {
        sleep(Duration::from_millis(150)).await;
        harness.arbiters.stop();
        harness.arbiters.join().await
    };
    let (begun, waits, clean) = futures_util::future::join3(begun, waits, stop).await;
    assert!(
        matches!(begun, Err(SendError::Interrupted { .. })),
        "{begun:?}"
    );
    assert_eq!(waits, Err(SendError::Stopped));
    assert!(clean);
    assert_eq!(harness.ledger_entries(), [0; 0]);
    assert_eq!(
        harness.send("other", TestCommand::Write(3)).await,
        Err(SendError::Stopped)
    );
    harness.assert_idle();
}

#[actix::test]
async fn a_closed_registry_finishes_its_commands_and_takes_no_new_ones() {
    let harness = Harness::open();
    let work = harness.send("t", TestCommand::Sleep(1, Duration::from_millis(150)));
    let close = async {
        sleep(Duration::from_millis(20)).await;
        harness.registry.close();
        let refused = harness.send("t", TestCommand::Write(2)).await;
        let undrained = harness.registry.drain(Duration::ZERO).await;
        (
            refused,
            undrained,
            harness.registry.drain(Duration::from_secs(5)).await,
        )
    };
    let (work, close) = futures_util::future::join(work, close).await;
    assert_eq!(work, Ok(1));
    assert_eq!(close, (Err(SendError::Stopped), false, true));
    assert_eq!(harness.ledger_entries(), [1]);
}

#[actix::test]
async fn a_sender_that_goes_away_costs_no_permit() {
    let harness = Harness::open();
    let gone = tokio::time::timeout(
        Duration::from_millis(10),
        harness.send("t", TestCommand::Sleep(1, Duration::from_millis(40))),
    );
    assert!(gone.await.is_err());
    eventually("the work is done all the same", || {
        harness.ledger_entries() == [1]
    })
    .await;
    eventually("the permit is back", || harness.admission.in_use() == 0).await;
}
