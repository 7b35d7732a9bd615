//! Tests of what an operator sees of running actors.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::node::NodeState;
use super::super::periodic::{Period, PeriodicActor};
use super::super::watchdog::{self, WatchdogScan};
use super::*;

const LIMITS: watchdog::WatchdogLimits = watchdog::WatchdogLimits {
    busy_after: Duration::from_secs(1),
    stuck_after: Duration::from_secs(10),
};

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
        for seconds in [0, 2, 11, 12] {
            let found = watchdog::scan(
                &harness.tree,
                |_| LIMITS,
                now + Duration::from_secs(seconds),
            );
            seen.push((found.busy, found.stuck, states(&harness.tree)[0]));
        }
        seen
    };
    let (reply, seen) = futures_util::future::join(work, watch).await;
    let expected = [
        (0, 0, NodeState::Running),
        (1, 0, NodeState::Busy),
        (0, 1, NodeState::Stuck),
        (0, 1, NodeState::Stuck),
    ];
    assert_eq!(seen, expected);
    assert_eq!(reply, Ok(1));
    assert_eq!(states(&harness.tree), [NodeState::Running]);
    assert_eq!(harness.tree.counters().stuck.get(), 1, "reported once");
    let later = Instant::now() + Duration::from_mins(1);
    assert_eq!(
        watchdog::scan(&harness.tree, |_| LIMITS, later),
        WatchdogScan::default()
    );
}

#[actix::test]
async fn a_periodic_scan_detects_an_actor_that_blocks_its_arbiter() {
    let harness = Harness::open();
    let limits = watchdog::WatchdogLimits {
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
    let node = tree.node(ON_DEMAND, 0, "t");
    node.record_panic(&"ü".repeat(500));
    assert_eq!(node.state(), NodeState::Restarting);
    assert_eq!(
        node.last_panic().map(|text| text.chars().count()),
        Some(200)
    );
}
