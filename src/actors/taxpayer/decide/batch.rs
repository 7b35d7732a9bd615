//! Creating invoices together: the gates stand before all of them, then each is decided alone. The batch is
//! written with them, so that it is there with all of its items or not at all.

use serde_json::json;

use crate::actors::taxpayer::command::Reply;
use crate::actors::taxpayer::decide::create;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::Draft;
use crate::domain::invoice::batch::{self, Batch, BatchItem, Candidate, ItemOutcome};
use crate::domain::kernel::clock;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;

pub(super) fn create_batch(
    desk: &mut Desk,
    cause: CommandId,
    candidates: &[Candidate],
) -> Result<Reply, Refusal> {
    desk.taxpayer()?.may_create_invoices(desk.verification)?;
    let batch_no = batch::draw_number(desk.now, &mut clock::chance());
    let mut items = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        items.push(item(desk, cause, &batch_no, candidate));
    }
    let batch = Batch { taxpayer_id: desk.id, batch_no, items, created_at: desk.now };
    let data = json!({
        "batch_no": batch.batch_no,
        "created": batch.count(ItemOutcome::Created),
        "duplicates": batch.count(ItemOutcome::Duplicate),
        "failed": batch.count(ItemOutcome::Failed),
    });
    desk.emit(cause, EventKind::InvoiceBatchCompleted, None, data);
    desk.changes.batches.push(batch.clone());
    Ok(Reply::Batch(Box::new(batch)))
}

fn item(desk: &mut Desk, cause: CommandId, batch_no: &str, candidate: &Candidate) -> BatchItem {
    let invoice_no = candidate.invoice_no.clone();
    let draft = match &candidate.draft {
        Ok(draft) => Draft { batch_no: Some(batch_no.to_owned()), ..(**draft).clone() },
        Err(faults) => return BatchItem::failed(invoice_no, faults),
    };
    match create::add(desk, cause, &draft) {
        Ok(created) => {
            let is_new = created.duplicate.is_none();
            let outcome = if is_new { ItemOutcome::Created } else { ItemOutcome::Duplicate };
            BatchItem { invoice_no, ..BatchItem::of_invoice(&created.invoice, outcome) }
        }
        Err(refusal) => BatchItem::failed(invoice_no, &faults(refusal)),
    }
}

/// What the books say against one item.
fn faults(refusal: Refusal) -> Faults {
    match refusal {
        Refusal::Invalid(faults) => faults,
        other => Fault::new(batch::WHOLE_ITEM, "refused", other.to_string()).into(),
    }
}
