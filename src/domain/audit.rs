//! What an operator did: to which thing, when and why. An entry is written in the transaction of what it tells
//! of, and never changed.

use jiff::Timestamp;

use crate::domain::codes::words;
use crate::domain::ids::TaxpayerId;

words! {
    /// What operators do.
    AuditAction {
        PauseRun = "run.pause",
        ResumeRun = "run.resume",
        RetryRun = "run.retry",
        CancelRun = "run.cancel",
        ReplayDelivery = "delivery.replay",
        ReplayDeadLetters = "dead-letters.replay",
        Reconcile = "taxpayer.reconcile",
        SetIntegration = "taxpayer.set-integration",
    }
}

/// Who wants something, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub operator_id: i64,
    pub reason: Option<String>,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: uuid::Uuid,
    pub at: Timestamp,
    pub operator_id: i64,
    pub action: AuditAction,
    pub taxpayer_id: Option<TaxpayerId>,
    /// The id of the run, the delivery, the reconciliation or the taxpayer.
    pub subject: String,
    pub from_state: Option<String>,
    pub to_state: Option<String>,
    pub reason: Option<String>,
}
