//! The accounts whose calls only fail. Their calls use a few separate slots, so they neither take the slots of other
//! accounts nor lower the limit. This ends with the next answer to a call of the account.

use std::collections::HashMap;

use crate::admission::call_origin::{CallerAccount, PayerOrService};

/// After this many failed calls without an answer in between, an account uses the separate slots for failing accounts.
const FAILURES_MIN: u32 = 5;
/// After this many failed calls of a payer without an answer in between, each of its accounts with a failed call uses
/// the separate slots.
const PAYER_FAILURES_MIN: u32 = 20;
/// The number of separate slots: for one payer, and for all payers together.
const SLOTS_PER_PAYER: u32 = 2;
const SLOTS_MAX: u32 = 8;
/// The number of accounts whose failures are remembered. At this limit all are forgotten and counted from zero again.
const ACCOUNTS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct FailingAccounts {
    /// The failed calls of each account since its last answer.
    failures: HashMap<CallerAccount, u32>,
    /// The failed calls of each payer since the last answer to any of its accounts.
    payer_failures: HashMap<PayerOrService, u32>,
    /// The separate slots that are in use, by payer and in total.
    used_by: HashMap<PayerOrService, u32>,
    used: u32,
}

impl FailingAccounts {
    pub(crate) fn on_answer(&mut self, account: CallerAccount) {
        self.failures.remove(&account);
        self.payer_failures.remove(&account.payer());
    }

    pub(crate) fn on_failure(&mut self, account: CallerAccount) {
        if self.failures.len() >= ACCOUNTS_MAX {
            self.failures.clear();
        }
        *self.failures.entry(account).or_default() += 1;
        *self.payer_failures.entry(account.payer()).or_default() += 1;
    }

    /// True if the calls of this account only fail.
    pub(crate) fn is_failing(&self, account: CallerAccount) -> bool {
        let Some(failures) = self.failures.get(&account) else {
            return false;
        };
        let payer_account = self.payer_failures.get(&account.payer());
        *failures >= FAILURES_MIN
            || payer_account.is_some_and(|failures| *failures >= PAYER_FAILURES_MIN)
    }

    /// Returns the number of separate slots that a payer uses; `None` if it may not take another one now.
    pub(crate) fn slots_in_use_if_free(&self, payer: PayerOrService) -> Option<u32> {
        let used = self.used_by.get(&payer).copied().unwrap_or_default();
        (used < SLOTS_PER_PAYER && self.used < SLOTS_MAX).then_some(used)
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.used
    }

    pub(crate) fn take_slot(&mut self, payer: PayerOrService) {
        self.used += 1;
        *self.used_by.entry(payer).or_default() += 1;
    }

    pub(crate) fn free_slot(&mut self, payer: PayerOrService) {
        self.used = self.used.saturating_sub(1);
        if let Some(used) = self.used_by.get_mut(&payer) {
            *used = used.saturating_sub(1);
            if *used == 0 {
                self.used_by.remove(&payer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(id: i64) -> CallerAccount {
        CallerAccount::Taxpayer { id, payer: 1 }
    }

    fn payer(id: u32) -> PayerOrService {
        PayerOrService::Payer(i64::from(id))
    }

    #[test]
    fn an_account_goes_apart_after_failures_without_an_answer_and_returns_with_the_next_answer() {
        let mut failing = FailingAccounts::default();
        for _ in 0..FAILURES_MIN - 1 {
            failing.on_failure(account(1));
        }
        failing.on_answer(account(1));
        for _ in 0..FAILURES_MIN {
            assert!(!failing.is_failing(account(1)));
            failing.on_failure(account(1));
        }
        assert!(failing.is_failing(account(1)) && !failing.is_failing(account(2)));
        failing.on_answer(account(1));
        assert!(!failing.is_failing(account(1)));
    }

    #[test]
    fn many_accounts_of_a_payer_go_apart_sooner_and_those_that_have_not_failed_stay() {
        let mut failing = FailingAccounts::default();
        let apart = |failing: &FailingAccounts| {
            (0..30)
                .filter(|id| failing.is_failing(account(*id)))
                .count()
        };
        for id in 0..25 {
            failing.on_failure(account(id));
        }
        assert_eq!(apart(&failing), 25);
        failing.on_answer(account(29));
        assert_eq!(apart(&failing), 0, "the payer is answered");
    }

    #[test]
    fn the_slots_apart_are_few() {
        let mut failing = FailingAccounts::default();
        for id in 0..SLOTS_MAX {
            if failing.slots_in_use_if_free(payer(id / 2)).is_some() {
                failing.take_slot(payer(id / 2));
            }
        }
        assert_eq!(
            (failing.in_flight(), failing.slots_in_use_if_free(payer(99))),
            (SLOTS_MAX, None)
        );
        failing.free_slot(payer(0));
        assert_eq!(
            (
                failing.slots_in_use_if_free(payer(1)),
                failing.slots_in_use_if_free(payer(99))
            ),
            (None, Some(0))
        );
    }
}
