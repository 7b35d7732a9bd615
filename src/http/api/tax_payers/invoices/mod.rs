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
use crate::http::respond::code::ErrorCode;

/// Error codes for a taxpayer that may not create invoices.
const PRECONDITION_ERROR_CODES: [ErrorCode; 3] = [
    ErrorCode::SubscriptionInactive,
    ErrorCode::ProfileIncomplete,
    ErrorCode::TaxpayerUnverified,
];

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
