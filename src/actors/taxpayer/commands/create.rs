//! Creates one invoice or a batch: checks the account, looks for a duplicate, and resolves the customer, the items and
//! the IRN. A batch is one command, so its results are stored together or not at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::actors::taxpayer::command::{CommandReply, Created, Duplicate};
use crate::actors::taxpayer::commands::resolve_customer_and_items::{resolve_customer, resolve_items};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::batch::{self, Batch, BatchItem, Candidate, ItemOutcome};
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::{Draft, Invoice, InvoiceIdentity};
use crate::domain::kernel::clock;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::Taxpayer;
use crate::store::invoices::payments;

pub(super) fn create(uow: &mut UnitOfWork, cause: CommandId, draft: &Draft) -> Result<CommandReply, Refusal> {
    Ok(CommandReply::Created(Box::new(add(uow, cause, draft)?)))
}

/// Creates the invoices of a batch. The account is checked once for the whole batch. Then each item succeeds or fails
/// independently of the other items.
pub(super) fn create_batch(
    uow: &mut UnitOfWork,
    cause: CommandId,
    candidates: &[Candidate],
) -> Result<CommandReply, Refusal> {
    uow.taxpayer()?.may_create_invoices(uow.verification)?;
    let batch_no = batch::draw_number(uow.now, &mut clock::chance());
    let mut items = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        items.push(create_item(uow, cause, &batch_no, candidate));
    }
    let batch = Batch { taxpayer_id: uow.id, batch_no, items, created_at: uow.now };
    let data = json!({
        "batch_no": batch.batch_no,
        "created": batch.count(ItemOutcome::Created),
        "duplicates": batch.count(ItemOutcome::Duplicate),
        "failed": batch.count(ItemOutcome::Failed),
    });
    uow.emit(cause, EventKind::InvoiceBatchCompleted, None, &data);
    uow.writes.batches.push(batch.clone());
    Ok(CommandReply::Batch(Box::new(batch)))
}

fn create_item(uow: &mut UnitOfWork, cause: CommandId, batch_no: &str, candidate: &Candidate) -> BatchItem {
    let invoice_no = candidate.invoice_no.clone();
    let draft = match &candidate.draft {
        Ok(draft) => Draft { batch_no: Some(batch_no.to_owned()), ..(**draft).clone() },
        Err(faults) => return BatchItem::failed(invoice_no, faults),
    };
    match add(uow, cause, &draft) {
        Ok(created) => {
            let is_new = created.duplicate.is_none();
            let outcome = if is_new { ItemOutcome::Created } else { ItemOutcome::Duplicate };
            BatchItem { invoice_no, ..BatchItem::of_invoice(&created.invoice, outcome) }
        }
        Err(refusal) => BatchItem::failed(invoice_no, &item_faults(refusal)),
    }
}

fn item_faults(refusal: Refusal) -> Faults {
    match refusal {
        Refusal::Invalid(faults) => faults,
        other => Fault::new(batch::WHOLE_ITEM, "refused", other.to_string()).into(),
    }
}

/// Adds an invoice, or returns the existing invoice that has the same number or IRN.
fn add(uow: &mut UnitOfWork, cause: CommandId, draft: &Draft) -> Result<Created, Refusal> {
    let taxpayer = uow.taxpayer()?;
    taxpayer.may_create_invoices(uow.verification)?;
    let irn = irn(draft, taxpayer)?;
    if let Some(existing) = find_existing(uow, draft, &irn) {
        if draft.irn.is_none() && existing.invoice_no != draft.invoice_no {
            return Err(irn_taken(&irn, existing));
        }
        return Ok(Created { invoice: existing.clone(), duplicate: Some(compare(draft, existing)) });
    }
    let customer = resolve_customer(uow, &draft.customer, draft.category);
    let identity = InvoiceIdentity {
        id: uow.next_invoice_id(),
        taxpayer_id: uow.id,
        provisional_qr: provisional_qr(&irn),
        irn,
        customer,
    };
    let (mut invoice, posting) = draft.clone().into_invoice(identity, uow.now);
    resolve_items(uow, &mut invoice.lines);
    let sequence =
        uow.emit_about(cause, EventKind::InvoiceCreated, &invoice, json!({ "previous_status": null }));
    if let Some(posting) = posting {
        uow.writes.postings.push(payments::Model::of(&invoice, sequence, posting, uow.now));
    }
    uow.put_invoice(invoice.clone());
    Ok(Created { invoice, duplicate: None })
}

fn irn(draft: &Draft, taxpayer: &Taxpayer) -> Result<Irn, Refusal> {
    match &draft.irn {
        Some(irn) if irn.has_service_id(&taxpayer.service_id) => Ok(irn.clone()),
        Some(_) => Err(Refusal::IrnServiceIdMismatch(Fault::new(
            "irn",
            "irn_service_id_mismatch",
            "The irn must carry this account's authority_service_id.",
        ))),
        None => Irn::of_invoice(&draft.invoice_no, &taxpayer.service_id, draft.invoice_date)
            .map_err(|malformed| Fault::new("invoice_no", "irn_malformed", malformed.to_string()).into()),
    }
}

/// Returns the refusal of an invoice whose IRN follows from its number and is that of another number. It is no
/// duplicate: a caller that reads only the status would believe that its own invoice is stored.
fn irn_taken(irn: &Irn, existing: &Invoice) -> Refusal {
    let message = format!(
        "The invoice_no field gives the IRN {irn}, which belongs to the invoice with the number {}.",
        existing.invoice_no
    );
    Fault::new("invoice_no", "irn_taken", message).into()
}

/// Finds the existing invoice with the draft's number or IRN. If these belong to two invoices, an IRN that the caller
/// has sent decides, or else the number.
fn find_existing<'a>(uow: &'a UnitOfWork, draft: &Draft, irn: &Irn) -> Option<&'a Invoice> {
    let by_number = || uow.invoices.with_number(&draft.invoice_no);
    let by_irn = || uow.invoice_with_irn(irn);
    if draft.irn.is_some() { by_irn().or_else(by_number) } else { by_number().or_else(by_irn) }
}

/// Compares a draft with an existing invoice. An edited invoice is always different, because its first content is gone.
fn compare(draft: &Draft, existing: &Invoice) -> Duplicate {
    let is_identical = existing.edited_at.is_none() && draft.digest() == existing.content_digest;
    if is_identical { Duplicate::Identical } else { Duplicate::Different }
}

/// Returns the QR code that is shown until the authority has signed the invoice. It contains only the IRN.
fn provisional_qr(irn: &Irn) -> String {
    STANDARD.encode(json!({ "irn": irn.as_str() }).to_string())
}
