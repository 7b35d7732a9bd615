//! The breakers of one client. All calls of the client share them, so each breaker has a lock.
//!
//! A cancelled call does not count. After a cancelled probe, another call may become the probe.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use timing::clock::SharedClock;

use crate::admission::breaker::{Breaker, BreakerView};
use crate::admission::call_origin::CallOrigin;
use crate::admission::call_verdict::CallVerdict;
use crate::admission::call_window::RecentCalls;
use crate::admission::open_breaker::{BreakerDecision, HeldCallers};
use crate::admission::own_faults::{OwnFault, OwnFaults};
use crate::operation::Operation;
use crate::transport::failure::{AuthorityFailure, Cause, CauseKind};

pub(crate) struct Breakers {
    clock: SharedClock,
    breakers: [Mutex<Breaker>; Operation::ALL.len()],
    /// The faults of ours that calls meet. It is never locked together with a breaker.
    own_faults: Mutex<OwnFaults>,
}

/// The breaker's permission for one call. When this value is dropped, the breaker gets the verdict: the result of the
/// call as evidence about the authority's health.
pub(crate) struct BreakerPermit {
    breakers: Arc<Breakers>,
    operation: Operation,
    origin: CallOrigin,
    decision: BreakerDecision,
    verdict: CallVerdict,
}

impl Breakers {
    pub(crate) fn new(clock: SharedClock) -> Arc<Self> {
        let breakers = std::array::from_fn(|_| Mutex::default());
        Arc::new(Self {
            clock,
            breakers,
            own_faults: Mutex::default(),
        })
    }

    /// Returns the permission for one call, or the time that the call must wait.
    pub(crate) fn admit(
        self: &Arc<Self>,
        operation: Operation,
        origin: CallOrigin,
    ) -> Result<BreakerPermit, Duration> {
        let decision = self.lock(operation).admit(&origin, self.now());
        if let BreakerDecision::Held(wait) = decision {
            return Err(wait);
        }
        let breakers = Arc::clone(self);
        Ok(BreakerPermit {
            breakers,
            operation,
            origin,
            decision,
            verdict: CallVerdict::Neutral,
        })
    }

    /// Returns how long a call would have to wait; `None` if it may be made now. Does not change the breaker.
    pub(crate) fn time_to_wait(
        &self,
        operation: Operation,
        origin: &CallOrigin,
    ) -> Option<Duration> {
        self.lock(operation).time_to_wait(origin, self.now())
    }

    /// Returns the failure of a call that the breaker holds back for this time.
    pub(crate) fn held_call_failure(
        &self,
        operation: Operation,
        retry_after: Duration,
    ) -> AuthorityFailure {
        if self.lock(operation).is_tripped() {
            AuthorityFailure::CallsStopped { retry_after }
        } else {
            AuthorityFailure::BreakerOpen { retry_after }
        }
    }

    /// Returns true if the operation's breaker holds back any caller.
    pub(crate) fn holds_any(&self, operation: Operation) -> bool {
        self.lock(operation).view(operation, self.now()).held != HeldCallers::Nobody
    }

    /// Returns true if the caller should make a liveness check now.
    pub(crate) fn should_check_liveness(&self, operation: Operation) -> bool {
        self.lock(operation).should_check_liveness(self.now())
    }

    pub(crate) fn on_liveness(&self, operation: Operation, is_alive: bool) {
        let changed = self.lock(operation).on_liveness(is_alive, self.now());
        self.log_state_if_changed(operation, changed);
    }

    pub(crate) fn trip(&self, operation: Operation) {
        let changed = self.lock(operation).trip(self.now());
        self.log_state_if_changed(operation, changed);
    }

    pub(crate) fn reset(&self, operation: Operation) {
        let changed = self.lock(operation).reset(self.now());
        self.log_state_if_changed(operation, changed);
    }

    pub(crate) fn end_outage(&self, operation: Operation, failed_at: Option<Timestamp>) {
        let changed = self.lock(operation).end_outage(failed_at, self.now());
        self.log_state_if_changed(operation, changed);
    }

    pub(crate) fn views(&self) -> Vec<BreakerView> {
        let now = self.now();
        let faults = self.lock_own_faults().clone();
        Operation::ALL
            .into_iter()
            .map(|operation| {
                let view = self.lock(operation).view(operation, now);
                without_past_fault(view, &faults, now)
            })
            .collect()
    }

    pub(crate) fn recent_calls(&self, operation: Operation, origin: &CallOrigin) -> RecentCalls {
        self.lock(operation).recent_calls(origin, self.now())
    }

    /// Records that a call waited too long in the queue.
    pub(crate) fn on_wait_timeout(&self, operation: Operation, origin: &CallOrigin) {
        let changed = self.lock(operation).on_wait_timeout(origin, self.now());
        self.log_state_if_changed(operation, changed);
    }

    fn settle(&self, permit: &BreakerPermit) {
        let mut machine = self.lock(permit.operation);
        let changed = machine.settle(&permit.origin, permit.decision, permit.verdict, self.now());
        drop(machine);
        self.log_state_if_changed(permit.operation, changed);
    }

    fn log_state_if_changed(&self, operation: Operation, changed: bool) {
        if !changed {
            return;
        }
        let view = self.lock(operation).view(operation, self.now());
        tracing::warn!(
            operation = operation.name(),
            state = view.state.name(),
            cause = view.cause.map_or("none", CauseKind::name),
            for_everybody = view.is_outage,
            calls = view.calls,
            failures = view.failures,
            "authority breaker changed its state"
        );
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn record_own_fault<T>(&self, operation: Operation, result: &Result<T, AuthorityFailure>) {
        let now = self.now();
        let changes = self.lock_own_faults().record_result(operation, result, now);
        for change in changes {
            change.log(operation);
        }
    }

    fn lock_own_faults(&self) -> MutexGuard<'_, OwnFaults> {
        self.own_faults
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self, operation: Operation) -> MutexGuard<'_, Breaker> {
        self.breakers[operation as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl BreakerPermit {
    pub(crate) fn is_probe(&self) -> bool {
        matches!(
            self.decision,
            BreakerDecision::Probe | BreakerDecision::EarlyProbe
        )
    }

    /// Reports the result of the call to the breaker.
    pub(crate) fn settle<T>(mut self, result: &Result<T, AuthorityFailure>) {
        self.breakers.record_own_fault(self.operation, result);
        self.verdict = call_verdict(result);
        let cause = result.as_ref().err().and_then(AuthorityFailure::cause);
        let cause = match self.verdict {
            CallVerdict::Answered => None,
            CallVerdict::Failed => cause.map(Cause::kind),
            CallVerdict::Neutral => return,
        };
        let now = self.breakers.now();
        self.breakers
            .lock(self.operation)
            .causes
            .record_outcome(cause, now);
    }
}

impl Drop for BreakerPermit {
    fn drop(&mut self) {
        self.breakers.settle(self);
    }
}

/// Takes the cause out of a view if it is a fault of ours that is over, or that a single call met. A breaker that is open
/// for everybody keeps the cause until a call that was made after it opened shows the opposite. It keeps the cause even
/// then if only its operation meets the fault.
fn without_past_fault(view: BreakerView, faults: &OwnFaults, now: Timestamp) -> BreakerView {
    let Some(fault) = view.cause.and_then(OwnFault::from_cause) else {
        return view;
    };
    let last_seen = view.since.max(view.failed_at);
    let is_unrefuted = view.is_outage && faults.refuted_at(fault) <= last_seen;
    if is_unrefuted || faults.is_told(view.operation, fault, now) {
        return view;
    }
    BreakerView {
        cause: None,
        past_cause: view.cause.filter(|_| view.is_outage),
        ..view
    }
}

/// Derives the breaker's verdict from the result of a call. A refusal is an answer. Throttling and ambiguous answers
/// say nothing about the authority's health.
fn call_verdict<T>(result: &Result<T, AuthorityFailure>) -> CallVerdict {
    match result {
        Ok(_) | Err(AuthorityFailure::Refused { .. } | AuthorityFailure::NotFound { .. }) => {
            CallVerdict::Answered
        }
        Err(
            AuthorityFailure::Throttled { .. }
            | AuthorityFailure::BreakerOpen { .. }
            | AuthorityFailure::CallsStopped { .. }
            | AuthorityFailure::RateLimited { .. }
            | AuthorityFailure::QueueFull { .. }
            | AuthorityFailure::Paused,
        ) => CallVerdict::Neutral,
        Err(AuthorityFailure::Unknown { reason }) if reason.kind() == CauseKind::Ambiguous => {
            CallVerdict::Neutral
        }
        Err(AuthorityFailure::Retryable { reason }) if reason.kind() == CauseKind::Offline => {
            CallVerdict::Answered
        }
        Err(AuthorityFailure::Retryable { .. } | AuthorityFailure::Unknown { .. }) => {
            CallVerdict::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use timing::clock::MockClock;

    use super::*;
    use crate::admission::call_origin::CallerAccount;
    use crate::admission::open_breaker::BreakerState;

    const FAILED: Result<(), AuthorityFailure> = Err(AuthorityFailure::Retryable {
        reason: Cause::ConnectionReset,
    });

    /// Returns a call of this taxpayer. All calls of one taxpayer concern the same document.
    fn origin(taxpayer: i64) -> CallOrigin {
        let account = CallerAccount::Taxpayer {
            id: taxpayer,
            payer: 1,
        };
        CallOrigin::new(account, Some(&taxpayer.to_string()))
    }

    fn opened_breakers() -> (Arc<MockClock>, Arc<Breakers>) {
        let clock = Arc::new(MockClock::at(
            Timestamp::from_second(1_800_000_000).unwrap(),
        ));
        let breakers = Breakers::new(clock.clone());
        for taxpayer in 0..20 {
            breakers
                .admit(Operation::Sign, origin(taxpayer))
                .ok()
                .unwrap()
                .settle(&FAILED);
        }
        (clock, breakers)
    }

    fn state(breakers: &Breakers, operation: Operation) -> BreakerState {
        breakers.views()[operation as usize].state
    }

    #[test]
    fn breakers_of_other_operations_stay_closed() {
        let (_, breakers) = opened_breakers();
        assert_eq!(state(&breakers, Operation::Sign), BreakerState::Open);
        assert_eq!(state(&breakers, Operation::Confirm), BreakerState::Closed);
        assert_eq!(
            breakers.admit(Operation::Sign, origin(50)).err(),
            Some(Duration::from_secs(5))
        );
    }

    #[test]
    fn a_cancelled_probe_allows_another() {
        let (clock, breakers) = opened_breakers();
        clock.advance(Duration::from_secs(5));
        let probe = breakers.admit(Operation::Sign, origin(50)).ok().unwrap();
        assert_eq!(state(&breakers, Operation::Sign), BreakerState::HalfOpen);
        drop(probe);
        assert_eq!(state(&breakers, Operation::Sign), BreakerState::Open);
        clock.advance(Duration::from_secs(5));
        breakers
            .admit(Operation::Sign, origin(50))
            .ok()
            .unwrap()
            .settle(&Ok(()));
        assert_eq!(state(&breakers, Operation::Sign), BreakerState::Closed);
    }

    /// Returns the result of a call that failed for a reason, or was answered.
    fn result(cause: Option<CauseKind>) -> Result<(), AuthorityFailure> {
        let reason = match cause {
            None => return Ok(()),
            Some(CauseKind::KeyRefused) => Cause::KeyRefused {
                message: String::new(),
            },
            Some(CauseKind::Down) => Cause::Down { status: 503 },
            Some(_) => Cause::Untrusted,
        };
        Err(AuthorityFailure::Retryable { reason })
    }

    /// The calls, as numbers of results, and the cause when a health check fails then.
    type Case = (&'static [(u32, Option<CauseKind>)], CauseKind);

    #[test]
    fn a_breaker_for_everybody_has_the_cause_of_most_failures_and_not_of_the_last_call() {
        use CauseKind::{Down, KeyRefused, Untrusted};
        let cases: [Case; 5] = [
            (&[(19, Some(KeyRefused)), (1, None)], KeyRefused),
            (
                &[(1, None), (15, Some(Untrusted)), (4, Some(Down))],
                Untrusted,
            ),
            (&[(4, Some(KeyRefused)), (15, Some(Down)), (1, None)], Down),
            (
                &[(1, None), (10, Some(Down)), (10, Some(KeyRefused))],
                KeyRefused,
            ),
            (&[(1, None), (19, Some(Down))], Down),
        ];
        for (calls, expected) in cases {
            let clock = Arc::new(MockClock::at(
                Timestamp::from_second(1_800_000_000).unwrap(),
            ));
            let breakers = Breakers::new(clock);
            let mut taxpayer = 0;
            for (count, cause) in calls {
                for _ in 0..*count {
                    taxpayer += 1;
                    // Each taxpayer has a payer of its own, so that no lane opens first.
                    let account = CallerAccount::Taxpayer {
                        id: taxpayer,
                        payer: taxpayer,
                    };
                    let origin = CallOrigin::new(account, Some(&taxpayer.to_string()));
                    let permit = breakers.admit(Operation::Sign, origin).ok().unwrap();
                    permit.settle(&result(*cause));
                }
            }
            let throttled: Result<(), _> = Err(AuthorityFailure::Throttled { retry_after: None });
            for taxpayer in 100..140 {
                let permit = breakers.admit(Operation::Sign, origin(taxpayer));
                permit.ok().unwrap().settle(&throttled);
            }
            breakers.on_liveness(Operation::Sign, false);
            let view = breakers.views().swap_remove(Operation::Sign as usize);
            assert_eq!((view.is_outage, view.cause), (true, Some(expected)));
            breakers.reset(Operation::Sign);
            breakers.on_liveness(Operation::Sign, false);
            assert!(!breakers.views()[Operation::Sign as usize].is_outage);
        }
    }

    #[test]
    fn a_breaker_that_a_fault_of_ours_opened_says_when_the_fault_is_over() {
        let clock = Arc::new(MockClock::at(
            Timestamp::from_second(1_800_000_000).unwrap(),
        ));
        let breakers = Breakers::new(clock.clone());
        for taxpayer in 0..20 {
            let account = CallerAccount::Taxpayer {
                id: taxpayer,
                payer: taxpayer,
            };
            let origin = CallOrigin::new(account, Some(&taxpayer.to_string()));
            let permit = breakers.admit(Operation::Pull, origin).ok().unwrap();
            permit.settle(&result(Some(CauseKind::Untrusted)));
        }
        breakers.on_liveness(Operation::Pull, false);
        let causes = || {
            let view = breakers.views().swap_remove(Operation::Pull as usize);
            assert!(view.is_outage);
            (view.cause, view.past_cause)
        };
        assert_eq!(causes(), (Some(CauseKind::Untrusted), None));
        clock.advance(Duration::from_secs(1));
        let other = breakers.admit(Operation::Sign, origin(50)).ok().unwrap();
        other.settle(&result(Some(CauseKind::Down)));
        assert_eq!(causes(), (None, Some(CauseKind::Untrusted)));
        // A probe meets the fault again, so that calls of other operations show nothing about this one.
        clock.advance(Duration::from_mins(10));
        let probe = breakers.admit(Operation::Pull, origin(50)).ok().unwrap();
        probe.settle(&result(Some(CauseKind::Untrusted)));
        for seconds in [0, 1, 298] {
            clock.advance(Duration::from_secs(seconds));
            let other = breakers.admit(Operation::Sign, origin(50)).ok().unwrap();
            other.settle(&result(None));
            assert_eq!(causes(), (Some(CauseKind::Untrusted), None), "{seconds}");
        }
    }

    #[test]
    fn duplicates_and_throttling_do_not_open_a_breaker() {
        let (_, breakers) = opened_breakers();
        let ambiguous: Result<(), _> = Err(AuthorityFailure::Unknown {
            reason: Cause::Ambiguous {
                message: String::new(),
            },
        });
        let throttled: Result<(), _> = Err(AuthorityFailure::Throttled { retry_after: None });
        for _ in 0..50 {
            breakers
                .admit(Operation::Transmit, origin(1))
                .ok()
                .unwrap()
                .settle(&ambiguous);
            breakers
                .admit(Operation::Transmit, origin(1))
                .ok()
                .unwrap()
                .settle(&throttled);
        }
        assert_eq!(state(&breakers, Operation::Transmit), BreakerState::Closed);
    }
}
