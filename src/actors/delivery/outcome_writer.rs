//! Writes the outcomes of the attempts of all endpoints in shared transactions. Reports that arrive during a commit
//! form the next batch. A report whose lease was lost is not written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::actors::delivery::batching::{self, BatchWork};
use crate::actors::delivery::crash::to_working_on;
use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::incidents::{DeathCause, Incidents};
use crate::actors::supervision::{
    Admission, Arbiters, CommandBatch, NodeKind, Registry, RegistrySettings, RestartPolicy, Tree, Worker,
    batch_actor,
};
use crate::domain::events::delivery::{Delivery, DeliveryAttempt, DeliveryState, Endpoint};
use crate::domain::events::endpoint_health::{CircuitState, FailureStreak};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned;
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::webhooks;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::delivery_queue;
use crate::webhook::AttemptOutcome;

/// The maximum number of endpoints in one transaction.
const BATCH_MAX: usize = 256;

/// The outcomes of one endpoint's attempts that have finished since the endpoint's last report.
#[derive(Debug)]
pub(super) struct OutcomeReport {
    pub(super) lease: Lease,
    pub(super) taxpayer: TaxpayerId,
    pub(super) outcomes: Vec<(Delivery, EventKind, DeliveryAttempt)>,
    /// The recorded deliveries that are still in flight, if a recorded one has ended.
    pub(super) still_recorded: Option<HashSet<Uuid>>,
    /// The endpoint and its new failure streak; `None` if the streak has not changed.
    pub(super) failure_streak: Option<(Endpoint, Option<FailureStreak>)>,
    /// True if the endpoint has recovered, so that deliveries that wait for a retry are made due at once.
    pub(super) has_recovered: bool,
    /// The endpoint's circuit state if the lane may be released as soon as nothing is due; `None` if the lane must stay
    /// held.
    pub(super) rest: Option<CircuitState>,
}

impl OutcomeReport {
    /// Returns a report that only releases the lane, for a taxpayer without an endpoint.
    pub(super) fn without_endpoint(lease: &Lease, taxpayer: TaxpayerId) -> Self {
        let (lease, rest) = (lease.clone(), Some(CircuitState::Closed));
        Self {
            lease,
            taxpayer,
            outcomes: Vec::new(),
            still_recorded: None,
            failure_streak: None,
            has_recovered: false,
            rest,
        }
    }
}

/// The state of the lane after a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneStatus {
    Held,
    Released,
}

/// The handle of the single actor that writes for all endpoints.
pub(super) struct OutcomeWriter(Registry<&'static str, OutcomeReport, Result<LaneStatus, StoreError>>);

impl OutcomeWriter {
    pub(super) fn start(deps: &DeliveryDeps, tree: &Tree, arbiters: &Arc<Arbiters>) -> Self {
        let admission = Admission::new(batching::limits(), Arc::clone(tree.counters()));
        let settings = RegistrySettings { kind: NodeKind::Webhook, policy: RestartPolicy::default() };
        let writer = OutcomeWriterWorker {
            store: deps.store.clone(),
            clock: deps.clock.clone(),
            incidents: Arc::clone(&deps.incidents),
        };
        Self(Registry::new(tree, arbiters, admission, settings, move |_, seat| {
            let writer = writer.clone();
            batch_actor::start(seat, BATCH_MAX, move || writer.clone())
        }))
    }

    /// Writes a report durably. Fails with `Stale` if another replica has taken the lease over.
    pub(super) async fn write(&self, report: OutcomeReport) -> Result<LaneStatus, StoreError> {
        self.0.send(&"outcome-writer", report).await.unwrap_or(Err(StoreError::Unsettled))
    }
}

#[derive(Clone)]
struct OutcomeWriterWorker {
    store: Store,
    clock: SharedClock,
    incidents: Arc<Incidents>,
}

impl OutcomeWriterWorker {
    fn warn_of_dead_letter(&self, delivery: &Delivery, kind: EventKind, attempt: &DeliveryAttempt) {
        if delivery.state != DeliveryState::Dead {
            return;
        }
        let failure = attempt.failure.as_deref().unwrap_or_default();
        let cause =
            if failure == AttemptOutcome::ABORTED { DeathCause::Aborted } else { DeathCause::GivenUp };
        self.incidents.dead_letter(delivery, kind, cause, failure);
    }
}

impl Worker for OutcomeWriterWorker {
    type Command = OutcomeReport;
    type Reply = Result<LaneStatus, StoreError>;

    fn name(_: &OutcomeReport) -> &'static str {
        "write"
    }

    async fn work(
        self,
        batch: CommandBatch<OutcomeReport>,
    ) -> (Self, Vec<(CommandId, Result<LaneStatus, StoreError>)>) {
        let answers = batching::run_batch(&self, &batch).await;
        (self, answers)
    }
}

impl BatchWork for OutcomeWriterWorker {
    type Item = OutcomeReport;
    type Output = LaneStatus;

    async fn run(
        &self,
        reports: &[&OutcomeReport],
    ) -> Result<Vec<Result<LaneStatus, StoreError>>, StoreError> {
        let (tx, now) = (self.store.begin().await?, self.clock.now());
        let leases: Vec<_> = reports.iter().map(|report| report.lease.clone()).collect();
        let held = leases::fence_all(&tx, LaneKind::Endpoint, &leases).await?;
        let held_reports: Vec<&OutcomeReport> =
            reports.iter().copied().filter(|report| held.contains(&report.lease)).collect();
        let outcomes: Vec<_> =
            held_reports.iter().flat_map(|report| report.outcomes.iter().cloned()).collect();
        deliveries::record(&tx, &outcomes, now).await?;
        for report in &held_reports {
            if let Some((endpoint, streak)) = &report.failure_streak {
                webhooks::set_failure_streak(&tx, endpoint, streak.as_ref()).await?;
            }
            if report.has_recovered {
                delivery_queue::make_due_now(&tx, report.taxpayer, now).await?;
            }
            if let Some(recorded) = &report.still_recorded {
                let recorded = to_working_on(recorded);
                abandoned::set_working_on(&tx, &report.lease, recorded.as_deref()).await?;
            }
        }
        let rests = rests(&tx, &held_reports, now).await?;
        leases::release_all(&tx, LaneKind::Endpoint, &rests).await?;
        tx.commit().await?;
        for (delivery, kind, attempt) in &outcomes {
            self.warn_of_dead_letter(delivery, *kind, attempt);
        }
        let released: HashSet<_> = rests.iter().map(|rest| &rest.lease).collect();
        let status = |report: &&OutcomeReport| match &report.lease {
            lease if released.contains(lease) => Ok(LaneStatus::Released),
            lease if held.contains(lease) => Ok(LaneStatus::Held),
            _ => Err(StoreError::Stale),
        };
        Ok(reports.iter().map(status).collect())
    }
}

/// Returns the lanes to release because nothing is due now, each with the delay until it is due again. The transaction
/// `tx` has locked the lanes, so no new work is missed: it makes its lane due after this commit.
async fn rests(
    tx: &Transaction,
    reports: &[&OutcomeReport],
    now: Timestamp,
) -> Result<Vec<LaneRelease>, StoreError> {
    let resting: Vec<_> = reports.iter().filter_map(|report| Some((*report, report.rest?))).collect();
    if resting.is_empty() {
        return Ok(Vec::new());
    }
    let taxpayers: Vec<_> = resting.iter().map(|(report, _)| report.taxpayer).collect();
    let is_replaying = delivery_queue::in_service(tx, &taxpayers).await?;
    let due = delivery_queue::next_due_owned_by_each(tx, &taxpayers).await?;
    let rest = |(report, circuit_state): (&OutcomeReport, CircuitState)| {
        let delay = idle_time(report.taxpayer, circuit_state, &is_replaying, &due, now);
        if delay == Some(Duration::ZERO) {
            return None;
        }
        let next_step = matches!(circuit_state, CircuitState::Parked(_)).then_some(lanes::PROBE);
        Some(LaneRelease { lease: report.lease.clone(), delay, next_step })
    };
    Ok(resting.into_iter().filter_map(rest).collect())
}

/// Returns the delay until the endpoint's next delivery is due; `None` if the endpoint has no pending delivery. If the
/// circuit is open, returns the delay until the next probe of the circuit instead, because deliveries that are due
/// earlier must wait for the probe.
fn idle_time(
    taxpayer: TaxpayerId,
    circuit_state: CircuitState,
    is_replaying: &HashMap<TaxpayerId, bool>,
    due: &HashMap<TaxpayerId, Timestamp>,
    now: Timestamp,
) -> Option<Duration> {
    let next = if *is_replaying.get(&taxpayer)? { Some(now) } else { due.get(&taxpayer).copied() }?;
    let next = match circuit_state {
        CircuitState::Parked(until) => until,
        CircuitState::Closed | CircuitState::Probe => next,
    };
    Some(Duration::try_from(next.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: TaxpayerId = TaxpayerId(7);

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns `idle_time` in seconds if the present time is second 100 and the next delivery is due at second `due`.
    fn rests(circuit_state: CircuitState, due: Option<i64>) -> Option<u64> {
        let due: HashMap<_, _> = due.into_iter().map(|at| (ID, second(at))).collect();
        let is_replaying = HashMap::from([(ID, false)]);
        idle_time(ID, circuit_state, &is_replaying, &due, second(100)).map(|time| time.as_secs())
    }

    #[test]
    fn an_endpoint_rests_until_a_delivery_is_due() {
        for circuit_state in [CircuitState::Closed, CircuitState::Probe] {
            assert_eq!(rests(circuit_state, Some(130)), Some(30));
            assert_eq!(rests(circuit_state, Some(90)), Some(0));
            assert_eq!(rests(circuit_state, None), None);
        }
    }

    #[test]
    fn a_parked_endpoint_rests_until_its_probe() {
        let parked = CircuitState::Parked(second(105));
        assert_eq!(rests(parked, Some(90)), Some(5));
        assert_eq!(rests(parked, Some(3_700)), Some(5), "a new event is due at the probe");
        assert_eq!(rests(parked, None), None, "the next event makes the lane due");
    }
}
