//! Records on an invoice that the authority has signed it, or that it has refused to. If the signed document has another
//! payable amount than the stored invoice, the signed amount counts for payments from then on.

use jiff::Timestamp;
use serde_json::json;

use crate::actors::taxpayer::commands::payment::{
    PostingNote, apply_signed_payment_status, post_payment_change,
};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::correction::signed_invoice::signed_payable;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::codes::PaymentStatus;
use crate::domain::money::Amount;
use crate::domain::payment::PaymentChange;
use crate::domain::pipeline::signed_copy::has_other_signed_document;
use crate::domain::pipeline::{Operation, Run, RunState, Step};

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
        remark: Some(format!("Signed over {} {payable}", invoice.currency)),
        ..PostingNote::default()
    };
    // A refusal is ignored: the invoice was cancelled during the call, so nobody will pay it.
    let _ = post_payment_change(uow, invoice, change, note);
}

/// Unlocks the invoice of a refused submission, with an event, if nothing of the invoice is or may be signed.
pub(super) fn unlock_after_refusal(uow: &mut UnitOfWork, invoice: &Invoice, submission: &Run) {
    let unlocked = unlocked_after_refusal(invoice, Some(submission), uow.now);
    if unlocked.status != invoice.status {
        let extra = json!({ "previous_status": invoice.status });
        uow.emit_about(EventKind::InvoiceStatusUpdated, &unlocked, extra);
        uow.put_invoice(unlocked);
    }
}

/// Returns the invoice as approved if it is validated and its submission was refused, so that it can be edited or
/// cancelled. Any other invoice stays as it is, also one that the authority has signed with other content.
pub(super) fn unlocked_after_refusal(
    invoice: &Invoice,
    submission: Option<&Run>,
    now: Timestamp,
) -> Invoice {
    let is_refused = submission.is_some_and(|run| {
        run.operation() == Operation::Submit
            && run.state() == RunState::Refused
            && run.is_replaceable()
            && !has_other_signed_document(run)
    });
    let invoice = invoice.clone();
    match invoice.status.after(Transition::Refuse) {
        Ok(status) if status != invoice.status && is_refused && !invoice.authority.signed => {
            Invoice {
                status,
                updated_at: now,
                ..invoice
            }
        }
        _ => invoice,
    }
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
    use timing::clock;

    use super::*;
    use crate::actors::taxpayer::command::TaxpayerCommand;
    use crate::actors::taxpayer::commands::SetStatus;
    use crate::actors::taxpayer::testing::submitted_invoice;
    use crate::actors::taxpayer::tests::{ID, submission};
    use crate::domain::invoice::invoice_ref::InvoiceRef;
    use crate::domain::kernel::codes::{SettableStatus, UniqueNoType, WorkflowStatus};
    use crate::domain::pipeline::StepResult;
    use crate::domain::pipeline::signed_copy::SIGNED_OTHERWISE_MESSAGE;
    use crate::store::testing::sqlite_store;

    /// Earlier versions left the invoice of a refused submission validated.
    #[test]
    fn an_invoice_that_a_refusal_left_validated_is_unlocked_unless_something_is_or_may_be_signed() {
        let now = Timestamp::UNIX_EPOCH;
        let request = submission("INV1-94AD90FB-20260131", "a");
        let open = Run::new(clock::new_id(), ID, request, now).begin_attempt(Step::Sign, now);
        let refuse = |error: &str| {
            let verdict = StepResult::Refused {
                error: error.to_owned(),
            };
            open.clone().after_step(Step::Sign, &verdict, now)
        };
        let refused = refuse("no");
        let signed_otherwise = refuse(SIGNED_OTHERWISE_MESSAGE);
        for (name, run, is_signed, is_unlocked) in [
            ("refused", Some(&refused), false, true),
            ("signed", Some(&refused), true, false),
            ("open", Some(&open), false, false),
            ("signed otherwise", Some(&signed_otherwise), false, false),
            ("no run", None, false, false),
        ] {
            let mut invoice = Invoice {
                status: WorkflowStatus::Validated,
                ..submitted_invoice(1, 100, "NGN")
            };
            invoice.authority.signed = is_signed;
            let expected = if is_unlocked {
                WorkflowStatus::Approved
            } else {
                WorkflowStatus::Validated
            };
            let after = unlocked_after_refusal(&invoice, run, now);
            assert_eq!(after.status, expected, "{name}");
        }
    }

    /// Other changes of the status do not read the runs, so they must not depend on whether another command did.
    #[tokio::test]
    async fn of_the_settable_statuses_only_cancelled_unlocks_such_an_invoice() {
        let test = sqlite_store().await;
        for (status, expected) in [
            (SettableStatus::Draft, None),
            (SettableStatus::Approved, None),
            (SettableStatus::Cancelled, Some(WorkflowStatus::Cancelled)),
        ] {
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            let now = uow.now;
            let invoice = Invoice {
                status: WorkflowStatus::Validated,
                ..submitted_invoice(1, 100, "NGN")
            };
            let verdict = StepResult::Refused {
                error: "no".to_owned(),
            };
            let request = submission(invoice.irn.as_str(), "a");
            let run = Run::new(clock::new_id(), ID, request, now).begin_attempt(Step::Sign, now);
            uow.put_run(run.after_step(Step::Sign, &verdict, now));
            uow.put_invoice(invoice);
            let command = SetStatus {
                invoice: InvoiceRef {
                    kind: UniqueNoType::PortalId,
                    text: "1".to_owned(),
                },
                status,
                remark: "refused".to_owned(),
                submission: None,
            };
            let changed = command.execute(&mut uow);
            let found = changed.ok().map(|invoice| invoice.status);
            assert_eq!(found, expected, "{status}");
        }
    }

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
