//! Creates a batch of invoices. A batch is one command, so its results are stored together or not at all, but each of
//! its invoices is created or refused by itself.

use serde::Serialize;
use timing::clock;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::create::{
    CreatedInvoice, add_draft_reads, add_invoice, add_wanted_ids,
};
use crate::actors::taxpayer::commands::replace_cancelled::replace_cancelled_invoice;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::events::event::EventKind;
use crate::domain::import::record::{DocumentResult, Import, ImportState};
use crate::domain::invoice::Draft;
use crate::domain::invoice::batch::{self, Batch, BatchCandidate, BatchItem, ItemOutcome};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::refusal::Refusal;

/// Creates a batch of invoices. If one invoice of the batch is refused, the others are still created.
pub struct CreateBatch(pub Vec<BatchCandidate>);

impl TaxpayerCommand for CreateBatch {
    type Output = Batch;

    const NAME: &'static str = "create-batch";
    const IS_LARGE: bool = true;

    fn size(&self) -> CommandSize {
        faultless_drafts(&self.0).map(CommandSize::for_draft).sum()
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        faultless_drafts(&self.0).for_each(|draft| add_wanted_ids(draft, wanted));
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        faultless_drafts(&self.0).for_each(|draft| add_draft_reads(draft, wanted, context));
    }

    /// The batch is refused as a whole only if the account may not create invoices. Otherwise each item succeeds or
    /// fails alone.
    fn execute(&self, uow: &mut UnitOfWork) -> Result<Batch, Refusal> {
        create_batch(uow, &self.0, None, false).map(|created| created.batch)
    }
}

/// A batch whose invoices were created or refused.
pub(super) struct CreatedBatch {
    pub(super) batch: Batch,
    /// The faults of each item, in the order of the items; `None` for an item that did not fail.
    pub(super) faults: Vec<Option<Faults>>,
}

/// The data of the event at the end of a batch or of an import.
#[derive(Serialize)]
pub(super) struct CompletedBatch<'a> {
    batch_no: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    import_no: Option<&'a str>,
    created: usize,
    duplicates: usize,
    failed: usize,
    /// True if the import was cancelled before all its documents were imported; `None` for a batch of another request.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled: Option<bool>,
}

impl<'a> From<&'a Batch> for CompletedBatch<'a> {
    fn from(batch: &'a Batch) -> Self {
        Self {
            batch_no: Some(&batch.batch_no),
            import_no: None,
            created: batch.count(ItemOutcome::Created),
            duplicates: batch.count(ItemOutcome::Duplicate),
            failed: batch.count(ItemOutcome::Failed),
            cancelled: None,
        }
    }
}

impl<'a> From<&'a Import> for CompletedBatch<'a> {
    fn from(import: &'a Import) -> Self {
        let counts = import.counts;
        Self {
            batch_no: import.batch_no.as_deref(),
            import_no: Some(&import.import_no),
            created: counts.created,
            duplicates: counts.duplicates,
            failed: counts.failed + counts.unanswered,
            cancelled: Some(import.state() == ImportState::Stopped),
        }
    }
}

/// Emits the event at the end of a batch, or of an import that is done or cancelled. An import that stops because a
/// piece of its file cannot be read or stored has no event, because it has not ended: the same file continues it.
pub(super) fn emit_batch_completed(uow: &mut UnitOfWork, completed: &CompletedBatch<'_>) {
    uow.emit(EventKind::InvoiceBatchCompleted, None, completed);
}

/// Returns the drafts of the candidates that have no fault.
pub(super) fn faultless_drafts(candidates: &[BatchCandidate]) -> impl Iterator<Item = &Draft> {
    candidates
        .iter()
        .filter_map(|candidate| candidate.draft.as_deref().ok())
}

/// Creates the invoices of a batch, stores the batch and emits its event. `import_no` is the number of the import if
/// the invoices come from a file. `replaces_cancelled` is as for `create_items`.
pub(super) fn create_batch(
    uow: &mut UnitOfWork,
    candidates: &[BatchCandidate],
    import_no: Option<&str>,
    replaces_cancelled: bool,
) -> Result<CreatedBatch, Refusal> {
    let batch_no = batch::draw_batch_number(uow.now, &mut clock::system_rng());
    let results = create_items(uow, &batch_no, candidates, replaces_cancelled)?.into_iter();
    let (items, faults) = results.map(|result| (result.item, result.faults)).unzip();
    let batch = Batch {
        taxpayer_id: uow.id,
        batch_no,
        items,
        created_at: uow.now,
    };
    let completed = CompletedBatch {
        import_no,
        // A file that is imported as one command cannot be cancelled.
        cancelled: import_no.map(|_| false),
        ..CompletedBatch::from(&batch)
    };
    emit_batch_completed(uow, &completed);
    uow.writes.batches.push(batch.clone());
    Ok(CreatedBatch { batch, faults })
}

/// Creates the invoices of candidates that belong to this batch. Returns one result for each candidate, in their order.
/// With `replaces_cancelled`, a candidate replaces a cancelled invoice that has its number, if that is possible.
pub(super) fn create_items(
    uow: &mut UnitOfWork,
    batch_no: &str,
    candidates: &[BatchCandidate],
    replaces_cancelled: bool,
) -> Result<Vec<DocumentResult>, Refusal> {
    uow.taxpayer()?
        .check_may_create_invoices(uow.verification)?;
    let mut items = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let DocumentResult { item, faults } =
            create_item(uow, batch_no, candidate, replaces_cancelled);
        let item = item.with_warnings(&candidate.warnings);
        items.push(DocumentResult { item, faults });
    }
    Ok(items)
}

fn create_item(
    uow: &mut UnitOfWork,
    batch_no: &str,
    candidate: &BatchCandidate,
    replaces_cancelled: bool,
) -> DocumentResult {
    let invoice_no = candidate.invoice_no.clone();
    let draft = match &candidate.draft {
        Ok(draft) => Draft {
            batch_no: Some(batch_no.to_owned()),
            ..(**draft).clone()
        },
        Err(faults) => {
            return DocumentResult {
                item: BatchItem::from_faults(invoice_no, faults),
                faults: Some(faults.clone()),
            };
        }
    };
    match add_or_replace_invoice(uow, &draft, replaces_cancelled) {
        Ok(item) => DocumentResult {
            item: BatchItem { invoice_no, ..item },
            faults: None,
        },
        Err(refusal) => {
            let faults = item_faults(refusal);
            DocumentResult {
                item: BatchItem::from_faults(invoice_no, &faults),
                faults: Some(faults),
            }
        }
    }
}

fn add_or_replace_invoice(
    uow: &mut UnitOfWork,
    draft: &Draft,
    replaces_cancelled: bool,
) -> Result<BatchItem, Refusal> {
    if replaces_cancelled && let Some(invoice) = replace_cancelled_invoice(uow, draft)? {
        return Ok(BatchItem::for_replaced(&invoice));
    }
    let CreatedInvoice { invoice, duplicate } = add_invoice(uow, draft)?;
    Ok(BatchItem::for_invoice(&invoice, duplicate))
}

/// Returns the faults of an item that was refused: those of the refusal or, if it names none, one about the whole item.
pub(super) fn item_faults(refusal: Refusal) -> Faults {
    match refusal {
        Refusal::Invalid(faults) => faults,
        other => Fault::new(batch::WHOLE_ITEM_PATH, "refused", other.to_string()).into(),
    }
}
