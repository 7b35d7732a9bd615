//! A run that stopped short of what the authority has goes on, so that it asks and resolves itself. One that has
//! moved since it was looked at is left alone: whoever moved it knew more.

use crate::actors::taxpayer::command::{Reconsideration, Reply};
use crate::actors::taxpayer::decide::pipeline::{permit, show};
use crate::actors::taxpayer::desk::Desk;
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::{Operation, RunRequest, RunState};

pub(super) fn reconsider(desk: &mut Desk, order: &Reconsideration) -> Result<Reply, Refusal> {
    let run = desk.runs.iter().find(|run| run.id == order.run).cloned().ok_or(Refusal::RunNotFound)?;
    let has_moved = run.updated_at != order.seen;
    let run = match run.state {
        RunState::Waiting if !has_moved => run.hurried(desk.now),
        RunState::Paused if !has_moved && !run.is_quarantined() => run.reopened(desk.now),
        _ => return Ok(Reply::Run(Box::new(run))),
    };
    let (operation, irn, document) = (run.operation, run.irn.clone(), run.document.clone());
    permit(desk, &RunRequest { operation, irn, document })?;
    match desk.invoice_with_irn(&run.irn).cloned() {
        Some(invoice) if operation != Operation::Payment => {
            show(desk, invoice, (operation, AuthorityStatus::Queued));
        }
        _ => {}
    }
    desk.changes.due_runs.insert(run.id);
    desk.put_run(run.clone());
    Ok(Reply::Run(Box::new(run)))
}
