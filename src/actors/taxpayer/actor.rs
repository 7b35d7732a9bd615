//! The actor of one taxpayer, the only writer of this taxpayer's data. A committer executes its batches together with
//! the batches of other taxpayers. A batch that the committer leaves out is executed here, in a transaction of its own.

use std::sync::Arc;

use secrecy::SecretString;

use crate::actors::notifiers::Notifiers;
use crate::actors::supervision::batch_actor::{self, BATCH_MAX};
use crate::actors::supervision::{
    Admission, AdmissionLimits, Arbiters, CommandBatch, NodeKind, Registry, RegistrySettings, RestartPolicy,
    Task, Tree, Worker,
};
use crate::actors::taxpayer::command::{CommandEnvelope, CommandError, TaxpayerCommand};
use crate::actors::taxpayer::committer::{Committers, ReadyBatch, Reply};
use crate::actors::taxpayer::handle::{CommandResult, TaxpayerHandle};
use crate::actors::taxpayer::panic_orders::PanicOrders;
use crate::actors::taxpayer::quarantined;
use crate::actors::taxpayer::read_set::CachedState;
use crate::actors::taxpayer::transaction::{CommandResults, Executed, Member, execute_alone};
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::verification::VerificationPolicy;
use crate::domain::pipeline::deadline::DeadlinePolicy;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;

#[derive(Clone)]
pub struct TaxpayerDeps {
    pub store: Store,
    pub clock: SharedClock,
    pub notifiers: Notifiers,
    pub deadlines: DeadlinePolicy,
    pub verification: VerificationPolicy,
    pub panic_orders: PanicOrders,
}

struct TaxpayerActor {
    id: TaxpayerId,
    deps: Arc<TaxpayerDeps>,
    committers: Committers,
    cached: Option<CachedState>,
}

impl TaxpayerHandle {
    /// Actors start at their first command.
    pub fn new(deps: TaxpayerDeps, tree: &Tree, arbiters: &Arc<Arbiters>, limits: AdmissionLimits) -> Self {
        let admission = Admission::new(limits, Arc::clone(tree.counters()));
        let settings = RegistrySettings { kind: NodeKind::Taxpayer, policy: RestartPolicy::default() };
        let deps = Arc::new(deps);
        let committers = Committers::start(&deps, arbiters);
        let (store, panic_orders) = (deps.store.clone(), deps.panic_orders.clone());
        let registry = Registry::new(tree, arbiters, admission, settings, move |id: &TaxpayerId, seat| {
            let (id, deps, committers) = (*id, Arc::clone(&deps), committers.clone());
            batch_actor::start(seat, BATCH_MAX, move || TaxpayerActor {
                id,
                deps: Arc::clone(&deps),
                committers: committers.clone(),
                cached: None,
            })
        });
        Self::to(registry, store, panic_orders)
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

    /// A large command is a batch of its own, which bounds the size of a transaction.
    fn is_large(envelope: &CommandEnvelope) -> bool {
        matches!(envelope.command, TaxpayerCommand::CreateBatch(_))
    }

    fn contents(envelope: &CommandEnvelope) -> Option<SecretString> {
        quarantined::contents(&envelope.command)
    }

    async fn work(mut self, batch: CommandBatch<CommandEnvelope>) -> (Self, CommandResults) {
        self.deps.panic_orders.obey(self.id);
        let ids: Vec<_> = batch.tasks().iter().map(|task| task.id).collect();
        let ready = Box::new(ReadyBatch { id: self.id, cached: self.cached.take(), batch });
        let results = match self.committers.execute(ready).await {
            Ok(Reply::Executed(executed)) => self.keep(*executed),
            Ok(Reply::Alone(ready)) => Box::pin(self.execute_alone(*ready)).await,
            Err(error) => ids.into_iter().map(|id| (id, Err(CommandError::Store(error.clone())))).collect(),
        };
        (self, results)
    }
}

impl TaxpayerActor {
    /// Executes a batch in a transaction of its own. If it fails because of a single command, executes each command in
    /// a transaction of its own.
    async fn execute_alone(&mut self, ready: ReadyBatch) -> CommandResults {
        let ReadyBatch { cached, batch, .. } = ready;
        self.cached = cached;
        match self.execute_tasks(&batch, batch.tasks()).await {
            Err(error) if may_succeed_alone(&error, batch.tasks()) => {
                let mut results = Vec::with_capacity(batch.tasks().len());
                for task in batch.tasks() {
                    let task = std::slice::from_ref(task);
                    let executed = self.execute_tasks(&batch, task).await;
                    results.extend(executed.unwrap_or_else(|error| fail_all(task, &error)));
                }
                results
            }
            Err(error) => fail_all(batch.tasks(), &error),
            Ok(results) => results,
        }
    }

    async fn execute_tasks(
        &mut self,
        batch: &CommandBatch<CommandEnvelope>,
        tasks: &[Task<CommandEnvelope>],
    ) -> Result<CommandResults, StoreError> {
        let member = Member { id: self.id, cached: self.cached.take(), batch, tasks };
        Ok(self.keep(execute_alone(&self.deps, member).await?))
    }

    fn keep(&mut self, executed: Executed) -> CommandResults {
        self.cached = Some(executed.cached);
        executed.results
    }
}

/// Returns true if the commands may succeed one by one after their common transaction failed. After a duplicate, a new
/// transaction sees the row of the other taxpayer. Any other fault may come from only one of the commands.
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
