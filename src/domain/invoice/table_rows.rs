//! The rows of exported tables of invoices and batches (CSV, XLSX), with the columns of `table_columns`.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;

use crate::domain::invoice::batch::{Batch, Duplicate};
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::money::Amount;
use crate::domain::party::CustomerDetails;
use crate::domain::reference::catalog::Catalog;

/// A cell of a table. Only a text needs protection against formulas, because anybody may have written it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell<'a> {
    Empty,
    Text(Cow<'a, str>),
    Number(Amount),
    Day(Date),
    /// A time, which tables show in UTC, exact to a second.
    Moment(Timestamp),
}

/// Writes the value as text, without protection against formulas.
impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => Ok(()),
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Day(day) => write!(f, "{day}"),
            Self::Moment(moment) => f.write_str(&plain_time(*moment)),
        }
    }
}

impl<'a> Cell<'a> {
    fn text(text: &'a str) -> Self {
        Self::Text(text.into())
    }

    fn optional_text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Empty, Self::text)
    }

    fn optional_number(number: Option<Amount>) -> Self {
        number.map_or(Self::Empty, Self::Number)
    }

    fn from_index(index: usize) -> Self {
        Self::Number(i64::try_from(index).unwrap_or(i64::MAX).into())
    }
}

/// An invoice as rows of a table: one row for each line.
#[derive(Debug)]
pub struct InvoiceRows {
    invoice: Invoice,
    /// The stored customer; `None` if it was not found.
    customer: Option<CustomerDetails>,
    /// The amounts; `None` if they are too large, which the forms prevent.
    amounts: Option<Breakdown>,
}

impl InvoiceRows {
    pub fn new(invoice: Invoice, customer: Option<CustomerDetails>, catalog: &Catalog) -> Self {
        let amounts = Breakdown::from_invoice(&invoice, catalog).ok();
        Self {
            invoice,
            customer,
            amounts,
        }
    }

    /// Returns the number of rows, which is at least one.
    pub fn row_count(&self) -> usize {
        self.invoice.lines.len().max(1)
    }

    /// Returns the cells of a row, counted from 0, in the order of the header.
    pub fn row(&self, index: usize) -> Vec<Cell<'_>> {
        let mut cells = Vec::from(self.header_cells());
        cells.extend(self.customer_cells());
        match self.invoice.lines.get(index) {
            Some(line) => cells.extend(line_cells(line)),
            None => cells.extend([const { Cell::Empty }; LINE_CELLS]),
        }
        cells.extend(self.export_cells(index));
        cells
    }

    fn header_cells(&self) -> [Cell<'_>; 9] {
        let invoice = &self.invoice;
        let extra = |name: &str| invoice.extras.get(name).and_then(Value::as_str);
        let full_code = invoice.is_full().then_some(invoice.invoice_type.as_str());
        let type_code = extra("invoice_type_code").or(full_code);
        let original = extra("original_invoice_reference").or_else(|| self.referenced_irn());
        let by_irn = original.map(|_| UniqueNoType::Irn.as_str());
        let original_type = extra("original_invoice_reference_type").or(by_irn);
        // If only a code was sent, the type text repeats the code and is left out.
        let type_text = Some(invoice.invoice_type.as_str()).filter(|text| type_code != Some(*text));
        [
            Cell::text(&invoice.invoice_no),
            Cell::text(invoice.category.as_str()),
            Cell::optional_text(type_text),
            Cell::optional_text(type_code),
            Cell::optional_text(original),
            Cell::optional_text(original_type),
            Cell::Day(invoice.invoice_date),
            invoice.due_date.map_or(Cell::Empty, Cell::Day),
            Cell::text(&invoice.currency),
        ]
    }

    /// Returns the IRN of the first invoice that a full invoice refers to, such as the one that a credit note corrects.
    fn referenced_irn(&self) -> Option<&str> {
        let references = self.invoice.extras.get("billing_reference")?;
        references.get(0)?.get("irn")?.as_str()
    }

    fn customer_cells(&self) -> [Cell<'_>; 10] {
        let shown = &self.invoice.customer;
        let stored = self.customer.as_ref();
        let address = stored.map(|stored| &stored.address);
        [
            Cell::text(&shown.external_customer_no),
            Cell::text(&shown.name),
            Cell::text(&shown.email),
            Cell::optional_text(shown.tin.as_deref()),
            Cell::optional_text(stored.and_then(|stored| stored.business_description.as_deref())),
            Cell::optional_text(address.map(|address| address.street_name.as_str())),
            Cell::optional_text(address.map(|address| address.city.as_str())),
            Cell::optional_text(address.and_then(|address| address.state.as_deref())),
            Cell::optional_text(address.map(|address| address.postal_code.as_str())),
            Cell::optional_text(address.map(|address| address.country.as_str())),
        ]
    }

    fn export_cells(&self, index: usize) -> [Cell<'_>; 14] {
        let invoice = &self.invoice;
        let amounts = self.amounts.as_ref();
        let net = amounts.map(|amounts| amounts.totals.tax_exclusive_amount);
        [
            Cell::from_index(index + 1),
            Cell::optional_number(amounts.and_then(|amounts| amounts.lines.get(index).copied())),
            Cell::Number(invoice.id.0.into()),
            Cell::text(invoice.irn.as_str()),
            Cell::text(invoice.status.as_str()),
            Cell::text(invoice.payment.status.as_str()),
            Cell::text(invoice.authority.status.as_str()),
            Cell::optional_number(net),
            Cell::optional_number(amounts.and_then(Breakdown::tax)),
            Cell::Number(invoice.payment.payable),
            Cell::Number(invoice.payment.paid),
            Cell::optional_text(invoice.batch_no.as_deref()),
            Cell::Moment(invoice.created_at),
            Cell::Moment(invoice.updated_at),
        ]
    }
}

const LINE_CELLS: usize = 11;

fn line_cells(line: &Line) -> [Cell<'_>; LINE_CELLS] {
    // A line without an item number gets the name in its place, because Create Standard requires a number.
    let item_no = line.item_no.as_deref().unwrap_or(&line.item_name);
    [
        Cell::text(&line.item_name),
        Cell::text(item_no),
        Cell::text(line.item_type.as_str()),
        Cell::Number(line.unit_price),
        Cell::Number(line.quantity),
        Cell::text(&line.price_unit),
        Cell::text(&line.tax_category),
        Cell::optional_text(line.product_category.as_deref()),
        Cell::optional_text(line.service_category.as_deref()),
        Cell::optional_number(line.discount_rate),
        Cell::optional_number(line.discount_amount),
    ]
}

/// Returns the rows of a batch's outcomes, with the columns `BATCH_COLUMNS`.
pub fn batch_rows(batch: &Batch) -> impl Iterator<Item = Vec<Cell<'_>>> {
    batch.items.iter().enumerate().flat_map(|(index, item)| {
        let messages = item.errors.iter().flatten();
        let mut errors: Vec<_> = messages
            .flat_map(|(field, texts)| texts.iter().map(|text| (field.as_str(), text.as_str())))
            .map(|(field, text)| [Cell::text(field), Cell::text(text)])
            .collect();
        if errors.is_empty() {
            errors.push([const { Cell::Empty }; 2]);
        }
        errors.into_iter().map(move |error| {
            let mut cells = vec![
                Cell::from_index(index),
                Cell::optional_text(item.invoice_no.as_deref()),
                Cell::text(item.outcome.as_str()),
                Cell::optional_number(item.id.map(|id| id.0.into())),
                Cell::optional_text(item.irn.as_deref()),
            ];
            cells.extend(error);
            let duplicate = item.duplicate.map(Duplicate::as_str);
            cells.push(Cell::optional_text(duplicate));
            cells.push(warnings_cell(&item.warnings));
            cells
        })
    })
}

/// Returns the warnings about an invoice as one text.
fn warnings_cell(warnings: &[String]) -> Cell<'static> {
    if warnings.is_empty() {
        Cell::Empty
    } else {
        Cell::Text(warnings.join("; ").into())
    }
}
