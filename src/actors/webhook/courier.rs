//! Delivers what is due to one endpoint: the first pending event of each IRN, several IRNs at once. An
//! attempt's outcome is written under the endpoint's lane; a process that dies in between delivers again. Where
//! there is room beside what is due, a replay queues its next part (`replay`).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use rand::RngExt;

use crate::actors::dispatch::Handled;
use crate::actors::taxpayer::door::{Failure, Taxpayers};
use crate::domain::clock::{self, SharedClock};
use crate::domain::delivery::{Attempt, Delivery, DeliveryState, Endpoint};
use crate::domain::event::{Event, EventKind};
use crate::domain::ids::TaxpayerId;
use crate::store::database::{Store, Transaction};
use crate::store::failure::StoreError;
use crate::store::lanes::{self, Lease};
use crate::store::{deliveries, events, replays, webhooks};
use crate::webhook::{self, GuardedClient, Outcome, Post, Schedule, Secret};

/// Deliveries to one endpoint at once.
const AT_ONCE: usize = 16;

/// What delivering takes.
pub struct Satchel {
    pub store: Store,
    pub taxpayers: Arc<Taxpayers>,
    pub client: GuardedClient,
    pub schedule: Schedule,
    pub clock: SharedClock,
}

/// Why deliveries stopped. The lane is given back and they go on later.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Books(#[from] Failure),
    #[error("the signing secret cannot be used: {0}")]
    Secret(#[from] webhook::SecretFault),
}

type Recorded = (Delivery, EventKind, Attempt);

impl Satchel {
    /// Delivers what is ready, once around. When nothing is, the lane is released until the next delivery is due.
    pub(super) async fn deliver(&self, lease: &Lease, taxpayer: TaxpayerId) -> Result<Handled, Stop> {
        let now = self.clock.now();
        let found = webhooks::with_secrets(&self.store, taxpayer, now).await?;
        let Some((endpoint, secrets)) = found.filter(|(endpoint, _)| endpoint.is_active) else {
            self.release(lease, taxpayer).await?;
            return Ok(Handled::Released);
        };
        let ready = deliveries::ready_owned_by(&self.store, taxpayer, now, AT_ONCE as u64).await?;
        let replays = replays::open_owned_by(self.store.reader(), taxpayer).await?;
        let ready = self.keep_order(ready, &replays).await?;
        let has_room = ready.len() < AT_ONCE;
        let is_replaying = has_room && self.queue_next(lease, &endpoint, replays).await?;
        if ready.is_empty() {
            if is_replaying {
                return Ok(Handled::More);
            }
            self.release(lease, taxpayer).await?;
            return Ok(Handled::Released);
        }
        let secrets = secrets.iter().map(|text| Secret::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let outcomes = self.attempt_all(&endpoint, &secrets, ready).await?;
        let gone = self.record((lease, &endpoint), outcomes).await?;
        if gone {
            let reason = "the endpoint answered 410 Gone".to_owned();
            self.taxpayers.disable_endpoint(taxpayer, reason).await?;
        }
        Ok(Handled::More)
    }

    async fn attempt_all(
        &self,
        endpoint: &Endpoint,
        secrets: &[Secret],
        ready: Vec<Delivery>,
    ) -> Result<Vec<(Delivery, Event, webhook::Attempt, Timestamp)>, StoreError> {
        let sequences = ready.iter().map(|delivery| delivery.sequence).collect();
        let events = events::owned_by_with_sequences(&self.store, endpoint.taxpayer_id, sequences).await?;
        let pairs = ready.into_iter().map(|delivery| {
            match events.iter().find(|event| event.sequence == delivery.sequence) {
                Some(event) => Ok((delivery, event.clone())),
                None => Err(without_event(&delivery)),
            }
        });
        let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
        Ok(join_all(pairs.into_iter().map(|(delivery, event)| async move {
            let at = self.clock.now();
            let attempt = self.attempt((endpoint, secrets), &event, at, Post::KEPT_FOR_LOG).await;
            (delivery, event, attempt, at)
        }))
        .await)
    }

    /// Writes what came of the attempts; whether the endpoint wants no more.
    async fn record(
        &self,
        (lease, endpoint): (&Lease, &Endpoint),
        attempts: Vec<(Delivery, Event, webhook::Attempt, Timestamp)>,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let gone = attempts.iter().any(|(_, _, attempt, _)| attempt.outcome == Outcome::Gone);
        let outcomes: Vec<Recorded> = attempts
            .into_iter()
            .map(|(delivery, event, attempt, at)| {
                let delivery = self.after(delivery, &attempt, (endpoint, now));
                (delivery, event.kind, logged(&attempt, at))
            })
            .collect();
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        deliveries::record(&tx, &outcomes, now).await?;
        tx.commit().await?;
        Ok(gone)
    }

    /// The delivery after an attempt: delivered, to be tried again, or a dead letter.
    fn after(
        &self,
        mut delivery: Delivery,
        attempt: &webhook::Attempt,
        (endpoint, now): (&Endpoint, Timestamp),
    ) -> Delivery {
        delivery.attempts += 1;
        delivery.next_attempt_at = None;
        if attempt.is_delivered() {
            delivery.state = DeliveryState::Delivered;
            return delivery;
        }
        let made = usize::try_from(delivery.attempts_of_schedule()).unwrap_or(usize::MAX);
        let schedule = Schedule::or_own(&self.schedule, endpoint.retry_schedule.as_deref());
        match schedule.next(made, attempt.retry_after, clock::chance().random()) {
            Some(delay) => {
                delivery.next_attempt_at = Some(now.saturating_add(delay).unwrap_or(Timestamp::MAX));
            }
            None => delivery.state = DeliveryState::Dead,
        }
        delivery
    }

    /// Gives the lane back: due when there is something to do next, or not by itself. The lane is locked before
    /// anything is looked at, so that what is added afterwards makes it due again.
    async fn release(&self, lease: &Lease, taxpayer: TaxpayerId) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        let delay = self.idle_time(&tx, taxpayer).await?;
        lanes::release(&tx, lease, delay).await?;
        tx.commit().await.map_err(StoreError::from)
    }

    /// How long there is nothing to do; `None` where there is nothing at all.
    async fn idle_time(
        &self,
        tx: &Transaction,
        taxpayer: TaxpayerId,
    ) -> Result<Option<Duration>, StoreError> {
        if !webhooks::owned_by(tx, taxpayer).await?.is_some_and(|endpoint| endpoint.is_active) {
            return Ok(None);
        }
        if !replays::open_owned_by(tx, taxpayer).await?.is_empty() {
            return Ok(Some(Duration::ZERO));
        }
        let (next, now) = (deliveries::next_due_owned_by(tx, taxpayer).await?, self.clock.now());
        Ok(next.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default()))
    }
}

fn without_event(delivery: &Delivery) -> StoreError {
    let reason = format!("event {} is not in the log", delivery.sequence);
    StoreError::Corrupt { table: "deliveries", id: delivery.id.to_string(), reason }
}

fn logged(attempt: &webhook::Attempt, at: Timestamp) -> Attempt {
    Attempt {
        at,
        status: attempt.status,
        failure: (!attempt.is_delivered()).then(|| attempt.outcome.name().to_owned()),
        duration_ms: i64::try_from(attempt.duration.as_millis()).unwrap_or(i64::MAX),
        response: attempt.response_head.replace('\0', " "),
    }
}
