//! A command on its way to the actor, with its sender and its idempotency key. The actor's queue holds commands of all
//! types, so the envelope hides the type of the command, and the handle casts the output back to its type.

use std::any::Any;
use std::sync::Arc;

use database::StoreError;
use timing::trace::TraceContext;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::{SMALL_WEIGHT_MAX, Size};
use crate::domain::access::claim::{IdempotencyClaim, StoredResponse};
use crate::domain::kernel::audit::ActorWithName;
use crate::domain::kernel::refusal::Refusal;
use crate::store::lanes::Lease;

/// Renders the HTTP answer for an output. The answer is stored in the same transaction as the change.
pub type Render<O> = Arc<dyn Fn(&O) -> Option<StoredResponse> + Send + Sync>;

/// The idempotency key of a command. Of all commands with the same key, only the first is executed.
pub struct OnceClaim<O> {
    pub claim: IdempotencyClaim,
    /// `None` if the HTTP answer contains a secret: such an answer is shown once and never stored.
    pub render: Option<Render<O>>,
}

impl<O> OnceClaim<O> {
    /// Returns the key of a command whose answer is not stored.
    pub fn without_answer(claim: IdempotencyClaim) -> Self {
        Self {
            claim,
            render: None,
        }
    }
}

/// The output of a command. The value has the type `TaxpayerCommand::Output` of the command.
pub(super) type Output = Box<dyn Any + Send + Sync>;

pub(super) type CommandResult = Result<Output, CommandError>;

/// The reason why a command was not executed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A command with the same idempotency key was executed before. Its answer is stored, unless it contains a secret.
    #[error("a command with this key was executed before")]
    AlreadyProcessed,
}

/// A command with its idempotency key, as the actor receives it.
pub struct CommandEnvelope {
    pub(super) command: Box<dyn AnyCommand>,
    /// `None` if the request has no idempotency key.
    pub(super) claim: Option<IdempotencyClaim>,
    /// The sender of the command.
    pub(super) acting: ActorWithName,
    /// The trace of the request that sends the command.
    pub(super) trace: Option<TraceContext>,
    pub(super) size: Size,
}

/// The outcome of a command: the output for its sender, and the HTTP answer to store for repeats of its request.
pub(super) struct ExecutedCommand {
    pub(super) output: Output,
    pub(super) answer: Option<StoredResponse>,
}

/// A command whose type is hidden. The methods are those of `TaxpayerCommand`.
pub(super) trait AnyCommand: Send + Sync {
    fn name(&self) -> &'static str;
    fn is_large(&self) -> bool;
    fn sets_unique_values(&self) -> bool;
    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts);
    fn run_lease(&self) -> Option<&Lease>;
    fn contents(&self) -> Option<String>;
    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>);
    fn execute(&self, uow: &mut UnitOfWork) -> Result<ExecutedCommand, Refusal>;
}

struct RenderedCommand<C: TaxpayerCommand> {
    command: C,
    render: Option<Render<C::Output>>,
}

impl<C: TaxpayerCommand> AnyCommand for RenderedCommand<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn is_large(&self) -> bool {
        C::IS_LARGE
    }

    fn sets_unique_values(&self) -> bool {
        C::SETS_UNIQUE_VALUES
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        self.command.add_wanted_id_counts(wanted);
    }

    fn run_lease(&self) -> Option<&Lease> {
        self.command.run_lease()
    }

    fn contents(&self) -> Option<String> {
        self.command.contents()
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        self.command.add_reads(wanted, context);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<ExecutedCommand, Refusal> {
        let output = self.command.execute(uow)?;
        let answer = self.render.as_ref().and_then(|render| render(&output));
        Ok(ExecutedCommand {
            output: Box::new(output),
            answer,
        })
    }
}

impl CommandEnvelope {
    /// Wraps a command. `sender` is `None` if no request names an actor.
    pub(super) fn new<C: TaxpayerCommand>(
        command: C,
        once: Option<OnceClaim<C::Output>>,
        sender: Option<ActorWithName>,
    ) -> Self {
        let acting = sender.unwrap_or_else(|| command.own_actor().into());
        let size = command.size();
        let (claim, render) = once.map(|once| (once.claim, once.render)).unzip();
        Self {
            command: Box::new(RenderedCommand {
                command,
                render: render.flatten(),
            }),
            claim,
            acting,
            trace: None,
            size,
        }
    }

    #[must_use]
    pub(super) fn in_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// A large command has a transaction of its own and takes turns with other large commands.
    pub(super) fn is_large(&self) -> bool {
        self.command.is_large() || self.size.weight() > SMALL_WEIGHT_MAX
    }

    /// Returns true if the command may be executed in one transaction with commands of other taxpayers.
    pub(super) fn may_share_transaction(&self) -> bool {
        !self.is_large() && !self.command.sets_unique_values()
    }
}
