//! Tests that overload is refused early and that memory does not grow.

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::*;

/// Returns the resident memory of this process in kilobytes.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A command of 16 KiB. The reference count of `_alive` shows how many commands are in memory.
struct LargeCommand {
    bytes: Vec<u8>,
    _alive: Arc<()>,
}

/// A worker that replies with the size of the command in bytes.
struct SizeWorker;

impl Worker for SizeWorker {
    type Command = LargeCommand;
    type Reply = usize;

    fn name(_: &LargeCommand) -> &'static str {
        "LargeCommand"
    }

    async fn work(self, batch: CommandBatch<LargeCommand>) -> (Self, Vec<(CommandId, usize)>) {
        sleep(Duration::from_millis(1)).await;
        let replies = batch
            .tasks()
            .iter()
            .map(|task| (task.id, task.bytes.len()))
            .collect();
        (self, replies)
    }
}

#[actix::test]
async fn fifty_thousand_requests_at_one_key_keep_memory_flat_and_answer_429() {
    const BYTES: usize = 16 * 1024;
    let limits = AdmissionLimits {
        per_key_max: 64,
        ..AdmissionLimits::default()
    };
    let tree = Tree::new(Arc::new(SystemClock), &KINDS);
    let arbiters = Arc::new(Arbiters::start(1));
    let admission = Admission::new(limits, Arc::clone(tree.counters()));
    let settings = RegistrySettings {
        kind: ON_DEMAND,
        policy: quick(),
    };
    let start = |_: &u8, context| batch_actor::start(context, 64, || SizeWorker);
    let registry = Registry::new(&tree, &arbiters, admission.clone(), settings, start);
    let alive = Arc::new(());
    let before_kb = resident_kb();
    let mut answered = 0_u64;
    let mut busy = 0_u64;
    let mut admitted_peak = 0;
    let mut alive_peak = 0;
    let mut count = |reply| match reply {
        Ok(BYTES) => answered += 1,
        Err(SendError::Busy { retry_after }) if retry_after == limits.retry_after => busy += 1,
        other => panic!("{other:?}"),
    };
    let mut waiting = FuturesUnordered::new();
    for _ in 0..50_000 {
        waiting.push(registry.send(
            &1,
            LargeCommand {
                bytes: vec![1; BYTES],
                _alive: Arc::clone(&alive),
            },
        ));
        // Polls the requests while they arrive, like a server does. A refused request replies at its first poll.
        while let Some(reply) = waiting.next().now_or_never().flatten() {
            count(reply);
        }
        admitted_peak = admitted_peak.max(admission.in_use());
        alive_peak = alive_peak.max(Arc::strong_count(&alive) - 1);
        tokio::task::yield_now().await;
    }
    while let Some(reply) = waiting.next().await {
        count(reply);
    }
    drop(waiting);
    assert_eq!(answered + busy, 50_000);
    assert!(
        busy > 1_000 && answered >= 64,
        "{busy} refused, {answered} answered"
    );
    assert!(admitted_peak <= 64, "{admitted_peak} in flight");
    // More than 64 commands may be in memory: some have just been answered, and some are about to be refused.
    assert!(alive_peak <= 1_000, "{alive_peak} commands in memory");
    let counters = tree.counters().snapshot();
    assert_eq!(
        (counters.commands_refused_key, counters.commands_answered),
        (busy, answered)
    );
    assert_eq!(
        (counters.commands_refused_process, counters.queue_depth),
        (0, 0)
    );
    let grown_kb = resident_kb().saturating_sub(before_kb);
    assert!(
        grown_kb < 200 * 1024,
        "memory grew by {grown_kb} kB, of 800,000 kB sent"
    );
    arbiters.stop();
}

#[actix::test]
async fn the_tree_shows_the_depth_of_a_queue_and_the_last_wait() {
    let harness = Harness::with(64, AdmissionLimits::default(), quick());
    let depth = || {
        harness
            .tree
            .snapshot(1)
            .groups
            .first()
            .map_or(0, |group| group.mailbox_depth)
    };
    let slow = harness.send("a", TestCommand::Sleep(1, Duration::from_millis(200)));
    let others = async {
        sleep(Duration::from_millis(20)).await;
        let two = [2, 3].map(|number| harness.send("a", TestCommand::Write(number)));
        let seen = async {
            sleep(Duration::from_millis(50)).await;
            depth()
        };
        futures_util::future::join(futures_util::future::join_all(two), seen)
            .await
            .1
    };
    let (_, seen) = futures_util::future::join(slow, others).await;
    assert_eq!(seen, 3, "one in progress and two that wait");
    let emptied = async {
        while depth() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), emptied)
        .await
        .unwrap();
    let waited = harness.tree.snapshot(1).groups[0].nodes[0].wait_us;
    assert!(waited > 50_000, "{waited} µs behind a batch of 200 ms");
}

#[actix::test]
async fn a_full_process_answers_503_and_starts_no_actor() {
    let limits = AdmissionLimits {
        process_max: 1,
        ..AdmissionLimits::default()
    };
    let harness = Harness::with(64, limits, quick());
    let slow = harness.send("a", TestCommand::Sleep(1, Duration::from_millis(200)));
    let refused = async {
        sleep(Duration::from_millis(10)).await;
        harness.send("b", TestCommand::Write(2)).await
    };
    let (slow, refused) = futures_util::future::join(slow, refused).await;
    assert_eq!(slow, Ok(1));
    assert_eq!(
        refused,
        Err(SendError::Overloaded {
            retry_after: limits.retry_after
        })
    );
    assert_eq!(harness.registry.active_count(), 1);
    harness.assert_idle();
}

#[actix::test]
async fn a_sender_may_send_again_right_after_its_reply() {
    let harness = Harness::with(
        64,
        AdmissionLimits {
            per_key_max: 1,
            ..AdmissionLimits::default()
        },
        quick(),
    );
    for number in 0..500 {
        assert!(harness.send("t", TestCommand::Write(number)).await.is_ok());
    }
    harness.assert_idle();
}
