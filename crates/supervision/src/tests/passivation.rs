//! Tests that passivation loses no command.

use actix::{Actor, ActorContext, Arbiter, Context, Handler, Supervised};

use super::super::mailbox::{Envelope, Passivate};
use super::super::registry::StartContext;
use super::super::supervise;
use super::*;

#[actix::test]
async fn a_passivating_actor_loses_no_message_under_load() {
    const SENDERS: u32 = 4;
    const EACH: u32 = 1_500;
    let harness = Harness::open();
    let threads: Vec<_> = (0..SENDERS).map(|_| Arbiter::new()).collect();
    let hammer = |(rank, thread): (u32, &Arbiter)| {
        let (registry, (done, end)) = (
            Arc::clone(&harness.registry),
            tokio::sync::oneshot::channel(),
        );
        thread.spawn(async move {
            for number in rank * EACH..(rank + 1) * EACH {
                registry
                    .send(&"t".to_owned(), TestCommand::Write(number))
                    .await
                    .unwrap();
                if number % 5 == 0 {
                    sleep(Duration::from_micros(100)).await;
                }
            }
            let _ = done.send(());
        });
        end
    };
    let senders = futures_util::future::join_all((0..).zip(&threads).map(hammer));
    let janitor = async {
        loop {
            harness
                .registry
                .passivate_idle(Instant::now(), Duration::ZERO, usize::MAX);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ends = senders => assert!(ends.iter().all(Result::is_ok), "every send was answered"),
        () = janitor => {}
    }
    for thread in threads {
        thread.stop();
    }

    let mut written = harness.ledger_entries();
    written.sort_unstable();
    assert_eq!(
        written,
        (0..SENDERS * EACH).collect::<Vec<_>>(),
        "each exactly once"
    );
    let counters = harness.tree.counters().snapshot();
    assert!(counters.actors_passivated > 10, "{counters:?}");
    assert_eq!(counters.commands_answered, u64::from(SENDERS * EACH));
    assert_eq!(
        counters.commands_resent, 0,
        "no command met a closing mailbox"
    );
    harness.assert_idle();
}

#[actix::test]
async fn an_idle_actor_is_removed_and_the_next_command_starts_a_new_one() {
    let harness = Harness::open();
    assert_eq!(harness.send("t", TestCommand::Write(1)).await, Ok(1));
    let two_minutes = Duration::from_mins(2);
    assert_eq!(
        harness
            .registry
            .passivate_idle(Instant::now(), two_minutes, 10),
        0
    );
    assert_eq!(
        harness
            .registry
            .passivate_idle(Instant::now() + two_minutes, two_minutes, 10),
        1
    );
    eventually("the node is gone", || harness.tree.node_count() == 0).await;
    assert_eq!(harness.registry.active_count(), 0);
    assert_eq!(harness.send("t", TestCommand::Write(2)).await, Ok(1));
}

#[actix::test]
async fn above_the_active_limit_the_longest_unused_actors_stop() {
    let harness = Harness::open();
    for number in 0..10 {
        harness
            .send(&format!("t{number}"), TestCommand::Write(number))
            .await
            .unwrap();
    }
    harness.send("t0", TestCommand::Write(10)).await.unwrap();
    assert_eq!(
        harness
            .registry
            .passivate_idle(Instant::now(), Duration::from_mins(2), 3),
        7
    );
    eventually("seven have left", || harness.tree.node_count() == 3).await;
    let group = &harness.tree.snapshot(10).groups[0];
    let names: Vec<_> = group.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["t0", "t8", "t9"]);
}

#[actix::test]
async fn a_working_actor_does_not_stop() {
    let harness = Harness::open();
    let work = harness.send("t", TestCommand::Sleep(1, Duration::from_millis(200)));
    let janitor = async {
        sleep(Duration::from_millis(20)).await;
        harness
            .registry
            .passivate_idle(Instant::now(), Duration::ZERO, 0)
    };
    let (reply, asked) = futures_util::future::join(work, janitor).await;
    assert_eq!((reply, asked), (Ok(1), 1));
    assert_eq!(harness.tree.counters().actors_passivated.get(), 0);
    assert_eq!(harness.registry.active_count(), 1);
}

#[actix::test]
async fn repeated_requests_do_not_fill_the_mailbox_of_a_working_actor() {
    let harness = Harness::open();
    let work = harness.send("t", TestCommand::Block(1, Duration::from_millis(200)));
    let janitor = async {
        sleep(Duration::from_millis(20)).await;
        let ask = |_| {
            harness
                .registry
                .passivate_idle(Instant::now(), Duration::ZERO, 0)
        };
        let asked: usize = (0..1_000).map(ask).sum();
        (asked, harness.send("t", TestCommand::Write(2)).await)
    };
    let (reply, (asked, next)) = futures_util::future::join(work, janitor).await;
    assert_eq!((reply, asked, next), (Ok(1), 1, Ok(2)));
    assert_eq!(harness.tree.counters().commands_resent.get(), 0);
}

/// The first actor of the key takes five commands and stops without a reply. The actors after it reply to each command.
struct StoppingActor {
    context: StartContext,
    seen: Arc<Mutex<Vec<(u64, CommandId)>>>,
    held: Vec<Envelope<u32, u32>>,
}

impl Actor for StoppingActor {
    type Context = Context<Self>;
}

impl Supervised for StoppingActor {}

impl Handler<Envelope<u32, u32>> for StoppingActor {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<u32, u32>, ctx: &mut Self::Context) {
        self.seen
            .lock()
            .unwrap()
            .push((self.context.generation, envelope.id()));
        if self.context.generation == 1 {
            self.held.push(envelope);
            if self.held.len() == 5 {
                ctx.stop();
            }
        } else {
            let command = envelope.command().unwrap();
            envelope.answer(*command);
        }
    }
}

impl Handler<Passivate> for StoppingActor {
    type Result = ();

    fn handle(&mut self, _: Passivate, _: &mut Self::Context) {}
}

#[actix::test]
async fn commands_that_return_unstarted_are_sent_again_and_done_exactly_once() {
    let tree = Tree::new(Arc::new(SystemClock), &KINDS);
    let arbiters = Arc::new(Arbiters::start(1));
    let admission = Admission::new(AdmissionLimits::default(), Arc::clone(tree.counters()));
    let settings = RegistrySettings {
        kind: ON_DEMAND,
        policy: quick(),
    };
    let seen: Arc<Mutex<Vec<(u64, CommandId)>>> = Arc::default();
    let written = Arc::clone(&seen);
    let registry = Registry::new(
        &tree,
        &arbiters,
        admission.clone(),
        settings,
        move |_: &u8, context| {
            let arbiter = context.arbiter.clone();
            let node = context.node.clone();
            let policy = context.policy;
            let seen = Arc::clone(&written);
            supervise(&arbiter, node, policy, move |_| StoppingActor {
                context,
                seen,
                held: Vec::new(),
            })
            .into()
        },
    );
    let replies =
        futures_util::future::join_all((0..5).map(|command| registry.send(&1, command))).await;
    assert_eq!(replies, (0..5).map(Ok).collect::<Vec<_>>());
    // There may be more than five: a command that came back may be posted again before the mailbox closes.
    assert!(tree.counters().commands_resent.get() >= 5);
    assert_eq!(admission.in_use(), 0);
    let seen = seen.lock().unwrap();
    let ids = |generation| {
        seen.iter()
            .filter(move |(by, _)| *by == generation)
            .map(|(_, id)| *id)
    };
    let (mut first, mut second): (Vec<_>, Vec<_>) = (ids(1).collect(), ids(2).collect());
    assert_eq!((seen.len(), first.len(), second.len()), (10, 5, 5));
    first.sort_unstable();
    second.sort_unstable();
    assert_eq!(first, second, "a command keeps its identity");
    arbiters.stop();
}
