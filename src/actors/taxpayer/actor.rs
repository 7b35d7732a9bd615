//! The taxpayer's actor. One batch is one transaction: it locks the taxpayer's lane, decides each command alone, writes all
//! changes together and commits. Replies are sent after the commit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::actors::dispatch::ReservedSlot;
use crate::actors::notifiers::Notifiers;
use crate::actors::supervision::batch_actor::{self, BATCH_MAX};
use crate::actors::supervision::{
    Admission, AdmissionLimits, Arbiters, CommandBatch, NodeKind, Registry, RegistrySettings, RestartPolicy,
    Task, Tree, Worker,
};
use crate::actors::taxpayer::command::{CommandEnvelope, CommandError, CommandReply, TaxpayerCommand};
use crate::actors::taxpayer::commands::execute;
use crate::actors::taxpayer::handle::{CommandResult, TaxpayerHandle};
use crate::actors::taxpayer::read_set::{self, BatchStart, CachedState};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::write_set::WakeResult;
use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::events;
use crate::store::idempotency::{self, KeyEntry};
use crate::store::lanes::{self, LaneKind};

/// How long and how often to look up the outcome of an interrupted commit before the caller is told it is unknown.
const COMMIT_LOOKUP_FOR: Duration = Duration::from_secs(10);
const COMMIT_LOOKUP_EVERY: Duration = Duration::from_millis(250);

type CommandResults = Vec<(CommandId, CommandResult)>;

#[derive(Clone)]
pub struct TaxpayerDeps {
    pub store: Store,
    pub clock: SharedClock,
    pub notifiers: Notifiers,
    pub deadlines: DeadlinePolicy,
    pub verification: VerificationPolicy,
}

pub(crate) struct TaxpayerActor {
    pub(crate) id: TaxpayerId,
    pub(crate) deps: Arc<TaxpayerDeps>,
    pub(crate) cached: Option<CachedState>,
}

impl TaxpayerHandle {
    /// Actors start at their first command.
    pub fn new(deps: TaxpayerDeps, tree: &Tree, arbiters: &Arc<Arbiters>, limits: AdmissionLimits) -> Self {
        let admission = Admission::new(limits, Arc::clone(tree.counters()));
        let settings = RegistrySettings { kind: NodeKind::Taxpayer, policy: RestartPolicy::default() };
        let deps = Arc::new(deps);
        Self::to(Registry::new(tree, arbiters, admission, settings, move |id: &TaxpayerId, seat| {
            let (id, deps) = (*id, Arc::clone(&deps));
            batch_actor::start(seat, BATCH_MAX, move || TaxpayerActor {
                id,
                deps: Arc::clone(&deps),
                cached: None,
            })
        }))
    }
}

impl Worker for TaxpayerActor {
    type Command = CommandEnvelope;
    type Reply = CommandResult;

    fn name(envelope: &CommandEnvelope) -> &'static str {
        envelope.command.name()
    }

    /// Large commands get a transaction of their own, which bounds the size of every transaction.
    fn is_large(envelope: &CommandEnvelope) -> bool {
        matches!(envelope.command, TaxpayerCommand::CreateBatch(_))
    }

    async fn work(mut self, batch: CommandBatch<CommandEnvelope>) -> (Self, CommandResults) {
        let results = match self.execute_together(&batch, batch.tasks()).await {
            Err(error) if may_succeed_alone(&error, batch.tasks()) => self.execute_one_by_one(&batch).await,
            Err(error) => fail_all(batch.tasks(), &error),
            Ok(results) => results,
        };
        (self, results)
    }
}

impl TaxpayerActor {
    /// Executes each command in a transaction of its own, so that one command's failure does not fail the others.
    async fn execute_one_by_one(&mut self, batch: &CommandBatch<CommandEnvelope>) -> CommandResults {
        let mut results = Vec::with_capacity(batch.tasks().len());
        for task in batch.tasks() {
            let task = std::slice::from_ref(task);
            results.extend(match self.execute_together(batch, task).await {
                Ok(results) => results,
                Err(error) => fail_all(task, &error),
            });
        }
        results
    }

    /// Executes commands in one transaction.
    async fn execute_together(
        &mut self,
        batch: &CommandBatch<CommandEnvelope>,
        tasks: &[Task<CommandEnvelope>],
    ) -> Result<CommandResults, StoreError> {
        let ids = read_set::reserve_ids(&self.deps.store, tasks).await?;
        let tx = self.deps.store.begin().await?;
        let cached = self.refresh_cached(&tx).await?;
        let start = BatchStart {
            id: self.id,
            now: self.deps.clock.now(),
            deadlines: self.deps.deadlines,
            verification: self.deps.verification,
            cached,
            ids,
        };
        let mut uow = read_set::load(&self.deps.store, &tx, tasks, start).await?;
        let results = execute_all(&tx, &mut uow, tasks).await?;
        if uow.writes.is_empty() {
            tx.rollback().await?;
            return Ok(results);
        }
        let deps = Arc::clone(&self.deps);
        let slot = uow.writes.wakes_endpoint().then(|| deps.notifiers.direct.reserve_slot()).flatten();
        let wake = uow.flush(&deps.store, &tx, slot.as_ref()).await?;
        batch.committing();
        if let Err(error) = tx.commit().await {
            self.resolve_commit(tasks, error).await?;
        }
        self.after_commit(uow, wake, slot);
        Ok(results)
    }

    /// Locks the lane. The cached state is reused if the lane's version shows that no other process has written since.
    async fn refresh_cached(&mut self, tx: &Transaction) -> Result<CachedState, StoreError> {
        let version = lanes::lock(tx, LaneKind::Taxpayer, &self.id.to_string()).await?;
        match self.cached.take().filter(|cached| cached.version + 1 == version) {
            Some(cached) => Ok(CachedState { version, ..cached }),
            None => CachedState::load(tx, self.id, version).await,
        }
    }

    /// A failed commit may have happened all the same. The event log and the idempotency keys tell, once the lane's lock shows
    /// that the failed transaction has ended. Fails with `Unsettled` if the database stays unreachable.
    async fn resolve_commit(
        &self,
        tasks: &[Task<CommandEnvelope>],
        error: StoreError,
    ) -> Result<(), StoreError> {
        let started = Instant::now();
        while started.elapsed() < COMMIT_LOOKUP_FOR {
            match self.was_committed(tasks).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(error),
                Err(_) => sleep(COMMIT_LOOKUP_EVERY).await,
            }
        }
        Err(StoreError::Unsettled)
    }

    async fn was_committed(&self, tasks: &[Task<CommandEnvelope>]) -> Result<bool, StoreError> {
        let commands: Vec<CommandId> = tasks.iter().map(|task| task.id).collect();
        let tx = self.deps.store.begin().await?;
        lanes::lock_unversioned(&tx, LaneKind::Taxpayer, &self.id.to_string()).await?;
        let was_committed = events::any_of_commands(&tx, self.id, &commands).await?
            || idempotency::any_of_commands(&tx, &claims(tasks), &commands).await?;
        tx.rollback().await?;
        Ok(was_committed)
    }

    fn after_commit(&mut self, uow: UnitOfWork, wake: Option<WakeResult>, slot: Option<ReservedSlot<'_>>) {
        let notifiers = &self.deps.notifiers;
        if !uow.writes.due_runs.is_empty() {
            notifiers.runs.notify_one();
        }
        match (wake, slot) {
            (Some(WakeResult::Taken(lease)), Some(slot)) => slot.hand_over(lease),
            (Some(WakeResult::Held), _) => notifiers.endpoint_work.wake(self.id),
            (Some(_), _) => notifiers.endpoints.notify_one(),
            (None, _) => {}
        }
        for run in &uow.writes.runs {
            notifiers.run_changes.wake(*run);
        }
        self.cached = Some(uow.cached);
    }
}

/// Executes each command alone. The outcome of a step counts only from the holder of the run's lane; of commands with the
/// same idempotency key only the first is executed. The keys are read after everything else, so that a request repeated on
/// another replica is recognised by its key before its effect looks like a conflict.
async fn execute_all(
    tx: &Transaction,
    uow: &mut UnitOfWork,
    tasks: &[Task<CommandEnvelope>],
) -> Result<CommandResults, StoreError> {
    let used_keys = idempotency::taken(tx, &claims(tasks), uow.now).await?;
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        let envelope: &CommandEnvelope = task;
        let held = match &envelope.command {
            TaxpayerCommand::RecordStep(outcome) => lanes::fence(tx, &outcome.lease).await,
            _ => Ok(()),
        };
        let result = match held {
            Ok(()) => execute_once(uow, task, &used_keys),
            Err(StoreError::Stale) => Err(CommandError::Store(StoreError::Stale)),
            Err(error) => return Err(error),
        };
        results.push((task.id, result));
    }
    Ok(results)
}

/// Executes a command unless its idempotency key is used, and stores the key with its answer. A refused command stores
/// nothing here: the HTTP layer stores the answer to a refusal.
fn execute_once(uow: &mut UnitOfWork, task: &Task<CommandEnvelope>, used_keys: &[String]) -> CommandResult {
    let Some(idempotency) = &task.idempotency else {
        return execute(uow, task.id, task).map_err(CommandError::Refused);
    };
    let id = &idempotency.claim.id;
    if used_keys.contains(id) || uow.writes.used_keys.iter().any(|entry| entry.claim.id == *id) {
        return Err(CommandError::AlreadyProcessed);
    }
    let reply: CommandReply = execute(uow, task.id, task).map_err(CommandError::Refused)?;
    let answer = idempotency.render.as_ref().and_then(|render| render(&reply));
    uow.writes.used_keys.push(KeyEntry {
        claim: idempotency.claim.clone(),
        command_id: Some(task.id),
        answer,
    });
    Ok(reply)
}

fn claims(tasks: &[Task<CommandEnvelope>]) -> Vec<&IdempotencyClaim> {
    tasks.iter().filter_map(|task| task.idempotency.as_ref()).map(|idempotency| &idempotency.claim).collect()
}

/// True if executing the commands one by one may succeed. A row that another taxpayer inserted at the same moment is visible
/// to the next transaction, and the failure of one command must not fail the others.
fn may_succeed_alone(error: &StoreError, tasks: &[Task<CommandEnvelope>]) -> bool {
    match error {
        StoreError::Duplicate(_) => true,
        StoreError::Unavailable(_) | StoreError::Unsettled => false,
        StoreError::Corrupt { .. } | StoreError::Stale => tasks.len() > 1,
    }
}

fn fail_all(tasks: &[Task<CommandEnvelope>], error: &StoreError) -> CommandResults {
    tasks.iter().map(|task| (task.id, Err(CommandError::Store(error.clone())))).collect()
}
