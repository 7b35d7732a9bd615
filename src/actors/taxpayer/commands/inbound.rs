//! Records what the authority reports outside a run: transmissions, receipts, supplier invoices and outages. Reports
//! may repeat and arrive in any order, so each fact is recorded once and emits its event once.

use serde_json::{Value, json};

use crate::actors::taxpayer::command::CommandReply;
use crate::actors::taxpayer::commands::runs::{reach, reach_unknown};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::invoice_view::precise;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::Stage;
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::outage::OutageNotice;
use crate::domain::pipeline::{Operation, Step};
use crate::domain::supplier_invoice::SupplierDocument;
use crate::store::operations::outages::OutageEvent;

/// Records that an invoice was transmitted and, if `is_delivered`, that its receipt was confirmed. The invoice's status
/// never moves backward.
pub(super) fn record_transit(
    uow: &mut UnitOfWork,
    cause: CommandId,
    irn: &Irn,
    is_delivered: bool,
) -> CommandReply {
    let has_ended = end_run(uow, irn);
    match uow.invoice_with_irn(irn).cloned() {
        Some(invoice) if invoice.status.stage() < Some(Stage::Transmitted) => {
            // For a cancelled invoice `reach` returns a refusal, which nobody waits for. The invoice stays cancelled.
            let _ = reach(uow, cause, invoice, Stage::Transmitted);
        }
        None if has_ended => reach_unknown(uow, cause, irn, Stage::Transmitted),
        _ => {}
    }
    if is_delivered { record_receipt(uow, cause, irn) } else { CommandReply::Done }
}

/// Completes a transmission run that stopped before the authority's answer arrived. An open run learns the outcome
/// itself. Returns true if a run was completed.
fn end_run(uow: &mut UnitOfWork, irn: &Irn) -> bool {
    let run = uow.run(Operation::Transmit, irn);
    let stopped = run.filter(|run| !run.state.is_open() && !run.done.contains(&Step::Send)).cloned();
    let Some(run) = stopped else { return false };
    let run = run.found_transmitted(uow.now);
    uow.put_run(run);
    true
}

/// Records once that the receipt of an invoice was confirmed: in the invoice's run, in its authority status, and as an
/// event. If neither a run nor the invoice is stored, there is only the event.
pub(super) fn record_receipt(uow: &mut UnitOfWork, cause: CommandId, irn: &Irn) -> CommandReply {
    let runs = [Operation::Transmit, Operation::Submit].map(|operation| uow.run(operation, irn).cloned());
    let invoice = uow.invoice_with_irn(irn).cloned();
    let is_recorded = uow.acknowledged.iter().any(|recorded| recorded.key() == irn.key())
        || runs.iter().flatten().any(|run| run.done.contains(&Step::Receipt))
        || invoice.as_ref().is_some_and(|invoice| invoice.authority.status == AuthorityStatus::Acknowledged);
    if is_recorded {
        return CommandReply::Done;
    }
    uow.acknowledged.push(irn.clone());
    if let Some(mut run) = runs.into_iter().flatten().next() {
        run.done.push(Step::Receipt);
        uow.put_run(run);
    }
    if let Some(mut invoice) = invoice {
        if invoice.authority.status.progress() < AuthorityStatus::Acknowledged.progress() {
            invoice.authority.status = AuthorityStatus::Acknowledged;
        }
        invoice.updated_at = uow.now;
        let extra = json!({ "previous_status": invoice.status });
        uow.emit_about(cause, EventKind::InvoiceAcknowledged, &invoice, extra);
        uow.put_invoice(invoice);
    } else {
        let data = json!({ "irn": irn.as_str(), "invoice": Value::Null });
        uow.emit(cause, EventKind::InvoiceAcknowledged, Some(irn), &data);
    }
    CommandReply::Done
}

/// Adds a supplier's invoice to the inbox, unless the inbox already has it.
pub(super) fn receive_supplier_invoice(
    uow: &mut UnitOfWork,
    cause: CommandId,
    document: &SupplierDocument,
) -> Result<CommandReply, Refusal> {
    uow.taxpayer()?;
    if uow.supplier_invoice(&document.irn).is_some() {
        return Ok(CommandReply::Done);
    }
    let invoice = document.received(uow.id, uow.now);
    let data = json!({
        "irn": invoice.irn,
        "supplier_irn": invoice.irn,
        "supplier_name": invoice.supplier_name,
        "supplier_tin": invoice.supplier_tin,
        "received_at": precise(invoice.received_at),
    });
    uow.emit(cause, EventKind::SupplierInvoiceReceived, Some(&invoice.irn), &data);
    uow.writes.received.push((invoice.clone(), document.document.clone()));
    uow.put_supplier_invoice(invoice);
    Ok(CommandReply::Done)
}

/// Records that the authority has our acknowledgement. Of several acknowledgements of an invoice, the first one
/// recorded counts.
pub(super) fn acknowledge_supplier_invoice(
    uow: &mut UnitOfWork,
    cause: CommandId,
    irn: &Irn,
) -> Result<CommandReply, Refusal> {
    let mut invoice = uow.supplier_invoice(irn).cloned().ok_or(Refusal::NotAddressedToCaller)?;
    if invoice.acknowledged_at.is_some() {
        return Err(Refusal::AlreadyAcknowledged);
    }
    invoice.acknowledged_at = Some(uow.now);
    let data = json!({
        "irn": invoice.irn,
        "supplier_irn": invoice.irn,
        "acknowledged_at": precise(uow.now),
    });
    uow.emit(cause, EventKind::SupplierInvoiceAcknowledged, Some(&invoice.irn), &data);
    uow.writes.acknowledged.push((invoice.irn.clone(), uow.now));
    uow.put_supplier_invoice(invoice.clone());
    Ok(CommandReply::SupplierInvoice(Box::new(invoice)))
}

/// Emits the event of an outage, if the endpoint has enabled it and did not get it before.
pub(super) fn notify_outage(uow: &mut UnitOfWork, cause: CommandId, notice: &OutageNotice) -> CommandReply {
    let event = OutageEvent { outage: notice.outage, edge: notice.edge };
    let kind = notice.edge.event();
    let is_enabled = uow.cached.endpoint.as_ref().is_some_and(|endpoint| endpoint.names(kind));
    if is_enabled && !uow.sent_outages.contains(&event) {
        let sequence = uow.emit(cause, kind, None, &notice.data);
        uow.sent_outages.push(event);
        uow.writes.sent_outages.push((event, sequence));
    }
    CommandReply::Done
}
