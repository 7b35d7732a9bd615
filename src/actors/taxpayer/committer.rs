//! Group commit across taxpayers. A committer takes all waiting batches and executes them in one transaction; batches
//! that arrive meanwhile form the next group. A batch that would delay the others is not executed but goes back to its
//! actor. If another transaction has locked its lane, the actor waits and sends the batch again. If a command panics,
//! is large or sets unique values, the actor executes the batch alone. If a group's transaction fails because of a
//! statement, each actor executes its own batch alone, so that one taxpayer's fault costs nobody else.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use database::StoreError;
use futures_util::FutureExt;
use supervision::{Arbiters, CommandBatch, hash_key};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::handle::CommandEnvelope;
use crate::actors::taxpayer::large_turns::LargeTurns;
use crate::actors::taxpayer::member::{ExecutedBatch, MemberOutcome, TransactionMember};
use crate::actors::taxpayer::transaction::execute_group;
use crate::actors::taxpayer::weight::TRANSACTION_WEIGHT_MAX;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::lanes::LaneName;

/// The maximum number of commands in a group. It limits how long a transaction takes.
const GROUP_COMMANDS_MAX: usize = 256;
/// A committer yields to the other tasks of its thread this many times before it closes a group, so that more batches
/// can join.
const YIELDS: usize = 2;

/// The commands that a taxpayer's actor hands over to be executed in a group, with what the actor has cached.
pub(super) struct ReadyBatch {
    pub(super) id: TaxpayerId,
    pub(super) cached: Option<CachedState>,
    pub(super) batch: CommandBatch<CommandEnvelope>,
}

/// The answer of a committer. Except with `Executed`, no command of the batch was executed.
pub(super) enum Reply {
    Executed(Box<ExecutedBatch>),
    /// Another transaction has locked these lanes. The batch can join a group when they are free.
    Held(Box<ReadyBatch>, Vec<LaneName>),
    /// The batch cannot be executed in a group: it has a large command or one that sets unique values, one of its
    /// commands panicked, or its lane does not exist yet. Its actor executes it alone.
    Alone(Box<ReadyBatch>),
    /// The transaction of the group failed, perhaps because of this batch. Its actor executes it in a transaction that
    /// shares its commit with no other.
    Failed(Box<ReadyBatch>),
}

struct QueuedBatch {
    ready: Box<ReadyBatch>,
    reply: oneshot::Sender<Result<Reply, StoreError>>,
}

/// Hands batches to the committers. A taxpayer always has the same committer, so its batches stay in order.
#[derive(Clone)]
pub(super) struct Committers {
    queues: Arc<[mpsc::UnboundedSender<QueuedBatch>]>,
}

/// The number and the total weight of the commands of a group so far.
#[derive(Default)]
struct GroupSize {
    commands: usize,
    weight: usize,
}

impl Committers {
    /// Starts as many committers as the database can use at the same time (`concurrent_groups`). They end when the last
    /// clone of `Committers` is dropped.
    pub(super) fn start(
        deps: &Arc<TaxpayerDeps>,
        arbiters: &Arbiters,
        large_turns: &Arc<LargeTurns>,
    ) -> Self {
        let queues = (0..deps.store.concurrent_groups()).map(|number| {
            let (sender, queue) = mpsc::unbounded_channel();
            let (_, arbiter) = arbiters.for_key(u64::try_from(number).unwrap_or_default());
            arbiter.spawn(commit_groups(
                Arc::clone(deps),
                Arc::clone(large_turns),
                queue,
            ));
            sender
        });
        Self {
            queues: queues.collect(),
        }
    }

    /// Executes a batch in a group. Fails with `Unsettled` if it is unknown whether the transaction was committed.
    pub(super) async fn execute(&self, ready: Box<ReadyBatch>) -> Result<Reply, StoreError> {
        if !ready
            .batch
            .tasks()
            .iter()
            .all(|task| task.command.may_share_transaction())
        {
            return Ok(Reply::Alone(ready));
        }
        let hash = usize::try_from(hash_key(&ready.id)).unwrap_or_default();
        let at = hash % self.queues.len().max(1);
        let (reply, replied) = oneshot::channel();
        let Some(queue) = self.queues.get(at) else {
            return Ok(Reply::Alone(ready));
        };
        match queue.send(QueuedBatch { ready, reply }) {
            Ok(()) => replied.await.unwrap_or(Err(StoreError::Unsettled)),
            Err(mpsc::error::SendError(queued)) => Ok(Reply::Alone(queued.ready)),
        }
    }
}

impl GroupSize {
    fn add(&mut self, queued: &QueuedBatch) {
        let tasks = queued.ready.batch.tasks();
        self.commands += tasks.len();
        self.weight += tasks
            .iter()
            .map(|task| task.command.size.weight())
            .sum::<usize>();
    }

    fn has_room(&self) -> bool {
        self.commands < GROUP_COMMANDS_MAX && self.weight < TRANSACTION_WEIGHT_MAX
    }
}

async fn commit_groups(
    deps: Arc<TaxpayerDeps>,
    large_turns: Arc<LargeTurns>,
    mut queue: mpsc::UnboundedReceiver<QueuedBatch>,
) {
    while let Some(first) = queue.recv().await {
        // The actors on this thread that are ready to run send their batches first. So groups are larger, and no batch
        // waits for others that may never come.
        for _ in 0..YIELDS {
            yield_now().await;
        }
        let mut size = GroupSize::default();
        size.add(&first);
        let mut group = vec![first];
        while size.has_room()
            && let Ok(next) = queue.try_recv()
        {
            size.add(&next);
            group.push(next);
        }
        deps.store
            .metrics()
            .transaction_commands
            .observe(to_f64(size.commands));
        // If the code around the commands panics, the committer continues with the next group. The senders of this
        // group get the error `Unsettled`.
        let _ = AssertUnwindSafe(commit_group(&deps, &large_turns, group))
            .catch_unwind()
            .await;
    }
}

fn to_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

async fn commit_group(deps: &TaxpayerDeps, large_turns: &LargeTurns, mut group: Vec<QueuedBatch>) {
    let members = group
        .iter_mut()
        .map(|QueuedBatch { ready, .. }| TransactionMember {
            id: ready.id,
            cached: ready.cached.take(),
            batch: &ready.batch,
            tasks: ready.batch.tasks(),
        });
    match execute_group(deps, members.collect()).await {
        Ok(outcomes) => {
            for (QueuedBatch { ready, reply }, outcome) in group.into_iter().zip(outcomes) {
                let answer = match outcome {
                    MemberOutcome::Executed(executed) => {
                        large_turns.record_small_commit(ready.id);
                        Reply::Executed(executed)
                    }
                    MemberOutcome::Held(lanes) => Reply::Held(ready, lanes),
                    MemberOutcome::LeftOut => Reply::Alone(ready),
                };
                send_reply(reply, Ok(answer));
            }
        }
        Err(error) => {
            for QueuedBatch { ready, reply } in group {
                let may_succeed = error.may_concern_one_member();
                send_reply(
                    reply,
                    if may_succeed {
                        Ok(Reply::Failed(ready))
                    } else {
                        Err(error.clone())
                    },
                );
            }
        }
    }
}

fn send_reply(
    reply: oneshot::Sender<Result<Reply, StoreError>>,
    answer: Result<Reply, StoreError>,
) {
    // The send fails only if the actor has ended. An ended actor needs no reply.
    let _ = reply.send(answer);
}
