//! `/v1/system-integrators`: what an integrator can do for the taxpayers that it onboarded.
//!
//! | File | Content |
//! |---|---|
//! | `audit` | the audit log of an integrator: the changes that the integrator made, and those that others made to its account |
//! | `deliveries` | the deliveries of a taxpayer's webhook: list them, show the attempts of one, and deliver one event again |
//! | `delivery_links` | a link with which somebody without a key, such as a support engineer, sees one delivery |
//! | `endpoint_actions` | the actions on one webhook endpoint: test it, rotate its secret, enable it, replay events, and list its deliveries |
//! | `endpoints` | the webhook endpoints of a taxpayer: the default one, and up to ten others |
//! | `invitations` | one-time links for the contact persons of an integrator's taxpayers |
//! | `invoice_files` | the files of the invoices of an integrator's taxpayers: PDF, UBL, JSON and the pictures of the QR code |
//! | `replays` | replays, which deliver a part of the event log to a webhook again: start one, list them, show one, cancel one |
//! | `requests` | the request log of an integrator: its own requests, and those of its taxpayers |
//! | `selected_deliveries` | sends selected deliveries again, as one replay: those with given ids, or all that match a filter |
//! | `taxpayers` | an integrator's taxpayers: list them, create one, change the profile of one, rotate the API key of one |
//! | `webhook` | a taxpayer's webhook: read and change the settings, create a signing secret, test the endpoint, enable the webhook |

mod audit;
mod deliveries;
mod delivery_links;
mod endpoint_actions;
mod endpoints;
mod invitations;
mod invoice_files;
mod replays;
mod requests;
mod selected_deliveries;
mod taxpayers;
mod webhook;

use crate::http::paths::Path;

pub(crate) fn paths() -> Vec<Path> {
    let webhooks = [
        webhook::paths(),
        replays::paths(),
        selected_deliveries::paths(),
        deliveries::paths(),
        delivery_links::paths(),
        endpoints::paths(),
        endpoint_actions::paths(),
    ];
    let all = [
        taxpayers::paths(),
        invitations::paths(),
        audit::paths(),
        requests::paths(),
        invoice_files::paths(),
    ]
    .into_iter()
    .chain(webhooks);
    all.flatten().collect()
}
