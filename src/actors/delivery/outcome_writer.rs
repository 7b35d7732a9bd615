//! Writes the outcomes of the attempts of all endpoints in shared transactions. Reports that arrive during a commit
//! form the next batch. A report whose lease was lost is not written. If another transaction has locked an endpoint's
//! lane (its row in the table `lanes`), the report about this endpoint waits outside of the shared transaction, so that
//! it delays no other endpoint.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use database::{StoreError, Transaction};
use jiff::Timestamp;
use timing::clock::SharedClock;
use tokio::time::sleep;
use uuid::Uuid;
use webhook_client::AttemptOutcome;

use crate::actors::delivery::batches::{BatchSender, BatchWork};
use crate::actors::delivery::crash::to_in_flight_text;
use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::error::DeliveryError;
use crate::actors::incidents::{DeadLetterCause, Incidents};
use crate::domain::events::delivery::{Delivery, DeliveryAttempt, DeliveryState};
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::endpoint_health::{CircuitState, FailureStreak};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::notice::Notice;
use crate::store::Store;
use crate::store::lanes::leases::{self, FencedLeases, LaneNote, LaneRelease};
use crate::store::lanes::{IfLocked, Lease, PROBE_STEP};
use crate::store::operations::notices;
use crate::store::webhooks;
use crate::store::webhooks::deliveries;
use crate::store::webhooks::delivery_queue;

/// If the lane of a report was locked, the report is written again after a pause: `RETRY_FIRST` at first, and never
/// more than `RETRY_MAX`. A taxpayer's commit locks the lane of its endpoint for some milliseconds.
const RETRY_FIRST: Duration = Duration::from_millis(2);
const RETRY_MAX: Duration = Duration::from_millis(20);
/// The longest time that the report of finished attempts waits for the lock of its lane. If a frozen process holds the
/// lock, the database usually takes it away before this time ends. Then the report is written, so that no delivery is
/// sent a second time.
const LANE_WAIT_MAX: Duration = Duration::from_secs(10);

/// The outcomes of one endpoint's attempts that have finished since the endpoint's last report.
#[derive(Debug)]
pub(super) struct OutcomeReport {
    pub(super) lease: Lease,
    pub(super) endpoint: EndpointKey,
    /// The state of each delivery after its attempt, the kind of its event and the entry for the log of attempts.
    pub(super) outcomes: Vec<(Delivery, EventKind, DeliveryAttempt)>,
    /// The deliveries in flight that stay recorded in the lane. `None` leaves the record as it is, because no attempt
    /// of a recorded delivery has ended.
    pub(super) still_recorded: Option<HashSet<Uuid>>,
    /// The endpoint and its new failure streak, which is `None` if the endpoint works again. The whole field is `None`
    /// if the streak has not changed.
    pub(super) failure_streak: Option<(Endpoint, Option<FailureStreak>)>,
    /// True if the endpoint has recovered, so that deliveries that wait for a retry are made due at once.
    pub(super) has_recovered: bool,
    /// The notice to the taxpayer's people about the endpoint; `None` if there is no news.
    pub(super) notice: Option<Notice>,
    /// The endpoint's circuit state if the lane may be released when nothing is due; `None` if the lane must stay held,
    /// because this worker still has work.
    pub(super) idle_state: Option<CircuitState>,
}

impl OutcomeReport {
    /// Returns a report that only releases the lease, because there is no endpoint with this key.
    pub(super) fn for_missing_endpoint(lease: &Lease, endpoint: EndpointKey) -> Self {
        let lease = lease.clone();
        let idle_state = Some(CircuitState::Closed);
        Self {
            lease,
            endpoint,
            outcomes: Vec::new(),
            still_recorded: None,
            failure_streak: None,
            has_recovered: false,
            notice: None,
            idle_state,
        }
    }
}

/// The state of the lane after a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneStatus {
    Held,
    Released,
}

/// Writes the outcomes that several endpoints report, in one transaction.
pub(super) struct OutcomeWriter {
    store: Store,
    clock: SharedClock,
    incidents: Arc<Incidents>,
}

impl OutcomeWriter {
    pub(super) fn new(deps: &DeliveryDeps) -> Self {
        Self {
            store: deps.store.clone(),
            clock: deps.clock.clone(),
            incidents: Arc::clone(&deps.incidents),
        }
    }

    /// Counts and logs the delivery if it has become a dead letter.
    fn warn_about_dead_letter(
        &self,
        delivery: &Delivery,
        kind: EventKind,
        attempt: &DeliveryAttempt,
    ) {
        if delivery.state != DeliveryState::Dead {
            return;
        }
        let failure = attempt.failure.as_deref().unwrap_or_default();
        let cause = if failure == AttemptOutcome::ABORTED {
            DeadLetterCause::Aborted
        } else {
            DeadLetterCause::GivenUp
        };
        self.incidents
            .record_dead_letter(delivery, kind, cause, failure);
    }
}

impl BatchSender<OutcomeWriter> {
    /// Writes a report durably. Fails with `Stale` if the lease is no longer held.
    pub(super) async fn write(&self, report: OutcomeReport) -> Result<LaneStatus, DeliveryError> {
        let report = Arc::new(report);
        let begun = Instant::now();
        let mut pause = RETRY_FIRST;
        loop {
            match self.ask(Arc::clone(&report)).await {
                Err(DeliveryError::Store(StoreError::Locked))
                    if begun.elapsed() < LANE_WAIT_MAX =>
                {
                    sleep(pause).await;
                    pause = pause.saturating_mul(2).min(RETRY_MAX);
                }
                settled => return settled,
            }
        }
    }
}

impl BatchWork for OutcomeWriter {
    type Request = Arc<OutcomeReport>;
    type Answer = LaneStatus;

    const NAME: &'static str = "outcome-writer";
    const COMMAND: &'static str = "write";
    const BATCH_MAX: usize = 256;

    async fn run(
        &self,
        reports: &[&Arc<OutcomeReport>],
    ) -> Result<Vec<Result<LaneStatus, StoreError>>, StoreError> {
        let tx = self.store.begin().await?;
        let now = self.clock.now();
        let leases: Vec<_> = reports.iter().map(|report| report.lease.clone()).collect();
        let FencedLeases { held, skipped } = leases::fence(&tx, &leases, IfLocked::Skip).await?;
        let held_reports: Vec<&OutcomeReport> = reports
            .iter()
            .map(|report| &***report)
            .filter(|report| held.contains(&report.lease))
            .collect();
        let outcomes: Vec<_> = held_reports
            .iter()
            .flat_map(|report| report.outcomes.iter().cloned())
            .collect();
        deliveries::record_attempts(&tx, &outcomes, now).await?;
        for report in &held_reports {
            if let Some((endpoint, streak)) = &report.failure_streak {
                webhooks::set_failure_streak(&tx, endpoint, streak.as_ref()).await?;
            }
            if report.has_recovered {
                delivery_queue::make_due_now(&tx, report.endpoint, now).await?;
            }
            if let Some(recorded) = &report.still_recorded {
                let recorded = to_in_flight_text(recorded);
                leases::write_note(&tx, &report.lease, LaneNote::WorkingOn(recorded.as_deref()))
                    .await?;
            }
        }
        let told = held_reports
            .iter()
            .filter_map(|report| report.notice.clone());
        notices::add(&tx, &told.collect::<Vec<_>>()).await?;
        let rests = idle_lane_releases(&tx, &held_reports, now).await?;
        leases::release(&tx, &rests).await?;
        tx.commit().await?;
        for (delivery, kind, attempt) in &outcomes {
            self.warn_about_dead_letter(delivery, *kind, attempt);
        }
        let released: HashSet<_> = rests.iter().map(|rest| &rest.lease).collect();
        let statuses = reports.iter().map(|report| match &report.lease {
            lease if released.contains(lease) => Ok(LaneStatus::Released),
            lease if held.contains(lease) => Ok(LaneStatus::Held),
            lease if skipped.contains(lease) => Err(StoreError::Locked),
            _ => Err(StoreError::Stale),
        });
        Ok(statuses.collect())
    }
}

/// Returns the lanes to release because nothing is due now, each with the delay until it is due again. No new work is
/// missed: `tx` has locked the lanes, so a writer of new work makes its lane due only after this commit.
async fn idle_lane_releases(
    tx: &Transaction,
    reports: &[&OutcomeReport],
    now: Timestamp,
) -> Result<Vec<LaneRelease>, StoreError> {
    let resting: Vec<_> = reports
        .iter()
        .filter_map(|report| Some((*report, report.idle_state?)))
        .collect();
    if resting.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<_> = resting.iter().map(|(report, _)| report.endpoint).collect();
    let reported_as_failing = resting
        .iter()
        .filter(|(_, state)| *state != CircuitState::Closed);
    let failing: Vec<_> = reported_as_failing
        .map(|(report, _)| report.endpoint)
        .collect();
    let still_failing = webhooks::find_keys_with_failure_streak(tx, &failing).await?;
    let is_replaying = delivery_queue::replay_flags_by_active_endpoint(tx, &keys).await?;
    let due = delivery_queue::next_due_by_endpoint(tx, &keys).await?;
    let releases = resting.into_iter().filter_map(|(report, reported_state)| {
        // The endpoint may have recovered, or may have been enabled, since it was loaded. Then it is not parked any
        // more.
        let circuit_state = if still_failing.contains(&report.endpoint) {
            reported_state
        } else {
            CircuitState::Closed
        };
        let delay = delay_until_due(report.endpoint, circuit_state, &is_replaying, &due, now);
        if delay == Some(Duration::ZERO) {
            return None;
        }
        let next_step = matches!(circuit_state, CircuitState::Parked(_)).then_some(PROBE_STEP);
        Some(LaneRelease {
            next_step,
            ..LaneRelease::new(&report.lease, delay)
        })
    });
    Ok(releases.collect())
}

/// Returns the delay until the endpoint's next delivery is due; `None` if the endpoint is not active or has no pending
/// delivery. During a replay, the next delivery is due now. If the endpoint is parked, returns the delay until its next
/// probe instead: deliveries that are due earlier must wait for the probe, and if none is due by then, the next one is
/// sent as the probe before its time.
fn delay_until_due(
    endpoint: EndpointKey,
    circuit_state: CircuitState,
    is_replaying: &HashMap<EndpointKey, bool>,
    due: &HashMap<EndpointKey, Timestamp>,
    now: Timestamp,
) -> Option<Duration> {
    let next = if *is_replaying.get(&endpoint)? {
        Some(now)
    } else {
        due.get(&endpoint).copied()
    }?;
    let next = match circuit_state {
        CircuitState::Parked(until) => until,
        CircuitState::Probe => now,
        CircuitState::Closed => next,
    };
    Some(Duration::try_from(next.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use timing::clock::{Clock as _, SystemClock};

    use super::*;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::store::lanes::{self, LaneKind, LaneName, LanesToWake};
    use crate::store::testing::{claim_due, stores};

    const ID: EndpointKey = EndpointKey(7);
    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_locked_lane_delays_the_report_of_its_own_endpoint_only() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["7", "8"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let mut leases = claim_due(store, LaneKind::Endpoint, "me", LEASE, 9)
                .await
                .unwrap();
            leases.sort_by(|a, b| a.key.cmp(&b.key));
            let report = |lease: &Lease| {
                let endpoint = lease.key.parse().map(EndpointKey).unwrap();
                Arc::new(OutcomeReport::for_missing_endpoint(lease, endpoint))
            };
            let reports: Vec<_> = leases.iter().map(report).collect();
            let writer = OutcomeWriter {
                store: store.clone(),
                clock: Arc::new(SystemClock),
                incidents: Arc::default(),
            };
            if store.backend() == sea_orm::DbBackend::Postgres {
                let other = store.begin().await.unwrap();
                lanes::lock(
                    &other,
                    &[LaneName::new(LaneKind::Endpoint, "7")],
                    IfLocked::Await,
                )
                .await
                .unwrap();
                let written = writer
                    .run(&reports.iter().collect::<Vec<_>>())
                    .await
                    .unwrap();
                let is_locked = matches!(written[0], Err(StoreError::Locked));
                assert!(
                    is_locked && matches!(written[1], Ok(LaneStatus::Released)),
                    "{written:?}"
                );
                other.rollback().await.unwrap();
            }
            let written = writer.run(&[&reports[0]]).await.unwrap();
            assert!(
                matches!(written[..], [Ok(LaneStatus::Released)]),
                "{written:?}"
            );
        }
    }

    /// Adds a parked endpoint with a delivery that is due.
    async fn add_parked(store: &Store, now: Timestamp) -> Endpoint {
        let taxpayer = TaxpayerId(7);
        let endpoint = Endpoint::new(1, taxpayer, "https://a.example/".to_owned(), now);
        let streak = FailureStreak {
            since: now,
            last: now,
            failures: 5,
            probes: 1,
            parked_until: Some(now + Duration::from_hours(1)),
            last_failure: None,
            last_status: None,
        };
        let delivery = Delivery {
            id: Uuid::from_u128(1),
            taxpayer_id: taxpayer,
            endpoint: endpoint.key,
            event_id: Uuid::from_u128(2),
            sequence: 1,
            order_key: "IRN".to_owned(),
            state: DeliveryState::Pending,
            attempts: 0,
            attempts_before: 0,
            next_attempt_at: Some(now),
            crash_history: CrashHistory::default(),
        };
        let tx = store.begin().await.unwrap();
        webhooks::save(store, &tx, &endpoint, "whsec_x")
            .await
            .unwrap();
        webhooks::set_failure_streak(&tx, &endpoint, Some(&streak))
            .await
            .unwrap();
        let added = [(delivery, EventKind::InvoiceCreated)];
        deliveries::add(&tx, &added, now).await.unwrap();
        let keys = [endpoint.key.to_string()];
        lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        endpoint
    }

    #[tokio::test]
    async fn an_endpoint_that_is_parked_no_more_does_not_rest() {
        for (ends_here, is_enabled, expected) in [
            (false, false, LaneStatus::Released),
            (true, false, LaneStatus::Held),
            (false, true, LaneStatus::Held),
        ] {
            for test in stores().await {
                let store = &test.store;
                let now = SystemClock.now();
                let endpoint = add_parked(store, now).await;
                let mut leases = claim_due(store, LaneKind::Endpoint, "me", LEASE, 1)
                    .await
                    .unwrap();
                if is_enabled {
                    let tx = store.begin().await.unwrap();
                    let enabled = endpoint.clone().enable(now);
                    webhooks::save(store, &tx, &enabled, "whsec_x")
                        .await
                        .unwrap();
                    tx.commit().await.unwrap();
                }
                let report = OutcomeReport {
                    failure_streak: ends_here.then_some((endpoint, None)),
                    has_recovered: ends_here,
                    idle_state: Some(CircuitState::Parked(now + Duration::from_hours(1))),
                    ..OutcomeReport::for_missing_endpoint(&leases.remove(0), ID)
                };
                let writer = OutcomeWriter {
                    store: store.clone(),
                    clock: Arc::new(SystemClock),
                    incidents: Arc::default(),
                };
                let mut written = writer.run(&[&Arc::new(report)]).await.unwrap();
                let status = written.remove(0).unwrap();
                assert_eq!(status, expected, "{ends_here} {is_enabled}");
            }
        }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Returns `delay_until_due` in seconds if the present time is second 100 and the next delivery is due at second
    /// `due`.
    fn rests(circuit_state: CircuitState, due: Option<i64>) -> Option<u64> {
        let due: HashMap<_, _> = due.into_iter().map(|at| (ID, second(at))).collect();
        let is_replaying = HashMap::from([(ID, false)]);
        delay_until_due(ID, circuit_state, &is_replaying, &due, second(100))
            .map(|time| time.as_secs())
    }

    #[test]
    fn an_endpoint_rests_until_a_delivery_is_due_unless_a_probe_may_be_sent_now() {
        for (circuit_state, due, rest) in [
            (CircuitState::Closed, Some(130), Some(30)),
            (CircuitState::Closed, Some(90), Some(0)),
            (CircuitState::Closed, None, None),
            (CircuitState::Probe, Some(130), Some(0)),
            (CircuitState::Probe, Some(90), Some(0)),
            (CircuitState::Probe, None, None),
        ] {
            assert_eq!(rests(circuit_state, due), rest, "{circuit_state:?} {due:?}");
        }
    }

    #[test]
    fn a_parked_endpoint_rests_until_its_probe() {
        let parked = CircuitState::Parked(second(105));
        assert_eq!(rests(parked, Some(90)), Some(5));
        assert_eq!(
            rests(parked, Some(3_700)),
            Some(5),
            "a new event is due at the probe"
        );
        assert_eq!(
            rests(parked, None),
            None,
            "the next event makes the lane due"
        );
    }
}
