//! The handle of the taxpayer actors: puts a command into an envelope, sends it to the actor of its taxpayer and
//! returns the command's output. The actor's queue holds commands of all types, so the envelope hides the type of the
//! command, and the handle casts the output back to its type.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use database::StoreError;
use supervision::{Registry, SendError};
use timing::CommandId;
use timing::trace::{Span, SpanKind, TraceContext};

use crate::actors::taxpayer::acting;
use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::paused::PausedTaxpayers;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::scheduled_panics::ScheduledPanics;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::usage::TaxpayerUsage;
use crate::actors::taxpayer::weight::{CommandSize, SMALL_WEIGHT_MAX};
use crate::domain::access::claim::{IdempotencyClaim, StoredResponse};
use crate::domain::kernel::audit::ActorWithName;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::store::Store;
use crate::store::accounts::key_leases;
use crate::store::lanes::Lease;

/// The reason why a command did not take effect, or why its effect is unknown.
#[derive(Debug, thiserror::Error)]
pub enum TaxpayerError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(StoreError),
    #[error("too many requests for this taxpayer are in progress")]
    Busy { retry_after: Duration },
    #[error("too many requests are in progress")]
    Overloaded { retry_after: Duration },
    #[error("an operator has paused the taxpayer")]
    Paused,
    #[error("command {command_id} was interrupted: read the invoice before sending it again")]
    Interrupted { command_id: CommandId },
    #[error("command {reference} failed twice and was quarantined")]
    Quarantined { reference: CommandId },
    #[error("a request with this idempotency key was executed before")]
    AlreadyProcessed,
}

impl From<StoreError> for TaxpayerError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<CommandError> for TaxpayerError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Refused(refusal) => Self::Refused(refusal),
            CommandError::Store(error) => Self::Store(error),
            CommandError::AlreadyProcessed => Self::AlreadyProcessed,
        }
    }
}

impl From<SendError> for TaxpayerError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Busy { retry_after } => Self::Busy { retry_after },
            SendError::Overloaded { retry_after } => Self::Overloaded { retry_after },
            SendError::Interrupted { command_id } => Self::Interrupted { command_id },
            SendError::Quarantined { reference } => Self::Quarantined { reference },
            SendError::Stopped => Self::Overloaded {
                retry_after: Duration::from_secs(1),
            },
        }
    }
}

/// Sends commands to the taxpayer actors. The actor of a taxpayer starts at the taxpayer's first command.
#[derive(Clone)]
pub struct TaxpayerHandle {
    registry: Arc<Registry<TaxpayerId, CommandEnvelope, CommandResult>>,
    store: Store,
    scheduled_panics: ScheduledPanics,
    paused: PausedTaxpayers,
    usage: TaxpayerUsage,
}

impl TaxpayerHandle {
    pub(super) fn with_registry(
        registry: Registry<TaxpayerId, CommandEnvelope, CommandResult>,
        store: Store,
        scheduled_panics: ScheduledPanics,
    ) -> Self {
        Self {
            registry: Arc::new(registry),
            store,
            scheduled_panics,
            paused: PausedTaxpayers::default(),
            usage: TaxpayerUsage::default(),
        }
    }

    pub(crate) fn registry(&self) -> &Registry<TaxpayerId, CommandEnvelope, CommandResult> {
        &self.registry
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub fn scheduled_panics(&self) -> &ScheduledPanics {
        &self.scheduled_panics
    }

    pub fn paused_taxpayers(&self) -> &PausedTaxpayers {
        &self.paused
    }

    pub fn usage(&self) -> &TaxpayerUsage {
        &self.usage
    }

    /// Fails with `Paused` if the commands of the current actor for this taxpayer are refused, because an operator has
    /// paused the taxpayer. Call this before changing something at the authority if the command is sent only
    /// afterwards.
    pub fn check_not_paused(&self, taxpayer: TaxpayerId) -> Result<(), TaxpayerError> {
        let acting = acting::current_actor();
        if self.paused.is_held_back(taxpayer, acting.as_ref()) {
            return Err(TaxpayerError::Paused);
        }
        Ok(())
    }

    /// Sends a command. When this returns its output, the change is stored.
    pub async fn send<C: TaxpayerCommand>(
        &self,
        taxpayer: TaxpayerId,
        command: C,
    ) -> Result<C::Output, TaxpayerError> {
        self.send_once(taxpayer, command, None).await
    }

    /// Sends a command with its idempotency key, if the request has one. Fails with `AlreadyProcessed` if a command
    /// with this key was executed before. While an operator has paused the taxpayer, refuses the commands of its
    /// integrator, contact persons and keys, except commands that end keys.
    pub async fn send_once<C: TaxpayerCommand>(
        &self,
        taxpayer: TaxpayerId,
        command: C,
        once: Option<OnceClaim<C::Output>>,
    ) -> Result<C::Output, TaxpayerError> {
        let acting = acting::current_actor();
        if !C::ENDS_KEYS && self.paused.is_held_back(taxpayer, acting.as_ref()) {
            return Err(TaxpayerError::Paused);
        }
        let mut span = TraceContext::current().map(|trace| {
            let name = format_args!("command {}", C::NAME);
            Span::child(trace, SpanKind::Internal, name)
        });
        let envelope =
            CommandEnvelope::new(command, once, acting).in_trace(span.as_ref().map(Span::context));
        let answer = self.send_envelope(taxpayer, envelope).await;
        if let Some(span) = &mut span {
            describe_span(span, taxpayer, answer.as_ref().err());
        }
        drop(span);
        let output = answer?;
        if C::ENDS_KEYS {
            key_leases::await_key_change_everywhere(&self.store).await;
        }
        // The envelope holds a command of this type, so the output has its type. If it had another type, the change
        // would be stored all the same, so the error must not say that nothing was stored.
        let output = output.downcast().map_err(|_| StoreError::Unsettled)?;
        Ok(*output)
    }

    /// Sends a command. Counts it in the taxpayer's usage of this process, with the time until its answer.
    async fn send_envelope(
        &self,
        taxpayer: TaxpayerId,
        envelope: CommandEnvelope,
    ) -> Result<Output, TaxpayerError> {
        let sent = Instant::now();
        let answer = self.registry.send(&taxpayer, envelope).await;
        if matches!(answer, Err(SendError::Busy { .. })) {
            self.usage.record_throttled_request(taxpayer);
        } else {
            let has_succeeded = matches!(answer, Ok(Ok(_)));
            self.usage
                .record_command(taxpayer, has_succeeded, sent.elapsed());
        }
        Ok(answer??)
    }
}

/// Adds the outcome of a command to its span. A refusal is an answer, not a failure.
fn describe_span(span: &mut Span, taxpayer: TaxpayerId, error: Option<&TaxpayerError>) {
    span.set_number("einvoice.taxpayer_id", taxpayer.0);
    let outcome = match error {
        None => "done",
        Some(TaxpayerError::Refused(_)) => "refused",
        Some(TaxpayerError::AlreadyProcessed) => "already_processed",
        Some(_) => {
            span.mark_failed();
            "failed"
        }
    };
    span.set_text("einvoice.outcome", outcome);
}

/// Renders the HTTP answer for an output. The answer is stored in the same transaction as the change. `None` if an
/// answer of this kind cannot be stored.
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
    pub(super) size: CommandSize,
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
    fn contents_for_replay(&self) -> Option<String>;
    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>);
    fn execute(&self, uow: &mut UnitOfWork) -> Result<ExecutedCommand, Refusal>;
}

/// A command of a known type, and the function that renders its HTTP answer, if the answer is to be stored.
struct CommandWithRender<C: TaxpayerCommand> {
    command: C,
    render: Option<Render<C::Output>>,
}

impl<C: TaxpayerCommand> AnyCommand for CommandWithRender<C> {
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

    fn contents_for_replay(&self) -> Option<String> {
        self.command.contents_for_replay()
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
        let acting = sender.unwrap_or_else(|| command.default_audit_actor().into());
        let size = command.size();
        let (claim, render) = once.map(|once| (once.claim, once.render)).unzip();
        Self {
            command: Box::new(CommandWithRender {
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
