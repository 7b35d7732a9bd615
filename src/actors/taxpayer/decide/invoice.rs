//! Changing an invoice: its status, its payment, the receipt of its transmission.

use serde_json::{Value, json};

use crate::actors::taxpayer::command::{PaymentUpdate, Reply, Which};
use crate::actors::taxpayer::decide::payment;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::codes::{AuthorityStatus, SettableStatus};
use crate::domain::event::EventKind;
use crate::domain::ids::CommandId;
use crate::domain::irn::Irn;
use crate::domain::lifecycle::{Move, Stage};
use crate::domain::pipeline::{Operation, Step};
use crate::domain::refusal::Refusal;

pub(super) fn set_status(
    desk: &mut Desk,
    cause: CommandId,
    which: &Which,
    status: SettableStatus,
    remark: &str,
) -> Result<Reply, Refusal> {
    let before = desk.invoice(which)?;
    let previous = before.status;
    let invoice = before.clone().moved(Move::Set(status), desk.now)?;
    let extra = json!({ "previous_status": previous, "remark": remark });
    desk.emit_about(cause, EventKind::InvoiceStatusUpdated, &invoice, extra);
    desk.put_invoice(invoice.clone());
    Ok(Reply::Invoice(Box::new(invoice)))
}

pub(super) fn pay(desk: &mut Desk, cause: CommandId, update: &PaymentUpdate) -> Result<Reply, Refusal> {
    let before = desk.invoice(&update.which)?;
    let previous = before.status;
    let (invoice, posting) = before.clone().paid(update.notice, desk.now)?;
    let note = payment::Note { reference: update.reference.clone(), remark: Some(update.remark.clone()) };
    payment::post(desk, cause, (previous, &invoice), posting, note);
    Ok(Reply::Invoice(Box::new(invoice)))
}

/// Notes once that the receipt was confirmed: on the run that transmitted, and on the invoice if we have it.
pub(super) fn record_receipt(desk: &mut Desk, cause: CommandId, irn: &Irn) -> Reply {
    let run = desk.run(Operation::Transmit, irn).cloned();
    let invoice = desk.invoice_with_irn(irn).cloned();
    let noted = run.as_ref().is_some_and(|run| run.done.contains(&Step::Receipt))
        || invoice.as_ref().is_some_and(|invoice| invoice.authority.status == AuthorityStatus::Acknowledged);
    if noted {
        return Reply::Done;
    }
    if let Some(mut run) = run {
        run.done.push(Step::Receipt);
        desk.put_run(run);
    }
    if let Some(mut invoice) = invoice {
        // A report is the later word: it stays.
        if invoice.status.stage() != Some(Stage::Reported) {
            invoice.authority.status = AuthorityStatus::Acknowledged;
        }
        invoice.updated_at = desk.now;
        let extra = json!({ "previous_status": invoice.status });
        desk.emit_about(cause, EventKind::InvoiceAcknowledged, &invoice, extra);
        desk.put_invoice(invoice);
    } else {
        let data = json!({ "irn": irn.as_str(), "invoice": Value::Null });
        desk.emit(cause, EventKind::InvoiceAcknowledged, Some(irn), data);
    }
    Reply::Done
}
