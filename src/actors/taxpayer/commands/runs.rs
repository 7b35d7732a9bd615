//! The commands that open a run of the pipeline, for a person or a program, make a stopped run ask the authority, and
//! lift a run's quarantine.

use jiff::Timestamp;
use timing::clock;
use timing::trace::TraceContext;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::commands::payment;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::{Stage, Transition};
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::kernel::codes::{AuthorityStatus, RelayedPaymentStatus};
use crate::domain::kernel::ids::RunId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::{Operation, Run, RunPayload, RunRequest, RunState};

/// Opens a run of the pipeline, or joins the run that the invoice already has for this operation. A run that ended
/// without success is reopened. A run that an operator has paused stays paused until an operator resumes it.
pub struct OpenRun(pub RunRequest);

/// Opens a run as `OpenRun` does, for a person in the console. Records the person in the audit trail, because the
/// events that follow name the authority as their actor.
pub struct OpenAuditedRun(pub OpenRun);

/// Makes a waiting or paused run due, so that it asks the authority for the invoice's state. The sender has checked
/// that no operator paused the run. A pause after the check changes the run, and the command then does nothing.
pub struct RecheckRun(pub StoppedRun);

/// Lifts the quarantine of a run, so that the run continues without an operator. Does so only if crashes alone caused
/// the quarantine and it was not lifted before.
pub struct LiftQuarantine(pub StoppedRun);

/// A stopped run as the sender read it. The command does nothing if the run has changed since.
#[derive(Debug, Clone)]
pub struct StoppedRun {
    pub run: RunId,
    pub irn: Irn,
    /// The `updated_at` of the run when the sender read it.
    pub seen_updated_at: Timestamp,
}

impl TaxpayerCommand for OpenRun {
    type Output = Run;

    const NAME: &'static str = "open-run";

    fn size(&self) -> CommandSize {
        self.0
            .payload
            .submission()
            .map(|document| CommandSize::for_document(document.as_json()))
            .unwrap_or_default()
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_invoice_with_runs(&self.0.irn);
        wanted.add_runs_paused_by_operator();
        let relayed = self.0.payload.payment();
        if relayed.is_some_and(|relayed| relayed.payment_status == RelayedPaymentStatus::Paid) {
            wanted.add_credit_notes();
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Run, Refusal> {
        let request = &self
            .0
            .clone()
            .with_irn_spelling(canonical_irn(uow, &self.0));
        check_preconditions(uow, request)?;
        let run = match uow.run(request.operation(), &request.irn).cloned() {
            None => {
                let fresh = Run::new(clock::new_id(), uow.id, request.clone(), uow.now);
                fresh.with_deadline(run_deadline(uow, request))
            }
            Some(run) if payment::is_payment_final(uow, &run, request) => return Ok(run),
            Some(run) if is_paused_by_operator(uow, &run) => {
                return keep_run_paused(uow, run, request);
            }
            Some(run)
                if run.operation().is_repeatable()
                    && !run.state().is_open()
                    && run.is_replaceable() =>
            {
                run.start_over(request.clone(), uow.now)
                    .with_deadline(run_deadline(uow, request))
            }
            Some(run) if run.digest == request.digest() => match run.state() {
                RunState::Running | RunState::Succeeded => return Ok(run),
                // A waiting submission keeps its schedule. Any other waiting run is retried at once on every request.
                RunState::Waiting if request.operation() == Operation::Submit => return Ok(run),
                RunState::Waiting => run.make_due(uow.now),
                // A request does not release a quarantined run.
                RunState::Paused if run.is_quarantined() => return Ok(run),
                RunState::Paused | RunState::Refused | RunState::Cancelled => run.reopen(uow.now),
            },
            Some(run) if run.is_replaceable() => run
                .start_over(request.clone(), uow.now)
                .with_deadline(run_deadline(uow, request)),
            Some(_) => return Err(content_refusal(request)),
        };
        let asker = uow.named_actor();
        Ok(make_run_due(uow, run.with_asker(Some(asker))))
    }
}

/// True if an operator has paused the run: the last audit entry about it is a pause.
fn is_paused_by_operator(uow: &UnitOfWork, run: &Run) -> bool {
    if run.state() != RunState::Paused {
        return false;
    }
    let subject = run.id.to_string();
    let mut written = uow.writes.audit.iter().rev();
    written.find(|entry| entry.subject == subject).map_or_else(
        || uow.runs_paused_by_operator.contains(&run.id),
        |entry| entry.action == AuditAction::PauseRun,
    )
}

/// Leaves a run paused that an operator has paused. If the request has other content, the run takes it over, so that
/// the operator does not resume a run with content that the taxpayer has replaced.
fn keep_run_paused(uow: &mut UnitOfWork, run: Run, request: &RunRequest) -> Result<Run, Refusal> {
    if run.digest == request.digest() {
        return Ok(run);
    }
    if !run.is_replaceable() {
        return Err(content_refusal(request));
    }
    let asker = uow.named_actor();
    let run = run
        .start_over(request.clone(), uow.now)
        .with_deadline(run_deadline(uow, request))
        .with_asker(Some(asker))
        .with_trace(TraceContext::current())
        .pause(uow.now);
    uow.put_run(run.clone());
    Ok(run)
}

/// Returns the refusal of a request whose content the run can no longer take over.
fn content_refusal(request: &RunRequest) -> Refusal {
    if request.operation().is_repeatable() {
        Refusal::PaymentUnderWay
    } else {
        Refusal::IrnContentChanged
    }
}

impl TaxpayerCommand for OpenAuditedRun {
    type Output = Run;

    const NAME: &'static str = OpenRun::NAME;

    fn size(&self) -> CommandSize {
        self.0.size()
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        self.0.add_reads(wanted, context);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Run, Refusal> {
        let request = &self.0.0;
        let before = uow.run(request.operation(), &request.irn).cloned();
        let run = self.0.execute(uow)?;
        // A request that only joins a running or successful run changes nothing, so the audit does not record it.
        if before.as_ref() != Some(&run) {
            record_in_audit(uow, &run);
        }
        Ok(run)
    }
}

/// Records in the audit who submitted or transmitted the invoice of the run.
fn record_in_audit(uow: &mut UnitOfWork, run: &Run) {
    let action = match run.operation() {
        Operation::Submit => AuditAction::SubmitInvoice,
        Operation::Transmit => AuditAction::TransmitInvoice,
        Operation::Report | Operation::Payment => return,
    };
    let entry = AuditEntry {
        subject: run.irn.as_str().to_owned(),
        ..audit_entry(uow, uow.acting.actor, action)
    };
    uow.writes.audit.push(entry);
}

impl TaxpayerCommand for RecheckRun {
    type Output = Run;

    const NAME: &'static str = "recheck-run";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_stopped_run(&self.0.irn);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Run, Refusal> {
        let run = uow.find_run_by_id(self.0.run)?.clone();
        let has_changed = run.updated_at != self.0.seen_updated_at;
        let run = match run.state() {
            RunState::Waiting if !has_changed => run.make_due(uow.now),
            RunState::Paused if !has_changed && !run.is_quarantined() => run.reopen(uow.now),
            _ => return Ok(run),
        };
        check_preconditions(uow, &to_run_request(&run))?;
        Ok(make_run_due(uow, run))
    }
}

impl TaxpayerCommand for LiftQuarantine {
    type Output = Run;

    const NAME: &'static str = "lift-run";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_stopped_run(&self.0.irn);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Run, Refusal> {
        let run = uow.find_run_by_id(self.0.run)?.clone();
        let is_current =
            run.updated_at == self.0.seen_updated_at && run.state() == RunState::Paused;
        if !is_current || !run.progress.crash_history.may_lift_quarantine() {
            return Ok(run);
        }
        if check_preconditions(uow, &to_run_request(&run)).is_err() {
            // The invoice has changed since the run stopped. The run stays paused, and from now on only an operator
            // releases it.
            let run = run.require_operator_release();
            uow.put_run(run.clone());
            return Ok(run);
        }
        let run = run.lift_quarantine(uow.now);
        Ok(make_run_due(uow, run))
    }
}

/// Makes a run due and sets the authority status of its invoice to queued. The run of a relayed payment does not change
/// the authority status.
fn make_run_due(uow: &mut UnitOfWork, run: Run) -> Run {
    let run = run.with_trace(TraceContext::current());
    match uow.find_invoice_by_irn(&run.irn).cloned() {
        Some(invoice) if run.operation() != Operation::Payment => {
            show_authority_status(uow, invoice, run.operation(), AuthorityStatus::Queued);
        }
        _ => {}
    }
    uow.writes.due_runs.insert(run.id);
    uow.put_run(run.clone());
    run
}

/// Returns the request that the run carries out.
pub(super) fn to_run_request(run: &Run) -> RunRequest {
    RunRequest {
        irn: run.irn.clone(),
        payload: run.payload.clone(),
    }
}

/// Returns the deadline of a new run. An operation that follows a submission has the deadline of the submission.
fn run_deadline(uow: &UnitOfWork, request: &RunRequest) -> Timestamp {
    let submitted = uow.run(Operation::Submit, &request.irn);
    if let Some(run) = submitted.filter(|run| request.operation() != run.operation()) {
        return run.deadline_at;
    }
    let category = uow
        .find_invoice_by_irn(&request.irn)
        .map(|invoice| invoice.category);
    uow.deadlines
        .deadline(request.payload.submission(), category, uow.now)
}

/// Returns the spelling of the IRN for the authority, which must always get the same one: that of the stored invoice,
/// else of its runs, else of this request. The events of the runs have it too.
fn canonical_irn(uow: &UnitOfWork, request: &RunRequest) -> Irn {
    let irn = &request.irn;
    let stored = uow.find_invoice_by_irn(irn).map(|invoice| &invoice.irn);
    let known_irn = stored.or_else(|| {
        let mut runs = Operation::ALL.iter().filter_map(|one| uow.run(*one, irn));
        runs.next().map(|run| &run.irn)
    });
    known_irn.unwrap_or(irn).clone()
}

/// Checks that the states of the invoice and of its submission permit the operation.
pub(super) fn check_preconditions(uow: &UnitOfWork, request: &RunRequest) -> Result<(), Refusal> {
    let invoice = uow.find_invoice_by_irn(&request.irn);
    match &request.payload {
        RunPayload::Submit(_) => invoice.map_or(Ok(()), |invoice| {
            invoice.status.after(Transition::Submit).map(drop)
        }),
        RunPayload::Transmit => {
            let submission = uow.run(Operation::Submit, &request.irn).map(Run::state);
            match submission {
                Some(RunState::Succeeded) => Ok(()),
                Some(RunState::Running | RunState::Waiting | RunState::Paused) => {
                    Err(Refusal::SignatureUnderWay)
                }
                Some(RunState::Refused | RunState::Cancelled) => Err(Refusal::InvoiceNotSigned),
                None if invoice.is_some() => Err(Refusal::InvoiceNotSigned),
                None => Err(Refusal::InvoiceNotFound),
            }
        }
        RunPayload::Report(_) => {
            let reported = Transition::Reach(Stage::Reported);
            invoice.map_or(Ok(()), |invoice| invoice.status.after(reported).map(drop))
        }
        RunPayload::Payment(relayed) => payment::check_relayed_payment(uow, relayed, invoice),
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
