//! The table of pipeline runs. `document`, `done`, `differences` and `asked_by` are JSON.

use database::StoreError;
use database::column::{RowRef, json, to_count_column};
use jiff::Timestamp;
use sea_orm::entity::prelude::*;

use crate::domain::kernel::crash::CrashHistory;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::pipeline::{Run, RunPayload, RunPhase, RunState, StepProgress};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "pipeline_runs")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub taxpayer_id: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub operation: String,
    pub irn: String,
    pub irn_key: String,
    pub state: String,
    pub document: String,
    pub digest: String,
    pub done: String,
    pub intent: Option<String>,
    pub attempt: i32,
    pub failing_since: Option<i64>,
    pub next_attempt_at: Option<i64>,
    pub wait_reason: Option<String>,
    pub last_error: Option<String>,
    pub resolved_by: Option<String>,
    pub qr_code: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    pub deadline_at: i64,
    pub crashes: i32,
    pub panics: i32,
    pub is_lifted: bool,
    /// The differences between the document of a submission and the stored invoice, as JSON; `None` if there are none.
    pub differences: Option<String>,
    /// The trace of the request that made the run due, in the form of the header `traceparent`.
    pub trace: Option<String>,
    /// The person or program that asked for the run, as JSON.
    pub asked_by: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Run {
    type Error = StoreError;

    fn try_from(row: Model) -> Result<Self, StoreError> {
        let at = RowRef {
            table: "pipeline_runs",
            id: row.id.clone(),
        };
        let document = at.parse_json(&row.document)?;
        let payload = RunPayload::from_document(at.parse(&row.operation)?, document);
        let mut payload = payload.map_err(|fault| at.corrupt(fault))?;
        if let (RunPayload::Submit(document), Some(text)) = (&mut payload, &row.differences) {
            document.differences = at.parse_json(text)?;
        }
        Ok(Self {
            id: at.parse(&row.id)?,
            taxpayer_id: TaxpayerId(row.taxpayer_id),
            irn: at.parse(&row.irn)?,
            phase: phase(&row, &at)?,
            payload,
            done: at.parse_json(&row.done)?,
            progress: StepProgress {
                intent: row
                    .intent
                    .as_deref()
                    .map(|step| at.parse(step))
                    .transpose()?,
                attempt: at.to_count(row.attempt)?,
                crash_history: CrashHistory {
                    crashes: at.to_count(row.crashes)?,
                    panics: at.to_count(row.panics)?,
                    is_lifted: row.is_lifted,
                },
                failing_since: row
                    .failing_since
                    .map(|moment| at.moment(moment))
                    .transpose()?,
            },
            resolved_by: row
                .resolved_by
                .as_deref()
                .map(|word| at.parse(word))
                .transpose()?,
            trace: row
                .trace
                .as_deref()
                .map(|text| at.parse(text))
                .transpose()?,
            asked_by: row
                .asked_by
                .as_deref()
                .map(|actor| at.parse_json(actor))
                .transpose()?,
            created_at: at.moment(row.created_at)?,
            updated_at: at.moment(row.updated_at)?,
            deadline_at: at.moment(row.deadline_at)?,
            digest: row.digest,
            last_error: row.last_error,
            qr_code: row.qr_code,
        })
    }
}

fn phase(row: &Model, at: &RowRef<String>) -> Result<RunPhase, StoreError> {
    let next_attempt_at = row
        .next_attempt_at
        .map(|moment| at.moment(moment))
        .transpose()?;
    Ok(match at.parse(&row.state)? {
        RunState::Running => RunPhase::Running {
            due_at: next_attempt_at,
        },
        RunState::Waiting => match (&row.wait_reason, next_attempt_at) {
            (Some(reason), Some(until)) => RunPhase::Waiting {
                reason: at.parse(reason)?,
                until,
            },
            _ => return Err(at.corrupt("it waits without a reason or an end")),
        },
        RunState::Paused => RunPhase::Paused,
        RunState::Succeeded => RunPhase::Succeeded,
        RunState::Refused => RunPhase::Refused,
        RunState::Cancelled => RunPhase::Cancelled,
    })
}

impl From<&Run> for Model {
    fn from(run: &Run) -> Self {
        let StepProgress {
            intent,
            attempt,
            crash_history,
            failing_since,
        } = run.progress;
        Self {
            taxpayer_id: run.taxpayer_id.0,
            id: run.id.to_string(),
            operation: run.operation().to_string(),
            irn: run.irn.to_string(),
            irn_key: run.irn.key(),
            state: run.state().to_string(),
            document: run.document().to_string(),
            digest: run.digest.clone(),
            done: json(&run.done),
            intent: intent.map(|step| step.to_string()),
            attempt: to_count_column(attempt),
            failing_since: failing_since.map(Timestamp::as_microsecond),
            next_attempt_at: run.next_attempt_at().map(Timestamp::as_microsecond),
            wait_reason: run.wait_reason().map(|reason| reason.to_string()),
            last_error: run.last_error.clone(),
            resolved_by: run.resolved_by.map(|by| by.to_string()),
            qr_code: run.qr_code.clone(),
            created_at: run.created_at.as_microsecond(),
            updated_at: run.updated_at.as_microsecond(),
            deadline_at: run.deadline_at.as_microsecond(),
            crashes: to_count_column(crash_history.crashes),
            panics: to_count_column(crash_history.panics),
            is_lifted: crash_history.is_lifted,
            trace: run.trace.map(|trace| trace.to_string()),
            asked_by: run.asked_by.as_ref().map(json),
            differences: run
                .payload
                .submission()
                .filter(|document| !document.differences.is_empty())
                .map(|document| json(&document.differences)),
        }
    }
}
