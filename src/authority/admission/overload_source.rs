//! Decides whether failed calls show that the authority is overloaded, or only that the calls of one account fail.

use jiff::{SignedDuration, Timestamp};

use crate::authority::admission::call_origin::CallerAccount;

/// How long an answer or a failure counts.
const RECENT: SignedDuration = SignedDuration::from_secs(30);

/// The recent answers and overload signals of one operation's calls.
#[derive(Debug, Default)]
pub(crate) struct OverloadSource {
    answered: LatestAccounts,
    overloaded: LatestAccounts,
}

impl OverloadSource {
    pub(crate) fn on_answer(&mut self, account: CallerAccount, now: Timestamp) {
        self.answered.record(account, now);
    }

    /// Records the overload signal of a call. Returns true if other accounts are answered and give no such signals.
    pub(crate) fn on_overload(&mut self, account: CallerAccount, now: Timestamp) -> bool {
        self.overloaded.record(account, now);
        self.answered.has_other(account, now) && !self.overloaded.has_other(account, now)
    }
}

/// The last two different accounts that were recorded, with their times.
#[derive(Debug, Default)]
struct LatestAccounts {
    latest: Option<(CallerAccount, Timestamp)>,
    other: Option<(CallerAccount, Timestamp)>,
}

impl LatestAccounts {
    fn record(&mut self, account: CallerAccount, now: Timestamp) {
        if self.latest.is_some_and(|(latest, _)| latest != account) {
            self.other = self.latest;
        }
        self.latest = Some((account, now));
    }

    fn has_other(&self, than: CallerAccount, now: Timestamp) -> bool {
        let entries = [self.latest, self.other].into_iter().flatten();
        // A time in the future was recorded before the clock was set back, so it does not count.
        let recent = |at: Timestamp| (SignedDuration::ZERO..RECENT).contains(&now.duration_since(at));
        entries.into_iter().any(|(account, at)| account != than && recent(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;

    fn account(id: i64) -> CallerAccount {
        CallerAccount::Taxpayer(TaxpayerId(id))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn failures_are_of_one_account_while_only_it_fails_and_another_is_answered() {
        let mut source = OverloadSource::default();
        assert!(!source.on_overload(account(1), at(0)), "nobody else calls");
        source.on_answer(account(1), at(1));
        assert!(!source.on_overload(account(1), at(1)), "its own answers do not count");
        source.on_answer(account(2), at(2));
        source.on_answer(account(1), at(3));
        assert!(source.on_overload(account(1), at(31)));
        assert!(!source.on_overload(account(1), at(32)), "the other's answer is 30 s old");
    }

    #[test]
    fn when_two_accounts_fail_the_authority_is_overloaded() {
        let mut source = OverloadSource::default();
        source.on_answer(account(3), at(0));
        assert!(source.on_overload(account(1), at(0)));
        assert!(!source.on_overload(account(2), at(1)));
        assert!(!source.on_overload(account(1), at(2)));
        source.on_answer(account(3), at(30));
        assert!(!source.on_overload(account(1), at(30)));
        assert!(source.on_overload(account(1), at(31)), "the second failed 30 s ago");
    }

    #[test]
    fn after_the_clock_was_set_back_older_entries_do_not_count() {
        let mut source = OverloadSource::default();
        source.on_answer(account(2), at(600));
        assert!(!source.on_overload(account(1), at(0)));
    }
}
