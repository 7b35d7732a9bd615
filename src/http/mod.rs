//! The JSON API. This file is the table of endpoints: path, methods, handler and policy (reads, effect, public,
//! relayed, rate class). A server mounts it with
//! `App::new().app_data(state).wrap(from_fn(http::request_context)).configure(http::routes)`.
//!
//! Imports run downwards in this list only; `tests/tidy.rs` checks it.
//!
//! | Module | Holds |
//! |---|---|
//! | `endpoint` | a line of the table: one path |
//! | `api` | the handlers, a folder for each part of the API |
//! | `openapi` | the document of the API |
//! | `middleware` | code around every handler: request id, access log, policy |
//! | `metrics`, `idempotency` | the metrics page; one execution for each `Idempotency-Key` |
//! | `extract` | the parts of a request as handlers take them |
//! | `state` | everything that handlers share |
//! | `limits`, `health`, `password`, `cached` | parts of the state |
//! | `suggest_patch`, `explain` | a patch for a refused document, and the reasons of its refusal |
//! | `views`, `forms` | response bodies and request bodies |
//! | `respond` | envelope, error codes, and the body of a failure |

mod api;
mod cached;
mod endpoint;
mod explain;
mod extract;
mod forms;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod health;
mod idempotency;
mod limits;
mod metrics;
mod middleware;
pub mod openapi;
pub(crate) mod password;
mod respond;
#[cfg(test)]
mod rights_tests;
pub mod state;
mod suggest_patch;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod views;

use actix_web::http::Method;
use actix_web::web;

use api::{app, authority, core, ops, ops_paths, system_integrators, tax_payers, webhook_paths};
use endpoint::{Path, READ, SET, path};
pub use health::Health;
pub use idempotency::InProgressRequests;
use limits::SensitiveOp;
pub use limits::{BodyMemory, BodyMemoryLimits, ConcurrentCalls, RateLimits, Rates};
pub use metrics::{CachedCounts, Traffic};
pub use middleware::client_address::{ForwardedHeader, TrustedProxies};
pub use middleware::request_context::request_context;
pub use password::Passwords;
pub use respond::error::ApiError;

/// Every path. A fixed segment precedes a parameter that would match it too.
#[rustfmt::skip]
fn table() -> Vec<Path> {
    use {app as ap, system_integrators as si, tax_payers as tp};
    let mut paths = vec![
        path("/v1/core/commons/invoice-categories").public().get(core::invoice_categories),
        path("/v1/core/commons/enums").get(core::enums),
        path("/v1/core/resources/{list}").relays().get(core::resources),

        path("/v1/tax-payers/invoices").get(tp::list_invoices).post(tp::create_invoice),
        path("/v1/tax-payers/invoices/full").post(tp::create_full_invoice),
        path("/v1/tax-payers/invoices/update").on([Method::PUT], tp::update_invoice),
        path("/v1/tax-payers/invoices/get-by-unique-no").reads().post(tp::get_by_unique_no),
        path("/v1/tax-payers/invoices/update-status").patch(tp::update_status),
        path("/v1/tax-payers/invoices/update-payment-status").patch(tp::update_payment_status),
        path("/v1/tax-payers/invoices/bulk").bulk().post(tp::create_batch),
        path("/v1/tax-payers/invoices/batches/{batch_no}").get(tp::get_batch),
        path("/v1/tax-payers/invoices/get-supplier-invoice").reads().relays().post(tp::get_supplier_invoice),
        path("/v1/tax-payers/invoices/acknowledge-supplier-invoice").relays().post(tp::acknowledge_supplier_invoice),
        path("/v1/tax-payers/invoices/{id}").get(tp::get_invoice),
        path("/v1/tax-payers/invoices/{id}/timeline").get(tp::get_timeline),
        path("/v1/tax-payers/supplier-invoices").get(tp::list_supplier_invoices),
        path("/v1/tax-payers/events").get(tp::list_events),

        path("/v1/system-integrators/audit").get(si::list_own_audit),
        path("/v1/system-integrators/taxpayers").get(si::list_taxpayers).post(si::create_taxpayer),
        path("/v1/system-integrators/taxpayers/{id}").get(si::get_taxpayer),
        path("/v1/system-integrators/taxpayers/{id}/profile").patch(si::update_profile),
        path("/v1/system-integrators/taxpayers/{id}/integration/setup").get(si::get_integration_setup),
        path("/v1/system-integrators/taxpayers/{id}/api-key/rotate").sensitive(SensitiveOp::Rotation).on(SET, si::rotate_api_key),

        path("/v1/app/invoices/validate").reads().relays().post(ap::validate),
        path("/v1/app/invoices/submit").relays().post(ap::submit),
        path("/v1/app/invoices/transmit").relays().post(ap::transmit),
        path("/v1/app/invoices/transmit/{irn}/confirm-receipt").relays().on(SET, ap::confirm_receipt),
        path("/v1/app/invoices/report").relays().post(ap::report),
        path("/v1/app/invoices/{irn}/update-payment-status").relays().on(SET, ap::update_payment_status),
        path("/v1/app/invoices/{irn}/confirm").reads().relays().on(READ, ap::confirm),
        path("/v1/app/invoices/{irn}/download").reads().relays().on(READ, ap::download),
        path("/v1/app/invoices/{irn}/run").get(ap::get_run),

        path("/authority/notifications/{token}").post(authority::notifications),

        path("/health/live").get(ops::live),
        path("/health/ready").get(ops::ready),
        path("/metrics").get(ops::metrics),
        path("/openapi.json").get(ops::openapi),
        path("/docs").get(ops::to_docs),
        path("/docs/{file:.*}").get(ops::docs),
    ];
    paths.extend(ops_paths::table());
    paths.extend(webhook_paths::table());
    paths
}

pub fn routes(config: &mut web::ServiceConfig) {
    for path in table() {
        config.service(path);
    }
    config.default_service(web::to(endpoint::not_found));
}
