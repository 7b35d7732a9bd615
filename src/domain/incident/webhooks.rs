//! Incidents of webhooks: endpoints that are parked or disabled, and dead letters.

use crate::domain::events::endpoint_health::CauseWords;
use crate::domain::incident::situation::{CountAndOldest, ParkedEndpoints, Situation};
use crate::domain::incident::work::{findings_about_work, group_finding};
use crate::domain::incident::{FoundIncident, IncidentKind, Severity, count_phrase};
use crate::domain::kernel::upstream::Blame;

/// If at least this many endpoints, and all that are active, cannot be reached, the fault is in our network.
const UNREACHED_MIN: u64 = 3;
/// The maximum number of statuses that are named as the reason why endpoints are parked.
const STATUSES_NAMED_MAX: usize = 5;

pub(super) const ENDPOINTS_PARKED: IncidentKind = IncidentKind {
    name: "endpoints-parked",
    severity: Severity::Warning,
    title: "Webhook endpoints are parked",
    effect: "Their notifications wait. One at a time is sent as a probe.",
    ends: "By itself, when a probe is accepted; after webhooks.disable_after_s without a success the endpoint is disabled.",
    to_do: "If many hosts fail in the same way, look at our own network first. Otherwise tell the integrators. When a \
            receiver is well again, \"Try again now\" on the page Deliveries sends without waiting for the probe.",
    look_at: "`/ops/webhooks/endpoints?health=parked`: their `last_failure`. With `dns`, `connect` or `timed_out` \
              for all: our own network or name server. With `auth`: what the receiver answered; usually new \
              credentials with PUT `/ops/taxpayers/{id}/integration`.",
    page: "/console/deliveries",
    find: find_endpoints_parked,
};

fn find_endpoints_parked(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        let groups = work.endpoints.iter().filter(|group| group.endpoints > 0);
        groups
            .map(|group| {
                let parked = match work.endpoints_active {
                    active if active > 1 => {
                        let are = if group.endpoints == 1 { "is" } else { "are" };
                        format!("{} of {active} endpoints {are}", group.endpoints)
                    }
                    _ => count_phrase(group.endpoints, "endpoint is", "endpoints are"),
                };
                let host = match &group.host {
                    Some((host, endpoints)) if *endpoints > 1 => {
                        format!(" {endpoints} of them are at {host}.")
                    }
                    _ => String::new(),
                };
                let summary = format!("{parked} parked, because {}.{host}", cause_clause(group));
                FoundIncident::new(group.endpoints, summary)
                    .caused_by(group.failure.clone())
                    .blamed_on(parked_blame(group, work.endpoints_active))
                    .since(group.since)
                    .until(group.next_probe_at)
            })
            .collect()
    })
}

/// Returns the clause that says why these endpoints are parked, such as `they answer 500, 503`.
fn cause_clause(group: &ParkedEndpoints) -> String {
    let statuses = group.statuses.iter().take(STATUSES_NAMED_MAX);
    let statuses: Vec<_> = statuses.map(u16::to_string).collect();
    let words = if statuses.is_empty() {
        CauseWords::new(&group.failure)
    } else {
        CauseWords::new(&statuses.join(", "))
    };
    if group.endpoints == 1 {
        format!("it {}", words.one)
    } else {
        format!("they {}", words.several)
    }
}

/// Returns who is to blame for failing endpoints: our network, if none of several endpoints can be reached.
fn parked_blame(group: &ParkedEndpoints, active: u64) -> Blame {
    let is_unreached = ["dns", "connect"].contains(&group.failure.as_str());
    if is_unreached && group.endpoints >= UNREACHED_MIN && group.endpoints >= active {
        Blame::OurNetwork
    } else {
        Blame::Receiver
    }
}

pub(super) const ENDPOINTS_DISABLED: IncidentKind = IncidentKind {
    name: "endpoints-disabled",
    severity: Severity::Notice,
    title: "Webhook endpoints are disabled",
    effect: "They are sent nothing. Their owners were told.",
    ends: "When their owners or operators enable them again.",
    to_do: "Nothing, unless an integrator asks.",
    look_at: "`/ops/webhooks/endpoints?health=disabled`: `disabled_reason`. An endpoint that is enabled again can \
              replay what it missed.",
    page: "/console/deliveries",
    find: find_endpoints_disabled,
};

fn find_endpoints_disabled(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        let disabled = CountAndOldest {
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

pub(super) const DEAD_LETTERS: IncidentKind = IncidentKind {
    name: "dead-letters",
    severity: Severity::Warning,
    title: "Notifications became dead letters",
    effect: "Their receivers do not learn of these events, unless they read the feed.",
    ends: "When they are sent again, or a day after the last one.",
    to_do: "When the receivers answer again, replay the dead letters.",
    look_at: "[Dead letters](#dead-letters): `/ops/webhooks/dead-letters` with the reason of each, and how to send \
              them again.",
    page: "/console/deliveries/dead-letters",
    find: find_dead_letters,
};

fn find_dead_letters(situation: &Situation) -> Vec<FoundIncident> {
    findings_about_work(situation, |work| {
        group_finding(work.dead_letters, |count| {
            let letters = count_phrase(count, "notification", "notifications");
            format!("{letters} became dead letters within a day: no attempt is left.")
        })
    })
}
