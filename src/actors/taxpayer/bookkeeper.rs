//! The worker of a taxpayer's actor: one batch is one transaction. It locks the taxpayer's lane, decides each
//! command alone, writes what they changed together, commits, and only then are the replies given.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::actors::dispatch::Place;
use crate::actors::supervision::batch_actor::{self, BATCH_MAX};
use crate::actors::supervision::{
    ActorKind, Admission, AdmissionLimits, Arbiters, Batch, CommandId, Registry, RegistrySettings,
    RestartPolicy, Task, Tree, Worker,
};
use crate::actors::taxpayer::books::Books;
use crate::actors::taxpayer::changes::Woken;
use crate::actors::taxpayer::command::{Command, NotDone, Order, Reply};
use crate::actors::taxpayer::decide::decide;
use crate::actors::taxpayer::desk::Desk;
use crate::actors::taxpayer::door::{Answer, Taxpayers};
use crate::actors::taxpayer::load;
use crate::actors::wake::Wakers;
use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::{CommandId as DomainCommandId, TaxpayerId};
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::events;
use crate::store::idempotency::{self, KeyEntry};
use crate::store::lanes::{self, LaneKind};

/// How long an interrupted commit is asked about before its outcome is left to the caller, and how often.
const COMMIT_LOOKUP_FOR: Duration = Duration::from_secs(10);
const COMMIT_LOOKUP_EVERY: Duration = Duration::from_millis(250);

type Answers = Vec<(CommandId, Answer)>;

/// What every bookkeeper works with.
#[derive(Clone)]
pub struct Desktop {
    pub store: Store,
    pub clock: SharedClock,
    pub wakers: Wakers,
    pub deadlines: DeadlinePolicy,
    pub verification: VerificationPolicy,
}

/// Keeps one taxpayer's books.
pub(crate) struct Bookkeeper {
    pub(crate) id: TaxpayerId,
    pub(crate) desktop: Arc<Desktop>,
    pub(crate) books: Option<Books>,
}

impl Taxpayers {
    /// Opens the door; actors start when they are first asked.
    pub fn new(desktop: Desktop, tree: &Tree, arbiters: &Arc<Arbiters>, limits: AdmissionLimits) -> Self {
        let admission = Admission::new(limits, Arc::clone(tree.counters()));
        let settings = RegistrySettings { kind: ActorKind::Taxpayer, policy: RestartPolicy::default() };
        let desktop = Arc::new(desktop);
        Self::to(Registry::new(tree, arbiters, admission, settings, move |id: &TaxpayerId, seat| {
            let (id, desktop) = (*id, Arc::clone(&desktop));
            batch_actor::start(seat, BATCH_MAX, move || Bookkeeper {
                id,
                desktop: Arc::clone(&desktop),
                books: None,
            })
        }))
    }
}

impl Worker for Bookkeeper {
    type Command = Order;
    type Reply = Answer;

    fn name(order: &Order) -> &'static str {
        order.command.name()
    }

    /// So that no transaction grows beyond measure.
    fn is_large(order: &Order) -> bool {
        matches!(order.command, Command::CreateBatch(_))
    }

    async fn work(mut self, batch: Batch<Order>) -> (Self, Answers) {
        let answers = match self.together(&batch, batch.tasks()).await {
            Err(error) if is_worth_another_look(&error, batch.tasks()) => self.one_by_one(&batch).await,
            Err(error) => refuse_all(batch.tasks(), &error),
            Ok(answers) => answers,
        };
        (self, answers)
    }
}

impl Bookkeeper {
    /// A row that only one command wants must not fail its neighbours.
    async fn one_by_one(&mut self, batch: &Batch<Order>) -> Answers {
        let mut answers = Vec::with_capacity(batch.tasks().len());
        for task in batch.tasks() {
            let task = std::slice::from_ref(task);
            answers.extend(match self.together(batch, task).await {
                Ok(answers) => answers,
                Err(error) => refuse_all(task, &error),
            });
        }
        answers
    }

    /// Works tasks off in one transaction.
    async fn together(&mut self, batch: &Batch<Order>, tasks: &[Task<Order>]) -> Result<Answers, StoreError> {
        let ids = load::fresh_ids(&self.desktop.store, tasks).await?;
        let tx = self.desktop.store.begin().await?;
        let books = self.open_books(&tx).await?;
        let now = self.desktop.clock.now();
        let open = (&self.desktop.store, &tx);
        let mut desk = load::desk(
            open,
            self.id,
            books,
            (tasks, ids),
            (now, self.desktop.deadlines, self.desktop.verification),
        )
        .await?;
        let answers = answer(&tx, &mut desk, tasks).await?;
        if desk.changes.is_empty() {
            tx.rollback().await?;
            return Ok(answers);
        }
        let desktop = Arc::clone(&self.desktop);
        let place = desk.changes.wakes_endpoint().then(|| desktop.wakers.pool.place()).flatten();
        let woken = desk.write((&desktop.store, &tx), place.as_ref()).await?;
        batch.committing();
        if let Err(error) = tx.commit().await {
            self.settle(tasks, error).await?;
        }
        self.after_commit(desk, (woken, place));
        Ok(answers)
    }

    /// Locks the lane; the books in memory are good if nobody else has written since.
    async fn open_books(&mut self, tx: &Transaction) -> Result<Books, StoreError> {
        let version = lanes::lock(tx, LaneKind::Taxpayer, &self.id.to_string()).await?;
        match self.books.take().filter(|books| books.version + 1 == version) {
            Some(books) => Ok(Books { version, ..books }),
            None => Books::load(tx, self.id, version).await,
        }
    }

    /// A commit that failed may have happened all the same: the log tells, once the lane's lock shows that the
    /// failed transaction has ended. When it cannot be asked for a while, the callers are told just that.
    async fn settle(&self, tasks: &[Task<Order>], error: StoreError) -> Result<(), StoreError> {
        let begun = Instant::now();
        while begun.elapsed() < COMMIT_LOOKUP_FOR {
            match self.look_up(tasks).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(error),
                Err(_) => sleep(COMMIT_LOOKUP_EVERY).await,
            }
        }
        Err(StoreError::Unsettled)
    }

    async fn look_up(&self, tasks: &[Task<Order>]) -> Result<bool, StoreError> {
        let commands: Vec<DomainCommandId> = tasks.iter().map(|task| task.id.into()).collect();
        let tx = self.desktop.store.begin().await?;
        lanes::lock_unversioned(&tx, LaneKind::Taxpayer, &self.id.to_string()).await?;
        let happened = events::any_of_commands(&tx, self.id, &commands).await?
            || idempotency::any_of_commands(&tx, &claims(tasks), &commands).await?;
        tx.rollback().await?;
        Ok(happened)
    }

    fn after_commit(&mut self, desk: Desk, (woken, place): (Option<Woken>, Option<Place<'_>>)) {
        let wakers = &self.desktop.wakers;
        if !desk.changes.due_runs.is_empty() {
            wakers.runs.notify_one();
        }
        match (woken, place) {
            (Some(Woken::Taken(lease)), Some(place)) => place.hand_over(lease),
            (Some(Woken::Held), _) => wakers.couriers.wake(self.id),
            (Some(_), _) => wakers.endpoints.notify_one(),
            (None, _) => {}
        }
        for run in &desk.changes.runs {
            wakers.waiters.wake(*run);
        }
        self.books = Some(desk.books);
    }
}

/// Decides each command alone. A step's outcome counts only from whoever holds the run's lane; of commands with
/// the same key only the first is decided. The keys are looked up last: whatever else was read before is not
/// newer, so a twin that came first elsewhere is known by its key before it is taken for a conflict.
async fn answer(tx: &Transaction, desk: &mut Desk, tasks: &[Task<Order>]) -> Result<Answers, StoreError> {
    let taken = idempotency::taken(tx, &claims(tasks), desk.now).await?;
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        let order: &Order = task;
        let held = match &order.command {
            Command::RecordStep(outcome) => lanes::fence(tx, &outcome.lease).await,
            _ => Ok(()),
        };
        let answer = match held {
            Ok(()) => carry_out(desk, task, &taken),
            Err(StoreError::Stale) => Err(NotDone::Store(StoreError::Stale)),
            Err(error) => return Err(error),
        };
        answers.push((task.id, answer));
    }
    Ok(answers)
}

/// Decides a command unless its key is taken; one that is carried out takes it. What is refused leaves no trace
/// here: its answer is kept by who gives it.
fn carry_out(desk: &mut Desk, task: &Task<Order>, taken: &[String]) -> Answer {
    let Some(once) = &task.once else {
        return decide(desk, task.id.into(), task).map_err(NotDone::Refused);
    };
    let id = &once.claim.id;
    if taken.contains(id) || desk.changes.kept.iter().any(|entry| entry.claim.id == *id) {
        return Err(NotDone::CarriedOut);
    }
    let reply: Reply = decide(desk, task.id.into(), task).map_err(NotDone::Refused)?;
    let answer = once.tell.as_ref().and_then(|tell| tell(&reply));
    desk.changes.kept.push(KeyEntry { claim: once.claim.clone(), command_id: Some(task.id.into()), answer });
    Ok(reply)
}

fn claims(tasks: &[Task<Order>]) -> Vec<&IdempotencyClaim> {
    tasks.iter().filter_map(|task| task.once.as_ref()).map(|once| &once.claim).collect()
}

/// A row that another taxpayer took in the same moment is there to be seen now; and what only one command wants
/// must not fail its neighbours.
fn is_worth_another_look(error: &StoreError, tasks: &[Task<Order>]) -> bool {
    match error {
        StoreError::Duplicate(_) => true,
        StoreError::Unavailable(_) | StoreError::Unsettled => false,
        StoreError::Corrupt { .. } | StoreError::Stale => tasks.len() > 1,
    }
}

fn refuse_all(tasks: &[Task<Order>], error: &StoreError) -> Answers {
    tasks.iter().map(|task| (task.id, Err(NotDone::Store(error.clone())))).collect()
}
