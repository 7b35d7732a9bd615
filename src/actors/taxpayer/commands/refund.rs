//! Records what was paid back to a customer through a credit note, up to the amount that is to be paid back.

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::payment::{ChangePayment, InvoiceAfterPayment};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::correction::refund_share::RefundShare;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::PaymentChange;

/// Changes the payment status of a credit note whose invoice is stored. Refuses a payment above the amount that is to be
/// paid back for the invoice. All credit notes of the invoice share this amount, so it is computed from the invoice and
/// its credit notes as the commands before this one have left them.
pub struct RecordRefund {
    pub payment: ChangePayment,
    /// The invoice that the credit note credits.
    pub credited: InvoiceId,
}

impl TaxpayerCommand for RecordRefund {
    type Output = InvoiceAfterPayment;

    const NAME: &'static str = ChangePayment::NAME;

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        self.payment.add_reads(wanted, context);
        wanted.add_invoice_id(self.credited);
        wanted.add_credit_notes();
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<InvoiceAfterPayment, Refusal> {
        self.check_amount(uow)?;
        self.payment.execute(uow)
    }
}

impl RecordRefund {
    /// Refuses an amount above the one that is to be paid back now.
    fn check_amount(&self, uow: &UnitOfWork) -> Result<(), Refusal> {
        let update = &self.payment.0;
        if matches!(
            update.change,
            PaymentChange::Pending | PaymentChange::Rejected
        ) {
            return Ok(());
        }
        let note = uow.invoice(&update.invoice)?;
        let credited = uow.invoices.find_by_id(self.credited);
        let credited = credited.ok_or(Refusal::InvoiceNotFound)?;
        if !note.corrects(credited) || note.currency != credited.currency {
            return Err(Refusal::InvoiceChanged);
        }
        if uow.invoices.has_unread_credit_notes(credited) {
            return Err(unknown_refund_fault(credited).into());
        }
        let credits = InvoiceCredits::new(credited, uow.invoices.signed_credit_notes(credited));
        let digits = uow.catalog.currency_digits(&note.currency);
        RefundShare::new(note, credited, credits).check_payment(update.change, digits)?;
        Ok(())
    }
}

fn unknown_refund_fault(credited: &Invoice) -> Fault {
    let number = &credited.invoice_no;
    let message = format!(
        "{number} has too many or too large signed credit notes (more than 1,000, or more than 16 MiB) to compute the \
         amount that is to be paid back. Record the refund through the API."
    );
    Fault::new("payment_status", "unknown_refund", message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use timing::CommandId;

    use super::*;
    use crate::actors::taxpayer::cached_state::CachedState;
    use crate::actors::taxpayer::commands::take_back::TakePaymentBack;
    use crate::actors::taxpayer::indexes::InvoiceIndex;
    use crate::actors::taxpayer::testing::submitted_invoice;
    use crate::actors::taxpayer::tests::ID;
    use crate::domain::invoice::invoice_ref::InvoiceRef;
    use crate::domain::kernel::codes::{PaymentStatus, UniqueNoType, WorkflowStatus};
    use crate::domain::money::Amount;
    use crate::domain::payment::{PaymentUpdate, TakeBack};
    use crate::store::Store;
    use crate::store::invoices;
    use crate::store::testing::sqlite_store;

    const CREDITED: InvoiceId = InvoiceId(1);

    /// A command of a group. The numbers are the id of a credit note, and an amount.
    #[derive(Debug, Clone, Copy)]
    enum Act {
        Refund(i64, i64),
        /// Creates a credit note, which is approved and not signed.
        Create(i64, i64),
        /// Marks the invoice as paid, so that its credit notes are set off.
        PayInFull,
        TakePaymentBack,
    }

    use Act::{Create, PayInFull, Refund};

    impl Act {
        fn add_reads(self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
            match self {
                Refund(note, amount) => refund(note, amount).add_reads(wanted, context),
                Create(..) => {}
                PayInFull => payment(CREDITED.0, PaymentChange::Paid).add_reads(wanted, context),
                Self::TakePaymentBack => take_back().add_reads(wanted, context),
            }
        }

        fn execute(self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
            match self {
                Refund(note, amount) => refund(note, amount).execute(uow).map(drop),
                Create(id, payable) => {
                    uow.put_invoice(Invoice {
                        status: WorkflowStatus::Approved,
                        ..credit_note(id, payable)
                    });
                    Ok(())
                }
                PayInFull => {
                    let paid = payment(CREDITED.0, PaymentChange::Paid).execute(uow);
                    paid.map(drop)
                }
                Self::TakePaymentBack => take_back().execute(uow).map(drop),
            }
        }
    }

    fn payment(id: i64, change: PaymentChange) -> ChangePayment {
        ChangePayment(PaymentUpdate {
            invoice: InvoiceRef {
                kind: UniqueNoType::PortalId,
                text: id.to_string(),
            },
            change,
            unused_amount: None,
            payment_date: None,
            reference: None,
            remark: "by bank".to_owned(),
        })
    }

    fn refund(note: i64, amount: i64) -> RecordRefund {
        RecordRefund {
            payment: payment(note, PaymentChange::Partial(amount.into())),
            credited: CREDITED,
        }
    }

    fn take_back() -> TakePaymentBack {
        TakePaymentBack {
            invoice: CREDITED,
            take_back: TakeBack {
                amount: None,
                reference: None,
                remark: "of another invoice".to_owned(),
            },
        }
    }

    /// Returns a credit note of the invoice `CREDITED` that is not signed.
    fn credit_note(id: i64, payable: i64) -> Invoice {
        let irn = submitted_invoice(CREDITED.0, 100, "NGN").irn;
        let reference = ("original_invoice_reference".to_owned(), json!(irn.as_str()));
        Invoice {
            invoice_type: "380".to_owned(),
            extras: Map::from_iter([reference]),
            ..submitted_invoice(id, payable, "NGN")
        }
    }

    /// Returns an invoice over NGN 100 of which this amount is paid.
    fn credited_invoice(paid: i64) -> Invoice {
        let mut invoice = submitted_invoice(CREDITED.0, 100, "NGN").mark_signed(None);
        invoice.payment.paid = paid.into();
        invoice.payment.status = PaymentStatus::Partial;
        invoice
    }

    /// Stores an invoice over NGN 100 of which this amount is paid, with these signed credit notes.
    async fn store_invoices(store: &Store, paid: i64, notes: &[(i64, i64)]) {
        let mut documents = vec![credited_invoice(paid)];
        let notes = notes.iter();
        documents.extend(notes.map(|(id, payable)| credit_note(*id, *payable).mark_signed(None)));
        let documents: Vec<_> = documents.iter().collect();
        let tx = store.begin().await.unwrap();
        invoices::save(&tx, &documents).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns a unit of work with the rows that these commands read.
    async fn unit_of_work(store: &Store, acts: &[Act]) -> UnitOfWork {
        let mut wanted = ReadSet::default();
        let context = ReadContext {
            taxpayer_id: ID,
            command: CommandId::nil(),
            cached: &CachedState::without_taxpayer(1),
        };
        for act in acts {
            act.add_reads(&mut wanted, &context);
        }
        UnitOfWork::with_rows(store, wanted).await
    }

    /// The paid amount of an invoice over NGN 100, its signed credit notes, the commands of a group, and whether each of
    /// them is accepted.
    type Case<'a> = (i64, &'a [(i64, i64)], &'a [(Act, bool)]);

    #[tokio::test]
    async fn the_commands_of_a_group_together_pay_back_no_more_than_was_paid() {
        let credited_in_full = &[(2, 60), (3, 40)];
        let cases: [Case<'_>; 9] = [
            (
                40,
                credited_in_full,
                &[(Refund(2, 40), true), (Refund(3, 40), false)],
            ),
            (
                40,
                credited_in_full,
                &[(Refund(2, 25), true), (Refund(3, 16), false)],
            ),
            (
                40,
                credited_in_full,
                &[(Refund(2, 25), true), (Refund(3, 15), true)],
            ),
            (
                40,
                credited_in_full,
                &[
                    (Refund(3, 40), true),
                    (PayInFull, true),
                    (Refund(2, 1), false),
                ],
            ),
            (
                40,
                credited_in_full,
                &[
                    (PayInFull, true),
                    (Refund(2, 1), false),
                    (Refund(3, 40), true),
                ],
            ),
            (
                40,
                credited_in_full,
                &[(Act::TakePaymentBack, true), (Refund(3, 40), false)],
            ),
            (
                40,
                credited_in_full,
                &[(Create(4, 5), true), (Refund(2, 41), false)],
            ),
            (
                70,
                &[(2, 60)],
                &[
                    (Refund(2, 30), true),
                    (Create(3, 40), true),
                    (Refund(3, 40), true),
                    (Refund(2, 1), false),
                ],
            ),
            (
                70,
                &[(2, 60)],
                &[
                    (Create(3, 40), true),
                    (Refund(3, 40), true),
                    (Refund(2, 31), false),
                    (Refund(2, 30), true),
                ],
            ),
        ];
        for (paid, notes, acts) in cases {
            let test = sqlite_store().await;
            store_invoices(&test.store, paid, notes).await;
            let commands: Vec<_> = acts.iter().map(|(act, _)| *act).collect();
            let mut uow = unit_of_work(&test.store, &commands).await;
            for (act, is_accepted) in acts {
                let executed = act.execute(&mut uow);
                assert_eq!(executed.is_ok(), *is_accepted, "{act:?} of {acts:?}");
            }
            let paid_amount = |id| {
                let document = uow.invoices.find_by_id(InvoiceId(id));
                document.map_or(Amount::ZERO, |document| document.payment.paid)
            };
            let paid_back = Amount::sum([2, 3].map(paid_amount)).unwrap();
            assert!(paid_back <= paid_amount(CREDITED.0), "{acts:?}");
        }
    }

    #[tokio::test]
    async fn nothing_is_paid_back_if_the_other_credit_notes_are_not_known() {
        use PaymentChange::{Paid, Partial, Pending, Rejected};
        let test = sqlite_store().await;
        let note = credit_note(2, 60).mark_signed(None);
        let other = Invoice {
            extras: Map::new(),
            ..note.clone()
        };
        // The credit note, the invoices whose credit notes were not read, the change, and whether it is accepted.
        for (note, unread, change, is_accepted) in [
            (&note, vec![], Partial(40.into()), true),
            (&note, vec![CREDITED], Partial(40.into()), false),
            (&note, vec![CREDITED], Paid, false),
            (&note, vec![CREDITED], Pending, true),
            (&note, vec![CREDITED], Rejected, true),
            (&other, vec![], Partial(1.into()), false),
        ] {
            let name = format!("{unread:?} {change:?}");
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            let mut invoice = credited_invoice(100);
            invoice.payment.status = PaymentStatus::Paid;
            uow.invoices = InvoiceIndex::new(vec![invoice, note.clone()], unread);
            let command = RecordRefund {
                payment: payment(2, change),
                credited: CREDITED,
            };
            assert_eq!(command.execute(&mut uow).is_ok(), is_accepted, "{name}");
        }
    }
}
