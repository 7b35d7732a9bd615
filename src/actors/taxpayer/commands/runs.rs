//! The commands about runs of the pipeline: open or join a run, record the steps that a run has taken, recheck a stopped
//! run, and lift the quarantine of one.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::taxpayer::command::{CommandReply, RunProgress, RunRecheck, StepOutcome};
use crate::actors::taxpayer::commands::payment;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::write_set::RunLaneRelease;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::{Stage, Transition};
use crate::domain::kernel::clock;
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};
use crate::domain::kernel::crash::CrashHistory;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::{Operation, Run, RunRequest, RunState, Step, StepRecord, StepResult};
use crate::store::lanes::leases::LaneRelease;
use crate::store::runs::StepAttempt;

/// Opens a run. If the invoice already has a run for this operation, joins it, or reopens it if it ended without
/// success.
pub(super) fn open(uow: &mut UnitOfWork, request: &RunRequest) -> Result<CommandReply, Refusal> {
    let request = &request.clone().spelled(canonical_irn(uow, request));
    check_preconditions(uow, request)?;
    let run = match uow.run(request.operation, &request.irn).cloned() {
        None => {
            let fresh = Run::open(clock::new_id(), uow.id, request.clone(), uow.now);
            fresh.due_by(deadline(uow, request))
        }
        Some(run) if payment::is_final(uow, &run, request) => return Ok(reply(run)),
        Some(run) if run.operation.repeats() && !run.state.is_open() && run.is_replaceable() => {
            run.replaced(request.clone(), uow.now).due_by(deadline(uow, request))
        }
        Some(run) if run.digest == request.digest() => match run.state {
            RunState::Running | RunState::Succeeded => return Ok(reply(run)),
            // A waiting submission keeps its schedule. Any other waiting run is retried at once on every request.
            RunState::Waiting if request.operation == Operation::Submit => return Ok(reply(run)),
            RunState::Waiting => run.due_now(uow.now),
            // A request does not release a quarantined run.
            RunState::Paused if run.is_quarantined() => return Ok(reply(run)),
            RunState::Paused | RunState::Refused | RunState::Cancelled => run.reopened(uow.now),
        },
        Some(run) if run.is_replaceable() => {
            run.replaced(request.clone(), uow.now).due_by(deadline(uow, request))
        }
        Some(_) if request.operation.repeats() => return Err(Refusal::PaymentUnderWay),
        Some(_) => return Err(Refusal::IrnContentChanged),
    };
    match uow.invoice_with_irn(&request.irn).cloned() {
        Some(invoice) if run.operation != Operation::Payment => {
            show_authority_status(uow, invoice, request.operation, AuthorityStatus::Queued);
        }
        _ => {}
    }
    uow.writes.due_runs.insert(run.id);
    uow.put_run(run.clone());
    Ok(reply(run))
}

/// Returns the deadline of a new run. An operation that follows a submission has the deadline of the submission.
fn deadline(uow: &UnitOfWork, request: &RunRequest) -> Timestamp {
    let submitted = uow.run(Operation::Submit, &request.irn);
    if let Some(run) = submitted.filter(|run| request.operation != run.operation) {
        return run.deadline_at;
    }
    let category = uow.invoice_with_irn(&request.irn).map(|invoice| invoice.category);
    uow.deadlines.of_document(&request.document, category, uow.now)
}

/// Returns the spelling of the IRN for the authority, which must always get the same one: that of the stored invoice,
/// else of the submission, else of this request.
fn canonical_irn(uow: &UnitOfWork, request: &RunRequest) -> Irn {
    let stored = uow.invoice_with_irn(&request.irn).map(|invoice| &invoice.irn);
    let submitted = || uow.run(Operation::Submit, &request.irn).map(|run| &run.irn);
    stored.or_else(submitted).unwrap_or(&request.irn).clone()
}

/// Checks that the states of the invoice and of its submission permit the operation.
pub(super) fn check_preconditions(uow: &UnitOfWork, request: &RunRequest) -> Result<(), Refusal> {
    let invoice = uow.invoice_with_irn(&request.irn);
    match request.operation {
        Operation::Submit => {
            invoice.map_or(Ok(()), |invoice| invoice.status.after(Transition::Submit).map(drop))
        }
        Operation::Transmit => {
            let submission = uow.run(Operation::Submit, &request.irn);
            let signed = submission.is_some_and(|run| run.state == RunState::Succeeded);
            match (signed, submission.is_some() || invoice.is_some()) {
                (true, _) => Ok(()),
                (false, true) => Err(Refusal::InvoiceNotSigned),
                (false, false) => Err(Refusal::InvoiceNotFound),
            }
        }
        Operation::Report => {
            let reported = |invoice: &Invoice| invoice.status.after(Transition::Reach(Stage::Reported));
            invoice.map_or(Ok(()), |invoice| reported(invoice).map(drop))
        }
        Operation::Payment => payment::check_preconditions(uow, &request.document, invoice),
    }
}

/// Records the steps that a run has taken and, if the next step has an effect, the intent to call it. Only the log of
/// steps changes if the run has ended or got new content during the calls.
pub(super) fn record(
    uow: &mut UnitOfWork,
    cause: CommandId,
    progress: &RunProgress,
) -> Result<CommandReply, Refusal> {
    let found = uow.runs.iter().find(|run| run.id == progress.run).cloned();
    let mut run = found.ok_or(Refusal::RunNotFound)?;
    for outcome in &progress.steps {
        log_step(uow, &run, outcome.id, outcome.record());
    }
    // If the run was paused during the calls, the outcomes are still recorded, but the run does not continue.
    let is_paused = run.state == RunState::Paused;
    if run.digest != progress.digest || !(run.state.is_open() || is_paused) {
        release(uow, &run, progress);
        return Ok(reply(run));
    }
    for outcome in &progress.steps {
        run = after_step(uow, cause, run, outcome, is_paused);
        if run.state == RunState::Cancelled {
            break;
        }
    }
    let goes_on = run.state == RunState::Running || (run.state.is_open() && progress.steps.is_empty());
    if let Some(step) = run.next_step().filter(|step| goes_on && step.has_effect()) {
        run = run.attempting(step, uow.now);
        let (attempt, started_at) = (run.attempt, uow.now);
        let record = StepRecord { step, attempt, started_at, outcome: None, duration_ms: None, error: None };
        log_step(uow, &run, progress.next_attempt, record);
    }
    release(uow, &run, progress);
    uow.put_run(run.clone());
    Ok(reply(run))
}

/// Returns the run after a step, and applies the outcome to the invoice. The attempt at a step with an effect was
/// counted with its intent.
fn after_step(
    uow: &mut UnitOfWork,
    cause: CommandId,
    run: Run,
    outcome: &StepOutcome,
    is_paused: bool,
) -> Run {
    let run = if outcome.step.has_effect() { run } else { run.attempting(outcome.step, outcome.started_at) };
    let mut run = run.after(outcome.step, &outcome.verdict, uow.now);
    if is_paused && run.state.is_open() {
        run = run.held(uow.now);
    }
    match apply(uow, cause, &run, outcome) {
        Err(Refusal::InvalidTransition { .. }) => run.cancelled(uow.now),
        _ => run,
    }
}

fn log_step(uow: &mut UnitOfWork, run: &Run, id: uuid::Uuid, record: StepRecord) {
    uow.writes.step_attempts.push(StepAttempt { taxpayer: uow.id, id, run: run.id, record });
}

/// Makes a stopped run due, so that it asks the authority for the invoice's state. Does nothing if the run has changed
/// since the sender read it.
pub(super) fn recheck(uow: &mut UnitOfWork, recheck: &RunRecheck) -> Result<CommandReply, Refusal> {
    let run = uow.runs.iter().find(|run| run.id == recheck.run).cloned().ok_or(Refusal::RunNotFound)?;
    let has_changed = run.updated_at != recheck.seen;
    let run = match run.state {
        RunState::Waiting if !has_changed => run.due_now(uow.now),
        RunState::Paused if !has_changed && !run.is_quarantined() => run.reopened(uow.now),
        _ => return Ok(reply(run)),
    };
    go_on(uow, run)
}

/// Lifts the quarantine of a run that only crashes caused. Does nothing if the run has changed since the sender read it.
pub(super) fn lift(uow: &mut UnitOfWork, recheck: &RunRecheck) -> Result<CommandReply, Refusal> {
    let run = uow.runs.iter().find(|run| run.id == recheck.run).cloned().ok_or(Refusal::RunNotFound)?;
    let is_current = run.updated_at == recheck.seen && run.state == RunState::Paused;
    if !is_current || !run.crash_history.may_be_lifted() {
        return Ok(reply(run));
    }
    let (operation, irn, document) = (run.operation, run.irn.clone(), run.document.clone());
    if check_preconditions(uow, &RunRequest { operation, irn, document }).is_err() {
        // Its invoice has changed since: the run stays paused, and it is not tried again.
        let crash_history = CrashHistory { is_lifted: true, ..run.crash_history };
        let run = Run { crash_history, ..run };
        uow.put_run(run.clone());
        return Ok(reply(run));
    }
    let run = run.lifted(uow.now);
    go_on(uow, run)
}

/// Makes a run due that had stopped.
fn go_on(uow: &mut UnitOfWork, run: Run) -> Result<CommandReply, Refusal> {
    let (operation, irn, document) = (run.operation, run.irn.clone(), run.document.clone());
    check_preconditions(uow, &RunRequest { operation, irn, document })?;
    match uow.invoice_with_irn(&run.irn).cloned() {
        Some(invoice) if operation != Operation::Payment => {
            show_authority_status(uow, invoice, operation, AuthorityStatus::Queued);
        }
        _ => {}
    }
    uow.writes.due_runs.insert(run.id);
    uow.put_run(run.clone());
    Ok(reply(run))
}

/// Releases the run's lane, unless the run continues with its next step at once.
fn release(uow: &mut UnitOfWork, run: &Run, progress: &RunProgress) {
    if run.present_step().is_none() {
        let delay = run.next_attempt_at.map(|at| uow.now.duration_until(at).unsigned_abs());
        let next_step = run.next_step().map(Step::as_str);
        let release = LaneRelease { lease: progress.lease.clone(), delay, next_step };
        uow.writes.released.push(RunLaneRelease { release, is_isolated: run.goes_alone() });
    }
}

/// Applies the outcome of the step to the invoice and emits the events of the outcome.
fn apply(uow: &mut UnitOfWork, cause: CommandId, run: &Run, outcome: &StepOutcome) -> Result<(), Refusal> {
    if run.operation == Operation::Payment {
        payment::follow(uow, cause, run, &outcome.verdict);
        return Ok(());
    }
    let invoice = uow.invoice_with_irn(&run.irn).cloned();
    match &outcome.verdict {
        StepResult::Done { .. } => match (outcome.step.stage(), invoice) {
            (Some(stage), Some(invoice))
                if invoice.status == WorkflowStatus::Cancelled && outcome.step.has_effect() =>
            {
                reach_cancelled(uow, cause, invoice, run.operation, stage);
            }
            (Some(stage), Some(invoice)) => reach(uow, cause, signed(invoice, run), stage)?,
            (Some(stage), None) => reach_unknown(uow, cause, &run.irn, stage),
            (None, Some(invoice)) if outcome.step == Step::Sign => {
                uow.put_invoice(signed(invoice, run));
                payment::take_signed(uow, cause, run);
            }
            (None, _) => {}
        },
        StepResult::Unchanged(_) => {}
        StepResult::Wait { .. } | StepResult::Deferred { .. } => {
            if let Some(invoice) = invoice.filter(|_| run.state == RunState::Waiting) {
                show_authority_status(uow, invoice, run.operation, AuthorityStatus::Queued);
            }
        }
        StepResult::Refused { error } => stop(uow, cause, run, AuthorityStatus::Rejected, error),
        StepResult::Pause { error } => stop(uow, cause, run, AuthorityStatus::Failed, error),
    }
    Ok(())
}

fn signed(invoice: Invoice, run: &Run) -> Invoice {
    match &run.qr_code {
        Some(qr_code) => invoice.signed(qr_code.clone()),
        None => invoice,
    }
}

/// Moves the invoice to a stage and emits two events: its new status, and that it reached the stage. An invoice that
/// is already at a later stage stays there, and only the second event is emitted.
pub(super) fn reach(
    uow: &mut UnitOfWork,
    cause: CommandId,
    invoice: Invoice,
    stage: Stage,
) -> Result<(), Refusal> {
    let previous = invoice.status;
    let is_late = previous.stage() > Some(stage);
    let invoice = invoice.reached(stage, uow.now)?;
    let extra = || json!({ "previous_status": previous });
    if invoice.status != previous {
        uow.emit_about(cause, EventKind::InvoiceStatusUpdated, &invoice, extra());
    }
    if invoice.status != previous || is_late {
        uow.emit_about(cause, stage_event(stage), &invoice, extra());
    }
    uow.put_invoice(invoice);
    Ok(())
}

/// Emits the event of the stage for an invoice that was cancelled during the call. The invoice stays cancelled.
fn reach_cancelled(
    uow: &mut UnitOfWork,
    cause: CommandId,
    invoice: Invoice,
    operation: Operation,
    stage: Stage,
) {
    let extra = json!({ "previous_status": invoice.status });
    let invoice = show_authority_status(uow, invoice, operation, stage.into());
    uow.emit_about(cause, stage_event(stage), &invoice, extra);
}

/// Emits the event of a stage for an invoice that is not stored.
pub(super) fn reach_unknown(uow: &mut UnitOfWork, cause: CommandId, irn: &Irn, stage: Stage) {
    let data = json!({ "irn": irn.as_str(), "invoice": Value::Null, "status": WorkflowStatus::from(stage) });
    uow.emit(cause, stage_event(stage), Some(irn), &data);
}

/// Handles a run that does not continue by itself: shows `status` on the invoice and emits an event with the error.
pub(super) fn stop(uow: &mut UnitOfWork, cause: CommandId, run: &Run, status: AuthorityStatus, error: &str) {
    let kind = match status {
        AuthorityStatus::Rejected => EventKind::InvoiceRejected,
        _ => EventKind::InvoiceFailed,
    };
    let extra = json!({ "operation": run.operation, "error": error });
    if let Some(invoice) = uow.invoice_with_irn(&run.irn).cloned() {
        let invoice = show_authority_status(uow, invoice, run.operation, status);
        let mut extra = extra;
        extra["previous_status"] = json!(invoice.status);
        uow.emit_about(cause, kind, &invoice, extra);
    } else {
        let data = json!({ "irn": run.irn.as_str(), "invoice": Value::Null, "operation": run.operation, "error": error });
        uow.emit(cause, kind, Some(&run.irn), &data);
    }
}

/// Sets the authority status of the invoice. Does nothing if the authority has already reported the transmission or the
/// receipt, because a run that still waits for its answer must not undo that.
pub(super) fn show_authority_status(
    uow: &mut UnitOfWork,
    mut invoice: Invoice,
    operation: Operation,
    status: AuthorityStatus,
) -> Invoice {
    let is_transmitted = invoice.status.stage() >= Some(Stage::Transmitted);
    let is_acknowledged = invoice.authority.status == AuthorityStatus::Acknowledged;
    if is_acknowledged || (operation == Operation::Transmit && is_transmitted) {
        return invoice;
    }
    invoice.authority.status = status;
    invoice.updated_at = uow.now;
    uow.put_invoice(invoice.clone());
    invoice
}

fn stage_event(stage: Stage) -> EventKind {
    match stage {
        Stage::Validated => EventKind::InvoiceValidated,
        Stage::Submitted => EventKind::InvoiceSubmitted,
        Stage::Transmitted => EventKind::InvoiceTransmitted,
        Stage::Reported => EventKind::InvoiceReported,
    }
}

fn reply(run: Run) -> CommandReply {
    CommandReply::Run(Box::new(run))
}
