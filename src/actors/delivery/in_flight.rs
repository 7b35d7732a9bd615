//! The deliveries in flight of one endpoint. A delivery is in flight from the start of its attempt until the outcome is
//! stored. Attempts and writes of outcomes run as tasks of their own, which end when `DeliveriesInFlight` is dropped.

use std::collections::{HashMap, HashSet};
use std::future::Future;

use jiff::Timestamp;
use tokio::task::{Id, JoinError, JoinSet};
use uuid::Uuid;
use webhook_client::AttemptResult;

use crate::actors::delivery::error::DeliveryError;
use crate::actors::delivery::outcome_writer::LaneStatus;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::Replay;

pub(super) struct CompletedAttempt {
    pub(super) delivery: Delivery,
    pub(super) kind: EventKind,
    pub(super) attempt: AttemptResult,
    /// The time at which the attempt started.
    pub(super) at: Timestamp,
    /// The `updated_at` of the endpoint that the attempt used. It identifies the version of the endpoint.
    pub(super) as_of: Timestamp,
}

impl CompletedAttempt {
    /// True if the endpoint has not changed since the attempt.
    pub(super) fn matches_version(&self, endpoint: &Endpoint) -> bool {
        self.as_of == endpoint.updated_at
    }
}

enum FinishedTask {
    Attempt(Box<CompletedAttempt>),
    Write(Vec<Uuid>, Result<LaneStatus, DeliveryError>),
}

#[derive(Default)]
pub(super) struct DeliveriesInFlight {
    tasks: JoinSet<FinishedTask>,
    running: HashMap<Id, Uuid>,
    completed: Vec<CompletedAttempt>,
    is_writing: bool,
    /// The ids of all deliveries in flight, each with the sequence number of its event.
    held: HashMap<Uuid, i64>,
    /// The ids of those deliveries in flight that the endpoint's lane records.
    recorded: HashSet<Uuid>,
    /// True while a delivery that must run alone is in flight. No other delivery starts during that time.
    is_isolated: bool,
}

/// Returns the maximum number of deliveries in flight: twice `slots`, because up to `slots` attempts may run while the
/// outcomes of as many finished attempts are not written yet.
pub(super) fn max_in_flight(slots: usize) -> usize {
    slots.saturating_mul(2)
}

impl DeliveriesInFlight {
    /// Returns how many more attempts may start if `slots` attempts may run concurrently.
    pub(super) fn free_slots(&self, slots: usize) -> usize {
        if self.is_isolated {
            return 0;
        }
        let free = slots.saturating_sub(self.running.len());
        free.min(max_in_flight(slots).saturating_sub(self.held.len()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn has_running(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn is_writing(&self) -> bool {
        self.is_writing
    }

    pub(super) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    pub(super) fn contains(&self, delivery: &Delivery) -> bool {
        self.held.contains_key(&delivery.id)
    }

    /// True if an event in flight is one that the replay has not queued yet. The replay must then wait: if it queued
    /// the event now, the outcome of the attempt in flight would overwrite the replayed delivery.
    pub(super) fn contains_event_to_replay(&self, replay: &Replay) -> bool {
        self.held
            .values()
            .any(|sequence| replay.must_still_process(*sequence))
    }

    pub(super) fn start(
        &mut self,
        id: Uuid,
        sequence: i64,
        attempt: impl Future<Output = CompletedAttempt> + 'static,
    ) {
        self.held.insert(id, sequence);
        let task = self
            .tasks
            .spawn_local(async { FinishedTask::Attempt(Box::new(attempt.await)) });
        self.running.insert(task.id(), id);
    }

    /// Marks a delivery in flight as one that the endpoint's lane records. If it was in flight at two crashes, it must
    /// run alone: no other delivery starts until its outcome is written.
    pub(super) fn mark_recorded(&mut self, delivery: &Delivery) {
        self.recorded.insert(delivery.id);
        self.is_isolated |= delivery.must_run_alone();
    }

    pub(super) fn recorded_deliveries(&self) -> &HashSet<Uuid> {
        &self.recorded
    }

    /// Returns the finished attempts and removes them from `completed`. Their deliveries still count as in flight until
    /// `remove_deliveries` is called.
    pub(super) fn take_completed(&mut self) -> Vec<CompletedAttempt> {
        std::mem::take(&mut self.completed)
    }

    /// Starts the task `write`, which stores the outcomes of the deliveries `ids`. When it has ended, the deliveries no
    /// longer count as in flight.
    pub(super) fn start_write(
        &mut self,
        ids: Vec<Uuid>,
        write: impl Future<Output = Result<LaneStatus, DeliveryError>> + 'static,
    ) {
        self.is_writing = true;
        self.tasks
            .spawn_local(async { FinishedTask::Write(ids, write.await) });
    }

    pub(super) fn remove_deliveries(&mut self, ids: &[Uuid]) {
        for id in ids {
            self.held.remove(id);
            self.recorded.remove(id);
        }
        self.is_isolated &= !self.held.is_empty();
    }

    /// Waits for the next finished attempt or write. Returns at once if no attempt and no write is running.
    pub(super) async fn wait_for_finished_task(&mut self) -> Result<(), DeliveryError> {
        if let Some(ended) = self.tasks.join_next_with_id().await {
            self.collect_finished_task(ended)?;
        }
        self.collect_finished_tasks()
    }

    /// Collects all finished attempts and writes. Deliveries whose outcomes are written no longer count as in flight.
    /// An older list of due deliveries may still contain them, so the caller must load a new list before it starts more
    /// attempts.
    pub(super) fn collect_finished_tasks(&mut self) -> Result<(), DeliveryError> {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.collect_finished_task(ended)?;
        }
        Ok(())
    }

    fn collect_finished_task(
        &mut self,
        ended: Result<(Id, FinishedTask), JoinError>,
    ) -> Result<(), DeliveryError> {
        match ended.map_err(|_| DeliveryError::Panic)? {
            (task, FinishedTask::Attempt(completed)) => {
                self.running.remove(&task);
                self.completed.push(*completed);
            }
            (_, FinishedTask::Write(ids, result)) => {
                self.is_writing = false;
                self.remove_deliveries(&ids);
                result?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use database::StoreError;
    use tokio::sync::oneshot;
    use webhook_client::AttemptOutcome;

    use super::*;
    use crate::domain::events::delivery::DeliveryState;
    use crate::domain::events::replay::ReplayRange;
    use crate::domain::kernel::crash::CrashHistory;
    use crate::domain::kernel::ids::TaxpayerId;

    fn delivery(number: u128) -> Delivery {
        let id = Uuid::from_u128(number);
        Delivery {
            id,
            taxpayer_id: TaxpayerId(7),
            endpoint: TaxpayerId(7).into(),
            event_id: id,
            sequence: i64::try_from(number).unwrap(),
            order_key: id.to_string(),
            state: DeliveryState::Pending,
            attempts: 0,
            attempts_before: 0,
            next_attempt_at: None,
            crash_history: CrashHistory::default(),
        }
    }

    fn completed_attempt(delivery: Delivery) -> CompletedAttempt {
        let attempt = AttemptResult {
            status: Some(204),
            ..AttemptResult::without_response(AttemptOutcome::Delivered)
        };
        let at = Timestamp::UNIX_EPOCH;
        CompletedAttempt {
            delivery,
            kind: EventKind::InvoiceCreated,
            attempt,
            at,
            as_of: at,
        }
    }

    async fn finish_attempts(in_flight: &mut DeliveriesInFlight, numbers: std::ops::Range<u128>) {
        for number in numbers {
            let delivery = delivery(number);
            in_flight.start(
                delivery.id,
                delivery.sequence,
                ready(completed_attempt(delivery)),
            );
        }
        in_flight.wait_for_finished_task().await.unwrap();
    }

    #[actix_rt::test]
    async fn a_finished_attempt_is_held_until_its_outcome_is_written() {
        let mut in_flight = DeliveriesInFlight::default();
        finish_attempts(&mut in_flight, 0..2).await;
        assert_eq!(
            (in_flight.has_running(), in_flight.free_slots(2)),
            (false, 2),
            "the slots are free"
        );
        let ids: Vec<_> = in_flight
            .take_completed()
            .iter()
            .map(|one| one.delivery.id)
            .collect();
        let (commit, committed) = oneshot::channel();
        in_flight.start_write(ids, async { Ok(committed.await.unwrap()) });
        finish_attempts(&mut in_flight, 2..4).await;
        assert!(in_flight.is_writing() && in_flight.contains(&delivery(0)));
        assert_eq!(
            in_flight.free_slots(2),
            0,
            "as many wait for their write as there are slots"
        );
        commit.send(LaneStatus::Held).unwrap();
        in_flight.wait_for_finished_task().await.unwrap();
        assert!(
            !in_flight.is_writing()
                && !in_flight.contains(&delivery(0))
                && in_flight.contains(&delivery(2))
        );
        assert_eq!(in_flight.free_slots(2), 2);
    }

    #[actix_rt::test]
    async fn an_event_is_ahead_of_a_replay_until_its_outcome_is_written() {
        let replay = |sequence| {
            let range = ReplayRange::for_event(sequence);
            let now = Timestamp::UNIX_EPOCH;
            let endpoint = Endpoint::new(1, TaxpayerId(7), String::new(), now);
            Replay::new(Uuid::nil(), &endpoint, range, 9, now)
        };
        let mut in_flight = DeliveriesInFlight::default();
        finish_attempts(&mut in_flight, 5..6).await;
        in_flight.take_completed();
        assert_eq!(
            [4, 5, 6].map(|sequence| in_flight.contains_event_to_replay(&replay(sequence))),
            [false, true, false]
        );
        in_flight.remove_deliveries(&[Uuid::from_u128(5)]);
        assert!(!in_flight.contains_event_to_replay(&replay(5)));
    }

    #[actix_rt::test]
    async fn a_failed_write_stops_the_deliveries() {
        let mut in_flight = DeliveriesInFlight::default();
        in_flight.start_write(Vec::new(), ready(Err(StoreError::Stale.into())));
        assert!(matches!(
            in_flight.wait_for_finished_task().await,
            Err(DeliveryError::Store(StoreError::Stale))
        ));
    }

    #[actix_rt::test]
    async fn an_attempt_that_panics_stops_the_deliveries() {
        let mut in_flight = DeliveriesInFlight::default();
        in_flight.start(Uuid::nil(), 1, async { panic!("a defect") });
        assert!(matches!(
            in_flight.wait_for_finished_task().await,
            Err(DeliveryError::Panic)
        ));
    }
}
