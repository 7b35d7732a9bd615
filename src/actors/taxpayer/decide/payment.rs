//! What is said about a payment: its entry in the ledger and the events that tell of it, and how the books
//! follow a status that was relayed to the authority.

use serde_json::{Value, json};

use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{PaymentStatus, RelayedPaymentStatus, WorkflowStatus};
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::{PaymentChange, Posting, RelayedPayment};
use crate::domain::pipeline::{Operation, Run, RunRequest, RunState, StepResult};
use crate::store::invoices::payment_row;

/// What the ledger keeps beside an amount.
#[derive(Debug, Default)]
pub(super) struct Note {
    pub(super) reference: Option<String>,
    pub(super) remark: Option<String>,
}

/// Writes a payment down: the invoice after it, and the status it had before.
pub(super) fn post(
    desk: &mut Desk,
    cause: CommandId,
    (previous, invoice): (WorkflowStatus, &Invoice),
    posting: Posting,
    note: Note,
) {
    let extra = json!({
        "amount": posting.amount,
        "reference": note.reference,
        "remark": note.remark,
        "amount_paid": invoice.payment.paid,
        "payable_amount": invoice.payment.payable,
    });
    let sequence = desk.emit_about(cause, EventKind::PaymentStatusUpdated, invoice, extra);
    if invoice.status != previous {
        let extra = json!({ "previous_status": previous });
        desk.emit_about(cause, EventKind::InvoiceStatusUpdated, invoice, extra);
    }
    let entry = payment_row::Model::of(invoice, sequence, posting, desk.now);
    desk.changes.postings.push(payment_row::Model {
        reference: note.reference,
        remark: note.remark,
        ..entry
    });
    desk.put_invoice(invoice.clone());
}

/// Whether the books could follow; what they say already needs no move.
pub(super) fn permit(desk: &Desk, document: &Value, invoice: Option<&Invoice>) -> Result<(), Refusal> {
    let (Some(invoice), Some(order)) = (invoice, RelayedPayment::of(document)) else { return Ok(()) };
    if invoice.payment.status == order.payment_status.reads_as() {
        return Ok(());
    }
    invoice.clone().paid(order.payment_status.into(), desk.now).map(drop)
}

/// Whether a payment was relayed in these words and stays for good: with the authority PAID is final.
pub(super) fn stays(desk: &Desk, run: &Run, request: &RunRequest) -> bool {
    let is_paid = || {
        let order = RelayedPayment::of(&run.document);
        order.is_some_and(|order| order.payment_status == RelayedPaymentStatus::Paid)
    };
    let follows = || {
        let invoice = desk.invoice_with_irn(&run.irn);
        invoice.is_none_or(|invoice| invoice.payment.status == PaymentStatus::Paid)
    };
    let is_told = run.state == RunState::Succeeded && run.digest == request.digest();
    run.operation == Operation::Payment && is_told && is_paid() && follows()
}

/// The books follow what the authority has. A refusal is told to whoever asked; when nobody asks any more, an
/// event tells that it was given up.
pub(super) fn follow(desk: &mut Desk, cause: CommandId, run: &Run, verdict: &StepResult) {
    let Some(order) = RelayedPayment::of(&run.document) else { return };
    match verdict {
        StepResult::Done { .. } | StepResult::Unchanged(_) => {
            let was_sent = matches!(verdict, StepResult::Done { .. });
            match desk.invoice_with_irn(&run.irn).cloned() {
                Some(invoice) => take(desk, cause, invoice, (&order, was_sent)),
                None if was_sent => tell(desk, cause, run, (EventKind::PaymentStatusUpdated, about(&order))),
                None => {}
            }
        }
        StepResult::Pause { error } => {
            let extra = json!({ "operation": run.operation, "error": error });
            tell(desk, cause, run, (EventKind::InvoiceFailed, extra));
        }
        StepResult::Refused { .. } | StepResult::Wait { .. } | StepResult::Hold { .. } => {}
    }
}

/// The invoice takes what the authority has, also where it was changed meanwhile and could not be asked to now:
/// its workflow status stays then.
fn take(desk: &mut Desk, cause: CommandId, invoice: Invoice, (order, was_sent): (&RelayedPayment, bool)) {
    if !was_sent && invoice.payment.status == order.payment_status.reads_as() {
        return;
    }
    let (previous, notice) = (invoice.status, PaymentChange::from(order.payment_status));
    let taken = invoice.clone().paid(notice, desk.now).or_else(|_| {
        let (payment, posting) = invoice.payment.after(notice)?;
        Ok::<_, Refusal>((Invoice { payment, updated_at: desk.now, ..invoice }, posting))
    });
    // A relayed status never adds more than what is left to pay.
    let Ok((invoice, posting)) = taken else { return };
    let note = Note { reference: None, remark: order.remark.clone() };
    post(desk, cause, (previous, &invoice), posting, note);
}

/// The invoice takes the payment status that it was signed with: PAID pays what is left, as it does for one that is
/// created so. A run signs once, so this is posted once. PENDING is what a submission says that says nothing.
pub(super) fn take_signed(desk: &mut Desk, cause: CommandId, run: &Run) {
    let signed = run.document.get("payment_status").and_then(Value::as_str);
    let Some(status) = signed.and_then(RelayedPaymentStatus::parse) else { return };
    let Some(invoice) = desk.invoice_with_irn(&run.irn).cloned() else { return };
    if status == RelayedPaymentStatus::Pending || invoice.payment.status == status.reads_as() {
        return;
    }
    let Ok((payment, posting)) = invoice.payment.after(status.into()) else { return };
    let invoice = Invoice { payment, updated_at: desk.now, ..invoice };
    post(desk, cause, (invoice.status, &invoice), posting, Note::default());
}

fn about(order: &RelayedPayment) -> Value {
    json!({
        "payment_status": order.payment_status, "amount": Value::Null, "reference": Value::Null,
        "remark": order.remark, "amount_paid": Value::Null, "payable_amount": Value::Null,
    })
}

/// Tells of an IRN, with its invoice where it is a stored one.
fn tell(desk: &mut Desk, cause: CommandId, run: &Run, (kind, extra): (EventKind, Value)) {
    if let Some(invoice) = desk.invoice_with_irn(&run.irn).cloned() {
        desk.emit_about(cause, kind, &invoice, extra);
        return;
    }
    let mut data = json!({ "irn": run.irn.as_str(), "invoice": Value::Null });
    if let (Some(data), Value::Object(extra)) = (data.as_object_mut(), extra) {
        data.extend(extra);
    }
    desk.emit(cause, kind, Some(&run.irn), data);
}
