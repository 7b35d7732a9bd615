//! The backstop of the notices: reads the authority's list of invoices in transit and works with what nobody
//! told us. One replica does it at a time. A cursor in the database says how far the list was read; what is read
//! again from there changes nothing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::actors::inbound::desk::{Inbound, Unresolved};
use crate::authority::{AuthorityFailure, PullQuery};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::clock::SharedClock;
use crate::domain::supplier_invoice::readable_irn;
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned;
use crate::store::lanes::leases;
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::operations::pull_cursors::{self, PullCursor};

/// The only lane of its kind.
const LANE: &str = "transit";
/// How far before the cursor the list is read again: it is by the day of the signature, and a transmission may
/// come days after it.
const OVERLAP: SignedDuration = SignedDuration::from_hours(3 * 24);
/// How often all that is in transit is read, however old.
const SWEEP_EVERY: SignedDuration = SignedDuration::from_hours(24);
/// How far back a sweep reads what was acknowledged: that list only grows.
const SWEEP_BACK: SignedDuration = SignedDuration::from_hours(31 * 24);
/// When an invoice that is withheld is looked at again: its buyer may be confirmed meanwhile.
const WITHHELD_FOR: SignedDuration = SignedDuration::from_mins(5);
/// When an invoice that is nobody's here is looked at again: its buyer may be onboarded meanwhile.
const NOBODY_FOR: SignedDuration = SignedDuration::from_hours(1);
/// Lines worked with in one turn.
const TURN_MAX: usize = 500;
/// Failures in a row after which the authority is left alone for this turn.
const FAILURES_MAX: usize = 5;

/// How often, by whom and for how long.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub every: Duration,
    /// Names this process in the lease.
    pub owner: String,
    pub lease: Duration,
}

/// Reads the list.
#[derive(Clone)]
pub struct Pull {
    inbound: Arc<Inbound>,
    clock: SharedClock,
    schedule: Schedule,
    /// Lines that were dealt with and when they are to be looked at again, if ever. It saves work and nothing
    /// depends on it.
    dealt: Arc<Mutex<HashMap<Line, Option<Timestamp>>>>,
}

/// A line of the list: which invoice, and whether its receipt was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Line {
    irn: Irn,
    is_delivered: bool,
}

/// How a turn ended.
enum Turn {
    /// The list was walked to its end.
    Done(PullCursor),
    /// There is more to do at once.
    Left,
    /// The authority cannot be asked at present.
    CutShort,
}

impl Pull {
    pub fn new(inbound: Arc<Inbound>, clock: SharedClock, schedule: Schedule) -> Self {
        Self { inbound, clock, schedule, dealt: Arc::default() }
    }

    /// Makes the first turn due: who starts may have missed notices.
    pub async fn appoint(&self) -> Result<(), StoreError> {
        let tx = self.inbound.store.begin().await?;
        abandoned::schedule_at_start(&tx, LaneKind::Pull, LANE).await?;
        tx.commit().await
    }

    /// Takes a turn if one is due and nobody else has it; whether there is more to do at once.
    pub async fn pull_due(&self) -> Result<bool, StoreError> {
        let store = &self.inbound.store;
        if !lanes::any_due(store, LaneKind::Pull).await? {
            return Ok(false);
        }
        let Schedule { owner, lease, .. } = &self.schedule;
        let Some(lease) = lanes::claim(store, LaneKind::Pull, owner, *lease, 1).await?.pop() else {
            return Ok(false);
        };
        let turn = self.turn(&lease, pull_cursors::load(store).await?).await;
        match self.end(&lease, &turn).await {
            // Another has taken over meanwhile; what we did, it finds done.
            Err(StoreError::Stale) => Ok(false),
            ended => ended.map(|()| matches!(turn, Turn::Left)),
        }
    }

    async fn end(&self, lease: &Lease, turn: &Turn) -> Result<(), StoreError> {
        let tx = self.inbound.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        if let Turn::Done(cursor) = turn {
            pull_cursors::save(&tx, *cursor).await?;
        }
        let delay = if matches!(turn, Turn::Left) { Duration::ZERO } else { self.schedule.every };
        lanes::release(&tx, lease, Some(delay)).await?;
        tx.commit().await
    }

    async fn turn(&self, lease: &Lease, cursor: PullCursor) -> Turn {
        let now = self.clock.now();
        let mut after = PullCursor { pulled_at: Some(now), ..cursor };
        let recent = cursor.pulled_at.map_or(back(now, SWEEP_BACK), |at| back(at, OVERLAP));
        let mut lines = match self.read(Some(recent), recent).await {
            Ok(lines) => lines,
            Err(failure) => {
                tracing::warn!(%failure, "the list of invoices in transit could not be read; it will be");
                return Turn::CutShort;
            }
        };
        if cursor.swept_at.is_none_or(|at| at <= back(now, SWEEP_EVERY) || at > now) {
            match self.read(None, back(now, SWEEP_BACK)).await {
                Ok(swept) => {
                    after.swept_at = Some(now);
                    lines.extend(swept);
                }
                Err(failure) => tracing::warn!(%failure, "not all that is in transit could be read"),
            }
        }
        self.walk(lease, self.undealt(lines, now), after).await
    }

    /// The lines of what is in transit and of what was acknowledged, each signed since a day.
    async fn read(
        &self,
        transit: Option<Timestamp>,
        acknowledged: Timestamp,
    ) -> Result<HashSet<Line>, AuthorityFailure> {
        let mut lines = HashSet::new();
        for (is_delivered, since) in [(false, transit), (true, Some(acknowledged))] {
            let from = since.map(|at| at.strftime("%Y-%m-%d").to_string());
            let query = PullQuery { confirmed: Some(is_delivered), from, to: None };
            let listed = self.inbound.authority.pull(&query).await?;
            // What cannot be an IRN is of nobody here.
            let irns = listed.iter().filter_map(|line| readable_irn(&line.irn));
            lines.extend(irns.map(|irn| Line { irn, is_delivered }));
        }
        Ok(lines)
    }

    /// Leaves out what was dealt with, and forgets what is no longer listed.
    fn undealt(&self, lines: HashSet<Line>, now: Timestamp) -> Vec<Line> {
        let mut dealt = self.dealt();
        let latest = now.saturating_add(NOBODY_FOR).unwrap_or(Timestamp::MAX);
        let is_later = |at: Timestamp| now < at && at <= latest;
        dealt.retain(|line, again| lines.contains(line) && again.is_none_or(is_later));
        lines.into_iter().filter(|line| !dealt.contains_key(line)).collect()
    }

    /// Works with the lines one by one. One that fails does not hold up the others; it is there the next time.
    async fn walk(&self, lease: &Lease, lines: Vec<Line>, after: PullCursor) -> Turn {
        let (total, mut failures, mut renewed) = (lines.len(), 0, Instant::now());
        for line in lines.into_iter().take(TURN_MAX) {
            match self.inbound.take_from_list(&line.irn, line.is_delivered).await {
                Ok(()) => drop(self.dealt().insert(line, None)),
                Err(unresolved @ (Unresolved::Nobody | Unresolved::Withheld)) => {
                    let wait =
                        if matches!(unresolved, Unresolved::Nobody) { NOBODY_FOR } else { WITHHELD_FOR };
                    let again = self.clock.now().saturating_add(wait).ok();
                    self.dealt().insert(line, again);
                }
                Err(failure) => {
                    tracing::warn!(irn = %line.irn, %failure, "an invoice in transit could not be dealt with; it will be");
                    failures += 1;
                    if failures == FAILURES_MAX {
                        return Turn::CutShort;
                    }
                    continue;
                }
            }
            failures = 0;
            self.keep(lease, &mut renewed).await;
        }
        if total > TURN_MAX { Turn::Left } else { Turn::Done(after) }
    }

    async fn keep(&self, lease: &Lease, renewed: &mut Instant) {
        let time = self.schedule.lease;
        if renewed.elapsed() < time / 3 {
            return;
        }
        match leases::renew(&self.inbound.store, lease.kind, std::slice::from_ref(lease), time).await {
            Ok(()) => *renewed = Instant::now(),
            Err(error) => tracing::warn!(%error, "the lease of the pull could not be renewed"),
        }
    }

    fn dealt(&self) -> MutexGuard<'_, HashMap<Line, Option<Timestamp>>> {
        self.dealt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn back(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_sub(by).unwrap_or(Timestamp::MIN)
}
