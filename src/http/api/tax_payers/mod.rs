//! `/v1/tax-payers`: a taxpayer's own invoices, supplier invoices and events.

mod activity;
mod events;
mod import_profile;
mod invoices;
mod requests;
mod supplier_invoices;

use crate::http::endpoint::Path;

pub(crate) fn endpoints() -> Vec<Path> {
    [
        invoices::endpoints(),
        import_profile::endpoints(),
        supplier_invoices::endpoints(),
        events::endpoints(),
        activity::endpoints(),
        requests::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
