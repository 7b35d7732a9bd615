//! The command that records the steps of a run. It applies the outcome of each step to the run and to its invoice, and
//! emits the events.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::payment;
use crate::actors::taxpayer::commands::runs::{OpenRun, show_authority_status};
use crate::actors::taxpayer::commands::signature::{
    record_signature, unlock_after_refusal, with_signature,
};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::document_difference::Differences;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::Stage;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};
use crate::domain::kernel::ids::RunId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::kernel::upstream::CallFailure;
use crate::domain::notice::NoticeKind;
use crate::domain::pipeline::{
    Operation, Run, RunPayload, RunRequest, RunState, Step, StepRecord, StepResult,
};
use crate::store::lanes::Lease;
use crate::store::lanes::leases::{LaneRelease, NextClaim};
use crate::store::runs::step_log::StepAttempt;

/// Records the steps that a worker, which holds the lease of the run, has taken since its last record. If the next step
/// has an effect (changes state at the authority), also records the intent to call it.
#[derive(Debug)]
pub struct RecordSteps {
    pub lease: Lease,
    pub run: RunId,
    pub irn: Irn,
    /// The digest of the document with which the steps were called.
    pub digest: String,
    /// The outcomes in order. Only the last one can be other than a success.
    pub steps: Vec<StepOutcome>,
    /// The id of the attempt that the worker makes next, if that step has an effect.
    pub next_attempt: uuid::Uuid,
}

/// The outcome of an attempt at a step.
#[derive(Debug)]
pub struct StepOutcome {
    pub step: Step,
    pub id: uuid::Uuid,
    pub attempt: u32,
    pub started_at: Timestamp,
    pub verdict: StepResult,
    pub duration_ms: i64,
    /// Why the call failed, if it did.
    pub failure: Option<CallFailure>,
}

impl StepOutcome {
    fn to_step_record(&self) -> StepRecord {
        StepRecord {
            step: self.step,
            attempt: self.attempt,
            outcome: Some(self.verdict.as_str().to_owned()),
            started_at: self.started_at,
            duration_ms: Some(self.duration_ms),
            error: self.verdict.error().map(str::to_owned),
            failure: self.failure,
        }
    }
}

impl TaxpayerCommand for RecordSteps {
    type Output = Run;

    const NAME: &'static str = "record-steps";

    fn default_audit_actor(&self) -> Actor {
        Actor::Authority
    }

    fn run_lease(&self) -> Option<&Lease> {
        Some(&self.lease)
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_invoice_with_runs(&self.irn);
        if self
            .steps
            .iter()
            .any(|outcome| outcome.step == Step::Payment)
        {
            wanted.add_credit_notes();
            wanted.add_last_posting(&self.irn);
        }
    }

    /// If the run has ended or got new content during the calls, the outcomes are only logged.
    fn execute(&self, uow: &mut UnitOfWork) -> Result<Run, Refusal> {
        let mut run = uow.find_run_by_id(self.run)?.clone();
        for outcome in &self.steps {
            log_step(uow, &run, outcome.id, outcome.to_step_record());
        }
        // If the run was paused during the calls, the outcomes are still recorded, but the run does not continue.
        let is_paused = run.state() == RunState::Paused;
        if run.digest != self.digest || !(run.state().is_open() || is_paused) {
            release_lease(uow, &run, &self.lease);
            return Ok(run);
        }
        for outcome in &self.steps {
            run = run_after_step(uow, run, outcome, is_paused);
            if run.state() == RunState::Cancelled {
                break;
            }
        }
        let state = run.state();
        let goes_on = state == RunState::Running || (state.is_open() && self.steps.is_empty());
        if let Some(step) = run.next_step().filter(|step| goes_on && step.has_effect()) {
            run = run.begin_attempt(step, uow.now);
            let record = StepRecord {
                step,
                attempt: run.progress.attempt,
                started_at: uow.now,
                outcome: None,
                duration_ms: None,
                error: None,
                failure: None,
            };
            log_step(uow, &run, self.next_attempt, record);
        }
        release_lease(uow, &run, &self.lease);
        uow.put_run(run.clone());
        if run.state() == RunState::Succeeded {
            transmit_after_signing(uow, &run);
        }
        Ok(run)
    }
}

/// Starts the transmission of an invoice that was just signed, if the account is set to transmit after signing. A
/// document without a customer has no receiver, so it is not transmitted.
fn transmit_after_signing(uow: &mut UnitOfWork, run: &Run) {
    let is_wanted = uow
        .taxpayer()
        .is_ok_and(|taxpayer| taxpayer.settings.transmit_after_signing);
    let document = run.payload.submission();
    let has_customer = document.is_some_and(|document| {
        document
            .as_json()
            .get("accounting_customer_party")
            .is_some()
    });
    if is_wanted && has_customer {
        let request = RunRequest {
            irn: run.irn.clone(),
            payload: RunPayload::Transmit,
        };
        uow.act_on_behalf(run.asked_by.as_ref(), |uow| {
            // A refusal is ignored: the invoice was cancelled meanwhile, so there is nothing to transmit.
            let _ = OpenRun(request).execute(uow);
        });
    }
}

/// Returns the run after a step, and applies the outcome to the invoice. An attempt at a step with an effect was
/// already counted when its intent was recorded.
fn run_after_step(uow: &mut UnitOfWork, run: Run, outcome: &StepOutcome, is_paused: bool) -> Run {
    let run = if outcome.step.has_effect() {
        run
    } else {
        run.begin_attempt(outcome.step, outcome.started_at)
    };
    let mut run = run.after_step(outcome.step, &outcome.verdict, uow.now);
    if is_paused && run.state().is_open() {
        run = run.pause(uow.now);
    }
    match apply_outcome_to_invoice(uow, &run, outcome) {
        Err(Refusal::InvalidTransition { .. }) => run.cancel(uow.now),
        _ => run,
    }
}

fn log_step(uow: &mut UnitOfWork, run: &Run, id: uuid::Uuid, record: StepRecord) {
    uow.writes.step_attempts.push(StepAttempt {
        taxpayer: uow.id,
        id,
        run: run.id,
        record,
    });
}

/// Releases the lease of the run, unless the run continues with its next step at once.
fn release_lease(uow: &mut UnitOfWork, run: &Run, lease: &Lease) {
    if run.callable_step().is_none() {
        let delay = run
            .next_attempt_at()
            .map(|at| Duration::try_from(uow.now.duration_until(at)).unwrap_or_default());
        let next_step = run.next_step().map(Step::as_str);
        let next_claim = if run.must_run_alone() {
            NextClaim::Alone
        } else if delay == Some(Duration::ZERO) {
            NextClaim::InPlace
        } else {
            NextClaim::Ordinary
        };
        uow.writes.released.push(LaneRelease {
            next_step,
            next_claim,
            ..LaneRelease::new(lease, delay)
        });
    }
}

/// Applies the outcome of the step to the invoice and emits the events of the outcome.
fn apply_outcome_to_invoice(
    uow: &mut UnitOfWork,
    run: &Run,
    outcome: &StepOutcome,
) -> Result<(), Refusal> {
    if run.operation() == Operation::Payment {
        // The events of a payment name the actor that reported it, not the authority, which only takes note of it.
        uow.act_on_behalf(run.asked_by.as_ref(), |uow| {
            payment::apply_relay_verdict(uow, run, &outcome.verdict);
        });
        return Ok(());
    }
    let invoice = uow.find_invoice_by_irn(&run.irn).cloned();
    match &outcome.verdict {
        StepResult::Done { .. } => match (outcome.step.stage(), invoice) {
            (Some(stage), Some(invoice))
                if invoice.status == WorkflowStatus::Cancelled && run.has_taken_effect() =>
            {
                let invoice = with_signature(invoice, run);
                emit_stage_despite_cancellation(uow, invoice, run.operation(), stage);
            }
            (Some(stage), Some(invoice)) => {
                let invoice = with_signature(invoice, run);
                move_invoice_to_stage(uow, invoice, stage, differences_to_report(run, stage))?;
            }
            (Some(stage), None) => emit_stage_event(uow, &run.irn, stage),
            (None, Some(invoice)) if outcome.step == Step::Sign => {
                record_signature(uow, invoice, run);
            }
            (None, _) => {}
        },
        StepResult::Unchanged(_) => {}
        StepResult::Wait { .. } | StepResult::Deferred { .. } => {
            if let Some(invoice) = invoice.filter(|_| run.state() == RunState::Waiting) {
                show_authority_status(uow, invoice, run.operation(), AuthorityStatus::Queued);
            }
        }
        StepResult::Refused { error } => {
            if let Some(invoice) = invoice {
                unlock_after_refusal(uow, &invoice, run);
            }
            report_stopped_run(uow, run, AuthorityStatus::Rejected, error);
        }
        StepResult::Pause { error } => report_stopped_run(uow, run, AuthorityStatus::Failed, error),
    }
    Ok(())
}

/// Moves the invoice to a stage and emits two events: its new status, and that it reached the stage. An invoice that is
/// already at a later stage stays there, and only the second event is emitted. The second event contains the
/// differences, if there are any.
pub(super) fn move_invoice_to_stage(
    uow: &mut UnitOfWork,
    invoice: Invoice,
    stage: Stage,
    differences: Option<&Differences>,
) -> Result<(), Refusal> {
    let previous = invoice.status;
    let is_late = previous.stage() > Some(stage);
    let invoice = invoice.reach_stage(stage, uow.now)?;
    let mut extra = json!({ "previous_status": previous });
    if invoice.status != previous {
        uow.emit_about(EventKind::InvoiceStatusUpdated, &invoice, extra.clone());
    }
    if invoice.status != previous || is_late {
        if let Some(differences) = differences {
            extra["differences"] = json!(differences);
        }
        uow.emit_about(stage_event(stage), &invoice, extra);
    }
    uow.put_invoice(invoice);
    Ok(())
}

/// Returns the differences between the signed document and the stored invoice, if there are any and the stage is
/// `Submitted`: only its event reports them.
fn differences_to_report(run: &Run, stage: Stage) -> Option<&Differences> {
    let document = run.payload.submission()?;
    let differences = &document.differences;
    (stage == Stage::Submitted && !differences.is_empty()).then_some(differences)
}

/// Emits the event of the stage for a cancelled invoice: its run has changed something at the authority all the same.
/// The invoice was cancelled during the call or, if it was stored only after its signature, before the confirmation. It
/// stays cancelled, and the run succeeds.
fn emit_stage_despite_cancellation(
    uow: &mut UnitOfWork,
    invoice: Invoice,
    operation: Operation,
    stage: Stage,
) {
    let extra = json!({ "previous_status": invoice.status });
    let invoice = show_authority_status(uow, invoice, operation, stage.into());
    uow.emit_about(stage_event(stage), &invoice, extra);
}

/// Emits the event of a stage for an invoice that is not stored.
pub(super) fn emit_stage_event(uow: &mut UnitOfWork, irn: &Irn, stage: Stage) {
    let data = json!({ "irn": irn.as_str(), "invoice": Value::Null, "status": WorkflowStatus::from(stage) });
    uow.emit(stage_event(stage), Some(irn), &data);
}

/// Handles a run that does not continue by itself: shows `status` on the invoice and emits an event with the error. The
/// people of the account are mailed, too, unless the run is in quarantine and is tried once more by itself.
pub(super) fn report_stopped_run(
    uow: &mut UnitOfWork,
    run: &Run,
    status: AuthorityStatus,
    error: &str,
) {
    let (kind, told) = match status {
        AuthorityStatus::Rejected => (EventKind::InvoiceRejected, NoticeKind::InvoiceRejected),
        _ => (EventKind::InvoiceFailed, NoticeKind::InvoiceFailed),
    };
    let is_tried_again =
        run.state() == RunState::Paused && run.progress.crash_history.may_lift_quarantine();
    if !is_tried_again {
        uow.add_notice(told, run.irn.invoice_no(), error);
    }
    let extra = json!({ "operation": run.operation(), "error": error });
    if let Some(invoice) = uow.find_invoice_by_irn(&run.irn).cloned() {
        let invoice = show_authority_status(uow, invoice, run.operation(), status);
        let mut extra = extra;
        extra["previous_status"] = json!(invoice.status);
        uow.emit_about(kind, &invoice, extra);
    } else {
        let data = json!({ "irn": run.irn.as_str(), "invoice": Value::Null, "operation": run.operation(), "error": error });
        uow.emit(kind, Some(&run.irn), &data);
    }
}

fn stage_event(stage: Stage) -> EventKind {
    match stage {
        Stage::Validated => EventKind::InvoiceValidated,
        Stage::Submitted => EventKind::InvoiceSubmitted,
        Stage::Transmitted => EventKind::InvoiceTransmitted,
        Stage::Reported => EventKind::InvoiceReported,
    }
}
