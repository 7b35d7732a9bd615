//! The operators' part of the route table: their reads and actions.

use actix_web::http::Method;

use crate::http::api::ops;
use crate::http::endpoint::{Path, path};

/// Every path for operators.
#[rustfmt::skip]
pub(crate) fn table() -> Vec<Path> {
    vec![
        path("/ops/supervision").get(ops::supervision),
        path("/ops/pipeline/runs").get(ops::list_runs),
        path("/ops/pipeline/runs/{id}").get(ops::get_run),
        path("/ops/pipeline/runs/{id}/pause").post(ops::pause_run),
        path("/ops/pipeline/runs/{id}/resume").post(ops::resume_run),
        path("/ops/pipeline/runs/{id}/retry").post(ops::retry_run),
        path("/ops/pipeline/runs/{id}/cancel").post(ops::cancel_run),
        path("/ops/webhooks/dead-letters").get(ops::list_dead_letters),
        path("/ops/webhooks/dead-letters/replay").post(ops::replay_dead_letters),
        path("/ops/webhooks/dead-letters/{id}/replay").post(ops::replay_dead_letter),
        path("/ops/taxpayers").get(ops::list_all_taxpayers),
        path("/ops/taxpayers/{id}/verify").post(ops::verify_taxpayer),
        path("/ops/taxpayers/{id}/integration").get(ops::get_integration).on([Method::PUT], ops::set_integration),
        path("/ops/integrators").get(ops::list_integrators),
        path("/ops/integrators/{id}/api-key/rotate").post(ops::rotate_integrator_key),
        path("/ops/integrators/{id}/api-key/revoke").post(ops::revoke_integrator_keys),
        path("/ops/operators").get(ops::list_operators),
        path("/ops/operators/{id}/api-key/rotate").post(ops::rotate_operator_key),
        path("/ops/operators/{id}/api-key/revoke").post(ops::revoke_operator_keys),
        path("/ops/breakers").get(ops::breakers),
        path("/ops/outages").get(ops::list_outages),
        path("/ops/reconciliations").get(ops::list_reconciliations).post(ops::create_reconciliation),
        path("/ops/reconciliations/{id}").get(ops::get_reconciliation),
        path("/ops/audit").get(ops::list_audit),
    ]
}
