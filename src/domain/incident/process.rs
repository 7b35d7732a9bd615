//! Incidents of the process itself: its database, actors, answers, memory and files.

use crate::domain::incident::situation::{DatabaseFault, Situation};
use crate::domain::incident::{Finding, count_phrase};

/// So many panics within a quarter of an hour are more than one bad document.
const PANICS_MIN: u64 = 4;
/// So many failed authentications within five minutes are more than mistyped passwords.
const FAILED_AUTHENTICATIONS_MIN: u64 = 50;
/// So many queries that waited within a minute show that the pool is exhausted. A few may wait at a restart.
const SLOW_READS_MIN: u64 = 5;
/// Memory and files above this share of what the process may have are nearly used up.
const NEARLY_USED_PERCENT: u64 = 85;

pub(super) fn database_silent(situation: &Situation) -> Vec<Finding> {
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
            Finding::new(1, sentence).caused_by(fault.as_str())
        })
        .into_iter()
        .collect()
}

pub(super) fn disk_full(situation: &Situation) -> Vec<Finding> {
    match situation.database.fault {
        Some(DatabaseFault::DiskFull) => {
            vec![Finding::new(
                1,
                "The disk of the database is full: no write succeeds.",
            )]
        }
        _ => Vec::new(),
    }
}

pub(super) fn reads_wait(situation: &Situation) -> Vec<Finding> {
    match situation.database.slow_read_waits {
        waits @ SLOW_READS_MIN.. => {
            let summary = format!(
                "{waits} queries waited for a connection for more than a second within a minute."
            );
            vec![Finding::new(waits, summary)]
        }
        _ => Vec::new(),
    }
}

pub(super) fn service_paused(situation: &Situation) -> Vec<Finding> {
    if !situation.process.is_paused {
        return Vec::new();
    }
    vec![Finding::new(
        1,
        "This process was started with --paused: nothing is sent to the authority or to webhooks.",
    )]
}

pub(super) fn actors_failed(situation: &Situation) -> Vec<Finding> {
    let failure = situation.actors.failure.as_ref();
    failure
        .map(|reason| Finding::new(1, format!("An actor has given up: {reason}.")))
        .into_iter()
        .collect()
}

pub(super) fn actors_stuck(situation: &Situation) -> Vec<Finding> {
    match situation.actors.stuck {
        0 => Vec::new(),
        stuck => {
            let actors = count_phrase(stuck, "actor has", "actors have");
            vec![Finding::new(
                stuck,
                format!("{actors} worked on one batch for too long."),
            )]
        }
    }
}

pub(super) fn actors_panic(situation: &Situation) -> Vec<Finding> {
    let panics = situation.actors.panics;
    if panics < PANICS_MIN {
        return Vec::new();
    }
    vec![Finding::new(
        panics,
        format!("Actors panicked {panics} times within a quarter of an hour."),
    )]
}

pub(super) fn answers_broken(situation: &Situation) -> Vec<Finding> {
    match situation.traffic.broken {
        0 => Vec::new(),
        broken => {
            let requests = count_phrase(broken, "request was", "requests were");
            vec![Finding::new(
                broken,
                format!("{requests} answered with 500 within five minutes."),
            )]
        }
    }
}

pub(super) fn commands_refused(situation: &Situation) -> Vec<Finding> {
    match situation.traffic.refused_commands {
        0 => Vec::new(),
        refused => {
            let commands = count_phrase(refused, "write was", "writes were");
            let summary =
                format!("{commands} refused with 503 within a minute, because too many wait.");
            vec![Finding::new(refused, summary)]
        }
    }
}

pub(super) fn authentications_fail(situation: &Situation) -> Vec<Finding> {
    let failed = situation.traffic.failed_authentications;
    if failed < FAILED_AUTHENTICATIONS_MIN {
        return Vec::new();
    }
    vec![Finding::new(
        failed,
        format!("{failed} keys or passwords were wrong within five minutes."),
    )]
}

pub(super) fn memory_near_limit(situation: &Situation) -> Vec<Finding> {
    let process = situation.process;
    nearly_used(
        process.resident_bytes,
        process.memory_bytes_max,
        |percent| format!("The process occupies {percent} % of the memory that it may have."),
    )
}

pub(super) fn files_near_limit(situation: &Situation) -> Vec<Finding> {
    let process = situation.process;
    nearly_used(process.open_files, process.open_files_max, |percent| {
        format!("The process has {percent} % of the files and connections open that it may have.")
    })
}

fn nearly_used(
    used: Option<u64>,
    most: Option<u64>,
    summary: impl FnOnce(u64) -> String,
) -> Vec<Finding> {
    let (Some(used), Some(most @ 1..)) = (used, most) else {
        return Vec::new();
    };
    let percent = used.saturating_mul(100) / most;
    if percent < NEARLY_USED_PERCENT {
        return Vec::new();
    }
    vec![Finding::new(percent, summary(percent))]
}
