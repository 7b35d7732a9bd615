//! Changing an invoice: its status, its payment.

use serde_json::json;

use crate::actors::taxpayer::command::{PaymentUpdate, Reply, Which};
use crate::actors::taxpayer::decide::payment;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::codes::{AuthorityStatus, SettableStatus};
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::{Operation, Run, RunState};

pub(super) fn set_status(
    desk: &mut Desk,
    cause: CommandId,
    which: &Which,
    status: SettableStatus,
    remark: &str,
) -> Result<Reply, Refusal> {
    let before = desk.invoice(which)?;
    let previous = before.status;
    let mut invoice = before.clone().moved(Transition::Set(status), desk.now)?;
    if status == SettableStatus::Cancelled && call_off(desk, &invoice) {
        invoice.authority.status = AuthorityStatus::Pending;
    }
    let extra = json!({ "previous_status": previous, "remark": remark });
    desk.emit_about(cause, EventKind::InvoiceStatusUpdated, &invoice, extra);
    desk.put_invoice(invoice.clone());
    Ok(Reply::Invoice(Box::new(invoice)))
}

/// Ends the runs that would bring a cancelled invoice to the authority, as long as it was told nothing of it. What it
/// may have been told is heard to its end.
fn call_off(desk: &mut Desk, invoice: &Invoice) -> bool {
    let runs =
        [Operation::Submit, Operation::Report].map(|operation| desk.run(operation, &invoice.irn).cloned());
    let goes_on = |run: &Run| (run.state.is_open() || run.state == RunState::Paused) && run.is_replaceable();
    let called_off: Vec<Run> = runs.into_iter().flatten().filter(goes_on).collect();
    let any = !called_off.is_empty();
    for run in called_off {
        desk.put_run(run.cancelled(desk.now));
    }
    any
}

pub(super) fn pay(desk: &mut Desk, cause: CommandId, update: &PaymentUpdate) -> Result<Reply, Refusal> {
    let before = desk.invoice(&update.which)?;
    let previous = before.status;
    let (invoice, posting) = before.clone().paid(update.notice, desk.now)?;
    let note = payment::Note { reference: update.reference.clone(), remark: Some(update.remark.clone()) };
    payment::post(desk, cause, (previous, &invoice), posting, note);
    Ok(Reply::Invoice(Box::new(invoice)))
}
