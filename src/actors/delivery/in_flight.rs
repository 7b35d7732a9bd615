//! The deliveries of one endpoint whose outcome is not on the disk yet: their attempts are under way, have ended, or are
//! being written. They go on by themselves, whatever the actor does meanwhile; an actor that is restarted, or whose
//! lane another has taken, drops them.

use std::collections::HashMap;
use std::future::Future;

use jiff::Timestamp;
use tokio::task::{Id, JoinError, JoinSet};
use uuid::Uuid;

use crate::actors::delivery::endpoint_worker::DeliveryError;
use crate::actors::delivery::outcome_writer::LaneStatus;
use crate::domain::events::delivery::{Delivery, Endpoint};
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::Replay;
use crate::store::db::error::StoreError;
use crate::webhook::Attempt;

/// An attempt that has ended.
pub(super) struct CompletedAttempt {
    pub(super) delivery: Delivery,
    pub(super) kind: EventKind,
    pub(super) attempt: Attempt,
    /// When it began.
    pub(super) at: Timestamp,
    /// When the endpoint that it went to had last been changed.
    pub(super) as_of: Timestamp,
}

impl CompletedAttempt {
    /// Whether it tells of this endpoint, and not of what it was before somebody changed it.
    pub(super) fn is_of(&self, endpoint: &Endpoint) -> bool {
        self.as_of == endpoint.updated_at
    }
}

enum FinishedTask {
    Attempt(CompletedAttempt),
    Write(Vec<Uuid>, Result<LaneStatus, StoreError>),
}

#[derive(Default)]
pub(super) struct InFlight {
    tasks: JoinSet<FinishedTask>,
    under_way: HashMap<Id, Uuid>,
    completed: Vec<CompletedAttempt>,
    is_writing: bool,
    /// What is under way, has completed or is being written, each with the number of its event.
    held: HashMap<Uuid, i64>,
    /// Whether what is held may be what ends the process: nothing begins beside it.
    is_isolated: bool,
    /// The lease they were begun under.
    epoch: i64,
}

/// Deliveries held at most where so many may be under way: as many again wait for the disk.
pub(super) fn max_held(places: usize) -> usize {
    places.saturating_mul(2)
}

impl InFlight {
    /// Drops what was begun under another lease.
    pub(super) fn under(&mut self, epoch: i64) {
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::default() };
        }
    }

    /// How many more can begin where so many may be under way.
    pub(super) fn room(&self, places: usize) -> usize {
        if self.is_isolated {
            return 0;
        }
        let free = places.saturating_sub(self.under_way.len());
        free.min(max_held(places).saturating_sub(self.held.len()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    pub(super) fn is_writing(&self) -> bool {
        self.is_writing
    }

    pub(super) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    pub(super) fn holds(&self, delivery: &Delivery) -> bool {
        self.held.contains_key(&delivery.id)
    }

    /// Whether it holds an event that a replay has still to come to: what comes of that one would undo that it was
    /// queued again.
    pub(super) fn holds_ahead_of(&self, replay: &Replay) -> bool {
        self.held.values().any(|sequence| replay.is_ahead(*sequence))
    }

    pub(super) fn begin(
        &mut self,
        (id, sequence): (Uuid, i64),
        attempt: impl Future<Output = CompletedAttempt> + 'static,
    ) {
        self.held.insert(id, sequence);
        let task = self.tasks.spawn_local(async { FinishedTask::Attempt(attempt.await) });
        self.under_way.insert(task.id(), id);
    }

    /// Has nothing begin beside what begins next, until that is on the disk.
    pub(super) fn isolate(&mut self) {
        self.is_isolated = true;
    }

    /// What has completed; it is held until it is forgotten or written.
    pub(super) fn take_completed(&mut self) -> Vec<CompletedAttempt> {
        std::mem::take(&mut self.completed)
    }

    /// Has a report written of these, which are forgotten when it is on the disk.
    pub(super) fn write(
        &mut self,
        ids: Vec<Uuid>,
        report: impl Future<Output = Result<LaneStatus, StoreError>> + 'static,
    ) {
        self.is_writing = true;
        self.tasks.spawn_local(async { FinishedTask::Write(ids, report.await) });
    }

    pub(super) fn forget(&mut self, ids: &[Uuid]) {
        for id in ids {
            self.held.remove(id);
        }
        self.is_isolated &= !self.held.is_empty();
    }

    /// Waits until an attempt has ended or what is being written is on the disk; where there is neither, not at all.
    pub(super) async fn change(&mut self) -> Result<(), DeliveryError> {
        if let Some(ended) = self.tasks.join_next_with_id().await {
            self.end(ended)?;
        }
        self.settle()
    }

    /// Takes note of all that has ended by now. What was written is forgotten, so whoever goes on looks anew before.
    pub(super) fn settle(&mut self) -> Result<(), DeliveryError> {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.end(ended)?;
        }
        Ok(())
    }

    fn end(&mut self, ended: Result<(Id, FinishedTask), JoinError>) -> Result<(), DeliveryError> {
        match ended.map_err(|_| DeliveryError::Panic)? {
            (task, FinishedTask::Attempt(completed)) => {
                self.under_way.remove(&task);
                self.completed.push(completed);
            }
            (_, FinishedTask::Write(ids, result)) => {
                self.is_writing = false;
                self.forget(&ids);
                result?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;
    use crate::domain::events::delivery::DeliveryState;
    use crate::domain::events::replay::ReplayRange;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::webhook::{Outcome, Phases};

    fn delivery(number: u128) -> Delivery {
        let id = Uuid::from_u128(number);
        Delivery {
            id,
            taxpayer_id: TaxpayerId(7),
            event_id: id,
            sequence: i64::try_from(number).unwrap(),
            order_key: id.to_string(),
            state: DeliveryState::Pending,
            attempts: 0,
            attempts_before: 0,
            next_attempt_at: None,
            crashes: 0,
        }
    }

    fn completed(delivery: Delivery) -> CompletedAttempt {
        let attempt = Attempt {
            outcome: Outcome::Delivered,
            status: Some(204),
            duration: Duration::ZERO,
            phases: Phases::default(),
            retry_after: None,
            response_head: String::new(),
        };
        let at = Timestamp::UNIX_EPOCH;
        CompletedAttempt { delivery, kind: EventKind::InvoiceCreated, attempt, at, as_of: at }
    }

    async fn aloft(in_flight: &mut InFlight, numbers: std::ops::Range<u128>) {
        for number in numbers {
            let delivery = delivery(number);
            in_flight.begin((delivery.id, delivery.sequence), ready(completed(delivery)));
        }
        in_flight.change().await.unwrap();
    }

    #[actix_rt::test]
    async fn what_has_landed_is_held_until_it_is_on_the_disk() {
        let mut in_flight = InFlight::default();
        aloft(&mut in_flight, 0..2).await;
        assert_eq!((in_flight.is_under_way(), in_flight.room(2)), (false, 2), "its places are free");
        let ids: Vec<_> = in_flight.take_completed().iter().map(|one| one.delivery.id).collect();
        let (commit, committed) = oneshot::channel();
        in_flight.write(ids, async { Ok(committed.await.unwrap()) });
        aloft(&mut in_flight, 2..4).await;
        assert!(in_flight.is_writing() && in_flight.holds(&delivery(0)));
        assert_eq!(in_flight.room(2), 0, "no more wait for the disk than may be under way");
        commit.send(LaneStatus::Held).unwrap();
        in_flight.change().await.unwrap();
        assert!(!in_flight.is_writing() && !in_flight.holds(&delivery(0)) && in_flight.holds(&delivery(2)));
        assert_eq!(in_flight.room(2), 2);
    }

    #[actix_rt::test]
    async fn an_event_is_ahead_of_a_replay_until_what_came_of_it_is_on_the_disk() {
        let replay = |sequence| {
            let range = ReplayRange::only(sequence);
            Replay::open(Uuid::nil(), TaxpayerId(7), range, (9, Timestamp::UNIX_EPOCH))
        };
        let mut in_flight = InFlight::default();
        aloft(&mut in_flight, 5..6).await;
        in_flight.take_completed();
        assert_eq!(
            [4, 5, 6].map(|sequence| in_flight.holds_ahead_of(&replay(sequence))),
            [false, true, false]
        );
        in_flight.forget(&[Uuid::from_u128(5)]);
        assert!(!in_flight.holds_ahead_of(&replay(5)));
    }

    #[actix_rt::test]
    async fn a_report_that_is_not_written_stops_the_deliveries() {
        let mut in_flight = InFlight::default();
        in_flight.write(Vec::new(), ready(Err(StoreError::Stale)));
        assert!(matches!(in_flight.change().await, Err(DeliveryError::Store(StoreError::Stale))));
    }

    #[actix_rt::test]
    async fn an_attempt_that_panics_stops_the_deliveries() {
        let mut in_flight = InFlight::default();
        in_flight.begin((Uuid::nil(), 1), async { panic!("a defect") });
        assert!(matches!(in_flight.change().await, Err(DeliveryError::Panic)));
    }

    #[actix_rt::test]
    async fn another_lease_begins_with_nothing() {
        let mut in_flight = InFlight::default();
        in_flight.under(1);
        in_flight.begin((Uuid::nil(), 1), pending());
        in_flight.under(1);
        assert!(!in_flight.is_empty());
        in_flight.under(2);
        assert!(in_flight.is_empty() && !in_flight.is_under_way());
    }
}
