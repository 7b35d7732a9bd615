//! Sets the signed credit notes of an invoice off against it, so that a payment in full only covers what they leave.

use crate::actors::taxpayer::commands::payment::{
    PaymentPosting, PostingNote, post_payment, post_payment_change,
};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;
use crate::domain::payment::{PaymentChange, SET_OFF_NOTES, SET_OFF_REMARK};

/// The maximum size of the events about the invoice, in bytes. Each of them has all lines of the invoice.
const EVENTS_BYTES_MAX: usize = 16 << 20;

/// A credit note, and the amount of it that is set off against the invoice.
struct SetOffPart {
    note: Invoice,
    amount: Amount,
}

/// Sets signed credit notes off against the invoice: each note pays with the amount that is left of it. Notes in other
/// currencies are skipped. Notes that were cancelled here, or whose own payment was rejected, count too, because their
/// signatures are valid. Posts one payment for each note, or a single one if the events about each would be too large.
/// Returns the changed invoice. Refuses an invoice that cannot be paid.
pub(super) fn post_set_off(
    uow: &mut UnitOfWork,
    mut invoice: Invoice,
    credit_notes: Vec<Invoice>,
) -> Result<Invoice, Refusal> {
    invoice.status.after(Transition::Pay)?;
    let parts = find_set_off_parts(&invoice, credit_notes);
    let is_each_posted = may_post_each(&invoice, parts.len());
    if !is_each_posted {
        let sum = Amount::sum(parts.iter().map(|part| part.amount)).unwrap_or_default();
        let entry = PostingNote {
            remark: Some(format!("{SET_OFF_REMARK}: {}{SET_OFF_NOTES}", parts.len())),
            ..PostingNote::default()
        };
        invoice = post_payment_change(uow, invoice, PaymentChange::Partial(sum), entry)?;
    }
    for SetOffPart { note, amount } in parts {
        if is_each_posted {
            let entry = set_off_note(&note);
            invoice = post_payment_change(uow, invoice, PaymentChange::Partial(amount), entry)?;
        }
        record_credit_use(uow, note, amount, set_off_note(&invoice))?;
    }
    Ok(invoice)
}

/// Returns the amounts to set off, in the order of the credit notes.
fn find_set_off_parts(invoice: &Invoice, credit_notes: Vec<Invoice>) -> Vec<SetOffPart> {
    let mut left = invoice.payment.amount_left();
    let mut parts = Vec::new();
    for note in credit_notes {
        let amount = note.payment.amount_left().min(left);
        if amount.is_zero() || note.currency != invoice.currency {
            continue;
        }
        left = left.minus(amount).unwrap_or_default();
        parts.push(SetOffPart { note, amount });
    }
    parts
}

/// True if this many events about the invoice are together no larger than `EVENTS_BYTES_MAX`.
fn may_post_each(invoice: &Invoice, count: usize) -> bool {
    if count <= 1 {
        return true;
    }
    let text = serde_json::to_string(&InvoiceObject::from(invoice)).unwrap_or_default();
    text.len().saturating_mul(count) <= EVENTS_BYTES_MAX
}

/// Returns the note for a ledger entry of a set-off. Its reference is the number of the document on the other side.
fn set_off_note(other_document: &Invoice) -> PostingNote {
    PostingNote {
        reference: Some(other_document.invoice_no.clone()),
        remark: Some(SET_OFF_REMARK.to_owned()),
        payment_date: None,
    }
}

/// Records that this amount of a credit note is used up.
fn record_credit_use(
    uow: &mut UnitOfWork,
    note: Invoice,
    amount: Amount,
    entry: PostingNote,
) -> Result<(), Refusal> {
    let change = if amount == note.payment.amount_left() {
        PaymentChange::Paid
    } else {
        PaymentChange::Partial(amount)
    };
    let previous = note.status;
    let (note, posting) = note.apply_payment_in_any_status(change, uow.now)?;
    post_payment(
        uow,
        PaymentPosting {
            previous,
            invoice: &note,
            posting,
            note: entry,
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::actors::taxpayer::command::TaxpayerCommand;
    use crate::actors::taxpayer::commands::payment::ChangePayment;
    use crate::actors::taxpayer::indexes::InvoiceIndex;
    use crate::actors::taxpayer::testing::submitted_invoice;
    use crate::domain::invoice::invoice_ref::InvoiceRef;
    use crate::domain::kernel::codes::{PaymentStatus, UniqueNoType, WorkflowStatus};
    use crate::domain::payment::PaymentUpdate;
    use crate::store::testing::sqlite_store;

    /// Returns a signed document over this amount.
    fn signed(id: i64, payable: i64, currency: &str) -> Invoice {
        submitted_invoice(id, payable, currency).mark_signed(None)
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
            let invoice = post_set_off(&mut uow, signed(1, 100, "NGN"), notes).unwrap();
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
    async fn a_large_invoice_gets_one_entry_for_all_credit_notes() {
        let test = sqlite_store().await;
        // The bytes of the invoice's only line, and the amounts of its entries if 30 and 40 are credited.
        let cases: [(usize, &[&str]); 2] = [(10, &["30", "40"]), (EVENTS_BYTES_MAX, &["70"])];
        for (bytes, expected) in cases {
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            let mut invoice = signed(1, 100, "NGN");
            invoice.lines[0].item_name = "x".repeat(bytes);
            let notes = vec![signed(2, 30, "NGN"), signed(3, 40, "NGN")];
            let invoice = post_set_off(&mut uow, invoice, notes).unwrap();
            assert_eq!(invoice.payment.paid, Amount::from(70), "{bytes}");
            let entries = uow.writes.postings.iter();
            let (of_invoice, of_notes): (Vec<_>, Vec<_>) =
                entries.partition(|entry| entry.invoice_id == 1);
            let amounts = of_invoice.iter().map(|entry| entry.amount.as_str());
            assert_eq!(amounts.collect::<Vec<_>>(), expected, "{bytes}");
            let amounts = of_notes.iter().map(|entry| entry.amount.as_str());
            assert_eq!(amounts.collect::<Vec<_>>(), ["30", "40"], "{bytes}");
        }
    }

    #[tokio::test]
    async fn an_invoice_whose_credit_notes_were_not_read_is_not_paid_without_them() {
        let test = sqlite_store().await;
        for (part, change, is_refused) in [
            (0_i64, PaymentChange::Paid, true),
            (99, PaymentChange::Paid, true),
            (100, PaymentChange::Paid, false),
            (0, PaymentChange::Partial(Amount::from(5)), false),
            (0, PaymentChange::Rejected, false),
        ] {
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            let mut invoice = signed(1, 100, "NGN");
            invoice.payment.paid = Amount::from(part);
            uow.invoices = InvoiceIndex::new(vec![invoice.clone()], vec![invoice.id]);
            let update = PaymentUpdate {
                invoice: InvoiceRef {
                    kind: UniqueNoType::InternalInvoiceNo,
                    text: invoice.invoice_no,
                },
                change,
                payment_date: None,
                reference: None,
                remark: String::new(),
                unused_amount: None,
            };
            let paid = ChangePayment(update).execute(&mut uow);
            let refused = matches!(paid, Err(Refusal::TooManyCreditNotes));
            assert_eq!(refused, is_refused, "{part} {change:?}");
        }
    }

    #[test]
    fn a_credit_note_that_another_command_has_loaded_does_not_stand_for_those_that_were_not_read() {
        let invoice = signed(1, 100, "NGN");
        let mut note = signed(2, 30, "NGN");
        note.invoice_type = "380".to_owned();
        let reference = json!(invoice.irn.to_string());
        let member = "original_invoice_reference".to_owned();
        note.extras = Map::from_iter([(member, reference)]);
        for (without_notes, found) in [(vec![], 1), (vec![invoice.id], 0)] {
            let invoices = vec![invoice.clone(), note.clone()];
            let index = InvoiceIndex::new(invoices, without_notes);
            assert_eq!(index.signed_credit_notes(&invoice).len(), found);
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
            let invoice = post_set_off(&mut uow, signed(1, 100, "NGN"), vec![note]).unwrap();
            assert_eq!(invoice.payment.paid, Amount::from(paid), "{name}");
            let note = uow.find_invoice_by_irn(&irn).unwrap();
            assert_eq!(
                (note.status, note.payment.status),
                (status, after),
                "{name}"
            );
        }
    }
}
