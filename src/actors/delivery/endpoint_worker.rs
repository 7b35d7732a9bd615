//! Delivers the due events of one endpoint: the first pending event of each IRN, and several IRNs concurrently. A round
//! loads due deliveries, starts attempts while slots are free, waits for a finished attempt or new work, and writes the
//! outcomes. If the process dies during a round, the events whose outcomes were not written are delivered again. While
//! the endpoint is healthy, new attempts start even while outcomes are being written. If a replay is open and slots
//! stay free, the next part of the replay is queued.

use std::collections::HashSet;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use supervision::Node;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use webhook_client::PostRequest;

use crate::actors::delivery::batches::BatchSender;
use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::due_work::DueWorkReader;
use crate::actors::delivery::due_work::LoadedWork;
use crate::actors::delivery::error::DeliveryError;
use crate::actors::delivery::in_flight::{CompletedAttempt, DeliveriesInFlight};
use crate::actors::delivery::outcome::HealthChange;
use crate::actors::delivery::outcome_writer::{LaneStatus, OutcomeReport, OutcomeWriter};
use crate::actors::dispatch::{IsolationTurn, WorkStatus, run_in_turn};
use crate::actors::taxpayer::commands::DisableEndpoint;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::Event;
use crate::domain::kernel::ids::EndpointKey;
use crate::store::lanes::Lease;
use crate::store::webhooks::replays;

/// While attempts are in flight, due deliveries are loaded again after this interval. The interval doubles up to
/// `POLL_MAX`, because many endpoints may be slow at the same time.
const POLL_INITIAL: Duration = Duration::from_secs(1);
const POLL_MAX: Duration = Duration::from_secs(8);

/// After a finished attempt the worker waits this long for other attempts to finish, so that the outcomes of attempts
/// that end together are written in one commit.
const GATHER_WINDOW: Duration = Duration::from_millis(2);

/// The next part of a replay is queued when due deliveries leave a slot free, and in every eighth round even if they
/// take all free slots.
const REPLAY_EVERY_ROUNDS: u32 = 8;

/// The batched reads and writes that all endpoints share.
pub(super) struct SharedBatches {
    pub(super) due_reader: BatchSender<DueWorkReader>,
    pub(super) outcome_writer: BatchSender<OutcomeWriter>,
}

pub(super) struct EndpointWorker {
    deps: Arc<DeliveryDeps>,
    shared: Arc<SharedBatches>,
    /// The lease that lets only this process deliver to the endpoint.
    lease: Lease,
    endpoint: EndpointKey,
    /// Cancelled when the endpoint has been leased again: then `lease` is no longer held.
    lease_end: CancellationToken,
    in_flight: DeliveriesInFlight,
    poll_after: Duration,
    /// Counts the rounds in which a replay was open and a slot was free.
    rounds: u32,
}

impl EndpointWorker {
    pub(super) fn new(
        deps: Arc<DeliveryDeps>,
        shared: Arc<SharedBatches>,
        lease: Lease,
        endpoint: EndpointKey,
        lease_end: CancellationToken,
    ) -> Self {
        Self {
            deps,
            shared,
            lease,
            endpoint,
            lease_end,
            in_flight: DeliveriesInFlight::default(),
            poll_after: POLL_INITIAL,
            rounds: 0,
        }
    }

    /// Delivers until nothing is due and no attempt is in flight, and then releases the lease. Fails with `Stale` after
    /// a round in which the endpoint was leased again. The watchdog checks how long each round takes.
    pub(super) async fn serve(mut self, node: Node) -> Result<WorkStatus, DeliveryError> {
        let deps = Arc::clone(&self.deps);
        let wakeup = deps.wakeups.listen_to(self.endpoint);
        loop {
            if self.lease_end.is_cancelled() {
                return Err(StoreError::Stale.into());
            }
            node.mark_batch_started("deliver", 1, Duration::ZERO);
            // The subscription starts before the load, so that no new work is missed.
            let new_work = pin!(wakeup.next_notification().fuse());
            let handled = self.run_round(new_work).await?;
            node.mark_batch_finished();
            if handled != WorkStatus::More {
                return Ok(handled);
            }
            // Lets the other endpoints on this core run before the next round.
            yield_now().await;
        }
    }

    /// Runs one round of deliveries. Returns `More` if another round must follow.
    async fn run_round(
        &mut self,
        mut new_work: Pin<&mut impl FusedFuture<Output = ()>>,
    ) -> Result<WorkStatus, DeliveryError> {
        self.in_flight.collect_finished_tasks()?;
        if self.deps.is_closing() && self.in_flight.is_empty() {
            return Ok(WorkStatus::Unfinished);
        }
        let found = match self.shared.due_reader.ask(self.endpoint).await {
            // The round is repeated instead of ending this worker: the lease is still held, and the events of dropped
            // attempts would be sent again.
            Err(DeliveryError::Store(
                StoreError::Unavailable(error) | StoreError::Broken(error),
            )) if !self.in_flight.is_empty() && !self.deps.is_closing() => {
                tracing::warn!(endpoint = %self.endpoint, %error, "failed to load due deliveries; will retry");
                sleep(POLL_INITIAL).await;
                return Ok(WorkStatus::More);
            }
            found => found?,
        };
        let Some(found) = found else {
            return self
                .write_outcomes(OutcomeReport::for_missing_endpoint(
                    &self.lease,
                    self.endpoint,
                ))
                .await;
        };
        let mut work = LoadedWork::new(found, &self.deps, &self.in_flight)?;
        if work.slots > 0 && work.to.is_replaying {
            self.continue_replay(&mut work).await?;
        }
        loop {
            self.start_attempts(&mut work).await?;
            self.wait_for_progress(new_work.as_mut()).await?;
            let handled = if self.in_flight.is_writing() {
                WorkStatus::More
            } else {
                self.write_completed_attempts(&mut work).await?
            };
            if self.deps.is_closing() {
                // Nothing more is loaded during shutdown: this round waits for the attempts in flight.
                work.next.clear();
                if self.in_flight.is_empty() || handled != WorkStatus::More {
                    return Ok(handled);
                }
            } else if new_work.is_terminated()
                || work.must_be_reloaded()
                || !self.in_flight.is_writing()
            {
                return Ok(handled);
            }
        }
    }

    /// Removes deliveries that must wait for an open replay, and queues the next part of one replay if slots are free.
    /// Skips a replay while an event that it has yet to queue is in flight, until the outcome of that attempt is
    /// written.
    async fn continue_replay(&mut self, work: &mut LoadedWork) -> Result<(), DeliveryError> {
        let deps = Arc::clone(&self.deps);
        let free_slots = self.in_flight.free_slots(work.slots);
        work.has_all_due = false;
        work.next.truncate(free_slots);
        if free_slots == 0 || self.in_flight.is_writing() {
            work.next.clear();
            return Ok(());
        }
        let mut replays = replays::running_for_endpoint(deps.store.reader(), self.endpoint).await?;
        let next = std::mem::take(&mut work.next);
        work.next = deps
            .hold_back_for_replay(next.into(), &replays)
            .await?
            .into();
        self.rounds = self.rounds.wrapping_add(1);
        if work.next.len() < free_slots || self.rounds.is_multiple_of(REPLAY_EVERY_ROUNDS) {
            replays.retain(|replay| !self.in_flight.contains_event_to_replay(replay));
            deps.queue_next_part(&self.lease, &work.to.endpoint, replays)
                .await?;
        }
        Ok(())
    }

    /// Starts as many due deliveries as there are free slots. First records in the endpoint's lane those that were in
    /// flight at an earlier crash or are not due yet, so that another crash is counted for them.
    async fn start_attempts(&mut self, work: &mut LoadedWork) -> Result<(), DeliveryError> {
        let mut starting = Vec::new();
        while self.in_flight.free_slots(work.slots) > starting.len() {
            let Some(next) = work.next.pop_front() else {
                break;
            };
            if next.0.must_run_alone() {
                let is_alone = starting.is_empty() && self.in_flight.is_empty();
                work.next.push_front(next);
                if is_alone {
                    return self.start_isolated_attempt(work).await;
                }
                break;
            }
            starting.push(next);
        }
        let recorded: HashSet<_> = starting
            .iter()
            .filter(|(delivery, _)| work.must_be_recorded(delivery))
            .map(|(one, _)| one.id)
            .collect();
        if !recorded.is_empty() {
            self.deps
                .record_deliveries_in_flight(
                    &self.lease,
                    &(&recorded | self.in_flight.recorded_deliveries()),
                )
                .await?;
        }
        for next in starting {
            self.start_attempt(work, next, None);
        }
        Ok(())
    }

    /// Starts the next delivery, which must run alone: nothing else of the endpoint is in flight until its outcome is
    /// written. The delivery also needs the turn that all endpoints share. Does nothing if the turn is not free within
    /// `POLL_INITIAL`.
    async fn start_isolated_attempt(&mut self, work: &mut LoadedWork) -> Result<(), DeliveryError> {
        let Ok(Some(turn)) = timeout(POLL_INITIAL, self.deps.turns.take()).await else {
            return Ok(());
        };
        let Some(next) = work.next.pop_front() else {
            return Ok(());
        };
        // The last try of a delivery begins only when no other isolated delivery is under way, so that a crash is
        // counted for good only for a delivery that was alone.
        if next.0.crash_history.is_last_try() && !turn.is_alone() {
            work.next.push_front(next);
            return Ok(());
        }
        self.deps
            .record_deliveries_in_flight(&self.lease, &HashSet::from([next.0.id]))
            .await?;
        self.start_attempt(work, next, Some(turn));
        Ok(())
    }

    fn start_attempt(
        &mut self,
        work: &LoadedWork,
        next: (Delivery, Event),
        turn: Option<IsolationTurn>,
    ) {
        let (delivery, event) = next;
        self.poll_after = POLL_INITIAL;
        if work.must_be_recorded(&delivery) {
            self.in_flight.mark_recorded(&delivery);
        }
        let deps = Arc::clone(&self.deps);
        let to = Arc::clone(&work.to);
        self.in_flight
            .start(delivery.id, delivery.sequence, async move {
                let at = deps.clock.now();
                let attempt =
                    deps.attempt_delivery(&to, &event, at, PostRequest::KEEP_BYTES_FOR_LOG);
                let attempt = Box::pin(run_in_turn(turn, delivery.crash_history, attempt)).await;
                deps.durations
                    .record_attempt(attempt.outcome.name(), attempt.duration);
                deps.taxpayers
                    .usage()
                    .record_delivery(to.endpoint.taxpayer_id);
                let as_of = to.endpoint.updated_at;
                CompletedAttempt {
                    delivery,
                    kind: event.kind,
                    attempt,
                    at,
                    as_of,
                }
            });
    }

    /// Waits for a finished attempt, new work or the poll interval. Returns at once if finished attempts can be written
    /// now.
    async fn wait_for_progress(
        &mut self,
        new_work: impl FusedFuture<Output = ()>,
    ) -> Result<(), DeliveryError> {
        if self.in_flight.has_completed() && !self.in_flight.is_writing() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.lease_end.cancelled() => return Err(StoreError::Stale.into()),
            finished = self.in_flight.wait_for_finished_task() => finished?,
            () = new_work => {}
            () = sleep(self.poll_after) => self.poll_after = self.poll_after.saturating_mul(2).min(POLL_MAX),
        }
        if self.in_flight.has_completed() && self.in_flight.has_running() {
            sleep(GATHER_WINDOW).await;
            self.in_flight.collect_finished_tasks()?;
        }
        Ok(())
    }

    /// Writes the outcomes of finished attempts. Disables an endpoint that answered 410 or has failed for too long.
    async fn write_completed_attempts(
        &mut self,
        work: &mut LoadedWork,
    ) -> Result<WorkStatus, DeliveryError> {
        let completed = self.in_flight.take_completed();
        let endpoint = &work.to.endpoint;
        let is_idle = work.has_all_due && work.next.is_empty() && !self.in_flight.has_running();
        if completed.is_empty() && !is_idle {
            return Ok(WorkStatus::More);
        }
        let deps = Arc::clone(&self.deps);
        let health = HealthChange::new(&deps, endpoint, work.failure_streak.clone(), &completed);
        let as_of = endpoint.updated_at;
        let ids: Vec<_> = completed.iter().map(|one| one.delivery.id).collect();
        let in_lane = self.in_flight.recorded_deliveries();
        let has_recorded = ids.iter().any(|id| in_lane.contains(id));
        let still_recorded = has_recorded.then(|| {
            let recorded = in_lane.iter().copied();
            recorded.filter(|id| !ids.contains(id)).collect()
        });
        // The state after these attempts: a probe that failed has parked the endpoint again.
        let idle_state = is_idle.then(|| health.circuit_state(deps.clock.now()));
        let report = OutcomeReport {
            lease: self.lease.clone(),
            endpoint: self.endpoint,
            outcomes: completed
                .into_iter()
                .map(|one| deps.apply_attempt(one, endpoint))
                .collect(),
            still_recorded,
            has_recovered: health.has_recovered(),
            notice: health.notice(endpoint, deps.clock.now()),
            failure_streak: health
                .has_changed()
                .then(|| (endpoint.clone(), health.after.clone())),
            idle_state,
        };
        // A report about deliveries that the lane records changes this record. It is not written in the background,
        // because attempts that start meanwhile would change the record, too.
        if health.is_healthy() && !is_idle && !work.to.is_replaying && !has_recorded {
            let shared = Arc::clone(&self.shared);
            self.in_flight.start_write(
                ids,
                async move { shared.outcome_writer.write(report).await },
            );
            return Ok(WorkStatus::More);
        }
        let handled = self.write_outcomes(report).await?;
        self.in_flight.remove_deliveries(&ids);
        if let Some(streak) = health.streak_at_first_park() {
            deps.incidents.record_parked_endpoint(endpoint, streak);
        }
        if let Some(reason) = health.reason_to_disable() {
            let command = DisableEndpoint {
                endpoint: self.endpoint,
                as_of,
                reason: reason.clone(),
            };
            // Attempts that were in flight together report one after another; only the first report disables the
            // endpoint, and only that one counts as an incident.
            if deps.taxpayers.send(endpoint.taxpayer_id, command).await? {
                deps.incidents.record_disabled_endpoint(endpoint, &reason);
            }
        }
        work.failure_streak = health.after;
        Ok(handled)
    }

    async fn write_outcomes(&self, report: OutcomeReport) -> Result<WorkStatus, DeliveryError> {
        match self.shared.outcome_writer.write(report).await? {
            LaneStatus::Held => Ok(WorkStatus::More),
            LaneStatus::Released => Ok(WorkStatus::Released),
        }
    }
}
