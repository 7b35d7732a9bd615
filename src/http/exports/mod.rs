//! Lists of invoices and outcomes of batches as files: CSV, NDJSON and XLSX. A list is read page by page while it is
//! sent, so a file of a million invoices takes no more memory than one page of them.
//!
//! | Concept | File |
//! |---|---|
//! | the formats, and the choice of the format that a caller accepts | `format` |
//! | the invoices of a list, one after the other | `invoice_reader` |
//! | rows as CSV, safe for spreadsheets | `csv_rows` |
//! | rows as an XLSX workbook | `workbook` |
//! | a file that is made while it is sent | `part_stream` |
//! | the file of a list | `invoices` |
//! | the file of a batch | `batch` |
//! | the sums of a period, and their files | `period_report` |
//! | the file of what taxpayers used | `usage` |

mod batch;
mod csv_rows;
mod format;
mod invoice_reader;
mod invoices;
mod part_stream;
mod period_report;
mod usage;
mod workbook;

pub(crate) use batch::batch_file;
pub(crate) use format::{TableFormat, vary_by_accept};
pub(crate) use invoice_reader::{InvoiceReader, LoadedParties};
pub(crate) use invoices::invoices_file;
pub(crate) use part_stream::{PartSource, log_aborted_download, stream_parts};
pub(crate) use period_report::{period_file, sum_up_period};
pub(crate) use usage::usage_file;
