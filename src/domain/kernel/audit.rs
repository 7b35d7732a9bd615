//! The audit log of security changes and operator actions. An entry is written in the same transaction as the change,
//! and is never modified.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use timing::clock;
use timing::trace::TraceContext;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{ContactId, IntegratorId, KeyId, TaxpayerId};

words! {
    /// An action that the audit records.
    AuditAction {
        PauseRun = "run.pause",
        ResumeRun = "run.resume",
        RetryRun = "run.retry",
        CancelRun = "run.cancel",
        MoveRuns = "runs.move",
        ReplayDelivery = "delivery.replay",
        DropDelivery = "delivery.drop",
        ReplayDeadLetters = "dead-letters.replay",
        MoveDeadLetters = "dead-letters.move",
        MoveEndpoints = "endpoints.move",
        MoveQuarantine = "quarantine.move",
        Reconcile = "taxpayer.reconcile",
        DecideFindings = "findings.decide",
        ReopenFindings = "findings.reopen",
        SetIntegration = "taxpayer.set-integration",
        VerifyTaxpayer = "taxpayer.verify",
        PauseTaxpayer = "taxpayer.pause",
        ResumeTaxpayer = "taxpayer.resume",
        OrderPanic = "taxpayer.order-panic",
        CreateTaxpayer = "taxpayer.create",
        UpdateProfile = "taxpayer.update-profile",
        UpdateCustomer = "customer.update",
        UpdateImportProfile = "taxpayer.update-import-profile",
        CancelImport = "import.cancel",
        SetSubscription = "taxpayer.set-subscription",
        RotateTaxpayerKey = "taxpayer.rotate-key",
        RevokeTaxpayerKey = "taxpayer.revoke-key",
        UpdateWebhook = "webhook.update",
        SetChat = "chat.set",
        EnableWebhook = "webhook.enable",
        ReplayEvents = "webhook.replay",
        CancelReplay = "webhook.cancel-replay",
        ShareDelivery = "webhook.share-delivery",
        RotateWebhookSecret = "webhook.rotate-secret",
        CreateIntegrator = "integrator.create",
        CreateOperator = "operator.create",
        RotateIntegratorKey = "integrator.rotate-key",
        RevokeIntegratorKeys = "integrator.revoke-keys",
        RotateOperatorKey = "operator.rotate-key",
        RevokeOperatorKeys = "operator.revoke-keys",
        DisableIntegrator = "integrator.disable",
        EnableIntegrator = "integrator.enable",
        DisableOperator = "operator.disable",
        EnableOperator = "operator.enable",
        RemoveOperator = "operator.remove",
        ChangeOperatorRole = "operator.change-role",
        ReplayCommand = "command.replay",
        DropCommand = "command.drop",
        ForgetReplica = "replica.forget",
        TripBreaker = "breaker.trip",
        ResetBreaker = "breaker.reset",
        SignIn = "session.sign-in",
        RefuseSignIn = "session.refuse",
        SignOut = "session.sign-out",
        EndSessions = "session.end-others",
        ChangePassword = "password.change",
        MakeInvitation = "invitation.make",
        MailInvitation = "invitation.mail",
        AcceptInvitation = "invitation.accept",
        EnableSecondFactor = "second-factor.enable",
        DisableSecondFactor = "second-factor.disable",
        ResetSecondFactor = "second-factor.reset",
        LockSecondFactor = "second-factor.lock",
        UseRecoveryCode = "second-factor.use-recovery-code",
        RefuseCode = "second-factor.refuse",
        AddContact = "contact.add",
        ChangeContactRole = "contact.change-role",
        RemoveContact = "contact.remove",
        DisableContact = "contact.disable",
        EnableContact = "contact.enable",
        ShowContactData = "invoice.show-contact-data",
        SubmitInvoice = "invoice.submit",
        TransmitInvoice = "invoice.transmit",
    }
}

words! {
    /// The kind of an actor.
    ActorKind {
        Operator = "operator",
        Integrator = "integrator",
        Contact = "contact",
        TaxpayerKey = "taxpayer-key",
        CommandLine = "command-line",
        Authority = "authority",
        Service = "service",
    }
}

/// The actor behind an event or an audited action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    Operator(i64),
    Integrator(IntegratorId),
    /// A contact person of a taxpayer, signed in to the dashboard.
    Contact(ContactId),
    /// An API key of the taxpayer itself.
    TaxpayerKey(KeyId),
    /// A person who runs the program on the command line, with access to the database.
    CommandLine,
    /// The tax authority, whose answer or notice caused the event.
    Authority,
    /// This service, acting by itself.
    Service,
}

/// An actor, with its name, that sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorWithName {
    pub actor: Actor,
    pub name: Option<Arc<str>>,
    /// The address from which the actor sent the request, if it is known.
    pub address: Option<IpAddr>,
}

/// An actor as events store it and lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedActor {
    pub kind: ActorKind,
    pub id: Option<String>,
    pub name: Option<String>,
}

impl From<Actor> for ActorWithName {
    fn from(actor: Actor) -> Self {
        Self {
            actor,
            name: None,
            address: None,
        }
    }
}

impl From<&ActorWithName> for NamedActor {
    fn from(acting: &ActorWithName) -> Self {
        let name = acting.name.as_deref().map(str::to_owned);
        Self {
            kind: acting.actor.kind(),
            id: acting.actor.id(),
            name,
        }
    }
}

impl NamedActor {
    /// Removes the name, which may be a person's name.
    #[must_use]
    pub fn without_name(self) -> Self {
        Self { name: None, ..self }
    }

    /// Parses the text that an event stores; `None` if the text is not an actor.
    pub fn parse(text: &str) -> Option<Self> {
        strict_json::from_trusted(text).ok()
    }
}

impl Actor {
    pub fn kind(self) -> ActorKind {
        match self {
            Self::Operator(_) => ActorKind::Operator,
            Self::Integrator(_) => ActorKind::Integrator,
            Self::Contact(_) => ActorKind::Contact,
            Self::TaxpayerKey(_) => ActorKind::TaxpayerKey,
            Self::CommandLine => ActorKind::CommandLine,
            Self::Authority => ActorKind::Authority,
            Self::Service => ActorKind::Service,
        }
    }

    /// Returns the id of the actor within its kind.
    pub fn id(self) -> Option<String> {
        match self {
            Self::Operator(id) => Some(id.to_string()),
            Self::Integrator(id) => Some(id.to_string()),
            Self::Contact(id) => Some(id.to_string()),
            Self::TaxpayerKey(id) => Some(id.to_string()),
            Self::CommandLine | Self::Authority | Self::Service => None,
        }
    }

    pub fn key_id(self) -> Option<KeyId> {
        if let Self::TaxpayerKey(id) = self {
            Some(id)
        } else {
            None
        }
    }

    pub fn operator_id(self) -> Option<i64> {
        if let Self::Operator(id) = self {
            Some(id)
        } else {
            None
        }
    }

    pub fn integrator_id(self) -> Option<IntegratorId> {
        if let Self::Integrator(id) = self {
            Some(id)
        } else {
            None
        }
    }

    pub fn contact_id(self) -> Option<ContactId> {
        if let Self::Contact(id) = self {
            Some(id)
        } else {
            None
        }
    }
}

/// The operator who requested an action, and the reason that the operator gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorRequest {
    pub operator_id: i64,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: uuid::Uuid,
    pub at: Timestamp,
    pub actor: Actor,
    pub action: AuditAction,
    /// The integrator that may read the entry: the integrator that acted, or whose account was changed.
    pub integrator_id: Option<IntegratorId>,
    pub taxpayer_id: Option<TaxpayerId>,
    /// The thing that the action concerns: the id of the run, delivery, reconciliation, taxpayer, integrator or
    /// operator, or the IRN of the invoice.
    pub subject: String,
    pub from_state: Option<String>,
    pub to_state: Option<String>,
    pub reason: Option<String>,
    /// The address from which a person signed in or tried to, or from which a key was made or revoked.
    pub address: Option<IpAddr>,
    /// The trace of the request that caused the action.
    pub trace: Option<TraceContext>,
}

impl AuditEntry {
    /// Creates an entry without taxpayer, states and reason. If the actor is an integrator, it may read the entry.
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
            address: None,
            trace: TraceContext::current(),
        }
    }

    /// Creates the entry of an operator's action, with the reason that the operator gave.
    pub fn for_operator_request(
        order: &OperatorRequest,
        action: AuditAction,
        subject: &impl ToString,
        at: Timestamp,
    ) -> Self {
        let reason = order.reason.clone();
        Self {
            reason,
            ..Self::new(Actor::Operator(order.operator_id), action, subject, at)
        }
    }

    /// Sets the address from which the action was requested.
    #[must_use]
    pub fn with_address(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// Sets the taxpayer that the action concerns.
    #[must_use]
    pub fn for_taxpayer(self, taxpayer: TaxpayerId) -> Self {
        Self {
            taxpayer_id: Some(taxpayer),
            ..self
        }
    }

    /// Sets the integrator whose account the action concerns. The integrator may read the entry.
    #[must_use]
    pub fn for_integrator(self, integrator: IntegratorId) -> Self {
        Self {
            integrator_id: Some(integrator),
            ..self
        }
    }

    /// Removes the email from the states of a contact person that was added or removed, because it is contact data.
    #[must_use]
    pub fn without_email(self) -> Self {
        let has_person = [AuditAction::AddContact, AuditAction::RemoveContact];
        if !has_person.contains(&self.action) {
            return self;
        }
        let without_email = |state: String| match split_contact_state(&state) {
            Some((role, _, name)) => format!("{role} {name}"),
            None => state,
        };
        Self {
            from_state: self.from_state.map(without_email),
            to_state: self.to_state.map(without_email),
            ..self
        }
    }

    /// Sets the states before and after the action.
    #[must_use]
    pub fn with_states(self, from: Option<String>, to: Option<String>) -> Self {
        Self {
            from_state: from,
            to_state: to,
            ..self
        }
    }
}

/// Returns the state of a contact person as the entries of its addition and removal keep it: role, email and name. So a
/// person who was removed is still named.
pub fn contact_state(role: &str, email: &str, name: &str) -> String {
    format!("{role} {email} {name}")
}

/// Returns the role, the email and the name in the state of a contact person; `None` in entries from before the name
/// was kept. Neither a role nor an email contains a space.
pub fn split_contact_state(state: &str) -> Option<(&str, &str, &str)> {
    let (role, rest) = state.split_once(' ')?;
    let (email, name) = rest.split_once(' ')?;
    Some((role, email, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_see_the_name_of_a_removed_person_without_the_email() {
        let state = contact_state("owner", "ada@example.com", "Ada van Obi");
        for (action, state, expected) in [
            (
                AuditAction::RemoveContact,
                state.as_str(),
                "owner Ada van Obi",
            ),
            (AuditAction::AddContact, state.as_str(), "owner Ada van Obi"),
            (AuditAction::RemoveContact, "owner", "owner"),
            (AuditAction::ChangeContactRole, "owner", "owner"),
            (AuditAction::RetryRun, "waiting for 3", "waiting for 3"),
        ] {
            let entry = AuditEntry::new(Actor::CommandLine, action, &6, Timestamp::UNIX_EPOCH);
            let entry = entry.with_states(None, Some(state.to_owned()));
            let seen = entry.without_email();
            assert_eq!(seen.from_state, None, "{action}");
            assert_eq!(seen.to_state.as_deref(), Some(expected), "{action}");
        }
    }
}
