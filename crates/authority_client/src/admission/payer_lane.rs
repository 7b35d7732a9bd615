//! The lane of a payer: its calls to one operation within the last 30 s, and its own breaker. A payer whose documents
//! make calls fail never holds back another payer.
//!
//! A lane is called open while its breaker is open: calls are then held back. The breaker can open when there were at
//! least 20 calls and at least half of them failed. It opens for the whole payer if at least three of its taxpayers
//! fail, and these are at least half of the taxpayers that called; the other taxpayers then probe early. It opens for
//! one or two taxpayers alone if only these called, and all of them fail. While any call of the payer is answered, one
//! failed document is not enough to say that its taxpayer fails.

use std::time::Duration;

use jiff::Timestamp;

use crate::admission::call_origin::{CallOrigin, CallerAccount};
use crate::admission::call_verdict::CallVerdict;
use crate::admission::call_window::{CallCounts, CallWindow};
use crate::admission::open_breaker::{
    BreakerDecision, EarlyProbes, HeldBackCallers, OpenBreaker, OpenScope,
};

/// At least this many calls are needed for any conclusion.
pub(crate) const CALLS_MIN: u32 = 20;
/// If this many taxpayers fail, and they are at least half of those that called, the lane opens for the whole payer.
const ACCOUNTS_MIN: usize = 3;
/// A taxpayer fails only if calls about at least this many of its documents fail. One is enough if no call of the payer
/// was answered.
const FAILED_DOCUMENTS_MIN: u32 = 2;
/// The maximum number of failed taxpayers that are remembered.
const FAILED_ACCOUNTS_MAX: usize = 1_000;

/// The conclusion that the calls of the last 30 s allow about the cause of failures.
enum FailureEvidence {
    /// Too few calls, or too few failures among the calls, for any conclusion.
    None,
    /// Many calls failed, but perhaps only because of a few documents.
    Doubt,
    /// Every taxpayer that called fails, but only one or two called.
    AllOfFew(Vec<CallerAccount>),
    /// At least `ACCOUNTS_MIN` taxpayers fail, and these are at least half of those that called.
    Several(Vec<CallerAccount>),
}

#[derive(Debug, Default)]
pub(crate) struct PayerLane {
    window: CallWindow,
    /// The open breaker of this payer; `None` while the breaker is closed and calls pass.
    open: Option<OpenBreaker<CallerAccount>>,
    /// The accounts whose calls failed before the breaker opened or since.
    failed: Vec<CallerAccount>,
}

impl PayerLane {
    /// Returns how long this call must wait, or `None` if it may be made now.
    pub(crate) fn time_to_wait(&self, origin: &CallOrigin, now: Timestamp) -> Option<Duration> {
        self.open
            .as_ref()?
            .time_to_wait(origin.account, self.has_failed(origin, now), now)
    }

    /// Admits a call that is not held back.
    pub(crate) fn admit(&mut self, account: CallerAccount, now: Timestamp) -> BreakerDecision {
        self.open
            .as_mut()
            .map_or(BreakerDecision::Call, |open| open.admit(account, now))
    }

    pub(crate) fn record_end(
        &mut self,
        account: CallerAccount,
        decision: BreakerDecision,
        verdict: CallVerdict,
        now: Timestamp,
    ) {
        if let Some(open) = &mut self.open {
            open.record_end(account, decision, verdict, now);
        }
    }

    pub(crate) fn record_answer(&mut self, origin: &CallOrigin, now: Timestamp) {
        self.window.record_answer(origin, now);
    }

    /// Records a failed call. Opens the lane if `may_open` is true and enough calls failed.
    pub(crate) fn record_failure(&mut self, origin: &CallOrigin, may_open: bool, now: Timestamp) {
        self.window.record_failure(origin, now);
        if self.open.is_some() {
            self.add_failed(origin.account);
        }
        if may_open {
            self.open_on_evidence(now);
        }
    }

    /// Forgets the failures of this document, because a call about it was answered.
    pub(crate) fn forget_failure(&mut self, origin: &CallOrigin) {
        self.window.forget_failure(origin);
    }

    /// True if a call about this document failed and no later call was answered.
    pub(crate) fn has_failed(&self, origin: &CallOrigin, now: Timestamp) -> bool {
        self.window.has_failed(origin, now)
    }

    pub(crate) fn total(&self, now: Timestamp) -> CallCounts {
        self.window.total(now)
    }

    /// Returns the calls of the last 30 s.
    pub(crate) fn window(&self) -> &CallWindow {
        &self.window
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(crate) fn is_probing(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.probing_since.is_some())
    }

    pub(crate) fn has_callers(&self, now: Timestamp) -> bool {
        self.open.as_ref().is_some_and(|open| open.has_callers(now))
    }

    pub(crate) fn next_probe_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.open.as_ref()?.next_probe_at(now)
    }

    /// True if many calls failed, perhaps only because of a few documents.
    pub(crate) fn is_in_doubt(&self, now: Timestamp) -> bool {
        self.is_open() || !matches!(self.evidence(now), FailureEvidence::None)
    }

    /// Returns the accounts that the lane holds back; none while the next call would be a probe.
    pub(crate) fn held_accounts(&self, now: Timestamp) -> &[CallerAccount] {
        match self.open.as_ref().map(|open| open.callers_held_back(now)) {
            None | Some(HeldBackCallers::Nobody) => &[],
            Some(HeldBackCallers::Some(accounts)) => accounts,
            Some(HeldBackCallers::All) => &self.failed,
        }
    }

    /// Returns the accounts for which the lane is open, also while a probe is due.
    pub(crate) fn open_accounts(&self) -> &[CallerAccount] {
        match self.open.as_ref().map(|open| &open.scope) {
            None => &[],
            Some(OpenScope::Some(accounts)) => accounts,
            Some(OpenScope::All(_) | OpenScope::Tripped) => &self.failed,
        }
    }

    /// True if the lane is open and the next call of any of its accounts would be a probe.
    pub(crate) fn is_probe_due(&self, now: Timestamp) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.callers_held_back(now) == HeldBackCallers::Nobody)
    }

    pub(crate) fn failed_accounts(&self) -> &[CallerAccount] {
        &self.failed
    }

    /// Closes the lane because the breaker opens for everybody. The lane still remembers the accounts that failed.
    pub(crate) fn yield_to_breaker(&mut self, now: Timestamp) {
        self.open = None;
        for (account, counts) in self.window.counts_by_account(now) {
            if counts.has_mostly_failed() {
                self.add_failed(account);
            }
        }
    }

    /// Closes the lane and forgets its calls.
    pub(crate) fn close(&mut self) {
        self.window.clear();
        self.open = None;
        self.failed.clear();
    }

    fn add_failed(&mut self, account: CallerAccount) {
        if self.failed.len() < FAILED_ACCOUNTS_MAX && !self.failed.contains(&account) {
            self.failed.push(account);
        }
    }

    fn open_on_evidence(&mut self, now: Timestamp) {
        if self
            .open
            .as_ref()
            .is_some_and(|open| matches!(open.scope, OpenScope::All(_)))
        {
            return;
        }
        match self.evidence(now) {
            FailureEvidence::None | FailureEvidence::Doubt => {}
            FailureEvidence::AllOfFew(failed) => match &mut self.open {
                None => self.open(OpenScope::Some(failed.clone()), failed, now),
                Some(open) => open.scope = OpenScope::Some(failed),
            },
            FailureEvidence::Several(failed) => {
                let probes = EarlyProbes::start_probes_if_few_failed(failed.clone(), now);
                self.open(OpenScope::All(probes), failed, now);
            }
        }
    }

    fn open(
        &mut self,
        scope: OpenScope<CallerAccount>,
        failed: Vec<CallerAccount>,
        now: Timestamp,
    ) {
        self.open = Some(OpenBreaker::new(scope, now));
        for account in failed {
            self.add_failed(account);
        }
    }

    fn evidence(&self, now: Timestamp) -> FailureEvidence {
        let total = self.window.total(now);
        if !total.is_conclusive() {
            return FailureEvidence::None;
        }
        let without_repetitions = total.answered.saturating_add(total.failed);
        if without_repetitions < CALLS_MIN || !total.has_mostly_failed() {
            return FailureEvidence::Doubt;
        }
        let accounts = self.window.counts_by_account(now);
        let failing_accounts = accounts.iter().filter(|(_, counts)| {
            counts.has_mostly_failed()
                && (total.answered == 0 || counts.failed >= FAILED_DOCUMENTS_MIN)
        });
        let failed: Vec<_> = failing_accounts.map(|(account, _)| *account).collect();
        if failed.len() >= ACCOUNTS_MIN && failed.len() * 2 >= accounts.len() {
            return FailureEvidence::Several(failed);
        }
        if failed.len() == accounts.len() {
            FailureEvidence::AllOfFew(failed)
        } else {
            FailureEvidence::Doubt
        }
    }
}
