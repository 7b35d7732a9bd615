//! Cancels the import of a large file: the documents that are not imported yet are left out. The actor of the taxpayer
//! imports the pieces, too, so a piece is imported either before the cancellation or not at all. The event at the end of
//! the import is written in the transaction that stores the cancellation.

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::commands::batch::{CompletedBatch, emit_batch_completed};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::import::record::{Import, ImportState};
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::kernel::refusal::Refusal;

/// Cancels the import with this number. Changes nothing if the import was stopped before.
pub struct CancelImport(pub String);

/// Returns the record of an import as the commands of this batch have left it.
pub(super) fn find_newest_import<'a>(uow: &'a UnitOfWork, import_no: &str) -> Option<&'a Import> {
    let writes = &uow.writes;
    // After a cancellation no piece is imported any more.
    let cancelled = writes.cancelled_imports.iter();
    let pieces = writes.imported_pieces.iter().rev();
    cancelled
        .chain(pieces.map(|piece| &piece.import))
        .chain(&uow.imports)
        .find(|import| import.import_no == import_no)
}

impl TaxpayerCommand for CancelImport {
    type Output = Import;

    const NAME: &'static str = "cancel-import";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_import(&self.0);
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Import, Refusal> {
        uow.taxpayer()?;
        let found = find_newest_import(uow, &self.0);
        let import = found.ok_or(Refusal::ImportNotFound)?.clone();
        match import.state() {
            ImportState::Running => {}
            ImportState::Stopped => return Ok(import),
            ImportState::Preview | ImportState::Done => return Err(Refusal::ImportEnded),
        }
        let import = import.cancel();
        uow.writes.cancelled_imports.push(import.clone());
        emit_batch_completed(uow, &CompletedBatch::from(&import));
        let entry = audit_entry(uow, uow.acting.actor, AuditAction::CancelImport);
        uow.writes.audit.push(AuditEntry {
            subject: self.0.clone(),
            ..entry
        });
        Ok(import)
    }
}
