//! The file of a batch, with the outcome of each of its invoices. A batch is small, so the file is made in memory.

use crate::domain::invoice::batch::Batch;
use crate::domain::invoice::table_columns::BATCH_COLUMNS;
use crate::domain::invoice::table_rows::batch_rows;
use crate::http::exports::csv_rows;
use crate::http::exports::format::TableFormat;
use crate::http::exports::workbook::{WorkbookError, WorkbookWriter};
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::http::views::batch::BatchView;

pub(crate) async fn batch_file(
    state: &ApiState,
    batch: Batch,
    format: TableFormat,
) -> Result<FileAnswer, ApiError> {
    let name = format!("batch-{}.{}", batch.batch_no, format.extension());
    let bytes = match format {
        TableFormat::Csv => {
            let mut text = Vec::new();
            csv_rows::append_header(&mut text, &BATCH_COLUMNS).map_err(ApiError::internal)?;
            csv_rows::append_rows(&mut text, batch_rows(&batch)).map_err(ApiError::internal)?;
            text
        }
        TableFormat::Ndjson => {
            let mut text = Vec::new();
            for item in BatchView::from(&batch).items() {
                serde_json::to_writer(&mut text, item).map_err(ApiError::internal)?;
                text.push(b'\n');
            }
            text
        }
        TableFormat::Xlsx => {
            state
                .workbooks
                .compute_in_arrival_order(move || batch_workbook(&batch))
                .await??
        }
    };
    Ok(FileAnswer {
        media_type: format.content_type(),
        name,
        bytes,
        warnings: Vec::new(),
    })
}

fn batch_workbook(batch: &Batch) -> Result<Vec<u8>, WorkbookError> {
    let mut book = WorkbookWriter::new("Batch", &BATCH_COLUMNS, batch.created_at)?;
    for row in batch_rows(batch) {
        book.add_row(&row)?;
    }
    let mut bytes = Vec::new();
    book.save_into(&mut bytes)?;
    Ok(bytes)
}
