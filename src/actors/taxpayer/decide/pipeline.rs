//! Runs: opening one or joining the one there is, and recording what came of a call.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::taxpayer::changes::{EndedStep, Released};
use crate::actors::taxpayer::command::{Reply, StepOutcome};
use crate::actors::taxpayer::decide::payment;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::{Stage, Transition};
use crate::domain::kernel::clock;
use crate::domain::kernel::codes::{AuthorityStatus, WorkflowStatus};
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::{Operation, Run, RunRequest, RunState, Step, StepResult};

/// Opens a run, joins the one that is open, or goes on with one that had ended without success.
pub(super) fn open(desk: &mut Desk, request: &RunRequest) -> Result<Reply, Refusal> {
    let request = &request.clone().spelled(spelling(desk, request));
    permit(desk, request)?;
    let run = match desk.run(request.operation, &request.irn).cloned() {
        None => {
            let fresh = Run::open(clock::new_id(), desk.id, request.clone(), desk.now);
            fresh.due_by(deadline(desk, request))
        }
        Some(run) if payment::stays(desk, &run, request) => return Ok(reply(run)),
        Some(run) if run.operation.repeats() && !run.state.is_open() && run.is_replaceable() => {
            run.replaced(request.clone(), desk.now).due_by(deadline(desk, request))
        }
        Some(run) if run.digest == request.digest() => match run.state {
            RunState::Running | RunState::Succeeded => return Ok(reply(run)),
            // A submission keeps its appointment; the others are tried again whenever they are asked for.
            RunState::Waiting if request.operation == Operation::Submit => return Ok(reply(run)),
            RunState::Waiting => run.hurried(desk.now),
            // Only an operator has it tried again.
            RunState::Paused if run.is_quarantined() => return Ok(reply(run)),
            RunState::Paused | RunState::Refused | RunState::Cancelled => run.reopened(desk.now),
        },
        Some(run) if run.is_replaceable() => {
            run.replaced(request.clone(), desk.now).due_by(deadline(desk, request))
        }
        Some(_) if request.operation.repeats() => return Err(Refusal::PaymentUnderWay),
        Some(_) => return Err(Refusal::IrnContentChanged),
    };
    match desk.invoice_with_irn(&request.irn).cloned() {
        Some(invoice) if run.operation != Operation::Payment => {
            show(desk, invoice, (request.operation, AuthorityStatus::Queued));
        }
        _ => {}
    }
    desk.changes.due_runs.insert(run.id);
    desk.put_run(run.clone());
    Ok(reply(run))
}

/// What was submitted keeps its deadline in all that is done with it later.
fn deadline(desk: &Desk, request: &RunRequest) -> Timestamp {
    let submitted = desk.run(Operation::Submit, &request.irn);
    if let Some(run) = submitted.filter(|run| request.operation != run.operation) {
        return run.deadline_at;
    }
    let category = desk.invoice_with_irn(&request.irn).map(|invoice| invoice.category);
    desk.deadlines.of_document(&request.document, category, desk.now)
}

/// One IRN has one spelling with the authority: the stored invoice's, else that of its submission.
fn spelling(desk: &Desk, request: &RunRequest) -> Irn {
    let stored = desk.invoice_with_irn(&request.irn).map(|invoice| &invoice.irn);
    let submitted = || desk.run(Operation::Submit, &request.irn).map(|run| &run.irn);
    stored.or_else(submitted).unwrap_or(&request.irn).clone()
}

/// Whether the operation makes sense for this IRN at all.
pub(super) fn permit(desk: &Desk, request: &RunRequest) -> Result<(), Refusal> {
    let invoice = desk.invoice_with_irn(&request.irn);
    match request.operation {
        Operation::Submit => {
            invoice.map_or(Ok(()), |invoice| invoice.status.after(Transition::Submit).map(drop))
        }
        Operation::Transmit => {
            let submission = desk.run(Operation::Submit, &request.irn);
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
        Operation::Payment => payment::permit(desk, &request.document, invoice),
    }
}

/// Records what came of a step's call. An outcome of content that was replaced meanwhile changes nothing.
pub(super) fn record(desk: &mut Desk, cause: CommandId, outcome: &StepOutcome) -> Result<Reply, Refusal> {
    let found = desk.runs.iter().find(|run| run.id == outcome.run.id).cloned();
    let run = found.ok_or(Refusal::RunNotFound)?;
    desk.changes.ended_steps.push(EndedStep {
        attempt_id: outcome.attempt_id,
        verdict: outcome.verdict.clone(),
        duration_ms: outcome.duration_ms,
    });
    // A run that was paused meanwhile still hears what came of the call that was under way, and goes no further.
    let is_paused = run.state == RunState::Paused;
    if run.digest != outcome.run.digest || !(run.state.is_open() || is_paused) {
        release(desk, &run, outcome);
        return Ok(reply(run));
    }
    let mut run = run.after(outcome.step, &outcome.verdict, desk.now);
    if is_paused && run.state.is_open() {
        run = run.held(desk.now);
    }
    if let Err(Refusal::InvalidTransition { .. }) = apply(desk, cause, &run, outcome) {
        run = run.cancelled(desk.now);
    }
    release(desk, &run, outcome);
    desk.put_run(run.clone());
    Ok(reply(run))
}

/// Gives the lane back unless the run goes on at once.
fn release(desk: &mut Desk, run: &Run, outcome: &StepOutcome) {
    if run.state != RunState::Running {
        let delay = run.next_attempt_at.map(|at| desk.now.duration_until(at).unsigned_abs());
        let (lease, gate, goes_alone) = (outcome.lease.clone(), run.gate(), run.goes_alone());
        desk.changes.released.push(Released { lease, delay, gate, goes_alone });
    }
}

/// What the outcome means for the invoice, and the events that tell of it.
fn apply(desk: &mut Desk, cause: CommandId, run: &Run, outcome: &StepOutcome) -> Result<(), Refusal> {
    if run.operation == Operation::Payment {
        payment::follow(desk, cause, run, &outcome.verdict);
        return Ok(());
    }
    let invoice = desk.invoice_with_irn(&run.irn).cloned();
    match &outcome.verdict {
        StepResult::Done { .. } => match (outcome.step.stage(), invoice) {
            (Some(stage), Some(invoice))
                if invoice.status == WorkflowStatus::Cancelled && outcome.step.has_effect() =>
            {
                reach_cancelled(desk, cause, invoice, (run.operation, stage));
            }
            (Some(stage), Some(invoice)) => reach(desk, cause, signed(invoice, run), stage)?,
            (Some(stage), None) => reach_unknown(desk, cause, &run.irn, stage),
            (None, Some(invoice)) if outcome.step == Step::Sign => {
                desk.put_invoice(signed(invoice, run));
                payment::take_signed(desk, cause, run);
            }
            (None, _) => {}
        },
        StepResult::Unchanged(_) => {}
        StepResult::Wait { .. } | StepResult::Hold { .. } => {
            if let Some(invoice) = invoice.filter(|_| run.state == RunState::Waiting) {
                show(desk, invoice, (run.operation, AuthorityStatus::Queued));
            }
        }
        StepResult::Refused { error } => stop(desk, cause, run, (AuthorityStatus::Rejected, error)),
        StepResult::Pause { error } => stop(desk, cause, run, (AuthorityStatus::Failed, error)),
    }
    Ok(())
}

fn signed(invoice: Invoice, run: &Run) -> Invoice {
    match &run.qr_code {
        Some(qr_code) => invoice.signed(qr_code.clone()),
        None => invoice,
    }
}

/// Moves the invoice to a stage; each move tells of the status and of itself. A stage that comes after a later
/// one, as a submission after a report, tells of itself alone.
pub(super) fn reach(
    desk: &mut Desk,
    cause: CommandId,
    invoice: Invoice,
    stage: Stage,
) -> Result<(), Refusal> {
    let previous = invoice.status;
    let is_late = previous.stage() > Some(stage);
    let invoice = invoice.reached(stage, desk.now)?;
    let extra = || json!({ "previous_status": previous });
    if invoice.status != previous {
        desk.emit_about(cause, EventKind::InvoiceStatusUpdated, &invoice, extra());
    }
    if invoice.status != previous || is_late {
        desk.emit_about(cause, kind_of(stage), &invoice, extra());
    }
    desk.put_invoice(invoice);
    Ok(())
}

/// The invoice was cancelled while the call was under way: what the authority has is told, the status stays.
fn reach_cancelled(
    desk: &mut Desk,
    cause: CommandId,
    invoice: Invoice,
    (operation, stage): (Operation, Stage),
) {
    let extra = json!({ "previous_status": invoice.status });
    let invoice = show(desk, invoice, (operation, stage.into()));
    desk.emit_about(cause, kind_of(stage), &invoice, extra);
}

/// An IRN that is no stored invoice is relayed all the same, and its events tell what is known.
pub(super) fn reach_unknown(desk: &mut Desk, cause: CommandId, irn: &Irn, stage: Stage) {
    let data = json!({ "irn": irn.as_str(), "invoice": Value::Null, "status": WorkflowStatus::from(stage) });
    desk.emit(cause, kind_of(stage), Some(irn), data);
}

/// The run does not go on by itself: the invoice shows it and an event says why.
pub(super) fn stop(desk: &mut Desk, cause: CommandId, run: &Run, (status, error): (AuthorityStatus, &str)) {
    let kind = match status {
        AuthorityStatus::Rejected => EventKind::InvoiceRejected,
        _ => EventKind::InvoiceFailed,
    };
    let extra = json!({ "operation": run.operation, "error": error });
    if let Some(invoice) = desk.invoice_with_irn(&run.irn).cloned() {
        let invoice = show(desk, invoice, (run.operation, status));
        let mut extra = extra;
        extra["previous_status"] = json!(invoice.status);
        desk.emit_about(cause, kind, &invoice, extra);
    } else {
        let data = json!({ "irn": run.irn.as_str(), "invoice": Value::Null, "operation": run.operation, "error": error });
        desk.emit(cause, kind, Some(&run.irn), data);
    }
}

/// Shows where a run stands with the authority; the workflow status stays. What the authority has told already
/// of a transmission is not unsaid by a run that still waits to hear it.
pub(super) fn show(
    desk: &mut Desk,
    mut invoice: Invoice,
    (operation, status): (Operation, AuthorityStatus),
) -> Invoice {
    let is_transmitted = invoice.status.stage() >= Some(Stage::Transmitted);
    let is_acknowledged = invoice.authority.status == AuthorityStatus::Acknowledged;
    if is_acknowledged || (operation == Operation::Transmit && is_transmitted) {
        return invoice;
    }
    invoice.authority.status = status;
    invoice.updated_at = desk.now;
    desk.put_invoice(invoice.clone());
    invoice
}

fn kind_of(stage: Stage) -> EventKind {
    match stage {
        Stage::Validated => EventKind::InvoiceValidated,
        Stage::Submitted => EventKind::InvoiceSubmitted,
        Stage::Transmitted => EventKind::InvoiceTransmitted,
        Stage::Reported => EventKind::InvoiceReported,
    }
}

fn reply(run: Run) -> Reply {
    Reply::Run(Box::new(run))
}
