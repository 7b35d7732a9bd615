//! The actor of one taxpayer, the only writer of this taxpayer's data. A committer executes its batches together with
//! the batches of other taxpayers. A batch that the committer leaves out is executed here, in a transaction of its own.
//! While an actor waits for a row that another transaction has locked, or for the turn of its large command, it
//! occupies no database connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use database::{Sharing, StoreError};
use secrecy::SecretString;
use supervision::batch_actor::{self, BATCH_MAX, Worker};
use supervision::{
    Admission, AdmissionLimits, Arbiters, CommandBatch, Registry, RegistrySettings, RestartPolicy,
    Task, Tree, run_on_own_thread,
};
use timing::trace::Span;

use crate::actors::kinds;
use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::committer::{Committers, ReadyBatch, Reply};
use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::handle::{
    CommandEnvelope, CommandError, CommandResult, TaxpayerHandle,
};
use crate::actors::taxpayer::held_lanes::HeldLanes;
use crate::actors::taxpayer::large_turns::LargeTurns;
use crate::actors::taxpayer::member::{
    CommandResults, ExecutedBatch, MemberOutcome, TransactionMember, traces,
};
use crate::actors::taxpayer::own_transaction::{execute_alone, execute_large};
use crate::actors::taxpayer::quarantined;
use crate::actors::taxpayer::weight::TRANSACTION_WEIGHT_MAX;
use crate::domain::access::payer::Payer;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::lanes::LaneName;

/// After one of a taxpayer's commands failed in a transaction of its own, the taxpayer's batches stay out of the
/// transactions that several taxpayers share (groups) for this long, because a similar command would make a whole group
/// fail.
const KEPT_APART_FOR: Duration = Duration::from_mins(1);

/// Everything that the actors of all taxpayers share.
#[derive(Clone)]
struct SharedParts {
    deps: Arc<TaxpayerDeps>,
    committers: Committers,
    held_lanes: Arc<HeldLanes>,
    large_turns: Arc<LargeTurns>,
}

struct TaxpayerActor {
    id: TaxpayerId,
    shared: SharedParts,
    cached: Option<CachedState>,
    /// The time until which the taxpayer's batches stay out of groups (`KEPT_APART_FOR`); `None` before the first
    /// failure.
    apart_until: Option<Instant>,
}

impl TaxpayerHandle {
    /// Returns a handle. The actor of a taxpayer starts at its first command.
    pub fn new(
        deps: TaxpayerDeps,
        tree: &Tree,
        arbiters: &Arc<Arbiters>,
        limits: AdmissionLimits,
    ) -> Self {
        let admission = Admission::new(limits, Arc::clone(tree.counters()));
        let settings = RegistrySettings {
            kind: kinds::TAXPAYER,
            policy: RestartPolicy::default(),
        };
        let store = deps.store.clone();
        let scheduled_panics = deps.scheduled_panics.clone();
        let deps = Arc::new(deps);
        let large_turns = Arc::new(LargeTurns::new(store.concurrent_large()));
        let shared = SharedParts {
            committers: Committers::start(&deps, arbiters, &large_turns),
            held_lanes: Arc::new(HeldLanes::new(store.clone())),
            large_turns,
            deps,
        };
        let registry = Registry::new(
            tree,
            arbiters,
            admission,
            settings,
            move |id: &TaxpayerId, context| {
                let id = *id;
                let shared = shared.clone();
                batch_actor::start(context, BATCH_MAX, move || TaxpayerActor {
                    id,
                    shared: shared.clone(),
                    cached: None,
                    apart_until: None,
                })
            },
        );
        Self::with_registry(registry, store, scheduled_panics)
    }
}

impl Worker for TaxpayerActor {
    type Command = CommandEnvelope;
    type Reply = CommandResult;

    fn name(envelope: &CommandEnvelope) -> &'static str {
        envelope.command.name()
    }

    fn outcome(result: &CommandResult) -> &'static str {
        match result {
            Ok(_) => "done",
            Err(CommandError::Refused(_)) => "refused",
            Err(_) => "failed",
        }
    }

    const WEIGHT_MAX: usize = TRANSACTION_WEIGHT_MAX;

    fn weight(envelope: &CommandEnvelope) -> usize {
        envelope.size.weight()
    }

    /// True if the command must be a batch of its own, so that no transaction becomes too long.
    fn is_large(envelope: &CommandEnvelope) -> bool {
        envelope.is_large()
    }

    fn contents(envelope: &CommandEnvelope) -> Option<SecretString> {
        quarantined::replay_contents(envelope)
    }

    async fn work(mut self, batch: CommandBatch<CommandEnvelope>) -> (Self, CommandResults) {
        let deps = &self.shared.deps;
        deps.scheduled_panics.panic_if_scheduled(self.id);
        let spans = Span::begin_in_each(traces(batch.tasks()), "taxpayer actor");
        let results = if self.apart_until.is_some_and(|until| Instant::now() < until) {
            Box::pin(self.execute_batch_alone(&batch, Sharing::Apart)).await
        } else {
            self.execute_in_shared_transaction(batch).await
        };
        drop(spans);
        (self, results)
    }
}

impl TaxpayerActor {
    /// Lets a committer execute the batch together with those of other taxpayers. If another transaction has locked a
    /// lane that the batch needs, waits and tries again. If the committer leaves the batch out for another reason,
    /// executes it alone.
    async fn execute_in_shared_transaction(
        &mut self,
        batch: CommandBatch<CommandEnvelope>,
    ) -> CommandResults {
        let tasks = batch.tasks().iter();
        let ids: Vec<_> = tasks.map(|task| task.id).collect();
        let mut deadline = None;
        let mut ready = Box::new(ReadyBatch {
            id: self.id,
            cached: self.cached.take(),
            batch,
        });
        loop {
            let (batch, sharing) = match self.shared.committers.execute(ready).await {
                Ok(Reply::Executed(executed)) => return self.keep_cached_state(*executed),
                Ok(Reply::Held(left_out, lanes)) => {
                    match self.wait_for_lanes(&lanes, &mut deadline).await {
                        Ok(()) => {
                            ready = left_out;
                            continue;
                        }
                        Err(error) => return error_for_each(left_out.batch.tasks(), &error),
                    }
                }
                Ok(Reply::Alone(mut left_out)) => {
                    self.cached = left_out.cached.take();
                    (left_out.batch, Sharing::Shared)
                }
                Ok(Reply::Failed(left_out)) => (left_out.batch, Sharing::Apart),
                Err(error) => {
                    return ids
                        .into_iter()
                        .map(|id| (id, Err(CommandError::Store(error.clone()))))
                        .collect();
                }
            };
            return Box::pin(self.execute_batch_alone(&batch, sharing)).await;
        }
    }

    /// Executes a batch in a transaction of its own. If that fails and a single command may be the cause, executes each
    /// command in its own transaction and commit, so that only the faulty command fails.
    async fn execute_batch_alone(
        &mut self,
        batch: &CommandBatch<CommandEnvelope>,
        sharing: Sharing,
    ) -> CommandResults {
        let tasks = batch.tasks();
        let error = match self.execute_tasks(batch, tasks, sharing).await {
            Ok(results) => return results,
            Err(error) => error,
        };
        let was_apart = tasks.len() == 1 && sharing == Sharing::Apart;
        if was_apart || !error.may_concern_one_member() || error.is_timeout() {
            return self.fail_commands(tasks, &error);
        }
        let mut results = Vec::with_capacity(tasks.len());
        for task in tasks {
            let task = std::slice::from_ref(task);
            let executed = self.execute_tasks(batch, task, Sharing::Apart).await;
            results.extend(executed.unwrap_or_else(|error| self.fail_commands(task, &error)));
        }
        results
    }

    /// Executes tasks in a transaction of their own. A large command first waits for its turn. If another transaction
    /// has locked a lane, waits and tries again.
    async fn execute_tasks(
        &mut self,
        batch: &CommandBatch<CommandEnvelope>,
        tasks: &[Task<CommandEnvelope>],
        sharing: Sharing,
    ) -> Result<CommandResults, StoreError> {
        let is_large = tasks.iter().any(|task| task.command.is_large());
        let mut deadline = None;
        loop {
            let outcome = if is_large {
                self.execute_large_batch(batch).await
            } else {
                let member = TransactionMember {
                    id: self.id,
                    cached: self.cached.take(),
                    batch,
                    tasks,
                };
                Box::pin(execute_alone(&self.shared.deps, member, sharing)).await
            };
            match outcome? {
                MemberOutcome::Executed(executed) => return Ok(self.keep_cached_state(*executed)),
                MemberOutcome::Held(lanes) => self.wait_for_lanes(&lanes, &mut deadline).await?,
                MemberOutcome::LeftOut => return Err(StoreError::Stale),
            }
        }
    }

    /// Waits for the turn of a large command and executes the command, which is a batch of its own.
    async fn execute_large_batch(
        &mut self,
        batch: &CommandBatch<CommandEnvelope>,
    ) -> Result<MemberOutcome, StoreError> {
        let payer = self
            .shared
            .deps
            .store
            .known_payer(self.id)
            .map(Payer::Integrator);
        let turn = LargeTurns::wait_for_turn(&self.shared.large_turns, self.id, payer).await;
        let id = self.id;
        let cached = self.cached.take();
        let deps = Arc::clone(&self.shared.deps);
        let batch = batch.clone();
        let outcome = run_on_own_thread(move || async move {
            let member = TransactionMember {
                id,
                cached,
                batch: &batch,
                tasks: batch.tasks(),
            };
            Box::pin(execute_large(&deps, member)).await
        })
        .await;
        turn.end();
        outcome.unwrap_or(Err(StoreError::Unsettled))
    }

    /// Waits until these lanes are free. All waits of a batch together take at most the database's lock timeout; after
    /// that they fail with `Locked`.
    async fn wait_for_lanes(
        &self,
        lanes: &[LaneName],
        deadline: &mut Option<Instant>,
    ) -> Result<(), StoreError> {
        let lock_timeout = self.shared.deps.store.lock_timeout();
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + lock_timeout);
        self.shared
            .held_lanes
            .wait_until_free(lanes, deadline)
            .await
    }

    fn keep_cached_state(&mut self, executed: ExecutedBatch) -> CommandResults {
        self.cached = Some(executed.cached);
        executed.results
    }

    /// Returns the error as the result of each command. If the commands themselves may be the cause, keeps the taxpayer
    /// out of groups for a while, and logs the error unless the taxpayer was kept out already. The end of a database
    /// session is no fault of a command: every stop of PostgreSQL ends all sessions.
    fn fail_commands(
        &mut self,
        tasks: &[Task<CommandEnvelope>],
        error: &StoreError,
    ) -> CommandResults {
        if error.may_concern_one_member() && !error.is_session_end() {
            let now = Instant::now();
            if self.apart_until.is_none_or(|until| until < now) {
                let first = tasks.first();
                let command = first.map(|task| task.command.command.name());
                let code = error.code();
                tracing::error!(taxpayer = %self.id, command, code, %error, "a taxpayer's command fails alone");
            }
            self.apart_until = Some(now + KEPT_APART_FOR);
        }
        error_for_each(tasks, error)
    }
}

/// Returns the error as the result of each of these commands.
fn error_for_each(tasks: &[Task<CommandEnvelope>], error: &StoreError) -> CommandResults {
    tasks
        .iter()
        .map(|task| (task.id, Err(CommandError::Store(error.clone()))))
        .collect()
}
