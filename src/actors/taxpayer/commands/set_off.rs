//! Sets the signed credit notes of an invoice off against it, so that "paid" means what they leave.

use crate::actors::taxpayer::commands::payment::{PostingNote, post_change};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::PaymentChange;

const SET_OFF_REMARK: &str = "Set off";

/// Sets off against the invoice what is left of each credit note. Returns the changed invoice. Refuses an invoice that
/// cannot be paid.
pub(super) fn set_off(
    uow: &mut UnitOfWork,
    mut invoice: Invoice,
    credit_notes: Vec<Invoice>,
) -> Result<Invoice, Refusal> {
    invoice.status.after(Transition::Pay)?;
    for note in credit_notes {
        let amount = note
            .payment
            .amount_left()
            .min(invoice.payment.amount_left());
        if amount.is_zero() || !is_open(&note) {
            continue;
        }
        let change = if amount == note.payment.amount_left() {
            PaymentChange::Paid
        } else {
            PaymentChange::Partial(amount)
        };
        let names = [note.invoice_no.clone(), invoice.invoice_no.clone()];
        let [for_invoice, for_note] = names.map(|other| PostingNote {
            reference: Some(other),
            remark: Some(SET_OFF_REMARK.to_owned()),
        });
        invoice = post_change(uow, invoice, PaymentChange::Partial(amount), for_invoice)?;
        post_change(uow, note, change, for_note)?;
    }
    Ok(invoice)
}

fn is_open(note: &Invoice) -> bool {
    let is_unsettled = matches!(
        note.payment.status,
        PaymentStatus::Pending | PaymentStatus::Partial
    );
    is_unsettled && note.status.after(Transition::Pay).is_ok()
}
