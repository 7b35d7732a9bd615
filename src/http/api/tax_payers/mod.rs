//! `/v1/tax-payers`: a taxpayer's own invoices, supplier invoices and events.
//!
//! | File | Content |
//! |---|---|
//! | `activity` | the activity of a taxpayer's account: what people did on pages, and what was done with API keys |
//! | `events` | the event feed of a taxpayer, the catalogue of events, and the dead letters of the taxpayer's own webhook |
//! | `import_profile` | the import profile of a taxpayer: values for the fields that its files lack, and the meaning of the columns and units in the files |
//! | `invoices` | `/v1/tax-payers/invoices`: create, read and update a taxpayer's own invoices |
//! | `requests` | the request log of a taxpayer |
//! | `supplier_invoices` | the inbox of supplier invoices |

mod activity;
mod events;
mod import_profile;
mod invoices;
mod requests;
mod supplier_invoices;

use crate::http::paths::Path;

pub(crate) fn paths() -> Vec<Path> {
    [
        invoices::paths(),
        import_profile::paths(),
        supplier_invoices::paths(),
        events::paths(),
        activity::paths(),
        requests::paths(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
