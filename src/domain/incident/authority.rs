//! Incidents of the authority, and of our own connection to it. A refused key and a failed TLS handshake are ours: the
//! authority is not out, and waiting does not help.

use std::time::Duration;

use crate::domain::incident::situation::{AuthorityFacts, Situation};
use crate::domain::incident::{Finding, count_phrase};
use crate::domain::kernel::upstream::{Blame, UpstreamCause};

/// The authority is slow if the answers of an operation take longer than this in the mean.
const SLOW_AFTER: Duration = Duration::from_secs(2);
/// So many deliveries to receivers that cannot be reached say that the network is ours, if none is reached.
const UNREACHABLE_MIN: u64 = 3;
/// So many answers make a mean.
const ANSWERS_MIN: u64 = 3;

pub(super) fn authority_out(situation: &Situation) -> Vec<Finding> {
    let facts = &situation.authority;
    let since = situation.work.as_ref().and_then(|work| work.outage_since);
    if since.is_none() && facts.held_operations.is_empty() && !facts.is_silent {
        return Vec::new();
    }
    let causes = facts.last_causes.iter().map(|(_, cause)| *cause);
    let upstream = causes.clone().find(|cause| !cause.is_ours());
    if upstream.is_none() && causes.clone().next().is_some() {
        return Vec::new();
    }
    let answers = facts.calls.iter().any(|calls| calls.answered > 0);
    let (cause, summary) = match upstream {
        _ if facts.held_operations.is_empty() && answers => (
            "recovering",
            "The authority answers again. The outage ends when no call has failed for a while.".to_owned(),
        ),
        Some(cause) => (
            cause.as_str(),
            format!("The authority is out: {}.", cause.explanation()),
        ),
        None if facts.is_silent => (
            "probe",
            "The authority does not answer: the last health probes failed.".to_owned(),
        ),
        None if facts.held_operations.is_empty() => (
            "unknown",
            "The authority is out, as another replica saw it; this one made no call within a minute.".to_owned(),
        ),
        None => (
            "unknown",
            "The authority is out. No call is made now but probes.".to_owned(),
        ),
    };
    let held = u64::try_from(facts.held_operations.len()).unwrap_or(u64::MAX);
    let blame = outage_blame(facts, upstream);
    let summary = match blame {
        Blame::OurNetwork => format!("{summary} {}", blame.sentence()),
        _ => summary,
    };
    vec![
        Finding::new(held.max(1), summary)
            .caused_by(cause)
            .blamed_on(blame)
            .since(since)
            .until(facts.next_probe_at),
    ]
}

/// Returns whose fault an outage is: ours if no receiver of webhooks can be reached either.
fn outage_blame(facts: &AuthorityFacts, cause: Option<UpstreamCause>) -> Blame {
    let is_unreached = facts.is_silent || cause == Some(UpstreamCause::Connect);
    let is_cut_off = facts.receivers_reached == 0 && facts.receivers_unreachable >= UNREACHABLE_MIN;
    if is_unreached && is_cut_off {
        Blame::OurNetwork
    } else {
        Blame::Authority
    }
}

pub(super) fn authority_refuses_key(situation: &Situation) -> Vec<Finding> {
    own_fault(
        situation,
        UpstreamCause::Credentials,
        "The authority does not accept this service's key",
    )
    .into_iter()
    .map(|finding| finding.blamed_on(Blame::OurKey))
    .collect()
}

pub(super) fn authority_tls(situation: &Situation) -> Vec<Finding> {
    own_fault(
        situation,
        UpstreamCause::Tls,
        "The authority's certificate is not accepted here",
    )
}

/// Returns a finding if the last calls of operations failed for a cause that is on our side.
fn own_fault(situation: &Situation, cause: UpstreamCause, sentence: &str) -> Vec<Finding> {
    let facts = &situation.authority;
    let failing = facts.last_causes.iter().filter(|(_, last)| *last == cause);
    let failing: Vec<_> = failing.map(|(operation, _)| *operation).collect();
    if failing.is_empty() {
        return Vec::new();
    }
    let summary = format!("{sentence}, at the last calls to {}.", failing.join(", "));
    let count = u64::try_from(failing.len()).unwrap_or(u64::MAX);
    vec![Finding::new(count, summary).until(facts.next_probe_at)]
}

pub(super) fn authority_slow(situation: &Situation) -> Vec<Finding> {
    let calls = situation.authority.calls.iter();
    let slow = calls.filter(|calls| calls.answered >= ANSWERS_MIN && calls.mean >= SLOW_AFTER);
    slow.map(|calls| {
        let summary = format!(
            "The authority takes {:.1} s to answer a call to {}, in the mean of the last {}.",
            calls.mean.as_secs_f64(),
            calls.operation,
            calls.answered
        );
        Finding::new(calls.answered, summary)
            .caused_by(calls.operation)
            .blamed_on(Blame::Authority)
    })
    .collect()
}

pub(super) fn authority_throttles(situation: &Situation) -> Vec<Finding> {
    match situation.authority.throttled_calls {
        0 => Vec::new(),
        throttled => {
            let calls = count_phrase(throttled, "call was", "calls were");
            let summary = format!(
                "The authority asks to be called less often: {calls} refused for it a moment ago."
            );
            vec![Finding::new(throttled, summary)]
        }
    }
}

pub(super) fn authority_limit_low(situation: &Situation) -> Vec<Finding> {
    let limited = &situation.authority.limited_operations;
    limited
        .iter()
        .map(|(operation, limit, waiting)| {
            let summary = format!(
                "Calls to {operation} wait: {waiting} for a place among {limit}, which is less than half of what it \
                 was, because answers took longer or failed."
            );
            Finding::new(u64::try_from(*waiting).unwrap_or(u64::MAX), summary).caused_by(*operation)
        })
        .collect()
}

pub(super) fn breaker_tripped(situation: &Situation) -> Vec<Finding> {
    let tripped = &situation.authority.tripped_operations;
    tripped
        .iter()
        .map(|operation| {
            Finding::new(
                1,
                format!("An operator holds back all calls to {operation}."),
            )
            .caused_by(*operation)
        })
        .collect()
}
