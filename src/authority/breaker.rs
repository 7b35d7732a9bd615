//! A circuit breaker as a pure state machine: every method is given the present.
//!
//! It opens for everybody when at least half of at least 20 calls within 30 s failed and the failures come from
//! several accounts, or when the authority does not even answer the neutral question that it is asked then. Where
//! all that called are one or two accounts, it opens for these only: they may be the cause.
//!
//! A probe that is answered closes it (`opening`). Calls that tell neither way (duplicates, throttling) are not
//! counted.

use std::time::Duration;

use jiff::Timestamp;

use super::account::{Account, Origin};
use super::opening::{Admission, EarlyProbes, Held, Opening, Scope, after, wait};
use super::operation::Operation;
use super::window::CallWindow;

const CALLS_MIN: u32 = 20;
/// Failures of so many accounts are those of the authority, if they are at least half of those that called.
const ACCOUNTS_MIN: usize = 3;
/// The time between two neutral questions.
const QUESTION_EVERY: Duration = Duration::from_secs(5);

/// What a call said about the health of the authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answered, be it yes or no.
    Answered,
    Failed,
    /// It answered with something that speaks neither for it nor against it.
    Neutral,
}

/// The state as operators see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    Open,
    /// Open, and a probe is on its way.
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

/// One breaker, observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerView {
    pub operation: Operation,
    pub state: BreakerState,
    /// Whose calls would be held back at present: nobody's while a probe is due.
    pub held: Held,
    /// Whether it is open for everybody: the authority is failing, and not only with the documents of some.
    pub is_outage: bool,
    /// When it last opened or closed; None when it never did.
    pub since: Option<Timestamp>,
    /// Calls counted within the last 30 s, and those of them that failed.
    pub calls: u32,
    pub failures: u32,
    /// When the next probe may start; None while closed or probing.
    pub next_probe_at: Option<Timestamp>,
    /// When a call was last answered; None where none was since the start of the process.
    pub answered_at: Option<Timestamp>,
    /// When a call last failed while the breaker was open for everybody; None where none did.
    pub failed_at: Option<Timestamp>,
    /// How often it opened since the start of the process.
    pub openings: u64,
}

/// What the calls of the window say.
enum Evidence {
    /// Too few failed.
    None,
    /// Many failed, but perhaps because of a few documents.
    Doubt,
    /// All accounts that called fail; they are few.
    AllOfFew(Vec<Account>),
    Several(Vec<Account>),
}

#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// None while closed.
    opening: Option<Opening>,
    since: Option<Timestamp>,
    answered_at: Option<Timestamp>,
    failed_at: Option<Timestamp>,
    openings: u64,
    next_question_at: Option<Timestamp>,
    window: CallWindow,
}

impl Breaker {
    /// How long a call would be held back; None where it, or a probe, would be let through. Asking changes
    /// nothing.
    pub(super) fn held(&self, origin: &Origin, now: Timestamp) -> Option<Duration> {
        let opening = self.opening.as_ref()?;
        if opening.lets_pass(origin.account) {
            return None;
        }
        if let Some(early) = opening.early(origin.account) {
            return early.held(now);
        }
        opening.held(self.window.has_failed(origin, now), now)
    }

    /// Asks for leave to call. A probe must be settled or released.
    pub(super) fn admit(&mut self, origin: &Origin, now: Timestamp) -> Admission {
        if let Some(wait) = self.held(origin, now) {
            return Admission::Held(wait);
        }
        match &mut self.opening {
            Some(opening) if !opening.lets_pass(origin.account) => opening.admit(origin.account, now),
            _ => Admission::Call,
        }
    }

    /// Takes the verdict of a call that was admitted. True when the breaker opened or closed by it.
    pub(super) fn settle(
        &mut self,
        origin: &Origin,
        admission: Admission,
        verdict: Verdict,
        now: Timestamp,
    ) -> bool {
        if matches!(admission, Admission::Held(_)) {
            return false;
        }
        if let Some(opening) = &mut self.opening {
            opening.probed(origin.account, admission, verdict, now);
        }
        match (verdict, admission) {
            (Verdict::Answered, Admission::Probe | Admission::EarlyProbe) => {
                self.answered_at = Some(now);
                self.window.forget(origin);
                self.close(now)
            }
            (Verdict::Answered, _) => {
                self.answered_at = Some(now);
                self.window.record_answer(origin, now);
                false
            }
            (Verdict::Failed, _) => self.fail(origin, now),
            (Verdict::Neutral, _) => false,
        }
    }

    /// A call was not made, because none before it ended for as long as it could wait. Where nothing was answered
    /// lately it counts as failed: few calls at a time, all of which hang, would else never open the breaker.
    /// True when it opened by it.
    pub(super) fn starve(&mut self, origin: &Origin, now: Timestamp) -> bool {
        self.window.total(now).answered == 0 && self.fail(origin, now)
    }

    /// Whether somebody should ask now if the authority answers at all: many calls failed, and it may be because of
    /// the few accounts or documents that they are about. True once every 5 s at most.
    pub(super) fn wants_question(&mut self, now: Timestamp) -> bool {
        if !self.is_in_doubt(now)
            || self.next_question_at.is_some_and(|at| wait(now, at, QUESTION_EVERY).is_some())
        {
            return false;
        }
        self.next_question_at = Some(after(now, QUESTION_EVERY));
        true
    }

    /// Takes the answer to that question. True when the breaker opened for everybody by it.
    pub(super) fn hear(&mut self, is_alive: bool, now: Timestamp) -> bool {
        if is_alive || !self.is_in_doubt(now) {
            return false;
        }
        self.failed_at = Some(now);
        self.open(Scope::Everybody(None), now);
        true
    }

    /// The state, as of `now`.
    pub(super) fn view(&self, operation: Operation, now: Timestamp) -> BreakerView {
        let total = self.window.total(now);
        let opening = self.opening.as_ref();
        BreakerView {
            operation,
            state: match opening {
                None => BreakerState::Closed,
                Some(opening) if opening.probing_since.is_some() => BreakerState::HalfOpen,
                Some(_) => BreakerState::Open,
            },
            held: opening.map_or(Held::Nobody, |opening| opening.holds(now)),
            is_outage: self.is_outage(),
            since: self.since,
            calls: total.calls(),
            failures: total.failures(),
            next_probe_at: opening.and_then(|opening| opening.next_probe_at(now)),
            answered_at: self.answered_at,
            failed_at: self.failed_at,
            openings: self.openings,
        }
    }

    fn is_outage(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| matches!(opening.scope, Scope::Everybody(_)))
    }

    fn is_in_doubt(&self, now: Timestamp) -> bool {
        match &self.opening {
            None => !matches!(self.evidence(now), Evidence::None),
            Some(opening) => matches!(opening.scope, Scope::Accounts(_)),
        }
    }

    /// Counts a failure. A straggler that was admitted before the breaker opened moves nothing.
    fn fail(&mut self, origin: &Origin, now: Timestamp) -> bool {
        self.window.record_failure(origin, now);
        let has_changed = !self.is_outage() && self.judge(now);
        if self.is_outage() {
            self.failed_at = Some(now);
        }
        has_changed
    }

    fn judge(&mut self, now: Timestamp) -> bool {
        match self.evidence(now) {
            Evidence::None | Evidence::Doubt => false,
            Evidence::AllOfFew(failed) => match &mut self.opening {
                None => {
                    self.open(Scope::Accounts(failed), now);
                    true
                }
                Some(opening) => {
                    opening.scope = Scope::Accounts(failed);
                    false
                }
            },
            Evidence::Several(failed) => {
                self.open(Scope::Everybody(EarlyProbes::beside(failed, now)), now);
                true
            }
        }
    }

    fn evidence(&self, now: Timestamp) -> Evidence {
        let total = self.window.total(now);
        if total.calls() < CALLS_MIN || total.failures().saturating_mul(2) < total.calls() {
            return Evidence::None;
        }
        let without_repetitions = total.answered.saturating_add(total.failed);
        if without_repetitions < CALLS_MIN || !total.mostly_failed() {
            return Evidence::Doubt;
        }
        let accounts = self.window.by_account(now);
        let failed: Vec<_> = accounts
            .iter()
            .filter(|(_, counts)| counts.mostly_failed())
            .map(|(account, _)| *account)
            .collect();
        if failed.len() >= ACCOUNTS_MIN && failed.len() * 2 >= accounts.len() {
            return Evidence::Several(failed);
        }
        if failed.len() == accounts.len() { Evidence::AllOfFew(failed) } else { Evidence::Doubt }
    }

    fn open(&mut self, scope: Scope, now: Timestamp) {
        if self.opening.is_none() {
            self.since = Some(now);
            self.openings += 1;
        }
        self.opening = Some(Opening::new(scope, now));
    }

    fn close(&mut self, now: Timestamp) -> bool {
        self.window.clear();
        let was_open = self.opening.take().is_some();
        if was_open {
            self.since = Some(now);
        }
        was_open
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;

    static IRNS: AtomicU32 = AtomicU32::new(0);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn account(taxpayer: u32) -> Account {
        Account::Taxpayer(TaxpayerId(i64::from(taxpayer)))
    }

    /// A call of a taxpayer about a document that was never called about.
    fn fresh(taxpayer: u32) -> Origin {
        let irn = format!("INV{}", IRNS.fetch_add(1, Ordering::Relaxed));
        Origin::new(account(taxpayer), Some(&irn))
    }

    fn call(breaker: &mut Breaker, origin: &Origin, verdict: Verdict, now: Timestamp) -> Admission {
        let admission = breaker.admit(origin, now);
        breaker.settle(origin, admission, verdict, now);
        admission
    }

    /// Calls of so many taxpayers in turns, each about another document.
    fn run_of(taxpayers: u32, breaker: &mut Breaker, calls: u32, verdict: Verdict, now: Timestamp) {
        for number in 0..calls {
            call(breaker, &fresh(number % taxpayers), verdict, now);
        }
    }

    fn run(breaker: &mut Breaker, calls: u32, verdict: Verdict, now: Timestamp) {
        run_of(4, breaker, calls, verdict, now);
    }

    fn opened_by(taxpayers: u32) -> Breaker {
        let mut breaker = Breaker::default();
        run_of(taxpayers, &mut breaker, 20, Verdict::Failed, at(0));
        breaker
    }

    fn opened() -> Breaker {
        opened_by(4)
    }

    fn state(breaker: &Breaker) -> BreakerState {
        breaker.view(Operation::Sign, at(0)).state
    }

    #[test]
    fn it_opens_at_half_of_twenty_calls() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 10, Verdict::Answered, at(0));
        run(&mut breaker, 9, Verdict::Failed, at(1));
        assert_eq!(state(&breaker), BreakerState::Closed);
        run(&mut breaker, 1, Verdict::Failed, at(2));
        let view = breaker.view(Operation::Sign, at(2));
        assert_eq!((view.state, view.held, view.is_outage), (BreakerState::Open, Held::Everybody, true));
        assert_eq!((view.calls, view.failures, view.openings, view.since), (20, 10, 1, Some(at(2))));
        assert_eq!(view.failed_at, Some(at(2)));
    }

    #[test]
    fn fewer_than_twenty_failures_do_not_open_it() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 19, Verdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn failures_older_than_the_window_are_forgotten() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 19, Verdict::Failed, at(0));
        run(&mut breaker, 1, Verdict::Failed, at(30));
        assert_eq!(state(&breaker), BreakerState::Closed);
        assert_eq!(breaker.view(Operation::Sign, at(30)).calls, 1);
        run(&mut breaker, 18, Verdict::Failed, at(59));
        assert_eq!(state(&breaker), BreakerState::Closed);
        run(&mut breaker, 1, Verdict::Failed, at(59));
        assert_eq!(state(&breaker), BreakerState::Open);
    }

    #[test]
    fn neutral_calls_count_for_nothing() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 100, Verdict::Neutral, at(0));
        run(&mut breaker, 19, Verdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn documents_of_one_taxpayer_do_not_open_it_while_others_are_answered() {
        let mut breaker = Breaker::default();
        call(&mut breaker, &fresh(2), Verdict::Answered, at(0));
        run_of(1, &mut breaker, 200, Verdict::Failed, at(1));
        let view = breaker.view(Operation::Sign, at(1));
        assert_eq!((view.state, view.failures, view.failed_at), (BreakerState::Closed, 200, None));
    }

    #[test]
    fn one_document_does_not_open_it_however_often_it_fails() {
        let mut breaker = Breaker::default();
        let poisonous = fresh(1);
        for _ in 0..100 {
            call(&mut breaker, &poisonous, Verdict::Failed, at(0));
        }
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn failures_of_few_among_many_callers_do_not_open_it() {
        let mut breaker = Breaker::default();
        for taxpayer in 10..17 {
            call(&mut breaker, &fresh(taxpayer), Verdict::Answered, at(0));
        }
        run_of(3, &mut breaker, 60, Verdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed, "3 of 10 that called");
    }

    #[test]
    fn where_only_one_calls_it_opens_for_that_one_alone() {
        let mut breaker = opened_by(1);
        let view = breaker.view(Operation::Sign, at(0));
        assert_eq!((view.state, view.is_outage), (BreakerState::Open, false));
        assert_eq!(view.held, Held::Accounts(vec![account(0)]));
        assert_eq!(breaker.admit(&fresh(0), at(1)), Admission::Held(Duration::from_secs(4)));
        for _ in 0..50 {
            assert_eq!(call(&mut breaker, &fresh(7), Verdict::Answered, at(1)), Admission::Call);
        }
        assert!(
            matches!(breaker.admit(&fresh(0), at(1)), Admission::Held(_)),
            "its own has not been answered"
        );
        assert_eq!(call(&mut breaker, &fresh(0), Verdict::Answered, at(5)), Admission::Probe);
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn when_others_fail_too_it_opens_for_everybody() {
        let mut breaker = opened_by(1);
        call(&mut breaker, &fresh(1), Verdict::Failed, at(1));
        assert!(!breaker.view(Operation::Sign, at(1)).is_outage);
        assert!(matches!(breaker.view(Operation::Sign, at(1)).held, Held::Accounts(held) if held.len() == 2));
        call(&mut breaker, &fresh(2), Verdict::Failed, at(1));
        let view = breaker.view(Operation::Sign, at(1));
        assert_eq!((view.is_outage, view.openings, view.since), (true, 1, Some(at(0))));
    }

    #[test]
    fn in_doubt_a_neutral_question_decides() {
        for is_alive in [true, false] {
            for mut breaker in [opened_by(1), doubtful()] {
                assert!(breaker.wants_question(at(1)));
                assert!(!breaker.wants_question(at(5)), "once every 5 s");
                assert_eq!(breaker.hear(is_alive, at(2)), !is_alive);
                let view = breaker.view(Operation::Sign, at(2));
                assert_eq!(view.is_outage, !is_alive);
                assert_eq!(view.failed_at, (!is_alive).then(|| at(2)));
                assert_eq!(breaker.wants_question(at(6)), is_alive, "where it is known nobody asks");
            }
        }
        assert!(!Breaker::default().wants_question(at(0)));
        assert!(!opened().wants_question(at(0)), "several failed: that is clear");
    }

    /// One document that fails and fails.
    fn doubtful() -> Breaker {
        let mut breaker = Breaker::default();
        let origin = fresh(1);
        for _ in 0..20 {
            call(&mut breaker, &origin, Verdict::Failed, at(0));
        }
        breaker
    }

    #[test]
    fn an_open_breaker_holds_calls_back_and_says_how_long() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(&fresh(0), at(0)), Admission::Held(Duration::from_secs(5)));
        assert_eq!(breaker.admit(&fresh(0), at(3)), Admission::Held(Duration::from_secs(2)));
        assert_eq!(breaker.view(Operation::Sign, at(3)).next_probe_at, Some(at(5)));
    }

    #[test]
    fn probes_go_one_at_a_time_and_are_spaced() {
        let mut breaker = opened();
        let probe = fresh(0);
        assert_eq!(breaker.admit(&probe, at(5)), Admission::Probe);
        assert_eq!(state(&breaker), BreakerState::HalfOpen);
        assert!(matches!(breaker.admit(&fresh(0), at(5)), Admission::Held(_)));
        assert!(matches!(breaker.admit(&fresh(0), at(100)), Admission::Held(wait) if !wait.is_zero()));
        assert!(!breaker.settle(&probe, Admission::Probe, Verdict::Failed, at(6)));
        assert!(matches!(breaker.admit(&fresh(0), at(10)), Admission::Held(_)));
        assert_eq!(breaker.admit(&fresh(0), at(11)), Admission::Probe);
    }

    #[test]
    fn a_document_that_failed_is_the_last_to_be_a_probe() {
        let mut breaker = Breaker::default();
        let poisonous = fresh(1);
        call(&mut breaker, &poisonous, Verdict::Failed, at(0));
        run(&mut breaker, 20, Verdict::Failed, at(0));
        assert!(breaker.held(&poisonous, at(6)).is_some());
        assert_eq!(breaker.held(&fresh(1), at(5)), None);
        assert_eq!(breaker.held(&poisonous, at(7)), None, "where nobody else comes");
    }

    #[test]
    fn who_has_not_failed_probes_sooner_while_few_have() {
        let mut breaker = opened();
        assert_eq!(breaker.held(&fresh(9), at(0)), Some(Duration::from_secs(1)));
        assert!(matches!(breaker.view(Operation::Sign, at(1)).held, Held::Accounts(held) if held.len() == 4));
        let early = fresh(9);
        assert_eq!(breaker.admit(&early, at(1)), Admission::EarlyProbe);
        assert!(matches!(breaker.admit(&fresh(8), at(1)), Admission::Held(_)), "one in a second");
        assert!(!breaker.settle(&early, Admission::EarlyProbe, Verdict::Failed, at(1)));
        assert_eq!(breaker.held(&fresh(9), at(2)), Some(Duration::from_secs(3)), "now it has");
        assert_eq!(call(&mut breaker, &fresh(8), Verdict::Answered, at(2)), Admission::EarlyProbe);
        assert_eq!(state(&breaker), BreakerState::Closed);

        let mut breaker = opened_by(20);
        assert_eq!(breaker.admit(&fresh(99), at(2)), Admission::Held(Duration::from_secs(3)), "many have");
        assert_eq!(breaker.view(Operation::Sign, at(2)).held, Held::Everybody);
    }

    #[test]
    fn a_probe_that_is_answered_closes_it_with_a_clean_slate() {
        let mut breaker = opened();
        let probe = fresh(0);
        breaker.admit(&probe, at(5));
        assert!(breaker.settle(&probe, Admission::Probe, Verdict::Answered, at(6)));
        let view = breaker.view(Operation::Sign, at(6));
        assert_eq!((view.state, view.calls, view.since), (BreakerState::Closed, 0, Some(at(6))));
        assert_eq!(breaker.admit(&fresh(0), at(6)), Admission::Call);
    }

    #[test]
    fn a_probe_without_a_verdict_leaves_it_open() {
        let mut breaker = opened();
        let probe = fresh(0);
        breaker.admit(&probe, at(5));
        assert!(!breaker.settle(&probe, Admission::Probe, Verdict::Neutral, at(6)));
        assert_eq!(state(&breaker), BreakerState::Open);
    }

    #[test]
    fn stragglers_neither_close_it_nor_open_it_again() {
        let mut breaker = opened();
        assert!(!breaker.settle(&fresh(0), Admission::Call, Verdict::Answered, at(1)));
        assert!(!breaker.settle(&fresh(0), Admission::Call, Verdict::Failed, at(1)));
        assert_eq!(breaker.view(Operation::Sign, at(1)).openings, 1);
        assert_eq!(state(&breaker), BreakerState::Open);
    }

    #[test]
    fn calls_that_starve_open_it_unless_others_were_answered_lately() {
        let mut breaker = Breaker::default();
        let opened = |breaker: &mut Breaker, calls: u32, second: i64| {
            (0..calls).filter(|number| breaker.starve(&fresh(number % 4), at(second))).count()
        };
        assert_eq!(opened(&mut breaker, 20, 0), 1);
        assert_eq!(state(&breaker), BreakerState::Open);
        let mut breaker = Breaker::default();
        run(&mut breaker, 1, Verdict::Answered, at(0));
        assert_eq!(opened(&mut breaker, 100, 29), 0);
        assert_eq!(opened(&mut breaker, 100, 30), 1);
    }

    #[test]
    fn a_look_takes_no_probe() {
        let mut breaker = opened();
        let probe = fresh(0);
        assert!(breaker.held(&probe, at(4)).is_some());
        assert_eq!(breaker.held(&probe, at(5)), None);
        assert_eq!(breaker.view(Operation::Sign, at(5)).held, Held::Nobody);
        assert_eq!(breaker.admit(&probe, at(5)), Admission::Probe);
        assert!(breaker.held(&probe, at(5)).is_some());
        assert!(breaker.settle(&probe, Admission::Probe, Verdict::Answered, at(6)));
        assert_eq!(breaker.held(&probe, at(6)), None);
    }

    #[test]
    fn a_clock_set_back_neither_opens_it_nor_panics() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 19, Verdict::Failed, at(100));
        run(&mut breaker, 1, Verdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn a_clock_set_back_does_not_keep_it_open() {
        for (mut breaker, admission) in [
            (opened(), Admission::Probe),
            (opened_by(1), Admission::Probe),
            (opened_by(20), Admission::Probe),
        ] {
            let before = breaker.view(Operation::Sign, at(-600));
            assert_eq!((before.held, before.next_probe_at), (Held::Nobody, Some(at(-600))));
            assert_eq!(call(&mut breaker, &fresh(0), Verdict::Answered, at(-600)), admission);
            assert_eq!(state(&breaker), BreakerState::Closed);
        }
        let mut breaker = opened();
        assert_eq!(breaker.admit(&fresh(9), at(-600)), Admission::EarlyProbe);
        let mut breaker = opened_by(1);
        assert!(breaker.wants_question(at(0)) && breaker.wants_question(at(-600)));
    }

    #[test]
    fn a_probe_under_way_when_the_clock_is_set_back_is_not_waited_for_longer() {
        let mut breaker = opened_by(20);
        assert_eq!(breaker.admit(&fresh(0), at(5)), Admission::Probe);
        assert_eq!(breaker.admit(&fresh(0), at(-600)), Admission::Held(Duration::from_secs(1)));
    }
}
