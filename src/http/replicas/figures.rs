//! The figures that this process puts into its heartbeat. They come from memory, so they are known even if the database
//! and the authority do not answer.

use authority_client::{BreakerState, BreakerView, HeldCallers, LimitView};

use crate::domain::breaker::{BreakerCondition, BreakerFigures};
use crate::domain::incident::told_incidents;
use crate::domain::replica::{ActorTotals, ReplicaFigures};
use crate::http::metrics::process::ProcessStats;
use crate::http::replicas::actors;
use crate::http::state::ApiState;

pub(super) fn gather_figures(state: &ApiState) -> ReplicaFigures {
    let recent = state.traffic.history().recent_requests();
    ReplicaFigures {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: state.replicas.started_at(),
        is_stopping: state.stopping.is_requested(),
        not_ready: unready_reason(state),
        degraded: state.health.last_degraded_reason(),
        refused_key: state.incidents.refused_key(),
        resident_bytes: ProcessStats::read().resident_bytes,
        clock_ahead_ms: state.replicas.clock_ahead_ms(),
        requests: recent.requests,
        p99_us: recent.p99_us,
        runs_ended: state.pipeline.backlog.measurements.recent_ends.recent(),
        delivery_attempts: state.delivery.durations.recent_attempts.recent(),
        actors: actor_totals(state),
        incidents: told_incidents(&state.incidents.last_report().incidents),
        worst_actors: actors::local_worst_actors(&state.tree),
        breakers: breaker_figures(state),
    }
}

/// Returns why the process is not ready; `None` if it is ready. Makes no probe. Uses the last report of `/health/ready`
/// too, so that the list of replicas agrees with what this replica itself reports.
fn unready_reason(state: &ApiState) -> Option<String> {
    let fault = state.health.database_fault();
    let database = fault.map(|fault| format!("the database is {fault}"));
    database
        .or_else(|| state.tree.readiness().err())
        .or_else(|| state.health.last_unready_reason())
}

fn actor_totals(state: &ApiState) -> ActorTotals {
    let totals = state.tree.totals();
    let counters = state.tree.counters();
    let whole = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    ActorTotals {
        actors: whole(totals.actors),
        queued: whole(totals.queued),
        failed: whole(totals.failed),
        stuck: whole(totals.stuck),
        panics: counters.panics.get(),
        restarts: counters.restarts.get(),
    }
}

/// Returns the breakers of this process as they are now.
pub(super) fn breaker_figures(state: &ApiState) -> Vec<BreakerFigures> {
    let breakers = state.authority.breakers();
    let limits = state.authority.call_limits();
    let pairs = breakers.iter().zip(&limits);
    pairs
        .map(|(breaker, limit)| to_breaker_figures(breaker, limit))
        .collect()
}

fn to_breaker_figures(breaker: &BreakerView, limit: &LimitView) -> BreakerFigures {
    let held_accounts = match &breaker.held {
        HeldCallers::Accounts(accounts) => accounts.len(),
        _ => 0,
    };
    BreakerFigures {
        operation: breaker.operation.name().to_owned(),
        state: match breaker.state {
            BreakerState::Closed => BreakerCondition::Closed,
            BreakerState::HalfOpen => BreakerCondition::HalfOpen,
            BreakerState::Open => BreakerCondition::Open,
        },
        is_tripped: breaker.is_tripped,
        is_outage: breaker.is_outage,
        held_accounts: u64::try_from(held_accounts).unwrap_or(u64::MAX),
        since: breaker.since,
        next_probe_at: breaker.next_probe_at,
        cause: breaker.cause.map(|cause| cause.name().to_owned()),
        calls: breaker.calls,
        failures: breaker.failures,
        openings: breaker.openings,
        limit: limit.limit,
        lasting_limit: limit.lasting_limit,
        in_flight: limit.in_flight,
        waiting: u64::try_from(limit.waiting).unwrap_or(u64::MAX),
        held_until: limit.held_until,
    }
}
