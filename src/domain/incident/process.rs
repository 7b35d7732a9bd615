//! Incidents of the process itself: its database, actors, answers, memory and files.

use crate::domain::incident::situation::{DatabaseFault, Situation};
use crate::domain::incident::{FoundIncident, IncidentKind, Severity, count_phrase, end_sentence};

/// At least this many panics within a quarter of an hour are an incident. Fewer may come from one bad document.
const PANICS_MIN: u64 = 4;
/// At least this many failed authentications within five minutes are an incident. Fewer may be mistyped passwords.
const FAILED_AUTHENTICATIONS_MIN: u64 = 50;
/// At least this many queries that waited for a connection within a minute are an incident. A few may wait at a
/// restart.
const SLOW_READS_MIN: u64 = 5;
/// If memory or open files exceed this share of their limit, in percent, they are nearly used up.
const NEARLY_USED_PERCENT: u64 = 85;

pub(super) const DATABASE_SILENT: IncidentKind = IncidentKind {
    name: "database-silent",
    severity: Severity::Page,
    title: "The database takes no write",
    effect: "Nothing is accepted, and nothing goes on. What was accepted is not lost.",
    ends: "By itself within seconds, when the database answers again.",
    to_do: "Bring the database back. The service needs no restart.",
    look_at: "The database, its connections and its disk; the network and the pooler in between; firewalls that \
              drop idle connections. With cause `read-only` the service is connected to a standby.",
    page: "/console/supervision",
    find: find_database_silent,
};

fn find_database_silent(situation: &Situation) -> Vec<FoundIncident> {
    let fault = situation
        .database
        .fault
        .filter(|fault| *fault != DatabaseFault::DiskFull);
    fault
        .map(|fault| {
            let sentence = match fault {
                DatabaseFault::ReadOnly => "The database takes no write: it is read-only.",
                DatabaseFault::Failing => "The database answers with errors.",
                DatabaseFault::Silent | DatabaseFault::DiskFull => "The database does not answer.",
            };
            FoundIncident::new(1, sentence).caused_by(fault.as_str())
        })
        .into_iter()
        .collect()
}

pub(super) const DISK_FULL: IncidentKind = IncidentKind {
    name: "disk-full",
    severity: Severity::Page,
    title: "The disk of the database is full",
    effect: "Nothing is accepted, and nothing goes on. Reads still work.",
    ends: "By itself within seconds, when there is room again.",
    to_do: "Make room on the disk of the database.",
    look_at: "`df` on the machine of the database. Do not delete files of the database itself.",
    page: "/console/supervision",
    find: find_disk_full,
};

fn find_disk_full(situation: &Situation) -> Vec<FoundIncident> {
    match situation.database.fault {
        Some(DatabaseFault::DiskFull) => {
            vec![FoundIncident::new(
                1,
                "The disk of the database is full: no write succeeds.",
            )]
        }
        _ => Vec::new(),
    }
}

pub(super) const READS_WAIT: IncidentKind = IncidentKind {
    name: "reads-wait",
    severity: Severity::Warning,
    title: "Queries wait for a connection to the database",
    effect: "Answers take seconds longer, and some are refused with 503.",
    ends: "By itself, a minute after the last long wait.",
    to_do: "Look at what the connections wait for: a lock, or a slow database. If neither, raise database.reader_connections_max.",
    look_at: "`database_read_wait_seconds`; on PostgreSQL `pg_stat_activity` and `pg_locks`: a session of another \
              program may lock a table.",
    page: "/console/supervision",
    find: find_reads_wait,
};

fn find_reads_wait(situation: &Situation) -> Vec<FoundIncident> {
    match situation.database.slow_read_waits {
        waits @ SLOW_READS_MIN.. => {
            let summary = format!(
                "{waits} queries waited for a connection for more than a second within a minute."
            );
            vec![FoundIncident::new(waits, summary)]
        }
        _ => Vec::new(),
    }
}

pub(super) const SERVICE_PAUSED: IncidentKind = IncidentKind {
    name: "service-paused",
    severity: Severity::Warning,
    title: "The service sends nothing",
    effect: "What is accepted waits: runs, webhooks, verifications and reconciliations. Calls that need the authority \
             at once are refused.",
    ends: "When the process is started without --paused.",
    to_do: "Nothing on a copy beside the live service. Otherwise start the process again without --paused.",
    look_at: "The command of the process, such as `ExecStart` of its unit. [A copy beside the live \
              service](#a-copy-beside-the-live-service) says when to use --paused.",
    page: "/console/lanes",
    find: find_service_paused,
};

fn find_service_paused(situation: &Situation) -> Vec<FoundIncident> {
    if !situation.is_process_paused {
        return Vec::new();
    }
    vec![FoundIncident::new(
        1,
        "This process was started with --paused: nothing is sent to the authority or to webhooks.",
    )]
}

pub(super) const ACTORS_FAILED: IncidentKind = IncidentKind {
    name: "actors-failed",
    severity: Severity::Page,
    title: "An actor has given up",
    effect: "The process is not ready, so a load balancer sends it nothing.",
    ends: "After a minute for the actor of a taxpayer, a run or an endpoint; for any other, at a restart.",
    to_do: "Report the panic that the log shows. If the actor gives up again, restart the process.",
    look_at: "`/ops/supervision`: the nodes in state failed, with the reason; the log line `actor escalated`. A \
              dispatcher, the janitor or a periodic task stays down until the process is restarted.",
    page: "/console/supervision",
    find: find_actors_failed,
};

fn find_actors_failed(situation: &Situation) -> Vec<FoundIncident> {
    let failure = situation.actors.failure.as_ref();
    failure
        .map(|reason| {
            let summary = format!("An actor has given up: {}", end_sentence(reason));
            FoundIncident::new(1, summary)
        })
        .into_iter()
        .collect()
}

pub(super) const ACTORS_STUCK: IncidentKind = IncidentKind {
    name: "actors-stuck",
    severity: Severity::Warning,
    title: "Actors are stuck",
    effect: "What waits in their mailboxes waits on.",
    ends: "When their batches end. They are not stopped, because their work may have had an effect.",
    to_do: "Look at the database first: a slow or locked one is the usual cause.",
    look_at: "`/ops/supervision`: the nodes in state stuck. On PostgreSQL `pg_stat_activity` and `pg_locks` on \
              `lanes`: a session of another program may hold the row of the taxpayer; end that session.",
    page: "/console/supervision",
    find: find_actors_stuck,
};

fn find_actors_stuck(situation: &Situation) -> Vec<FoundIncident> {
    match situation.actors.stuck {
        0 => Vec::new(),
        stuck => {
            let actors = count_phrase(stuck, "actor has", "actors have");
            vec![FoundIncident::new(
                stuck,
                format!("{actors} worked on one batch for too long."),
            )]
        }
    }
}

pub(super) const ACTORS_PANIC: IncidentKind = IncidentKind {
    name: "actors-panic",
    severity: Severity::Warning,
    title: "Actors panic again and again",
    effect: "What panics twice is quarantined; the rest is tried again.",
    ends: "A quarter of an hour after the last panic.",
    to_do: "Report the panic that the log shows.",
    look_at: "The log lines of level ERROR with the place of the panic; `/ops/quarantine`.",
    page: "/console/supervision",
    find: find_actors_panic,
};

fn find_actors_panic(situation: &Situation) -> Vec<FoundIncident> {
    let panics = situation.actors.panics;
    if panics < PANICS_MIN {
        return Vec::new();
    }
    vec![FoundIncident::new(
        panics,
        format!("Actors panicked {panics} times within a quarter of an hour."),
    )]
}

pub(super) const ANSWERS_BROKEN: IncidentKind = IncidentKind {
    name: "answers-broken",
    severity: Severity::Page,
    title: "Requests are answered with 500",
    effect: "Callers try again later; what they were told to be accepted is accepted.",
    ends: "Five minutes after the last such answer.",
    to_do: "Look for the request ids in the log, and report the error.",
    look_at: "The log lines of level ERROR. `a statement failed and will fail again` names a table: a schema of \
              another version, or a row that was changed by hand.",
    page: "/console",
    find: find_answers_broken,
};

fn find_answers_broken(situation: &Situation) -> Vec<FoundIncident> {
    match situation.traffic.broken {
        0 => Vec::new(),
        broken => {
            let requests = count_phrase(broken, "request was", "requests were");
            vec![FoundIncident::new(
                broken,
                format!("{requests} answered with 500 because of a defect within five minutes."),
            )]
        }
    }
}

pub(super) const COMMANDS_REFUSED: IncidentKind = IncidentKind {
    name: "commands-refused",
    severity: Severity::Warning,
    title: "Writes are refused because too many wait",
    effect: "Callers are asked to come again later.",
    ends: "By itself, a minute after the last refusal.",
    to_do: "If it lasts, add replicas, or a faster disk.",
    look_at: "`commands_in_flight` and `database_write_wait_seconds`. Bulk requests and very long invoices take \
              turns, so they wait while others do not.",
    page: "/console/supervision",
    find: find_commands_refused,
};

fn find_commands_refused(situation: &Situation) -> Vec<FoundIncident> {
    match situation.traffic.refused_commands {
        0 => Vec::new(),
        refused => {
            let commands = count_phrase(refused, "write was", "writes were");
            let summary =
                format!("{commands} refused with 503 within a minute, because too many wait.");
            vec![FoundIncident::new(refused, summary)]
        }
    }
}

pub(super) const AUTHENTICATIONS_FAIL: IncidentKind = IncidentKind {
    name: "authentications-fail",
    severity: Severity::Warning,
    title: "Many keys or passwords are wrong",
    effect: "Somebody guesses, or an integrator uses an old key. Addresses that fail too often are held back.",
    ends: "By itself, five minutes after the last ones.",
    to_do: "Find the address in the log. If it is an integrator with an old key, tell it.",
    look_at: "The log lines `an authentication failed`: address, kind of key and account; \
              `rate_limit.failed_auth_per_min`.",
    page: "/console/audit",
    find: find_authentications_fail,
};

fn find_authentications_fail(situation: &Situation) -> Vec<FoundIncident> {
    let failed = situation.traffic.failed_authentications;
    if failed < FAILED_AUTHENTICATIONS_MIN {
        return Vec::new();
    }
    vec![FoundIncident::new(
        failed,
        format!("{failed} keys or passwords were wrong within five minutes."),
    )]
}

pub(super) const MEMORY_NEAR_LIMIT: IncidentKind = IncidentKind {
    name: "memory-near-limit",
    severity: Severity::Warning,
    title: "Memory is nearly used up",
    effect: "The operating system ends a process that needs more.",
    ends: "By itself, when less is held.",
    to_do: "Give the process more memory, or add replicas.",
    look_at: "`process_resident_memory_bytes`; [Capacity](#capacity) says what takes memory.",
    page: "/console/supervision",
    find: find_memory_near_limit,
};

fn find_memory_near_limit(situation: &Situation) -> Vec<FoundIncident> {
    let process = situation.process;
    near_limit_finding(
        process.resident_bytes,
        process.memory_bytes_max,
        |percent| format!("The process occupies {percent} % of the memory that it may have."),
    )
}

pub(super) const FILES_NEAR_LIMIT: IncidentKind = IncidentKind {
    name: "files-near-limit",
    severity: Severity::Warning,
    title: "Files and connections are nearly used up",
    effect: "A process without free files accepts no connection.",
    ends: "By itself, when connections are closed.",
    to_do: "Raise the limit (`LimitNOFILE`), or find who opens so many connections.",
    look_at: "`process_open_fds` against `process_max_fds`; [Capacity](#capacity).",
    page: "/console/supervision",
    find: find_files_near_limit,
};

fn find_files_near_limit(situation: &Situation) -> Vec<FoundIncident> {
    let process = situation.process;
    near_limit_finding(process.open_files, process.open_files_max, |percent| {
        format!("The process has {percent} % of the files and connections open that it may have.")
    })
}

fn near_limit_finding(
    used: Option<u64>,
    most: Option<u64>,
    summary: impl FnOnce(u64) -> String,
) -> Vec<FoundIncident> {
    let (Some(used), Some(most @ 1..)) = (used, most) else {
        return Vec::new();
    };
    let percent = used.saturating_mul(100) / most;
    if percent < NEARLY_USED_PERCENT {
        return Vec::new();
    }
    vec![FoundIncident::new(percent, summary(percent))]
}
