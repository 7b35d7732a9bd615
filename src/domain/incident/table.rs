//! The table of incidents, the most urgent kinds first. Each row is defined beside its condition, in the file of its
//! area. Its texts tell an operator who was woken at night all that is needed.

use crate::domain::incident::{
    IncidentKind, authority, ledger, periodic, process, replicas, webhooks, work,
};

/// All kinds of incidents that the service itself detects, in the order in which operators see them.
pub const INCIDENTS: &[IncidentKind] = &[
    process::DATABASE_SILENT,
    process::DISK_FULL,
    process::ACTORS_FAILED,
    authority::AUTHORITY_REFUSES_KEY,
    authority::AUTHORITY_TLS,
    work::DEADLINES_MISSED,
    work::WORK_QUARANTINED,
    ledger::INVOICES_MISSING_REMOTELY,
    process::ANSWERS_BROKEN,
    process::READS_WAIT,
    process::SERVICE_PAUSED,
    authority::AUTHORITY_OUT,
    work::DEADLINES_NEAR,
    work::RUNS_PAUSED,
    work::WORK_NOT_TAKEN,
    replicas::REPLICA_MISSING,
    replicas::DIVERGING_REPLICAS,
    work::QUEUE_GROWING,
    work::REFUSALS_ALIKE,
    work::DOCUMENTS_REFUSED,
    authority::AUTHORITY_SLOW,
    authority::AUTHORITY_THROTTLES,
    authority::AUTHORITY_LIMIT_LOW,
    authority::BREAKER_TRIPPED,
    work::TAXPAYERS_PAUSED,
    webhooks::ENDPOINTS_PARKED,
    webhooks::DEAD_LETTERS,
    ledger::LEDGER_DIFFERS,
    process::ACTORS_STUCK,
    process::ACTORS_PANIC,
    work::TASKS_QUARANTINED,
    process::COMMANDS_REFUSED,
    process::AUTHENTICATIONS_FAIL,
    process::MEMORY_NEAR_LIMIT,
    process::FILES_NEAR_LIMIT,
    ledger::REFERENCE_LISTS_OLD,
    periodic::RECONCILIATION_OLD,
    periodic::CHECKPOINTS_OLD,
    webhooks::ENDPOINTS_DISABLED,
];
