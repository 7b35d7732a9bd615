//! Reads a file. A small file becomes one command. A large file is cut into pieces.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;
use sha2::{Digest, Sha256};

use crate::actors::taxpayer::commands::ImportInvoices;
use crate::actors::turn_gate::BudgetPortion;
use crate::domain::import::pieces::FilePieces;
use crate::domain::import::profile::ImportProfile;
use crate::domain::import::record::{Import, ImportState, import_number};
use crate::domain::import::source::{
    FileFormat, ImportForm, SourceFile, TOO_MANY_RULE, file_fault,
};
use crate::domain::import::thousands::thousands_warning;
use crate::domain::import::ubl_parties::ImportAccount;
use crate::domain::import::{csv_table, json_documents, table_documents, ubl_document, xlsx_table};
use crate::domain::invoice::batch::INVOICES_MAX;
use crate::domain::kernel::digest::document_digest;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reference::catalog::Catalog;
use crate::http::extract::body_text::BodyText;
use crate::http::forms::import::{self, ImportContext};
use crate::http::import_files::large::{LargeFile, LargeText};
use crate::http::import_files::request::FileRequest;
use crate::http::limits::estimate_value_bytes;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::invoices::import_pieces::PieceParseOptions;
use crate::store::invoices::{import_profiles, imports};

/// Estimates of the memory that reading takes, in bytes: for an XML element, for a CSV cell, and for a byte of unpacked
/// XLSX.
const ELEMENT_BYTES: usize = 800;
const CELL_BYTES: usize = 160;
const XLSX_BYTES_PER_BYTE: usize = 4;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The result of reading a file.
pub(crate) enum PreparedImport {
    /// A file for one command. `turn` counts this bulk request as in progress: keep it until the command is done.
    Small {
        command: ImportInvoices,
        turn: BudgetPortion,
    },
    /// A file that is too large for one command.
    Large(Box<LargeFile>),
    /// The file was imported before.
    Imported(Import),
}

/// A file for one command, or the pieces of a large file.
enum SizedFile {
    Small(BodyText),
    Large(LargeText),
}

/// Reads a file with the import profile of the taxpayer. Fails if the taxpayer may not create invoices.
pub(crate) async fn read(
    state: &ApiState,
    id: TaxpayerId,
    request: &FileRequest,
    body: BodyText,
) -> Result<PreparedImport, ApiError> {
    let file_request = request.clone();
    let sent_file = body
        .process_in_turn(state, move |body| find_file(&file_request, body))
        .await??;
    let SentFile {
        file,
        format,
        digest,
    } = sent_file;
    let profile = import_profiles::owned_by(state.store.reader(), id).await?;
    let import_no = import_number(&file_digest(&digest, format, request, &profile));
    if !request.is_preview
        && let Some(import) = imports::find_owned_by_number(&state.store, id, &import_no).await?
        && import.state() != ImportState::Stopped
    {
        return Ok(PreparedImport::Imported(import));
    }
    let taxpayer = taxpayers::find_by_id(state.store.reader(), id).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    taxpayer.check_may_create_invoices(state.settings.verification)?;
    let turn = file.wait_for_bulk_turn(state).await?;
    refuse_table_for_full_form(format, request.form)?;
    let file = match measure_file(state, format, &profile, file).await? {
        SizedFile::Small(file) => file,
        SizedFile::Large(text) => {
            return Ok(PreparedImport::Large(Box::new(LargeFile {
                text,
                import_no,
                form: request.form,
                parse_options: PieceParseOptions {
                    format,
                    profile,
                    replaces_cancelled: request.replaces_cancelled,
                },
                taxpayer,
                _turn: turn,
            })));
        }
    };
    let task = ImportTask {
        format,
        form: request.form,
        replaces_cancelled: request.replaces_cancelled,
        profile,
        import_no,
        account: ImportAccount::from(&taxpayer),
        today: state.latest_day(),
        catalog: state.catalog.get(),
    };
    let command = task.read(state, file).await?;
    Ok(PreparedImport::Small { command, turn })
}

/// The file of a body, with its digest.
struct SentFile {
    file: BodyText,
    format: FileFormat,
    digest: String,
}

fn find_file(request: &FileRequest, mut body: BodyText) -> Result<SentFile, ApiError> {
    let (format, bytes) = request.find_file(&body.bytes)?;
    body.bytes.truncate(bytes.end);
    body.bytes.drain(..bytes.start);
    let digest = hex::encode(Sha256::digest(&body.bytes));
    if body.bytes.starts_with(BYTE_ORDER_MARK) {
        body.bytes.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(SentFile {
        digest,
        file: body,
        format,
    })
}

/// Refuses a table (CSV or XLSX) for the full form, because tables have the fields of the standard form only.
fn refuse_table_for_full_form(format: FileFormat, form: ImportForm) -> Result<(), Fault> {
    let is_table = matches!(format, FileFormat::Csv | FileFormat::Xlsx);
    if is_table && form == ImportForm::Full {
        let message = "A table has the columns of Create Standard: import it with form=standard.";
        return Err(file_fault("form", message));
    }
    Ok(())
}

/// Decides whether a file is large, and finds the places at which a large file is cut. A small file that cannot be cut
/// is passed on, so that the reader of its format reports the fault.
async fn measure_file(
    state: &ApiState,
    format: FileFormat,
    profile: &ImportProfile,
    mut file: BodyText,
) -> Result<SizedFile, ApiError> {
    let bytes_max = state.settings.bulk_bytes_max;
    let memory = match format {
        FileFormat::Ubl => return Ok(SizedFile::Small(file)),
        FileFormat::Xlsx => {
            file.unpacked_bytes = unpacked_bytes(&file.bytes)?;
            let bytes = estimate_memory_bytes(format, &file.bytes)?;
            Some(file.reserve_value_memory(state, bytes).await?)
        }
        FileFormat::Csv | FileFormat::Ndjson | FileFormat::Json => None,
    };
    let names = profile.columns.clone();
    let sized = file.process_in_turn(state, move |file| {
        let sized = cut_if_large(format, &names, bytes_max, file);
        drop(memory);
        sized
    });
    Ok(sized.await??)
}

/// Returns a large file as text (a workbook as CSV) with the places at which it is cut; any other file unchanged.
fn cut_if_large(
    format: FileFormat,
    names: &BTreeMap<String, String>,
    bytes_max: usize,
    mut file: BodyText,
) -> Result<SizedFile, Fault> {
    let is_long = file.bytes.len() > bytes_max;
    let mut warnings = Vec::new();
    let table = match format {
        FileFormat::Xlsx => {
            let book = xlsx_table::read(&file.bytes)?;
            warnings = book.warnings;
            Some(csv_table::to_csv(&book.table))
        }
        _ => None,
    };
    let text = match &table {
        Some(table) => Ok(table.as_str()),
        None => std::str::from_utf8(&file.bytes),
    };
    let text = text.map_err(|_| file_fault("encoding", "The file is not UTF-8."));
    let cuts = text.and_then(|text| FilePieces::find(format, text, names).map(|cuts| (cuts, text)));
    let cuts = match cuts {
        Ok((cuts, text)) if is_long || cuts.document_count() > INVOICES_MAX => {
            cuts.check(format, text, names)?;
            if cuts.document_count() == 0 {
                return Err(empty_file_fault());
            }
            cuts
        }
        Err(fault) if is_long || fault.rule() == TOO_MANY_RULE => return Err(fault),
        Ok(_) | Err(_) => return Ok(SizedFile::Small(file)),
    };
    let text = table.unwrap_or_else(|| {
        let bytes = std::mem::take(&mut file.bytes);
        String::from_utf8(bytes).unwrap_or_default()
    });
    if text.contains('\0') {
        return Err(file_fault("encoding", "The file has a NUL character."));
    }
    if format == FileFormat::Csv {
        warnings.extend(thousands_warning(text.as_bytes(), names));
    }
    Ok(SizedFile::Large(LargeText {
        text,
        cuts,
        warnings,
        _body: file,
    }))
}

/// Reads a small file. The fields are everything besides the file that affects the result.
struct ImportTask {
    format: FileFormat,
    form: ImportForm,
    replaces_cancelled: bool,
    profile: ImportProfile,
    import_no: String,
    account: ImportAccount,
    today: Date,
    catalog: Arc<Catalog>,
}

impl ImportTask {
    /// Reads the file on another thread if it is large.
    async fn read(self, state: &ApiState, file: BodyText) -> Result<ImportInvoices, ApiError> {
        let bytes = estimate_memory_bytes(self.format, &file.bytes)?;
        let command = file.read_file(state, bytes, move |file| self.into_command(file));
        Ok(command.await??)
    }

    fn into_command(self, file: &[u8]) -> Result<ImportInvoices, Fault> {
        let source = self.read_source(file)?;
        if source.documents.is_empty() {
            return Err(empty_file_fault());
        }
        let context = ImportContext {
            form: self.form,
            profile: &self.profile,
            account: &self.account,
            today: self.today,
            catalog: &self.catalog,
        };
        let (candidates, file) = import::read(source, self.import_no, &context);
        Ok(ImportInvoices {
            candidates,
            file,
            replaces_cancelled: self.replaces_cancelled,
        })
    }

    /// Reads the documents of the file.
    fn read_source(&self, file: &[u8]) -> Result<SourceFile, Fault> {
        let ImportProfile { columns, units, .. } = &self.profile;
        match self.format {
            FileFormat::Ubl => Ok(ubl_document::read(file, self.form, units, &self.catalog)),
            FileFormat::Csv => {
                let mut source = table_documents::read(csv_table::read(file)?, columns)?;
                let warning = thousands_warning(file, columns);
                source.warnings.splice(0..0, warning);
                Ok(source)
            }
            FileFormat::Xlsx => {
                let book = xlsx_table::read(file)?;
                let mut source = table_documents::read(book.table, columns)?;
                source.warnings.splice(0..0, book.warnings);
                Ok(source)
            }
            FileFormat::Ndjson => json_documents::read_lines(file, 0),
            FileFormat::Json => json_documents::read(file),
        }
    }
}

fn empty_file_fault() -> Fault {
    file_fault("min", "The file has no invoice.")
}

/// Returns the size of a workbook's parts, as the file states it.
fn unpacked_bytes(workbook: &[u8]) -> Result<usize, Fault> {
    let unpacked = usize::try_from(xlsx_table::unpacked_bytes(workbook)?);
    Ok(unpacked.unwrap_or(usize::MAX))
}

/// Estimates the memory that reading a file takes, in bytes. It may be too high, but never far too low.
fn estimate_memory_bytes(format: FileFormat, file: &[u8]) -> Result<usize, Fault> {
    let count = |marks: &[u8]| file.iter().filter(|byte| marks.contains(byte)).count();
    Ok(match format {
        FileFormat::Json | FileFormat::Ndjson => estimate_value_bytes(file),
        // A line may also end in a carriage return alone.
        FileFormat::Csv => 2 * file.len() + CELL_BYTES * count(b",;\t\r\n"),
        FileFormat::Ubl => 2 * file.len() + ELEMENT_BYTES * count(b"<"),
        FileFormat::Xlsx => XLSX_BYTES_PER_BYTE.saturating_mul(unpacked_bytes(file)?),
    })
}

/// Returns the digest of everything that decides the outcome of an import: the file, its format, the options of the
/// request and the profile.
fn file_digest(
    file: &str,
    format: FileFormat,
    request: &FileRequest,
    profile: &ImportProfile,
) -> String {
    let form = request.form;
    let profile = document_digest(&serde_json::to_value(profile).unwrap_or_default());
    let option = if request.replaces_cancelled {
        " replace_cancelled"
    } else {
        ""
    };
    let text = format!("{format} {form} {profile} {file}{option}");
    hex::encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_a_table_takes_memory_whatever_ends_its_line() {
        for end in ["\n", "\r", "\r\n"] {
            let text = format!("a{end}").repeat(100);
            let bytes = estimate_memory_bytes(FileFormat::Csv, text.as_bytes()).unwrap();
            assert!(bytes >= 100 * CELL_BYTES, "{end:?}: {bytes}");
        }
    }
}
