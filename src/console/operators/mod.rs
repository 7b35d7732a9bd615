//! The pages under `/console`: operators see every actor and all work that waits, and can act on it.
//!
//! | File | Page |
//! |---|---|
//! | `overview` | what needs an operator, and what the process does now |
//! | `past_overviews` | the overview of the last hour |
//! | `runs`, `run` | the runs of all taxpayers; one run, why it waits, and its moves |
//! | `supervision` | the tree of actors |
//! | `quarantine` | work that was put aside after panics or crashes, and its replay |
//! | `lanes` | what is due and who holds it |
//! | `breakers` | the breakers of the calls to the authority, and the outages |
//! | `replicas` | the processes of the deployment |
//! | `deliveries` | webhook endpoints by health, and dead letters |
//! | `mails` | the mails to people |
//! | `taxpayers`, `taxpayer`, `invoice` | the taxpayers; one taxpayer; one invoice |
//! | `top_taxpayers` | the taxpayers that use most of this replica |
//! | `history` | an invoice as it was after an event |
//! | `reconciliations`, `audit` | differences from the authority's ledger; who did what |
//! | `people`, `access` | the operators; the integrators, and the forms that take access away or give it back |
//! | `keys` | the API keys of all accounts, and their revocation |
//! | `bulk`, `run_moves`, `dead_letter_moves`, `endpoint_moves`, `quarantine_moves` | acts on many subjects of a list at once |
//! | `sign_ins` | the forms with which an admin helps a person to sign in |
//! | `search` | the search, which leads to the page about what was found |
//! | `incident_lines` | incidents, as the overview and the top of every page show them |
//! | `navigation` | the navigation of these pages |
//! | `list_query`, `choices`, `reason`, `contact_data`, `badges` | parts that several of these pages share |

mod access;
mod audit;
mod badges;
mod breakers;
mod bulk;
mod choices;
mod contact_data;
mod dead_letter_moves;
mod deliveries;
mod endpoint_moves;
mod history;
pub(super) mod incident_lines;
mod invoice;
mod keys;
mod lanes;
mod list_query;
mod mails;
pub(super) mod navigation;
mod overview;
pub(crate) mod past_overviews;
mod people;
mod quarantine;
mod quarantine_moves;
mod reason;
mod reconciliations;
mod replicas;
mod run;
mod run_moves;
mod runs;
mod search;
mod sign_ins;
mod supervision;
mod taxpayer;
mod taxpayers;
mod top_taxpayers;

use crate::http::paths::Path;

pub(super) fn paths() -> Vec<Path> {
    let run_paths = [
        overview::paths(),
        runs::paths(),
        run::paths(),
        search::paths(),
    ];
    let process_paths = [
        replicas::paths(),
        supervision::paths(),
        lanes::paths(),
        breakers::paths(),
    ];
    let taxpayer_paths = [
        taxpayers::paths(),
        top_taxpayers::paths(),
        taxpayer::paths(),
        invoice::paths(),
    ];
    let other_paths = [
        deliveries::paths(),
        mails::paths(),
        reconciliations::paths(),
        audit::paths(),
        quarantine::paths(),
    ];
    let account_paths = [
        people::paths(),
        access::paths(),
        keys::paths(),
        sign_ins::paths(),
    ];
    let other_paths = other_paths
        .into_iter()
        .chain(account_paths)
        .chain([history::paths()]);
    run_paths
        .into_iter()
        .chain(process_paths)
        .chain(taxpayer_paths)
        .chain(other_paths)
        .flatten()
        .collect()
}
