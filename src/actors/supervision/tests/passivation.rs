//! Actors come and go; commands do not.

use actix::{Actor, ActorContext, Arbiter, Context, Handler, Supervised};

use super::super::{Envelope, Passivate, Seat, supervise};
use super::*;

#[actix::test]
async fn a_passivating_actor_loses_no_message_under_a_hammering_sender() {
    const SENDERS: u32 = 4;
    const EACH: u32 = 1_500;
    let office = Office::open();
    let threads: Vec<_> = (0..SENDERS).map(|_| Arbiter::new()).collect();
    let hammer = |(rank, thread): (u32, &Arbiter)| {
        let (registry, (done, end)) = (Arc::clone(&office.registry), tokio::sync::oneshot::channel());
        thread.spawn(async move {
            for number in rank * EACH..(rank + 1) * EACH {
                registry.send(&"t".to_owned(), Order::Note(number)).await.unwrap();
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
            office.registry.passivate_idle(Instant::now(), Duration::ZERO, usize::MAX);
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

    let mut written = office.written();
    written.sort_unstable();
    assert_eq!(written, (0..SENDERS * EACH).collect::<Vec<_>>(), "each once, none twice");
    let counters = office.tree.counters().snapshot();
    assert!(counters.actors_passivated > 10, "{counters:?}");
    assert_eq!(counters.commands_answered, u64::from(SENDERS * EACH));
    assert_eq!(counters.commands_resent, 0, "no command met a closing mailbox");
    office.assert_idle();
}

#[actix::test]
async fn an_idle_actor_leaves_nothing_behind_and_the_next_command_starts_a_cold_one() {
    let office = Office::open();
    assert_eq!(office.send("t", Order::Note(1)).await, Ok(1));
    let two_minutes = Duration::from_mins(2);
    assert_eq!(office.registry.passivate_idle(Instant::now(), two_minutes, 10), 0);
    assert_eq!(office.registry.passivate_idle(Instant::now() + two_minutes, two_minutes, 10), 1);
    eventually("the node is gone", || office.tree.count() == 0).await;
    assert_eq!(office.registry.active(), 0);
    assert_eq!(office.send("t", Order::Note(2)).await, Ok(1));
}

#[actix::test]
async fn beyond_the_active_limit_the_longest_unused_leave() {
    let office = Office::open();
    for number in 0..10 {
        office.send(&format!("t{number}"), Order::Note(number)).await.unwrap();
    }
    office.send("t0", Order::Note(10)).await.unwrap();
    assert_eq!(office.registry.passivate_idle(Instant::now(), Duration::from_mins(2), 3), 7);
    eventually("seven have left", || office.tree.count() == 3).await;
    let group = &office.tree.snapshot(10).groups[0];
    let names: Vec<_> = group.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["t0", "t8", "t9"]);
}

#[actix::test]
async fn a_working_actor_does_not_leave() {
    let office = Office::open();
    let work = office.send("t", Order::Nap(1, Duration::from_millis(200)));
    let janitor = async {
        sleep(Duration::from_millis(20)).await;
        office.registry.passivate_idle(Instant::now(), Duration::ZERO, 0)
    };
    let (reply, asked) = futures_util::future::join(work, janitor).await;
    assert_eq!((reply, asked), (Ok(1), 1));
    assert_eq!(office.tree.counters().actors_passivated.get(), 0);
    assert_eq!(office.registry.active(), 1);
}

#[actix::test]
async fn asking_again_and_again_never_fills_the_mailbox_of_a_working_actor() {
    let office = Office::open();
    let work = office.send("t", Order::Block(1, Duration::from_millis(200)));
    let janitor = async {
        sleep(Duration::from_millis(20)).await;
        let ask = |_| office.registry.passivate_idle(Instant::now(), Duration::ZERO, 0);
        let asked: usize = (0..1_000).map(ask).sum();
        (asked, office.send("t", Order::Note(2)).await)
    };
    let (reply, (asked, next)) = futures_util::future::join(work, janitor).await;
    assert_eq!((reply, asked, next), (Ok(1), 1, Ok(2)));
    assert_eq!(office.tree.counters().commands_resent.get(), 0);
}

/// Takes commands and walks out, the first generation; answers them, the later ones.
struct Deserter {
    seat: Seat,
    seen: Arc<Mutex<Vec<(u64, CommandId)>>>,
    held: Vec<Envelope<u32, u32>>,
}

impl Actor for Deserter {
    type Context = Context<Self>;
}

impl Supervised for Deserter {}

impl Handler<Envelope<u32, u32>> for Deserter {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<u32, u32>, ctx: &mut Self::Context) {
        self.seen.lock().unwrap().push((self.seat.generation, envelope.id()));
        if self.seat.generation == 1 {
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

impl Handler<Passivate> for Deserter {
    type Result = ();

    fn handle(&mut self, _: Passivate, _: &mut Self::Context) {}
}

#[actix::test]
async fn commands_that_come_back_unstarted_are_sent_again_and_done_exactly_once() {
    let tree = Tree::new(Arc::new(SystemClock));
    let arbiters = Arc::new(Arbiters::start(1));
    let admission = Admission::new(Limits::default(), Arc::clone(tree.counters()));
    let settings = Settings { kind: Kind::Taxpayer, policy: quick() };
    let seen: Arc<Mutex<Vec<(u64, CommandId)>>> = Arc::default();
    let written = Arc::clone(&seen);
    let registry = Registry::new(&tree, &arbiters, admission.clone(), settings, move |_: &u8, seat| {
        let (arbiter, node, policy) = (seat.arbiter.clone(), seat.node.clone(), seat.policy);
        let seen = Arc::clone(&written);
        supervise(&arbiter, node, policy, move |_| Deserter { seat, seen, held: Vec::new() }).into()
    });
    let replies = futures_util::future::join_all((0..5).map(|command| registry.send(&1, command))).await;
    assert_eq!(replies, (0..5).map(Ok).collect::<Vec<_>>());
    // One may come back twice: its first sender is told a moment before the old mailbox closes.
    assert!(tree.counters().commands_resent.get() >= 5);
    assert_eq!(admission.in_use(), 0);
    let seen = seen.lock().unwrap();
    let of = |generation| seen.iter().filter(move |(by, _)| *by == generation).map(|(_, id)| *id);
    let (mut first, mut second): (Vec<_>, Vec<_>) = (of(1).collect(), of(2).collect());
    assert_eq!((seen.len(), first.len(), second.len()), (10, 5, 5));
    first.sort_unstable();
    second.sort_unstable();
    assert_eq!(first, second, "a command keeps its identity");
    arbiters.stop();
}
