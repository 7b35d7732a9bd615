//! An open breaker: which callers it holds back, and which call is the next probe. In the breaker of a payer's lane,
//! the callers are the accounts of this payer. In the breaker for everybody, they are the payers.
//!
//! One regular probe runs at a time, with a pause after it. If only few callers failed, the others make additional,
//! earlier probes.

use std::time::Duration;

use jiff::Timestamp;

use crate::admission::call_origin::CallerAccount;
use crate::admission::call_verdict::CallVerdict;

/// The time between two probes of an open breaker.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// A call about a document that has failed may become a probe only this much later, so that other documents go first.
const REPEAT_DELAY: Duration = Duration::from_secs(2);
/// An open breaker whose probe has been due for so long has no callers.
const PROBE_AWAITED_MAX: Duration = Duration::from_secs(30);
/// The time between two early probes, which only callers without failures make.
const EARLY_PROBE_EVERY: Duration = Duration::from_secs(1);
/// A call that an operator's order holds back is tried again after this time. When an operator resets the breaker, the
/// waiting runs are due at once.
const TRIPPED_WAIT: Duration = Duration::from_mins(1);
/// Callers without failures may probe early while at most this many callers failed.
const EARLY_PROBE_CALLERS_MAX: usize = 16;

/// The breaker's state as operators see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    Open,
    /// The breaker is open, and a probe is in flight.
    HalfOpen,
}

impl BreakerState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// The breaker's decision about one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerDecision {
    Call,
    /// The breaker is open, and this call tests the authority.
    Probe,
    /// A probe in addition to the regular probe, by a caller that has not failed.
    EarlyProbe,
    /// The call must wait this long.
    Held(Duration),
}

/// The callers whose calls an open breaker holds back at a given time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldCallers {
    Nobody,
    Accounts(Vec<CallerAccount>),
    Everybody,
}

/// The callers of which one may make a probe now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeCallers {
    Accounts(Vec<CallerAccount>),
    /// All callers except those of these payers.
    AllButPayers(Vec<i64>),
}

/// The callers for which a breaker is open.
#[derive(Debug)]
pub(crate) enum OpenScope<C> {
    Some(Vec<C>),
    All(Option<EarlyProbes<C>>),
    /// An operator tripped the breaker. It is open for everybody, without probes, until an operator resets it.
    Tripped,
}

/// The callers that an open breaker holds back at a given time, as this breaker knows them: payers or accounts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeldBackCallers<'a, C> {
    Nobody,
    Some(&'a [C]),
    All,
}

/// The state of the early probes, which callers without failures make in addition to the regular probes.
#[derive(Debug)]
pub(crate) struct EarlyProbes<C> {
    failed: Vec<C>,
    next_at: Timestamp,
}

#[derive(Debug)]
pub(crate) struct OpenBreaker<C> {
    pub(crate) scope: OpenScope<C>,
    next_probe_at: Timestamp,
    /// The time at which the probe in flight started; `None` if no probe is in flight.
    pub(crate) probing_since: Option<Timestamp>,
}

impl<C: Copy + PartialEq> OpenBreaker<C> {
    pub(crate) fn new(scope: OpenScope<C>, now: Timestamp) -> Self {
        Self {
            scope,
            next_probe_at: add_time(now, PROBE_EVERY),
            probing_since: None,
        }
    }

    /// Returns true if the breaker is not open for this caller.
    pub(crate) fn lets_pass(&self, caller: C) -> bool {
        matches!(&self.scope, OpenScope::Some(held) if !held.contains(&caller))
    }

    /// Returns the state of the early probes; `None` if this caller may not make any.
    fn early_probes(&self, caller: C) -> Option<&EarlyProbes<C>> {
        match &self.scope {
            OpenScope::All(Some(early)) if !early.failed.contains(&caller) => Some(early),
            _ => None,
        }
    }

    pub(crate) fn is_tripped(&self) -> bool {
        matches!(self.scope, OpenScope::Tripped)
    }

    /// True if an operator tripped the breaker, or if its callers still call: a probe is in flight, or has been due for
    /// less than `PROBE_AWAITED_MAX`.
    pub(crate) fn has_callers(&self, now: Timestamp) -> bool {
        let awaited_until = add_time(self.next_probe_at, PROBE_AWAITED_MAX);
        self.is_tripped()
            || self.probing_since.is_some()
            || time_until(now, awaited_until, PROBE_EVERY + PROBE_AWAITED_MAX).is_some()
    }

    /// Returns how long a call of this caller must wait; `None` if it may be made now. `has_failed` says whether a call
    /// about the same document failed before.
    pub(crate) fn time_to_wait(
        &self,
        caller: C,
        has_failed: bool,
        now: Timestamp,
    ) -> Option<Duration> {
        match self.early_probes(caller) {
            _ if self.lets_pass(caller) => None,
            Some(early) => early.time_to_wait(now),
            None => self.regular_hold_time(has_failed, now),
        }
    }

    fn regular_hold_time(&self, has_failed: bool, now: Timestamp) -> Option<Duration> {
        if self.is_tripped() {
            return Some(TRIPPED_WAIT);
        }
        if let Some(since) = self.probing_since {
            return Some(
                time_until(now, add_time(since, PROBE_EVERY), PROBE_EVERY)
                    .unwrap_or(PROBE_EVERY / 5),
            );
        }
        let extra = if has_failed {
            REPEAT_DELAY
        } else {
            Duration::ZERO
        };
        time_until(
            now,
            add_time(self.next_probe_at, extra),
            PROBE_EVERY + extra,
        )
    }

    /// Admits a call that is not held back. The call may become a probe.
    pub(crate) fn admit(&mut self, caller: C, now: Timestamp) -> BreakerDecision {
        if self.lets_pass(caller) {
            return BreakerDecision::Call;
        }
        match &mut self.scope {
            OpenScope::All(Some(early)) if !early.failed.contains(&caller) => {
                early.next_at = add_time(now, EARLY_PROBE_EVERY);
                BreakerDecision::EarlyProbe
            }
            _ => {
                self.probing_since = Some(now);
                BreakerDecision::Probe
            }
        }
    }

    /// Records the end of a call. The end of a regular probe schedules the next one. A caller whose call failed may
    /// make no more early probes.
    pub(crate) fn record_end(
        &mut self,
        caller: C,
        decision: BreakerDecision,
        verdict: CallVerdict,
        now: Timestamp,
    ) {
        if decision == BreakerDecision::Probe {
            self.probing_since = None;
            self.next_probe_at = add_time(now, PROBE_EVERY);
        }
        if let OpenScope::All(probes @ Some(_)) = &mut self.scope
            && verdict == CallVerdict::Failed
        {
            *probes = probes.take().and_then(|early| early.without_caller(caller));
        }
    }

    /// Returns the callers that are held back; nobody while the next call would be a probe.
    pub(crate) fn callers_held_back(&self, now: Timestamp) -> HeldBackCallers<'_, C> {
        let is_due = self.regular_hold_time(false, now).is_none();
        match &self.scope {
            _ if is_due => HeldBackCallers::Nobody,
            OpenScope::Some(held) => HeldBackCallers::Some(held),
            OpenScope::All(Some(early)) if early.time_to_wait(now).is_none() => {
                HeldBackCallers::Some(&early.failed)
            }
            OpenScope::All(_) | OpenScope::Tripped => HeldBackCallers::All,
        }
    }

    /// Returns when the next probe may start. `None` if the next call is the probe, if a probe is in flight, or if an
    /// operator tripped the breaker, which then makes no probes.
    pub(crate) fn next_probe_at(&self, now: Timestamp) -> Option<Timestamp> {
        let is_due = time_until(now, self.next_probe_at, PROBE_EVERY).is_none();
        let is_awaited = !is_due && self.probing_since.is_none() && !self.is_tripped();
        is_awaited.then_some(self.next_probe_at)
    }
}

impl<C: Copy + PartialEq> EarlyProbes<C> {
    /// Starts the early probes. Returns `None` if many callers failed: early probes would then only add load.
    pub(crate) fn start_probes_if_few_failed(failed: Vec<C>, now: Timestamp) -> Option<Self> {
        Self {
            failed,
            next_at: add_time(now, EARLY_PROBE_EVERY),
        }
        .unless_many_failed()
    }

    fn time_to_wait(&self, now: Timestamp) -> Option<Duration> {
        time_until(now, self.next_at, EARLY_PROBE_EVERY)
    }

    /// Adds a caller that failed, so that it may no longer probe early. Returns `None` if too many callers failed.
    fn without_caller(mut self, caller: C) -> Option<Self> {
        if !self.failed.contains(&caller) {
            self.failed.push(caller);
        }
        self.unless_many_failed()
    }

    fn unless_many_failed(self) -> Option<Self> {
        (self.failed.len() <= EARLY_PROBE_CALLERS_MAX).then_some(self)
    }
}

pub(crate) fn add_time(moment: Timestamp, wait: Duration) -> Timestamp {
    moment.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Returns the time until `then`; `None` if `then` has passed. Also `None` if `then` is more than `longest` away: then
/// the clock was set back, and no call must wait for that.
pub(crate) fn time_until(now: Timestamp, then: Timestamp, longest: Duration) -> Option<Duration> {
    let wait = Duration::try_from(then.duration_since(now)).ok()?;
    (!wait.is_zero() && wait <= longest).then_some(wait)
}
