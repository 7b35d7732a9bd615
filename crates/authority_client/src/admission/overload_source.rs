//! Decides whether overload signals show that the authority is overloaded, or only that the calls of one caller fail.
//! A caller is one account or one payer.

use jiff::{SignedDuration, Timestamp};

/// The time for which an answer or a failure counts.
const RECENT_PERIOD: SignedDuration = SignedDuration::from_secs(30);

/// The recent answers and overload signals of one operation's calls.
#[derive(Debug)]
pub(crate) struct OverloadSource<C> {
    answered: LatestCallers<C>,
    overloaded: LatestCallers<C>,
}

impl<C> Default for OverloadSource<C> {
    fn default() -> Self {
        let none = || LatestCallers {
            latest: None,
            other: None,
        };
        Self {
            answered: none(),
            overloaded: none(),
        }
    }
}

impl<C: Copy + PartialEq> OverloadSource<C> {
    pub(crate) fn on_answer(&mut self, caller: C, now: Timestamp) {
        self.answered.record(caller, now);
    }

    /// Records that a call of this caller met an overload. Returns true if only this caller meets overloads, while
    /// calls of others are answered.
    pub(crate) fn on_overload(&mut self, caller: C, now: Timestamp) -> bool {
        self.overloaded.record(caller, now);
        self.answered.has_recent_caller_besides(caller, now)
            && !self.overloaded.has_recent_caller_besides(caller, now)
    }
}

/// The last two different callers that were recorded, with their times.
#[derive(Debug)]
struct LatestCallers<C> {
    latest: Option<(C, Timestamp)>,
    other: Option<(C, Timestamp)>,
}

impl<C: Copy + PartialEq> LatestCallers<C> {
    fn record(&mut self, caller: C, now: Timestamp) {
        if self.latest.is_some_and(|(latest, _)| latest != caller) {
            self.other = self.latest;
        }
        self.latest = Some((caller, now));
    }

    fn has_recent_caller_besides(&self, excluded: C, now: Timestamp) -> bool {
        let entries = [self.latest, self.other].into_iter().flatten();
        // A time in the future was recorded before the clock was set back, so it does not count.
        entries.into_iter().any(|(caller, at)| {
            caller != excluded
                && (SignedDuration::ZERO..RECENT_PERIOD).contains(&now.duration_since(at))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::call_origin::PayerOrService;

    fn payer(id: i64) -> PayerOrService {
        PayerOrService::Payer(id)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn failures_are_of_one_payer_while_only_it_fails_and_another_is_answered() {
        let mut source = OverloadSource::default();
        assert!(!source.on_overload(payer(1), at(0)), "nobody else calls");
        source.on_answer(payer(1), at(1));
        assert!(
            !source.on_overload(payer(1), at(1)),
            "its own answers do not count"
        );
        source.on_answer(payer(2), at(2));
        source.on_answer(payer(1), at(3));
        assert!(source.on_overload(payer(1), at(31)));
        assert!(
            !source.on_overload(payer(1), at(32)),
            "the other's answer is 30 s old"
        );
    }

    #[test]
    fn when_two_payers_fail_the_authority_is_overloaded() {
        let mut source = OverloadSource::default();
        source.on_answer(payer(3), at(0));
        assert!(source.on_overload(payer(1), at(0)));
        assert!(!source.on_overload(payer(2), at(1)));
        assert!(!source.on_overload(payer(1), at(2)));
        source.on_answer(payer(3), at(30));
        assert!(!source.on_overload(payer(1), at(30)));
        assert!(
            source.on_overload(payer(1), at(31)),
            "the second failed 30 s ago"
        );
    }

    #[test]
    fn after_the_clock_was_set_back_older_entries_do_not_count() {
        let mut source = OverloadSource::default();
        source.on_answer(payer(2), at(600));
        assert!(!source.on_overload(payer(1), at(0)));
    }
}
