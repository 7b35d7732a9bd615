//! Tests of escalation: when the restart budget is spent, the actor fails and the process is not ready.

use actix::{Actor, Context, Handler, Message, Supervised};

use super::super::node::Node;
use super::super::node_state::NodeState;
use super::super::supervise;
use super::*;

#[actix::test]
async fn the_fourth_panic_within_the_window_escalates() {
    let harness = Harness::with(1, AdmissionLimits::default(), quick());
    let commands = [
        TestCommand::Poison,
        TestCommand::Poison,
        TestCommand::Write(1),
        TestCommand::Write(2),
    ];
    let replies = harness.send_all("t", &commands).await;
    assert!(
        matches!(replies[0], Err(SendError::Quarantined { .. })),
        "{replies:?}"
    );
    assert!(
        matches!(replies[1], Err(SendError::Interrupted { .. })),
        "{replies:?}"
    );
    assert_eq!(
        replies[2..],
        [Err(SendError::Stopped), Err(SendError::Stopped)]
    );

    let counters = harness.tree.counters().snapshot();
    assert_eq!(
        (counters.panics, counters.restarts, counters.escalations),
        (4, 3, 1)
    );
    assert_eq!(
        (
            counters.actors_started,
            counters.commands_resent,
            counters.commands_stopped
        ),
        (1, 0, 2)
    );
    assert_eq!(harness.ledger_entries(), [0]);
    harness.assert_idle();
}

#[actix::test]
async fn an_escalation_makes_the_process_unready_until_the_actor_has_rested() {
    let harness = Harness::with(
        1,
        AdmissionLimits::default(),
        RestartPolicy {
            restarts_max: 0,
            ..quick()
        },
    );
    assert_eq!(harness.tree.readiness(), Ok(()));
    let _ = harness.send("t", TestCommand::Poison).await;
    let reason = harness.tree.readiness().unwrap_err();
    assert!(
        reason.starts_with("account t: panicked too often, last: poison"),
        "{reason}"
    );

    assert_eq!(
        harness.send("t", TestCommand::Write(1)).await,
        Err(SendError::Stopped)
    );
    assert_eq!(
        harness.send("neighbour", TestCommand::Write(2)).await,
        Ok(1)
    );
    harness
        .registry
        .passivate_idle(Instant::now(), Duration::ZERO, 0);
    assert!(
        harness.tree.readiness().is_err(),
        "idleness does not clear a failure"
    );

    let now = Instant::now();
    let rest = Duration::from_mins(1);
    assert_eq!(
        harness.registry.allow_restart(now, rest),
        0,
        "it has not rested yet"
    );
    assert_eq!(
        harness.send("t", TestCommand::Write(1)).await,
        Err(SendError::Stopped)
    );
    assert_eq!(
        harness.registry.allow_restart(now + rest, rest),
        1,
        "not the healthy one"
    );
    assert_eq!(harness.registry.allow_restart(now + rest, rest), 0);
    assert_eq!(harness.tree.readiness(), Ok(()));
    assert_eq!(harness.send("t", TestCommand::Write(3)).await, Ok(1));
    harness.assert_idle();
}

#[actix::test]
async fn an_actor_that_escalates_again_rests_again() {
    let harness = Harness::with(
        1,
        AdmissionLimits::default(),
        RestartPolicy {
            restarts_max: 0,
            ..quick()
        },
    );
    for round in 1..=3 {
        let _ = harness.send("t", TestCommand::Poison).await;
        assert!(harness.tree.readiness().is_err());
        assert_eq!(
            harness
                .registry
                .allow_restart(Instant::now(), Duration::from_mins(1)),
            0
        );
        assert_eq!(
            harness
                .registry
                .allow_restart(Instant::now(), Duration::ZERO),
            1
        );
        assert_eq!(harness.tree.readiness(), Ok(()));
        assert_eq!(harness.tree.counters().snapshot().escalations, round);
    }
    assert_eq!(harness.send("t", TestCommand::Write(3)).await, Ok(1));
    harness.assert_idle();
}

#[actix::test]
async fn the_snapshot_shows_the_failed_actor_first_and_counts_the_others() {
    let harness = Harness::with(
        1,
        AdmissionLimits::default(),
        RestartPolicy {
            restarts_max: 0,
            ..quick()
        },
    );
    for key in ["a", "b", "z"] {
        harness.send(key, TestCommand::Write(1)).await.unwrap();
    }
    let _ = harness.send("z", TestCommand::Poison).await;
    let snapshot = serde_json::to_value(harness.tree.snapshot(2)).unwrap();
    assert_eq!(snapshot["ready"], false);
    let group = &snapshot["groups"][0];
    assert_eq!(group["kind"], "account");
    assert_eq!(
        group["states"],
        serde_json::json!({ "running": 2, "failed": 1 })
    );
    assert_eq!(group["nodes"].as_array().map(Vec::len), Some(2));
    assert_eq!(group["nodes"][0]["name"], "z");
    assert_eq!(group["nodes"][0]["state"], "failed");
    assert!(
        group["nodes"][0]["last_panic"]
            .as_str()
            .unwrap()
            .starts_with("poison")
    );
    assert_eq!(snapshot["counters"]["escalations"], 1);
}

/// An actor that panics when the message says so, and then in each of the next `panics_left` restarts.
struct Brittle {
    node: Node,
    panics_left: u32,
    starts: Arc<Mutex<u32>>,
}

#[derive(Message)]
#[rtype(result = "u32")]
struct Touch {
    panics: bool,
}

impl Actor for Brittle {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        *self.starts.lock().unwrap() += 1;
    }
}

impl Supervised for Brittle {
    fn restarting(&mut self, _: &mut Self::Context) {
        if self.panics_left > 0 {
            self.panics_left -= 1;
            panic!("{} broke again", self.node.name());
        }
    }
}

impl Handler<Touch> for Brittle {
    type Result = u32;

    fn handle(&mut self, touch: Touch, _: &mut Self::Context) -> u32 {
        assert!(!touch.panics, "broke");
        *self.starts.lock().unwrap()
    }
}

fn brittle(panics_left: u32) -> (Tree, Node, actix::Addr<Brittle>) {
    install_hook();
    let tree = Tree::new(Arc::new(SystemClock), &KINDS);
    let node = tree.add_node(ON_DEMAND, 0, "brittle");
    let inner = node.clone();
    let address = supervise(
        &actix::Arbiter::current(),
        node.clone(),
        quick(),
        move |_| Brittle {
            node: inner,
            panics_left,
            starts: Arc::default(),
        },
    );
    (tree, node, address)
}

#[actix::test]
async fn an_actor_keeps_its_address_and_mailbox_across_a_panic_and_is_started_again() {
    let (tree, node, address) = brittle(0);
    let broken = address.send(Touch { panics: true });
    let behind = [(); 3].map(|()| address.send(Touch { panics: false }));
    let (broken, behind) =
        futures_util::future::join(broken, futures_util::future::join_all(behind)).await;
    assert!(broken.is_err());
    let answers: Vec<_> = behind.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, [2, 2, 2], "started was called once more");
    assert_eq!((node.state(), node.restarts()), (NodeState::Running, 1));
    assert_eq!(tree.readiness(), Ok(()));
}

#[actix::test]
async fn a_panic_while_restarting_counts_against_the_budget() {
    let (tree, node, address) = brittle(10);
    assert!(address.send(Touch { panics: true }).await.is_err());
    eventually("the node fails", || node.has_failed()).await;
    assert!(!address.connected());
    assert_eq!(
        (tree.counters().panics.get(), tree.counters().restarts.get()),
        (4, 0)
    );
    assert!(tree.readiness().unwrap_err().starts_with("account brittle"));
}

#[actix::test]
async fn an_actor_that_cannot_be_built_fails() {
    install_hook();
    let tree = Tree::new(Arc::new(SystemClock), &KINDS);
    let node = tree.add_node(PERMANENT, 0, "lists");
    let address = supervise::<Brittle>(&actix::Arbiter::current(), node.clone(), quick(), |_| {
        panic!("no file")
    });
    assert!(address.send(Touch { panics: false }).await.is_err());
    assert_eq!(node.state(), NodeState::Failed);
    assert!(
        tree.readiness()
            .unwrap_err()
            .starts_with("clerk lists: could not be built: no file")
    );
}

#[actix::test]
async fn a_worker_that_cannot_be_made_fails_its_actor_and_quarantines_no_command() {
    install_hook();
    let tree = Tree::new(Arc::new(SystemClock), &KINDS);
    let arbiters = Arc::new(Arbiters::start(1));
    let admission = Admission::new(AdmissionLimits::default(), Arc::clone(tree.counters()));
    let settings = RegistrySettings {
        kind: ON_DEMAND,
        policy: quick(),
    };
    let registry: Registry<u8, TestCommand, u32> =
        Registry::new(&tree, &arbiters, admission, settings, |_, context| {
            batch_actor::start(context, 64, || -> TestWorker { panic!("no database") })
        });
    assert_eq!(
        registry.send(&1, TestCommand::Write(1)).await,
        Err(SendError::Stopped)
    );
    assert!(
        tree.readiness()
            .unwrap_err()
            .starts_with("account 1: panicked too often, last: no database")
    );
    assert!(tree.quarantine().records().is_empty());
    assert_eq!(tree.counters().commands_interrupted.get(), 0);
    arbiters.stop();
}

/// A log that is kept in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[actix::test]
async fn a_panic_is_logged_once_with_its_text_and_location() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // A second subscriber: with only one, another test's thread could disable this log statement for all threads.
    let _second = tracing::Dispatch::new(
        tracing_subscriber::fmt()
            .with_writer(std::io::sink)
            .finish(),
    );
    let _scope = tracing::subscriber::set_default(subscriber);
    let (_tree, _node, address) = brittle(0);
    assert!(address.send(Touch { panics: true }).await.is_err());
    assert!(address.send(Touch { panics: false }).await.is_ok());
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches("broke at ").count(), 1, "{text}");
    assert!(text.contains("/escalation.rs:"), "{text}");
    assert_eq!(text.matches("actor=\"brittle\"").count(), 1, "{text}");
}
