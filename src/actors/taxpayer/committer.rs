//! Group commit across taxpayers. An actor hands its batch to a committer, which takes the batches of all actors that are
//! ready at this moment and executes them in one transaction. There is no timer: a lone batch goes at once, and what arrives
//! during a commit is the next group. What a group leaves out, its actor executes alone, so a fault of one taxpayer or a lane
//! that is held delays nobody else.

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

/// Bounds the size of a transaction and the wait of its first member.
const COMMANDS_MAX: usize = 256;

/// The batch of one taxpayer's actor.
pub(super) struct ReadyBatch {
    pub(super) id: TaxpayerId,
    pub(super) cached: Option<CachedState>,
    pub(super) batch: CommandBatch<CommandEnvelope>,
}

/// The answer of a committer.
pub(super) enum Reply {
    Executed(Box<Executed>),
    /// Nothing was done; the actor executes the batch alone.
    Alone(Box<ReadyBatch>),
}

struct Queued {
    ready: Box<ReadyBatch>,
    reply: oneshot::Sender<Result<Reply, StoreError>>,
}

/// Hands batches to the committers. Each taxpayer has its committer, so its batches stay in order.
#[derive(Clone)]
pub(super) struct Committers {
    queues: Arc<[mpsc::UnboundedSender<Queued>]>,
}

impl Committers {
    /// Starts as many committers as the database takes transactions at a time. They end with the last handle.
    pub(super) fn start(deps: &Arc<TaxpayerDeps>, arbiters: &Arbiters) -> Self {
        let queues = (0..deps.store.concurrent_groups()).map(|number| {
            let (sender, queue) = mpsc::unbounded_channel();
            let (_, arbiter) = arbiters.for_key(u64::try_from(number).unwrap_or_default());
            arbiter.spawn(commit_groups(Arc::clone(deps), queue));
            sender
        });
        Self { queues: queues.collect() }
    }

    /// Executes a batch together with those of other taxpayers. Fails if the database is unavailable, and with `Unsettled`
    /// if the outcome is unknown.
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

/// True for commands that take no value which another taxpayer could have, and whose size is bounded.
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
        // A panic outside the commands ends this group only. Its callers are told that the outcome is unknown.
        let _ = AssertUnwindSafe(commit(&deps, group)).catch_unwind().await;
    }
}

async fn commit(deps: &TaxpayerDeps, mut group: Vec<Queued>) {
    let members = group.iter_mut().map(|Queued { ready, .. }| Member {
        id: ready.id,
        cached: ready.cached.take(),
        batch: &ready.batch,
        tasks: ready.batch.tasks(),
    });
    let outcomes = match execute_group(deps, members.collect()).await {
        Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
        // Each actor tries alone, so that the failure of one command does not fail the others.
        Err(StoreError::Duplicate(_) | StoreError::Corrupt { .. } | StoreError::Stale) => {
            group.iter().map(|_| Ok(None)).collect::<Vec<_>>()
        }
        Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
    };
    for (Queued { ready, reply }, outcome) in group.into_iter().zip(outcomes) {
        let answer = outcome.map(|executed| match executed {
            Some(executed) => Reply::Executed(Box::new(executed)),
            None => Reply::Alone(ready),
        });
        // An actor that has ended needs no reply.
        let _ = reply.send(answer);
    }
}
