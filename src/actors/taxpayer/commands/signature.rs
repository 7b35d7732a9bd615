//! Records on an invoice that the authority has signed it. If the signed document has another payable than the stored
//! one, the signed payable counts for payments from then on.

use crate::actors::taxpayer::commands::payment::{
    PostingNote, apply_signed_payment_status, post_payment_change,
};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::correction::signed_invoice::signed_payable;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::money::Amount;
use crate::domain::payment::PaymentChange;
use crate::domain::pipeline::{Run, Step};

/// Records the signature and the payment status that was signed, with an event if the status of the payment changes.
pub(super) fn record_signature(uow: &mut UnitOfWork, invoice: Invoice, run: &Run) {
    let before = invoice.payment.status;
    uow.put_invoice(Invoice {
        updated_at: uow.now,
        ..with_signature(invoice, run)
    });
    apply_signed_payment_status(uow, run);
    if before == PaymentStatus::Paid {
        post_lost_full_payment(uow, run);
    }
}

/// Adds a ledger entry for an invoice that was paid in full and no longer is: the signed payable amount is higher than
/// the stored one was.
fn post_lost_full_payment(uow: &mut UnitOfWork, run: &Run) {
    let Some(invoice) = uow.find_invoice_by_irn(&run.irn).cloned() else {
        return;
    };
    let change = match invoice.payment.status {
        PaymentStatus::Partial => PaymentChange::Partial(Amount::ZERO),
        PaymentStatus::Pending => PaymentChange::Pending,
        PaymentStatus::Paid | PaymentStatus::Rejected => return,
    };
    let payable = invoice.payment.payable_as_signed();
    let note = PostingNote {
        reference: None,
        remark: Some(format!("Signed over {} {payable}", invoice.currency)),
    };
    // A refusal is ignored: the invoice was cancelled during the call, so nobody will pay it.
    let _ = post_payment_change(uow, invoice, change, note);
}

/// Returns the invoice with the signature of the run, if the run has signed it.
pub(super) fn with_signature(invoice: Invoice, run: &Run) -> Invoice {
    if !run.done.contains(&Step::Sign) {
        return invoice;
    }
    let document = run.payload.submission();
    let payable = document.and_then(|document| signed_payable(&invoice, document.as_json()));
    let mut invoice = invoice.mark_signed(run.qr_code.clone());
    if let Some(payable) = payable {
        invoice.payment = invoice.payment.after_signature(payable);
    }
    invoice
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use timing::clock;

    use super::*;
    use crate::actors::taxpayer::testing::submitted_invoice;
    use crate::actors::taxpayer::tests::{ID, submission};
    use crate::store::testing::sqlite_store;

    #[tokio::test]
    async fn a_signature_is_a_change_of_the_invoice() {
        let test = sqlite_store().await;
        let mut uow = UnitOfWork::without_rows(&test.store).await;
        let invoice = Invoice {
            updated_at: Timestamp::MIN,
            ..submitted_invoice(1, 100, "NGN")
        };
        let request = submission(invoice.irn.as_str(), "a");
        let mut run = Run::new(clock::new_id(), ID, request, uow.now);
        run.done.push(Step::Sign);
        record_signature(&mut uow, invoice.clone(), &run);
        let signed = uow.find_invoice_by_irn(&invoice.irn).unwrap();
        assert_eq!(
            (signed.authority.signed, signed.updated_at),
            (true, uow.now)
        );
    }
}
