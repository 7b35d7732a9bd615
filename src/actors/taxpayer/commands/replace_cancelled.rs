//! Replaces a cancelled invoice with the invoice of a file, for an import that asks for it. The invoice keeps its id,
//! its number and its IRN, and becomes a draft of the import's batch. An invoice of which the authority may have
//! anything, or of which anything was paid, is not replaced.

use serde_json::json;

use crate::actors::taxpayer::commands::create::{
    check_invoice_number, determine_irn, find_existing_invoice, resolve_customer, resolve_items,
};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity};
use crate::domain::kernel::codes::{
    AuthorityStatus, PaymentStatus, SettableStatus, WorkflowStatus,
};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::RunState;
use crate::store::invoices::payments;

/// The remark of the event that makes the cancelled invoice a draft again.
const REMARK: &str = "Replaced by an import";

/// Replaces the cancelled invoice that has the number and the IRN of this draft. Returns `None`, and changes nothing,
/// if no such invoice may be replaced.
pub(super) fn replace_cancelled_invoice(
    uow: &mut UnitOfWork,
    draft: &Draft,
) -> Result<Option<Invoice>, Refusal> {
    let Some(cancelled) = find_replaceable_invoice(uow, draft)?.cloned() else {
        return Ok(None);
    };
    check_invoice_number(uow.taxpayer()?, draft, &cancelled.irn)?;
    let previous = cancelled.status;
    let reopened = cancelled.apply_transition(Transition::Set(SettableStatus::Draft), uow.now)?;
    let extra = json!({ "previous_status": previous, "remark": REMARK });
    uow.emit_about(EventKind::InvoiceStatusUpdated, &reopened, extra);
    let customer = resolve_customer(uow, &draft.customer, draft.category);
    let identity = InvoiceIdentity {
        id: reopened.id,
        taxpayer_id: reopened.taxpayer_id,
        irn: reopened.irn,
        customer,
        provisional_qr: reopened.authority.qr_code,
    };
    let (mut invoice, posting) = draft.clone().into_invoice(identity, uow.now);
    invoice.created_at = reopened.created_at;
    resolve_items(uow, &mut invoice.lines);
    let extra = json!({ "previous_status": invoice.status });
    let sequence = uow.emit_about(EventKind::InvoiceUpdated, &invoice, extra);
    if let Some(posting) = posting {
        uow.writes.postings.push(payments::Model::from_posting(
            &invoice, sequence, posting, uow.now,
        ));
    }
    uow.writes.ubl_parts.retain(|(id, _)| *id != invoice.id);
    uow.writes.outdated_ubl_parts.push(invoice.id);
    uow.put_invoice(invoice.clone());
    Ok(Some(invoice))
}

/// Returns the cancelled invoice that an import of this draft would replace; `None` if there is none. The runs of the
/// invoice must be loaded.
pub(super) fn find_replaceable_invoice<'a>(
    uow: &'a UnitOfWork,
    draft: &Draft,
) -> Result<Option<&'a Invoice>, Refusal> {
    let irn = determine_irn(draft, uow.taxpayer()?)?;
    let existing = find_existing_invoice(uow, draft, &irn);
    Ok(existing.filter(|invoice| {
        invoice.invoice_no == draft.invoice_no
            && invoice.irn.key() == irn.key()
            && is_replaceable(uow, invoice)
    }))
}

fn is_replaceable(uow: &UnitOfWork, invoice: &Invoice) -> bool {
    let key = invoice.irn.key();
    let mut runs = uow.runs.iter().filter(|run| run.irn.key() == key);
    let was_never_sent = invoice.authority.status == AuthorityStatus::Pending
        && !invoice.authority.signed
        && runs.all(|run| run.state() == RunState::Cancelled);
    let was_never_paid =
        invoice.payment.status == PaymentStatus::Pending && invoice.payment.paid.is_zero();
    invoice.status == WorkflowStatus::Cancelled && was_never_sent && was_never_paid
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use timing::clock;

    use super::*;
    use crate::actors::taxpayer::testing::submitted_invoice;
    use crate::actors::taxpayer::tests::{ID, submission};
    use crate::domain::pipeline::{Run, Step, StepResult};
    use crate::store::testing::sqlite_store;

    #[tokio::test]
    async fn an_invoice_with_a_run_that_was_not_cancelled_is_not_replaced() {
        let test = sqlite_store().await;
        let now = Timestamp::UNIX_EPOCH;
        let invoice = Invoice {
            status: WorkflowStatus::Cancelled,
            ..submitted_invoice(1, 100, "NGN")
        };
        let request = submission(invoice.irn.as_str(), "a");
        let open = Run::new(clock::new_id(), ID, request, now);
        let refusal = StepResult::Refused {
            error: "no".to_owned(),
        };
        let called = open.clone().begin_attempt(Step::Sign, now);
        let refused = called.clone().after_step(Step::Sign, &refusal, now);
        let cancelled = open.cancel(now);
        for (name, run, expected) in [
            ("no run", None, true),
            ("cancelled", Some(cancelled), true),
            ("called", Some(called), false),
            ("refused", Some(refused), false),
        ] {
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            if let Some(run) = run {
                uow.put_run(run);
            }
            assert_eq!(is_replaceable(&uow, &invoice), expected, "{name}");
        }
    }
}
