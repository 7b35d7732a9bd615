//! What an operator does to a run. The move is decided on the run as it stands in the books, under the same lock
//! as the outcome of any call that is under way: whichever comes second sees the other.

use crate::actors::taxpayer::command::{Reply, RunOrder};
use crate::actors::taxpayer::decide::payment;
use crate::actors::taxpayer::decide::pipeline::{permit, show, stop};
use crate::actors::taxpayer::desk::Desk;
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::operator_action::OperatorAction;
use crate::domain::pipeline::{Operation, Run, RunRequest, StepResult};

const CANCELLED: &str = "the run was cancelled by an operator";

pub(super) fn move_run(desk: &mut Desk, cause: CommandId, order: &RunOrder) -> Result<Reply, Refusal> {
    let before = desk.runs.iter().find(|run| run.id == order.run).cloned().ok_or(Refusal::RunNotFound)?;
    let run = before.clone().moved(order.to, desk.now)?;
    match order.to {
        OperatorAction::Pause => show_invoice(desk, &run, AuthorityStatus::Failed),
        OperatorAction::Resume | OperatorAction::Retry => {
            let (operation, irn, document) = (run.operation, run.irn.clone(), run.document.clone());
            permit(desk, &RunRequest { operation, irn, document })?;
            show_invoice(desk, &run, AuthorityStatus::Queued);
            desk.changes.due_runs.insert(run.id);
        }
        OperatorAction::Cancel if run.operation == Operation::Payment => {
            payment::follow(desk, cause, &run, &StepResult::Pause { error: CANCELLED.to_owned() });
        }
        OperatorAction::Cancel => stop(desk, cause, &run, (AuthorityStatus::Failed, CANCELLED)),
    }
    desk.changes.audit.push(entry(desk, order, (&before, &run)));
    desk.put_run(run.clone());
    Ok(Reply::Run(Box::new(run)))
}

/// A payment that is relayed says nothing of where the invoice stands.
fn show_invoice(desk: &mut Desk, run: &Run, status: AuthorityStatus) {
    if run.operation == Operation::Payment {
        return;
    }
    if let Some(invoice) = desk.invoice_with_irn(&run.irn).cloned() {
        show(desk, invoice, (run.operation, status));
    }
}

fn entry(desk: &Desk, order: &RunOrder, (before, after): (&Run, &Run)) -> AuditEntry {
    let action = match order.to {
        OperatorAction::Pause => AuditAction::PauseRun,
        OperatorAction::Resume => AuditAction::ResumeRun,
        OperatorAction::Retry => AuditAction::RetryRun,
        OperatorAction::Cancel => AuditAction::CancelRun,
    };
    let entry = AuditEntry::ordered(&order.by, action, &order.run, desk.now).of_taxpayer(desk.id);
    entry.between(Some(before.state.to_string()), Some(after.state.to_string()))
}
