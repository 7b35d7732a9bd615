//! Paths outside `/v1`: probes, metrics, and the reads and actions of operators.
//!
//! | File | Content |
//! |---|---|
//! | `access` | disables and enables integrators and operators, removes operators, and changes an operator's role |
//! | `accounts` | integrators and operators with their API keys |
//! | `audit` | the audit log, for operators |
//! | `breakers` | the breakers of the calls to the authority |
//! | `bulk` | the outcome of one operator action on many objects, and its entry in the audit log |
//! | `contacts` | the contact persons of any taxpayer: list them; disable, enable or remove one; and change the role of one |
//! | `dead_letters` | dead letters of all taxpayers: list them, replay one, or all of one taxpayer |
//! | `development` | actions for the development environment only, to see how the service copes with a panic |
//! | `incidents` | the incidents: the problems that this process sees now and that operators have to know |
//! | `invitations` | one-time links for operators, integrators and contact persons who have no password or forgot it |
//! | `invoices` | an invoice of any taxpayer as it was after an event |
//! | `outages` | outages of the authority, for operators |
//! | `overview` | the numbers that operators look at first: counts of runs, deadlines, deliveries and endpoints |
//! | `probes` | health probes, metrics, the API document, and the response to `GET /` |
//! | `quarantine` | the quarantine: commands and steps that panicked twice, and work that was in flight at three crashes |
//! | `reconciliations` | reconciliations, which compare a taxpayer's invoices of one day with the authority's ledger: start one, list them, show one |
//! | `replicas` | the replicas of the deployment |
//! | `run_moves` | pauses, resumes, retries or cancels all runs that match a filter |
//! | `runs` | pipeline runs of all taxpayers: list them, show one, and pause, resume, retry or cancel one |
//! | `search` | the search of operators |
//! | `supervision` | the tree of actors of this process, and the worst actors of all replicas |
//! | `taxpayer_load` | the taxpayers that load this replica most; pauses and resumes one on all replicas |
//! | `taxpayers` | taxpayers of all integrators: list them, confirm the identity of one, and read and set the ERP integration of one |
//! | `webhook_endpoints` | webhook endpoints of all taxpayers, by their health |

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

use crate::http::paths::Path;

pub(crate) fn paths() -> Vec<Path> {
    [
        probes::paths(),
        overview::paths(),
        incidents::paths(),
        replicas::paths(),
        supervision::paths(),
        breakers::paths(),
        run_moves::paths(),
        runs::paths(),
        dead_letters::paths(),
        webhook_endpoints::paths(),
        taxpayers::paths(),
        taxpayer_load::paths(),
        accounts::paths(),
        search::paths(),
        invoices::paths(),
        development::paths(),
        access::paths(),
        contacts::paths(),
        invitations::paths(),
        reconciliations::paths(),
        quarantine::paths(),
        outages::paths(),
        audit::paths(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
