//! `/v1/tax-payers/invoices`: create, read and update a taxpayer's own invoices.
//!
//! | File | Content |
//! |---|---|
//! | `correct` | corrects a signed invoice, returns the progress of a correction, and undoes a batch |
//! | `create` | Create Invoice (Standard), Create Invoice (Full) and Create Invoices (Bulk) |
//! | `files` | the files of a taxpayer's own invoices: PDF, UBL, JSON and the pictures of the QR code |
//! | `import` | imports files of invoices, and returns the outcome of each document |
//! | `invoice_answer` | the response with one invoice: its entity tag, and the parts that `include` adds |
//! | `list` | List Invoices, as pages of JSON or as a file of the whole list |
//! | `read` | reads of invoices: one invoice, the timeline of an invoice, and the outcome of a batch |
//! | `summary` | the summary of a month: the sums of its invoices, and the missing invoice numbers |
//! | `take_back` | takes back a payment that was recorded by mistake |
//! | `update` | Update Invoice, Update Invoice Status and Update Payment Status |

mod correct;
mod create;
mod files;
mod import;
mod invoice_answer;
mod list;
mod read;
mod summary;
mod take_back;
mod update;

use crate::http::paths::Path;

pub(crate) fn paths() -> Vec<Path> {
    [
        create::paths(),
        import::paths(),
        correct::paths(),
        read::paths(),
        files::paths(),
        summary::paths(),
        update::paths(),
        take_back::paths(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
