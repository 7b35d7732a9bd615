//! Tests that a panic affects only the batch in which it happens and no command queued behind that batch.

use super::*;

#[actix::test]
async fn a_panic_with_three_messages_queued_behind_it_answers_all_three() {
    let harness = Harness::with(1, AdmissionLimits::default(), quick());
    let commands = [
        TestCommand::PanicOnce(9),
        TestCommand::Write(1),
        TestCommand::Write(2),
        TestCommand::Write(3),
    ];
    let replies = harness.send_all("t", &commands).await;
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    let counters = harness.tree.counters();
    assert_eq!(
        (
            counters.panics.get(),
            counters.restarts.get(),
            counters.actors_started.get()
        ),
        (1, 1, 1)
    );
    harness.assert_idle();
}

#[actix::test]
async fn order_is_kept_across_a_panic() {
    let harness = Harness::open();
    let mut commands: Vec<_> = (1..=20).map(TestCommand::Write).collect();
    commands.insert(0, TestCommand::PanicOnce(100));
    let replies = harness.send_all("t", &commands).await;
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    let expected: Vec<_> = [0, 100].into_iter().chain(1..=20).collect();
    assert_eq!(harness.ledger_entries(), expected);
}

#[actix::test]
async fn a_panic_drops_the_worker() {
    let harness = Harness::open();
    for written in 1..=3 {
        assert_eq!(
            harness.send("t", TestCommand::Write(written)).await,
            Ok(written)
        );
    }
    assert_eq!(harness.send("t", TestCommand::PanicOnce(4)).await, Ok(1));
    assert_eq!(harness.send("t", TestCommand::Write(5)).await, Ok(2));
}

#[actix::test]
async fn a_batch_of_ten_with_one_poison_command_answers_nine_and_quarantines_one() {
    let harness = Harness::open();
    let mut commands: Vec<_> = (1..=9).map(TestCommand::Write).collect();
    commands.insert(4, TestCommand::Poison);
    let replies = harness.send_all("t", &commands).await;
    assert_eq!(replies.iter().filter(|reply| reply.is_ok()).count(), 9);
    let Err(SendError::Quarantined { reference }) = replies[4] else {
        panic!("{:?}", replies[4])
    };
    assert_eq!(harness.ledger_entries(), (0..=9).collect::<Vec<_>>());

    let records = harness.tree.quarantine().records();
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].reference, records[0].command.as_str()),
        (reference, "Poison")
    );
    assert_eq!(records[0].actor, "t");
    assert!(
        records[0].panic.starts_with("poison at ") && records[0].panic.contains("mod.rs:"),
        "{}",
        records[0].panic
    );
    assert_eq!(harness.tree.counters().commands_quarantined.get(), 1);
    assert_eq!(harness.tree.readiness(), Ok(()));
    harness.assert_idle();
}

#[actix::test]
async fn a_command_that_panics_while_committing_is_interrupted_and_never_repeated() {
    let harness = Harness::with(1, AdmissionLimits::default(), quick());
    let replies = harness
        .send_all("t", &[TestCommand::PanicInCommit(7), TestCommand::Write(8)])
        .await;
    assert!(
        matches!(replies[0], Err(SendError::Interrupted { .. })),
        "{replies:?}"
    );
    assert_eq!(replies[1], Ok(1));
    assert_eq!(harness.ledger_entries(), [0, 7, 8]);
    harness.assert_idle();
}

#[actix::test]
async fn a_command_without_a_reply_is_interrupted() {
    let harness = Harness::open();
    assert!(matches!(
        harness.send("t", TestCommand::NoReply).await,
        Err(SendError::Interrupted { .. })
    ));
    harness.assert_idle();
}

#[actix::test]
async fn commands_that_arrive_during_a_batch_make_one_batch() {
    let harness = Harness::open();
    let slow = harness.send("t", TestCommand::Sleep(0, Duration::from_millis(100)));
    let poison = async {
        sleep(Duration::from_millis(10)).await;
        let commands = [
            TestCommand::Write(1),
            TestCommand::Write(2),
            TestCommand::PanicOnce(3),
        ];
        futures_util::future::join_all(commands.map(|command| harness.send("t", command))).await
    };
    let (_, replies) = futures_util::future::join(slow, poison).await;
    assert!(replies.iter().all(Result::is_ok));
    // Commands 1 and 2 had already run when command 3 panicked in the same batch, so each command ran again, alone.
    assert_eq!(harness.ledger_entries(), [0, 1, 2, 1, 2, 3]);
}

#[actix::test]
async fn one_key_does_not_delay_another() {
    let harness = Harness::open();
    let slow = harness.send("slow", TestCommand::Sleep(1, Duration::from_millis(500)));
    let fast = async {
        sleep(Duration::from_millis(20)).await;
        for number in 2..=50 {
            harness
                .send("fast", TestCommand::Write(number))
                .await
                .unwrap();
        }
    };
    let (slow, ()) = futures_util::future::join(slow, fast).await;
    assert_eq!(slow, Ok(1));
    assert_eq!(
        harness.ledger_entries(),
        (2..=50).chain([1]).collect::<Vec<_>>(),
        "the slow one ends last"
    );
}
