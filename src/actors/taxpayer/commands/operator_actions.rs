//! An operator's actions on a run. The taxpayer actor handles an action and the outcome of a call in flight one after
//! the other, so the second one sees the effect of the first.

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::payment;
use crate::actors::taxpayer::commands::runs::{
    check_preconditions, show_authority_status, to_run_request,
};
use crate::actors::taxpayer::commands::steps::report_stopped_run;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::kernel::ids::RunId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::{Operation, OperatorAction, Run, StepResult};

const CANCELLED_ERROR: &str = "the run was cancelled by an operator";

/// Pauses, resumes, retries or cancels a run on behalf of an operator.
pub struct ApplyOperatorAction {
    pub run: RunId,
    pub irn: Irn,
    pub to: OperatorAction,
    pub by: OperatorRequest,
}

impl TaxpayerCommand for ApplyOperatorAction {
    type Output = Run;

    const NAME: &'static str = "apply-operator-action";

    fn default_audit_actor(&self) -> Actor {
        Actor::Operator(self.by.operator_id)
    }

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        if matches!(self.to, OperatorAction::Resume | OperatorAction::Retry) {
            wanted.add_stopped_run(&self.irn);
        } else {
            wanted.add_invoice_with_runs(&self.irn);
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Run, Refusal> {
        let before = uow.find_run_by_id(self.run)?.clone();
        let run = before.clone().apply_action(self.to, uow.now)?;
        match self.to {
            OperatorAction::Pause => show_run_status_on_invoice(uow, &run, AuthorityStatus::Failed),
            OperatorAction::Resume | OperatorAction::Retry => {
                check_preconditions(uow, &to_run_request(&run))?;
                show_run_status_on_invoice(uow, &run, AuthorityStatus::Queued);
                uow.writes.due_runs.insert(run.id);
            }
            OperatorAction::Cancel if run.operation() == Operation::Payment => {
                payment::apply_relay_verdict(
                    uow,
                    &run,
                    &StepResult::Pause {
                        error: CANCELLED_ERROR.to_owned(),
                    },
                );
            }
            OperatorAction::Cancel => {
                report_stopped_run(uow, &run, AuthorityStatus::Failed, CANCELLED_ERROR);
            }
        }
        let entry = audit_entry(uow, self, &before, &run);
        uow.writes.audit.push(entry);
        uow.put_run(run.clone());
        Ok(run)
    }
}

/// Sets the invoice's authority status to that of the run. The run of a relayed payment does not affect the status.
fn show_run_status_on_invoice(uow: &mut UnitOfWork, run: &Run, status: AuthorityStatus) {
    if run.operation() == Operation::Payment {
        return;
    }
    if let Some(invoice) = uow.find_invoice_by_irn(&run.irn).cloned() {
        show_authority_status(uow, invoice, run.operation(), status);
    }
}

fn audit_entry(
    uow: &UnitOfWork,
    request: &ApplyOperatorAction,
    before: &Run,
    after: &Run,
) -> AuditEntry {
    let action = match request.to {
        OperatorAction::Pause => AuditAction::PauseRun,
        OperatorAction::Resume => AuditAction::ResumeRun,
        OperatorAction::Retry => AuditAction::RetryRun,
        OperatorAction::Cancel => AuditAction::CancelRun,
    };
    let entry = AuditEntry::for_operator_request(&request.by, action, &request.run, uow.now)
        .for_taxpayer(uow.id);
    entry.with_states(
        Some(before.state().to_string()),
        Some(after.state().to_string()),
    )
}
