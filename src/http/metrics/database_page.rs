//! The values of the metrics page that are counted in the database. All replicas show the same values.

use jiff::Timestamp;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::actors::pipeline::run_holds::{HeldRuns, RunHolds};
use crate::domain::pipeline::waiting::RunHold;
use crate::domain::pipeline::{RunState, WaitReason};
use crate::http::metrics::database_counts::DatabaseCounts;
use crate::http::metrics::database_counts::gauge_value;
use crate::http::metrics::families::{LabelPairs, gauge};

/// The states of a run that has not ended. Each state has a time series even if no run is in it.
const UNFINISHED_STATES: [RunState; 3] = [RunState::Running, RunState::Waiting, RunState::Paused];

pub(super) fn register(
    registry: &mut Registry,
    counts: &DatabaseCounts,
    holds: &RunHolds,
    now: Timestamp,
) {
    register_runs(registry, counts, now);
    register_held_runs(registry, holds.count(&counts.due_runs));
    register_deliveries(registry, counts);
    register_lanes(registry, counts);
    let help = "1 while the authority is out, as any replica sees it";
    registry.register(
        "authority_outage",
        help,
        gauge(counts.is_outage_open().into()),
    );
    let gauges = Family::<LabelPairs, Gauge>::default();
    for (status, count) in &counts.verifications {
        gauges
            .get_or_create(&vec![("verification", status.to_string())])
            .set(*count);
    }
    registry.register(
        "taxpayers",
        "Taxpayers, by how far their verification has come",
        gauges,
    );
    let findings = Family::<LabelPairs, Gauge>::default();
    for (kind, group) in &counts.work.differences {
        findings
            .get_or_create(&vec![("kind", kind.clone())])
            .set(gauge_value(group.count));
    }
    let help = "Differences from the authority's ledger that are left to an operator";
    registry.register("reconciliation_findings", help, findings);
    let age = |since: Timestamp| gauge(now.duration_since(since).as_secs());
    if let Some(ended) = counts.work.reconciled_at {
        registry.register(
            "reconciliation_age_seconds",
            "Time since a day was last compared",
            age(ended),
        );
    }
    if let Some(oldest) = counts.work.oldest_list_fetched_at {
        registry.register(
            "catalog_age_seconds",
            "Age of the oldest reference list",
            age(oldest),
        );
    }
}

fn register_runs(registry: &mut Registry, counts: &DatabaseCounts, now: Timestamp) {
    let runs = Family::<LabelPairs, Gauge>::default();
    let oldest = Family::<LabelPairs, Gauge>::default();
    for state in UNFINISHED_STATES {
        let labels = vec![("state", state.to_string())];
        let (count, since) = counts.count_runs_and_oldest(state);
        runs.get_or_create(&labels).set(count);
        let age = since.map_or(0, |since| now.duration_since(since).as_secs().max(0));
        oldest.get_or_create(&labels).set(age);
    }
    registry.register("runs", "Pipeline runs that have not ended, by state", runs);
    registry.register(
        "runs_oldest_seconds",
        "Age of the oldest run in a state",
        oldest,
    );
    let waiting = Family::<LabelPairs, Gauge>::default();
    for reason in WaitReason::ALL {
        let groups = counts
            .runs
            .iter()
            .filter(|group| group.wait_reason == Some(*reason));
        let count = groups.map(|group| group.runs).sum();
        waiting
            .get_or_create(&vec![("reason", reason.to_string())])
            .set(count);
    }
    registry.register(
        "runs_waiting",
        "Pipeline runs that wait, by what their last call met",
        waiting,
    );
    let help = "Submissions that have not ended and have missed their legal deadlines";
    registry.register(
        "deadlines_overdue",
        help,
        gauge(gauge_value(counts.work.overdue.count)),
    );
    let help = "Submissions that have not ended and reach their legal deadlines within an hour";
    registry.register(
        "deadlines_due_soon",
        help,
        gauge(gauge_value(counts.work.due_soon)),
    );
}

fn register_held_runs(registry: &mut Registry, runs: HeldRuns) {
    let gauges = Family::<LabelPairs, Gauge>::default();
    for hold in RunHold::ALL {
        gauges
            .get_or_create(&vec![("reason", hold.to_string())])
            .set(gauge_value(runs.held_for_reason(*hold)));
    }
    let help = "Runs that are due and not taken although workers are free, by what holds them back";
    registry.register("runs_held", help, gauges);
}

fn register_deliveries(registry: &mut Registry, counts: &DatabaseCounts) {
    registry.register(
        "deliveries_pending",
        "Deliveries that wait",
        gauge(counts.deliveries_pending),
    );
    let help = "Dead letters that are stored: deliveries that are not retried";
    registry.register("deliveries_dead", help, gauge(counts.deliveries_dead));
    let quarantined = Family::<LabelPairs, Gauge>::default();
    for (kind, group) in &counts.work.quarantined {
        quarantined
            .get_or_create(&vec![("kind", kind.to_string())])
            .set(gauge_value(group.count));
    }
    let help = "Work in quarantine, because it panicked twice or was in flight at three crashes";
    registry.register("quarantined", help, quarantined);
    let endpoints = Family::<LabelPairs, Gauge>::default();
    for (health, count) in &counts.endpoints {
        endpoints
            .get_or_create(&vec![("health", health.to_string())])
            .set(*count);
    }
    registry.register("endpoints", "Webhook endpoints by health", endpoints);
}

fn register_lanes(registry: &mut Registry, counts: &DatabaseCounts) {
    let due = Family::<LabelPairs, Gauge>::default();
    let leased = Family::<LabelPairs, Gauge>::default();
    for lane in &counts.lanes {
        let labels = vec![("kind", lane.kind.as_str().to_owned())];
        due.get_or_create(&labels).set(lane.due);
        leased.get_or_create(&labels).set(lane.leased);
    }
    registry.register("lanes_due", "Lanes with work that is due", due);
    registry.register("lanes_leased", "Lanes that a replica works on", leased);
}
