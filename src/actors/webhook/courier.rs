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

use crate::actors::dispatch::Handled;
use crate::actors::incidents::Incidents;
use crate::actors::taxpayer::door::{Failure, Taxpayers};
use crate::actors::waiters::Waiters;
use crate::actors::webhook::flight::{Flight, Landed, most_held};
use crate::actors::webhook::keyring::Keyring;
use crate::actors::webhook::recipient::Recipient;
use crate::actors::webhook::recorder::{Noted, Recorder, Report};
use crate::actors::webhook::scout::{Found, Scout};
use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint_health::{CircuitPolicy, Failing, Passage};
use crate::domain::events::event::Event;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::database::Store;
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
pub struct Satchel {
    pub store: Store,
    pub taxpayers: Arc<Taxpayers>,
    pub client: GuardedClient,
    /// The access tokens of endpoints, and the connections of sign-ins.
    pub keyring: Keyring,
    pub schedule: Schedule,
    pub circuit: CircuitPolicy,
    /// Deliveries to one endpoint at once.
    pub at_once: usize,
    pub bells: Waiters<TaxpayerId>,
    /// Whether the process ends: what is under way ends, and nothing else begins.
    pub is_closing: AtomicBool,
    pub clock: SharedClock,
    pub incidents: Arc<Incidents>,
}

impl Satchel {
    /// Begins no more deliveries.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }
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
    #[error("an attempt panicked")]
    Panic,
}

/// What a look has found, and what of it has not begun.
struct Visit {
    to: Arc<Recipient>,
    failing: Option<Failing>,
    passage: Passage,
    /// Deliveries that may be under way.
    places: usize,
    next: VecDeque<(Delivery, Event)>,
    /// Whether nothing else is due.
    is_all: bool,
    since: Instant,
}

impl Visit {
    fn is_over(&self) -> bool {
        self.next.is_empty() || self.since.elapsed() > FRESH
    }
}

/// Who serves one endpoint.
pub(super) struct Courier {
    satchel: Arc<Satchel>,
    scout: Arc<Scout>,
    recorder: Arc<Recorder>,
    flight: Flight,
    look_in: Duration,
    /// Rounds with a replay under way.
    rounds: u32,
}

impl Courier {
    pub(super) fn new(satchel: Arc<Satchel>, scout: Arc<Scout>, recorder: Arc<Recorder>) -> Self {
        Self { satchel, scout, recorder, flight: Flight::default(), look_in: LOOK_FIRST, rounds: 0 }
    }

    /// Forgets what is under way: it is delivered again.
    pub(super) fn abandon(&mut self) {
        self.flight = Flight::default();
    }

    /// One round. The lane is released when nothing is due; a round with attempts under way is never the last.
    pub(super) async fn deliver(&mut self, lease: &Lease, taxpayer: TaxpayerId) -> Result<Handled, Stop> {
        self.flight.under(lease.epoch);
        self.flight.settle()?;
        if self.is_closing() && self.flight.is_empty() {
            return Ok(Handled::Unfinished);
        }
        let place = self.satchel.bells.join(taxpayer);
        // From before anything is looked at, so that no new work goes unseen.
        let mut more = pin!(place.changed().fuse());
        let found = match self.scout.look(taxpayer).await {
            // What is under way goes on: it would be sent again, and the lane is still ours.
            Err(StoreError::Unavailable(error)) if !self.flight.is_empty() && !self.is_closing() => {
                tracing::warn!(%taxpayer, %error, "what is next could not be read; it is read again");
                sleep(LOOK_FIRST).await;
                return Ok(Handled::More);
            }
            found => found?,
        };
        let Some(found) = found else {
            return self.note(Report::nothing(lease, taxpayer)).await;
        };
        let mut visit = self.visit(lease, found).await?;
        loop {
            self.begin(lease, &mut visit).await?;
            self.wait(more.as_mut()).await?;
            let handled =
                if self.flight.is_writing() { Handled::More } else { self.report(lease, &mut visit).await? };
            if self.is_closing() {
                // What is under way is heard out in this round: after it there may be no other.
                visit.next.clear();
                if self.flight.is_empty() || handled != Handled::More {
                    return Ok(handled);
                }
            } else if more.is_terminated() || visit.is_over() || !self.flight.is_writing() {
                return Ok(handled);
            }
        }
    }

    fn is_closing(&self) -> bool {
        self.satchel.is_closing.load(Ordering::SeqCst)
    }

    /// What was found, without what is held already.
    async fn visit(&mut self, lease: &Lease, found: Found) -> Result<Visit, Stop> {
        let Found { mut recipient, next, at } = found;
        let failing = recipient.failing.take();
        let passage = failing.as_ref().map_or(Passage::Open, |failing| failing.passage(at));
        let to = Arc::new(Recipient::try_from(recipient)?);
        let places = match passage {
            _ if !to.endpoint.is_active || self.is_closing() => 0,
            Passage::Open => self.satchel.at_once,
            Passage::Probe => 1,
            Passage::Parked(_) => 0,
        };
        let mut visit = Visit { to, failing, passage, places, next, is_all: true, since: Instant::now() };
        if places == 0 {
            visit.next.clear();
            return Ok(visit);
        }
        visit.is_all = visit.next.len() < most_held(self.satchel.at_once);
        visit.next.retain(|(delivery, _)| !self.flight.holds(delivery));
        if visit.to.is_replaying {
            self.replay(lease, &mut visit).await?;
        }
        Ok(visit)
    }

    /// Keeps what is next in the order of the replays, and queues their next part where there is room for it. A replay
    /// waits until what came of its events' attempts is on the disk.
    async fn replay(&mut self, lease: &Lease, visit: &mut Visit) -> Result<(), Stop> {
        let (satchel, room) = (Arc::clone(&self.satchel), self.flight.room(visit.places));
        visit.is_all = false;
        visit.next.truncate(room);
        if room == 0 || self.flight.is_writing() {
            visit.next.clear();
            return Ok(());
        }
        let mut replays =
            replays::open_owned_by(satchel.store.reader(), visit.to.endpoint.taxpayer_id).await?;
        let next = std::mem::take(&mut visit.next);
        visit.next = satchel.keep_order(next.into(), &replays).await?.into();
        self.rounds = self.rounds.wrapping_add(1);
        if visit.next.len() < room || self.rounds.is_multiple_of(REPLAY_EVERY) {
            replays.retain(|replay| !self.flight.holds_ahead_of(replay));
            satchel.queue_next(lease, &visit.to.endpoint, replays).await?;
        }
        Ok(())
    }

    /// Begins of what is next what there is room for. What goes alone waits until nothing else is under way, and is
    /// written down before it begins: it may be what ends the process.
    async fn begin(&mut self, lease: &Lease, visit: &mut Visit) -> Result<(), Stop> {
        while self.flight.room(visit.places) > 0 {
            let Some((delivery, event)) = visit.next.pop_front() else { break };
            if delivery.goes_alone() {
                if !self.flight.is_empty() {
                    visit.next.push_front((delivery, event));
                    break;
                }
                self.satchel.write_down(lease, delivery.id).await?;
                self.flight.keep_alone();
            }
            self.look_in = LOOK_FIRST;
            let (satchel, to) = (Arc::clone(&self.satchel), Arc::clone(&visit.to));
            self.flight.begin((delivery.id, delivery.sequence), async move {
                let at = satchel.clock.now();
                let attempt = satchel.attempt(&to, &event, at, Post::KEPT_FOR_LOG).await;
                let as_of = to.endpoint.updated_at;
                Landed { delivery, kind: event.kind, attempt, at, as_of }
            });
        }
        Ok(())
    }

    /// Until something has ended or has come. What ended while a report was written waits for nothing else.
    async fn wait(&mut self, more: impl FusedFuture<Output = ()>) -> Result<(), Stop> {
        if self.flight.has_landed() && !self.flight.is_writing() {
            return Ok(());
        }
        tokio::select! {
            biased;
            changed = self.flight.change() => changed?,
            () = more => {}
            () = sleep(self.look_in) => self.look_in = self.look_in.saturating_mul(2).min(LOOK_LAST),
        }
        if self.flight.has_landed() && self.flight.is_under_way() {
            sleep(GATHER).await;
            self.flight.settle()?;
        }
        Ok(())
    }

    /// Has written what came of the attempts, and puts an endpoint out of service that wants no more or is hopeless.
    async fn report(&mut self, lease: &Lease, visit: &mut Visit) -> Result<Handled, Stop> {
        let (landed, endpoint) = (self.flight.take_landed(), &visit.to.endpoint);
        let is_all = visit.is_all && visit.next.is_empty() && !self.flight.is_under_way();
        let rest = is_all.then_some(visit.passage);
        if landed.is_empty() && rest.is_none() {
            return Ok(Handled::More);
        }
        let (satchel, failing) = (Arc::clone(&self.satchel), &visit.failing);
        // What was sent before somebody changed the endpoint says nothing of how it is now.
        let told = || landed.iter().filter(|one| one.is_of(endpoint)).map(|one| &one.attempt);
        let is_gone = told().any(webhook::Attempt::is_gone);
        let fares = satchel.fares(failing.clone(), told());
        let is_hopeless = fares.as_ref().is_some_and(|failing| failing.is_hopeless(&satchel.circuit));
        let is_well = failing.is_none() && fares.is_none() && !is_gone;
        let (taxpayer, as_of) = (endpoint.taxpayer_id, endpoint.updated_at);
        let ids: Vec<_> = landed.iter().map(|one| one.delivery.id).collect();
        let was_alone = landed.iter().any(|one| one.delivery.goes_alone());
        let report = Report {
            lease: lease.clone(),
            taxpayer,
            outcomes: landed.into_iter().map(|one| satchel.outcome(one, endpoint)).collect(),
            was_alone,
            is_back: fares.is_none() && failing.as_ref().is_some_and(Failing::was_parked),
            failing: (fares != *failing).then(|| (endpoint.clone(), fares.clone())),
            rest,
        };
        if is_well && rest.is_none() && !visit.to.is_replaying {
            let recorder = Arc::clone(&self.recorder);
            self.flight.write(ids, async move { recorder.note(report).await });
            return Ok(Handled::More);
        }
        let handled = self.note(report).await?;
        self.flight.forget(&ids);
        let parked = fares.as_ref().and_then(|now| now.newly_parked(failing.as_ref()));
        if let Some(parked) = parked {
            satchel.incidents.endpoint_parked(endpoint, parked);
        }
        if let Some(reason) = reason_to_disable(is_gone, is_hopeless) {
            satchel.taxpayers.disable_endpoint(taxpayer, as_of, reason.to_owned()).await?;
            satchel.incidents.endpoint_disabled(endpoint, reason);
        }
        visit.failing = fares;
        Ok(handled)
    }

    async fn note(&self, report: Report) -> Result<Handled, Stop> {
        match self.recorder.note(report).await? {
            Noted::Held => Ok(Handled::More),
            Noted::Released => Ok(Handled::Released),
        }
    }
}

fn reason_to_disable(is_gone: bool, is_hopeless: bool) -> Option<&'static str> {
    match (is_gone, is_hopeless) {
        (true, _) => Some("the endpoint answered 410 Gone"),
        (false, true) => Some("the endpoint has done nothing but fail for days"),
        (false, false) => None,
    }
}
