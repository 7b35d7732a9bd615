//! Group commit across taxpayers. A committer takes all waiting batches and executes them in one transaction; batches
//! that arrive meanwhile form the next group. A batch whose lane is held elsewhere, or whose command panics, is left
//! out and executed by its actor, so that it does not delay others.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};

use crate::actors::supervision::{Arbiters, CommandBatch, hash_of};
use crate::actors::taxpayer::actor::TaxpayerDeps;
use crate::actors::taxpayer::command::{CommandEnvelope, TaxpayerCommand};
use crate::actors::taxpayer::read_set::CachedState;
use crate::actors::taxpayer::transaction::{Executed, Member, execute_group};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::error::StoreError;

/// The maximum number of commands in a group. It limits how long a transaction takes.
const COMMANDS_MAX: usize = 256;

/// A batch of one taxpayer's actor, with the actor's cached state.
pub(super) struct ReadyBatch {
    pub(super) id: TaxpayerId,
    pub(super) cached: Option<CachedState>,
    pub(super) batch: CommandBatch<CommandEnvelope>,
}

/// The answer of a committer.
pub(super) enum Reply {
    Executed(Box<Executed>),
    /// The group left the batch out and executed none of its commands. The actor executes the batch alone.
    Alone(Box<ReadyBatch>),
}

struct Queued {
    ready: Box<ReadyBatch>,
    reply: oneshot::Sender<Result<Reply, StoreError>>,
}

/// Hands batches to the committers. A taxpayer always has the same committer, so its batches stay in order.
#[derive(Clone)]
pub(super) struct Committers {
    queues: Arc<[mpsc::UnboundedSender<Queued>]>,
}

impl Committers {
    /// Starts the committers. The database decides how many are useful. They end when the last clone of `Committers` is
    /// dropped.
    pub(super) fn start(deps: &Arc<TaxpayerDeps>, arbiters: &Arbiters) -> Self {
        let queues = (0..deps.store.concurrent_groups()).map(|number| {
            let (sender, queue) = mpsc::unbounded_channel();
            let (_, arbiter) = arbiters.for_key(u64::try_from(number).unwrap_or_default());
            arbiter.spawn(commit_groups(Arc::clone(deps), queue));
            sender
        });
        Self { queues: queues.collect() }
    }

    /// Executes a batch in a group. Fails with `Unsettled` if it is unknown whether the transaction was committed.
    pub(super) async fn execute(&self, ready: Box<ReadyBatch>) -> Result<Reply, StoreError> {
        if !ready.batch.tasks().iter().all(|task| may_share_transaction(&task.command.command)) {
            return Ok(Reply::Alone(ready));
        }
        let at = usize::try_from(hash_of(&ready.id)).unwrap_or_default() % self.queues.len().max(1);
        let (reply, replied) = oneshot::channel();
        let Some(queue) = self.queues.get(at) else { return Ok(Reply::Alone(ready)) };
        match queue.send(Queued { ready, reply }) {
            Ok(()) => replied.await.unwrap_or(Err(StoreError::Unsettled)),
            Err(mpsc::error::SendError(queued)) => Ok(Reply::Alone(queued.ready)),
        }
    }
}

/// Returns true if a command may be executed in a group. A large command may not, and neither may one that sets a value
/// unique among all taxpayers, because it may wait for another transaction.
fn may_share_transaction(command: &TaxpayerCommand) -> bool {
    !matches!(
        command,
        TaxpayerCommand::CreateBatch(_) | TaxpayerCommand::Onboard(_) | TaxpayerCommand::ChangeProfile(..)
    )
}

async fn commit_groups(deps: Arc<TaxpayerDeps>, mut queue: mpsc::UnboundedReceiver<Queued>) {
    while let Some(first) = queue.recv().await {
        let mut commands = first.ready.batch.tasks().len();
        let mut group = vec![first];
        while commands < COMMANDS_MAX
            && let Ok(next) = queue.try_recv()
        {
            commands += next.ready.batch.tasks().len();
            group.push(next);
        }
        // After a panic outside the commands, the committer continues, and the callers of this group learn that their
        // outcome is unknown.
        let _ = AssertUnwindSafe(commit(&deps, group)).catch_unwind().await;
    }
}

async fn commit(deps: &TaxpayerDeps, mut group: Vec<Queued>) {
    let commands: usize = group.iter().map(|queued| queued.ready.batch.tasks().len()).sum();
    deps.store.metrics().transaction_commands.observe(f64::from(u32::try_from(commands).unwrap_or(u32::MAX)));
    let members = group.iter_mut().map(|Queued { ready, .. }| Member {
        id: ready.id,
        cached: ready.cached.take(),
        batch: &ready.batch,
        tasks: ready.batch.tasks(),
    });
    let outcomes = match execute_group(deps, members.collect()).await {
        Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
        // One command has failed the transaction, so each actor executes its batch alone.
        Err(StoreError::Duplicate(_) | StoreError::Corrupt { .. } | StoreError::Stale) => {
            group.iter().map(|_| Ok(None)).collect::<Vec<_>>()
        }
        // The locked run or endpoint belongs to one taxpayer, so each actor executes its batch alone.
        Err(error) if error.is_lock_conflict() => group.iter().map(|_| Ok(None)).collect(),
        Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
    };
    for (Queued { ready, reply }, outcome) in group.into_iter().zip(outcomes) {
        let answer = outcome.map(|executed| match executed {
            Some(executed) => Reply::Executed(Box::new(executed)),
            None => Reply::Alone(ready),
        });
        // The send fails only if the actor has ended. An ended actor needs no reply.
        let _ = reply.send(answer);
    }
}
