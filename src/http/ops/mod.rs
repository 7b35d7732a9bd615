//! Outside `/v1`: what probes, scrapers and operators read, and what operators do.

mod account_keys;
mod breakers;
mod create_reconciliation;
mod docs;
mod get_integration;
mod get_reconciliation;
mod get_run;
mod list_accounts;
mod list_audit;
mod list_dead_letters;
mod list_outages;
mod list_reconciliations;
mod list_runs;
mod list_taxpayers;
mod live;
mod metrics;
mod move_run;
mod openapi;
mod ready;
mod replay_dead_letter;
mod replay_dead_letters;
mod set_integration;
mod supervision;
mod verify_taxpayer;

pub(super) use account_keys::{
    revoke_integrator_keys, revoke_operator_keys, rotate_integrator_key, rotate_operator_key,
};
pub(super) use breakers::breakers;
pub(super) use create_reconciliation::create_reconciliation;
pub(super) use docs::{docs, to_docs};
pub(super) use get_integration::get_integration;
pub(super) use get_reconciliation::get_reconciliation;
pub(super) use get_run::get_run;
pub(super) use list_accounts::{list_integrators, list_operators};
pub(super) use list_audit::list_audit;
pub(super) use list_dead_letters::list_dead_letters;
pub(super) use list_outages::list_outages;
pub(super) use list_reconciliations::list_reconciliations;
pub(super) use list_runs::list_runs;
pub(super) use list_taxpayers::list_all_taxpayers;
pub(super) use live::live;
pub(super) use metrics::metrics;
pub(super) use move_run::{cancel_run, pause_run, resume_run, retry_run};
pub(super) use openapi::openapi;
pub(super) use ready::ready;
pub(super) use replay_dead_letter::replay_dead_letter;
pub(super) use replay_dead_letters::replay_dead_letters;
pub(super) use set_integration::set_integration;
pub(super) use supervision::supervision;
pub(super) use verify_taxpayer::verify_taxpayer;
