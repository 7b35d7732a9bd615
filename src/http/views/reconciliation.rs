//! The comparison of a taxpayer's invoices of one day with the authority's ledger, as operators see it, with or without
//! the findings.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reconciliation::day::{
    AskedBy, FindingAction, OperatorDecision, Reconciliation, ReconciliationState, RecordedFinding,
};
use crate::domain::reconciliation::finding_kind::FindingKind;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub(crate) struct ReconciliationView<'a> {
    id: uuid::Uuid,
    taxpayer_id: TaxpayerId,
    /// The compared day, written YYYY-MM-DD, in the authority's time zone.
    day: String,
    by: AskedBy,
    state: ReconciliationState,
    attempts: u32,
    /// Number of compared invoices. Each of them is counted in one of the next five fields: `agreed` if both sides
    /// agree, `under_way` if it is still in progress, `mended` if it was repaired, `listed` if an operator has to look
    /// at it, `decided` if an operator has done so.
    compared: u32,
    agreed: u32,
    under_way: u32,
    mended: u32,
    listed: u32,
    decided: u32,
    error: Option<&'a str>,
    created_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
}

impl<'a> From<&'a Reconciliation> for ReconciliationView<'a> {
    fn from(reconciliation: &'a Reconciliation) -> Self {
        Self {
            id: reconciliation.id,
            taxpayer_id: reconciliation.taxpayer_id,
            day: reconciliation.day.to_string(),
            by: reconciliation.by,
            state: reconciliation.state,
            attempts: reconciliation.attempts,
            compared: reconciliation.counts.compared,
            agreed: reconciliation.counts.agreed,
            under_way: reconciliation.counts.in_progress,
            mended: reconciliation.counts.repaired,
            listed: reconciliation.counts.listed,
            decided: reconciliation.counts.decided,
            error: reconciliation.error.as_deref(),
            created_at: precise_time(reconciliation.created_at),
            started_at: reconciliation.started_at.map(precise_time),
            ended_at: reconciliation.ended_at.map(precise_time),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconciliationFinding)]
pub(crate) struct FindingView<'a> {
    /// The number of the finding within its reconciliation, counted from 1. A decision refers to the finding by this
    /// number.
    number: u32,
    what: FindingKind,
    irn: &'a str,
    /// State of the invoice in this service. `theirs` is the state at the authority.
    ours: Option<&'a str>,
    theirs: Option<&'a str>,
    action: FindingAction,
    /// Says which repair was made, or what an operator still has to do.
    detail: &'a str,
    /// Null until an operator decides a listed finding.
    decision: Option<DecisionView<'a>>,
}

/// An operator's decision that nothing more is to be done about a finding.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FindingDecision)]
struct DecisionView<'a> {
    /// The operator who decided.
    operator_id: i64,
    reason: &'a str,
    decided_at: String,
}

impl<'a> From<&'a OperatorDecision> for DecisionView<'a> {
    fn from(decision: &'a OperatorDecision) -> Self {
        Self {
            operator_id: decision.operator_id,
            reason: &decision.reason,
            decided_at: precise_time(decision.decided_at),
        }
    }
}

impl<'a> From<&'a RecordedFinding> for FindingView<'a> {
    fn from(recorded: &'a RecordedFinding) -> Self {
        let finding = &recorded.finding;
        Self {
            number: recorded.number,
            what: finding.kind,
            irn: &finding.irn,
            ours: finding.local.as_deref(),
            theirs: finding.remote.as_deref(),
            action: finding.action,
            detail: &finding.detail,
            decision: recorded.decision.as_ref().map(DecisionView::from),
        }
    }
}

/// A reconciliation with one page of the findings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReconciliationWithFindings<'a> {
    #[serde(flatten)]
    reconciliation: ReconciliationView<'a>,
    findings: Vec<FindingView<'a>>,
}

impl<'a> ReconciliationWithFindings<'a> {
    pub(crate) fn new(reconciliation: &'a Reconciliation, findings: &'a [RecordedFinding]) -> Self {
        let findings = findings.iter().map(FindingView::from).collect();
        Self {
            reconciliation: ReconciliationView::from(reconciliation),
            findings,
        }
    }
}
