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

pub(crate) use account_keys::{
    revoke_integrator_keys, revoke_operator_keys, rotate_integrator_key, rotate_operator_key,
};
pub(crate) use breakers::breakers;
pub(crate) use create_reconciliation::create_reconciliation;
pub(crate) use docs::{docs, to_docs};
pub(crate) use get_integration::get_integration;
pub(crate) use get_reconciliation::get_reconciliation;
pub(crate) use get_run::get_run;
pub(crate) use list_accounts::{list_integrators, list_operators};
pub(crate) use list_audit::list_audit;
pub(crate) use list_dead_letters::list_dead_letters;
pub(crate) use list_outages::list_outages;
pub(crate) use list_reconciliations::list_reconciliations;
pub(crate) use list_runs::list_runs;
pub(crate) use list_taxpayers::list_all_taxpayers;
pub(crate) use live::live;
pub(crate) use metrics::metrics;
pub(crate) use move_run::{cancel_run, pause_run, resume_run, retry_run};
pub(crate) use openapi::openapi;
pub(crate) use ready::ready;
pub(crate) use replay_dead_letter::replay_dead_letter;
pub(crate) use replay_dead_letters::replay_dead_letters;
pub(crate) use set_integration::set_integration;
pub(crate) use supervision::supervision;
pub(crate) use verify_taxpayer::verify_taxpayer;
