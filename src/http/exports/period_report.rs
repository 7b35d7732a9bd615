//! Sums up the invoices of a period, and writes the tables of the sums as files. The invoices are read page by page and
//! added up, so that every amount is exact and memory does not grow with their number.

use actix_web::web;
use jiff::Timestamp;

use crate::domain::invoice::period_report::{ReportTable, report_rows};
use crate::domain::invoice::period_summary::PeriodSummary;
use crate::domain::invoice::report_period::ReportPeriod;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reference::catalog::Catalog;
use crate::http::exports::csv_rows;
use crate::http::exports::format::TableFormat;
use crate::http::exports::invoice_reader::{InvoiceReader, LoadedParties};
use crate::http::exports::workbook::{WorkbookError, WorkbookWriter};
use crate::http::extract::reading_right::ReadingRight;
use crate::http::limits::AnswerHolder;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::http::state::ApiState;
use crate::store::Store;
use crate::store::invoices;
use crate::store::invoices::list::{InvoiceFilter, InvoiceList, InvoiceSort};

/// The maximum number of missing numbers that are looked up among the invoices outside of the period. Any further
/// number counts as missing without this check.
const NUMBERS_LOOKED_FOR_MAX: usize = 10_000;
/// The maximum number of missing numbers that one query looks up.
const NUMBERS_PER_QUERY_MAX: usize = 1_000;

/// Sums up the invoices with a date in this period.
pub(crate) async fn sum_up_period(
    state: &web::Data<ApiState>,
    holder: AnswerHolder,
    taxpayer: TaxpayerId,
    period: ReportPeriod,
) -> Result<PeriodSummary, ApiError> {
    let list = InvoiceList {
        taxpayer,
        filters: InvoiceFilter {
            date_from: Some(period.first_day()),
            date_to: Some(period.last_day()),
            ..InvoiceFilter::default()
        },
        sort: InvoiceSort::BY_INVOICE_DATE,
    };
    let catalog = state.catalog.get();
    let right = ReadingRight::unchecked();
    let parties = LoadedParties::None;
    let mut reader = InvoiceReader::new(state.clone(), holder, right, list, parties).await?;
    let mut summary = PeriodSummary::default();
    while let Some(invoice) = reader.next().await? {
        summary
            .add(&invoice, &catalog)
            .map_err(ApiError::internal)?;
    }
    remove_numbers_used_elsewhere(&state.store, taxpayer, &mut summary).await?;
    Ok(summary)
}

/// Removes from the gaps the numbers that invoices outside of the period have.
async fn remove_numbers_used_elsewhere(
    store: &Store,
    taxpayer: TaxpayerId,
    summary: &mut PeriodSummary,
) -> Result<(), ApiError> {
    let missing = summary.numbers.missing_numbers(NUMBERS_LOOKED_FOR_MAX);
    for part in missing.chunks(NUMBERS_PER_QUERY_MAX) {
        for number in invoices::numbers_in_use(store, taxpayer, part).await? {
            summary.numbers.mark_used(&number);
        }
    }
    Ok(())
}

/// Makes the file of one table of a report. `format` is CSV or XLSX.
pub(crate) fn period_file(
    state: &ApiState,
    period: ReportPeriod,
    summary: &PeriodSummary,
    table: ReportTable,
    format: TableFormat,
) -> Result<FileAnswer, ApiError> {
    let catalog = state.catalog.get();
    let bytes = if format == TableFormat::Xlsx {
        report_workbook(summary, table, &catalog, state.now())?
    } else {
        let mut text = Vec::new();
        csv_rows::append_header(&mut text, table.columns()).map_err(ApiError::internal)?;
        let rows = report_rows(summary, table, &catalog);
        csv_rows::append_rows(&mut text, rows).map_err(ApiError::internal)?;
        text
    };
    Ok(FileAnswer {
        media_type: format.content_type(),
        name: format!("{table}-{period}.{}", format.extension()),
        bytes,
        warnings: Vec::new(),
    })
}

fn report_workbook(
    summary: &PeriodSummary,
    table: ReportTable,
    catalog: &Catalog,
    now: Timestamp,
) -> Result<Vec<u8>, WorkbookError> {
    let mut book = WorkbookWriter::new(table.as_str(), table.columns(), now)?;
    for row in report_rows(summary, table, catalog) {
        book.add_row(&row)?;
    }
    let mut bytes = Vec::new();
    book.save_into(&mut bytes)?;
    Ok(bytes)
}
