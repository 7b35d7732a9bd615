//! Incidents of the replicas: a replica is missing or not ready, or the replicas differ in their versions or clocks.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::domain::incident::situation::Situation;
use crate::domain::incident::{FoundIncident, IncidentKind, Severity, end_sentence};
use crate::domain::invoice::invoice_view::plain_time;
use crate::domain::replica::{Replica, ReplicaIncident, ReplicaState};

/// A clock that differs from the database's clock by more than this, in milliseconds, makes due times and timestamps
/// wrong.
const CLOCK_TOLERANCE_MS: u64 = 2_000;
/// The time after a fault of the database within which each replica that runs has given a sign again.
const SIGNS_AFTER_FAULT_WITHIN: SignedDuration = SignedDuration::from_secs(10);
/// The longest time that an upgrade takes, which replaces the replicas one by one.
const UPGRADE_TAKES: SignedDuration = SignedDuration::from_mins(15);

pub(super) const REPLICA_MISSING: IncidentKind = IncidentKind {
    name: "replica-missing",
    severity: Severity::Warning,
    title: "A replica is missing",
    effect: "The others take over its work when its leases end. They carry its load.",
    ends: "When it gives signs again, when a replica of this name starts, when an operator forgets it, or an hour after its \
           last sign.",
    to_do: "Look at its last log lines and start it again, or forget it on the page Replicas if it does not come back.",
    look_at: "The page Replicas or `/ops/replicas`; the machine and the last log lines of the replica. A replica that \
              stops in order says so and is not missed; one that was killed, or that cannot reach the database, is.",
    page: "/console/replicas",
    find: find_replica_missing,
};

fn find_replica_missing(situation: &Situation) -> Vec<FoundIncident> {
    // A paused process works on a copy of the database. The replicas that the copy lists run elsewhere. And nobody can
    // give a sign while the database takes no write.
    if situation.is_process_paused || has_database_fault(situation) {
        return Vec::new();
    }
    let missing: Vec<_> = situation.replicas.missing_replicas().collect();
    let last_sign = missing.iter().map(|replica| replica.seen_at).min();
    let Some(last_sign) = last_sign else {
        return Vec::new();
    };
    let count = u64::try_from(missing.len()).unwrap_or(u64::MAX);
    let summary = format!("{}.", sentence_list(&missing, last_heartbeat_words));
    vec![FoundIncident::new(count, summary).since(Some(last_sign))]
}

/// True if the database has a fault, or had one so lately that the other replicas may not have given a sign since.
fn has_database_fault(situation: &Situation) -> bool {
    let database = &situation.database;
    let fault_at = database.fault_at;
    let ended_ago = fault_at.map(|at| situation.now.duration_since(at).abs());
    database.fault.is_some() || ended_ago.is_some_and(|ago| ago < SIGNS_AFTER_FAULT_WITHIN)
}

pub(super) const REPLICA_NOT_READY: IncidentKind = IncidentKind {
    name: "replica-not-ready",
    severity: Severity::Warning,
    title: "A replica is not ready",
    effect: "A load balancer sends it nothing. The others carry its load.",
    ends: "By itself, when the replica is ready again.",
    to_do: "Look at its last log lines. Restart it if it stays so.",
    look_at: "The page Replicas or `/ops/replicas`: `not_ready` of the replica; `/health/ready` and `/metrics` of the \
              replica itself. If the replica tells an incident of its own that explains it, such as `actors-failed`, \
              only that is shown.",
    page: "/console/replicas",
    find: find_replica_not_ready,
};

fn find_replica_not_ready(situation: &Situation) -> Vec<FoundIncident> {
    let list = &situation.replicas;
    let unready = list
        .present_replicas()
        .filter(|replica| list.state(replica) == ReplicaState::NotReady)
        .filter(|replica| {
            let mut told = replica.figures.incidents.iter();
            !told.any(ReplicaIncident::explains_unreadiness)
        });
    let unready: Vec<_> = unready.collect();
    if unready.is_empty() {
        return Vec::new();
    }
    let count = u64::try_from(unready.len()).unwrap_or(u64::MAX);
    let summary = end_sentence(&sentence_list(&unready, unready_words));
    vec![FoundIncident::new(count, summary)]
}

fn unready_words(replica: &Replica) -> String {
    let reason = replica.figures.not_ready.as_deref().unwrap_or_default();
    format!("{} is not ready: {reason}", replica.identity.name)
}

pub(super) const DIVERGING_REPLICAS: IncidentKind = IncidentKind {
    name: "replicas-out-of-step",
    severity: Severity::Warning,
    title: "The replicas are out of step",
    effect: "A wrong clock makes due times and timestamps wrong. Old and new replicas behave differently.",
    ends: "When the clocks agree to two seconds, and all replicas run one version.",
    to_do: "Synchronise the clock of the named machine, or finish the upgrade.",
    look_at: "The page Replicas or `/ops/replicas`: `clock_ahead_ms`, `version` and `started_at` of each replica. With \
              cause `clock`: NTP on the named machine and on that of the database. With cause `version`: the rollout, \
              which has stood still for a quarter of an hour.",
    page: "/console/replicas",
    find: find_diverging_replicas,
};

fn find_diverging_replicas(situation: &Situation) -> Vec<FoundIncident> {
    clocks_differ(situation)
        .into_iter()
        .chain(versions_differ(situation))
        .collect()
}

fn clocks_differ(situation: &Situation) -> Option<FoundIncident> {
    let present = situation.replicas.present_replicas();
    let wrong: Vec<_> = present
        .filter(|replica| replica.figures.clock_ahead_ms.unsigned_abs() > CLOCK_TOLERANCE_MS)
        .collect();
    let count = u64::try_from(wrong.len()).unwrap_or(u64::MAX);
    let summary = format!(
        "A clock differs from that of the database: {}.",
        sentence_list(&wrong, clock_words)
    );
    (count > 0).then(|| FoundIncident::new(count, summary).caused_by("clock"))
}

/// Finds replicas with different versions if the youngest replica has run for longer than an upgrade takes.
fn versions_differ(situation: &Situation) -> Option<FoundIncident> {
    let present: Vec<_> = situation.replicas.present_replicas().collect();
    let versions: BTreeSet<_> = present
        .iter()
        .map(|replica| replica.figures.version.as_str())
        .collect();
    let youngest = present
        .iter()
        .map(|replica| replica.figures.started_at)
        .max()?;
    if versions.len() < 2 || situation.now.duration_since(youngest) < UPGRADE_TAKES {
        return None;
    }
    let summary = format!(
        "The replicas run several versions: {}.",
        sentence_list(&present, version_words)
    );
    let count = u64::try_from(versions.len()).unwrap_or(u64::MAX);
    Some(
        FoundIncident::new(count, summary)
            .caused_by("version")
            .since(Some(youngest)),
    )
}

fn sentence_list(replicas: &[&Replica], words: fn(&Replica) -> String) -> String {
    let parts: Vec<_> = replicas.iter().map(|replica| words(replica)).collect();
    parts.join(", ")
}

fn last_heartbeat_words(replica: &Replica) -> String {
    let name = &replica.identity.name;
    format!(
        "{name} has given no sign since {} UTC",
        plain_time(replica.seen_at)
    )
}

fn clock_words(replica: &Replica) -> String {
    let name = &replica.identity.name;
    let millis = replica.figures.clock_ahead_ms;
    let seconds = millis.unsigned_abs() / 1_000;
    let direction = if millis > 0 { "ahead" } else { "behind" };
    format!("{name} is {seconds} s {direction}")
}

fn version_words(replica: &Replica) -> String {
    format!("{} runs {}", replica.identity.name, replica.figures.version)
}
