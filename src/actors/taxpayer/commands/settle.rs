//! Pays the rest of an invoice that has signed credit notes: they are set off against it, and what is then left is recorded as
//! paid.

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::payment::{PostingNote, post_change};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::{PaymentChange, PaymentUpdate};

/// Settles an invoice with these credit notes.
pub struct Settle {
    /// The payment of the rest.
    pub payment: PaymentUpdate,
    pub credit_notes: Vec<InvoiceRef>,
}

const SET_OFF_REMARK: &str = "Set off";

impl TaxpayerCommand for Settle {
    type Output = Invoice;

    const NAME: &'static str = "settle";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        for invoice in [&self.payment.invoice]
            .into_iter()
            .chain(&self.credit_notes)
        {
            wanted.add_invoice(invoice);
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Invoice, Refusal> {
        let mut invoice = uow.invoice(&self.payment.invoice)?.clone();
        invoice.status.after(Transition::Pay)?;
        for note in &self.credit_notes {
            let note = uow.invoice(note)?.clone();
            let amount = note.payment.left().min(invoice.payment.left());
            if amount.is_zero() || !is_open_credit_note(&note, &invoice) {
                continue;
            }
            let change = if amount == note.payment.left() {
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
        let note = PostingNote {
            reference: self.payment.reference.clone(),
            remark: Some(self.payment.remark.clone()),
        };
        post_change(uow, invoice, self.payment.change, note)
    }
}

fn is_open_credit_note(note: &Invoice, invoice: &Invoice) -> bool {
    let is_unsettled = matches!(
        note.payment.status,
        PaymentStatus::Pending | PaymentStatus::Partial
    );
    let may_be_paid = note.authority.signed && note.status.after(Transition::Pay).is_ok();
    is_unsettled && may_be_paid && note.is_credit_note() && note.corrects(invoice)
}
