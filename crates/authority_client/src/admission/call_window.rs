//! The calls of one payer to one operation within the last 30 s, counted by account.
//!
//! All failures of calls about one IRN (invoice reference number) count as one, because a document that makes the
//! authority fail says nothing about the authority's health. Its further failures are counted as repetitions.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;

use crate::admission::call_origin::{CallOrigin, CallerAccount};
use crate::admission::payer_lane::CALLS_MIN;

pub(super) const WINDOW_S: i64 = 30;
/// The time for which a failed IRN is remembered, in seconds.
const FAILED_IRN_MEMORY_S: i64 = 600;
/// The maximum number of failed IRNs that are remembered. At this limit, a failure of any other IRN counts as a
/// repetition.
const IRNS_MAX: usize = 10_000;

/// The number of calls of one account, or of all accounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallCounts {
    pub(crate) answered: u32,
    /// The number of failures, where each IRN counts once.
    pub(crate) failed: u32,
    /// The number of failures of IRNs that had failed before.
    pub(crate) repeated: u32,
}

impl CallCounts {
    pub(crate) fn calls(self) -> u32 {
        self.answered.saturating_add(self.failures())
    }

    pub(crate) fn failures(self) -> u32 {
        self.failed.saturating_add(self.repeated)
    }

    /// Returns true if at least half of the calls failed, where each failed IRN counts once.
    pub(crate) fn has_mostly_failed(self) -> bool {
        self.failed > 0 && self.failed >= self.answered
    }

    /// True if at least half of the calls failed, repetitions included.
    pub(crate) fn has_half_failed(self) -> bool {
        self.failures().saturating_mul(2) >= self.calls()
    }

    /// True if there were enough calls for a conclusion, and at least half of them failed.
    pub(crate) fn is_conclusive(self) -> bool {
        self.calls() >= CALLS_MIN && self.has_half_failed()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.answered = self.answered.saturating_add(other.answered);
        self.failed = self.failed.saturating_add(other.failed);
        self.repeated = self.repeated.saturating_add(other.repeated);
    }
}

/// The calls to one operation within the last 30 s. A document that failed counts once, however often it failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentCalls {
    pub answered: u32,
    pub failed: u32,
    /// The calls of one account that are included in `answered`.
    pub own_answered: u32,
    pub own_failed: u32,
    /// The number of calls about one document that failed since the last one that was answered.
    pub failed_in_a_row: u32,
}

/// The times at which calls about one IRN failed since the last one that was answered, in Unix seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedIrn {
    pub(crate) first_at_s: i64,
    pub(crate) failures: u32,
    /// The time of the last failure that was counted as new and not as a repetition.
    counted_at_s: i64,
    last_at_s: i64,
}

/// The number of calls in one second.
#[derive(Debug)]
struct SecondCounts {
    second: i64,
    total: CallCounts,
    accounts: HashMap<CallerAccount, CallCounts>,
}

#[derive(Debug, Default)]
pub(crate) struct CallWindow {
    seconds: VecDeque<SecondCounts>,
    failed_irns: HashMap<Box<str>, FailedIrn>,
}

impl CallWindow {
    pub(crate) fn record_answer(&mut self, origin: &CallOrigin, now: Timestamp) {
        self.forget_failure(origin);
        self.record(
            origin.account,
            CallCounts {
                answered: 1,
                ..CallCounts::default()
            },
            now,
        );
    }

    pub(crate) fn record_failure(&mut self, origin: &CallOrigin, now: Timestamp) {
        let failure = CallCounts {
            failed: 1,
            ..CallCounts::default()
        };
        let counts = match &origin.irn {
            Some(irn) if !self.record_irn_failure(irn, now.as_second()) => CallCounts {
                repeated: 1,
                ..CallCounts::default()
            },
            _ => failure,
        };
        self.record(origin.account, counts, now);
    }

    /// Returns true if a call about this document failed in the last ten minutes and no later call was answered.
    pub(crate) fn has_failed(&self, origin: &CallOrigin, now: Timestamp) -> bool {
        self.failed_irn(origin, now).is_some()
    }

    /// Returns the failures of this document, if the last of them was in the last ten minutes and no later call was
    /// answered.
    pub(crate) fn failed_irn(&self, origin: &CallOrigin, now: Timestamp) -> Option<&FailedIrn> {
        let failed = self.failed_irns.get(origin.irn.as_ref()?)?;
        is_within(FAILED_IRN_MEMORY_S, failed.last_at_s, now.as_second()).then_some(failed)
    }

    /// Forgets the failures of this document, because a call about it was answered.
    pub(crate) fn forget_failure(&mut self, origin: &CallOrigin) {
        if let Some(irn) = &origin.irn {
            self.failed_irns.remove(irn);
        }
    }

    pub(crate) fn total(&self, now: Timestamp) -> CallCounts {
        let mut total = CallCounts::default();
        self.recent_seconds(now)
            .for_each(|second| total.add(second.total));
        total
    }

    pub(crate) fn account_total(&self, account: CallerAccount, now: Timestamp) -> CallCounts {
        let mut total = CallCounts::default();
        self.recent_seconds(now)
            .filter_map(|second| second.accounts.get(&account))
            .for_each(|counts| total.add(*counts));
        total
    }

    /// Counts the calls that were answered in later seconds than `after_s`. An answer in the same second may have come
    /// before it.
    pub(crate) fn answers_after(&self, after_s: i64, now: Timestamp) -> u32 {
        self.seconds_after(after_s, now)
            .map(|second| second.total.answered)
            .sum()
    }

    /// Counts the calls of one account that were answered in later seconds than `after_s`.
    pub(crate) fn account_answers_after(
        &self,
        account: CallerAccount,
        after_s: i64,
        now: Timestamp,
    ) -> u32 {
        self.seconds_after(after_s, now)
            .filter_map(|second| second.accounts.get(&account))
            .map(|counts| counts.answered)
            .sum()
    }

    pub(crate) fn counts_by_account(&self, now: Timestamp) -> HashMap<CallerAccount, CallCounts> {
        let mut accounts: HashMap<CallerAccount, CallCounts> = HashMap::new();
        for second in self.recent_seconds(now) {
            for (account, counts) in &second.accounts {
                accounts.entry(*account).or_default().add(*counts);
            }
        }
        accounts
    }

    /// Forgets the counted calls but not the failed IRNs, so that a document that fails again is still a repetition.
    pub(crate) fn clear(&mut self) {
        self.seconds.clear();
    }

    fn record(&mut self, account: CallerAccount, counts: CallCounts, now: Timestamp) {
        let number = now.as_second();
        if self
            .seconds
            .back()
            .is_none_or(|second| second.second != number)
        {
            self.seconds
                .retain(|second| is_within(WINDOW_S, second.second, number));
            self.failed_irns
                .retain(|_, failed| is_within(FAILED_IRN_MEMORY_S, failed.last_at_s, number));
            self.seconds.push_back(SecondCounts {
                second: number,
                total: CallCounts::default(),
                accounts: HashMap::new(),
            });
        }
        if let Some(second) = self.seconds.back_mut() {
            second.total.add(counts);
            second.accounts.entry(account).or_default().add(counts);
        }
    }

    fn recent_seconds(&self, now: Timestamp) -> impl Iterator<Item = &SecondCounts> {
        let number = now.as_second();
        self.seconds
            .iter()
            .filter(move |second| is_within(WINDOW_S, second.second, number))
    }

    fn seconds_after(&self, after_s: i64, now: Timestamp) -> impl Iterator<Item = &SecondCounts> {
        self.recent_seconds(now)
            .filter(move |second| second.second > after_s)
    }

    /// Records a failed call about an IRN. Returns false if it is a repetition: a failure of this IRN was counted in
    /// the last 30 s, or there is no room for the IRN.
    fn record_irn_failure(&mut self, irn: &str, now: i64) -> bool {
        if let Some(failed) = self.failed_irns.get_mut(irn) {
            let is_new = !is_within(WINDOW_S, failed.counted_at_s, now);
            *failed = FailedIrn {
                first_at_s: failed.first_at_s,
                failures: failed.failures.saturating_add(1),
                counted_at_s: if is_new { now } else { failed.counted_at_s },
                last_at_s: now,
            };
            return is_new;
        }
        let has_room = self.failed_irns.len() < IRNS_MAX;
        if has_room {
            self.failed_irns.insert(
                irn.into(),
                FailedIrn {
                    first_at_s: now,
                    failures: 1,
                    counted_at_s: now,
                    last_at_s: now,
                },
            );
        }
        has_room
    }
}

/// True if `second` is one of the last `length` seconds. False if it is in the future: it was recorded before the clock
/// was set back.
pub(super) fn is_within(length: i64, second: i64, now: i64) -> bool {
    (0..length).contains(&now.saturating_sub(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn account(taxpayer: i64) -> CallerAccount {
        CallerAccount::Taxpayer {
            id: taxpayer,
            payer: 1,
        }
    }

    fn origin(taxpayer: i64, irn: &str) -> CallOrigin {
        CallOrigin::new(account(taxpayer), Some(irn))
    }

    fn counts(answered: u32, failed: u32, repeated: u32) -> CallCounts {
        CallCounts {
            answered,
            failed,
            repeated,
        }
    }

    #[test]
    fn a_failure_counts_once_for_an_irn_within_the_window() {
        let mut window = CallWindow::default();
        for _ in 0..5 {
            window.record_failure(&origin(1, "A"), at(0));
        }
        window.record_failure(&origin(1, "B"), at(1));
        assert_eq!(window.total(at(1)), counts(0, 2, 4));
        window.clear();
        window.record_failure(&origin(1, "A"), at(29));
        assert_eq!(window.total(at(29)), counts(0, 0, 1), "it is known still");
        window.record_failure(&origin(1, "A"), at(30));
        assert_eq!(
            window.total(at(30)),
            counts(0, 1, 1),
            "it counts anew after the window"
        );
    }

    #[test]
    fn a_failed_document_is_remembered_until_it_is_answered() {
        let mut window = CallWindow::default();
        window.record_failure(&origin(1, "A"), at(0));
        window.record_failure(&origin(1, "B"), at(0));
        window.record_answer(&origin(1, "B"), at(1));
        let known = |window: &CallWindow, second| {
            ["A", "B", "C"].map(|irn| window.has_failed(&origin(1, irn), at(second)))
        };
        assert_eq!(known(&window, 599), [true, false, false]);
        assert_eq!(known(&window, 600), [false, false, false]);
    }

    #[test]
    fn a_call_without_a_document_counts_each_time() {
        let mut window = CallWindow::default();
        for _ in 0..3 {
            window.record_failure(&CallOrigin::new(CallerAccount::Service, None), at(0));
        }
        assert_eq!(window.total(at(0)), counts(0, 3, 0));
    }

    #[test]
    fn accounts_are_counted_separately() {
        let mut window = CallWindow::default();
        window.record_answer(&origin(1, "A"), at(0));
        window.record_failure(&origin(2, "B"), at(5));
        window.record_answer(&origin(1, "A"), at(20));
        let accounts = window.counts_by_account(at(29));
        let of = |id| accounts[&account(id)];
        assert_eq!((of(1), of(2)), (counts(2, 0, 0), counts(0, 1, 0)));
        assert_eq!(
            window.counts_by_account(at(45)).len(),
            1,
            "the rest is older than the window"
        );
    }

    #[test]
    fn calls_counted_before_the_clock_was_set_back_do_not_count() {
        let mut window = CallWindow::default();
        window.record_failure(&origin(1, "A"), at(600));
        assert_eq!(window.total(at(0)), counts(0, 0, 0));
        assert!(!window.has_failed(&origin(1, "A"), at(0)));
        window.record_failure(&origin(1, "A"), at(0));
        assert_eq!(window.total(at(0)), counts(0, 1, 0));
    }
}
