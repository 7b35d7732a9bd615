//! Incidents of the authority, and of our own connection to it. A refused key and a failed TLS handshake are our own
//! faults: the authority is not out, and waiting does not help.

use std::collections::BTreeSet;

use crate::domain::incident::situation::{AuthorityFacts, Situation};
use crate::domain::incident::{FoundIncident, Incident, IncidentKind, Severity};
use crate::domain::kernel::upstream::{Blame, UpstreamCause};

/// If no receiver of webhooks could be reached and at least this many deliveries failed to connect, the fault is in our
/// network.
const UNREACHABLE_MIN: u64 = 3;

pub(super) const AUTHORITY_OUT: IncidentKind = IncidentKind {
    name: "authority-out",
    severity: Severity::Warning,
    title: "The authority is out",
    effect: "Invoices are accepted, and their runs wait.",
    ends: "By itself: a probe finds out when the authority answers, and then the earliest deadlines go first.",
    to_do: "Nothing here. If it lasts, call the authority.",
    look_at: "`/ops/outages` for the beginning: taxpayers that subscribed are told of each outage that is there. \
              `/ops/breakers` for the operations, and `authority_calls_total` by outcome. With cause `connect` for a \
              long time look at our own network and name server too.",
    page: "/console/breakers",
    find: find_authority_out,
};

fn find_authority_out(situation: &Situation) -> Vec<FoundIncident> {
    let facts = &situation.authority;
    let since = situation.work.as_ref().and_then(|work| work.outage_since);
    if since.is_none() && facts.held_operations.is_empty() && !facts.is_silent {
        return Vec::new();
    }
    let upstream = cause_of_held_operations(facts);
    let mut own = facts
        .last_causes
        .iter()
        .filter(|(_, cause)| cause.is_ours());
    // A probe needs no key. So a key that was refused, perhaps long ago, does not explain that the probes fail.
    let is_explained = own.any(|(_, cause)| !facts.is_silent || *cause == UpstreamCause::Tls);
    if upstream.is_none() && is_explained {
        return Vec::new();
    }
    let answers = facts.throttled_calls > 0 || facts.calls.iter().any(|calls| calls.answered > 0);
    let CauseAndSummary { cause, summary } = match upstream {
        _ if facts.held_operations.is_empty() && answers => recovery_texts(),
        Some(cause) => CauseAndSummary {
            cause: cause.as_str(),
            summary: format!("The authority is out: {}.", cause.explanation()),
        },
        None if facts.is_silent => CauseAndSummary {
            cause: "probe",
            summary: "The authority does not answer: the last health probes failed.".to_owned(),
        },
        None if facts.held_operations.is_empty() && since < facts.answered_at => recovery_texts(),
        None if facts.held_operations.is_empty() => CauseAndSummary {
            cause: "unknown",
            summary: unobserved_outage_sentence(situation),
        },
        None => CauseAndSummary {
            cause: "unknown",
            summary: "The authority is out. No call is made now but probes.".to_owned(),
        },
    };
    let held = u64::try_from(facts.held_operations.len()).unwrap_or(u64::MAX);
    let blame = outage_blame(facts, upstream);
    let sentences = [
        Some(summary.as_str()),
        (blame == Blame::OurNetwork).then(|| blame.sentence()),
        // Taxpayers are told of an outage only once it is recorded.
        since.map(|_| "Taxpayers that subscribed are told."),
    ];
    let sentences: Vec<_> = sentences.into_iter().flatten().collect();
    vec![
        FoundIncident::new(held.max(1), sentences.join(" "))
            .caused_by(cause)
            .blamed_on(blame)
            .since(since)
            .until(facts.next_probe_at),
    ]
}

/// Returns the cause for which the authority is out: that of an operation whose breaker is open. The last call of another
/// operation may have failed long ago. `None` if these breakers are open because of a fault of ours.
fn cause_of_held_operations(facts: &AuthorityFacts) -> Option<UpstreamCause> {
    let held = facts
        .last_causes
        .iter()
        .filter(|(operation, _)| facts.held_operations.contains(operation));
    held.map(|(_, cause)| *cause).find(|cause| !cause.is_ours())
}

/// The texts of a finding about an outage of the authority.
struct CauseAndSummary {
    cause: &'static str,
    summary: String,
}

/// Returns the texts for an outage that has not ended, although calls are answered again.
fn recovery_texts() -> CauseAndSummary {
    let summary =
        "The authority answers again. The outage ends when no call has failed for a while.";
    CauseAndSummary {
        cause: "recovering",
        summary: summary.to_owned(),
    }
}

/// Returns the sentence about an outage that began after the last call of this process, so that the process has seen
/// nothing of it.
fn unobserved_outage_sentence(situation: &Situation) -> String {
    let sentence = if situation.replicas.replicas.len() > 1 {
        "The authority is out, as another replica saw it; this one has made no call since."
    } else {
        "The authority was out, and this process has made no call since. The outage ends when no call has failed for a \
         while."
    };
    sentence.to_owned()
}

/// Returns who is to blame for an outage: our network, if no receiver of webhooks can be reached either.
fn outage_blame(facts: &AuthorityFacts, cause: Option<UpstreamCause>) -> Blame {
    let is_unreached = facts.is_silent || cause == Some(UpstreamCause::Connect);
    let is_cut_off = facts.receivers_reached == 0 && facts.receivers_unreachable >= UNREACHABLE_MIN;
    if is_unreached && is_cut_off {
        Blame::OurNetwork
    } else {
        Blame::Authority
    }
}

pub(super) const AUTHORITY_REFUSES_KEY: IncidentKind = IncidentKind {
    name: "authority-refuses-key",
    severity: Severity::Page,
    title: "The authority refuses our key",
    effect: "The named calls wait; taxpayers are not told of an outage, for it is ours.",
    ends: "When the authority accepts the key at such a call: somebody has to set another key, or have this one accepted.",
    to_do: "Set authority.api_key and authority.api_secret to a valid pair, and restart the replicas one by one.",
    look_at: "`authority.api_key` and `authority.api_secret` on the named replicas, and whether the authority has \
              expired or revoked them. With cause `some-replicas` the other replicas go on. With cause `some-calls` \
              no call without which invoices wait was refused so far: look whether this key may make the named calls.",
    page: "/console/breakers",
    find: find_authority_refuses_key,
};

/// The cause of a finding that concerns only some of the replicas: the service as a whole keeps working.
pub const SOME_REPLICAS: &str = "some-replicas";
/// The cause of a finding that concerns only calls that are not needed for invoices to reach the authority.
pub const SOME_CALLS: &str = "some-calls";

impl Incident {
    /// False if invoices still reach the authority, because the incident concerns only some of the replicas, or only
    /// calls that are not needed for this.
    pub fn concerns_all_invoices(&self) -> bool {
        ![SOME_REPLICAS, SOME_CALLS].contains(&self.finding.cause.as_str())
    }

    /// True if no invoice reaches the authority because of a fault of ours, which somebody has to mend.
    pub fn is_fault_of_ours(&self) -> bool {
        let ours = [AUTHORITY_REFUSES_KEY.name, AUTHORITY_TLS.name];
        ours.contains(&self.kind.name) && self.concerns_all_invoices()
    }
}

/// The operations without which no invoice reaches the authority.
const INVOICE_OPERATIONS: [&str; 3] = ["validate_irn", "validate", "sign"];

fn find_authority_refuses_key(situation: &Situation) -> Vec<FoundIncident> {
    let refused = &situation.authority.refused_keys;
    let since = refused.iter().map(|(_, key)| key.since).min();
    if since.is_none() {
        return Vec::new();
    }
    let names: Vec<_> = refused.iter().map(|(name, _)| name.as_str()).collect();
    let keys = refused.iter().map(|(_, key)| &key.operations);
    let operations: BTreeSet<_> = keys.flatten().map(String::as_str).collect();
    let operations: Vec<_> = operations.into_iter().collect();
    let concerned = names.join(", ");
    let (cause, extent) = if situation.authority.has_accepted_key {
        let extent = format!("Only the calls of {concerned} are refused.");
        (SOME_REPLICAS, extent)
    } else if operations
        .iter()
        .any(|operation| INVOICE_OPERATIONS.contains(operation))
    {
        let extent =
            format!("No invoice reaches the authority: the calls of {concerned} are refused.");
        ("", extent)
    } else {
        (SOME_CALLS, effects_without_calls(&operations))
    };
    let summary = format!(
        "The authority does not accept this service's key, at the last calls to {}. {extent}",
        operations.join(", ")
    );
    let count = u64::try_from(names.len()).unwrap_or(u64::MAX);
    vec![
        FoundIncident::new(count, summary)
            .caused_by(cause)
            .blamed_on(Blame::OurKey)
            .since(since)
            .until(situation.authority.next_probe_at),
    ]
}

/// Returns sentences that say what does not happen while these operations are refused.
fn effects_without_calls(operations: &[&str]) -> String {
    let effects: BTreeSet<_> = operations
        .iter()
        .map(|operation| effect_without_call(operation))
        .collect();
    let effects: Vec<_> = effects.into_iter().collect();
    format!(
        "No call that signs invoices was refused so far. {}",
        effects.join(" ")
    )
}

fn effect_without_call(operation: &str) -> &'static str {
    match operation {
        "pull" => "The inbox is not read: invoices of suppliers do not arrive.",
        "system_health" | "lookup" | "transmit" | "acknowledge" => {
            "Signed invoices are not transmitted."
        }
        "update_payment" => "Payments are not reported.",
        "report" => "Reports are not sent.",
        "entity" => "Taxpayers are not verified.",
        "confirm" | "search" | "download" => {
            "What the authority holds is not read: unknown outcomes and comparisons wait."
        }
        _ => "What needs these calls waits.",
    }
}

pub(super) const AUTHORITY_TLS: IncidentKind = IncidentKind {
    name: "authority-tls",
    severity: Severity::Page,
    title: "The authority's certificate is not accepted",
    effect: "No invoice reaches the authority. Runs wait; taxpayers are not told of an outage, for it may be ours.",
    ends: "When the certificate is valid, or its issuer is known here.",
    to_do: "Check the certificate, and set authority.extra_ca_file if its issuer is not a public one.",
    look_at: "`openssl s_client` to the host of `authority.base_url`: who issued the certificate, and until when it \
              is valid; `authority.extra_ca_file`; the clock of this machine.",
    page: "/console/breakers",
    find: find_authority_tls,
};

fn find_authority_tls(situation: &Situation) -> Vec<FoundIncident> {
    let facts = &situation.authority;
    let causes = facts.last_causes.iter();
    let failing = causes.filter(|(_, last)| *last == UpstreamCause::Tls);
    let failing: Vec<_> = failing.map(|(operation, _)| *operation).collect();
    if failing.is_empty() {
        return Vec::new();
    }
    let summary = format!(
        "The authority's certificate is not accepted here, at the last calls to {}.",
        failing.join(", ")
    );
    let count = u64::try_from(failing.len()).unwrap_or(u64::MAX);
    vec![FoundIncident::new(count, summary).until(facts.next_probe_at)]
}
