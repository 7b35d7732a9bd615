//! The handle of the taxpayer actors: sends a command to the actor of its taxpayer and returns the command's output.

use std::sync::Arc;
use std::time::{Duration, Instant};

use database::StoreError;
use supervision::{Registry, SendError};
use timing::CommandId;
use timing::trace::{Span, SpanKind, TraceContext};

use crate::actors::taxpayer::acting;
use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::envelope::{
    CommandEnvelope, CommandError, CommandResult, OnceClaim, Output,
};
use crate::actors::taxpayer::panic_orders::PanicOrders;
use crate::actors::taxpayer::paused::PausedTaxpayers;
use crate::actors::taxpayer::usage::TaxpayerUsage;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::store::Store;
use crate::store::accounts::key_leases;

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
    panic_orders: PanicOrders,
    paused: PausedTaxpayers,
    usage: TaxpayerUsage,
}

impl TaxpayerHandle {
    pub(super) fn to(
        registry: Registry<TaxpayerId, CommandEnvelope, CommandResult>,
        store: Store,
        panic_orders: PanicOrders,
    ) -> Self {
        Self {
            registry: Arc::new(registry),
            store,
            panic_orders,
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

    pub fn panic_orders(&self) -> &PanicOrders {
        &self.panic_orders
    }

    pub fn paused_taxpayers(&self) -> &PausedTaxpayers {
        &self.paused
    }

    pub fn usage(&self) -> &TaxpayerUsage {
        &self.usage
    }

    /// Sends a command. When this returns its output, the change is stored.
    pub async fn send<C: TaxpayerCommand>(
        &self,
        taxpayer: TaxpayerId,
        command: C,
    ) -> Result<C::Output, TaxpayerError> {
        self.send_once(taxpayer, command, None).await
    }

    /// Sends a command with its idempotency key, if the request has one. While the taxpayer is paused, those who act for
    /// it may only end keys.
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
            key_leases::await_acknowledgements(&self.store).await;
        }
        // The envelope holds a command of this type, so the output has its type. If it had another type, the change
        // would be stored all the same, so the error must not say that nothing was stored.
        let output = output.downcast().map_err(|_| StoreError::Unsettled)?;
        Ok(*output)
    }

    /// Sends a command, and records what it cost.
    async fn send_envelope(
        &self,
        taxpayer: TaxpayerId,
        envelope: CommandEnvelope,
    ) -> Result<Output, TaxpayerError> {
        let sent = Instant::now();
        let answer = self.registry.send(&taxpayer, envelope).await;
        if matches!(answer, Err(SendError::Busy { .. })) {
            self.usage.record_throttled(taxpayer);
        } else {
            let is_stored = matches!(answer, Ok(Ok(_)));
            self.usage
                .record_command(taxpayer, is_stored, sent.elapsed());
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
            span.fail();
            "failed"
        }
    };
    span.set_text("einvoice.outcome", outcome);
}
