//! Imports a file of invoices as one batch, or one piece of a large file, or previews an import. Sets the import
//! profile, or adds answers to it.

use std::collections::HashMap;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::commands::batch::{
    CompletedBatch, CreatedBatch, create_batch, create_items, emit_batch_completed,
    faultless_drafts, item_faults,
};
use crate::actors::taxpayer::commands::cancel_import::find_newest_import;
use crate::actors::taxpayer::commands::create::{
    add_draft_reads, add_wanted_ids, check_invoice_number, compare_with_existing, determine_irn,
    find_existing_invoice, irn_taken_refusal,
};
use crate::actors::taxpayer::commands::replace_cancelled::find_replaceable_invoice;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::import::answers::ImportAnswers;
use crate::domain::import::error_file;
use crate::domain::import::profile::{ImportProfile, PROFILE_BYTES_MAX};
use crate::domain::import::record::{DocumentResult, Import, ImportState, ImportedFile};
use crate::domain::invoice::Draft;
use crate::domain::invoice::batch::{BatchCandidate, BatchItem, Duplicate, ItemOutcome};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::audit::AuditAction;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::refusal::Refusal;
use crate::store::invoices::import_pieces::ImportedPiece;
use crate::store::invoices::imports::StoredImport;

/// Creates the invoices of a file as a batch, and stores the result of each. If another request has imported the file
/// meanwhile, creates nothing and returns the result of that import.
pub struct ImportInvoices {
    pub candidates: Vec<BatchCandidate>,
    pub file: ImportedFile,
    /// True if the invoices of the file replace cancelled ones that have their numbers.
    pub replaces_cancelled: bool,
}

/// The import of a file, by this command or by one before it.
pub struct FileImport {
    pub import: Import,
    /// False if the file was imported before.
    pub is_new: bool,
}

/// Creates the invoices of a piece of a large file, and stores the results of the file so far. Creates nothing if the
/// import was cancelled. Fails with `Stale` if another process has imported the piece.
pub struct ImportPiece {
    pub invoices: ImportInvoices,
    pub number: i64,
    /// The import with the results of the earlier pieces. All pieces belong to one batch.
    pub so_far: Import,
}

/// Computes the result that the import of a file would have, and changes nothing.
pub struct PreviewImport {
    pub invoices: ImportInvoices,
    /// The invoices that the earlier pieces of the file would create.
    pub planned: PlannedInvoices,
}

impl PreviewImport {
    /// Returns the preview of a whole file, or of its first piece.
    pub fn for_first_piece(invoices: ImportInvoices) -> Self {
        Self {
            invoices,
            planned: PlannedInvoices::default(),
        }
    }
}

pub struct SetImportProfile(pub ImportProfile);

/// Adds answers to the stored import profile, without replacing the profile. So if two pages send answers at the same
/// moment, both are kept.
pub struct AddImportAnswers(pub ImportAnswers);

impl ImportInvoices {
    fn add_all_draft_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        if self.replaces_cancelled {
            wanted.add_invoice_runs();
        }
        faultless_drafts(&self.candidates)
            .for_each(|draft| add_draft_reads(draft, wanted, context));
    }

    /// Returns the import of the same file that another request has already made.
    fn find_earlier_import(&self, uow: &UnitOfWork) -> Option<Import> {
        let written = uow.writes.imports.iter().map(|stored| &stored.import);
        let mut imports = written.chain(&uow.imports);
        let found = imports.find(|import| {
            import.import_no == self.file.import_no && import.state() != ImportState::Stopped
        });
        found.cloned()
    }
}

impl TaxpayerCommand for ImportInvoices {
    type Output = FileImport;

    const NAME: &'static str = "import-invoices";
    const IS_LARGE: bool = true;

    fn size(&self) -> CommandSize {
        faultless_drafts(&self.candidates)
            .map(CommandSize::for_draft)
            .sum()
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        faultless_drafts(&self.candidates).for_each(|draft| add_wanted_ids(draft, wanted));
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        wanted.add_import(&self.file.import_no);
        self.add_all_draft_reads(wanted, context);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<FileImport, Refusal> {
        if let Some(import) = self.find_earlier_import(uow) {
            return Ok(FileImport {
                import,
                is_new: false,
            });
        }
        let import_no = Some(self.file.import_no.as_str());
        let CreatedBatch { batch, faults } =
            create_batch(uow, &self.candidates, import_no, self.replaces_cancelled)?;
        for (document, item) in self.file.documents.iter().zip(&batch.items) {
            let created = item.id.filter(|_| item.outcome == ItemOutcome::Created);
            let invoice = created.and_then(|id| uow.invoices.find_by_id(id));
            let parts = document
                .ubl_parts
                .as_ref()
                .filter(|parts| !parts.is_empty());
            let stored = invoice.zip(parts).map(|(invoice, parts)| {
                let parts = parts.clone().with_customer(invoice.customer.id);
                (invoice.id, parts)
            });
            uow.writes.ubl_parts.extend(stored);
        }
        let results = batch
            .items
            .into_iter()
            .zip(faults)
            .map(|(item, faults)| DocumentResult { item, faults });
        let import = Import::new(&self.file, Some(batch.batch_no), results);
        uow.writes.imports.push(StoredImport {
            errors_csv: error_file::contents(&self.file, &import),
            import: import.clone(),
        });
        Ok(FileImport {
            import,
            is_new: true,
        })
    }
}

impl TaxpayerCommand for ImportPiece {
    type Output = Import;

    const NAME: &'static str = "import-piece";
    const IS_LARGE: bool = true;

    fn size(&self) -> CommandSize {
        self.invoices.size()
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        self.invoices.add_wanted_id_counts(wanted);
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        wanted.add_import(&self.so_far.import_no);
        self.invoices.add_all_draft_reads(wanted, context);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Import, Refusal> {
        let stored = find_newest_import(uow, &self.so_far.import_no);
        // The account may have cancelled the import since the worker read the piece.
        if let Some(stopped) = stored.filter(|import| import.state() == ImportState::Stopped) {
            return Ok(stopped.clone());
        }
        let ImportInvoices {
            candidates,
            file,
            replaces_cancelled,
        } = &self.invoices;
        let batch_no = self.so_far.batch_no.clone().unwrap_or_default();
        let results = create_items(uow, &batch_no, candidates, *replaces_cancelled)?;
        let piece = Import::new(file, Some(batch_no), results);
        let errors_csv = error_file::rows(file, &piece);
        let mut import = self.so_far.clone();
        import.add_piece(piece);
        if import.state() == ImportState::Done {
            emit_batch_completed(uow, &CompletedBatch::from(&import));
        }
        uow.writes.imported_pieces.push(ImportedPiece {
            number: self.number,
            import: import.clone(),
            errors_header: error_file::header(file),
            errors_csv,
        });
        Ok(import)
    }
}

impl TaxpayerCommand for PreviewImport {
    type Output = (Import, PlannedInvoices);

    const NAME: &'static str = "preview-import";
    const IS_LARGE: bool = true;

    fn size(&self) -> CommandSize {
        self.invoices.size()
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        self.invoices.add_all_draft_reads(wanted, context);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(Import, PlannedInvoices), Refusal> {
        uow.taxpayer()?
            .check_may_create_invoices(uow.verification)?;
        let mut planned = self.planned.clone();
        let results = self.invoices.candidates.iter().map(|candidate| {
            planned.plan_candidate(uow, candidate, self.invoices.replaces_cancelled)
        });
        let import = Import::new(&self.invoices.file, None, results);
        Ok((import, planned))
    }
}

/// The invoices that an import would create so far. An invoice later in the file may be a duplicate of one of them.
#[derive(Debug, Clone, Default)]
pub struct PlannedInvoices {
    /// The number of each invoice, by the key of its IRN.
    numbers_by_irn: HashMap<String, String>,
    by_number: HashMap<String, PlannedInvoice>,
}

/// An invoice that an import would create.
#[derive(Debug, Clone)]
struct PlannedInvoice {
    irn: Irn,
    /// The digest of the invoice's contents.
    digest: String,
}

impl PlannedInvoice {
    /// Returns the result for a draft that has the number or the IRN of this invoice.
    fn duplicate_item(&self, draft: &Draft) -> BatchItem {
        let duplicate = if self.digest == draft.digest() {
            Duplicate::Identical
        } else {
            Duplicate::Different
        };
        BatchItem::for_irn(&self.irn, Some(duplicate))
    }
}

impl PlannedInvoices {
    fn plan_candidate(
        &mut self,
        uow: &UnitOfWork,
        candidate: &BatchCandidate,
        replaces_cancelled: bool,
    ) -> DocumentResult {
        let invoice_no = candidate.invoice_no.clone();
        let planned = match &candidate.draft {
            Ok(draft) => self
                .plan_draft(uow, draft, replaces_cancelled)
                .map_err(item_faults),
            Err(faults) => Err(faults.clone()),
        };
        match planned {
            Ok(item) => DocumentResult {
                item: BatchItem { invoice_no, ..item },
                faults: None,
            },
            Err(faults) => DocumentResult {
                item: BatchItem::from_faults(invoice_no, &faults),
                faults: Some(faults),
            },
        }
    }

    /// Returns the result that the create command would have for this draft. A draft that it would create becomes one
    /// of the planned invoices.
    fn plan_draft(
        &mut self,
        uow: &UnitOfWork,
        draft: &Draft,
        replaces_cancelled: bool,
    ) -> Result<BatchItem, Refusal> {
        let irn = determine_irn(draft, uow.taxpayer()?)?;
        let replaceable = find_replaceable_invoice(uow, draft)?.filter(|_| replaces_cancelled);
        if replaceable.is_none()
            && let Some(existing) = find_existing_invoice(uow, draft, &irn)
        {
            if draft.irn.is_none() && existing.invoice_no != draft.invoice_no {
                return Err(irn_taken_refusal(&irn, &existing.invoice_no));
            }
            // An earlier document of the file replaces the existing invoice.
            if let Some(planned) = self.by_number.get(&existing.invoice_no) {
                return Ok(planned.duplicate_item(draft));
            }
            let duplicate = compare_with_existing(draft, existing);
            return Ok(BatchItem::for_invoice(existing, Some(duplicate)));
        }
        check_invoice_number(uow.taxpayer()?, draft, &irn)?;
        if let Some(planned) = self.by_number.get(&draft.invoice_no) {
            return Ok(planned.duplicate_item(draft));
        }
        if let Some(number) = self.numbers_by_irn.get(&irn.key()) {
            let planned = self.by_number.get(number);
            return match planned.filter(|_| draft.irn.is_some()) {
                Some(planned) => Ok(planned.duplicate_item(draft)),
                None => Err(irn_taken_refusal(&irn, number)),
            };
        }
        let created =
            replaceable.map_or_else(|| BatchItem::for_irn(&irn, None), BatchItem::for_replaced);
        let number = draft.invoice_no.clone();
        let digest = draft.digest();
        self.numbers_by_irn.insert(irn.key(), number.clone());
        self.by_number
            .insert(number, PlannedInvoice { irn, digest });
        Ok(created)
    }
}

impl TaxpayerCommand for SetImportProfile {
    type Output = ImportProfile;

    const NAME: &'static str = "set-import-profile";

    fn execute(&self, uow: &mut UnitOfWork) -> Result<ImportProfile, Refusal> {
        uow.taxpayer()?;
        replace_profile(uow, self.0.clone());
        Ok(self.0.clone())
    }
}

impl TaxpayerCommand for AddImportAnswers {
    type Output = ();

    const NAME: &'static str = "add-import-answers";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_import_profile();
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<(), Refusal> {
        uow.taxpayer()?;
        // Another command of the same batch may have changed the profile.
        let newest = uow.writes.import_profile.as_ref();
        let mut profile = newest.unwrap_or(&uow.import_profile).clone();
        self.0.add_to(&mut profile);
        let size = serde_json::to_string(&profile).map_or(usize::MAX, |text| text.len());
        if size > PROFILE_BYTES_MAX {
            let message = format!(
                "These answers make the import profile larger than {PROFILE_BYTES_MAX} bytes."
            );
            return Err(Fault::new("", "max", message).into());
        }
        replace_profile(uow, profile);
        Ok(())
    }
}

/// Replaces the import profile, and records this in the audit trail.
fn replace_profile(uow: &mut UnitOfWork, profile: ImportProfile) {
    let entry = audit_entry(uow, uow.acting.actor, AuditAction::UpdateImportProfile);
    uow.writes.audit.push(entry);
    uow.writes.import_profile = Some(profile);
}
