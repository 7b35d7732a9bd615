//! Paths outside `/v1`: probes, metrics, and the reads and actions of operators.

pub(crate) mod access;
mod accounts;
pub(crate) mod audit;
pub(crate) mod breakers;
pub(crate) mod bulk;
mod contacts;
pub(crate) mod dead_letters;
pub(crate) mod development;
mod incidents;
mod invitations;
mod invoices;
mod outages;
mod overview;
mod probes;
pub(crate) mod quarantine;
pub(crate) mod reconciliations;
mod replicas;
pub(crate) mod run_moves;
mod runs;
mod search;
mod supervision;
pub(crate) mod taxpayer_load;
mod taxpayers;
pub(crate) mod webhook_endpoints;

use crate::http::endpoint::Path;

pub(crate) fn endpoints() -> Vec<Path> {
    let runs = [
        overview::endpoints(),
        incidents::endpoints(),
        replicas::endpoints(),
        supervision::endpoints(),
        breakers::endpoints(),
        run_moves::endpoints(),
        runs::endpoints(),
    ];
    let actions = [
        dead_letters::endpoints(),
        webhook_endpoints::endpoints(),
        taxpayers::endpoints(),
        taxpayer_load::endpoints(),
    ];
    let records = [
        reconciliations::endpoints(),
        quarantine::endpoints(),
        outages::endpoints(),
        audit::endpoints(),
    ];
    let looks = [
        accounts::endpoints(),
        search::endpoints(),
        invoices::endpoints(),
        development::endpoints(),
    ];
    let others = looks
        .into_iter()
        .chain([
            access::endpoints(),
            contacts::endpoints(),
            invitations::endpoints(),
        ])
        .chain(records);
    [probes::endpoints()]
        .into_iter()
        .chain(runs)
        .chain(actions)
        .chain(others)
        .flatten()
        .collect()
}
