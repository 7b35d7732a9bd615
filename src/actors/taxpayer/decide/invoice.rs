//! Changing an invoice: its status, its payment.

use serde_json::json;

use crate::actors::taxpayer::command::{PaymentUpdate, Reply, Which};
use crate::actors::taxpayer::decide::payment;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::codes::SettableStatus;
use crate::domain::event::EventKind;
use crate::domain::ids::CommandId;
use crate::domain::lifecycle::Move;
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
