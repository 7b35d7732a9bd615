//! The commands of one taxpayer as one member of a transaction that several taxpayers may share: the lanes, leases and
//! idempotency keys that they need, and their outcome.

use supervision::{CommandBatch, Task};
use timing::CommandId;
use timing::trace::TraceContext;

use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::handle::{CommandEnvelope, CommandResult};
use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::lanes::{LaneKind, LaneName, Lease};

pub(super) type CommandResults = Vec<(CommandId, CommandResult)>;

/// The commands of one taxpayer in a transaction.
pub(super) struct TransactionMember<'a> {
    pub(super) id: TaxpayerId,
    pub(super) cached: Option<CachedState>,
    pub(super) batch: &'a CommandBatch<CommandEnvelope>,
    /// All tasks of the batch, or one of them.
    pub(super) tasks: &'a [Task<CommandEnvelope>],
}

/// The taxpayer's cached state after the transaction, and the result of each command.
pub(super) struct ExecutedBatch {
    pub(super) cached: CachedState,
    pub(super) results: CommandResults,
}

/// The outcome of one member of a transaction.
pub(super) enum MemberOutcome {
    Executed(Box<ExecutedBatch>),
    /// Another transaction has locked these lanes, which the member needs. Nothing was executed.
    Held(Vec<LaneName>),
    /// A command panicked, or a lane that the member needs does not exist yet. Nothing was executed.
    LeftOut,
}

impl TransactionMember<'_> {
    pub(super) fn taxpayer_lane(&self) -> LaneName {
        LaneName::new(LaneKind::Taxpayer, self.id.to_string())
    }

    /// Returns the lanes to lock before anything is read: the taxpayer's and those of the runs whose steps are
    /// recorded.
    pub(super) fn lanes_to_lock(&self) -> impl Iterator<Item = LaneName> {
        std::iter::once(self.taxpayer_lane())
            .chain(step_leases(self.tasks).map(|(_, lease)| LaneName::from(lease)))
    }
}

/// Returns the ids of the commands that record steps of a run, each with the lease of the run's lane.
pub(super) fn step_leases(
    tasks: &[Task<CommandEnvelope>],
) -> impl Iterator<Item = (CommandId, &Lease)> {
    tasks.iter().filter_map(|task| {
        let lease = task.command.command.run_lease()?;
        Some((task.id, lease))
    })
}

/// Returns the traces of the requests that sent these commands.
pub(super) fn traces(tasks: &[Task<CommandEnvelope>]) -> impl Iterator<Item = TraceContext> {
    tasks.iter().filter_map(|task| task.command.trace)
}

pub(super) fn idempotency_claims<'a>(
    tasks: impl Iterator<Item = &'a Task<CommandEnvelope>>,
) -> Vec<&'a IdempotencyClaim> {
    tasks
        .filter_map(|task| task.command.claim.as_ref())
        .collect()
}
