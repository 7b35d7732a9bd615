//! Incidents that a process finds in what it alone knows. Its heartbeat tells the other replicas of them, so that an
//! operator sees them whichever replica answers, even if the concerned one takes itself out of service.

use crate::domain::incident::{FoundIncident, INCIDENTS, Incident};
use crate::domain::replica::{Replica, ReplicaIncident, ReplicaList};

/// The kinds of incidents of one process, which the other replicas show as well.
const OWN_KINDS: [&str; 12] = [
    DISK_FULL,
    "actors-failed",
    AUTHORITY_TLS,
    "answers-broken",
    "reads-wait",
    "service-paused",
    "actors-stuck",
    "actors-panic",
    "commands-refused",
    "authentications-fail",
    "memory-near-limit",
    "files-near-limit",
];
/// The kinds that usually concern all replicas at once. A replica that finds such an incident itself does not show it for
/// others.
const COMMON_KINDS: [&str; 2] = [DISK_FULL, AUTHORITY_TLS];
const AUTHORITY_TLS: &str = "authority-tls";
const DISK_FULL: &str = "disk-full";
/// The kind that a heartbeat names only to explain why the replica is not ready. A replica that writes a heartbeat
/// reaches the database again.
const DATABASE_SILENT: &str = "database-silent";
/// The kinds that explain why a replica is not ready.
const UNREADY_KINDS: [&str; 4] = [DATABASE_SILENT, DISK_FULL, "actors-failed", "actors-stuck"];
/// The maximum length of a summary in a heartbeat, in characters. A heartbeat is small because it is written every
/// second.
const SUMMARY_CHARS_MAX: usize = 400;
/// The end of a summary that is cut.
const CUT_MARK: &str = " \u{2026}.";

impl ReplicaIncident {
    /// True if the incident explains why its replica is not ready.
    pub(super) fn explains_unreadiness(&self) -> bool {
        UNREADY_KINDS.contains(&self.kind.as_str())
    }
}

/// Returns those incidents of this process that its heartbeat tells the other replicas.
pub fn told_incidents(own: &[Incident]) -> Vec<ReplicaIncident> {
    let is_told = |name: &str| OWN_KINDS.contains(&name) || name == DATABASE_SILENT;
    let told = own.iter().filter(|incident| is_told(incident.kind.name));
    told.map(|incident| ReplicaIncident {
        kind: incident.kind.name.to_owned(),
        cause: incident.finding.cause.clone(),
        summary: short_summary(&incident.finding.summary),
        count: incident.finding.count,
        since: incident.since,
        is_since_first_sight: incident.is_since_first_sight,
    })
    .collect()
}

fn short_summary(summary: &str) -> String {
    if summary.chars().count() <= SUMMARY_CHARS_MAX {
        return summary.to_owned();
    }
    let kept_max = SUMMARY_CHARS_MAX.saturating_sub(CUT_MARK.chars().count());
    let kept: String = summary.chars().take(kept_max).collect();
    format!("{kept}{CUT_MARK}")
}

/// Returns the incidents of this process and those that the other present replicas have told of themselves, the most
/// urgent kinds first. While this process does not reach the database, it knows nothing of the others.
pub fn with_told_incidents(own: &[Incident], list: &ReplicaList, own_id: &str) -> Vec<Incident> {
    let mut all = own.to_vec();
    let has_own = |kind: &str| own.iter().any(|incident| incident.kind.name == kind);
    if has_own(DATABASE_SILENT) {
        return all;
    }
    let others = list
        .present_replicas()
        .filter(|replica| replica.identity.id != own_id);
    let told = others.flat_map(|replica| {
        let told = replica.figures.incidents.iter();
        told.filter_map(move |one| to_incident(replica, one))
    });
    all.extend(told.filter(|incident| {
        let kind = incident.kind.name;
        !COMMON_KINDS.contains(&kind) || !has_own(kind)
    }));
    all.sort_by_key(|incident| {
        let mut kinds = INCIDENTS.iter();
        kinds.position(|kind| kind.name == incident.kind.name)
    });
    all
}

/// Returns the incident that another replica has told; `None` if it is not shown for others, or if this version does
/// not know its kind.
fn to_incident(replica: &Replica, told: &ReplicaIncident) -> Option<Incident> {
    let mut kinds = INCIDENTS.iter();
    let kind = kinds.find(|kind| kind.name == told.kind && OWN_KINDS.contains(&kind.name))?;
    let summary = format!("On replica {}: {}", replica.identity.name, told.summary);
    Some(Incident {
        kind,
        finding: FoundIncident::new(told.count, summary).caused_by(told.cause.as_str()),
        since: told.since,
        is_since_first_sight: told.is_since_first_sight,
    })
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::domain::replica::{ReplicaFigures, ReplicaIdentity};

    fn incident(name: &str, summary: &str) -> Incident {
        Incident {
            kind: INCIDENTS.iter().find(|kind| kind.name == name).unwrap(),
            finding: FoundIncident::new(1, summary),
            since: Timestamp::UNIX_EPOCH,
            is_since_first_sight: true,
        }
    }

    fn list(replicas: &[(&str, i64, &[Incident])]) -> ReplicaList {
        let now = Timestamp::from_second(1_000).unwrap();
        let replicas = replicas.iter().map(|(name, silent_s, incidents)| Replica {
            identity: ReplicaIdentity {
                id: (*name).to_owned(),
                name: (*name).to_owned(),
            },
            seen_at: now - SignedDuration::from_secs(*silent_s),
            leases: 0,
            figures: ReplicaFigures {
                incidents: told_incidents(incidents),
                ..ReplicaFigures::default()
            },
        });
        ReplicaList {
            read_at: Some(now),
            watched_since: Some(Timestamp::UNIX_EPOCH),
            replicas: replicas.collect(),
        }
    }

    #[test]
    fn each_kind_that_is_told_is_in_the_table() {
        for name in OWN_KINDS.into_iter().chain(UNREADY_KINDS) {
            assert!(INCIDENTS.iter().any(|kind| kind.name == name), "{name}");
        }
    }

    #[test]
    fn the_incidents_of_another_replica_are_shown_with_its_name_and_ones_own_are_not_doubled() {
        /// The incidents of this replica `a`, those of `b`, the seconds since the last heartbeat of `b`, and the
        /// summaries that are shown.
        type Case<'a> = (&'a [Incident], &'a [Incident], i64, &'a [&'a str]);

        let failed = incident("actors-failed", "An actor has given up: it panicked.");
        let tls = incident(AUTHORITY_TLS, "The certificate is not accepted.");
        let silent = incident(DATABASE_SILENT, "The database does not answer.");
        let full = incident(DISK_FULL, "The disk is full.");
        let paused = incident("runs-paused", "1 run is paused.");
        let on_b = "On replica b: An actor has given up: it panicked.";
        let cases: [Case<'_>; 9] = [
            (&[], from_ref(&failed), 0, &[on_b]),
            (
                from_ref(&failed),
                from_ref(&failed),
                0,
                &["An actor has given up: it panicked.", on_b],
            ),
            (
                from_ref(&paused),
                from_ref(&failed),
                0,
                &[on_b, "1 run is paused."],
            ),
            (
                from_ref(&tls),
                from_ref(&tls),
                0,
                &["The certificate is not accepted."],
            ),
            // Only a replica that has met the full disk knows of it.
            (
                &[],
                from_ref(&full),
                0,
                &["On replica b: The disk is full."],
            ),
            (from_ref(&full), from_ref(&full), 0, &["The disk is full."]),
            // All replicas see the work, and a missing replica tells nothing.
            (&[], &[paused.clone(), silent.clone()], 0, &[]),
            (&[], from_ref(&failed), 9, &[]),
            (
                from_ref(&silent),
                from_ref(&failed),
                0,
                &["The database does not answer."],
            ),
        ];
        for (own, others, silent_s, expected) in cases {
            let list = list(&[("a", 0, own), ("b", silent_s, others)]);
            let shown = with_told_incidents(own, &list, "a");
            let summaries: Vec<_> = shown
                .iter()
                .map(|one| one.finding.summary.as_str())
                .collect();
            assert_eq!(summaries, expected);
        }
    }

    #[test]
    fn a_long_summary_is_cut_and_an_unknown_kind_is_left_out() {
        let long = incident("actors-failed", &"x".repeat(2_000));
        let mut list = list(&[("b", 0, from_ref(&long))]);
        let told = &mut list.replicas[0].figures.incidents;
        assert_eq!(told[0].summary.chars().count(), SUMMARY_CHARS_MAX);
        assert!(told[0].summary.ends_with("\u{2026}."));
        told[0].kind = "of-another-version".to_owned();
        assert!(with_told_incidents(&[], &list, "a").is_empty());
    }
}
