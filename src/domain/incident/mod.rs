//! Incidents: situations that an operator may have to know about or act on. One table describes each kind of incident:
//! its condition, its effect, its end, and the action to take. The overview, `GET /ops/incidents`, the metrics, the
//! alert rules and the runbook are all made from this table, so they always agree.
//!
//! | Concept | File |
//! |---|---|
//! | the table: the order of the rows | `table` |
//! | the facts that the conditions check | `situation` |
//! | the rows, each with its condition | `work`, `pauses`, `webhooks`, `ledger`, `periodic`, `authority`, `calls`, `process`, `replicas` |
//! | the operations at which the authority is slow, until they are quick again | `slow_operations` |
//! | the incidents of one replica, as the others show them | `told` |
//! | when two refusals have the same reason | `refusal_reason` |
//! | the alert rules and the runbook, which a test writes | `document_tests` |

mod authority;
mod calls;
#[cfg(test)]
mod document_tests;
mod ledger;
mod pauses;
mod periodic;
mod process;
mod refusal_reason;
mod replicas;
mod situation;
mod slow_operations;
mod table;
#[cfg(test)]
mod tests;
mod told;
mod webhooks;
mod work;

use jiff::Timestamp;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::upstream::Blame;

#[cfg(test)]
pub(crate) use authority::{SOME_CALLS, SOME_REPLICAS};
pub use pauses::PAUSED_NAMED_MAX;
pub use refusal_reason::reason_pattern;
pub use situation::{
    ActorFacts, AuthorityFacts, CallFacts, CountAndOldest, DatabaseFacts, DatabaseFault,
    ParkedEndpoints, PeriodicWork, ProcessUsage, RefusalReason, Situation, TaxpayerRefusals,
    TrafficFacts, WorkFacts,
};
pub use slow_operations::SlowOperations;
pub use table::INCIDENTS;
#[cfg(test)]
pub(crate) use tests::CASES;
pub use told::{told_incidents, with_told_incidents};

words! {
    /// The urgency of an incident: a page wakes an operator, a warning waits until an operator looks, a notice calls
    /// nobody.
    Severity { Page = "page", Warning = "warning", Notice = "notice" }
}

/// A kind of incident: a row of the table. The texts are complete sentences, because pages, API responses and documents
/// show them unchanged.
#[derive(Debug)]
pub struct IncidentKind {
    /// The name in the API, in metrics and in links, such as `runs-paused`.
    pub name: &'static str,
    pub severity: Severity,
    pub title: &'static str,
    /// The work that waits or is at risk during the incident.
    pub effect: &'static str,
    pub ends: &'static str,
    pub to_do: &'static str,
    /// The places to look at, as Markdown for the runbook.
    pub look_at: &'static str,
    /// The page of the console that shows details.
    pub page: &'static str,
    /// Returns one finding for each cause of this incident in a situation; none if there is no incident.
    pub find: fn(&Situation) -> Vec<FoundIncident>,
}

/// An incident that the condition of its kind found, with one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundIncident {
    /// The cause: a word from a small set, such as `timed_out`; empty if the kind has only one cause.
    pub cause: String,
    /// A sentence for operators that describes the incident, with numbers.
    pub summary: String,
    pub count: u64,
    /// The party to blame, if the facts show it.
    pub blame: Option<Blame>,
    /// The time at which the incident began, if the data shows it.
    pub since: Option<Timestamp>,
    /// True if `since` is not the beginning, but only a time at which the incident was seen.
    pub is_since_first_sight: bool,
    /// The time at which the incident ends by itself, or of the next attempt, if it is known.
    pub until: Option<Timestamp>,
}

/// An incident that is present now.
#[derive(Debug, Clone)]
pub struct Incident {
    pub kind: &'static IncidentKind,
    pub finding: FoundIncident,
    /// The time at which the incident began, or at which it was first seen.
    pub since: Timestamp,
    /// True if `since` is only the time at which this process, or a comparison with the ledger, first saw the incident.
    pub is_since_first_sight: bool,
}

impl FoundIncident {
    fn new(count: u64, summary: impl Into<String>) -> Self {
        Self {
            cause: String::new(),
            summary: summary.into(),
            count,
            blame: None,
            since: None,
            is_since_first_sight: false,
            until: None,
        }
    }

    fn caused_by(self, cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            ..self
        }
    }

    fn blamed_on(self, blame: impl Into<Option<Blame>>) -> Self {
        Self {
            blame: blame.into(),
            ..self
        }
    }

    fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    /// Marks `since` as the time at which the incident was first seen. It may have begun earlier.
    fn since_first_sight(self) -> Self {
        Self {
            is_since_first_sight: true,
            ..self
        }
    }

    fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }
}

/// The kinds that are one incident whatever their cause, which may change while the incident lasts.
const CHANGING_CAUSES: [&str; 3] = ["database-silent", "authority-refuses-key", "authority-out"];

impl IncidentKind {
    /// True if another cause does not begin another incident.
    #[must_use]
    pub fn may_change_cause(&self) -> bool {
        CHANGING_CAUSES.contains(&self.name)
    }

    /// Returns the words before the time of a finding's `until`, which say what happens then.
    #[must_use]
    pub fn words_before_until(&self) -> &'static str {
        match self.name {
            "documents-refused" | "refusals-alike" => "That is at",
            "deadlines-near" => "The next deadline is at",
            "tasks-quarantined" => "The next attempt is made at",
            "authority-throttles" => "The authority may be called again at",
            _ => "The next probe is made at",
        }
    }
}

/// Ends a text with a full stop, unless it ends like a sentence already. The text may be the authority's.
fn end_sentence(text: &str) -> String {
    let text = text.trim().trim_end_matches('.').trim_end();
    if text.ends_with(['!', '?']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// Returns a count with its noun, such as `1 run` or `2 runs`.
fn count_phrase(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}
