//! Incidents of the calls to an authority that is not out: it answers slowly or asks for fewer calls, or an operator
//! holds calls back.

use jiff::{SignedDuration, Timestamp};

use crate::domain::incident::situation::{AuthorityFacts, CallFacts, Situation};
use crate::domain::incident::slow_operations::has_slow_calls;
use crate::domain::incident::{FoundIncident, IncidentKind, Severity, count_phrase};
use crate::domain::kernel::upstream::Blame;

/// The time after a pause in which the calls that waited for its end show if the authority asks for another one.
const PAUSE_ENDED_WITHIN: SignedDuration = SignedDuration::from_secs(10);

pub(super) const AUTHORITY_SLOW: IncidentKind = IncidentKind {
    name: "authority-slow",
    severity: Severity::Warning,
    title: "The authority is slow",
    effect: "Invoices take longer to be signed.",
    ends: "By itself, after three quick answers in a row, or two minutes after the last answer.",
    to_do: "Nothing here. If it lasts, call the authority.",
    look_at: "`/ops/breakers`: `limit`, `in_flight` and `waiting` of each operation. The limit falls if our own calls \
              make the authority slow, and rises again by itself.",
    page: "/console/breakers",
    find: find_authority_slow,
};

fn find_authority_slow(situation: &Situation) -> Vec<FoundIncident> {
    let facts = &situation.authority;
    let slow = facts.calls.iter().filter(|calls| calls.is_slow());
    let still_slow = facts
        .slow_operations
        .iter()
        .filter(|calls| !has_slow_calls(&facts.calls, calls.operation));
    slow.map(slow_finding)
        .chain(still_slow.map(still_slow_finding))
        .collect()
}

fn slow_finding(calls: &CallFacts) -> FoundIncident {
    let summary = format!(
        "The authority takes {:.1} s to answer a call to {}, in the mean of the last {}.",
        calls.mean.as_secs_f64(),
        calls.operation,
        calls.answered
    );
    FoundIncident::new(calls.answered, summary)
        .caused_by(calls.operation)
        .blamed_on(Blame::Authority)
}

/// Returns the finding about an operation that was slow, and has not been quick often enough since.
fn still_slow_finding(calls: &CallFacts) -> FoundIncident {
    let summary = format!(
        "The authority took {:.1} s to answer a call to {} lately, and has not answered several in a row quickly \
         since.",
        calls.mean.as_secs_f64(),
        calls.operation
    );
    FoundIncident::new(calls.answered, summary)
        .caused_by(calls.operation)
        .blamed_on(Blame::Authority)
}

pub(super) const AUTHORITY_THROTTLES: IncidentKind = IncidentKind {
    name: "authority-throttles",
    severity: Severity::Warning,
    title: "The authority asks to be called less often",
    effect: "Calls of the throttled kinds pause for as long as the authority asks.",
    ends: "By itself, ten seconds after the last such answer and after the pause that it asked for.",
    to_do: "If it happens often, ask the authority for a higher limit.",
    look_at: "`/ops/breakers`: `held_until` of the operations that pause; \
              `authority_calls_total{outcome=\"throttled\"}`.",
    page: "/console/breakers",
    find: find_authority_throttles,
};

fn find_authority_throttles(situation: &Situation) -> Vec<FoundIncident> {
    let facts = &situation.authority;
    let Some(words) = throttling_words(facts, situation.now) else {
        return Vec::new();
    };
    let pausing = u64::try_from(facts.pauses.len()).unwrap_or(u64::MAX);
    let count = facts.throttled_calls.max(pausing).max(1);
    let summary = format!("The authority asks to be called less often: {words}.");
    let ends = facts.pauses.iter().map(|(_, until)| *until).max();
    vec![FoundIncident::new(count, summary).until(ends)]
}

/// Returns what follows from the authority's request to be called less often; `None` if it has made none lately.
fn throttling_words(facts: &AuthorityFacts, now: Timestamp) -> Option<String> {
    let pausing: Vec<_> = facts.pauses.iter().map(|(name, _)| *name).collect();
    let pausing = pausing.join(", ");
    let calls = count_phrase(facts.throttled_calls, "call was", "calls were");
    match (facts.throttled_calls, pausing.as_str()) {
        (0, "") => {
            let has_paused_lately = facts
                .paused_at
                .is_some_and(|at| now.duration_since(at).abs() < PAUSE_ENDED_WITHIN);
            has_paused_lately.then(|| "the pause that it asked for has just ended".to_owned())
        }
        (0, _) => Some(format!("for now no call is made to {pausing}")),
        (_, "") => Some(format!("{calls} refused for it a moment ago")),
        _ => Some(format!(
            "{calls} refused for it a moment ago, and for now no call is made to {pausing}"
        )),
    }
}

pub(super) const AUTHORITY_LIMIT_LOW: IncidentKind = IncidentKind {
    name: "authority-limit-low",
    severity: Severity::Warning,
    title: "Few calls at a time are made",
    effect: "Runs wait for their turn at the authority.",
    ends: "By itself: the limit rises while answers are fast.",
    to_do: "Nothing here. If it lasts, call the authority.",
    look_at: "`/ops/breakers`: `limit` and `waiting`. \
              [How many calls at a time](#how-many-calls-at-a-time) says how the limit moves.",
    page: "/console/breakers",
    find: find_authority_limit_low,
};

fn find_authority_limit_low(situation: &Situation) -> Vec<FoundIncident> {
    let limited = &situation.authority.limited_operations;
    limited
        .iter()
        .map(|(operation, limit, waiting)| {
            let summary = format!(
                "Calls to {operation} wait: {waiting} for a place among {limit}, which is at most half of what it \
                 was, because answers took longer or failed."
            );
            FoundIncident::new(u64::try_from(*waiting).unwrap_or(u64::MAX), summary).caused_by(*operation)
        })
        .collect()
}

pub(super) const BREAKER_TRIPPED: IncidentKind = IncidentKind {
    name: "breaker-tripped",
    severity: Severity::Warning,
    title: "An operator holds calls back",
    effect: "Runs that need these calls wait.",
    ends: "When an operator resets the breaker.",
    to_do: "Reset the breaker when the reason for it is gone.",
    look_at: "`/ops/audit` says who tripped it, and why.",
    page: "/console/breakers",
    find: find_breaker_tripped,
};

fn find_breaker_tripped(situation: &Situation) -> Vec<FoundIncident> {
    let tripped = &situation.authority.tripped_operations;
    tripped
        .iter()
        .map(|(operation, since)| {
            FoundIncident::new(
                1,
                format!("An operator holds back all calls to {operation}."),
            )
            .caused_by(*operation)
            .since(*since)
        })
        .collect()
}
