//! Writes what came of attempts, of all endpoints together: whatever has gathered while one transaction was committed
//! is in the next. Each endpoint's part is fenced by its lane; one whose lane another has taken leaves nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::actors::delivery::batching::{self, BatchWork};
use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::incidents::{DeathCause, Incidents};
use crate::actors::supervision::{
    ActorKind, Admission, Arbiters, Batch, CommandId, Registry, RegistrySettings, RestartPolicy, Tree,
    Worker, batch_actor,
};
use crate::domain::events::delivery::{Delivery, DeliveryAttempt, DeliveryState, Endpoint};
use crate::domain::events::endpoint_health::{CircuitState, FailureStreak};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned;
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::webhooks;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::delivery_queue;
use crate::webhook::Outcome;

/// Endpoints in one transaction at most.
const BATCH_MAX: usize = 256;

/// What came of an endpoint's attempts since it last reported.
#[derive(Debug)]
pub(super) struct OutcomeReport {
    pub(super) lease: Lease,
    pub(super) taxpayer: TaxpayerId,
    pub(super) outcomes: Vec<(Delivery, EventKind, DeliveryAttempt)>,
    /// Whether its lane was worked on one delivery alone, which has ended.
    pub(super) was_isolated: bool,
    /// How it fares now, and the endpoint that it was, where that has changed.
    pub(super) failing: Option<(Endpoint, Option<FailureStreak>)>,
    /// Whether what waits for another attempt is due at once, since the endpoint is back.
    pub(super) is_back: bool,
    /// Whether the lane may be given back if there is nothing to do now, and when it is due again at the earliest.
    pub(super) rest: Option<CircuitState>,
}

impl OutcomeReport {
    /// Of an endpoint that is not there.
    pub(super) fn nothing(lease: &Lease, taxpayer: TaxpayerId) -> Self {
        let (lease, rest) = (lease.clone(), Some(CircuitState::Closed));
        Self {
            lease,
            taxpayer,
            outcomes: Vec::new(),
            was_isolated: false,
            failing: None,
            is_back: false,
            rest,
        }
    }
}

/// Whether the lane is still ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneStatus {
    Held,
    Released,
}

/// The one actor that writes for all endpoints.
pub(super) struct OutcomeWriter(Registry<&'static str, OutcomeReport, Result<LaneStatus, StoreError>>);

impl OutcomeWriter {
    pub(super) fn start(deps: &DeliveryDeps, tree: &Tree, arbiters: &Arc<Arbiters>) -> Self {
        let admission = Admission::new(batching::limits(), Arc::clone(tree.counters()));
        let settings = RegistrySettings { kind: ActorKind::Webhook, policy: RestartPolicy::default() };
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

    /// Writes a report; when this returns it is on the disk. A lane that another has taken is stale.
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
        let cause = if failure == Outcome::ABORTED { DeathCause::Aborted } else { DeathCause::GivenUp };
        self.incidents.dead_letter(delivery, kind, (cause, failure));
    }
}

impl Worker for OutcomeWriterWorker {
    type Command = OutcomeReport;
    type Reply = Result<LaneStatus, StoreError>;

    fn name(_: &OutcomeReport) -> &'static str {
        "record"
    }

    async fn work(
        self,
        batch: Batch<OutcomeReport>,
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
        let ours: Vec<&OutcomeReport> =
            reports.iter().copied().filter(|report| held.contains(&report.lease)).collect();
        let outcomes: Vec<_> = ours.iter().flat_map(|report| report.outcomes.iter().cloned()).collect();
        deliveries::record(&tx, &outcomes, now).await?;
        for report in &ours {
            if let Some((endpoint, failing)) = &report.failing {
                webhooks::set_failing(&tx, endpoint, failing.as_ref()).await?;
            }
            if report.is_back {
                delivery_queue::make_due_now(&tx, report.taxpayer, now).await?;
            }
            if report.was_isolated {
                abandoned::set_working_on(&tx, &report.lease, None).await?;
            }
        }
        let rests = rests(&tx, &ours, now).await?;
        leases::release_all(&tx, LaneKind::Endpoint, &rests).await?;
        tx.commit().await?;
        for (delivery, kind, attempt) in &outcomes {
            self.warn_of_dead_letter(delivery, *kind, attempt);
        }
        let released: HashSet<_> = rests.iter().map(|rest| &rest.lease).collect();
        let noted = |report: &&OutcomeReport| match &report.lease {
            lease if released.contains(lease) => Ok(LaneStatus::Released),
            lease if held.contains(lease) => Ok(LaneStatus::Held),
            _ => Err(StoreError::Stale),
        };
        Ok(reports.iter().map(noted).collect())
    }
}

/// How the lanes are given back whose endpoints have nothing to do now. They are locked: what is added from here on
/// makes them due again.
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
    let serving = delivery_queue::in_service(tx, &taxpayers).await?;
    let due = delivery_queue::next_due_owned_by_each(tx, &taxpayers).await?;
    let rest = |(report, passage): (&OutcomeReport, CircuitState)| {
        let delay = idle_time(report.taxpayer, passage, (&serving, &due), now);
        if delay == Some(Duration::ZERO) {
            return None;
        }
        let gate = matches!(passage, CircuitState::Parked(_)).then_some(lanes::PARKED);
        Some(LaneRelease { lease: report.lease.clone(), delay, gate })
    };
    Ok(resting.into_iter().filter_map(rest).collect())
}

/// How long there is nothing to do; `None` where there is nothing at all. A parked lane is looked at when its time is
/// over even if nothing is due by then: what comes meanwhile does not wake it.
fn idle_time(
    taxpayer: TaxpayerId,
    passage: CircuitState,
    (serving, due): (&HashMap<TaxpayerId, bool>, &HashMap<TaxpayerId, Timestamp>),
    now: Timestamp,
) -> Option<Duration> {
    let is_replaying = *serving.get(&taxpayer)?;
    let next = if is_replaying { Some(now) } else { due.get(&taxpayer).copied() }?;
    let next = match passage {
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

    /// How long it rests at second 100, in seconds, where a delivery is due at such a second.
    fn rests(passage: CircuitState, due: Option<i64>) -> Option<u64> {
        let due: HashMap<_, _> = due.into_iter().map(|at| (ID, second(at))).collect();
        let serving = HashMap::from([(ID, false)]);
        idle_time(ID, passage, (&serving, &due), second(100)).map(|time| time.as_secs())
    }

    #[test]
    fn an_endpoint_rests_until_something_is_due() {
        for passage in [CircuitState::Closed, CircuitState::Probe] {
            assert_eq!(rests(passage, Some(130)), Some(30));
            assert_eq!(rests(passage, Some(90)), Some(0));
            assert_eq!(rests(passage, None), None);
        }
    }

    #[test]
    fn a_parked_endpoint_rests_as_long_as_it_is_parked_whatever_is_due() {
        let parked = CircuitState::Parked(second(105));
        assert_eq!(rests(parked, Some(90)), Some(5));
        assert_eq!(rests(parked, Some(3_700)), Some(5), "an event that comes now is due then");
        assert_eq!(rests(parked, None), None, "the next event looks itself");
    }
}
