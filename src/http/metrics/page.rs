//! The metrics page. All values are current, except counts from the database, which are cached for a few seconds.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use authority_client::Authority;
use database::DatabaseMetrics;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use supervision::{Counter as Count, CounterValues, Tree};

use crate::actors::durations::WorkDurations;
use crate::actors::inbound::InboundInvoices;
use crate::actors::incidents::Incidents;
use crate::actors::pipeline::measurements::RunMeasurements;
use crate::http::incidents;
use crate::http::incidents::log::IncidentReport;
use crate::http::metrics::database_counts::gauge_value;
use crate::http::metrics::families::{LabelPairs, counter, gauge};
use crate::http::metrics::{database_page, process, request_log, spans};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the metrics page with the current values.
pub(crate) async fn render_page(state: &ApiState) -> Result<String, ApiError> {
    let mut registry = Registry::with_prefix("einvoice");
    registry.register(
        "build_info",
        "1; the version and the commit of this program",
        build_info(),
    );
    state.traffic.register(&mut registry);
    register_actors(&mut registry, &state.tree);
    register_authority(&mut registry, &state.authority);
    register_inbound(&mut registry, &state.inbound);
    register_incident_counters(&mut registry, &state.delivery.incidents);
    register_durations(&mut registry, &state.delivery.durations);
    register_predictions(&mut registry, &state.pipeline.backlog.measurements);
    register_store(&mut registry, state.store.metrics());
    spans::register(&mut registry);
    request_log::register(&mut registry, &state.request_log);
    let report = incidents::current_report(state).await;
    let help = "1 unless the database is silent or takes no write";
    let is_up = state.health.database_fault().is_none();
    registry.register("database_up", help, gauge(is_up.into()));
    register_current_incidents(&mut registry, &report);
    if let Some(counts) = state.database_counts.last_counts() {
        let holds = state.pipeline.backlog.holds();
        database_page::register(&mut registry, &counts, &holds, state.now());
    }
    let mut text = String::new();
    encode_registry(&mut text, &registry).map_err(ApiError::internal)?;
    let mut unprefixed = Registry::default();
    process::register(&mut unprefixed);
    encode_registry(&mut text, &unprefixed).map_err(ApiError::internal)?;
    encode_eof(&mut text).map_err(ApiError::internal)?;
    Ok(text)
}

fn register_actors(registry: &mut Registry, tree: &Tree) {
    let gauges = Family::<LabelPairs, Gauge>::default();
    let depths = Family::<LabelPairs, Gauge>::default();
    let mut longest_waits = BTreeMap::<String, u64>::new();
    for group in tree.snapshot(0).groups {
        let depth = i64::try_from(group.mailbox_depth).unwrap_or(i64::MAX);
        depths
            .get_or_create(&vec![("kind", group.kind.clone())])
            .inc_by(depth);
        for (state, count) in group.states {
            let labels = vec![
                ("kind", group.kind.clone()),
                ("state", format!("{state:?}").to_lowercase()),
            ];
            gauges
                .get_or_create(&labels)
                .inc_by(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let longest = longest_waits.entry(group.kind).or_default();
        *longest = group.oldest_wait_us.max(*longest);
    }
    registry.register("actors", "Actors by kind and state", gauges);
    registry.register(
        "actor_mailbox_depth",
        "Commands in the queues of actors",
        depths,
    );
    let waits = Family::<LabelPairs, Gauge<f64, AtomicU64>>::default();
    for (kind, longest_us) in longest_waits {
        waits
            .get_or_create(&vec![("kind", kind)])
            .set(Duration::from_micros(longest_us).as_secs_f64());
    }
    let help = "How long the command has waited that waits longest now";
    registry.register("actor_oldest_wait_seconds", help, waits);
    let counters = tree.counters().snapshot();
    for (name, help, value) in supervision_counters(&counters) {
        registry.register(name, help, counter(value));
    }
    let by_kind = &tree.counters().by_kind;
    registry.register(
        "actor_restarts",
        "Restarts after a panic",
        by_kind.restarts.clone(),
    );
    let help = "Time from the admission of a command to the start of its batch";
    registry.register("command_wait_seconds", help, by_kind.waits.clone());
    let help = "Time that the batch of a command took";
    registry.register("command_duration_seconds", help, by_kind.durations.clone());
    registry.register(
        "command_batch_size",
        "Commands in one batch",
        by_kind.batch_sizes.clone(),
    );
    let depth = Gauge::<i64>::default();
    depth.set(i64::try_from(counters.queue_depth).unwrap_or(i64::MAX));
    registry.register(
        "commands_in_flight",
        "Commands admitted and not yet answered",
        depth,
    );
}

fn supervision_counters(counters: &CounterValues) -> [(&'static str, &'static str, u64); 13] {
    [
        ("actors_started", "Actors started", counters.actors_started),
        (
            "actors_passivated",
            "Idle actors put to rest",
            counters.actors_passivated,
        ),
        ("actor_panics", "Panics of actors", counters.panics),
        (
            "actor_escalations",
            "Actors that gave up",
            counters.escalations,
        ),
        (
            "actors_stuck",
            "Batches found running for too long",
            counters.stuck,
        ),
        (
            "commands_admitted",
            "Commands admitted",
            counters.commands_admitted,
        ),
        (
            "commands_refused_key",
            "Commands refused, one key being busy",
            counters.commands_refused_key,
        ),
        (
            "commands_refused_process",
            "Commands refused, the process being busy",
            counters.commands_refused_process,
        ),
        (
            "commands_answered",
            "Commands answered",
            counters.commands_answered,
        ),
        (
            "commands_interrupted",
            "Commands whose end is unknown",
            counters.commands_interrupted,
        ),
        (
            "commands_quarantined",
            "Commands put aside after two panics",
            counters.commands_quarantined,
        ),
        (
            "commands_resent",
            "Commands given back and sent again",
            counters.commands_resent,
        ),
        (
            "commands_stopped",
            "Commands given back until the sender gave up",
            counters.commands_stopped,
        ),
    ]
}

/// Registers a gauge for each kind of incident. The gauge has one series for each current cause.
fn register_current_incidents(registry: &mut Registry, report: &IncidentReport) {
    let gauges = Family::<LabelPairs, Gauge>::default();
    for incident in &report.incidents {
        let labels = vec![
            ("incident", incident.kind.name.to_owned()),
            ("severity", incident.kind.severity.to_string()),
            ("cause", incident.finding.cause.clone()),
        ];
        gauges
            .get_or_create(&labels)
            .set(gauge_value(incident.finding.count.max(1)));
    }
    let help = "How much is concerned, for each incident that is the matter now";
    registry.register("incident", help, gauges);
}

fn register_incident_counters(registry: &mut Registry, incidents: &Incidents) {
    let runs = [
        ("given_up", &incidents.runs_given_up),
        ("quarantined", &incidents.runs_quarantined),
    ];
    let deliveries = [
        ("given_up", &incidents.deliveries_given_up),
        ("aborted", &incidents.deliveries_aborted),
        ("quarantined", &incidents.deliveries_quarantined),
    ];
    registry.register(
        "runs_paused",
        "Runs paused for an operator",
        counts_by_reason(&runs),
    );
    registry.register(
        "dead_letters",
        "Deliveries that became dead letters",
        counts_by_reason(&deliveries),
    );
    let parked = incidents.endpoints_parked.get();
    let disabled = incidents.endpoints_disabled.get();
    registry.register(
        "endpoints_parked",
        "Endpoints parked since they only fail",
        counter(parked),
    );
    registry.register(
        "endpoints_disabled",
        "Endpoints put out of service",
        counter(disabled),
    );
}

fn counts_by_reason(counts: &[(&'static str, &Count)]) -> Family<LabelPairs, Counter> {
    let family = Family::<LabelPairs, Counter>::default();
    for (reason, count) in counts {
        family
            .get_or_create(&vec![("reason", (*reason).to_owned())])
            .inc_by(count.get());
    }
    family
}

fn register_authority(registry: &mut Registry, authority: &Authority) {
    let calls = Family::<LabelPairs, Counter>::default();
    for stats in authority.call_stats() {
        let labels = vec![
            ("operation", stats.operation.name().to_owned()),
            ("outcome", stats.outcome.name().to_owned()),
        ];
        calls.get_or_create(&labels).inc_by(stats.calls);
    }
    registry.register("authority_calls", "Calls to the authority", calls);
    let failures = Family::<LabelPairs, Counter>::default();
    for (cause, count) in authority.failure_causes() {
        let labels = vec![("cause", cause.name().to_owned())];
        failures.get_or_create(&labels).inc_by(count);
    }
    let help = "Calls to the authority that failed, by cause";
    registry.register("authority_failures", help, failures);
    let help = "Duration of the calls to the authority that were made";
    registry.register(
        "authority_call_duration_seconds",
        help,
        authority.call_durations(),
    );
    let states = Family::<LabelPairs, Gauge>::default();
    let openings = Family::<LabelPairs, Counter>::default();
    for breaker in authority.breakers() {
        let operation = ("operation", breaker.operation.name().to_owned());
        openings
            .get_or_create(&vec![operation.clone()])
            .inc_by(breaker.openings);
        states
            .get_or_create(&vec![operation, ("state", breaker.state.name().to_owned())])
            .set(1);
    }
    registry.register(
        "authority_breaker_state",
        "1 for the state a breaker is in",
        states,
    );
    registry.register(
        "authority_breaker_openings",
        "How often a breaker opened",
        openings,
    );
    register_call_limits(registry, authority);
}

fn register_call_limits(registry: &mut Registry, authority: &Authority) {
    let gauges = [(); 3].map(|()| Family::<LabelPairs, Gauge>::default());
    let [limit, in_flight, waiting] = &gauges;
    for view in authority.call_limits() {
        let operation = vec![("operation", view.operation.name().to_owned())];
        limit.get_or_create(&operation).set(i64::from(view.limit));
        in_flight
            .get_or_create(&operation)
            .set(i64::from(view.in_flight));
        waiting
            .get_or_create(&operation)
            .set(i64::try_from(view.waiting).unwrap_or(i64::MAX));
    }
    let [limit, in_flight, waiting] = gauges;
    registry.register(
        "authority_call_limit",
        "Calls that may be under way at a time",
        limit,
    );
    registry.register(
        "authority_calls_in_flight",
        "Calls that are under way",
        in_flight,
    );
    registry.register(
        "authority_calls_waiting",
        "Calls that wait for their turn",
        waiting,
    );
}

/// Returns the metric whose labels are the version and the commit, which build.rs finds.
fn build_info() -> Family<LabelPairs, Gauge> {
    let family = Family::<LabelPairs, Gauge>::default();
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("commit", env!("EINVOICE_COMMIT").to_owned()),
    ];
    family.get_or_create(&labels).set(1);
    family
}

fn register_durations(registry: &mut Registry, durations: &WorkDurations) {
    let help = "Duration of attempts at deliveries, by outcome";
    registry.register(
        "webhook_attempt_duration_seconds",
        help,
        durations.attempts.clone(),
    );
    let help = "Time from the submission of an invoice to its signature";
    registry.register("signature_seconds", help, durations.signatures.clone());
}

fn register_predictions(registry: &mut Registry, measurements: &RunMeasurements) {
    let help = "Error of the predicted ends of runs, relative to the time that the run then took";
    registry.register(
        "prediction_error_ratio",
        help,
        measurements.prediction_errors.clone(),
    );
}

fn register_store(registry: &mut Registry, metrics: &DatabaseMetrics) {
    let DatabaseMetrics {
        read_waits,
        write_waits,
        group_sizes,
        transaction_commands,
    } = metrics.clone();
    registry.register(
        "database_read_wait_seconds",
        "Time that queries wait for a connection",
        read_waits.durations,
    );
    registry.register(
        "database_slow_read_waits",
        "Queries that waited for a connection for more than a second",
        read_waits.slow,
    );
    registry.register(
        "database_write_wait_seconds",
        "Time until a write transaction starts",
        write_waits,
    );
    let help = "Write transactions that share a commit, on SQLite";
    registry.register("database_commit_group_size", help, group_sizes);
    let help = "Commands that a transaction executes, of all taxpayers";
    registry.register("database_transaction_commands", help, transaction_commands);
}

fn register_inbound(registry: &mut Registry, inbound: &InboundInvoices) {
    let help = "Invoices of suppliers that were withheld from unverified buyers";
    registry.register(
        "inbound_withheld",
        help,
        counter(inbound.withheld_invoice_count()),
    );
}
