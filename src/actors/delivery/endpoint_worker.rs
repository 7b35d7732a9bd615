//! Delivers what is due to one endpoint: the first pending event of each IRN, several IRNs at once. A round asks what
//! is next (`scout`), begins what there is room for, waits until something has ended or has come, and reports what has
//! ended (`recorder`); a process that dies in between delivers again. While the endpoint is well, it goes on beginning
//! what is next beside a report that is being written. Where there is room beside what is due, a replay queues its next
//! part (`replay`).

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use tokio::time::sleep;

use crate::actors::delivery::due_reader::{DueDeliveryReader, DueWork};
use crate::actors::delivery::in_flight::{CompletedAttempt, InFlight, max_held};
use crate::actors::delivery::outcome_writer::{LaneStatus, OutcomeReport, OutcomeWriter};
use crate::actors::delivery::target::DeliveryTarget;
use crate::actors::delivery::token_cache::TokenCache;
use crate::actors::dispatch::Handled;
use crate::actors::incidents::Incidents;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::actors::waiters::Waiters;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint_health::{CircuitPolicy, CircuitState, FailureStreak};
use crate::domain::events::event::Event;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::Lease;
use crate::store::webhooks::replays;
use crate::webhook::{self, GuardedClient, Post, Schedule};

/// How long to wait before looking for what has become due while attempts are under way; it doubles with each look
/// in vain, since many endpoints may be slow at once.
const LOOK_FIRST: Duration = Duration::from_secs(1);
const LOOK_LAST: Duration = Duration::from_secs(8);

/// How long an attempt that has ended waits for others that are under way: a report is a commit, and what ends at about
/// the same time goes into one.
const GATHER: Duration = Duration::from_millis(2);

/// How long what a look has found may be begun: meanwhile the endpoint may be changed, or a delivery given up.
const FRESH: Duration = Duration::from_millis(100);

/// A replay has its turn where there is room beside what is due, and in every so many rounds though there is none.
const REPLAY_EVERY: u32 = 8;

/// What delivering takes.
pub struct DeliveryDeps {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub client: GuardedClient,
    /// The access tokens of endpoints, and the connections of sign-ins.
    pub tokens: TokenCache,
    pub schedule: Schedule,
    pub circuit: CircuitPolicy,
    /// Deliveries to one endpoint at once.
    pub max_concurrent: usize,
    pub wakeups: Waiters<TaxpayerId>,
    /// Whether the process ends: what is under way ends, and nothing else begins.
    pub is_closing: AtomicBool,
    pub clock: SharedClock,
    pub incidents: Arc<Incidents>,
}

impl DeliveryDeps {
    /// Begins no more deliveries.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }
}

/// Why deliveries stopped. The lane is given back and they go on later.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Books(#[from] TaxpayerError),
    #[error("the signing secret cannot be used: {0}")]
    Secret(#[from] webhook::SecretFault),
    #[error("an attempt panicked")]
    Panic,
}

/// What a look has found, and what of it has not begun.
struct LoadedWork {
    to: Arc<DeliveryTarget>,
    failing: Option<FailureStreak>,
    passage: CircuitState,
    /// Deliveries that may be under way.
    places: usize,
    next: VecDeque<(Delivery, Event)>,
    /// Whether nothing else is due.
    is_all: bool,
    since: Instant,
}

impl LoadedWork {
    fn is_over(&self) -> bool {
        self.next.is_empty() || self.since.elapsed() > FRESH
    }
}

/// Who serves one endpoint.
pub(super) struct EndpointWorker {
    deps: Arc<DeliveryDeps>,
    due_reader: Arc<DueDeliveryReader>,
    outcome_writer: Arc<OutcomeWriter>,
    in_flight: InFlight,
    look_in: Duration,
    /// Rounds with a replay under way.
    rounds: u32,
}

impl EndpointWorker {
    pub(super) fn new(
        deps: Arc<DeliveryDeps>,
        due_reader: Arc<DueDeliveryReader>,
        outcome_writer: Arc<OutcomeWriter>,
    ) -> Self {
        Self {
            deps,
            due_reader,
            outcome_writer,
            in_flight: InFlight::default(),
            look_in: LOOK_FIRST,
            rounds: 0,
        }
    }

    /// Forgets what is under way: it is delivered again.
    pub(super) fn abandon(&mut self) {
        self.in_flight = InFlight::default();
    }

    /// One round. The lane is released when nothing is due; a round with attempts under way is never the last.
    pub(super) async fn deliver(
        &mut self,
        lease: &Lease,
        taxpayer: TaxpayerId,
    ) -> Result<Handled, DeliveryError> {
        self.in_flight.under(lease.epoch);
        self.in_flight.settle()?;
        if self.is_closing() && self.in_flight.is_empty() {
            return Ok(Handled::Unfinished);
        }
        let place = self.deps.wakeups.join(taxpayer);
        // From before anything is looked at, so that no new work goes unseen.
        let mut more = pin!(place.changed().fuse());
        let found = match self.due_reader.load(taxpayer).await {
            // What is under way goes on: it would be sent again, and the lane is still ours.
            Err(StoreError::Unavailable(error)) if !self.in_flight.is_empty() && !self.is_closing() => {
                tracing::warn!(%taxpayer, %error, "what is next could not be read; it is read again");
                sleep(LOOK_FIRST).await;
                return Ok(Handled::More);
            }
            found => found?,
        };
        let Some(found) = found else {
            return self.write(OutcomeReport::nothing(lease, taxpayer)).await;
        };
        let mut visit = self.visit(lease, found).await?;
        loop {
            self.begin(lease, &mut visit).await?;
            self.wait(more.as_mut()).await?;
            let handled = if self.in_flight.is_writing() {
                Handled::More
            } else {
                self.report(lease, &mut visit).await?
            };
            if self.is_closing() {
                // What is under way is heard out in this round: after it there may be no other.
                visit.next.clear();
                if self.in_flight.is_empty() || handled != Handled::More {
                    return Ok(handled);
                }
            } else if more.is_terminated() || visit.is_over() || !self.in_flight.is_writing() {
                return Ok(handled);
            }
        }
    }

    fn is_closing(&self) -> bool {
        self.deps.is_closing.load(Ordering::SeqCst)
    }

    /// What was found, without what is held already.
    async fn visit(&mut self, lease: &Lease, found: DueWork) -> Result<LoadedWork, DeliveryError> {
        let DueWork { mut recipient, next, at } = found;
        let failing = recipient.failing.take();
        let passage = failing.as_ref().map_or(CircuitState::Closed, |failing| failing.circuit_state(at));
        let to = Arc::new(DeliveryTarget::try_from(recipient)?);
        let places = match passage {
            _ if !to.endpoint.is_active || self.is_closing() => 0,
            CircuitState::Closed => self.deps.max_concurrent,
            CircuitState::Probe => 1,
            CircuitState::Parked(_) => 0,
        };
        let mut visit =
            LoadedWork { to, failing, passage, places, next, is_all: true, since: Instant::now() };
        if places == 0 {
            visit.next.clear();
            return Ok(visit);
        }
        visit.is_all = visit.next.len() < max_held(self.deps.max_concurrent);
        visit.next.retain(|(delivery, _)| !self.in_flight.holds(delivery));
        if visit.to.is_replaying {
            self.replay(lease, &mut visit).await?;
        }
        Ok(visit)
    }

    /// Keeps what is next in the order of the replays, and queues their next part where there is room for it. A replay
    /// waits until what came of its events' attempts is on the disk.
    async fn replay(&mut self, lease: &Lease, visit: &mut LoadedWork) -> Result<(), DeliveryError> {
        let (deps, room) = (Arc::clone(&self.deps), self.in_flight.room(visit.places));
        visit.is_all = false;
        visit.next.truncate(room);
        if room == 0 || self.in_flight.is_writing() {
            visit.next.clear();
            return Ok(());
        }
        let mut replays = replays::open_owned_by(deps.store.reader(), visit.to.endpoint.taxpayer_id).await?;
        let next = std::mem::take(&mut visit.next);
        visit.next = deps.keep_order(next.into(), &replays).await?.into();
        self.rounds = self.rounds.wrapping_add(1);
        if visit.next.len() < room || self.rounds.is_multiple_of(REPLAY_EVERY) {
            replays.retain(|replay| !self.in_flight.holds_ahead_of(replay));
            deps.queue_next_part(lease, &visit.to.endpoint, replays).await?;
        }
        Ok(())
    }

    /// Begins of what is next what there is room for. What goes alone waits until nothing else is under way, and is
    /// written down before it begins: it may be what ends the process.
    async fn begin(&mut self, lease: &Lease, visit: &mut LoadedWork) -> Result<(), DeliveryError> {
        while self.in_flight.room(visit.places) > 0 {
            let Some((delivery, event)) = visit.next.pop_front() else { break };
            if delivery.goes_alone() {
                if !self.in_flight.is_empty() {
                    visit.next.push_front((delivery, event));
                    break;
                }
                self.deps.record_isolated(lease, delivery.id).await?;
                self.in_flight.isolate();
            }
            self.look_in = LOOK_FIRST;
            let (deps, to) = (Arc::clone(&self.deps), Arc::clone(&visit.to));
            self.in_flight.begin((delivery.id, delivery.sequence), async move {
                let at = deps.clock.now();
                let attempt = deps.attempt(&to, &event, at, Post::KEPT_FOR_LOG).await;
                let as_of = to.endpoint.updated_at;
                CompletedAttempt { delivery, kind: event.kind, attempt, at, as_of }
            });
        }
        Ok(())
    }

    /// Until something has ended or has come. What ended while a report was written waits for nothing else.
    async fn wait(&mut self, more: impl FusedFuture<Output = ()>) -> Result<(), DeliveryError> {
        if self.in_flight.has_completed() && !self.in_flight.is_writing() {
            return Ok(());
        }
        tokio::select! {
            biased;
            changed = self.in_flight.change() => changed?,
            () = more => {}
            () = sleep(self.look_in) => self.look_in = self.look_in.saturating_mul(2).min(LOOK_LAST),
        }
        if self.in_flight.has_completed() && self.in_flight.is_under_way() {
            sleep(GATHER).await;
            self.in_flight.settle()?;
        }
        Ok(())
    }

    /// Has written what came of the attempts, and puts an endpoint out of service that wants no more or is hopeless.
    async fn report(&mut self, lease: &Lease, visit: &mut LoadedWork) -> Result<Handled, DeliveryError> {
        let (completed, endpoint) = (self.in_flight.take_completed(), &visit.to.endpoint);
        let is_all = visit.is_all && visit.next.is_empty() && !self.in_flight.is_under_way();
        let rest = is_all.then_some(visit.passage);
        if completed.is_empty() && rest.is_none() {
            return Ok(Handled::More);
        }
        let (deps, failing) = (Arc::clone(&self.deps), &visit.failing);
        // What was sent before somebody changed the endpoint says nothing of how it is now.
        let told = || completed.iter().filter(|one| one.is_of(endpoint)).map(|one| &one.attempt);
        let is_gone = told().any(webhook::Attempt::is_gone);
        let fares = deps.failure_streak_after(failing.clone(), told());
        let should_disable = fares.as_ref().is_some_and(|failing| failing.should_disable(&deps.circuit));
        let is_well = failing.is_none() && fares.is_none() && !is_gone;
        let (taxpayer, as_of) = (endpoint.taxpayer_id, endpoint.updated_at);
        let ids: Vec<_> = completed.iter().map(|one| one.delivery.id).collect();
        let was_isolated = completed.iter().any(|one| one.delivery.goes_alone());
        let report = OutcomeReport {
            lease: lease.clone(),
            taxpayer,
            outcomes: completed.into_iter().map(|one| deps.outcome(one, endpoint)).collect(),
            was_isolated,
            is_back: fares.is_none() && failing.as_ref().is_some_and(FailureStreak::was_parked),
            failing: (fares != *failing).then(|| (endpoint.clone(), fares.clone())),
            rest,
        };
        if is_well && rest.is_none() && !visit.to.is_replaying {
            let outcome_writer = Arc::clone(&self.outcome_writer);
            self.in_flight.write(ids, async move { outcome_writer.write(report).await });
            return Ok(Handled::More);
        }
        let handled = self.write(report).await?;
        self.in_flight.forget(&ids);
        let parked = fares.as_ref().and_then(|now| now.newly_parked(failing.as_ref()));
        if let Some(parked) = parked {
            deps.incidents.endpoint_parked(endpoint, parked);
        }
        if let Some(reason) = reason_to_disable(is_gone, should_disable) {
            deps.taxpayers.disable_endpoint(taxpayer, as_of, reason.to_owned()).await?;
            deps.incidents.endpoint_disabled(endpoint, reason);
        }
        visit.failing = fares;
        Ok(handled)
    }

    async fn write(&self, report: OutcomeReport) -> Result<Handled, DeliveryError> {
        match self.outcome_writer.write(report).await? {
            LaneStatus::Held => Ok(Handled::More),
            LaneStatus::Released => Ok(Handled::Released),
        }
    }
}

fn reason_to_disable(is_gone: bool, should_disable: bool) -> Option<&'static str> {
    match (is_gone, should_disable) {
        (true, _) => Some("the endpoint answered 410 Gone"),
        (false, true) => Some("the endpoint has done nothing but fail for days"),
        (false, false) => None,
    }
}
