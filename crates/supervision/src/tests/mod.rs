//! Tests of supervision as a whole, with actors that panic, sleep, block and stop.

mod escalation;
mod flood;
mod passivation;
mod recovery;
mod shutdown;
mod watching;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use timing::CommandId;
use timing::clock::SystemClock;
use tokio::time::sleep;

use super::batch_actor::{self, Worker};
use super::panics::install_hook;
use super::{
    Admission, AdmissionLimits, Arbiters, CommandBatch, NodeKind, Registry, RegistrySettings,
    RestartPolicy, SendError, Tree,
};

const ON_DEMAND: NodeKind = NodeKind::transient("account");
const PERMANENT: NodeKind = NodeKind::permanent("clerk");
const KINDS: [NodeKind; 2] = [ON_DEMAND, PERMANENT];

/// The commands of the test worker. The worker writes the command's number to the ledger.
#[derive(Debug, Clone, Copy)]
enum TestCommand {
    Write(u32),
    /// The worker sleeps asynchronously and then writes the number.
    Sleep(u32, Duration),
    /// The worker blocks its thread and then writes the number.
    Block(u32, Duration),
    /// The worker panics at every try.
    Poison,
    /// The worker panics at the first try and writes the number at the second.
    PanicOnce(u32),
    /// The worker starts the commit, writes the number and panics.
    PanicInCommit(u32),
    /// The worker processes the command and sends no reply.
    NoReply,
}

type Ledger = Arc<Mutex<Vec<u32>>>;

/// Writes the numbers of its commands to the ledger. Replies with how many numbers this worker has written.
struct TestWorker {
    ledger: Ledger,
    panicked: Arc<Mutex<Vec<u32>>>,
    written: u32,
}

impl TestWorker {
    fn write(&mut self, number: u32) {
        self.ledger.lock().unwrap().push(number);
        self.written += 1;
    }

    async fn run(&mut self, command: TestCommand, batch: &CommandBatch<TestCommand>) {
        match command {
            TestCommand::Write(number) => self.write(number),
            TestCommand::Sleep(number, nap) => {
                sleep(nap).await;
                self.write(number);
            }
            TestCommand::Block(number, length) => {
                let start = Instant::now();
                while start.elapsed() < length {
                    std::hint::spin_loop();
                }
                self.write(number);
            }
            TestCommand::Poison => panic!("poison"),
            TestCommand::PanicOnce(number) => {
                let first = !self.panicked.lock().unwrap().contains(&number);
                if first {
                    self.panicked.lock().unwrap().push(number);
                    panic!("panicked at {number}");
                }
                self.write(number);
            }
            TestCommand::PanicInCommit(number) => {
                batch.start_commit();
                self.write(number);
                panic!("torn");
            }
            TestCommand::NoReply => {}
        }
    }
}

impl Worker for TestWorker {
    type Command = TestCommand;
    type Reply = u32;

    fn name(command: &TestCommand) -> &'static str {
        match command {
            TestCommand::Poison => "Poison",
            _ => "Other",
        }
    }

    /// Panics on a poison command before it writes anything, because a real worker also decides the whole batch first.
    async fn work(mut self, batch: CommandBatch<TestCommand>) -> (Self, Vec<(CommandId, u32)>) {
        let poisoned = batch
            .tasks()
            .iter()
            .any(|task| matches!(**task, TestCommand::Poison));
        assert!(!poisoned, "poison");
        let mut replies = Vec::new();
        for task in batch.tasks() {
            self.run(**task, &batch).await;
            if !matches!(**task, TestCommand::NoReply) {
                replies.push((task.id, self.written));
            }
        }
        (self, replies)
    }
}

struct Harness {
    tree: Tree,
    arbiters: Arc<Arbiters>,
    admission: Admission,
    registry: Arc<Registry<String, TestCommand, u32>>,
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
        let tree = Tree::new(Arc::new(SystemClock), &KINDS);
        let arbiters = Arc::new(Arbiters::start(1));
        let admission = Admission::new(limits, Arc::clone(tree.counters()));
        let ledger = Ledger::default();
        let panicked = Ledger::default();
        let settings = RegistrySettings {
            kind: ON_DEMAND,
            policy,
        };
        let written = Arc::clone(&ledger);
        let registry = Registry::new(
            &tree,
            &arbiters,
            admission.clone(),
            settings,
            move |_, context| {
                let ledger = Arc::clone(&written);
                let panicked = Arc::clone(&panicked);
                batch_actor::start(context, batch_max, move || TestWorker {
                    ledger: Arc::clone(&ledger),
                    panicked: Arc::clone(&panicked),
                    written: 0,
                })
            },
        );
        Self {
            tree,
            arbiters,
            admission,
            registry: Arc::new(registry),
            ledger,
        }
    }

    async fn send(&self, key: &str, command: TestCommand) -> Result<u32, SendError> {
        self.registry.send(&key.to_owned(), command).await
    }

    /// Sends a slow command and then `commands`, which therefore wait in the queue together.
    async fn send_all(&self, key: &str, commands: &[TestCommand]) -> Vec<Result<u32, SendError>> {
        let nap = self.send(key, TestCommand::Sleep(0, Duration::from_millis(100)));
        let rest = async {
            sleep(Duration::from_millis(10)).await;
            futures_util::future::join_all(commands.iter().map(|command| self.send(key, *command)))
                .await
        };
        let (nap, rest) = futures_util::future::join(nap, rest).await;
        assert!(nap.is_ok());
        rest
    }

    fn ledger_entries(&self) -> Vec<u32> {
        self.ledger.lock().unwrap().clone()
    }

    /// Asserts that every permit is returned and no command is queued.
    fn assert_idle(&self) {
        assert_eq!(
            (self.admission.in_use(), self.admission.keys_in_use()),
            (0, 0)
        );
        assert_eq!(self.tree.counters().queue_depth.get(), 0);
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.arbiters.stop();
    }
}

/// Waits until `condition` is true. Panics after five seconds.
async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "never came true: {what}"
        );
        sleep(Duration::from_millis(2)).await;
    }
}
