//! The kit as a whole, with actors that panic, nap, block and leave.

mod escalation;
mod flood;
mod passivation;
mod recovery;
mod shutdown;
mod watching;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::batch_actor;
use super::reply::CommandId;
use super::{
    ActorKind, Admission, AdmissionLimits, Arbiters, Batch, Registry, RegistrySettings, RestartPolicy,
    SendError, Tree, Worker, install_hook,
};
use crate::domain::kernel::clock::SystemClock;

/// What a clerk is asked to do; a number is written to the ledger.
#[derive(Debug, Clone, Copy)]
enum Order {
    Note(u32),
    /// Notes after a while.
    Nap(u32, Duration),
    /// Notes after holding its thread for a while.
    Block(u32, Duration),
    /// Panics each time.
    Poison,
    /// Panics the first time it is tried.
    Stumble(u32),
    /// Notes, then panics while committing.
    Tear(u32),
    /// Is worked on, yet not answered.
    Forget,
}

type Ledger = Arc<Mutex<Vec<u32>>>;

/// Writes numbers down and answers with how many it has written since it was cold.
struct Clerk {
    ledger: Ledger,
    stumbled: Arc<Mutex<Vec<u32>>>,
    written: u32,
}

impl Clerk {
    fn note(&mut self, number: u32) {
        self.ledger.lock().unwrap().push(number);
        self.written += 1;
    }

    async fn obey(&mut self, order: Order, batch: &Batch<Order>) {
        match order {
            Order::Note(number) => self.note(number),
            Order::Nap(number, nap) => {
                sleep(nap).await;
                self.note(number);
            }
            Order::Block(number, length) => {
                let start = Instant::now();
                while start.elapsed() < length {
                    std::hint::spin_loop();
                }
                self.note(number);
            }
            Order::Poison => panic!("poison"),
            Order::Stumble(number) => {
                let first = !self.stumbled.lock().unwrap().contains(&number);
                if first {
                    self.stumbled.lock().unwrap().push(number);
                    panic!("stumbled over {number}");
                }
                self.note(number);
            }
            Order::Tear(number) => {
                batch.committing();
                self.note(number);
                panic!("torn");
            }
            Order::Forget => {}
        }
    }
}

impl Worker for Clerk {
    type Command = Order;
    type Reply = u32;

    fn name(order: &Order) -> &'static str {
        match order {
            Order::Poison => "Poison",
            _ => "Other",
        }
    }

    /// A real worker writes nothing before all of its batch is decided; so does this one. It would otherwise
    /// note the neighbours of a poison command twice.
    async fn work(mut self, batch: Batch<Order>) -> (Self, Vec<(CommandId, u32)>) {
        let poisoned = batch.tasks().iter().any(|task| matches!(**task, Order::Poison));
        assert!(!poisoned, "poison");
        let mut replies = Vec::new();
        for task in batch.tasks() {
            self.obey(**task, &batch).await;
            if !matches!(**task, Order::Forget) {
                replies.push((task.id, self.written));
            }
        }
        (self, replies)
    }
}

/// A registry of clerks, with what it stands on.
struct Harness {
    tree: Tree,
    arbiters: Arc<Arbiters>,
    admission: Admission,
    registry: Arc<Registry<String, Order, u32>>,
    ledger: Ledger,
}

fn quick() -> RestartPolicy {
    RestartPolicy {
        backoff_initial: Duration::from_millis(2),
        backoff_max: Duration::from_millis(10),
        ..RestartPolicy::default()
    }
}

impl Harness {
    fn open() -> Self {
        Self::with(64, AdmissionLimits::default(), quick())
    }

    fn with(batch_max: usize, limits: AdmissionLimits, policy: RestartPolicy) -> Self {
        install_hook();
        let tree = Tree::new(Arc::new(SystemClock));
        let arbiters = Arc::new(Arbiters::start(1));
        let admission = Admission::new(limits, Arc::clone(tree.counters()));
        let (ledger, stumbled) = (Ledger::default(), Ledger::default());
        let settings = RegistrySettings { kind: ActorKind::Taxpayer, policy };
        let written = Arc::clone(&ledger);
        let registry = Registry::new(&tree, &arbiters, admission.clone(), settings, move |_, context| {
            let (ledger, stumbled) = (Arc::clone(&written), Arc::clone(&stumbled));
            batch_actor::start(context, batch_max, move || Clerk {
                ledger: Arc::clone(&ledger),
                stumbled: Arc::clone(&stumbled),
                written: 0,
            })
        });
        Self { tree, arbiters, admission, registry: Arc::new(registry), ledger }
    }

    async fn send(&self, key: &str, order: Order) -> Result<u32, SendError> {
        self.registry.send(&key.to_owned(), order).await
    }

    /// Sends in this order, all at once, behind a nap that lets them gather in one queue.
    async fn send_all(&self, key: &str, orders: &[Order]) -> Vec<Result<u32, SendError>> {
        let nap = self.send(key, Order::Nap(0, Duration::from_millis(100)));
        let rest = async {
            sleep(Duration::from_millis(10)).await;
            futures_util::future::join_all(orders.iter().map(|order| self.send(key, *order))).await
        };
        let (nap, rest) = futures_util::future::join(nap, rest).await;
        assert!(nap.is_ok());
        rest
    }

    fn written(&self) -> Vec<u32> {
        self.ledger.lock().unwrap().clone()
    }

    /// Every permit is back and nothing is queued.
    fn assert_idle(&self) {
        assert_eq!((self.admission.in_use(), self.admission.keys_in_use()), (0, 0));
        assert_eq!(self.tree.counters().queue_depth.get(), 0);
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.arbiters.stop();
    }
}

/// Waits until `condition` holds; fails after five seconds.
async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(5), "never came true: {what}");
        sleep(Duration::from_millis(2)).await;
    }
}
