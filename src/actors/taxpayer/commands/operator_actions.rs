//! An operator's actions on a run. The taxpayer actor decides the action and the outcome of a call in flight one after
//! the other, so whichever is second takes the first into account.

use crate::actors::taxpayer::command::{CommandReply, OperatorActionRequest};
use crate::actors::taxpayer::commands::payment;
use crate::actors::taxpayer::commands::runs::{check_preconditions, show_authority_status, stop};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::operator_action::OperatorAction;
use crate::domain::pipeline::{Operation, Run, RunRequest, StepResult};

const CANCELLED: &str = "the run was cancelled by an operator";

pub(super) fn apply(
    uow: &mut UnitOfWork,
    cause: CommandId,
    request: &OperatorActionRequest,
) -> Result<CommandReply, Refusal> {
    let before = uow.runs.iter().find(|run| run.id == request.run).cloned().ok_or(Refusal::RunNotFound)?;
    let run = before.clone().moved(request.to, uow.now)?;
    match request.to {
        OperatorAction::Pause => show_on_invoice(uow, &run, AuthorityStatus::Failed),
        OperatorAction::Resume | OperatorAction::Retry => {
            let (operation, irn, document) = (run.operation, run.irn.clone(), run.document.clone());
            check_preconditions(uow, &RunRequest { operation, irn, document })?;
            show_on_invoice(uow, &run, AuthorityStatus::Queued);
            uow.writes.due_runs.insert(run.id);
        }
        OperatorAction::Cancel if run.operation == Operation::Payment => {
            payment::follow(uow, cause, &run, &StepResult::Pause { error: CANCELLED.to_owned() });
        }
        OperatorAction::Cancel => stop(uow, cause, &run, AuthorityStatus::Failed, CANCELLED),
    }
    uow.writes.audit.push(audit_entry(uow, request, &before, &run));
    uow.put_run(run.clone());
    Ok(CommandReply::Run(Box::new(run)))
}

/// Shows the state of the run as the invoice's authority status. A relayed payment does not affect that status.
fn show_on_invoice(uow: &mut UnitOfWork, run: &Run, status: AuthorityStatus) {
    if run.operation == Operation::Payment {
        return;
    }
    if let Some(invoice) = uow.invoice_with_irn(&run.irn).cloned() {
        show_authority_status(uow, invoice, run.operation, status);
    }
}

fn audit_entry(uow: &UnitOfWork, request: &OperatorActionRequest, before: &Run, after: &Run) -> AuditEntry {
    let action = match request.to {
        OperatorAction::Pause => AuditAction::PauseRun,
        OperatorAction::Resume => AuditAction::ResumeRun,
        OperatorAction::Retry => AuditAction::RetryRun,
        OperatorAction::Cancel => AuditAction::CancelRun,
    };
    let entry = AuditEntry::ordered(&request.by, action, &request.run, uow.now).of_taxpayer(uow.id);
    entry.between(Some(before.state.to_string()), Some(after.state.to_string()))
}
