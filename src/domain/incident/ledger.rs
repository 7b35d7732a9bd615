//! Incidents of the authority's records: differences between its ledger and ours, and outdated reference lists.

use jiff::SignedDuration;

use crate::domain::incident::situation::{CountAndOldest, Situation};
use crate::domain::incident::work::{findings_about_work, group_finding};
use crate::domain::incident::{FoundIncident, IncidentKind, Severity, count_phrase};

/// Reference lists that were fetched longer ago than this are old, because they are fetched several times a day.
const LISTS_OLD_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// A list that was never fetched is missing if a replica runs for longer than this, because a replica fetches the lists
/// at its start and then twice a minute until it has all of them.
const LISTS_MISSING_AFTER: SignedDuration = SignedDuration::from_hours(1);

pub(super) const INVOICES_MISSING_REMOTELY: IncidentKind = IncidentKind {
    name: "invoices-missing-remotely",
    severity: Severity::Page,
    title: "The authority lacks invoices that it accepted",
    effect: "These invoices count as reported here, and not there.",
    ends: "When the day is compared again and the authority has these invoices, or when an operator decides each.",
    to_do: "Ask the authority for each invoice. When it has them, compare the day again. When it never will, decide them.",
    look_at: "`/ops/reconciliations/{id}`: what `detail` says. POST `/ops/reconciliations` compares the day again.",
    page: "/console/reconciliations?for_you=true",
    find: find_invoices_missing_remotely,
};

fn find_invoices_missing_remotely(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        let missing = work
            .differences
            .iter()
            .filter(|(kind, _)| kind == MISSING_REMOTELY);
        missing
            .filter_map(|(_, group)| {
                difference_finding(*group, |count| {
                    let invoices = count_phrase(count, "invoice", "invoices");
                    format!("The authority does not have {invoices} that it accepted.")
                })
            })
            .collect()
    })
}

/// The kind of difference in which the authority lacks an invoice that it accepted according to our records.
const MISSING_REMOTELY: &str = "missing_remotely";

pub(super) const LEDGER_DIFFERS: IncidentKind = IncidentKind {
    name: "ledger-differs",
    severity: Severity::Warning,
    title: "Our books differ from the authority's ledger",
    effect: "The service cannot repair these differences by itself.",
    ends: "When the day is compared again without a difference, or when an operator decides each.",
    to_do: "Remove the cause of each difference, and compare the day again. Decide those that nobody can remove.",
    look_at: "`/ops/reconciliations/{id}`: what `detail` says. [Reconciliation](#reconciliation) says what each \
              kind of difference means.",
    page: "/console/reconciliations?for_you=true",
    find: find_ledger_differs,
};

fn find_ledger_differs(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        let others = work
            .differences
            .iter()
            .filter(|(kind, _)| kind != MISSING_REMOTELY);
        others
            .filter_map(|(kind, group)| {
                let found = difference_finding(*group, |count| {
                    let differences = count_phrase(count, "difference", "differences");
                    format!(
                        "{differences} from the authority's ledger to decide: {}.",
                        kind.replace('_', " ")
                    )
                });
                found.map(|finding| finding.caused_by(kind.clone()))
            })
            .collect()
    })
}

/// Returns the finding about the differences of one kind; `None` if there are none. Its `since` is the time of the
/// latest comparison, which replaces the earlier ones, so the differences may be older.
fn difference_finding(
    group: CountAndOldest,
    summary: impl FnOnce(u64) -> String,
) -> Option<FoundIncident> {
    let found = group_finding(group, summary).pop();
    found.map(FoundIncident::since_first_sight)
}

pub(super) const REFERENCE_LISTS_OLD: IncidentKind = IncidentKind {
    name: "reference-lists-old",
    severity: Severity::Warning,
    title: "The authority's lists are old",
    effect: "Codes that the authority has added since are refused here. Of a list that was never fetched, any code is \
             accepted.",
    ends: "By itself, when the lists can be fetched.",
    to_do: "Look why the lists cannot be fetched.",
    look_at: "The log of the reference actor. Invoices are accepted meanwhile.",
    page: "/console/supervision",
    find: find_reference_lists_old,
};

fn find_reference_lists_old(situation: &Situation) -> Vec<FoundIncident> {
    // A paused process fetches nothing, and says so by an incident of its own.
    if situation.is_process_paused {
        return Vec::new();
    }
    findings_about_work(situation, |work| {
        let fetched = work.oldest_list_fetched_at;
        let old = fetched.filter(|at| situation.now.duration_since(*at) > LISTS_OLD_AFTER);
        let old = old.map(|at| {
            FoundIncident::new(
                1,
                "A reference list of the authority was last fetched more than a day ago.",
            )
            .since(at.checked_add(LISTS_OLD_AFTER).ok())
        });
        old.or_else(|| missing_lists_finding(situation, work.missing_lists))
            .into_iter()
            .collect()
    })
}

/// Returns the finding about lists that were never fetched, although a replica has run for long.
fn missing_lists_finding(situation: &Situation, missing: usize) -> Option<FoundIncident> {
    let replicas = situation.replicas.replicas.iter();
    let started_at = replicas.map(|replica| replica.figures.started_at).min()?;
    let since = started_at.checked_add(LISTS_MISSING_AFTER).ok()?;
    if missing == 0 || situation.now < since {
        return None;
    }
    let summary =
        "A reference list of the authority was never fetched. Any code is accepted in its place.";
    let count = u64::try_from(missing).unwrap_or(u64::MAX);
    Some(FoundIncident::new(count, summary).since(Some(since)))
}
