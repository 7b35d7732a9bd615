//! A pipeline run with its steps, and the result of a successful run for each operation.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::{plain_time, precise_time};
use crate::domain::kernel::codes::RelayedPaymentStatus;
use crate::domain::payment::RelayedPayment;
use crate::domain::pipeline::{Operation, ResolvedBy, Run, RunState, Step, StepRecord, WaitReason};
use crate::http::views::actor::ActorView;
use crate::http::views::explanation::ExplanationView;
use crate::http::views::queue::QueueView;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunView<'a> {
    irn: &'a str,
    operation: Operation,
    state: RunState,
    step: Option<Step>,
    attempt: u32,
    next_attempt_at: Option<String>,
    wait_reason: Option<WaitReason>,
    resolved_by: Option<ResolvedBy>,
    last_error: Option<&'a str>,
    /// Reasons why the run was refused; empty for any other run. Field names are those of the caller's document, not
    /// the authority's.
    explanations: Vec<ExplanationView>,
    /// Time by which the law requires the invoice to be at the authority.
    deadline_at: String,
    asked_by: Option<ActorView>,
    /// Position of the run in the queue; null if the run does not continue by itself.
    queue: Option<QueueView>,
    /// The newest 100 calls to the authority, oldest first.
    steps: Vec<StepView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunStep)]
pub(crate) struct StepView<'a> {
    step: Step,
    attempt: u32,
    outcome: Option<&'a str>,
    started_at: String,
    duration_ms: Option<i64>,
    error: Option<&'a str>,
}

impl<'a> RunView<'a> {
    /// Creates the view, without explanations.
    pub(crate) fn new(run: &'a Run, steps: &'a [StepRecord], queue: Option<QueueView>) -> Self {
        Self {
            irn: run.irn.as_str(),
            operation: run.operation(),
            state: run.state(),
            step: run.progress.intent.or_else(|| run.next_step()),
            attempt: run.progress.attempt,
            next_attempt_at: run.next_attempt_at().map(precise_time),
            wait_reason: run.wait_reason(),
            resolved_by: run.resolved_by,
            last_error: run.last_error.as_deref(),
            explanations: Vec::new(),
            deadline_at: precise_time(run.deadline_at),
            asked_by: run.asked_by.clone().map(ActorView::from),
            queue,
            steps: steps.iter().map(StepView::from).collect(),
        }
    }

    pub(crate) fn with_explanations(self, explanations: Vec<ExplanationView>) -> Self {
        Self {
            explanations,
            ..self
        }
    }
}

impl<'a> From<&'a StepRecord> for StepView<'a> {
    fn from(record: &'a StepRecord) -> Self {
        Self {
            step: record.step,
            attempt: record.attempt,
            outcome: record.outcome.as_deref(),
            started_at: precise_time(record.started_at),
            duration_ms: record.duration_ms,
            error: record.error.as_deref(),
        }
    }
}

/// The result of Submit. The response has it under `message`, not under `data` (spec.md, "Submit").
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubmissionResult<'a> {
    ok: bool,
    irn: &'a str,
    qr_code: Option<&'a str>,
    resolved_by: Option<ResolvedBy>,
    submitted_at: String,
}

impl<'a> From<&'a Run> for SubmissionResult<'a> {
    fn from(run: &'a Run) -> Self {
        Self {
            ok: true,
            irn: run.irn.as_str(),
            qr_code: run.qr_code.as_deref(),
            resolved_by: run.resolved_by,
            submitted_at: precise_time(run.updated_at),
        }
    }
}

/// The result of Transmit (docs/contract.md, "Answers and messages").
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TransmissionResult<'a> {
    ok: bool,
    irn: &'a str,
    transmitted: bool,
    delivered: bool,
    transmitted_at: String,
}

impl<'a> TransmissionResult<'a> {
    pub(crate) fn new(run: &'a Run, delivered: bool) -> Self {
        let transmitted_at = precise_time(run.updated_at);
        Self {
            ok: true,
            irn: run.irn.as_str(),
            transmitted: true,
            delivered,
            transmitted_at,
        }
    }
}

/// The result of Report (spec.md, "Report").
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportResult<'a> {
    invoice_number: &'a str,
    ok: bool,
    irn: &'a str,
}

impl<'a> From<&'a Run> for ReportResult<'a> {
    fn from(run: &'a Run) -> Self {
        Self {
            invoice_number: run.irn.invoice_no(),
            ok: true,
            irn: run.irn.as_str(),
        }
    }
}

/// The result of Update Payment Status on `/v1/app` (docs/contract.md, "Answers and messages").
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PaymentResult<'a> {
    irn: &'a str,
    payment_status: RelayedPaymentStatus,
    remark: Option<String>,
    updated_at: String,
}

impl<'a> PaymentResult<'a> {
    pub(crate) fn from_run(run: &'a Run) -> Option<Self> {
        let RelayedPayment {
            payment_status,
            remark,
        } = run.payload.payment()?.clone();
        Some(Self {
            irn: run.irn.as_str(),
            payment_status,
            remark,
            updated_at: plain_time(run.updated_at),
        })
    }
}
