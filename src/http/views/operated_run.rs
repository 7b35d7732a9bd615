//! A pipeline run as operators see it: with the taxpayer, and with the operator actions that the run's state allows.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::kernel::upstream::{Blame, UpstreamCause};
use crate::domain::pipeline::{
    Operation, OperatorAction, ResolvedBy, Run, RunState, Step, StepRecord, WaitReason,
};
use crate::http::views::actor::ActorView;
use crate::http::views::run::StepView;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperatedRun<'a> {
    #[schema(value_type = uuid::Uuid)]
    id: RunId,
    taxpayer_id: TaxpayerId,
    irn: &'a str,
    operation: Operation,
    state: RunState,
    step: Option<Step>,
    attempt: u32,
    next_attempt_at: Option<String>,
    wait_reason: Option<WaitReason>,
    resolved_by: Option<ResolvedBy>,
    last_error: Option<&'a str>,
    moves: Vec<OperatorAction>,
    deadline_at: String,
    /// The actor that asked for the run. The names of people and keys are not shown to operators.
    asked_by: Option<ActorView>,
    created_at: String,
    updated_at: String,
    /// Time since the run was created, in whole seconds.
    age_s: i64,
}

impl<'a> OperatedRun<'a> {
    pub(crate) fn new(run: &'a Run, now: Timestamp) -> Self {
        Self {
            id: run.id,
            taxpayer_id: run.taxpayer_id,
            irn: run.irn.as_str(),
            operation: run.operation(),
            state: run.state(),
            step: run.progress.intent.or_else(|| run.next_step()),
            attempt: run.progress.attempt,
            next_attempt_at: run.next_attempt_at().map(precise_time),
            wait_reason: run.wait_reason(),
            resolved_by: run.resolved_by,
            last_error: run.last_error.as_deref(),
            moves: run.allowed_actions(),
            deadline_at: precise_time(run.deadline_at),
            asked_by: run
                .asked_by
                .clone()
                .map(|actor| ActorView::from(actor.without_name())),
            created_at: precise_time(run.created_at),
            updated_at: precise_time(run.updated_at),
            age_s: now.duration_since(run.created_at).as_secs().max(0),
        }
    }
}

/// A pipeline run with its steps, as operators see it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperatedRunWithSteps<'a> {
    #[serde(flatten)]
    run: OperatedRun<'a>,
    /// The newest 100 calls to the authority, oldest first.
    steps: Vec<OperatedStep<'a>>,
}

/// A call to the authority, and the cause if it failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OperatedStep)]
pub(crate) struct OperatedStep<'a> {
    #[serde(flatten)]
    step: StepView<'a>,
    /// The reason why the authority did not answer the call; null if it did.
    #[schema(value_type = Option<String>)]
    cause: Option<UpstreamCause>,
    /// The party at fault, as the other calls of the last 30 s showed it; null if they did not show it.
    #[schema(value_type = Option<String>)]
    blame: Option<Blame>,
}

impl<'a> From<&'a StepRecord> for OperatedStep<'a> {
    fn from(record: &'a StepRecord) -> Self {
        Self {
            step: record.into(),
            cause: record.failure.map(|failure| failure.cause),
            blame: record.failure.and_then(|failure| failure.blame),
        }
    }
}

impl<'a> OperatedRunWithSteps<'a> {
    pub(crate) fn new(run: &'a Run, steps: &'a [StepRecord], now: Timestamp) -> Self {
        Self {
            run: OperatedRun::new(run, now),
            steps: steps.iter().map(OperatedStep::from).collect(),
        }
    }
}
