//! What the authority says of an invoice that was transmitted: it is on its way, it has arrived. Forward only,
//! and told once, however often and in whatever order it is heard.

use serde_json::{Value, json};

use crate::actors::taxpayer::command::Reply;
use crate::actors::taxpayer::decide::pipeline::{reach, reach_unknown};
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::Stage;
use crate::domain::kernel::codes::AuthorityStatus;
use crate::domain::kernel::ids::CommandId;
use crate::domain::pipeline::{Operation, Step};

/// Records that an invoice was transmitted and, where it is so, that its receipt was confirmed.
pub(super) fn record(desk: &mut Desk, cause: CommandId, irn: &Irn, is_delivered: bool) -> Reply {
    let has_ended = end_run(desk, irn);
    match desk.invoice_with_irn(irn).cloned() {
        Some(invoice) if invoice.status.stage() < Some(Stage::Transmitted) => {
            // A cancelled invoice stays so: there is nobody here to refuse it to.
            let _ = reach(desk, cause, invoice, Stage::Transmitted);
        }
        None if has_ended => reach_unknown(desk, cause, irn, Stage::Transmitted),
        _ => {}
    }
    if is_delivered { record_receipt(desk, cause, irn) } else { Reply::Done }
}

/// A transmission that had stopped short of its answer has it now. One that is open will find out by itself.
fn end_run(desk: &mut Desk, irn: &Irn) -> bool {
    let run = desk.run(Operation::Transmit, irn);
    let stopped = run.filter(|run| !run.state.is_open() && !run.done.contains(&Step::Send)).cloned();
    let Some(run) = stopped else { return false };
    let run = run.found_transmitted(desk.now);
    desk.put_run(run);
    true
}

/// Notes once that the receipt was confirmed: on a run of the invoice, and on the invoice if we have it. Where neither
/// can show it, as after a report without a transmission, the log still knows that it was told.
pub(super) fn record_receipt(desk: &mut Desk, cause: CommandId, irn: &Irn) -> Reply {
    let runs = [Operation::Transmit, Operation::Submit].map(|operation| desk.run(operation, irn).cloned());
    let invoice = desk.invoice_with_irn(irn).cloned();
    let noted = desk.acknowledged.iter().any(|told| told.key() == irn.key())
        || runs.iter().flatten().any(|run| run.done.contains(&Step::Receipt))
        || invoice.as_ref().is_some_and(|invoice| invoice.authority.status == AuthorityStatus::Acknowledged);
    if noted {
        return Reply::Done;
    }
    desk.acknowledged.push(irn.clone());
    if let Some(mut run) = runs.into_iter().flatten().next() {
        run.done.push(Step::Receipt);
        desk.put_run(run);
    }
    if let Some(mut invoice) = invoice {
        if invoice.authority.status.progress() < AuthorityStatus::Acknowledged.progress() {
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
