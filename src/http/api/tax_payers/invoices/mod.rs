//! `/v1/tax-payers/invoices`: create, read and update a taxpayer's own invoices.

mod correct;
mod create;
mod files;
mod import;
mod list;
mod read;
mod summary;
mod update;

use crate::http::endpoint::Path;

pub(crate) fn endpoints() -> Vec<Path> {
    [
        create::endpoints(),
        import::endpoints(),
        correct::endpoints(),
        read::endpoints(),
        files::endpoints(),
        summary::endpoints(),
        update::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
