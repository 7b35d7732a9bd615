//! Incidents of the work: runs, deadlines, refusals, and quarantine.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::domain::incident::situation::{CountAndOldest, Situation, WorkFacts};
use crate::domain::incident::{FoundIncident, IncidentKind, Severity, count_phrase, end_sentence};
use crate::domain::kernel::upstream::Blame;
use crate::domain::quarantine::WorkKind;

/// Due work that no replica has taken for this long is an incident.
const UNTAKEN_AFTER: SignedDuration = SignedDuration::from_secs(30);
/// At least this many refusals of one taxpayer within an hour are an incident. Fewer may be single mistakes.
const REFUSALS_MIN: u64 = 5;
/// At least this many taxpayers with refusals for the same reason are an incident: so many do not make the same
/// mistake.
const ALIKE_TAXPAYERS_MIN: u64 = 10;
/// A queue counts as growing if it grew in every minute of this many minutes before now.
const GROWING_MINUTES: usize = 5;
/// A growing queue with fewer runs than this is not an incident.
const QUEUE_MIN: u64 = 20;

/// Returns the findings about the work; none if the work is not known, because no query has succeeded yet.
pub(super) fn findings_about_work(
    situation: &Situation,
    find: impl FnOnce(&WorkFacts) -> Vec<FoundIncident>,
) -> Vec<FoundIncident> {
    situation.work.as_ref().map(find).unwrap_or_default()
}

/// Returns a finding about a group of work; no finding if the group is empty.
pub(super) fn group_finding(
    group: CountAndOldest,
    summary: impl FnOnce(u64) -> String,
) -> Vec<FoundIncident> {
    if group.count == 0 {
        return Vec::new();
    }
    vec![FoundIncident::new(group.count, summary(group.count)).since(group.since)]
}

pub(super) const DEADLINES_MISSED: IncidentKind = IncidentKind {
    name: "deadlines-missed",
    severity: Severity::Page,
    title: "Legal deadlines are missed",
    effect: "These invoices should have been at the authority by law.",
    ends: "When they have reached the authority, or an operator has cancelled their runs.",
    to_do: "If the authority is out, nothing: the earliest deadlines go first. Otherwise move the paused runs among them.",
    look_at: "`/ops/pipeline/runs?deadline=overdue`: the state, `wait_reason` and `last_error` of these runs. Fix \
              the cause, then move all of them with `/ops/pipeline/runs/move`. An invoice that was sent to us after \
              its deadline counts when its run is a minute old, or paused.",
    page: "/console/runs?deadline=overdue",
    find: find_deadlines_missed,
};

fn find_deadlines_missed(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        group_finding(work.overdue, |count| {
            let missed = count_phrase(count, "invoice has", "invoices have");
            format!("{missed} missed the legal deadline and not reached the authority.")
        })
    })
}

pub(super) const DEADLINES_NEAR: IncidentKind = IncidentKind {
    name: "deadlines-near",
    severity: Severity::Warning,
    title: "Legal deadlines are near",
    effect: "These invoices have to be at the authority within an hour.",
    ends: "When they have reached the authority, or missed their deadlines.",
    to_do: "Look why they wait. Move the paused ones now.",
    look_at: "`/ops/pipeline/runs?deadline=soon`: their state, `wait_reason` and `last_error`.",
    page: "/console/runs?deadline=soon",
    find: find_deadlines_near,
};

fn find_deadlines_near(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        let due = CountAndOldest {
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

pub(super) const RUNS_PAUSED: IncidentKind = IncidentKind {
    name: "runs-paused",
    severity: Severity::Warning,
    title: "Runs are paused",
    effect: "Their invoices do not go on.",
    ends: "When an operator has moved or cancelled them.",
    to_do: "Mend what their last errors name, then move them all.",
    look_at: "`/ops/pipeline/runs?state=paused`: their `last_error`. Move all of one kind with \
              `/ops/pipeline/runs/move`, first with `preview`. A run refused with \"has signed another document \
              under this IRN\" means that somebody else uses the taxpayer's numbers.",
    page: "/console/runs?state=paused",
    find: find_runs_paused,
};

fn find_runs_paused(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        group_finding(work.paused, |count| {
            format!("{} paused.", count_phrase(count, "run is", "runs are"))
        })
    })
}

/// True if work of this group has been due for `UNTAKEN_AFTER`, so that a replica should have taken it.
fn is_untaken_too_long(group: &CountAndOldest, now: Timestamp) -> bool {
    group
        .since
        .is_some_and(|since| now.duration_since(since) >= UNTAKEN_AFTER)
}

pub(super) const WORK_NOT_TAKEN: IncidentKind = IncidentKind {
    name: "work-not-taken",
    severity: Severity::Warning,
    title: "Work is due and not taken",
    effect: "It stays where it is. No replica has worked on anything of its kind for half a minute.",
    ends: "When a replica takes the first of it.",
    to_do: "Look at the dispatchers on the page Supervision, and restart the replica whose dispatcher stands still.",
    look_at: "`/console/lanes` and `/ops/supervision`: are the dispatchers at work? `/ops/replicas`: is a replica ready \
              at all? A very slow database, or a transaction that somebody left open in it, keeps replicas from \
              claiming. Work that only waits for busy workers is not told here.",
    page: "/console/lanes",
    find: find_work_not_taken,
};

fn find_work_not_taken(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        // The work may have been taken since it was counted, so only the wait up to the count is certain.
        let counted_at = work.counted_at.unwrap_or(situation.now);
        // Due runs are rightly not taken while a breaker is open. Those of paused taxpayers are not counted. A paused
        // process takes no work at all.
        let untaken = work.untaken.iter().filter(|(kind, group)| {
            let is_held =
                situation.is_process_paused || *kind == "run" && situation.authority.has_held_runs;
            group.count > 0 && is_untaken_too_long(group, counted_at) && !is_held
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
                FoundIncident::new(group.count, summary)
                    .caused_by(*kind)
                    .since(group.since)
            })
            .collect()
    })
}

pub(super) const QUEUE_GROWING: IncidentKind = IncidentKind {
    name: "queue-growing",
    severity: Severity::Warning,
    title: "The queue of runs grows",
    effect: "Each run waits longer than the one before it.",
    ends: "By itself, within a minute of the queue growing no more.",
    to_do: "If calls wait for the authority's limit, wait with them; otherwise add replicas or raise \
            pipeline.concurrency_max. Look if one integrator sends unusually much.",
    look_at: "`lanes_due` against `lanes_leased`; `/ops/breakers`: do calls wait for the limit there? \
              `signature_seconds` says how long a signature takes meanwhile.",
    page: "/console/lanes",
    find: find_queue_growing,
};

fn find_queue_growing(situation: &Situation) -> Vec<FoundIncident> {
    let lengths = &situation.actors.queue_lengths;
    let (Some(first), Some(last)) = (lengths.first(), lengths.last()) else {
        return Vec::new();
    };
    let has_grown = lengths.windows(2).all(|pair| pair[0] < pair[1]);
    // While calls are blocked, no run ends, so the queue grows for a known reason.
    if lengths.len() <= GROWING_MINUTES
        || !has_grown
        || *last < QUEUE_MIN
        || situation.authority.has_held_runs
    {
        return Vec::new();
    }
    let summary = format!(
        "{last} runs are due and wait, {} more than {GROWING_MINUTES} minutes ago: fewer end than come.",
        last - first
    );
    vec![FoundIncident::new(*last, summary)]
}

pub(super) const WORK_QUARANTINED: IncidentKind = IncidentKind {
    name: "work-quarantined",
    severity: Severity::Page,
    title: "Work is in quarantine",
    effect: "This work does not go on; its neighbours do.",
    ends: "When an operator replays or drops it. What only crashes put there is tried again by itself.",
    to_do: "Report the panic, then replay the work with a version that is mended.",
    look_at: "`/ops/quarantine`: what it is, whose it is, and the panic. \
              [Work that crashes the process](#work-that-crashes-the-process) says more.",
    page: "/console/quarantine?state=kept",
    find: find_work_quarantined,
};

fn find_work_quarantined(situation: &Situation) -> Vec<FoundIncident> {
    quarantine_findings(situation, |kind| kind != WorkKind::Task)
}

pub(super) const TASKS_QUARANTINED: IncidentKind = IncidentKind {
    name: "tasks-quarantined",
    severity: Severity::Warning,
    title: "Background tasks are in quarantine",
    effect: "They are tried more and more seldom, because processes crashed on them.",
    ends: "By itself, when the task succeeds.",
    to_do: "Report the crash.",
    look_at: "`/ops/quarantine?kind=task`. \
              [Work that crashes the process](#work-that-crashes-the-process) says more.",
    page: "/console/quarantine?state=kept",
    find: find_tasks_quarantined,
};

fn find_tasks_quarantined(situation: &Situation) -> Vec<FoundIncident> {
    quarantine_findings(situation, |kind| kind == WorkKind::Task)
}

fn quarantine_findings(
    situation: &Situation,
    is_meant: impl Fn(WorkKind) -> bool,
) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
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
                let finding = FoundIncident::new(group.count, summary).caused_by(kind.as_str());
                match kind {
                    // A task has only the time of its next attempt, which does not tell when the incident began.
                    WorkKind::Task => finding.until(group.since.filter(|at| *at > situation.now)),
                    _ => finding.since(group.since),
                }
            })
            .collect()
    })
}

pub(super) const DOCUMENTS_REFUSED: IncidentKind = IncidentKind {
    name: "documents-refused",
    severity: Severity::Warning,
    title: "The authority refuses many documents of a taxpayer",
    effect: "What was refused is not signed, transmitted or reported. The taxpayer is told of each.",
    ends: "An hour after the last refusal.",
    to_do: "If the reason is the same each time, tell the taxpayer or its integrator.",
    look_at: "`/ops/pipeline/runs?state=refused`: the sentence of the authority in `last_error`.",
    page: "/console/runs?state=refused",
    find: find_documents_refused,
};

fn find_documents_refused(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        let many = work
            .taxpayer_refusals
            .iter()
            .filter(|one| one.refusals >= REFUSALS_MIN);
        let many: Vec<_> = many.collect();
        let Some(worst) = many.first() else {
            return Vec::new();
        };
        let refusals = many.iter().map(|one| one.refusals).sum();
        let documents = count_phrase(refusals, "document", "documents");
        // The reason is known only for the taxpayer with the most refusals.
        let reason = match worst.reason.trim() {
            "" => "it names no reason.".to_owned(),
            reason => end_sentence(reason),
        };
        let summary = match many.len() {
            1 => format!(
                "The authority refused {documents} of taxpayer {} within an hour. The last one: {reason}",
                worst.taxpayer
            ),
            taxpayers => format!(
                "The authority refused {documents} of {} within an hour, {} of them of taxpayer {}. The last one of \
                 taxpayer {}: {reason}",
                taxpayer_count_words(taxpayers),
                worst.refusals,
                worst.taxpayer,
                worst.taxpayer
            ),
        };
        let last = many.iter().map(|one| one.last).max();
        let ends = last.and_then(|last| last.checked_add(Duration::from_hours(1)).ok());
        let finding = FoundIncident::new(refusals, summary).until(ends);
        vec![finding.blamed_on((many.len() == 1).then_some(Blame::Taxpayer))]
    })
}

pub(super) const REFUSALS_ALIKE: IncidentKind = IncidentKind {
    name: "refusals-alike",
    severity: Severity::Warning,
    title: "The authority refuses documents of many taxpayers for the same reason",
    effect: "What was refused is not signed, transmitted or reported. The taxpayers are told of each.",
    ends: "An hour after the last such refusals.",
    to_do: "Ask the authority if its rules have changed, and compare with what this service sends.",
    look_at: "`/ops/pipeline/runs?state=refused`: `last_error`, and when the first of them was refused. Numbers and \
              dates in the reason are left out.",
    page: "/console/runs?state=refused",
    find: find_shared_refusal_reason,
};

fn find_shared_refusal_reason(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        let reasons = work.refusal_reasons.iter();
        let common = reasons.filter(|reason| reason.taxpayers >= ALIKE_TAXPAYERS_MIN);
        let Some(worst) = common.max_by_key(|reason| reason.taxpayers) else {
            return Vec::new();
        };
        let summary = format!(
            "The authority refused {} of {} taxpayers within an hour for the same reason: {}",
            count_phrase(worst.documents, "document", "documents"),
            worst.taxpayers,
            end_sentence(&worst.reason)
        );
        let ends = worst.last.checked_add(Duration::from_hours(1)).ok();
        let finding = FoundIncident::new(worst.taxpayers, summary);
        vec![finding.since(Some(worst.since)).until(ends)]
    })
}

fn taxpayer_count_words(taxpayers: usize) -> String {
    count_phrase(
        u64::try_from(taxpayers).unwrap_or(u64::MAX),
        "taxpayer",
        "taxpayers",
    )
}
