//! Sets the signed credit notes of an invoice off against it, so that a payment in full only covers what they leave.

use crate::actors::taxpayer::commands::payment::{
    PaymentPosting, PostingNote, post_change, post_payment,
};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::PaymentChange;

const SET_OFF_REMARK: &str = "Set off";

/// Sets off against the invoice what is left of each of these signed credit notes, if it has the invoice's currency. A
/// credit note that was cancelled here, or whose own payment was rejected, counts too: its signature is still valid.
/// Returns the changed invoice. Refuses an invoice that cannot be paid.
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
        if amount.is_zero() || note.currency != invoice.currency {
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
        let previous = note.status;
        let (note, posting) = note.apply_payment_in_any_status(change, uow.now)?;
        post_payment(
            uow,
            PaymentPosting {
                previous,
                invoice: &note,
                posting,
                note: for_note,
            },
        );
    }
    Ok(invoice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::taxpayer::testing::submitted_invoice;
    use crate::domain::kernel::codes::{PaymentStatus, WorkflowStatus};
    use crate::domain::money::Amount;
    use crate::store::testing::sqlite_store;

    /// Returns a signed document over this amount.
    fn signed(id: i64, payable: i64, currency: &str) -> Invoice {
        submitted_invoice(id, payable, currency).sign(None)
    }

    /// The credit notes of an invoice over NGN 100, and the amounts that are set off.
    type Case<'a> = (&'a [(i64, &'a str)], &'a [i64]);

    #[tokio::test]
    async fn only_credit_notes_in_the_currency_of_the_invoice_are_set_off() {
        let test = sqlite_store().await;
        let cases: [Case<'_>; 5] = [
            (&[], &[]),
            (&[(30, "NGN")], &[30]),
            (&[(30, "USD")], &[]),
            (&[(30, "USD"), (40, "NGN")], &[40]),
            (&[(60, "NGN"), (70, "NGN")], &[60, 40]),
        ];
        for (notes, expected) in cases {
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            let notes: Vec<_> = (2..)
                .zip(notes)
                .map(|(id, (payable, currency))| signed(id, *payable, currency))
                .collect();
            let name = format!("{notes:?}");
            let invoice = set_off(&mut uow, signed(1, 100, "NGN"), notes).unwrap();
            let entries = uow.writes.postings.iter();
            let entries = entries.filter(|entry| entry.invoice_id == 1);
            let amounts: Vec<_> = entries.map(|entry| entry.amount.clone()).collect();
            let expected: Vec<_> = expected.iter().copied().map(Amount::from).collect();
            let texts: Vec<_> = expected.iter().map(ToString::to_string).collect();
            assert_eq!(amounts, texts, "{name}");
            assert_eq!(Some(invoice.payment.paid), Amount::sum(expected), "{name}");
            assert_eq!(uow.writes.postings.len(), 2 * amounts.len(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_signed_credit_note_is_set_off_whatever_became_of_it_here() {
        use PaymentStatus::{Paid, Partial, Pending, Rejected};
        let test = sqlite_store().await;
        // The statuses of the credit note, its payable, then its payment status and the paid amount of the invoice.
        for (status, payment, payable, after, paid) in [
            (WorkflowStatus::Submitted, Pending, 30, Paid, 30),
            (WorkflowStatus::Submitted, Rejected, 30, Paid, 30),
            (WorkflowStatus::Cancelled, Pending, 30, Paid, 30),
            (WorkflowStatus::Cancelled, Pending, 130, Partial, 100),
            (WorkflowStatus::Cancelled, Rejected, 30, Paid, 30),
            (WorkflowStatus::Draft, Pending, 30, Paid, 30),
        ] {
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            let mut note = signed(2, payable, "NGN");
            note.status = status;
            note.payment.status = payment;
            let name = format!("{status} {payment} {payable}");
            let irn = note.irn.clone();
            let invoice = set_off(&mut uow, signed(1, 100, "NGN"), vec![note]).unwrap();
            assert_eq!(invoice.payment.paid, Amount::from(paid), "{name}");
            let note = uow.invoice_with_irn(&irn).unwrap();
            assert_eq!(
                (note.status, note.payment.status),
                (status, after),
                "{name}"
            );
        }
    }
}
