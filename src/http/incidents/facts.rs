//! Gathers the situation, from which incidents are found. Uses only what this process has in memory, because the
//! database and the authority may not answer.

use std::fs;
use std::path::Path;
use std::time::Duration;

use authority_client::{BreakerState, BreakerView, CallOutcome, Operation};
use jiff::{SignedDuration, Timestamp};

use crate::actors::call_failure::upstream_cause;
use crate::actors::kinds;
use crate::actors::pipeline::run_holds::is_called_by_runs;
use crate::domain::incident::{
    ActorFacts, AuthorityFacts, CallFacts, DatabaseFacts, ProcessUsage, Situation, TrafficFacts,
};
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::replica::{RefusedKey, Replica};
use crate::http::incidents::log::{IncidentLog, lock};
use crate::http::incidents::samples::{AnsweredCalls, CounterSample};
use crate::http::metrics::database_counts::DatabaseCounts;
use crate::http::metrics::process::ProcessStats;
use crate::http::state::ApiState;

/// The kind of the lanes of runs.
const RUN: &str = "run";
/// The time span, up to now, whose calls show the current state of the authority.
const RECENT_CALLS_SPAN: SignedDuration = SignedDuration::from_secs(10);
/// The time span over which the breakers count failures.
const BREAKER_WINDOW: SignedDuration = SignedDuration::from_secs(30);
/// The time after a fault of the database in which queries may still wait because of the fault.
const FAULT_AFTER_EFFECTS: SignedDuration = SignedDuration::from_secs(10);
/// The directory below which Linux shows the control groups (version 2).
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const FIVE_MINUTES: SignedDuration = SignedDuration::from_mins(5);
const QUARTER_HOUR: SignedDuration = SignedDuration::from_mins(15);

/// Takes a sample of the counters, of the queue of runs and of the lanes that replicas hold.
pub(super) fn take_sample(state: &ApiState) {
    let counters = state.tree.counters().snapshot();
    let mut answered_calls = [AnsweredCalls::default(); Operation::ALL.len()];
    let mut throttled_calls = 0;
    for stats in state.authority.call_stats() {
        match stats.outcome {
            CallOutcome::Succeeded | CallOutcome::Refused | CallOutcome::NotFound => {
                let sum = &mut answered_calls[stats.operation as usize];
                sum.calls += stats.calls;
                sum.duration += stats.duration;
            }
            CallOutcome::Throttled => throttled_calls += stats.calls,
            _ => {}
        }
    }
    let sample = CounterSample {
        panics: counters.panics,
        refused_commands: counters.commands_refused_process,
        broken_answers: state.traffic.broken_answers(),
        failed_authentications: state.traffic.failed_authentications(),
        throttled_calls,
        answered_calls,
        receivers_reached: state.delivery.durations.receivers_reached.get(),
        receivers_unreachable: state.delivery.durations.receivers_unreachable.get(),
        slow_read_waits: state.store.metrics().read_waits.slow.get(),
    };
    add_sample(state, &sample);
    if state.health.database_fault().is_some() {
        state.incidents.record_database_fault(state.now());
    }
    if !requested_pauses(state).is_empty() {
        state.incidents.record_pause(state.now());
    }
    if let Some(counts) = state.database_counts.last_counts() {
        let has_held_runs = has_held_runs(&state.authority.breakers());
        record_waiting_work(&state.incidents, &counts, has_held_runs);
    }
}

/// Adds a sample, and records the operations at which the authority is slow.
fn add_sample(state: &ApiState, sample: &CounterSample) {
    let now = state.now();
    let mut samples = lock(&state.incidents.samples);
    let latest = samples.growth_until(sample);
    samples.add(now, sample);
    let recent = samples.growth_within(RECENT_CALLS_SPAN);
    drop(samples);
    lock(&state.incidents.slow_operations).record(now, &call_facts(&latest), &call_facts(&recent));
}

/// Records the queue of runs, and the kinds of lanes that replicas hold. While runs are held, none is taken and the
/// queue grows for a known reason. So its growth, and the time in which nothing is taken, count from the end of the
/// hold.
fn record_waiting_work(log: &IncidentLog, counts: &DatabaseCounts, has_held_runs: bool) {
    let mut queue_lengths = lock(&log.queue_lengths);
    if has_held_runs {
        queue_lengths.clear();
    } else {
        let untaken = counts.work.untaken.iter().find(|(kind, _)| *kind == RUN);
        let length = untaken.map_or(0, |(_, group)| group.count);
        queue_lengths.record(counts.counted_at, length);
    }
    drop(queue_lengths);
    let mut held_lanes = lock(&log.last_held_lanes);
    for lanes in &counts.lanes {
        let kind = lanes.kind.as_str();
        let are_held = lanes.leased > 0 || has_held_runs && kind == RUN;
        held_lanes.record(counts.counted_at, kind, are_held);
    }
}

/// True if an open breaker holds back runs, even if only those of one integrator.
fn has_held_runs(breakers: &[BreakerView]) -> bool {
    breakers
        .iter()
        .any(|breaker| breaker.has_callers && is_called_by_runs(breaker.operation))
}

/// Returns the operations that pause because the authority asked for it, each with the end of its pause.
fn requested_pauses(state: &ApiState) -> Vec<(&'static str, Timestamp)> {
    let limits = state.authority.call_limits();
    let pauses = limits
        .iter()
        .filter_map(|limit| Some((limit.operation.name(), limit.held_until?)));
    pauses.collect()
}

pub(super) fn gather_situation(state: &ApiState) -> Situation {
    let growth = |span| lock(&state.incidents.samples).growth_within(span);
    let breaker_window = growth(BREAKER_WINDOW);
    let counts = state.database_counts.last_counts();
    let mut work = counts.as_ref().map(|counts| counts.work.clone());
    if let Some(work) = &mut work {
        let held_lanes = lock(&state.incidents.last_held_lanes);
        for (kind, lanes) in &mut work.untaken {
            lanes.since = lanes
                .since
                .map(|due| held_lanes.last_held_or_due(kind, due));
        }
    }
    let taxpayers = state.tree.busy_actors(kinds::TAXPAYER);
    let outage_since = work.as_ref().and_then(|work| work.outage_since);
    Situation {
        now: state.now(),
        database: DatabaseFacts {
            fault: state.health.database_fault(),
            fault_at: state.incidents.database_fault_at(),
            slow_read_waits: growth(connection_wait_span(state)).slow_read_waits,
        },
        authority: AuthorityFacts {
            receivers_reached: breaker_window.receivers_reached,
            receivers_unreachable: breaker_window.receivers_unreachable,
            held_operations: operations_in_outage(state, outage_since.is_some()),
            ..authority_facts(state, &growth(RECENT_CALLS_SPAN))
        },
        actors: ActorFacts {
            failure: state.tree.readiness().err(),
            stuck: u64::try_from(taxpayers.stuck).unwrap_or(u64::MAX),
            panics: growth(QUARTER_HOUR).panics,
            queue_lengths: lock(&state.incidents.queue_lengths).lengths_by_minute(),
        },
        traffic: TrafficFacts {
            broken: growth(FIVE_MINUTES).broken_answers,
            refused_commands: growth(MINUTE).refused_commands,
            failed_authentications: growth(FIVE_MINUTES).failed_authentications,
        },
        process: process_usage(),
        is_process_paused: state.authority.is_paused(),
        paused_taxpayers: state.taxpayers.paused_taxpayers().list().to_vec(),
        replicas: state.replicas.last_list().as_ref().clone(),
        checkpoints: state.schedules.checkpoint_schedule(),
        reconciliation: work
            .as_ref()
            .and_then(|work| state.schedules.reconciliation_schedule(work)),
        work,
    }
}

/// Returns the time span, up to now, in which slow waits for a database connection are counted. It begins after the
/// last fault of the database and its after-effects, because earlier waits come from the fault.
fn connection_wait_span(state: &ApiState) -> SignedDuration {
    let fault_at = state.incidents.database_fault_at();
    fault_at.map_or(MINUTE, |at| {
        span_after_fault(state.now().duration_since(at))
    })
}

/// Returns the part of the last minute that lies after the last fault of the database and its after-effects.
fn span_after_fault(since_fault: SignedDuration) -> SignedDuration {
    let calm = since_fault.saturating_sub(FAULT_AFTER_EFFECTS);
    calm.clamp(SignedDuration::ZERO, MINUTE)
}

fn authority_facts(state: &ApiState, recent: &CounterSample) -> AuthorityFacts {
    let breakers = state.authority.breakers();
    let tripped = breakers.iter().filter(|breaker| breaker.is_tripped);
    let tripped = tripped.map(|breaker| {
        let operation = breaker.operation.name();
        (operation, state.replicas.last_order_at(operation))
    });
    let last_causes = breakers.iter().filter_map(|breaker| {
        let cause = upstream_cause(breaker.cause?)?;
        Some((breaker.operation.name(), cause))
    });
    let last_causes: Vec<_> = last_causes.collect();
    let own_key = record_own_refused_key(state, &last_causes);
    let open = breakers
        .iter()
        .filter(|breaker| breaker.state != BreakerState::Closed);
    AuthorityFacts {
        // If the authority still answers calls, it is not silent, even if the probes fail.
        is_silent: state.health.is_authority_silent() && !recent.has_answers(),
        has_accepted_key: has_accepted_key(state, &breakers, own_key.is_some()),
        refused_keys: refused_keys(state, own_key),
        last_causes,
        throttled_calls: recent.throttled_calls,
        pauses: requested_pauses(state),
        paused_at: state.incidents.paused_at(),
        calls: call_facts(recent),
        slow_operations: lock(&state.incidents.slow_operations).list(),
        answered_at: breakers
            .iter()
            .filter_map(|breaker| breaker.answered_at)
            .max(),
        tripped_operations: tripped.collect(),
        has_held_runs: has_held_runs(&breakers),
        next_probe_at: open.filter_map(|breaker| breaker.next_probe_at).min(),
        limited_operations: operations_at_lowered_limit(state),
        ..AuthorityFacts::default()
    }
}

/// Records whether the authority refuses the key of this process. Returns the refusal.
fn record_own_refused_key(
    state: &ApiState,
    last_causes: &[(&'static str, UpstreamCause)],
) -> Option<RefusedKey> {
    let operations = last_causes
        .iter()
        .filter(|(_, cause)| *cause == UpstreamCause::Credentials)
        .map(|(operation, _)| (*operation).to_owned());
    state
        .incidents
        .record_refused_key(operations.collect(), state.now())
}

/// Returns the replicas whose key the authority refuses, ordered by name. This replica is included even if the list of
/// replicas does not show it as present.
fn refused_keys(state: &ApiState, own_key: Option<RefusedKey>) -> Vec<(String, RefusedKey)> {
    let identity = state.replicas.identity();
    let own = own_key.map(|key| (identity.name.clone(), key));
    let list = state.replicas.last_list();
    let others = list
        .present_replicas()
        .filter(|replica| replica.identity.id != identity.id)
        .filter_map(|replica| {
            let key = replica.refused_key()?;
            Some((replica.identity.name.clone(), key))
        });
    let mut refused: Vec<_> = own.into_iter().chain(others).collect();
    refused.sort_by(|(one, _), (other, _)| one.cmp(other));
    refused
}

/// True if calls of this process, or of another present replica, were answered lately and their key was accepted. A
/// replica that is stopping does not count.
fn has_accepted_key(state: &ApiState, breakers: &[BreakerView], is_own_refused: bool) -> bool {
    let is_own_accepted = !is_own_refused
        && !state.stopping.is_requested()
        && breakers
            .iter()
            .any(|breaker| breaker.calls > breaker.failures);
    let own_id = &state.replicas.identity().id;
    let list = state.replicas.last_list();
    let mut others = list
        .present_replicas()
        .filter(|replica| replica.identity.id != *own_id);
    is_own_accepted || others.any(Replica::has_accepted_key)
}

/// Returns the operations whose breaker is open for all callers. A breaker stays open until the next call, so an open
/// breaker alone says nothing about the authority now. If no outage is recorded, a breaker without a failure in the
/// last minute is therefore left out. A breaker that is open because of a past fault of ours is left out, too.
fn operations_in_outage(state: &ApiState, is_outage_recorded: bool) -> Vec<&'static str> {
    let now = state.now();
    let has_failed_lately = |breaker: &BreakerView| {
        let failed_at = breaker.failed_at;
        failed_at.is_some_and(|at| now.duration_since(at).abs() < MINUTE)
    };
    let breakers = state.authority.breakers();
    breakers
        .iter()
        .filter(|breaker| breaker.is_outage && breaker.past_cause.is_none())
        .filter(|breaker| is_outage_recorded || has_failed_lately(breaker))
        .map(|breaker| breaker.operation.name())
        .collect()
}

fn call_facts(recent: &CounterSample) -> Vec<CallFacts> {
    let operations = Operation::ALL.into_iter().zip(recent.answered_calls);
    operations
        .map(|(operation, answered)| {
            let calls = u32::try_from(answered.calls).unwrap_or(u32::MAX);
            CallFacts {
                operation: operation.name(),
                answered: answered.calls,
                mean: answered
                    .duration
                    .checked_div(calls)
                    .unwrap_or(Duration::ZERO),
            }
        })
        .collect()
}

/// Returns the operations at whose concurrency limit calls wait, and whose limit is at most half of the highest so far.
/// A limit that is lowered only for a measurement does not count.
fn operations_at_lowered_limit(state: &ApiState) -> Vec<(&'static str, u32, usize)> {
    let limits = state.authority.call_limits();
    let limited = limits.iter().filter(|view| {
        let highest = state
            .incidents
            .record_limit(view.operation, view.lasting_limit);
        view.waiting > 0
            && view.in_flight >= view.limit
            && view.lasting_limit.saturating_mul(2) <= highest
    });
    limited
        .map(|view| (view.operation.name(), view.lasting_limit, view.waiting))
        .collect()
}

fn process_usage() -> ProcessUsage {
    let process = ProcessStats::read();
    ProcessUsage {
        resident_bytes: process.resident_bytes,
        memory_bytes_max: memory_bytes_max(),
        open_files: process.open_files,
        open_files_max: process.open_files_max,
    }
}

/// Returns the memory limit of the process, in bytes; `None` if there is none.
fn memory_bytes_max() -> Option<u64> {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    lowest_memory_limit(Path::new(CONTROL_GROUPS), &membership)
}

/// Returns the lowest limit of the process's control group and of the groups above it. `membership` is the content of
/// `/proc/self/cgroup`. A systemd unit has a group of its own; a container may see its group as the root.
fn lowest_memory_limit(root: &Path, membership: &str) -> Option<u64> {
    let mut groups = membership.lines();
    let own = groups.find_map(|line| line.strip_prefix("0::/"));
    let own = root.join(own.unwrap_or_default());
    let groups = own.ancestors().take_while(|group| group.starts_with(root));
    let limits = groups.filter_map(|group| {
        let limit = fs::read_to_string(group.join("memory.max")).ok()?;
        limit.trim().parse::<u64>().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::incident::{CountAndOldest, WorkFacts};
    use crate::store::lanes::LaneKind;
    use crate::store::lanes::views::LaneCount;

    /// Returns counts of this second with so many due runs, of which no replica holds any.
    fn counts_of_due_runs(second: i64, due: u64) -> DatabaseCounts {
        let group = CountAndOldest {
            count: due,
            since: None,
        };
        DatabaseCounts {
            counted_at: Timestamp::from_second(second).unwrap(),
            runs: Vec::new(),
            lanes: vec![LaneCount {
                kind: LaneKind::Run,
                due: i64::try_from(due).unwrap(),
                leased: 0,
                held_back: 0,
            }],
            due_runs: Vec::new(),
            deliveries_pending: 0,
            deliveries_dead: 0,
            endpoints: Vec::new(),
            work: WorkFacts {
                untaken: vec![(RUN, group)],
                ..WorkFacts::default()
            },
            verifications: Vec::new(),
        }
    }

    #[test]
    fn a_queue_grows_and_is_not_taken_only_from_the_end_of_a_hold() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let log = IncidentLog::default();
        // The runs are held from second 60 to second 480. Each look: the second, the known minutes of the queue, and
        // the second since which no run is taken.
        let looks = [
            (55, 1, 0),
            (60, 0, 60),
            (475, 0, 475),
            (480, 1, 475),
            (600, 3, 475),
        ];
        for second in (0..=600).step_by(5) {
            let counts = counts_of_due_runs(second, u64::try_from(second).unwrap());
            record_waiting_work(&log, &counts, (60..480).contains(&second));
            for (_, minutes, since) in looks.iter().filter(|look| look.0 == second) {
                let lengths = lock(&log.queue_lengths).lengths_by_minute();
                assert_eq!(lengths.len(), *minutes, "at {second} s: {lengths:?}");
                let untaken_since = lock(&log.last_held_lanes).last_held_or_due(RUN, at(0));
                assert_eq!(untaken_since, at(*since), "at {second} s");
            }
        }
    }

    #[test]
    fn the_memory_limit_is_the_lowest_of_the_process_s_groups() {
        let root = tempfile::tempdir().unwrap();
        let unit = "0::/system.slice/einvoice.service\n";
        let group = root.path().join("system.slice/einvoice.service");
        fs::create_dir_all(&group).unwrap();
        let limit = |membership| lowest_memory_limit(root.path(), membership);
        assert_eq!(limit(unit), None, "the root of a machine has no limit");
        fs::write(group.join("memory.max"), "4294967296\n").unwrap();
        assert_eq!(limit(unit), Some(4_294_967_296));
        fs::write(root.path().join("system.slice/memory.max"), "max\n").unwrap();
        assert_eq!(limit(unit), Some(4_294_967_296));
        fs::write(root.path().join("system.slice/memory.max"), "1024\n").unwrap();
        assert_eq!(limit(unit), Some(1_024), "the slice has less");
        // In a container, the root is the group of the container.
        fs::write(root.path().join("memory.max"), "2048\n").unwrap();
        for membership in ["0::/\n", "0::/docker/0f1e2d\n", ""] {
            assert_eq!(limit(membership), Some(2_048), "{membership}");
        }
    }

    #[test]
    fn waits_during_a_fault_of_the_database_and_shortly_after_it_do_not_count() {
        for (since_fault_s, span_s) in [
            (-5, 0),
            (0, 0),
            (10, 0),
            (11, 1),
            (69, 59),
            (70, 60),
            (999, 60),
        ] {
            let span = span_after_fault(SignedDuration::from_secs(since_fault_s));
            assert_eq!(span.as_secs(), span_s, "{since_fault_s} s after the fault");
        }
    }
}
