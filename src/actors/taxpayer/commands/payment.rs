//! Payments of invoices: the ledger entry and the events of a payment. An invoice also takes over a payment status that
//! was relayed to the authority, or that was signed with the invoice.

use jiff::civil::Date;
use serde_json::{Value, json};

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::payment_amounts::PaymentAmounts;
use crate::actors::taxpayer::commands::set_off::post_set_off;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::Invoice;
use crate::domain::kernel::codes::{PaymentStatus, RelayedPaymentStatus, WorkflowStatus};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;
use crate::domain::payment::{
    CREDITED_REMARK, PaymentChange, PaymentUpdate, Posting, RelayedPayment,
};
use crate::domain::pipeline::{Run, RunRequest, RunState, StepResult};
use crate::store::invoices::payments;

/// Changes the payment status of an invoice: paid, paid in part, rejected or pending. "Paid" means that the amount was
/// paid that is left after the invoice's signed credit notes.
pub struct ChangePayment(pub PaymentUpdate);

/// An invoice after a change of its payment status, with warnings for the sender.
#[derive(Debug, Clone)]
pub struct InvoiceAfterPayment {
    pub invoice: Invoice,
    pub warnings: Vec<String>,
}

/// The texts and the day that the ledger stores with an amount.
#[derive(Debug, Default)]
pub(super) struct PostingNote {
    pub(super) reference: Option<String>,
    pub(super) remark: Option<String>,
    /// The day of the payment; `None` if none was sent.
    pub(super) payment_date: Option<Date>,
}

/// A payment that is ready to be posted to the ledger: the invoice after it, and the workflow status before it.
pub(super) struct PaymentPosting<'a> {
    pub(super) previous: WorkflowStatus,
    pub(super) invoice: &'a Invoice,
    pub(super) posting: Posting,
    pub(super) note: PostingNote,
}

impl TaxpayerCommand for ChangePayment {
    type Output = InvoiceAfterPayment;

    const NAME: &'static str = "pay";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_invoice(&self.0.invoice);
        if matches!(
            self.0.change,
            PaymentChange::Paid | PaymentChange::Partial(_)
        ) {
            wanted.add_credit_notes();
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<InvoiceAfterPayment, Refusal> {
        let Self(update) = self;
        let before = uow.invoice(&update.invoice)?.clone();
        let is_paid = update.change == PaymentChange::Paid;
        if is_paid {
            uow.invoices.check_credit_notes(&before)?;
        }
        let credits = InvoiceCredits::new(&before, uow.invoices.signed_credit_notes(&before));
        let left = credits.left_to_pay(&before).max(Amount::ZERO);
        let start = if is_paid {
            post_set_off(uow, before.clone(), credits.signed)?
        } else {
            before.clone()
        };
        let note = PostingNote {
            reference: update.reference.clone(),
            remark: Some(update.remark.clone()),
            payment_date: update.payment_date,
        };
        let paid_before = start.payment.paid;
        let invoice = post_payment_change(uow, start, update.change, note)?;
        let amounts = PaymentAmounts {
            left,
            set_off: absolute_difference(paid_before, before.payment.paid),
            recorded: absolute_difference(invoice.payment.paid, paid_before),
        };
        Ok(InvoiceAfterPayment {
            warnings: amounts.warnings(update, &invoice.currency),
            invoice,
        })
    }
}

fn absolute_difference(one: Amount, other: Amount) -> Amount {
    one.minus(other).unwrap_or_default()
}

/// Applies a change of the payment status to an invoice and posts it. Returns the changed invoice.
pub(super) fn post_payment_change(
    uow: &mut UnitOfWork,
    before: Invoice,
    change: PaymentChange,
    note: PostingNote,
) -> Result<Invoice, Refusal> {
    let previous = before.status;
    let payment = before.payment;
    let digits = uow.catalog.currency_digits(&before.currency);
    let (invoice, posting) = before
        .apply_payment(change, uow.now)
        .map_err(|refusal| payment.refusal_with_digits(refusal, change, digits))?;
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

/// Adds the ledger entry and the events of a payment, and stores the invoice.
pub(super) fn post_payment(
    uow: &mut UnitOfWork,
    PaymentPosting {
        previous,
        invoice,
        posting,
        note,
    }: PaymentPosting<'_>,
) {
    let payment_date = note.payment_date.map(|date| date.to_string());
    let mut extra = json!({
        "amount": posting.amount,
        "reference": note.reference,
        "remark": note.remark,
        "amount_paid": invoice.payment.paid,
        "payable_amount": invoice.payment.payable_as_signed(),
    });
    if let Some(date) = &payment_date {
        extra["payment_date"] = json!(date);
    }
    let sequence = uow.emit_about(EventKind::PaymentStatusUpdated, invoice, extra);
    if invoice.status != previous {
        let extra = json!({ "previous_status": previous });
        uow.emit_about(EventKind::InvoiceStatusUpdated, invoice, extra);
    }
    let entry = payments::Model::from_posting(invoice, sequence, posting, uow.now);
    uow.writes.postings.push(payments::Model {
        reference: note.reference,
        remark: note.remark,
        payment_date,
        ..entry
    });
    uow.put_invoice(invoice.clone());
}

/// Marks an invoice that was credited in full as no longer owed: its payment status becomes "rejected". Does nothing if
/// a part of it was paid.
pub(super) fn mark_fully_credited(uow: &mut UnitOfWork, invoice: &Invoice, credit_note: &str) {
    let is_owed =
        invoice.payment.status == PaymentStatus::Pending && invoice.payment.paid.is_zero();
    if !is_owed {
        return;
    }
    let note = PostingNote {
        reference: Some(credit_note.to_owned()),
        remark: Some(CREDITED_REMARK.to_owned()),
        payment_date: None,
    };
    // Cannot fail: every state of an invoice permits this change.
    let _ = post_payment_change(uow, invoice.clone(), PaymentChange::Rejected, note);
}

/// Refuses a relayed payment status that the invoice could not take over. A status that the invoice already has is not
/// refused.
pub(super) fn check_relayed_payment(
    uow: &UnitOfWork,
    relayed: &RelayedPayment,
    invoice: Option<&Invoice>,
) -> Result<(), Refusal> {
    let Some(invoice) = invoice else {
        return Ok(());
    };
    if invoice.payment.status == relayed.payment_status.to_payment_status() {
        return Ok(());
    }
    if relayed.payment_status == RelayedPaymentStatus::Paid {
        uow.invoices.check_credit_notes(invoice)?;
    }
    invoice
        .clone()
        .apply_payment(relayed.payment_status.into(), uow.now)
        .map(drop)
}

/// Returns true if the run has relayed the same payment as PAID, and the invoice, if it is stored, is paid too. The
/// authority never changes PAID, so there is nothing left to relay.
pub(super) fn is_payment_final(uow: &UnitOfWork, run: &Run, request: &RunRequest) -> bool {
    let Some(relayed) = run.payload.payment() else {
        return false;
    };
    let is_paid = relayed.payment_status == RelayedPaymentStatus::Paid;
    let is_relayed = run.state() == RunState::Succeeded && run.digest == request.digest();
    is_paid
        && is_relayed
        && uow
            .find_invoice_by_irn(&run.irn)
            .is_none_or(|invoice| invoice.payment.status == PaymentStatus::Paid)
}

/// Makes the invoice take over the payment that the run relayed. A refused payment emits no event, because its caller
/// gets the refusal. A paused run emits one, because no caller waits for it any more.
pub(super) fn apply_relay_verdict(uow: &mut UnitOfWork, run: &Run, verdict: &StepResult) {
    let Some(relayed) = run.payload.payment() else {
        return;
    };
    match verdict {
        StepResult::Done { .. } | StepResult::Unchanged(_) => {
            let was_sent = matches!(verdict, StepResult::Done { .. });
            match uow.find_invoice_by_irn(&run.irn).cloned() {
                Some(invoice) => take_over_payment_status(uow, invoice, relayed, was_sent),
                None if was_sent => {
                    emit_event_about_run(
                        uow,
                        run,
                        EventKind::PaymentStatusUpdated,
                        event_fields_without_invoice(relayed),
                    );
                }
                None => {}
            }
        }
        StepResult::Pause { error } => {
            let extra = json!({ "operation": run.operation(), "error": error });
            emit_event_about_run(uow, run, EventKind::InvoiceFailed, extra);
        }
        StepResult::Refused { .. } | StepResult::Wait { .. } | StepResult::Deferred { .. } => {}
    }
}

/// Makes the invoice take over the relayed payment status, even if its workflow status no longer permits a payment. The
/// workflow status then stays.
fn take_over_payment_status(
    uow: &mut UnitOfWork,
    invoice: Invoice,
    relayed: &RelayedPayment,
    was_sent: bool,
) {
    if !was_sent && invoice.payment.status == relayed.payment_status.to_payment_status() {
        add_remark_entry(uow, invoice, relayed);
        return;
    }
    let previous = invoice.status;
    let notice = PaymentChange::from(relayed.payment_status);
    let invoice = if notice == PaymentChange::Paid {
        // If an invoice has too many credit notes to be loaded, its run is not opened. If they became too many after
        // that, nothing is set off.
        let notes = uow.invoices.signed_credit_notes(&invoice);
        let unpaid = invoice.clone();
        post_set_off(uow, invoice, notes).unwrap_or(unpaid)
    } else {
        invoice
    };
    let taken = invoice.apply_payment_in_any_status(notice, uow.now);
    // Cannot fail: a relayed payment never exceeds the amount that is left to pay.
    let Ok((invoice, posting)) = taken else {
        return;
    };
    post_relayed_payment(uow, previous, &invoice, posting, relayed);
}

fn post_relayed_payment(
    uow: &mut UnitOfWork,
    previous: WorkflowStatus,
    invoice: &Invoice,
    posting: Posting,
    relayed: &RelayedPayment,
) {
    let note = PostingNote {
        remark: relayed.remark.clone(),
        ..PostingNote::default()
    };
    post_payment(
        uow,
        PaymentPosting {
            previous,
            invoice,
            posting,
            note,
        },
    );
}

/// Adds a ledger entry with the relayed remark to an invoice that already has the relayed status, unless the last entry
/// with this status has the same remark. Nothing else changes.
fn add_remark_entry(uow: &mut UnitOfWork, invoice: Invoice, relayed: &RelayedPayment) {
    let last = uow
        .last_posting(&invoice)
        .and_then(|entry| entry.remark.as_ref());
    if relayed.remark.is_none() || last == relayed.remark.as_ref() {
        return;
    }
    let invoice = Invoice {
        updated_at: uow.now,
        ..invoice
    };
    let posting = Posting {
        status: invoice.payment.status,
        amount: Amount::ZERO,
    };
    post_relayed_payment(uow, invoice.status, &invoice, posting, relayed);
}

/// Makes the invoice take over the payment status that was signed with it. With PAID, the amount that is left counts as
/// paid. PENDING, the default of a submission, changes nothing.
pub(super) fn apply_signed_payment_status(uow: &mut UnitOfWork, run: &Run) {
    let change = match run
        .payload
        .submission()
        .and_then(|document| document.payment_status)
    {
        Some(PaymentStatus::Paid) => PaymentChange::Paid,
        Some(PaymentStatus::Rejected) => PaymentChange::Rejected,
        Some(PaymentStatus::Pending | PaymentStatus::Partial) | None => return,
    };
    let Some(invoice) = uow.find_invoice_by_irn(&run.irn).cloned() else {
        return;
    };
    let Ok((payment, posting)) = invoice.payment.after(change) else {
        return;
    };
    if payment.status == invoice.payment.status {
        return;
    }
    let invoice = Invoice {
        payment,
        updated_at: uow.now,
        ..invoice
    };
    let note = PostingNote::default();
    post_payment(
        uow,
        PaymentPosting {
            previous: invoice.status,
            invoice: &invoice,
            posting,
            note,
        },
    );
}

/// Returns the payment fields of an event about an invoice that is not stored.
fn event_fields_without_invoice(relayed: &RelayedPayment) -> Value {
    json!({
        "payment_status": relayed.payment_status, "amount": Value::Null, "reference": Value::Null,
        "remark": relayed.remark, "amount_paid": Value::Null, "payable_amount": Value::Null,
    })
}

/// Emits an event about the run's IRN, with the invoice if it is stored.
fn emit_event_about_run(uow: &mut UnitOfWork, run: &Run, kind: EventKind, extra: Value) {
    if let Some(invoice) = uow.find_invoice_by_irn(&run.irn).cloned() {
        uow.emit_about(kind, &invoice, extra);
        return;
    }
    let mut data = json!({ "irn": run.irn.as_str(), "invoice": Value::Null });
    if let (Some(data), Value::Object(extra)) = (data.as_object_mut(), extra) {
        data.extend(extra);
    }
    uow.emit(kind, Some(&run.irn), &data);
}
