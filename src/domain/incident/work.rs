//! Incidents of the work: runs, deadlines, deliveries, endpoints, quarantine, and the authority's ledger.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::domain::incident::situation::{Group, ParkedEndpoints, Situation, WorkFacts};
use crate::domain::incident::{Finding, count_phrase};
use crate::domain::kernel::upstream::Blame;
use crate::domain::quarantine::WorkKind;

/// Work that is due and that nobody takes for so long is not taken.
const UNTAKEN_AFTER: SignedDuration = SignedDuration::from_secs(30);
/// So many refusals of one taxpayer within an hour are more than single mistakes.
const REFUSALS_MIN: u64 = 5;
/// So many taxpayers that are refused for the same reason have not all made the same mistake.
const ALIKE_TAXPAYERS_MIN: u64 = 10;
/// If so many endpoints, and all of them, cannot be reached, the network is ours.
const UNREACHED_MIN: u64 = 3;
/// A queue that has grown in each of so many minutes grows.
const GROWING_MINUTES: usize = 5;
/// So many paused taxpayers are named at most.
const PAUSED_NAMED_MAX: usize = 10;
/// A queue of less than this is short, however it grows.
const QUEUE_MIN: u64 = 20;
/// Reference lists that are older than this are old: they are fetched several times a day.
const LISTS_OLD_AFTER: SignedDuration = SignedDuration::from_hours(24);

fn work(situation: &Situation, find: impl FnOnce(&WorkFacts) -> Vec<Finding>) -> Vec<Finding> {
    situation.work.as_ref().map(find).unwrap_or_default()
}

/// Returns a finding if the group is not empty.
fn group_finding(group: Group, summary: impl FnOnce(u64) -> String) -> Vec<Finding> {
    if group.count == 0 {
        return Vec::new();
    }
    vec![Finding::new(group.count, summary(group.count)).since(group.since)]
}

pub(super) fn deadlines_missed(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        group_finding(work.overdue, |count| {
            let missed = count_phrase(count, "invoice has", "invoices have");
            format!("{missed} missed the legal deadline and not reached the authority.")
        })
    })
}

pub(super) fn deadlines_near(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        let due = Group {
            count: work.due_soon,
            since: None,
        };
        group_finding(due, |count| {
            let due = count_phrase(count, "invoice has its", "invoices have their");
            format!("{due} legal deadline within an hour and not reached the authority.")
        })
        .into_iter()
        .map(|finding| finding.until(work.next_deadline))
        .collect()
    })
}

pub(super) fn runs_paused(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        group_finding(work.paused, |count| {
            format!("{} paused.", count_phrase(count, "run is", "runs are"))
        })
    })
}

pub(super) fn taxpayers_paused(situation: &Situation) -> Vec<Finding> {
    let paused = &situation.paused_taxpayers;
    let group = Group {
        count: u64::try_from(paused.len()).unwrap_or(u64::MAX),
        since: paused.first().map(|pause| pause.since),
    };
    group_finding(group, |count| {
        let named = paused.iter().take(PAUSED_NAMED_MAX);
        let ids: Vec<_> = named.map(|pause| pause.taxpayer_id.to_string()).collect();
        let are_paused = count_phrase(count, "taxpayer is", "taxpayers are");
        format!("{are_paused} paused by operators: {}.", ids.join(", "))
    })
}

/// True if work of this group has been due for so long that a replica should have taken it.
fn is_old(group: &Group, now: Timestamp) -> bool {
    group
        .since
        .is_some_and(|since| now.duration_since(since) >= UNTAKEN_AFTER)
}

pub(super) fn work_not_taken(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        // A run whose breaker is open or whose taxpayer is paused is due and rightly not taken. A paused process takes
        // nothing.
        let has_held_runs =
            situation.authority.is_held_for_some || !situation.paused_taxpayers.is_empty();
        let untaken = work.untaken.iter().filter(|(kind, group)| {
            let is_held = situation.process.is_paused || *kind == "run" && has_held_runs;
            group.count > 0 && is_old(group, situation.now) && !is_held
        });
        untaken
            .map(|(kind, group)| {
                let summary = format!(
                    "{} due, and no replica takes {}.",
                    match *kind {
                        "run" => count_phrase(group.count, "run is", "runs are"),
                        _ => count_phrase(group.count, "endpoint is", "endpoints are"),
                    },
                    if group.count == 1 { "it" } else { "them" }
                );
                Finding::new(group.count, summary)
                    .caused_by(*kind)
                    .since(group.since)
            })
            .collect()
    })
}

pub(super) fn queue_growing(situation: &Situation) -> Vec<Finding> {
    let lengths = &situation.actors.queue_lengths;
    let (Some(first), Some(last)) = (lengths.first(), lengths.last()) else {
        return Vec::new();
    };
    let has_grown = lengths.windows(2).all(|pair| pair[0] < pair[1]);
    // While calls are held back, nothing ends.
    if lengths.len() <= GROWING_MINUTES
        || !has_grown
        || *last < QUEUE_MIN
        || situation.authority.is_held_for_some
        || !situation.paused_taxpayers.is_empty()
    {
        return Vec::new();
    }
    let summary = format!(
        "{last} runs are due and wait, {} more than {GROWING_MINUTES} minutes ago: fewer end than come.",
        last - first
    );
    vec![Finding::new(*last, summary)]
}

pub(super) fn work_quarantined(situation: &Situation) -> Vec<Finding> {
    quarantine_findings(situation, |kind| kind != WorkKind::Task)
}

pub(super) fn tasks_quarantined(situation: &Situation) -> Vec<Finding> {
    quarantine_findings(situation, |kind| kind == WorkKind::Task)
}

fn quarantine_findings(situation: &Situation, is_meant: impl Fn(WorkKind) -> bool) -> Vec<Finding> {
    work(situation, |work| {
        let kinds = work
            .quarantined
            .iter()
            .filter(|(kind, group)| is_meant(*kind) && group.count > 0);
        kinds
            .map(|(kind, group)| {
                let (one, many) = match kind {
                    WorkKind::Command => ("command is", "commands are"),
                    WorkKind::Run => ("run is", "runs are"),
                    WorkKind::Delivery => ("delivery is", "deliveries are"),
                    WorkKind::Task => ("task is", "tasks are"),
                };
                let summary = format!(
                    "{} in quarantine after two panics or three crashes.",
                    count_phrase(group.count, one, many)
                );
                Finding::new(group.count, summary)
                    .caused_by(kind.as_str())
                    .since(group.since)
            })
            .collect()
    })
}

pub(super) fn documents_refused(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        let many = work
            .refused
            .iter()
            .filter(|one| one.refusals >= REFUSALS_MIN);
        let many: Vec<_> = many.collect();
        let Some(worst) = many.first() else {
            return Vec::new();
        };
        let refusals = many.iter().map(|one| one.refusals).sum();
        let others = match many.len() {
            1 => String::new(),
            more => format!(" and of {} more", counted_taxpayers(more - 1)),
        };
        let summary = format!(
            "The authority refused {} of taxpayer {}{others} within an hour. The last one: {}",
            count_phrase(worst.refusals, "document", "documents"),
            worst.taxpayer,
            worst.reason
        );
        let last = many.iter().map(|one| one.last).max();
        let ends = last.and_then(|last| last.checked_add(Duration::from_hours(1)).ok());
        let finding = Finding::new(refusals, summary).until(ends);
        vec![finding.blamed_on((many.len() == 1).then_some(Blame::Taxpayer))]
    })
}

pub(super) fn refusals_alike(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        let reasons = work.refusal_reasons.iter();
        let common = reasons.filter(|reason| reason.taxpayers >= ALIKE_TAXPAYERS_MIN);
        let Some(worst) = common.max_by_key(|reason| reason.taxpayers) else {
            return Vec::new();
        };
        let summary = format!(
            "The authority refused {} of {} taxpayers within an hour for the same reason: {}.",
            count_phrase(worst.documents, "document", "documents"),
            worst.taxpayers,
            worst.reason.trim_end_matches('.')
        );
        let ends = worst.last.checked_add(Duration::from_hours(1)).ok();
        let finding = Finding::new(worst.taxpayers, summary);
        vec![finding.since(Some(worst.since)).until(ends)]
    })
}

fn counted_taxpayers(taxpayers: usize) -> String {
    count_phrase(
        u64::try_from(taxpayers).unwrap_or(u64::MAX),
        "taxpayer",
        "taxpayers",
    )
}

pub(super) fn endpoints_parked(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        let groups = work.endpoints.iter().filter(|group| group.endpoints > 0);
        groups
            .map(|group| {
                let parked = match work.endpoints_active {
                    active if active > 1 => {
                        format!("{} of {active} endpoints are", group.endpoints)
                    }
                    _ => count_phrase(group.endpoints, "endpoint is", "endpoints are"),
                };
                let host = match &group.host {
                    Some((host, endpoints)) if *endpoints > 1 => {
                        format!(" {endpoints} of them are at {host}.")
                    }
                    _ => String::new(),
                };
                let summary = format!(
                    "{parked} parked, because each attempt failed: {}.{host}",
                    group.failure.replace('_', " ")
                );
                Finding::new(group.endpoints, summary)
                    .caused_by(group.failure.clone())
                    .blamed_on(parked_blame(group, work.endpoints_active))
                    .since(group.since)
            })
            .collect()
    })
}

/// Returns whose fault it is that endpoints fail: ours if none of several can be reached.
fn parked_blame(group: &ParkedEndpoints, active: u64) -> Blame {
    let is_unreached = ["dns", "connect"].contains(&group.failure.as_str());
    if is_unreached && group.endpoints >= UNREACHED_MIN && group.endpoints >= active {
        Blame::OurNetwork
    } else {
        Blame::Receiver
    }
}

pub(super) fn endpoints_disabled(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        let disabled = Group {
            count: work.endpoints_disabled,
            since: None,
        };
        group_finding(disabled, |count| {
            format!(
                "{} disabled.",
                count_phrase(count, "endpoint is", "endpoints are")
            )
        })
    })
}

pub(super) fn dead_letters(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        group_finding(work.dead_letters, |count| {
            let letters = count_phrase(count, "notification", "notifications");
            format!("{letters} became dead letters within a day: no attempt is left.")
        })
    })
}

pub(super) fn invoices_missing_remotely(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        let missing = work
            .differences
            .iter()
            .filter(|(kind, _)| kind == MISSING_REMOTELY);
        missing
            .filter(|(_, count)| *count > 0)
            .map(|(_, count)| {
                let invoices = count_phrase(*count, "invoice", "invoices");
                Finding::new(
                    *count,
                    format!("The authority does not have {invoices} that it accepted."),
                )
            })
            .collect()
    })
}

/// The kind of difference in which the authority lacks an invoice.
const MISSING_REMOTELY: &str = "missing_remotely";

pub(super) fn ledger_differs(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        let others = work
            .differences
            .iter()
            .filter(|(kind, count)| kind != MISSING_REMOTELY && *count > 0);
        others
            .map(|(kind, count)| {
                let differences = count_phrase(*count, "difference", "differences");
                let summary = format!(
                    "{differences} from the authority's ledger to decide: {}.",
                    kind.replace('_', " ")
                );
                Finding::new(*count, summary).caused_by(kind.clone())
            })
            .collect()
    })
}

pub(super) fn reference_lists_old(situation: &Situation) -> Vec<Finding> {
    work(situation, |work| {
        let fetched = work.oldest_list_fetched_at;
        let old = fetched.filter(|at| situation.now.duration_since(*at) > LISTS_OLD_AFTER);
        old.map(|at| {
            Finding::new(
                1,
                "A reference list of the authority was last fetched more than a day ago.",
            )
            .since(at.checked_add(LISTS_OLD_AFTER).ok())
        })
        .into_iter()
        .collect()
    })
}
