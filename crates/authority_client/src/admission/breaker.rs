//! A circuit breaker as a pure state machine: methods take the time as an argument.
//!
//! Failures are counted per payer. Each payer has a breaker of its own, its lane (`payer_lane`), so failing calls of
//! one payer hold back no other payer. The breaker opens for everybody only if a liveness check fails too. This check
//! is a call that needs no document. It is made when many calls fail. Its failure counts only if at least half of the
//! payers that called fail: while most payers are answered, the authority is not down.
//!
//! While the breaker is open, single calls are let through as probes (`open_breaker`). A probe that is answered closes
//! the breaker, or the lane if only the lane is open. Calls that say nothing about health (duplicates, throttling) are
//! not counted.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::admission::call_origin::{CallOrigin, PayerOrService};
use crate::admission::call_verdict::CallVerdict;
use crate::admission::call_window::{CallCounts, RecentCalls};
use crate::admission::failure_causes::FailureCauses;
use crate::admission::held_callers::{callers_held_now, callers_of_open_breaker, due_probes};
use crate::admission::open_breaker::{
    BreakerDecision, BreakerState, EarlyProbes, HeldCallers, OpenBreaker, OpenScope, ProbeCallers,
    add_time, time_until,
};
use crate::admission::payer_lane::PayerLane;
use crate::operation::Operation;
use crate::transport::failure::CauseKind;

/// The shortest time between two liveness checks.
const LIVENESS_CHECK_EVERY: Duration = Duration::from_secs(5);

/// A snapshot of one breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerView {
    pub operation: Operation,
    pub state: BreakerState,
    /// The callers whose calls the breaker would reject now; `Nobody` while the next call would be a probe.
    pub held: HeldCallers,
    /// The callers for which the breaker is open, also while a probe is due. Of their calls, only probes are made.
    pub open_for: HeldCallers,
    /// The probes that may start now. Each item stands for one call.
    pub due_probes: Vec<ProbeCallers>,
    /// True if the breaker is open for everybody, because the authority itself seems to fail.
    pub is_outage: bool,
    /// True if an operator tripped the breaker.
    pub is_tripped: bool,
    /// True if an operator tripped the breaker, or if it is open and its callers still call: a probe is in flight, or
    /// has been due for less than 30 s. A breaker stays open until a call is answered, even if its callers have left.
    pub has_callers: bool,
    /// The time at which the breaker last opened or closed; `None` if it never did.
    pub since: Option<Timestamp>,
    /// The cause of the failed calls. While the breaker is open for everybody, this is the cause of most failures
    /// within 30 s; otherwise it is the cause of the last counted call. `None` if the breaker is closed and the last
    /// call was answered. Also `None` if the cause is on our side (`CauseKind::is_ours`) and other calls are
    /// answered, and if only a single call met it.
    pub cause: Option<CauseKind>,
    /// The cause on our side for which the breaker is open for everybody, if calls of other operations show that it is
    /// over. The next probe closes the breaker.
    pub past_cause: Option<CauseKind>,
    /// The time of the first failed call after the last one with a cause on our side; `None` if there is none.
    pub first_not_ours_at: Option<Timestamp>,
    /// The number of calls within the last 30 s, and how many of these calls failed.
    pub calls: u32,
    pub failures: u32,
    /// The time from which the next probe may start; `None` if the breaker is closed, a probe is in flight, or the
    /// next call is the probe.
    pub next_probe_at: Option<Timestamp>,
    /// The time at which a call was last answered; `None` if no call was answered since the process started.
    pub answered_at: Option<Timestamp>,
    /// The time at which a call last failed while the breaker was open for everybody; `None` if no call did.
    pub failed_at: Option<Timestamp>,
    /// The number of times that the breaker opened since the process started.
    pub openings: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// Set while the breaker is open for everybody. All lanes, which are the breakers of single payers, are closed
    /// then.
    open: Option<OpenBreaker<PayerOrService>>,
    lanes: HashMap<PayerOrService, PayerLane>,
    since: Option<Timestamp>,
    pub(crate) causes: FailureCauses,
    answered_at: Option<Timestamp>,
    failed_at: Option<Timestamp>,
    openings: u64,
    next_liveness_check_at: Option<Timestamp>,
}

impl Breaker {
    /// Returns how long this call must wait, or `None` if it may be made now. Does not change the breaker.
    pub(crate) fn time_to_wait(&self, origin: &CallOrigin, now: Timestamp) -> Option<Duration> {
        let payer = origin.account.payer();
        let lane = self.lanes.get(&payer);
        match &self.open {
            Some(open) => {
                let has_failed = lane.is_some_and(|lane| lane.has_failed(origin, now));
                open.time_to_wait(payer, has_failed, now)
            }
            None => lane?.time_to_wait(origin, now),
        }
    }

    /// Decides whether a call is made, becomes a probe or must wait. After a probe, `settle` must be called.
    pub(crate) fn admit(&mut self, origin: &CallOrigin, now: Timestamp) -> BreakerDecision {
        if let Some(wait) = self.time_to_wait(origin, now) {
            return BreakerDecision::Held(wait);
        }
        let payer = origin.account.payer();
        match &mut self.open {
            Some(open) => open.admit(payer, now),
            None => self.lane_for_payer(payer).admit(origin.account, now),
        }
    }

    /// Records the verdict of an admitted call. Returns true if the verdict opened or closed the breaker or a lane.
    pub(crate) fn settle(
        &mut self,
        origin: &CallOrigin,
        decision: BreakerDecision,
        verdict: CallVerdict,
        now: Timestamp,
    ) -> bool {
        if matches!(decision, BreakerDecision::Held(_)) {
            return false;
        }
        let payer = origin.account.payer();
        if let Some(open) = &mut self.open {
            open.record_end(payer, decision, verdict, now);
        }
        self.lane_for_payer(payer)
            .record_end(origin.account, decision, verdict, now);
        match (verdict, decision) {
            (CallVerdict::Answered, BreakerDecision::Probe | BreakerDecision::EarlyProbe)
                if !self.is_tripped() =>
            {
                self.answered_at = Some(now);
                self.lane_for_payer(payer).forget_failure(origin);
                if self.open.is_some() {
                    self.close(now)
                } else {
                    self.close_lane(payer, now)
                }
            }
            (CallVerdict::Answered, _) => {
                self.answered_at = Some(now);
                self.lane_for_payer(payer).record_answer(origin, now);
                false
            }
            (CallVerdict::Failed, _) => self.record_failure(origin, now),
            (CallVerdict::Neutral, _) => false,
        }
    }

    /// Records that a call waited too long in the queue. If no call was answered in the last 30 s, it counts as
    /// failed, so that hanging calls open the breaker too. Returns true if the breaker opened.
    pub(crate) fn on_wait_timeout(&mut self, origin: &CallOrigin, now: Timestamp) -> bool {
        if self.total(now).answered > 0 {
            return false;
        }
        self.causes.record(CauseKind::TimedOut, now);
        self.record_failure(origin, now)
    }

    /// Returns true, at most once every 5 s, if many calls failed, but perhaps only those of a few payers or
    /// documents.
    pub(crate) fn should_check_liveness(&mut self, now: Timestamp) -> bool {
        if !self.is_in_doubt(now)
            || self
                .next_liveness_check_at
                .is_some_and(|at| time_until(now, at, LIVENESS_CHECK_EVERY).is_some())
        {
            return false;
        }
        self.next_liveness_check_at = Some(add_time(now, LIVENESS_CHECK_EVERY));
        true
    }

    /// Records the result of a liveness check. Returns true if this opened the breaker for everybody.
    pub(crate) fn on_liveness(&mut self, is_alive: bool, now: Timestamp) -> bool {
        if is_alive || !self.is_in_doubt(now) {
            return false;
        }
        let called: Vec<_> = self
            .lanes
            .iter()
            .filter(|(_, lane)| lane.is_open() || lane.total(now).calls() > 0)
            .collect();
        let failing: Vec<_> = called
            .iter()
            .filter(|(_, lane)| lane.is_open() || lane.total(now).has_half_failed())
            .map(|(payer, _)| **payer)
            .collect();
        if failing.len() * 2 < called.len() {
            return false;
        }
        self.failed_at = Some(now);
        self.open(
            OpenScope::All(EarlyProbes::start_probes_if_few_failed(failing, now)),
            now,
        );
        true
    }

    /// Opens the breaker by an operator's order: no call is made, not even a probe, until `reset`. Returns false if an
    /// order had already opened it.
    pub(crate) fn trip(&mut self, now: Timestamp) -> bool {
        let was_tripped = self.is_tripped();
        self.open(OpenScope::Tripped, now);
        !was_tripped
    }

    /// Closes the breaker and forgets the calls that opened it. Returns true if the breaker or a lane was open.
    pub(crate) fn reset(&mut self, now: Timestamp) -> bool {
        self.close(now)
    }

    /// Closes the breaker because the outage is over. `failed_at` is the last failure that the caller knows of.
    /// Returns false and leaves the breaker as it is if a call has failed since then, if the breaker is not open for
    /// everybody, or if an operator tripped it.
    pub(crate) fn end_outage(&mut self, failed_at: Option<Timestamp>, now: Timestamp) -> bool {
        self.is_outage() && self.failed_at == failed_at && self.close(now)
    }

    pub(crate) fn view(&self, operation: Operation, now: Timestamp) -> BreakerView {
        let total = self.total(now);
        let is_lane_open = self.lanes.values().any(PayerLane::is_open);
        let is_probing = match &self.open {
            Some(open) => open.probing_since.is_some(),
            None => self.lanes.values().any(PayerLane::is_probing),
        };
        let state = match &self.open {
            _ if is_probing => BreakerState::HalfOpen,
            None if !is_lane_open => BreakerState::Closed,
            _ => BreakerState::Open,
        };
        BreakerView {
            operation,
            state,
            held: callers_held_now(self.open.as_ref(), &self.lanes, now),
            open_for: callers_of_open_breaker(self.open.as_ref(), &self.lanes),
            due_probes: due_probes(self.open.as_ref(), &self.lanes, now),
            is_outage: self.is_outage(),
            is_tripped: self.is_tripped(),
            has_callers: match &self.open {
                Some(open) => open.has_callers(now),
                None => self.lanes.values().any(|lane| lane.has_callers(now)),
            },
            since: self.since,
            cause: self.causes.current(self.is_outage(), is_lane_open, now),
            past_cause: None,
            first_not_ours_at: self.causes.first_not_ours_at(),
            calls: total.calls(),
            failures: total.failures(),
            next_probe_at: match &self.open {
                Some(open) => open.next_probe_at(now),
                None => self
                    .lanes
                    .values()
                    .filter_map(|lane| lane.next_probe_at(now))
                    .min(),
            },
            answered_at: self.answered_at,
            failed_at: self.failed_at,
            openings: self.openings,
        }
    }

    /// Counts the calls of the last 30 s: those of all accounts, and those of the account of `origin`. If its document
    /// failed before, counts only the answers in later seconds than the first failure.
    pub(crate) fn recent_calls(&self, origin: &CallOrigin, now: Timestamp) -> RecentCalls {
        let account = origin.account;
        let own = self.lanes.get(&account.payer()).map(PayerLane::window);
        let document = own.and_then(|own| own.failed_irn(origin, now));
        let earlier = document.filter(|failed| failed.failures > 1);
        let after_s = earlier.map_or(i64::MIN, |failed| failed.first_at_s);
        let windows = self.lanes.values().map(PayerLane::window);
        let answers = windows.map(|window| window.answers_after(after_s, now));
        RecentCalls {
            answered: answers.sum(),
            failed: self.total(now).failed,
            own_answered: own.map_or(0, |own| own.account_answers_after(account, after_s, now)),
            own_failed: own.map_or(0, |own| own.account_total(account, now).failed),
            failed_in_a_row: document.map_or(0, |failed| failed.failures),
        }
    }

    fn is_outage(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.is_tripped())
    }

    pub(crate) fn is_tripped(&self) -> bool {
        self.open.as_ref().is_some_and(OpenBreaker::is_tripped)
    }

    fn is_in_doubt(&self, now: Timestamp) -> bool {
        self.open.is_none()
            && (self.total(now).is_conclusive()
                || self.lanes.values().any(|lane| lane.is_in_doubt(now)))
    }

    fn total(&self, now: Timestamp) -> CallCounts {
        let mut total = CallCounts::default();
        self.lanes
            .values()
            .for_each(|lane| total.add(lane.total(now)));
        total
    }

    fn lane_for_payer(&mut self, payer: PayerOrService) -> &mut PayerLane {
        self.lanes.entry(payer).or_default()
    }

    /// Records a failed call. Returns true if it made the breaker of a payer hold calls back.
    fn record_failure(&mut self, origin: &CallOrigin, now: Timestamp) -> bool {
        let may_open = self.open.is_none();
        let is_first = !self.is_any_open();
        let lane = self.lane_for_payer(origin.account.payer());
        let was_open = lane.is_open();
        lane.record_failure(origin, may_open, now);
        let has_opened = lane.is_open() && !was_open;
        if self.is_outage() {
            self.failed_at = Some(now);
        }
        if has_opened && is_first {
            self.since = Some(now);
            self.openings += 1;
        }
        has_opened
    }

    fn is_any_open(&self) -> bool {
        self.open.is_some() || self.lanes.values().any(PayerLane::is_open)
    }

    /// Opens the breaker for everybody.
    fn open(&mut self, scope: OpenScope<PayerOrService>, now: Timestamp) {
        if !self.is_any_open() {
            self.since = Some(now);
            self.openings += 1;
        }
        self.lanes
            .values_mut()
            .for_each(|lane| lane.yield_to_breaker(now));
        self.open = Some(OpenBreaker::new(scope, now));
    }

    /// Closes the breaker and all lanes. Returns true if any of them was open.
    fn close(&mut self, now: Timestamp) -> bool {
        let was_open = self.is_any_open();
        self.open = None;
        self.lanes.values_mut().for_each(PayerLane::close);
        self.causes.forget_failures();
        if was_open {
            self.since = Some(now);
        }
        was_open
    }

    fn close_lane(&mut self, payer: PayerOrService, now: Timestamp) -> bool {
        let lane = self.lane_for_payer(payer);
        let was_open = lane.is_open();
        lane.close();
        if !self.is_any_open() {
            self.causes.forget_failures();
        }
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
    use crate::admission::call_origin::CallerAccount;

    static IRNS: AtomicU32 = AtomicU32::new(0);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// A taxpayer of payer 1.
    fn account(taxpayer: u32) -> CallerAccount {
        payer_account(1, taxpayer)
    }

    fn payer_account(payer: u32, taxpayer: u32) -> CallerAccount {
        CallerAccount::Taxpayer {
            id: i64::from(taxpayer),
            payer: i64::from(payer),
        }
    }

    /// Returns a call of this account about a new document.
    fn new_document_call(account: CallerAccount) -> CallOrigin {
        let irn = format!("INV{}", IRNS.fetch_add(1, Ordering::Relaxed));
        CallOrigin::new(account, Some(&irn))
    }

    fn new_call(taxpayer: u32) -> CallOrigin {
        new_document_call(account(taxpayer))
    }

    fn call(
        breaker: &mut Breaker,
        origin: &CallOrigin,
        verdict: CallVerdict,
        now: Timestamp,
    ) -> BreakerDecision {
        let decision = breaker.admit(origin, now);
        breaker.settle(origin, decision, verdict, now);
        decision
    }

    /// Makes `calls` calls, each about a different document. The taxpayers take turns.
    fn add_run(
        taxpayers: u32,
        breaker: &mut Breaker,
        calls: u32,
        verdict: CallVerdict,
        now: Timestamp,
    ) {
        for number in 0..calls {
            call(breaker, &new_call(number % taxpayers), verdict, now);
        }
    }

    fn run(breaker: &mut Breaker, calls: u32, verdict: CallVerdict, now: Timestamp) {
        add_run(4, breaker, calls, verdict, now);
    }

    fn opened_by(taxpayers: u32) -> Breaker {
        let mut breaker = Breaker::default();
        add_run(taxpayers, &mut breaker, 20, CallVerdict::Failed, at(0));
        breaker
    }

    fn opened_breaker() -> Breaker {
        opened_by(4)
    }

    fn state(breaker: &Breaker) -> BreakerState {
        breaker.view(Operation::Sign, at(0)).state
    }

    #[test]
    fn it_opens_at_half_of_twenty_calls() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 10, CallVerdict::Answered, at(0));
        run(&mut breaker, 9, CallVerdict::Failed, at(1));
        assert_eq!(state(&breaker), BreakerState::Closed);
        run(&mut breaker, 1, CallVerdict::Failed, at(2));
        let view = breaker.view(Operation::Sign, at(2));
        assert!(
            matches!(view.held, HeldCallers::Accounts(held) if held.len() == 3),
            "half of what it asked"
        );
        assert_eq!(
            (view.state, view.is_outage, view.failed_at),
            (BreakerState::Open, false, None)
        );
        assert_eq!(
            (view.calls, view.failures, view.openings, view.since),
            (20, 10, 1, Some(at(2)))
        );
    }

    #[test]
    fn an_order_stops_every_call_until_it_is_reset() {
        let mut breaker = opened_breaker();
        let probe = breaker.admit(&new_call(9), at(5));
        assert!(
            matches!(probe, BreakerDecision::EarlyProbe | BreakerDecision::Probe),
            "{probe:?}"
        );
        assert!(breaker.trip(at(6)));
        assert!(!breaker.trip(at(7)), "it is tripped already");
        assert!(
            !breaker.settle(&new_call(9), probe, CallVerdict::Answered, at(8)),
            "an answer does not close it"
        );
        run(&mut breaker, 100, CallVerdict::Failed, at(9));
        for second in [10, 1_000] {
            let decision = breaker.admit(&new_call(3), at(second));
            assert_eq!(
                decision,
                BreakerDecision::Held(Duration::from_mins(1)),
                "no probe is made"
            );
        }
        let view = breaker.view(Operation::Sign, at(1_000));
        assert_eq!(
            (view.state, view.held),
            (BreakerState::Open, HeldCallers::Everybody)
        );
        assert_eq!(
            (view.is_tripped, view.is_outage, view.next_probe_at),
            (true, false, None)
        );
        assert!(breaker.reset(at(1_001)));
        assert!(!breaker.reset(at(1_001)), "it is closed already");
        assert_eq!(
            breaker.admit(&new_call(3), at(1_001)),
            BreakerDecision::Call
        );
        run(&mut breaker, 19, CallVerdict::Failed, at(1_002));
        assert_eq!(
            state(&breaker),
            BreakerState::Closed,
            "earlier failures are forgotten"
        );
    }

    #[test]
    fn recent_calls_are_counted_for_all_and_for_one_account() {
        let mut breaker = Breaker::default();
        call(&mut breaker, &new_call(1), CallVerdict::Answered, at(0));
        let other = new_document_call(payer_account(2, 2));
        call(&mut breaker, &other, CallVerdict::Answered, at(0));
        let poisonous = new_call(1);
        call(&mut breaker, &poisonous, CallVerdict::Failed, at(0));
        let first = RecentCalls {
            answered: 2,
            failed: 1,
            own_answered: 1,
            own_failed: 1,
            failed_in_a_row: 1,
        };
        assert_eq!(breaker.recent_calls(&poisonous, at(0)), first);
        let stranger = new_document_call(payer_account(3, 3));
        let stranger = breaker.recent_calls(&stranger, at(0));
        assert_eq!((stranger.answered, stranger.own_answered), (2, 0));
        // The answers came before the first failure, so they say nothing about the authority since then.
        call(&mut breaker, &poisonous, CallVerdict::Failed, at(1));
        let again = RecentCalls {
            answered: 0,
            own_answered: 0,
            failed_in_a_row: 2,
            ..first
        };
        assert_eq!(breaker.recent_calls(&poisonous, at(1)), again);
        call(&mut breaker, &other, CallVerdict::Answered, at(2));
        let later = breaker.recent_calls(&poisonous, at(9));
        assert_eq!(
            later,
            RecentCalls {
                answered: 1,
                ..again
            }
        );
        let quiet = breaker.recent_calls(&poisonous, at(60));
        assert_eq!((quiet.answered, quiet.failed), (0, 0));
        call(&mut breaker, &poisonous, CallVerdict::Answered, at(61));
        assert_eq!(breaker.recent_calls(&poisonous, at(61)).failed_in_a_row, 0);
    }

    /// Returns for whom the breaker is open, and the number of probes that are due.
    fn probes_at(breaker: &Breaker, now: Timestamp) -> (HeldCallers, Vec<ProbeCallers>) {
        let view = breaker.view(Operation::Sign, now);
        (view.open_for, view.due_probes)
    }

    #[test]
    fn a_due_probe_opens_the_breaker_for_one_call_and_not_for_all() {
        let mut breaker = Breaker::default();
        let nobody = (HeldCallers::Nobody, Vec::new());
        assert_eq!(probes_at(&breaker, at(0)), nobody);
        // The lane of a payer of which two taxpayers fail: each probe is a call of one of them.
        add_run(2, &mut breaker, 20, CallVerdict::Failed, at(0));
        let (open_for, probes) = probes_at(&breaker, at(1));
        assert!(matches!(open_for, HeldCallers::Accounts(accounts) if accounts.len() == 2));
        assert_eq!(probes, []);
        let (_, probes) = probes_at(&breaker, at(5));
        assert!(
            matches!(probes.as_slice(), [ProbeCallers::Accounts(accounts)] if accounts.len() == 2)
        );
        // The breaker for everybody: payers without failures probe early, and then all do.
        assert!(breaker.on_liveness(false, at(5)));
        for (second, probes) in [
            (5, vec![]),
            (6, vec![ProbeCallers::AllButPayers(vec![1])]),
            (10, vec![ProbeCallers::AllButPayers(vec![])]),
        ] {
            let due = probes_at(&breaker, at(second));
            assert_eq!(due, (HeldCallers::Everybody, probes), "{second}");
        }
        let probe = new_call(0);
        assert_eq!(breaker.admit(&probe, at(10)), BreakerDecision::Probe);
        let beside = vec![ProbeCallers::AllButPayers(vec![1])];
        assert_eq!(
            probes_at(&breaker, at(10)),
            (HeldCallers::Everybody, beside)
        );
        breaker.settle(
            &probe,
            BreakerDecision::Probe,
            CallVerdict::Answered,
            at(10),
        );
        assert_eq!(probes_at(&breaker, at(11)), nobody);
    }

    #[test]
    fn fewer_than_twenty_failures_do_not_open_it() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 19, CallVerdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn failures_older_than_the_window_are_forgotten() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 19, CallVerdict::Failed, at(0));
        run(&mut breaker, 1, CallVerdict::Failed, at(30));
        assert_eq!(state(&breaker), BreakerState::Closed);
        assert_eq!(breaker.view(Operation::Sign, at(30)).calls, 1);
        run(&mut breaker, 18, CallVerdict::Failed, at(59));
        assert_eq!(state(&breaker), BreakerState::Closed);
        run(&mut breaker, 1, CallVerdict::Failed, at(59));
        assert_eq!(state(&breaker), BreakerState::Open);
    }

    #[test]
    fn neutral_calls_count_for_nothing() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 100, CallVerdict::Neutral, at(0));
        run(&mut breaker, 19, CallVerdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn documents_of_one_taxpayer_do_not_open_it_while_others_are_answered() {
        let mut breaker = Breaker::default();
        call(&mut breaker, &new_call(2), CallVerdict::Answered, at(0));
        add_run(1, &mut breaker, 200, CallVerdict::Failed, at(1));
        let view = breaker.view(Operation::Sign, at(1));
        assert_eq!(
            (view.state, view.failures, view.failed_at),
            (BreakerState::Closed, 200, None)
        );
    }

    #[test]
    fn one_document_does_not_open_it_however_often_it_fails() {
        let mut breaker = Breaker::default();
        let poisonous = new_call(1);
        for _ in 0..100 {
            call(&mut breaker, &poisonous, CallVerdict::Failed, at(0));
        }
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn failures_of_few_among_many_callers_do_not_open_it() {
        let mut breaker = Breaker::default();
        for taxpayer in 10..17 {
            call(
                &mut breaker,
                &new_call(taxpayer),
                CallVerdict::Answered,
                at(0),
            );
        }
        add_run(3, &mut breaker, 60, CallVerdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed, "3 of 10 that called");
    }

    #[test]
    fn if_only_one_account_calls_it_opens_for_that_one_alone() {
        let mut breaker = opened_by(1);
        let view = breaker.view(Operation::Sign, at(0));
        assert_eq!((view.state, view.is_outage), (BreakerState::Open, false));
        assert_eq!(view.held, HeldCallers::Accounts(vec![account(0)]));
        assert_eq!(
            breaker.admit(&new_call(0), at(1)),
            BreakerDecision::Held(Duration::from_secs(4))
        );
        for _ in 0..50 {
            assert_eq!(
                call(&mut breaker, &new_call(7), CallVerdict::Answered, at(1)),
                BreakerDecision::Call
            );
        }
        assert!(
            matches!(breaker.admit(&new_call(0), at(1)), BreakerDecision::Held(_)),
            "its own has not been answered"
        );
        assert_eq!(
            call(&mut breaker, &new_call(0), CallVerdict::Answered, at(5)),
            BreakerDecision::Probe
        );
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn it_opens_for_the_whole_payer_when_others_of_it_fail_too() {
        let mut breaker = opened_by(1);
        call(&mut breaker, &new_call(1), CallVerdict::Failed, at(1));
        assert!(
            matches!(breaker.view(Operation::Sign, at(1)).held, HeldCallers::Accounts(held) if held.len() == 2)
        );
        assert_eq!(breaker.time_to_wait(&new_call(9), at(1)), None);
        call(&mut breaker, &new_call(2), CallVerdict::Failed, at(1));
        let view = breaker.view(Operation::Sign, at(1));
        assert_eq!(
            (view.is_outage, view.openings, view.since),
            (false, 1, Some(at(0)))
        );
        assert_eq!(
            breaker.time_to_wait(&new_call(9), at(1)),
            Some(Duration::from_secs(1)),
            "it probes early"
        );
        assert_eq!(
            breaker.time_to_wait(&new_document_call(payer_account(2, 9)), at(1)),
            None,
            "another payer calls"
        );
    }

    #[test]
    fn what_the_documents_of_one_payer_do_holds_back_no_other() {
        let mut breaker = Breaker::default();
        for second in 0..30 {
            add_run(25, &mut breaker, 100, CallVerdict::Failed, at(second));
            let other = new_document_call(payer_account(2, 99));
            assert_eq!(
                call(&mut breaker, &other, CallVerdict::Answered, at(second)),
                BreakerDecision::Call
            );
            if breaker.should_check_liveness(at(second)) {
                assert!(!breaker.on_liveness(true, at(second)));
            }
            assert!(!breaker.view(Operation::Sign, at(second)).is_outage);
        }
        assert_eq!(state(&breaker), BreakerState::Open, "its own lane is");
    }

    #[test]
    fn a_failed_liveness_check_is_no_outage_while_most_payers_are_answered() {
        for (answered, is_outage) in [(1, true), (2, false)] {
            let mut breaker = opened_breaker();
            for payer in 2..2 + answered {
                let other = new_document_call(payer_account(payer, 100 + payer));
                call(&mut breaker, &other, CallVerdict::Answered, at(1));
            }
            assert_eq!(breaker.on_liveness(false, at(1)), is_outage, "{answered}");
        }
    }

    #[test]
    fn in_an_outage_payers_that_have_not_failed_probe_early_and_one_answer_ends_it() {
        let mut breaker = Breaker::default();
        for payer in 1..4 {
            for taxpayer in 0..10 {
                let origin = new_document_call(payer_account(payer, 10 * payer + taxpayer));
                call(&mut breaker, &origin, CallVerdict::Failed, at(0));
            }
        }
        assert_eq!(
            state(&breaker),
            BreakerState::Closed,
            "no lane has enough calls"
        );
        assert!(breaker.should_check_liveness(at(0)) && breaker.on_liveness(false, at(0)));
        let failed = new_document_call(payer_account(3, 999));
        assert_eq!(
            breaker.time_to_wait(&failed, at(1)),
            Some(Duration::from_secs(4)),
            "whoever of its taxpayers"
        );
        let other = new_document_call(payer_account(9, 9));
        assert_eq!(
            breaker.time_to_wait(&other, at(0)),
            Some(Duration::from_secs(1))
        );
        assert_eq!(
            breaker.view(Operation::Sign, at(0)).held,
            HeldCallers::Everybody
        );
        assert_eq!(
            call(&mut breaker, &other, CallVerdict::Answered, at(1)),
            BreakerDecision::EarlyProbe
        );
        assert_eq!(
            (state(&breaker), breaker.time_to_wait(&failed, at(1))),
            (BreakerState::Closed, None)
        );
    }

    #[test]
    fn the_first_failed_document_of_a_taxpayer_says_nothing_about_its_payer() {
        let mut breaker = Breaker::default();
        call(&mut breaker, &new_call(0), CallVerdict::Answered, at(0));
        add_run(50, &mut breaker, 50, CallVerdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn in_doubt_a_liveness_check_decides() {
        for is_alive in [true, false] {
            for mut breaker in [opened_by(1), breaker_in_doubt()] {
                assert!(breaker.should_check_liveness(at(1)));
                assert!(!breaker.should_check_liveness(at(5)), "once every 5 s");
                assert_eq!(breaker.on_liveness(is_alive, at(2)), !is_alive);
                let view = breaker.view(Operation::Sign, at(2));
                assert_eq!(view.is_outage, !is_alive);
                assert_eq!(view.failed_at, (!is_alive).then(|| at(2)));
                assert_eq!(
                    breaker.should_check_liveness(at(6)),
                    is_alive,
                    "no check once the outage is known"
                );
            }
        }
        assert!(!Breaker::default().should_check_liveness(at(0)));
        assert!(
            opened_breaker().should_check_liveness(at(0)),
            "always, however many failed"
        );
    }

    /// Returns a breaker that has seen many failures of one and the same document.
    fn breaker_in_doubt() -> Breaker {
        let mut breaker = Breaker::default();
        let origin = new_call(1);
        for _ in 0..20 {
            call(&mut breaker, &origin, CallVerdict::Failed, at(0));
        }
        breaker
    }

    #[test]
    fn an_open_breaker_holds_calls_back_and_reports_how_long() {
        let mut breaker = opened_breaker();
        assert_eq!(
            breaker.admit(&new_call(0), at(0)),
            BreakerDecision::Held(Duration::from_secs(5))
        );
        assert_eq!(
            breaker.admit(&new_call(0), at(3)),
            BreakerDecision::Held(Duration::from_secs(2))
        );
        assert_eq!(
            breaker.view(Operation::Sign, at(3)).next_probe_at,
            Some(at(5))
        );
    }

    #[test]
    fn a_probe_time_that_has_passed_is_not_told() {
        let mut breaker = opened_breaker();
        let next_probe_at =
            |breaker: &Breaker, second| breaker.view(Operation::Sign, at(second)).next_probe_at;
        assert_eq!(next_probe_at(&breaker, 4), Some(at(5)));
        assert_eq!(
            next_probe_at(&breaker, 5),
            None,
            "the next call is the probe"
        );
        assert_eq!(next_probe_at(&breaker, 600), None);
        let probe = new_call(0);
        assert_eq!(breaker.admit(&probe, at(600)), BreakerDecision::Probe);
        assert_eq!(next_probe_at(&breaker, 600), None, "it is in flight");
        breaker.settle(&probe, BreakerDecision::Probe, CallVerdict::Failed, at(601));
        assert_eq!(next_probe_at(&breaker, 601), Some(at(606)));
    }

    #[test]
    fn an_open_breaker_has_callers_until_its_probe_has_been_due_for_30_s() {
        let has_callers =
            |breaker: &Breaker, second| breaker.view(Operation::Sign, at(second)).has_callers;
        // It is open for all taxpayers of a payer, for one taxpayer, and for everybody.
        let mut out = opened_breaker();
        assert!(out.on_liveness(false, at(0)));
        for mut breaker in [opened_breaker(), opened_by(1), out] {
            for second in 0..35 {
                assert!(has_callers(&breaker, second), "{second}");
            }
            // The calls of another payer and of another taxpayer go on.
            for caller in [payer_account(2, 99), account(7)] {
                let origin = new_document_call(caller);
                let decision = BreakerDecision::Call;
                breaker.settle(&origin, decision, CallVerdict::Answered, at(600));
            }
            assert!(!has_callers(&breaker, 35) && !has_callers(&breaker, 600));
            let probe = new_call(0);
            assert_eq!(breaker.admit(&probe, at(600)), BreakerDecision::Probe);
            assert!(has_callers(&breaker, 700), "it is in flight");
            let decision = BreakerDecision::Probe;
            breaker.settle(&probe, decision, CallVerdict::Neutral, at(700));
            assert!(has_callers(&breaker, 734) && !has_callers(&breaker, 735));
            assert!(!has_callers(&breaker, 0), "the clock was set back");
            breaker.trip(at(735));
            assert!(has_callers(&breaker, 9_999), "an operator ordered it");
            breaker.reset(at(9_999));
            assert!(!has_callers(&breaker, 9_999), "it is closed");
        }
    }

    #[test]
    fn the_end_of_an_outage_closes_it_without_a_call() {
        let mut breaker = opened_breaker();
        breaker.on_liveness(false, at(0));
        assert!(breaker.is_outage());
        assert!(
            !breaker.end_outage(Some(at(-1)), at(300)),
            "a call failed since"
        );
        assert!(breaker.end_outage(Some(at(0)), at(300)));
        assert_eq!(state(&breaker), BreakerState::Closed);
        assert_eq!(breaker.admit(&new_call(0), at(300)), BreakerDecision::Call);
        assert!(!breaker.end_outage(Some(at(0)), at(300)), "it is closed");
        let mut lane = opened_by(1);
        assert!(!lane.end_outage(None, at(300)), "only one payer is held");
        let mut tripped = Breaker::default();
        tripped.trip(at(0));
        assert!(!tripped.end_outage(None, at(300)), "an operator ordered it");
        assert!(tripped.is_tripped());
    }

    #[test]
    fn probes_go_one_at_a_time_and_are_spaced() {
        let mut breaker = opened_breaker();
        let probe = new_call(0);
        assert_eq!(breaker.admit(&probe, at(5)), BreakerDecision::Probe);
        assert_eq!(state(&breaker), BreakerState::HalfOpen);
        assert!(matches!(
            breaker.admit(&new_call(0), at(5)),
            BreakerDecision::Held(_)
        ));
        assert!(
            matches!(breaker.admit(&new_call(0), at(100)), BreakerDecision::Held(wait) if !wait.is_zero())
        );
        assert!(!breaker.settle(&probe, BreakerDecision::Probe, CallVerdict::Failed, at(6)));
        assert!(matches!(
            breaker.admit(&new_call(0), at(10)),
            BreakerDecision::Held(_)
        ));
        assert_eq!(breaker.admit(&new_call(0), at(11)), BreakerDecision::Probe);
    }

    #[test]
    fn a_document_that_failed_probes_last() {
        let mut breaker = Breaker::default();
        let poisonous = new_call(1);
        call(&mut breaker, &poisonous, CallVerdict::Failed, at(0));
        run(&mut breaker, 20, CallVerdict::Failed, at(0));
        assert!(breaker.time_to_wait(&poisonous, at(6)).is_some());
        assert_eq!(breaker.time_to_wait(&new_call(1), at(5)), None);
        assert_eq!(
            breaker.time_to_wait(&poisonous, at(7)),
            None,
            "unless another caller probed first"
        );
    }

    #[test]
    fn accounts_that_have_not_failed_probe_sooner_while_few_have() {
        let mut breaker = opened_breaker();
        assert_eq!(
            breaker.time_to_wait(&new_call(9), at(0)),
            Some(Duration::from_secs(1))
        );
        assert!(
            matches!(breaker.view(Operation::Sign, at(1)).held, HeldCallers::Accounts(held) if held.len() == 4)
        );
        let early = new_call(9);
        assert_eq!(breaker.admit(&early, at(1)), BreakerDecision::EarlyProbe);
        assert!(
            matches!(breaker.admit(&new_call(8), at(1)), BreakerDecision::Held(_)),
            "one in a second"
        );
        assert!(!breaker.settle(
            &early,
            BreakerDecision::EarlyProbe,
            CallVerdict::Failed,
            at(1)
        ));
        assert_eq!(
            breaker.time_to_wait(&new_call(9), at(2)),
            Some(Duration::from_secs(3)),
            "now it has"
        );
        assert_eq!(
            call(&mut breaker, &new_call(8), CallVerdict::Answered, at(2)),
            BreakerDecision::EarlyProbe
        );
        assert_eq!(state(&breaker), BreakerState::Closed);

        let mut breaker = opened_by(20);
        assert_eq!(
            breaker.admit(&new_call(99), at(2)),
            BreakerDecision::Held(Duration::from_secs(3)),
            "many have"
        );
        assert!(
            matches!(breaker.view(Operation::Sign, at(2)).held, HeldCallers::Accounts(held) if held.len() == 20)
        );
    }

    #[test]
    fn a_probe_that_is_answered_closes_it_with_a_clean_slate() {
        let mut breaker = opened_breaker();
        let probe = new_call(0);
        breaker.admit(&probe, at(5));
        assert!(breaker.settle(&probe, BreakerDecision::Probe, CallVerdict::Answered, at(6)));
        let view = breaker.view(Operation::Sign, at(6));
        assert_eq!(
            (view.state, view.calls, view.since),
            (BreakerState::Closed, 0, Some(at(6)))
        );
        assert_eq!(breaker.admit(&new_call(0), at(6)), BreakerDecision::Call);
    }

    #[test]
    fn a_probe_without_a_verdict_leaves_it_open() {
        let mut breaker = opened_breaker();
        let probe = new_call(0);
        breaker.admit(&probe, at(5));
        assert!(!breaker.settle(&probe, BreakerDecision::Probe, CallVerdict::Neutral, at(6)));
        assert_eq!(state(&breaker), BreakerState::Open);
    }

    #[test]
    fn stragglers_neither_close_it_nor_open_it_again() {
        let mut breaker = opened_breaker();
        assert!(!breaker.settle(
            &new_call(0),
            BreakerDecision::Call,
            CallVerdict::Answered,
            at(1)
        ));
        assert!(!breaker.settle(
            &new_call(0),
            BreakerDecision::Call,
            CallVerdict::Failed,
            at(1)
        ));
        assert_eq!(breaker.view(Operation::Sign, at(1)).openings, 1);
        assert_eq!(state(&breaker), BreakerState::Open);
    }

    #[test]
    fn calls_that_time_out_in_the_queue_open_it_unless_others_were_answered_lately() {
        let mut breaker = Breaker::default();
        let opened = |breaker: &mut Breaker, calls: u32, second: i64| {
            (0..calls)
                .filter(|number| breaker.on_wait_timeout(&new_call(number % 4), at(second)))
                .count()
        };
        assert_eq!(opened(&mut breaker, 20, 0), 1);
        assert_eq!(state(&breaker), BreakerState::Open);
        let mut breaker = Breaker::default();
        run(&mut breaker, 1, CallVerdict::Answered, at(0));
        assert_eq!(opened(&mut breaker, 100, 29), 0);
        assert_eq!(opened(&mut breaker, 100, 30), 1);
    }

    #[test]
    fn reading_the_state_starts_no_probe() {
        let mut breaker = opened_breaker();
        let probe = new_call(0);
        assert!(breaker.time_to_wait(&probe, at(4)).is_some());
        assert_eq!(breaker.time_to_wait(&probe, at(5)), None);
        assert_eq!(
            breaker.view(Operation::Sign, at(5)).held,
            HeldCallers::Nobody
        );
        assert_eq!(breaker.admit(&probe, at(5)), BreakerDecision::Probe);
        assert!(breaker.time_to_wait(&probe, at(5)).is_some());
        assert!(breaker.settle(&probe, BreakerDecision::Probe, CallVerdict::Answered, at(6)));
        assert_eq!(breaker.time_to_wait(&probe, at(6)), None);
    }

    #[test]
    fn a_clock_set_back_neither_opens_it_nor_panics() {
        let mut breaker = Breaker::default();
        run(&mut breaker, 19, CallVerdict::Failed, at(100));
        run(&mut breaker, 1, CallVerdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn a_clock_set_back_does_not_keep_it_open() {
        for (mut breaker, decision) in [
            (opened_breaker(), BreakerDecision::Probe),
            (opened_by(1), BreakerDecision::Probe),
            (opened_by(20), BreakerDecision::Probe),
        ] {
            let before = breaker.view(Operation::Sign, at(-600));
            assert_eq!(
                (before.held, before.next_probe_at),
                (HeldCallers::Nobody, None)
            );
            assert_eq!(
                call(&mut breaker, &new_call(0), CallVerdict::Answered, at(-600)),
                decision
            );
            assert_eq!(state(&breaker), BreakerState::Closed);
        }
        let mut breaker = opened_breaker();
        assert_eq!(
            breaker.admit(&new_call(9), at(-600)),
            BreakerDecision::EarlyProbe
        );
        let mut breaker = opened_by(1);
        assert!(breaker.should_check_liveness(at(0)) && breaker.should_check_liveness(at(-600)));
    }

    #[test]
    fn a_clock_set_back_does_not_prolong_the_wait_for_a_probe() {
        let mut breaker = opened_by(20);
        assert_eq!(breaker.admit(&new_call(0), at(5)), BreakerDecision::Probe);
        assert_eq!(
            breaker.admit(&new_call(0), at(-600)),
            BreakerDecision::Held(Duration::from_secs(1))
        );
    }
}
