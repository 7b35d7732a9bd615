//! The JSON API. The table of paths consists of the paths of all modules in `api`. Each of these modules lists
//! its paths with methods, handlers, policy (reads, effect, public, relayed, rate limit) and documentation. A server
//! mounts the table with `App::new().app_data(state).wrap(from_fn(http::request_context)).configure(http::routes)`.
//!
//! A module imports only modules below its own line of this table; `tests/tidy.rs` checks this.
//!
//! | Module | Holds |
//! |---|---|
//! | `api` | the paths and their handlers, a folder for each part of the API |
//! | `paths` | a line of the table: one path |
//! | `known_paths` | the known path that the caller of an unknown path probably meant |
//! | `middleware` | code around every handler: request id, access log, policy |
//! | `incidents` | the incidents that this process sees now |
//! | `replicas` | the heartbeats of the replicas |
//! | `metrics`, `idempotency` | the metrics page; one execution for each `Idempotency-Key` |
//! | `search` | what an operator's search finds |
//! | `pdf_archive` | the PDFs of a list in one ZIP file |
//! | `exports` | lists of invoices and batches as CSV, NDJSON and XLSX |
//! | `import_files` | files of invoices, read for the API and the dashboard |
//! | `corrections` | corrections of signed invoices, for the API and the dashboard, and their worker |
//! | `approval` | the submission that begins with an approval |
//! | `draft_warnings` | the warnings about a new invoice, for the API and the dashboard |
//! | `invoice_files` | the printed document, the UBL and the pictures of an invoice |
//! | `delivery_links`, `delivery_selection` | links to one delivery, for support; the deliveries that were chosen to be sent again |
//! | `document_body`, `stored_invoice` | the document that the body of a call stands for; a stored invoice and its document |
//! | `invoice_page` | the reservation of memory for a page of invoices |
//! | `paper_texts` | the words of a printed invoice, and the texts that it cannot show |
//! | `extract` | the parts of a request as handlers take them |
//! | `invitations` | one-time links with which people choose a password |
//! | `onboarding` | the accounts of new taxpayers |
//! | `state` | everything that handlers share |
//! | `limits`, `health`, `password`, `stopping`, `remembered_operators`, `cached` | parts of the state |
//! | `listener` | the people and programs that a listener (address and port) serves |
//! | `key_generation` | new API keys and signing secrets |
//! | `suggest_patch`, `explain` | a patch for a refused document, and the reasons of its refusal |
//! | `views` | response bodies |
//! | `openapi` | the document of the API |
//! | `forms` | request bodies |
//! | `respond` | envelope, error codes, and the body of a failure |

pub(crate) mod api;
#[cfg(test)]
mod app_tests;
pub(crate) mod approval;
pub(crate) mod cached;
pub(crate) mod corrections;
pub(crate) mod delivery_links;
pub(crate) mod delivery_selection;
pub(crate) mod document_body;
pub(crate) mod draft_warnings;
pub(crate) mod explain;
pub(crate) mod exports;
pub(crate) mod extract;
pub(crate) mod forms;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod health;
pub(crate) mod idempotency;
pub(crate) mod import_files;
pub(crate) mod incidents;
pub(crate) mod invitations;
pub(crate) mod invoice_files;
pub(crate) mod invoice_page;
pub(crate) mod key_generation;
mod known_paths;
pub(crate) mod limits;
pub(crate) mod listener;
pub(crate) mod metrics;
pub(crate) mod middleware;
pub(crate) mod onboarding;
mod openapi;
pub(crate) mod paper_texts;
pub(crate) mod password;
pub(crate) mod paths;
pub(crate) mod pdf_archive;
pub(crate) mod remembered_operators;
pub(crate) mod replicas;
pub(crate) mod respond;
#[cfg(test)]
mod rights_tests;
pub(crate) mod search;
pub mod state;
mod stopping;
pub(crate) mod stored_invoice;
pub(crate) mod suggest_patch;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod views;

use std::sync::OnceLock;

use actix_web::web;

use api::{app, authority, core, ops, system_integrators, tax_payers};
pub use corrections::{CORRECTIONS_MAX, CorrectionWorker};
pub use health::Health;
pub use idempotency::InProgressRequests;
pub use import_files::{IMPORTS_MAX, ImportWorker};
pub use incidents::log::IncidentLog;
pub use incidents::schedules::Schedules;
pub use incidents::watch_incidents;
use known_paths::KnownPaths;
pub(crate) use limits::GuardedStream;
pub use limits::{
    AnswerMemory, AnswerMemoryLimits, BodyMemory, BodyMemoryLimits, ConcurrentCalls,
    ConcurrentLimits, ConnectionLimits, OpenConnections, PageLimits, PageRates, PrintingLimit,
    Rates, SignInAttempts, SignInRates,
};
pub use listener::Listener;
pub use metrics::{CachedCounts, Traffic};
pub use middleware::client_address::{ForwardedHeader, TrustedProxies};
pub use middleware::request_context::request_context;
use openapi::document;
use openapi::served_document::ApiDocument;
pub use password::Passwords;
use paths::{ApiPart, Path};
pub use remembered_operators::RememberedOperators;
pub use replicas::board::ReplicaBoard;
pub use replicas::record_heartbeats;
pub use stopping::StopSignal;
use views::event_example::example_message;

/// The paths, grouped by the parts of the API.
#[rustfmt::skip]
fn parts() -> [ApiPart; 5] {
    let part = |name, purpose, paths| ApiPart { name, purpose, paths };
    [
        part("core", "Option lists and the authority's reference data", core::paths()),
        part("tax-payers", "A taxpayer and its own invoices", tax_payers::paths()),
        part("system-integrators", "The taxpayers an integrator onboarded, their webhooks and keys", system_integrators::paths()),
        part("app", "The authority's pipeline: validate, submit, transmit, report, download", app::paths().into_iter().chain(authority::paths()).collect()),
        part("ops", "Health, metrics and what operators do", ops::paths()),
    ]
}

/// The paths of all parts of the API.
pub(crate) fn path_table() -> Vec<Path> {
    parts().into_iter().flat_map(|part| part.paths).collect()
}

/// The API document, with all that is made of it once per process.
static API_DOCUMENT: ApiDocument = ApiDocument::new(openapi_document);

/// Returns the API document, which is built once per process.
pub fn openapi_document() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let tags = parts().iter().map(ApiPart::tag).collect();
        document::text(tags, example_message)
    })
}

pub fn routes(config: &mut web::ServiceConfig) {
    config.app_data(web::Data::new(&API_DOCUMENT));
    let paths = paths::sort_by_precedence(path_table());
    // A path with a secret in it must look like a path that does not exist, so it is never suggested.
    let suggested = paths
        .iter()
        .filter(|path| path.is_documented() && !path.pattern.contains("{token}"));
    let known = suggested.map(|path| (path.policy.audience(), path.pattern));
    config.app_data(web::Data::new(KnownPaths::new(known)));
    for path in paths {
        config.service(path);
    }
    config.default_service(web::to(paths::answer_unknown_path));
}
