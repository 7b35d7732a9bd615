//! The calls of one operation within the last 30 s, counted by account. Every method is given the present.
//!
//! A failure counts once for an IRN: a document that makes the authority fail says nothing about the authority,
//! however often it is sent. The repetitions are counted apart.

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;

use super::account::{Account, Origin};

const WINDOW_S: i64 = 30;
/// How long it is known of an IRN that it failed.
const FAILED_FOR_S: i64 = 600;
/// IRNs of which that is known. Failures of further ones count as repetitions.
const IRNS_MAX: usize = 10_000;

/// The calls of an account or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) answered: u32,
    /// Failures, each IRN once.
    pub(super) failed: u32,
    /// Failures of IRNs that had failed before.
    pub(super) repeated: u32,
}

impl Counts {
    pub(super) fn calls(self) -> u32 {
        self.answered.saturating_add(self.failures())
    }

    pub(super) fn failures(self) -> u32 {
        self.failed.saturating_add(self.repeated)
    }

    /// Whether at least half of the calls failed, where an IRN counts once.
    pub(super) fn mostly_failed(self) -> bool {
        self.failed > 0 && self.failed >= self.answered
    }

    fn add(&mut self, other: Self) {
        self.answered = self.answered.saturating_add(other.answered);
        self.failed = self.failed.saturating_add(other.failed);
        self.repeated = self.repeated.saturating_add(other.repeated);
    }
}

/// When a call about an IRN failed, in seconds.
#[derive(Debug, Clone, Copy)]
struct Failed {
    /// When its failure was last counted.
    counted: i64,
    last: i64,
}

/// The calls of one second.
#[derive(Debug)]
struct Second {
    number: i64,
    total: Counts,
    accounts: HashMap<Account, Counts>,
}

#[derive(Debug, Default)]
pub(super) struct CallWindow {
    seconds: VecDeque<Second>,
    failed_irns: HashMap<Box<str>, Failed>,
}

impl CallWindow {
    pub(super) fn record_answer(&mut self, origin: &Origin, now: Timestamp) {
        self.forget(origin);
        self.record(origin.account, Counts { answered: 1, ..Counts::default() }, now);
    }

    pub(super) fn record_failure(&mut self, origin: &Origin, now: Timestamp) {
        let failure = Counts { failed: 1, ..Counts::default() };
        let counts = match &origin.irn {
            Some(irn) if !self.counts_anew(irn, now.as_second()) => {
                Counts { repeated: 1, ..Counts::default() }
            }
            _ => failure,
        };
        self.record(origin.account, counts, now);
    }

    /// Whether a call about this document has failed lately, and none was answered since.
    pub(super) fn has_failed(&self, origin: &Origin, now: Timestamp) -> bool {
        let failed = origin.irn.as_ref().and_then(|irn| self.failed_irns.get(irn));
        failed.is_some_and(|failed| is_within(FAILED_FOR_S, failed.last, now.as_second()))
    }

    /// A call about this document was answered.
    pub(super) fn forget(&mut self, origin: &Origin) {
        if let Some(irn) = &origin.irn {
            self.failed_irns.remove(irn);
        }
    }

    pub(super) fn total(&self, now: Timestamp) -> Counts {
        let mut total = Counts::default();
        self.current(now).for_each(|second| total.add(second.total));
        total
    }

    pub(super) fn by_account(&self, now: Timestamp) -> HashMap<Account, Counts> {
        let mut accounts: HashMap<Account, Counts> = HashMap::new();
        for second in self.current(now) {
            for (account, counts) in &second.accounts {
                accounts.entry(*account).or_default().add(*counts);
            }
        }
        accounts
    }

    /// Forgets the calls. An IRN that failed stays known: it counts once, also after this.
    pub(super) fn clear(&mut self) {
        self.seconds.clear();
    }

    fn record(&mut self, account: Account, counts: Counts, now: Timestamp) {
        let number = now.as_second();
        if self.seconds.back().is_none_or(|second| second.number != number) {
            self.seconds.retain(|second| is_within(WINDOW_S, second.number, number));
            self.failed_irns.retain(|_, failed| is_within(FAILED_FOR_S, failed.last, number));
            self.seconds.push_back(Second { number, total: Counts::default(), accounts: HashMap::new() });
        }
        if let Some(second) = self.seconds.back_mut() {
            second.total.add(counts);
            second.accounts.entry(account).or_default().add(counts);
        }
    }

    fn current(&self, now: Timestamp) -> impl Iterator<Item = &Second> {
        let number = now.as_second();
        self.seconds.iter().filter(move |second| is_within(WINDOW_S, second.number, number))
    }

    /// Notes that an IRN failed. False where its failure was counted within the window.
    fn counts_anew(&mut self, irn: &str, now: i64) -> bool {
        if let Some(failed) = self.failed_irns.get_mut(irn) {
            let is_new = !is_within(WINDOW_S, failed.counted, now);
            *failed = Failed { counted: if is_new { now } else { failed.counted }, last: now };
            return is_new;
        }
        let has_room = self.failed_irns.len() < IRNS_MAX;
        if has_room {
            self.failed_irns.insert(irn.into(), Failed { counted: now, last: now });
        }
        has_room
    }
}

/// A second of the future is one from before the clock was set back: it does not count.
fn is_within(length: i64, second: i64, now: i64) -> bool {
    (0..length).contains(&now.saturating_sub(second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn origin(taxpayer: i64, irn: &str) -> Origin {
        Origin::new(Account::Taxpayer(TaxpayerId(taxpayer)), Some(irn))
    }

    fn counts(answered: u32, failed: u32, repeated: u32) -> Counts {
        Counts { answered, failed, repeated }
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
        assert_eq!(window.total(at(30)), counts(0, 1, 1), "it counts anew after the window");
    }

    #[test]
    fn a_document_that_failed_is_known_for_longer_until_it_is_answered() {
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
    fn a_call_about_no_document_counts_each_time() {
        let mut window = CallWindow::default();
        for _ in 0..3 {
            window.record_failure(&Origin::new(Account::Service, None), at(0));
        }
        assert_eq!(window.total(at(0)), counts(0, 3, 0));
    }

    #[test]
    fn accounts_are_counted_apart() {
        let mut window = CallWindow::default();
        window.record_answer(&origin(1, "A"), at(0));
        window.record_failure(&origin(2, "B"), at(5));
        window.record_answer(&origin(1, "A"), at(20));
        let accounts = window.by_account(at(29));
        let of = |id| accounts[&Account::Taxpayer(TaxpayerId(id))];
        assert_eq!((of(1), of(2)), (counts(2, 0, 0), counts(0, 1, 0)));
        assert_eq!(window.by_account(at(45)).len(), 1, "the rest is older than the window");
    }

    #[test]
    fn what_was_counted_before_the_clock_was_set_back_does_not_count() {
        let mut window = CallWindow::default();
        window.record_failure(&origin(1, "A"), at(600));
        assert_eq!(window.total(at(0)), counts(0, 0, 0));
        assert!(!window.has_failed(&origin(1, "A"), at(0)));
        window.record_failure(&origin(1, "A"), at(0));
        assert_eq!(window.total(at(0)), counts(0, 1, 0));
    }
}
