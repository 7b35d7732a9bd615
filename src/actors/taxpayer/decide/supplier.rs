//! The inbox: a supplier's invoice comes in once and is acknowledged once. Of concurrent twins the first one
//! counts; what the authority was asked meanwhile does not matter here.

use serde_json::json;

use crate::actors::taxpayer::command::Reply;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::invoice_view::precise;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::supplier_invoice::SupplierDocument;

pub(super) fn receive(desk: &mut Desk, cause: CommandId, sent: &SupplierDocument) -> Result<Reply, Refusal> {
    desk.taxpayer()?;
    if desk.supplier_invoice(&sent.irn).is_some() {
        return Ok(Reply::Done);
    }
    let invoice = sent.received(desk.id, desk.now);
    let data = json!({
        "irn": invoice.irn,
        "supplier_irn": invoice.irn,
        "supplier_name": invoice.supplier_name,
        "supplier_tin": invoice.supplier_tin,
        "received_at": precise(invoice.received_at),
    });
    desk.emit(cause, EventKind::SupplierInvoiceReceived, Some(&invoice.irn), data);
    desk.changes.received.push((invoice.clone(), sent.document.clone()));
    desk.put_supplier_invoice(invoice);
    Ok(Reply::Done)
}

pub(super) fn acknowledge(desk: &mut Desk, cause: CommandId, irn: &Irn) -> Result<Reply, Refusal> {
    let mut invoice = desk.supplier_invoice(irn).cloned().ok_or(Refusal::NotAddressedToCaller)?;
    if invoice.acknowledged_at.is_some() {
        return Err(Refusal::AlreadyAcknowledged);
    }
    invoice.acknowledged_at = Some(desk.now);
    let data = json!({
        "irn": invoice.irn,
        "supplier_irn": invoice.irn,
        "acknowledged_at": precise(desk.now),
    });
    desk.emit(cause, EventKind::SupplierInvoiceAcknowledged, Some(&invoice.irn), data);
    desk.changes.acknowledged.push((invoice.irn.clone(), desk.now));
    desk.put_supplier_invoice(invoice.clone());
    Ok(Reply::SupplierInvoice(Box::new(invoice)))
}
