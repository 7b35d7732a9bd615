//! Floor 3: the JSON surface. A handler extracts, checks, sends one command or asks one query, and shows one
//! view. Who wires it says `App::new().app_data(state).wrap(from_fn(http::accompany)).configure(http::routes)`.
//!
//! | Concept | File |
//! |---|---|
//! | what handlers work with | `state` |
//! | the route table | here, a line of it in `route` |
//! | who calls, and for whom | `auth`, `acting`, `gate`, `secrets` |
//! | what comes in | `body`, `query`, `ident`, `since`, `patience`, `forms` |
//! | what goes out | `envelope`, `views`, `outcome` |
//! | failures | `code`, `error`, `render`, `authority_words` |
//! | what accompanies every request | `request` |
//! | health and metrics | `health`, `metrics` |

mod acting;
mod app;
mod auth;
mod authority_words;
mod body;
mod code;
mod core;
mod envelope;
mod error;
mod forms;
mod gate;
mod health;
mod ident;
mod metrics;
mod ops;
mod outcome;
mod patience;
mod query;
mod render;
mod request;
mod route;
mod secrets;
mod since;
pub mod state;
mod system_integrators;
mod tax_payers;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod views;

use actix_web::http::Method;
use actix_web::web;

pub use error::ApiError;
pub use health::Health;
pub use metrics::Traffic;
pub use request::accompany;
use route::path;

const READ: [Method; 3] = [Method::GET, Method::HEAD, Method::POST];
const SET: [Method; 3] = [Method::PUT, Method::PATCH, Method::POST];
const TRY: [Method; 2] = [Method::POST, Method::GET];

/// Every path. A word stands before an identifier that might be read in its place.
#[rustfmt::skip]
pub fn routes(config: &mut web::ServiceConfig) {
    use {app as ap, system_integrators as si, tax_payers as tp};
    config
        .service(path("/v1/core/commons/invoice-categories").get(core::invoice_categories))
        .service(path("/v1/core/commons/enums").get(core::enums))
        .service(path("/v1/core/resources/{list}").get(core::resources))

        .service(path("/v1/tax-payers/invoices").get(tp::list_invoices).post(tp::create_invoice))
        .service(path("/v1/tax-payers/invoices/get-by-unique-no").post(tp::get_by_unique_no))
        .service(path("/v1/tax-payers/invoices/update-status").patch(tp::update_status))
        .service(path("/v1/tax-payers/invoices/update-payment-status").patch(tp::update_payment_status))
        .service(path("/v1/tax-payers/invoices/{id}").get(tp::get_invoice))
        .service(path("/v1/tax-payers/events").get(tp::list_events))

        .service(path("/v1/system-integrators/taxpayers").get(si::list_taxpayers).post(si::create_taxpayer))
        .service(path("/v1/system-integrators/taxpayers/{id}").get(si::get_taxpayer))
        .service(path("/v1/system-integrators/taxpayers/{id}/profile").patch(si::update_profile))
        .service(path("/v1/system-integrators/taxpayers/{id}/webhook").get(si::get_webhook).on(SET, si::update_webhook))
        .service(path("/v1/system-integrators/taxpayers/{id}/webhook/secret").post(si::rotate_webhook_secret))
        .service(path("/v1/system-integrators/taxpayers/{id}/integration/setup").get(si::get_integration_setup))
        .service(path("/v1/system-integrators/taxpayers/{id}/webhook/test").on(TRY, si::test_webhook))
        .service(path("/v1/system-integrators/taxpayers/{id}/webhook/enable").post(si::enable_webhook))
        .service(path("/v1/system-integrators/taxpayers/{id}/webhook/replay").get(si::get_replay).post(si::replay_webhook))
        .service(path("/v1/system-integrators/taxpayers/{id}/webhook/deliveries").get(si::list_deliveries))
        .service(path("/v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/replay").post(si::replay_delivery))
        .service(path("/v1/system-integrators/taxpayers/{id}/api-key/rotate").on(SET, si::rotate_api_key))

        .service(path("/v1/app/invoices/submit").post(ap::submit))
        .service(path("/v1/app/invoices/transmit").post(ap::transmit))
        .service(path("/v1/app/invoices/transmit/{irn}/confirm-receipt").on(SET, ap::confirm_receipt))
        .service(path("/v1/app/invoices/{irn}/confirm").on(READ, ap::confirm))
        .service(path("/v1/app/invoices/{irn}/run").get(ap::get_run))

        .service(path("/health/live").get(ops::live))
        .service(path("/health/ready").get(ops::ready))
        .service(path("/metrics").get(ops::metrics))
        .service(path("/ops/supervision").get(ops::supervision))
        .service(path("/ops/pipeline/runs").get(ops::list_runs))
        .service(path("/ops/pipeline/runs/{id}").get(ops::get_run))
        .service(path("/ops/pipeline/runs/{id}/pause").post(ops::pause_run))
        .service(path("/ops/pipeline/runs/{id}/resume").post(ops::resume_run))
        .service(path("/ops/pipeline/runs/{id}/retry").post(ops::retry_run))
        .service(path("/ops/pipeline/runs/{id}/cancel").post(ops::cancel_run))
        .service(path("/ops/webhooks/dead-letters").get(ops::list_dead_letters))
        .service(path("/ops/webhooks/dead-letters/{id}/replay").post(ops::replay_dead_letter))
        .service(path("/ops/breakers").get(ops::breakers))
        .service(path("/ops/audit").get(ops::list_audit))
        .default_service(web::to(route::not_found));
}
