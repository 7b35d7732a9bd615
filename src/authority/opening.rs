//! An open breaker: whose calls it holds back, and which call is the next probe. Every method is given the present.
//!
//! One probe goes at a time, spaced. A document that failed already is the last to be one. While few accounts failed,
//! the others probe sooner, beside it.

use std::time::Duration;

use jiff::Timestamp;

use super::account::Account;
use super::breaker::Verdict;

/// The time between two probes of an open breaker.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// How much longer a document that failed already waits to be a probe: others go first.
const REPEAT_AFTER: Duration = Duration::from_secs(2);
/// The time between two probes of accounts that have not failed.
const EARLY_PROBE_EVERY: Duration = Duration::from_secs(1);
/// While at most so many accounts failed, the others probe early.
const EARLY_PROBE_ACCOUNTS_MAX: usize = 16;

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Call,
    /// The breaker is open, and this call is to find out whether it should be.
    Probe,
    /// As a probe, beside it: a call of an account that has not failed.
    EarlyProbe,
    /// Not before this time has passed.
    Held(Duration),
}

/// Whose calls are held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    Nobody,
    Accounts(Vec<Account>),
    Everybody,
}

/// Whose calls an open breaker holds back.
#[derive(Debug)]
pub(super) enum Scope {
    Accounts(Vec<Account>),
    Everybody(Option<EarlyProbes>),
}

/// Probes of accounts other than those that failed.
#[derive(Debug)]
pub(super) struct EarlyProbes {
    failed: Vec<Account>,
    next_at: Timestamp,
}

/// An open breaker.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) scope: Scope,
    next_probe_at: Timestamp,
    /// When the probe started that is on its way.
    pub(super) probing_since: Option<Timestamp>,
}

impl Opening {
    pub(super) fn new(scope: Scope, now: Timestamp) -> Self {
        Self { scope, next_probe_at: after(now, PROBE_EVERY), probing_since: None }
    }

    /// Whether the calls of this account are not held back at all.
    pub(super) fn lets_pass(&self, account: Account) -> bool {
        matches!(&self.scope, Scope::Accounts(held) if !held.contains(&account))
    }

    /// The early probes, where this account may make them.
    pub(super) fn early(&self, account: Account) -> Option<&EarlyProbes> {
        match &self.scope {
            Scope::Everybody(Some(early)) if !early.failed.contains(&account) => Some(early),
            _ => None,
        }
    }

    pub(super) fn held(&self, has_failed: bool, now: Timestamp) -> Option<Duration> {
        if let Some(since) = self.probing_since {
            return Some(wait(now, after(since, PROBE_EVERY), PROBE_EVERY).unwrap_or(PROBE_EVERY / 5));
        }
        let extra = if has_failed { REPEAT_AFTER } else { Duration::ZERO };
        wait(now, after(self.next_probe_at, extra), PROBE_EVERY + extra)
    }

    pub(super) fn admit(&mut self, account: Account, now: Timestamp) -> Admission {
        match &mut self.scope {
            Scope::Everybody(Some(early)) if !early.failed.contains(&account) => {
                early.next_at = after(now, EARLY_PROBE_EVERY);
                Admission::EarlyProbe
            }
            _ => {
                self.probing_since = Some(now);
                Admission::Probe
            }
        }
    }

    /// A probe has ended without closing the breaker, if it was one.
    pub(super) fn probed(
        &mut self,
        account: Account,
        admission: Admission,
        verdict: Verdict,
        now: Timestamp,
    ) {
        if admission == Admission::Probe {
            self.probing_since = None;
            self.next_probe_at = after(now, PROBE_EVERY);
        }
        if let Scope::Everybody(probes @ Some(_)) = &mut self.scope
            && verdict == Verdict::Failed
        {
            *probes = probes.take().and_then(|early| early.without(account));
        }
    }

    pub(super) fn holds(&self, now: Timestamp) -> Held {
        let is_due = self.held(false, now).is_none();
        match &self.scope {
            _ if is_due => Held::Nobody,
            Scope::Accounts(held) => Held::Accounts(held.clone()),
            Scope::Everybody(Some(early)) if early.held(now).is_none() => {
                Held::Accounts(early.failed.clone())
            }
            Scope::Everybody(_) => Held::Everybody,
        }
    }

    pub(super) fn next_probe_at(&self, now: Timestamp) -> Option<Timestamp> {
        let is_due = wait(now, self.next_probe_at, PROBE_EVERY).is_none();
        let at = if is_due { self.next_probe_at.min(now) } else { self.next_probe_at };
        self.probing_since.is_none().then_some(at)
    }
}

impl EarlyProbes {
    /// None where many accounts failed: there is no doubt then that it is the authority.
    pub(super) fn beside(failed: Vec<Account>, now: Timestamp) -> Option<Self> {
        Self { failed, next_at: after(now, EARLY_PROBE_EVERY) }.unless_many()
    }

    pub(super) fn held(&self, now: Timestamp) -> Option<Duration> {
        wait(now, self.next_at, EARLY_PROBE_EVERY)
    }

    /// This account has failed, too.
    fn without(mut self, account: Account) -> Option<Self> {
        if !self.failed.contains(&account) {
            self.failed.push(account);
        }
        self.unless_many()
    }

    fn unless_many(self) -> Option<Self> {
        (self.failed.len() <= EARLY_PROBE_ACCOUNTS_MAX).then_some(self)
    }
}

pub(super) fn after(moment: Timestamp, wait: Duration) -> Timestamp {
    moment.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// How long it is until then; None where it is due. A moment further off than the longest wait is from before the
/// clock was set back: it is due, too.
pub(super) fn wait(now: Timestamp, then: Timestamp, longest: Duration) -> Option<Duration> {
    let wait = Duration::try_from(then.duration_since(now)).ok()?;
    (!wait.is_zero() && wait <= longest).then_some(wait)
}
