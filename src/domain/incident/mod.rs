//! Incidents: what an operator may have to know or do. One table says of each kind when there is one, what waits, how it
//! ends and what to do. The overview, `GET /ops/incidents`, the metrics, the alert rules and the runbook are made from
//! this table, so that they cannot differ.
//!
//! | Concept | File |
//! |---|---|
//! | the table | `table` |
//! | what the conditions look at | `situation` |
//! | the conditions | `work`, `periodic`, `authority`, `process`, `replicas` |
//! | when two refusals have the same reason | `refusal_reason` |
//! | the alert rules and the runbook, which a test writes | `document_tests` |

mod authority;
#[cfg(test)]
mod document_tests;
mod periodic;
mod process;
mod refusal_reason;
mod replicas;
mod situation;
mod table;
#[cfg(test)]
mod tests;
mod work;

use jiff::Timestamp;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::upstream::Blame;

pub use refusal_reason::reason_pattern;
pub use situation::{
    ActorFacts, AuthorityFacts, CallFacts, DatabaseFacts, DatabaseFault, Group, ParkedEndpoints,
    ProcessFacts, RefusalReason, RefusedTaxpayer, Repetition, Situation, TrafficFacts, WorkFacts,
};
pub use table::INCIDENTS;

words! {
    /// Whom an incident calls: a page wakes somebody, a warning waits until somebody looks, a notice calls nobody.
    Severity { Page = "page", Warning = "warning", Notice = "notice" }
}

/// A kind of incident: a row of the table. All texts are sentences, which pages, answers and documents show unchanged.
#[derive(Debug)]
pub struct IncidentKind {
    /// The name on the wire, in metrics and in links, such as `runs-paused`.
    pub name: &'static str,
    pub severity: Severity,
    pub title: &'static str,
    /// What waits, or is at risk, while it lasts.
    pub effect: &'static str,
    pub ends: &'static str,
    pub to_do: &'static str,
    /// Where to look, for the runbook: Markdown.
    pub look_at: &'static str,
    /// The page of the console that shows more.
    pub page: &'static str,
    /// Returns the cases of this incident in a situation, one for each cause.
    pub find: fn(&Situation) -> Vec<Finding>,
}

/// A case of an incident that the condition found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A word from a small set, such as `timed_out`; empty if the kind has only one cause.
    pub cause: String,
    /// The sentence that says what is the matter, with numbers.
    pub summary: String,
    pub count: u64,
    /// Whose fault it is, if the facts show it.
    pub blame: Option<Blame>,
    /// When it began, if the data shows it.
    pub since: Option<Timestamp>,
    /// When it ends by itself, or when the next try is made, if that is known.
    pub until: Option<Timestamp>,
}

/// A case of an incident that is the matter now.
#[derive(Debug, Clone)]
pub struct Incident {
    pub kind: &'static IncidentKind,
    pub finding: Finding,
    /// When it began, or when it was first seen.
    pub since: Timestamp,
}

impl Finding {
    fn new(count: u64, summary: impl Into<String>) -> Self {
        Self {
            cause: String::new(),
            summary: summary.into(),
            count,
            blame: None,
            since: None,
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

    fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }
}

/// Returns a count with its noun, such as `1 run` or `2 runs`.
fn count_phrase(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}
