//! The audit: security changes and operator actions, with their actors. An entry is written in the
//! transaction of its change and never changes.

use jiff::Timestamp;

use crate::domain::kernel::clock;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

words! {
    /// Audited actions.
    AuditAction {
        PauseRun = "run.pause",
        ResumeRun = "run.resume",
        RetryRun = "run.retry",
        CancelRun = "run.cancel",
        ReplayDelivery = "delivery.replay",
        ReplayDeadLetters = "dead-letters.replay",
        Reconcile = "taxpayer.reconcile",
        SetIntegration = "taxpayer.set-integration",
        VerifyTaxpayer = "taxpayer.verify",
        CreateTaxpayer = "taxpayer.create",
        UpdateProfile = "taxpayer.update-profile",
        SetSubscription = "taxpayer.set-subscription",
        RotateTaxpayerKey = "taxpayer.rotate-key",
        UpdateWebhook = "webhook.update",
        RotateWebhookSecret = "webhook.rotate-secret",
        CreateIntegrator = "integrator.create",
        CreateOperator = "operator.create",
        RotateIntegratorKey = "integrator.rotate-key",
        RevokeIntegratorKeys = "integrator.revoke-keys",
        RotateOperatorKey = "operator.rotate-key",
        RevokeOperatorKeys = "operator.revoke-keys",
    }
}

words! {
    /// The kinds of actors.
    ActorKind { Operator = "operator", Integrator = "integrator", CommandLine = "command-line" }
}

/// The author of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    Operator(i64),
    Integrator(IntegratorId),
    /// A person who can run the program beside its database.
    CommandLine,
}

impl Actor {
    pub fn kind(self) -> ActorKind {
        match self {
            Self::Operator(_) => ActorKind::Operator,
            Self::Integrator(_) => ActorKind::Integrator,
            Self::CommandLine => ActorKind::CommandLine,
        }
    }

    pub fn operator_id(self) -> Option<i64> {
        if let Self::Operator(id) = self { Some(id) } else { None }
    }

    pub fn integrator_id(self) -> Option<IntegratorId> {
        if let Self::Integrator(id) = self { Some(id) } else { None }
    }
}

/// An operator action: its author and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorRequest {
    pub operator_id: i64,
    pub reason: Option<String>,
}

/// An entry of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: uuid::Uuid,
    pub at: Timestamp,
    pub actor: Actor,
    pub action: AuditAction,
    /// The integrator that can read the entry: the actor itself, or the one whose account changed.
    pub integrator_id: Option<IntegratorId>,
    pub taxpayer_id: Option<TaxpayerId>,
    /// The id of the run, the delivery, the reconciliation, the taxpayer, the integrator or the operator.
    pub subject: String,
    pub from_state: Option<String>,
    pub to_state: Option<String>,
    pub reason: Option<String>,
}

impl AuditEntry {
    /// Creates an entry with actor, action and subject only. An integrator can read its own actions.
    pub fn new(actor: Actor, action: AuditAction, subject: &impl ToString, at: Timestamp) -> Self {
        Self {
            id: clock::new_id(),
            at,
            actor,
            action,
            integrator_id: actor.integrator_id(),
            taxpayer_id: None,
            subject: subject.to_string(),
            from_state: None,
            to_state: None,
            reason: None,
        }
    }

    /// An operator's action, with its reason.
    pub fn ordered(
        order: &OperatorRequest,
        action: AuditAction,
        subject: &impl ToString,
        at: Timestamp,
    ) -> Self {
        let reason = order.reason.clone();
        Self { reason, ..Self::new(Actor::Operator(order.operator_id), action, subject, at) }
    }

    /// The same entry, about a taxpayer.
    #[must_use]
    pub fn of_taxpayer(self, taxpayer: TaxpayerId) -> Self {
        Self { taxpayer_id: Some(taxpayer), ..self }
    }

    /// The same entry, about an integrator's account. The integrator can read it.
    #[must_use]
    pub fn of_integrator(self, integrator: IntegratorId) -> Self {
        Self { integrator_id: Some(integrator), ..self }
    }

    /// The same entry, with the state before and after.
    #[must_use]
    pub fn between(self, from: Option<String>, to: Option<String>) -> Self {
        Self { from_state: from, to_state: to, ..self }
    }
}
