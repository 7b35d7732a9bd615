//! Tests of what an operator sees of running actors.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::node_state::NodeState;
use super::super::periodic::{Period, PeriodicActor};
use super::super::watchdog::{self, WatchdogLimits, WatchdogScan};
use super::super::{ActorFigures, Measure, Ranking, TreeSnapshot, Window, WindowFigures};
use super::*;

const LIMITS: WatchdogLimits = WatchdogLimits {
    busy_after: Duration::from_secs(1),
    stuck_after: Duration::from_secs(10),
};

fn scan(tree: &Tree, now: Instant) -> WatchdogScan {
    watchdog::scan(tree, |_| LIMITS, now)
}

fn states(tree: &Tree) -> Vec<NodeState> {
    tree.snapshot(10)
        .groups
        .iter()
        .flat_map(|group| group.nodes.iter().map(|node| node.state))
        .collect()
}

#[actix::test]
async fn a_stuck_actor_is_busy_first_and_running_again_after_its_batch() {
    let harness = Harness::open();
    let work = harness.send("t", TestCommand::Sleep(1, Duration::from_millis(250)));
    let watch = async {
        sleep(Duration::from_millis(30)).await;
        let now = Instant::now();
        let mut seen = Vec::new();
        for seconds in [0, 2, 11, 12, 13] {
            let found = scan(&harness.tree, now + Duration::from_secs(seconds));
            seen.push((found.busy, found.stuck, states(&harness.tree)[0]));
        }
        seen
    };
    let (reply, seen) = futures_util::future::join(work, watch).await;
    let expected = [
        (0, 0, NodeState::Running),
        (1, 0, NodeState::Busy),
        (1, 0, NodeState::Busy),
        (1, 0, NodeState::Busy),
        (0, 1, NodeState::Stuck),
    ];
    assert_eq!(seen, expected);
    assert_eq!(reply, Ok(1));
    assert_eq!(states(&harness.tree), [NodeState::Running]);
    assert_eq!(harness.tree.counters().stuck.get(), 1, "reported once");
    let later = Instant::now() + Duration::from_mins(1);
    assert_eq!(scan(&harness.tree, later), WatchdogScan::default());
}

#[actix::test]
async fn a_periodic_scan_detects_an_actor_that_blocks_its_arbiter() {
    let harness = Harness::open();
    let limits = WatchdogLimits {
        busy_after: Duration::from_millis(10),
        stuck_after: Duration::from_millis(50),
    };
    let tree = harness.tree.clone();
    let scan = async move || {
        watchdog::scan(&tree, |_| limits, Instant::now());
        Ok::<_, Infallible>(None)
    };
    let period = Period::new(PERMANENT, "janitor", Duration::from_millis(5));
    let _janitor = PeriodicActor::start(&harness.tree, &harness.arbiters, period, scan);
    let work = harness.send("t", TestCommand::Block(1, Duration::from_millis(200)));
    let seen = eventually("stuck", || {
        states(&harness.tree).contains(&NodeState::Stuck)
    });
    let (reply, ()) = futures_util::future::join(work, seen).await;
    assert_eq!(reply, Ok(1));
}

/// The seconds of the scans after the beginning of a batch, the scan before which another batch takes its place, and
/// the state in the end.
type ScanCase = (&'static str, &'static [u64], Option<u64>, NodeState);

/// A process that is stopped (SIGSTOP) runs neither its actors nor its watchdog, and then ends what is in hand. A scan
/// that is late for another reason excuses no actor.
#[actix::test]
async fn an_actor_is_stuck_if_two_scans_find_the_same_batch_beyond_its_limit() {
    use NodeState::{Busy, Stuck};
    let cases: [ScanCase; 6] = [
        ("scans in time", &[1, 9, 11, 12, 13], None, Stuck),
        ("not confirmed yet", &[1, 9, 11, 12], None, Busy),
        ("late scans", &[1, 62, 64], None, Stuck),
        ("stopped for a minute", &[1, 62], None, Busy),
        ("stopped, and ended then", &[1, 62, 64], Some(64), Busy),
        ("the next one is stuck", &[1, 62, 64, 66], Some(64), Stuck),
    ];
    for (name, scans, next_batch_at, expected) in cases {
        let tree = Tree::new(Arc::new(SystemClock), &KINDS);
        let node = tree.add_node(ON_DEMAND, 0, "t");
        node.mark_running();
        node.mark_batch_started("Long", 1, Duration::ZERO);
        let begun = Instant::now();
        for second in scans {
            if next_batch_at == Some(*second) {
                node.mark_batch_started("Next", 1, Duration::ZERO);
            }
            scan(&tree, begun + Duration::from_secs(*second));
        }
        assert_eq!(node.state(), expected, "{name}");
        let is_stuck = expected == Stuck;
        assert_eq!(tree.counters().stuck.get(), u64::from(is_stuck), "{name}");
    }
}

#[actix::test]
async fn work_that_panics_does_not_end_a_periodic_actor() {
    let harness = Harness::open();
    let rounds = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&rounds);
    let work = async move || {
        let round = counted.fetch_add(1, Ordering::SeqCst);
        assert!(round != 1, "second round");
        if round == 2 {
            Err("third round")
        } else {
            Ok(None)
        }
    };
    let period = Period::new(PERMANENT, "janitor", Duration::from_millis(2));
    drop(PeriodicActor::start(
        &harness.tree,
        &harness.arbiters,
        period,
        work,
    ));
    eventually("rounds after the panic", || {
        rounds.load(Ordering::SeqCst) > 5
    })
    .await;
    assert_eq!(harness.tree.counters().panics.get(), 1);
    assert_eq!(harness.tree.readiness(), Ok(()));
}

#[actix::test]
async fn a_restarting_actor_shows_the_text_of_its_panic_cut_to_its_limit() {
    let tree = Tree::new(Arc::new(SystemClock), &KINDS);
    let node = tree.add_node(ON_DEMAND, 0, "t");
    node.record_panic(&"ü".repeat(500));
    assert_eq!(node.state(), NodeState::Restarting);
    assert_eq!(
        node.last_panic().map(|text| text.chars().count()),
        Some(200)
    );
}

fn only_actor(snapshot: &TreeSnapshot) -> &ActorFigures {
    let [group] = snapshot.groups.as_slice() else {
        panic!("{snapshot:?}")
    };
    let [actor] = group.nodes.as_slice() else {
        panic!("{snapshot:?}")
    };
    actor
}

#[actix::test]
async fn operators_see_the_batch_in_hand_and_how_long_the_queue_behind_it_waits() {
    let harness = Harness::open();
    let work = harness.send("t", TestCommand::Sleep(1, Duration::from_millis(200)));
    let behind = async {
        sleep(Duration::from_millis(20)).await;
        futures_util::future::join(
            harness.send("t", TestCommand::Write(2)),
            harness.send("t", TestCommand::Write(3)),
        )
        .await
    };
    let watch = async {
        sleep(Duration::from_millis(60)).await;
        let later = Instant::now() + Duration::from_secs(8);
        harness.tree.snapshot_at(later, 10)
    };
    let (_, _, seen) = futures_util::future::join3(work, behind, watch).await;
    let actor = only_actor(&seen);
    let batch = actor.batch.as_ref().unwrap();
    assert_eq!((batch.command.as_str(), batch.commands), ("Other", 1));
    let seconds = 8_000_000..10_000_000;
    assert!(seconds.contains(&batch.age_us), "{batch:?}");
    assert!(seconds.contains(&actor.oldest_wait_us), "{actor:?}");
    assert_eq!((actor.mailbox_depth, actor.last_batch_us), (3, None));
    assert_eq!(seen.groups[0].oldest_wait_us, actor.oldest_wait_us);
    let expected = WindowFigures {
        wait_max_us: actor.oldest_wait_us,
        handle_max_us: batch.age_us,
        depth_max: 3,
        ..WindowFigures::default()
    };
    assert_eq!(actor.last_minute, expected, "what is in hand counts");
    assert_eq!(seen.top, seen.groups[0].nodes);

    eventually("the second batch has ended", || {
        let now = harness.tree.snapshot(10);
        only_actor(&now).last_hour.depth_max == 3 && only_actor(&now).mailbox_depth == 0
    })
    .await;
    let idle = harness.tree.snapshot(10);
    let actor = only_actor(&idle);
    assert_eq!((actor.batch.as_ref(), actor.oldest_wait_us), (None, 0));
    assert!(actor.wait_us > 50_000, "they waited for the first batch");
    assert!(actor.last_hour.handle_max_us > 150_000, "{actor:?}");
}

#[actix::test]
async fn operators_see_when_an_actor_restarts_and_why() {
    let backoff = Duration::from_hours(1);
    let policy = RestartPolicy {
        backoff_initial: backoff,
        backoff_max: backoff,
        ..RestartPolicy::default()
    };
    let harness = Harness::with(1, AdmissionLimits::default(), policy);
    let poison = harness.send("t", TestCommand::Poison);
    let watch = eventually("the actor waits for its restart", || {
        states(&harness.tree) == [NodeState::Restarting]
            && harness.tree.counters().restarts.get() == 1
    });
    tokio::select! {
        reply = poison => panic!("{reply:?}"),
        () = watch => {}
    }
    let seen = harness.tree.snapshot(10);
    let actor = only_actor(&seen);
    let wait = actor.restarts_at.unwrap().duration_since(seen.taken_at);
    assert!((1_700..3_700).contains(&wait.as_secs()), "{wait}");
    assert_eq!((actor.restarts, actor.failed_at), (1, None));
    assert_eq!((actor.last_hour.restarts, actor.last_hour.panics), (1, 1));
    let [panic] = actor.panics.as_slice() else {
        panic!("{actor:?}")
    };
    assert!(panic.cause.starts_with("poison at "), "{panic:?}");
    assert!(panic.at <= seen.taken_at);
    let oldest_wait = actor.oldest_wait_us;
    assert!(oldest_wait > 0, "the command waits for the restart");
}

#[actix::test]
async fn an_actor_that_has_stopped_is_still_among_the_worst_of_its_window() {
    let harness = Harness::open();
    let nap = Duration::from_millis(30);
    let slow = harness.send("slow", TestCommand::Sleep(1, nap));
    slow.await.unwrap();
    let idle_after = Duration::from_mins(2);
    let later = Instant::now() + idle_after;
    harness.registry.passivate_idle(later, idle_after, 10);
    eventually("the actor has stopped", || harness.tree.node_count() == 0).await;
    let top = |window, after: Duration| {
        let snapshot = harness.tree.snapshot_at(Instant::now() + after, 10);
        let ranking = Ranking {
            kind: Some("account"),
            by: Measure::HandleTime,
            window,
        };
        ranking.top(snapshot.top, 10)
    };
    let seen = top(Window::FiveMinutes, Duration::from_mins(4));
    assert_eq!(
        (seen[0].name.as_str(), seen[0].state),
        ("slow", NodeState::Stopped)
    );
    assert_eq!(seen[0].started_at, None);
    assert!(seen[0].last_5_minutes.handle_max_us >= 30_000);
    assert_eq!(top(Window::Minute, Duration::from_mins(4)), []);
    assert_eq!(top(Window::Hour, Duration::from_hours(2)), []);
}

#[actix::test]
async fn the_snapshot_lists_the_actor_first_whose_queue_is_in_trouble_whatever_its_name() {
    let harness = Harness::open();
    for number in 0..30 {
        let name = format!("a{number}");
        harness
            .send(&name, TestCommand::Write(number))
            .await
            .unwrap();
    }
    let slow = harness.send("z", TestCommand::Sleep(99, Duration::from_millis(150)));
    let watch = async {
        sleep(Duration::from_millis(30)).await;
        harness.tree.snapshot(3)
    };
    let (_, seen) = futures_util::future::join(slow, watch).await;
    let names: Vec<_> = seen.groups[0]
        .nodes
        .iter()
        .map(|actor| actor.name.as_str())
        .collect();
    assert_eq!(names, ["z", "a0", "a1"], "then in the order of their start");
    assert_eq!(seen.groups[0].states[&NodeState::Running], 31);
}

#[actix::test]
async fn the_batch_after_a_long_one_is_not_long_yet() {
    let tree = Tree::new(Arc::new(SystemClock), &KINDS);
    let node = tree.add_node(ON_DEMAND, 0, "t");
    node.mark_running();
    node.mark_batch_started("First", 1, Duration::ZERO);
    for second in [11, 13] {
        scan(&tree, Instant::now() + Duration::from_secs(second));
    }
    assert_eq!(node.state(), NodeState::Stuck);
    node.mark_batch_started("Second", 1, Duration::ZERO);
    assert_eq!(node.state(), NodeState::Running);
    let seen = tree.snapshot(1);
    let batch = only_actor(&seen).batch.as_ref().unwrap();
    assert_eq!(batch.command, "Second");
    assert!(only_actor(&seen).last_batch_us.is_some());
}
