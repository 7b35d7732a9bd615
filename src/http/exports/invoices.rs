//! The file of a list of invoices. CSV and NDJSON are sent while the list is read: an error aborts the download, so
//! that an incomplete file is not taken for a complete one. A workbook is written to a temporary file first and then
//! sent.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::{self, Bytes};
use futures_util::{Stream, stream};
use tokio::task::spawn_blocking;

use crate::domain::invoice::table_columns::export_header;
use crate::domain::invoice::table_rows::InvoiceRows;
use crate::domain::reference::catalog::Catalog;
use crate::http::exports::csv_rows;
use crate::http::exports::format::TableFormat;
use crate::http::exports::invoice_reader::{InvoiceReader, LoadedParties};
use crate::http::exports::part_stream::{PartSource, log_aborted_download, stream_parts};
use crate::http::exports::workbook::{
    ROWS_MAX, WorkbookError, WorkbookWriter, too_many_rows_error,
};
use crate::http::extract::reading_right::ReadingRight;
use crate::http::limits::{ANSWER_PART_BYTES, AnswerHolder, AnswerPermit};
use crate::http::respond::error::ApiError;
use crate::http::respond::file::streamed_download;
use crate::http::state::ApiState;
use crate::http::views::invoice::{IncludedPart, IncludedParts, InvoiceView};
use crate::store::invoices::list::InvoiceList;

/// The number of rows that one task on a blocking thread writes to a workbook.
const ROWS_AT_ONCE: usize = 500;
/// The maximum number of rows of one invoice that are appended before the size of the text is checked.
const TEXT_ROWS_AT_ONCE: usize = 50;

/// Makes the file of a whole list. Fails if the start of the list cannot be read. A later failure, or the loss of the
/// right to read, aborts the download.
pub(crate) async fn invoices_file(
    state: &web::Data<ApiState>,
    holder: AnswerHolder,
    right: ReadingRight,
    list: InvoiceList,
    format: TableFormat,
) -> Result<HttpResponse, ApiError> {
    let parties = match format {
        TableFormat::Csv | TableFormat::Xlsx => LoadedParties::Customers,
        TableFormat::Ndjson => LoadedParties::None,
    };
    let reader = InvoiceReader::new(state.clone(), holder, right, list, parties).await?;
    let name = format!("invoices-{}.{}", state.today(), format.extension());
    let content_type = format.content_type();
    Ok(match format {
        TableFormat::Xlsx => {
            let (file, permit) = write_workbook(reader).await?;
            streamed_download(content_type, &name, stream_file(file, permit))
        }
        TableFormat::Csv => {
            let text = stream_parts(TextSource::csv(reader)?).await?;
            streamed_download(content_type, &name, text)
        }
        TableFormat::Ndjson => {
            let text = stream_parts(TextSource::Ndjson(Box::new(reader))).await?;
            streamed_download(content_type, &name, text)
        }
    })
}

/// The text of a file, made in parts.
enum TextSource {
    Csv(Box<CsvSource>),
    Ndjson(Box<InvoiceReader>),
}

struct CsvSource {
    reader: InvoiceReader,
    catalog: Arc<Catalog>,
    /// The header line; empty once it has been sent.
    header: Vec<u8>,
    /// The rows of the invoice that is being sent, and the index of the first row that has not been sent.
    rows: Option<(InvoiceRows, usize)>,
}

impl TextSource {
    fn csv(reader: InvoiceReader) -> Result<Self, ApiError> {
        let mut header = Vec::new();
        csv_rows::append_header(&mut header, &export_header()).map_err(ApiError::internal)?;
        Ok(Self::Csv(Box::new(CsvSource {
            catalog: reader.state().catalog.get(),
            reader,
            header,
            rows: None,
        })))
    }
}

impl PartSource for TextSource {
    /// Returns the next part of the text, of about `ANSWER_PART_BYTES`; empty at the end. A large invoice may make its
    /// part larger.
    async fn next_part(&mut self) -> Result<Vec<u8>, ApiError> {
        match self {
            Self::Csv(source) => source.next_text().await,
            Self::Ndjson(reader) => next_ndjson_lines(reader).await,
        }
    }
}

impl CsvSource {
    async fn next_text(&mut self) -> Result<Vec<u8>, ApiError> {
        let mut text = std::mem::take(&mut self.header);
        while text.len() < ANSWER_PART_BYTES {
            let (rows, next_row) = match self.rows.take() {
                Some(rows) => rows,
                None => match self.reader.next().await? {
                    Some(invoice) => {
                        let customer = self.reader.customer(&invoice);
                        (InvoiceRows::new(invoice, customer, &self.catalog), 0)
                    }
                    None => break,
                },
            };
            let end = rows.row_count().min(next_row + TEXT_ROWS_AT_ONCE);
            let new_rows = (next_row..end).map(|index| rows.row(index));
            csv_rows::append_rows(&mut text, new_rows).map_err(ApiError::internal)?;
            if end < rows.row_count() {
                self.rows = Some((rows, end));
            }
        }
        Ok(text)
    }
}

async fn next_ndjson_lines(reader: &mut InvoiceReader) -> Result<Vec<u8>, ApiError> {
    let included = IncludedParts::only(IncludedPart::Lines);
    let mut text = Vec::new();
    while text.len() < ANSWER_PART_BYTES {
        let Some(invoice) = reader.next().await? else {
            break;
        };
        let view = InvoiceView::new(&invoice, &included, None);
        serde_json::to_writer(&mut text, &view).map_err(ApiError::internal)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Writes the list to a temporary file. Returns the file, and the permit for the memory of a page of the list.
async fn write_workbook(mut reader: InvoiceReader) -> Result<(File, AnswerPermit), ApiError> {
    if reader.total() > u64::from(ROWS_MAX) {
        return Err(too_many_rows_error());
    }
    let state = reader.state().clone();
    let catalog = state.catalog.get();
    let now = state.now();
    let mut book = state
        .workbooks
        .compute_in_arrival_order(move || WorkbookWriter::new("Invoices", &export_header(), now))
        .await??;
    loop {
        let mut invoices = Vec::new();
        let mut row_count = 0;
        while row_count < ROWS_AT_ONCE
            && let Some(invoice) = reader.next().await?
        {
            row_count += invoice.lines.len().max(1);
            let customer = reader.customer(&invoice);
            invoices.push((invoice, customer));
            if reader.holds_long_invoice() {
                break;
            }
        }
        if invoices.is_empty() {
            break;
        }
        let catalog = Arc::clone(&catalog);
        let extended_book = state.workbooks.compute_in_arrival_order(move || {
            for (invoice, customer) in invoices {
                let rows = InvoiceRows::new(invoice, customer, &catalog);
                for index in 0..rows.row_count() {
                    book.add_row(&rows.row(index))?;
                }
            }
            Ok::<_, WorkbookError>(book)
        });
        book = extended_book.await??;
    }
    let file = state
        .workbooks
        .compute_in_arrival_order(move || book.save_as_temporary_file())
        .await??;
    Ok((file, reader.into_page_permit()))
}

/// Streams the contents of a file.
fn stream_file(file: File, permit: AnswerPermit) -> impl Stream<Item = Result<Bytes, ApiError>> {
    stream::try_unfold((file, permit), |(mut file, permit)| async {
        let read = spawn_blocking(move || {
            let mut part = vec![0; ANSWER_PART_BYTES];
            let length = file.read(&mut part)?;
            part.truncate(length);
            Ok::<_, std::io::Error>((file, part))
        });
        let read = read.await.map_err(ApiError::internal)?;
        let (file, part) = read
            .map_err(ApiError::internal)
            .inspect_err(log_aborted_download)?;
        Ok((!part.is_empty()).then(|| (Bytes::from(part), (file, permit))))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::http::testing::{TAXPAYER, start_app};
    use crate::store::invoices::list::{InvoiceFilter, InvoiceSort};

    #[actix_web::test]
    async fn a_file_that_is_not_read_holds_the_memory_of_a_page() {
        let app = start_app().await;
        let holder = AnswerHolder::for_taxpayer(TAXPAYER, None);
        for format in [TableFormat::Xlsx, TableFormat::Csv, TableFormat::Ndjson] {
            let list = InvoiceList {
                taxpayer: TAXPAYER,
                filters: InvoiceFilter::default(),
                sort: InvoiceSort::BY_INVOICE_DATE,
            };
            let right = ReadingRight::unchecked();
            let file = invoices_file(&app.state, holder, right, list, format).await;
            let file = file.unwrap();
            let all = app.state.answers.reserve(holder, usize::MAX);
            let early = timeout(Duration::from_millis(100), all).await;
            assert!(early.is_err(), "{format:?}");
            drop(file);
            let all = app.state.answers.reserve(holder, usize::MAX).await;
            assert!(all.is_some(), "{format:?}");
        }
    }
}
