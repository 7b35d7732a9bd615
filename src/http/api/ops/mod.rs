//! Paths outside `/v1`: probes, metrics, and the reads and actions of operators.

mod accounts;
mod dead_letters;
mod probes;
mod reconciliations;
mod records;
mod runs;
mod taxpayers;

pub(crate) use accounts::{
    list_integrators, list_operators, revoke_integrator_keys, revoke_operator_keys, rotate_integrator_key,
    rotate_operator_key,
};
pub(crate) use dead_letters::{list_dead_letters, replay_dead_letter, replay_dead_letters};
pub(crate) use probes::{docs, live, metrics, openapi, ready, to_docs};
pub(crate) use reconciliations::{create_reconciliation, get_reconciliation, list_reconciliations};
pub(crate) use records::{breakers, list_audit, list_outages, supervision};
pub(crate) use runs::{cancel_run, get_run, list_runs, pause_run, resume_run, retry_run};
pub(crate) use taxpayers::{get_integration, list_all_taxpayers, set_integration, verify_taxpayer};
