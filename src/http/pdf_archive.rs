//! The PDFs of the invoices of a list in one ZIP file. The file is sent while the PDFs are made, so that one PDF at a
//! time is in memory. Each PDF waits for its turn in the same queue as a PDF that is requested alone. If a PDF cannot
//! be made, the file continues, and `errors.txt` has a line about the invoice.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{self, Write};
use std::iter;
use std::rc::Rc;

use actix_web::HttpResponse;
use actix_web::web;
use jiff::civil;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, PreparedZipFile, ZipWriter};

use crate::domain::invoice::Invoice;
use crate::domain::party::Taxpayer;
use crate::http::exports::{InvoiceReader, LoadedParties, PartSource, stream_parts};
use crate::http::extract::reading_right::ReadingRight;
use crate::http::invoice_files::{self, InvoiceFile};
use crate::http::limits::AnswerHolder;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::{FileAnswer, streamed_download};
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::accounts::taxpayers;
use crate::store::invoices::list::InvoiceList;

/// The maximum number of invoices in a file. Their PDFs take some seconds, and a person can still look through them.
const INVOICES_MAX: u64 = 500;
/// The file in the archive that names the invoices without a PDF.
const ERRORS_FILE: &str = "errors.txt";

/// Makes the ZIP file of a whole list. `origin` is the address that the links on the PDFs begin with. Fails if the list
/// has no invoice or more than `INVOICES_MAX`, or if its start cannot be read. A later failure to read it, or the loss
/// of the right to read, aborts the download.
pub(crate) async fn pdf_archive(
    state: &web::Data<ApiState>,
    holder: AnswerHolder,
    right: ReadingRight,
    list: InvoiceList,
    origin: Option<String>,
) -> Result<HttpResponse, ApiError> {
    let supplier = taxpayers::find_by_id(state.store.reader(), list.taxpayer).await?;
    let supplier = supplier.ok_or_else(ApiError::taxpayer_not_found)?;
    let parties = LoadedParties::None;
    let reader = InvoiceReader::new(state.clone(), holder, right, list, parties).await?;
    check_count(reader.total())?;
    let unsent = UnsentBytes::default();
    let source = ArchiveSource {
        state: state.clone(),
        reader,
        supplier,
        origin,
        archive: Some(ZipWriter::new_stream(unsent.clone())),
        unsent,
        options: file_options(state.settings.utc_offset.to_datetime(state.now())),
        used_names: HashSet::new(),
        errors: Vec::new(),
    };
    let name = format!("invoices-{}.zip", state.today());
    let parts = Box::pin(stream_parts(source)).await?;
    Ok(streamed_download("application/zip", &name, parts))
}

/// Refuses a list of this many invoices if it is empty or too long.
fn check_count(count: u64) -> Result<(), ApiError> {
    let message = match count {
        0 => "There is no invoice to download.".to_owned(),
        1..=INVOICES_MAX => return Ok(()),
        _ => format!(
            "These are {count} invoices, and a download has the PDFs of at most {INVOICES_MAX}: narrow the list with \
             filters, for example to a month, and download it in parts."
        ),
    };
    Err(ApiError::new(ErrorCode::ValidationFailed, message))
}

/// Returns the options of a file in the archive that was made at this local time.
fn file_options(now: civil::DateTime) -> SimpleFileOptions {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    to_zip_time(now).map_or(options, |time| options.last_modified_time(time))
}

/// Returns a local time as a ZIP file stores it; `None` before 1980 and after 2107.
fn to_zip_time(time: civil::DateTime) -> Option<zip::DateTime> {
    let zip_time = zip::DateTime::from_date_and_time(
        time.year().try_into().ok()?,
        time.month().try_into().ok()?,
        time.day().try_into().ok()?,
        time.hour().try_into().ok()?,
        time.minute().try_into().ok()?,
        time.second().try_into().ok()?,
    );
    zip_time.ok()
}

/// The bytes of the archive that were not sent yet. The archive writes them, and the source takes them out.
#[derive(Clone, Default)]
struct UnsentBytes(Rc<RefCell<Vec<u8>>>);

impl UnsentBytes {
    fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl Write for UnsentBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct ArchiveSource {
    state: web::Data<ApiState>,
    reader: InvoiceReader,
    supplier: Taxpayer,
    origin: Option<String>,
    /// The archive; `None` once it is complete.
    archive: Option<ZipWriter<StreamWriter<UnsentBytes>>>,
    unsent: UnsentBytes,
    options: SimpleFileOptions,
    /// The names of the files in the archive, in lower case.
    used_names: HashSet<String>,
    /// The lines of `ERRORS_FILE`.
    errors: Vec<String>,
}

impl PartSource for ArchiveSource {
    /// Returns the next file in the archive, or the end of the archive; empty after the end.
    async fn next_part(&mut self) -> Result<Vec<u8>, ApiError> {
        while self.archive.is_some() {
            match self.reader.next().await? {
                Some(invoice) => self.add_invoice(invoice).await?,
                None => self.finish().await?,
            }
            let part = self.unsent.take();
            if !part.is_empty() {
                return Ok(part);
            }
        }
        Ok(Vec::new())
    }
}

impl ArchiveSource {
    /// Adds the PDF of an invoice or, if it cannot be made, the reason.
    async fn add_invoice(&mut self, invoice: Invoice) -> Result<(), ApiError> {
        self.reader.require_right().await?;
        let number = invoice.invoice_no.clone();
        // In a box, because the future is large.
        match Box::pin(self.make_pdf(invoice)).await {
            Ok(pdf) => self.add_file(&pdf.name, pdf.bytes).await,
            Err(error) => {
                if let Some(cause) = error.cause.as_deref() {
                    tracing::error!(cause, %number, "failed to make a PDF for a ZIP file");
                }
                self.errors.push(error_line(&number, &error.message));
                Ok(())
            }
        }
    }

    async fn make_pdf(&self, invoice: Invoice) -> Result<FileAnswer, ApiError> {
        let supplier = self.supplier.clone();
        let stored = StoredInvoice::load(&self.state.store, supplier, invoice).await?;
        let origin = self.origin.as_deref();
        invoice_files::make_file(&self.state, origin, &stored, InvoiceFile::Pdf).await
    }

    async fn add_file(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), ApiError> {
        let name = unused_name(&mut self.used_names, name);
        let options = self.options;
        let packed = self
            .state
            .workbooks
            .compute_in_arrival_order(move || PreparedZipFile::from_data(name, options, &bytes));
        let file = packed.await?.map_err(ApiError::internal)?;
        if let Some(archive) = &mut self.archive {
            archive
                .add_prepared_file(file)
                .map_err(ApiError::internal)?;
        }
        Ok(())
    }

    /// Adds the file of errors, if there are any, and the directory with which the archive ends.
    async fn finish(&mut self) -> Result<(), ApiError> {
        if !self.errors.is_empty() {
            let text = self.errors.concat();
            self.add_file(ERRORS_FILE, text.into_bytes()).await?;
        }
        if let Some(archive) = self.archive.take() {
            archive.finish().map_err(ApiError::internal)?;
        }
        Ok(())
    }
}

/// Returns the line about an invoice whose PDF could not be made.
fn error_line(number: &str, reason: &str) -> String {
    let reason: Vec<_> = reason.lines().collect();
    format!("{number}: {}\n", reason.join(" "))
}

/// Returns the name for a file in the archive: with a number if another file has the name already. The names of two
/// files differ in more than the case of letters, because many systems ignore the case.
fn unused_name(used: &mut HashSet<String>, name: &str) -> String {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let numbered = (2_u32..).map(|number| format!("{stem}-{number}.{extension}"));
    let mut names = iter::once(name.to_owned()).chain(numbered);
    let unused = names.find(|name| used.insert(name.to_ascii_lowercase()));
    unused.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{Cursor, Read as _};

    use actix_web::body::to_bytes;
    use zip::ZipArchive;

    use super::*;
    use crate::actors::taxpayer::commands::{ChangeProfile, CreateInvoice};
    use crate::domain::correction::testing::draft;
    use crate::domain::invoice::Line;
    use crate::domain::kernel::audit::Actor;
    use crate::domain::party::ProfileChange;
    use crate::http::testing::{TAXPAYER, start_app};
    use crate::store::invoices::list::{InvoiceFilter, InvoiceSort};

    #[actix_web::test]
    async fn the_right_to_read_is_checked_before_each_pdf() {
        let app = start_app().await;
        let change = ProfileChange {
            state: Some("NG-LA".into()),
            country: Some("NG".into()),
            ..ProfileChange::default()
        };
        let by = Actor::CommandLine;
        let changed = app
            .state
            .taxpayers
            .send(TAXPAYER, ChangeProfile { change, by });
        changed.await.unwrap();
        for number in ["INV1", "INV2"] {
            let mut draft = draft(vec![Line::sample()]);
            number.clone_into(&mut draft.invoice_no);
            let created = app.state.taxpayers.send(TAXPAYER, CreateInvoice(draft));
            created.await.unwrap();
        }
        // The right is checked once for the page of the list, and once for each of the two PDFs.
        for (granted, is_whole) in [(3_u32, true), (2, false), (1, false)] {
            let remaining = Rc::new(Cell::new(granted));
            let right = ReadingRight::new(move || {
                let before = remaining.get();
                remaining.set(before.saturating_sub(1));
                Box::pin(async move { Ok(before > 0) })
            });
            let list = InvoiceList {
                taxpayer: TAXPAYER,
                filters: InvoiceFilter::default(),
                sort: InvoiceSort::BY_INVOICE_DATE,
            };
            let holder = AnswerHolder::for_taxpayer(TAXPAYER, None);
            let answer = Box::pin(pdf_archive(&app.state, holder, right, list, None)).await;
            let is_sent = match answer {
                Ok(answer) => to_bytes(answer.into_body()).await.is_ok(),
                Err(_) => false,
            };
            assert_eq!(is_sent, is_whole, "{granted}");
        }
    }

    #[test]
    fn files_of_one_name_get_numbers() {
        let mut used = HashSet::new();
        for (name, expected) in [
            ("A_1.pdf", "A_1.pdf"),
            ("A_2.pdf", "A_2.pdf"),
            ("a_1.pdf", "a_1-2.pdf"),
            ("A_1.pdf", "A_1-3.pdf"),
            ("A_1-2.pdf", "A_1-2-2.pdf"),
            ("errors.txt", "errors.txt"),
        ] {
            assert_eq!(unused_name(&mut used, name), expected, "{name}");
        }
    }

    #[test]
    fn a_list_that_is_empty_or_too_long_is_refused() {
        for (count, expected) in [
            (0, Some("There is no invoice")),
            (1, None),
            (500, None),
            (501, Some("These are 501 invoices")),
        ] {
            let refused = check_count(count).err().map(|error| error.message);
            let begins = expected.map(|text| refused.as_ref().map(|told| told.starts_with(text)));
            assert_eq!(begins.flatten(), expected.map(|_| true), "{count}");
            assert_eq!(refused.is_some(), expected.is_some(), "{count}");
        }
    }

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(
            error_line("INV1", "It is odd.\r\nVery."),
            "INV1: It is odd. Very.\n"
        );
    }

    #[test]
    fn a_file_that_was_taken_out_in_parts_is_a_whole_archive() {
        let unsent = UnsentBytes::default();
        let mut archive = ZipWriter::new_stream(unsent.clone());
        let options = file_options(civil::datetime(2026, 1, 15, 9, 30, 0, 0));
        let files = [
            ("a.pdf", b"%PDF-1.7 a".as_slice()),
            ("b.pdf", b"%PDF-1.7 b"),
        ];
        let mut sent = Vec::new();
        for (name, bytes) in files {
            let file = PreparedZipFile::from_data(name, options, bytes).unwrap();
            archive.add_prepared_file(file).unwrap();
            let part = unsent.take();
            assert!(!part.is_empty(), "{name}");
            sent.extend(part);
        }
        archive.finish().unwrap();
        sent.extend(unsent.take());
        let mut opened = ZipArchive::new(Cursor::new(sent)).unwrap();
        assert_eq!(opened.len(), files.len());
        for (name, bytes) in files {
            let mut file = opened.by_name(name).unwrap();
            let time = file.last_modified().map(|time| (time.year(), time.hour()));
            assert_eq!(time, Some((2026, 9)));
            let mut read = Vec::new();
            file.read_to_end(&mut read).unwrap();
            assert_eq!(read, bytes, "{name}");
        }
    }
}
