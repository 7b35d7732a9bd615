//! Takes back a payment that was recorded by mistake, such as one of another invoice.

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::payment::{PaymentPosting, PostingNote, post_payment};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::kernel::codes::{PaymentStatus, RelayedPaymentStatus, UniqueNoType};
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::TakeBack;
use crate::domain::pipeline::{Operation, Run, RunState};

/// Takes an amount back that was recorded as paid. Adds an entry with an amount below zero to the ledger, so that the
/// invoice is owed again. A change of the payment status does not do this: it keeps the amounts.
pub struct TakePaymentBack {
    pub invoice: InvoiceId,
    pub take_back: TakeBack,
}

impl TaxpayerCommand for TakePaymentBack {
    type Output = Invoice;

    const NAME: &'static str = "take-payment-back";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_invoice(&InvoiceRef {
            kind: UniqueNoType::PortalId,
            text: self.invoice.to_string(),
        });
        wanted.add_invoice_runs();
        wanted.add_set_offs(self.invoice);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Invoice, Refusal> {
        let take_back = &self.take_back;
        let stored = uow.invoices.find_by_id(self.invoice).cloned();
        let before = stored.ok_or(Refusal::InvoiceNotFound)?;
        let previous = before.status;
        let set_off = uow
            .ledger
            .set_off_amount(&uow.writes.postings, self.invoice);
        let digits = uow.catalog.currency_digits(&before.currency);
        let invoice = before.apply_transition(Transition::TakePaymentBack, uow.now)?;
        let operations = Operation::ALL.iter();
        check_not_paid_at_authority(operations.filter_map(|one| uow.run(*one, &invoice.irn)))?;
        let amount = take_back.amount;
        let (payment, posting) = invoice.payment.take_back(amount, set_off, digits)?;
        let invoice = Invoice { payment, ..invoice };
        let note = PostingNote {
            reference: take_back.reference.clone(),
            remark: Some(take_back.remark.clone()),
            payment_date: None,
        };
        post_payment(
            uow,
            PaymentPosting {
                previous,
                invoice: &invoice,
                posting,
                note,
            },
        );
        Ok(invoice)
    }
}

/// Refuses an invoice that the authority has as paid, or may have as paid soon, according to the runs of the invoice.
/// The authority never changes that status.
pub fn check_not_paid_at_authority<'a>(
    runs: impl IntoIterator<Item = &'a Run>,
) -> Result<(), Refusal> {
    for run in runs {
        let relayed = run.payload.payment().map(|payment| payment.payment_status);
        let submitted = run.payload.submission();
        let declares_paid = relayed == Some(RelayedPaymentStatus::Paid)
            || submitted
                .is_some_and(|document| document.payment_status == Some(PaymentStatus::Paid));
        // The authority refuses REJECTED only after PAID.
        let was_paid_before =
            relayed == Some(RelayedPaymentStatus::Rejected) && run.state() == RunState::Refused;
        if was_paid_before || (declares_paid && run.has_taken_effect()) {
            return Err(Refusal::PaidAtAuthority);
        }
        let is_under_way = run.state().is_open() || run.state() == RunState::Paused;
        if declares_paid && is_under_way {
            return Err(Refusal::PaidUnderWay);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use timing::clock;

    use super::*;
    use crate::actors::taxpayer::commands::set_off::post_set_off;
    use crate::actors::taxpayer::indexes::InvoiceIndex;
    use crate::actors::taxpayer::testing::submitted_invoice;
    use crate::actors::taxpayer::tests::ID;
    use crate::domain::kernel::codes::WorkflowStatus;
    use crate::domain::money::Amount;
    use crate::domain::pipeline::{RunPayload, RunPhase, RunRequest};
    use crate::store::testing::sqlite_store;

    fn take_back(amount: Option<i64>) -> TakePaymentBack {
        TakePaymentBack {
            invoice: InvoiceId(1),
            take_back: TakeBack {
                amount: amount.map(Amount::from),
                reference: None,
                remark: "of another invoice".to_owned(),
            },
        }
    }

    /// Returns an invoice over NGN 100 of which this amount is paid.
    fn paid_invoice(status: WorkflowStatus, payment: PaymentStatus, paid: i64) -> Invoice {
        let mut invoice = submitted_invoice(1, 100, "NGN");
        invoice.status = status;
        invoice.payment.status = payment;
        invoice.payment.paid = paid.into();
        invoice
    }

    #[tokio::test]
    async fn each_state_of_an_invoice_takes_back_what_was_recorded() {
        use PaymentStatus::{Paid, Partial, Pending};
        use WorkflowStatus::{Approved, Cancelled, Draft, Submitted};
        let test = sqlite_store().await;
        // The status, the payment status and the paid amount, the amount to take back, then all three after it.
        for (status, payment, paid, amount, expected) in [
            (
                WorkflowStatus::Paid,
                Paid,
                100,
                None,
                Some((Approved, Pending, 0)),
            ),
            (
                WorkflowStatus::Paid,
                Paid,
                100,
                Some(40),
                Some((Approved, Partial, 60)),
            ),
            (WorkflowStatus::Paid, Paid, 100, Some(101), None),
            (Approved, Partial, 60, None, Some((Approved, Pending, 0))),
            (Approved, Pending, 0, None, None),
            (
                Submitted,
                Paid,
                100,
                Some(100),
                Some((Submitted, Pending, 0)),
            ),
            (Draft, Paid, 100, None, Some((Draft, Pending, 0))),
            (Cancelled, Partial, 60, None, None),
        ] {
            let name = format!("{status} {payment} {paid} {amount:?}");
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            let invoice = paid_invoice(status, payment, paid);
            uow.invoices = InvoiceIndex::new(vec![invoice], vec![]);
            let taken = take_back(amount).execute(&mut uow);
            let Some((status, payment, left)) = expected else {
                assert!(taken.is_err(), "{name}");
                assert!(!uow.has_changes(), "{name}");
                continue;
            };
            let invoice = taken.unwrap();
            let found = (invoice.status, invoice.payment.status, invoice.payment.paid);
            assert_eq!(found, (status, payment, left.into()), "{name}");
            let amounts = uow.writes.postings.iter().map(|entry| entry.amount.clone());
            let amounts: Vec<_> = amounts.collect();
            assert_eq!(amounts, [(left - paid).to_string()], "{name}");
        }
    }

    #[tokio::test]
    async fn nothing_of_a_set_off_is_taken_back() {
        let test = sqlite_store().await;
        let mut uow = UnitOfWork::without_rows(&test.store).await;
        let invoice = submitted_invoice(1, 100, "NGN").mark_signed(None);
        let note = submitted_invoice(2, 30, "NGN").mark_signed(None);
        let mut invoice = post_set_off(&mut uow, invoice, vec![note]).unwrap();
        invoice.payment.paid = 100.into();
        uow.put_invoice(invoice);
        assert!(take_back(Some(71)).execute(&mut uow).is_err());
        let invoice = take_back(None).execute(&mut uow).unwrap();
        assert_eq!(invoice.payment.paid, Amount::from(30));
        assert_eq!(invoice.payment.status, PaymentStatus::Partial);
        assert!(take_back(None).execute(&mut uow).is_err());
        let note = TakePaymentBack {
            invoice: InvoiceId(2),
            ..take_back(None)
        };
        assert!(note.execute(&mut uow).is_err());
    }

    #[test]
    fn the_authority_never_takes_paid_back() {
        let irn = submitted_invoice(1, 100, "NGN").irn;
        let succeeded = RunState::Succeeded;
        // The operation, the payment status that it declares, the state of its run, and the refusal.
        for (operation, declared, state, expected) in [
            (
                Operation::Payment,
                "PAID",
                succeeded,
                Some(Refusal::PaidAtAuthority),
            ),
            (
                Operation::Payment,
                "PAID",
                RunState::Waiting,
                Some(Refusal::PaidUnderWay),
            ),
            (
                Operation::Payment,
                "PAID",
                RunState::Paused,
                Some(Refusal::PaidUnderWay),
            ),
            (Operation::Payment, "PAID", RunState::Refused, None),
            (Operation::Payment, "REJECTED", succeeded, None),
            (Operation::Payment, "REJECTED", RunState::Waiting, None),
            (
                Operation::Payment,
                "REJECTED",
                RunState::Refused,
                Some(Refusal::PaidAtAuthority),
            ),
            (Operation::Payment, "PENDING", RunState::Refused, None),
            (
                Operation::Submit,
                "PAID",
                succeeded,
                Some(Refusal::PaidAtAuthority),
            ),
            (
                Operation::Submit,
                "PAID",
                RunState::Running,
                Some(Refusal::PaidUnderWay),
            ),
            (Operation::Submit, "PAID", RunState::Cancelled, None),
            (Operation::Submit, "PENDING", succeeded, None),
        ] {
            let document = json!({ "irn": irn, "payment_status": declared });
            let request = RunRequest {
                irn: irn.clone(),
                payload: RunPayload::from_document(operation, document).unwrap(),
            };
            let mut run = Run::new(clock::new_id(), ID, request, jiff::Timestamp::UNIX_EPOCH);
            run.phase = RunPhase::sample(state);
            if state == succeeded {
                run.done = operation.steps().to_vec();
            }
            let found = check_not_paid_at_authority([&run]).err();
            assert_eq!(found, expected, "{operation} {declared} {state}");
        }
    }
}
