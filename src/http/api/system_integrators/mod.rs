//! `/v1/system-integrators`: what an integrator can do for the taxpayers that it onboarded.

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

use crate::http::endpoint::Path;

pub(crate) fn endpoints() -> Vec<Path> {
    let webhooks = [
        webhook::endpoints(),
        replays::endpoints(),
        selected_deliveries::endpoints(),
        deliveries::endpoints(),
        delivery_links::endpoints(),
        endpoints::endpoints(),
        endpoint_actions::endpoints(),
    ];
    let all = [
        taxpayers::endpoints(),
        invitations::endpoints(),
        audit::endpoints(),
        requests::endpoints(),
        invoice_files::endpoints(),
    ]
    .into_iter()
    .chain(webhooks);
    all.flatten().collect()
}
