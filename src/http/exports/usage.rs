//! The CSV file with the usage of an integrator's taxpayers. A row is short, so the file is made in memory.

use crate::domain::invoice::table_rows::Cell;
use crate::http::exports::csv_rows;
use crate::http::exports::format::TableFormat;
use crate::http::respond::error::ApiError;
use crate::http::respond::file::FileAnswer;
use crate::store::operations::owned_list::ListedTaxpayer;

const COLUMNS: [&str; 10] = [
    "id",
    "name",
    "tin_no",
    "subscription",
    "invoices",
    "last_invoice_at",
    "needs_attention",
    "waiting",
    "webhook",
    "created_at",
];

/// Makes the CSV of taxpayers with their usage.
pub(crate) fn usage_file(name: String, rows: &[ListedTaxpayer]) -> Result<FileAnswer, ApiError> {
    let mut bytes = Vec::new();
    csv_rows::append_header(&mut bytes, &COLUMNS).map_err(ApiError::internal)?;
    csv_rows::append_rows(&mut bytes, rows.iter().map(usage_cells)).map_err(ApiError::internal)?;
    Ok(FileAnswer {
        media_type: TableFormat::Csv.content_type(),
        name,
        bytes,
        warnings: Vec::new(),
    })
}

fn usage_cells(row: &ListedTaxpayer) -> Vec<Cell<'_>> {
    let taxpayer = &row.taxpayer;
    let webhook = row.webhook.map_or("none", |health| health.as_str());
    vec![
        Cell::Number(taxpayer.id.0.into()),
        Cell::Text(taxpayer.name.as_str().into()),
        Cell::Text(taxpayer.tin.as_str().into()),
        Cell::Text(taxpayer.subscription.as_str().into()),
        Cell::Number(row.invoices.into()),
        row.last_invoice_at.map_or(Cell::Empty, Cell::Moment),
        Cell::Number(row.attention.into()),
        Cell::Number(row.waiting.into()),
        Cell::Text(webhook.into()),
        Cell::Moment(taxpayer.created_at),
    ]
}
