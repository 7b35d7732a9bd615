//! Reads files of invoices for the API and the dashboard. Each document of a file becomes the body of a create request
//! and passes the same form. The same file is imported once.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use actix_web::{FromRequest, HttpRequest};
use jiff::civil::Date;
use sha2::{Digest, Sha256};

use crate::actors::taxpayer::commands::ImportInvoices;
use crate::actors::turn_gate::Portion;
use crate::domain::import::profile::ImportProfile;
use crate::domain::import::record::{Import, import_number};
use crate::domain::import::source::{FileFormat, ImportForm, SourceFile, file_fault};
use crate::domain::import::{csv_table, json_documents, table_documents, ubl_document, xlsx_table};
use crate::domain::kernel::digest::document_digest;
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::domain::reference::catalog::Catalog;
use crate::http::extract::body::BodyText;
use crate::http::extract::role::NeedsRole;
use crate::http::forms::import::{self, ImportContext};
use crate::http::forms::query::Query;
use crate::http::limits::counted_bytes;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::invoices::{import_profiles, imports};

const XML_TYPE: &str = "application/xml";
pub(crate) const CSV_TYPE: &str = "text/csv";
const XLSX_TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const NDJSON_TYPE: &str = "application/x-ndjson";
/// The media types that are read beside JSON.
pub(crate) const FILE_TYPES: &[&str] = &[XML_TYPE, CSV_TYPE, XLSX_TYPE, NDJSON_TYPE];

/// The memory of an element of XML, of a cell of CSV, and of a byte of unpacked XLSX, with what is made of it, in bytes.
const ELEMENT_BYTES: usize = 800;
const CELL_BYTES: usize = 160;
const XLSX_BYTES_PER_BYTE: usize = 4;

/// What a request wants of its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileRequest {
    format: FileFormat,
    form: ImportForm,
    pub(crate) is_preview: bool,
}

/// A file that was read.
pub(crate) enum ReadFile {
    /// The command that imports the file, and the turn of this bulk request, which lasts until the command is done.
    New {
        command: ImportInvoices,
        turn: Portion,
    },
    /// The file was imported before.
    Imported(Import),
}

impl NeedsRole for FileRequest {}

impl FromRequest for FileRequest {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::new(request))
    }
}

impl FileRequest {
    /// Reads the format from the content type, the form and whether it is a preview from the query.
    pub(crate) fn new(request: &HttpRequest) -> Result<Self, ApiError> {
        let query = Query::from_text(request.query_string());
        let form = query.word("form", ImportForm::parse, ImportForm::allowed)?;
        Ok(Self {
            format: file_format(request.headers())?,
            form: form.unwrap_or(ImportForm::Standard),
            is_preview: query.flag("preview")?,
        })
    }
}

/// Reads a file with the profile of its taxpayer, which must be allowed to create invoices.
pub(crate) async fn read(
    state: &ApiState,
    id: TaxpayerId,
    wanted: FileRequest,
    file: BodyText,
) -> Result<ReadFile, ApiError> {
    let profile = import_profiles::owned_by(&state.store, id).await?;
    let import_no = import_number(&file_digest(&file.bytes, wanted, &profile));
    if !wanted.is_preview
        && let Some(import) = imports::owned_by_with_number(&state.store, id, &import_no).await?
    {
        return Ok(ReadFile::Imported(import));
    }
    let taxpayer = taxpayers::with_id(state.store.reader(), id).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    taxpayer.check_may_create_invoices(state.settings.verification)?;
    let turn = file.bulk_turn(state).await?;
    let task = ImportTask {
        format: wanted.format,
        form: wanted.form,
        profile,
        import_no,
        taxpayer,
        today: state.today(),
        catalog: state.catalog.get(),
    };
    let command = task.read(state, file).await?;
    Ok(ReadFile::New { command, turn })
}

/// A file that is to be read, with everything that decides over it.
struct ImportTask {
    format: FileFormat,
    form: ImportForm,
    profile: ImportProfile,
    import_no: String,
    taxpayer: Taxpayer,
    today: Date,
    catalog: Arc<Catalog>,
}

impl ImportTask {
    /// Reads the file on another thread if it is large.
    async fn read(self, state: &ApiState, file: BodyText) -> Result<ImportInvoices, ApiError> {
        let bytes = memory_bytes(self.format, &file.bytes)?;
        let read = file.read_file(state, bytes, move |file| self.command(file));
        Ok(read.await??)
    }

    fn command(self, file: &[u8]) -> Result<ImportInvoices, Fault> {
        let source = read_source(self.format, self.form, &self.profile, file)?;
        if source.documents.is_empty() {
            return Err(file_fault("min", "The file has no invoice."));
        }
        let context = ImportContext {
            form: self.form,
            profile: &self.profile,
            service_id: &self.taxpayer.service_id,
            today: self.today,
            catalog: &self.catalog,
        };
        let (candidates, file) = import::read(source, self.import_no, &context);
        Ok(ImportInvoices { candidates, file })
    }
}

/// Reads the documents of a file. A table has the fields of the standard form only.
fn read_source(
    format: FileFormat,
    form: ImportForm,
    profile: &ImportProfile,
    file: &[u8],
) -> Result<SourceFile, Fault> {
    let is_table = matches!(format, FileFormat::Csv | FileFormat::Xlsx);
    if is_table && form == ImportForm::Full {
        let message = "A table has the columns of Create Standard: import it with form=standard.";
        return Err(file_fault("form", message));
    }
    match format {
        FileFormat::Ubl => Ok(ubl_document::read(file, form, &profile.units)),
        FileFormat::Csv => table_documents::read(csv_table::read(file)?, &profile.columns),
        FileFormat::Xlsx => table_documents::read(xlsx_table::read(file)?, &profile.columns),
        FileFormat::Ndjson => json_documents::read_lines(file),
        FileFormat::Json => json_documents::read(file),
    }
}

/// Estimates the memory that reading a file takes, in bytes. It may be too high, but never far too low.
fn memory_bytes(format: FileFormat, file: &[u8]) -> Result<usize, Fault> {
    let count = |marks: &[u8]| file.iter().filter(|byte| marks.contains(byte)).count();
    Ok(match format {
        FileFormat::Json | FileFormat::Ndjson => counted_bytes(file),
        FileFormat::Csv => 2 * file.len() + CELL_BYTES * count(b",;\t\n"),
        FileFormat::Ubl => 2 * file.len() + ELEMENT_BYTES * count(b"<"),
        FileFormat::Xlsx => {
            let unpacked = usize::try_from(xlsx_table::unpacked_bytes(file)?);
            XLSX_BYTES_PER_BYTE * unpacked.unwrap_or(usize::MAX / XLSX_BYTES_PER_BYTE)
        }
    })
}

/// Returns the format that the content type names. A body without a type is JSON, as everywhere.
fn file_format(headers: &HeaderMap) -> Result<FileFormat, ApiError> {
    let text = headers
        .get(CONTENT_TYPE)
        .map_or("", |value| value.to_str().unwrap_or("?"));
    let mut parts = text.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_utf8 = parts.all(|part| {
        part.split_once('=').is_none_or(|(name, value)| {
            !name.trim().eq_ignore_ascii_case("charset")
                || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        })
    });
    let format = match essence.as_str() {
        XML_TYPE | "text/xml" => Some(FileFormat::Ubl),
        XLSX_TYPE => Some(FileFormat::Xlsx),
        _ if !is_utf8 => None,
        CSV_TYPE => Some(FileFormat::Csv),
        NDJSON_TYPE | "application/jsonl" => Some(FileFormat::Ndjson),
        "" | "application/json" => Some(FileFormat::Json),
        _ => None,
    };
    format.ok_or_else(|| {
        let message = format!(
            "The file must be application/json, {}, in UTF-8, as the raw body",
            FILE_TYPES.join(", ")
        );
        ApiError::new(ErrorCode::UnsupportedMediaType, message)
    })
}

/// Returns the digest of everything that decides what becomes of a file.
fn file_digest(file: &[u8], wanted: FileRequest, profile: &ImportProfile) -> String {
    let FileRequest { format, form, .. } = wanted;
    let profile = document_digest(&serde_json::to_value(profile).unwrap_or_default());
    let mut digest = Sha256::new();
    digest.update(format!("{format} {form} {profile}\n"));
    digest.update(file);
    hex::encode(digest.finalize())
}
