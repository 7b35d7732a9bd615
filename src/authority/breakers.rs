//! The breakers of one client, shared: a lock around each state machine, and a permit that cannot be lost.
//!
//! A permit dropped without a verdict (its caller went away) counts for nothing and frees the place of a
//! probe.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::account::Origin;
use super::breaker::{Breaker, BreakerView, Verdict};
use super::failure::{Failure, Kind};
use super::opening::{Admission, Held};
use super::operation::Operation;
use crate::domain::kernel::clock::SharedClock;

/// One breaker per operation.
pub(super) struct Breakers {
    clock: SharedClock,
    machines: [Mutex<Breaker>; Operation::ALL.len()],
}

/// Leave for one call.
pub(super) struct Permit {
    breakers: Arc<Breakers>,
    operation: Operation,
    origin: Origin,
    admission: Admission,
    verdict: Verdict,
}

impl Breakers {
    pub(super) fn new(clock: SharedClock) -> Arc<Self> {
        let machines = std::array::from_fn(|_| Mutex::default());
        Arc::new(Self { clock, machines })
    }

    /// Leave to call, or the time to wait.
    pub(super) fn admit(self: &Arc<Self>, operation: Operation, origin: Origin) -> Result<Permit, Duration> {
        let admission = self.lock(operation).admit(&origin, self.now());
        if let Admission::Held(wait) = admission {
            return Err(wait);
        }
        let breakers = Arc::clone(self);
        Ok(Permit { breakers, operation, origin, admission, verdict: Verdict::Neutral })
    }

    /// The time a call would have to wait. A look takes no leave.
    pub(super) fn held(&self, operation: Operation, origin: &Origin) -> Option<Duration> {
        self.lock(operation).held(origin, self.now())
    }

    /// Whether anybody's calls are held back.
    pub(super) fn holds_any(&self, operation: Operation) -> bool {
        self.lock(operation).view(operation, self.now()).held != Held::Nobody
    }

    /// Whether to ask now if the authority answers at all.
    pub(super) fn wants_question(&self, operation: Operation) -> bool {
        self.lock(operation).wants_question(self.now())
    }

    /// Takes the answer to that question.
    pub(super) fn hear(&self, operation: Operation, is_alive: bool) {
        let changed = self.lock(operation).hear(is_alive, self.now());
        self.announce(operation, changed);
    }

    pub(super) fn views(&self) -> Vec<BreakerView> {
        let now = self.now();
        Operation::ALL.into_iter().map(|operation| self.lock(operation).view(operation, now)).collect()
    }

    /// A call was not made, because for as long as it could wait none before it ended.
    pub(super) fn starve(&self, operation: Operation, origin: &Origin) {
        let changed = self.lock(operation).starve(origin, self.now());
        self.announce(operation, changed);
    }

    fn settle(&self, permit: &Permit) {
        let mut machine = self.lock(permit.operation);
        let changed = machine.settle(&permit.origin, permit.admission, permit.verdict, self.now());
        drop(machine);
        self.announce(permit.operation, changed);
    }

    fn announce(&self, operation: Operation, changed: bool) {
        if !changed {
            return;
        }
        let view = self.lock(operation).view(operation, self.now());
        tracing::warn!(
            operation = operation.name(),
            state = view.state.name(),
            for_everybody = view.is_outage,
            calls = view.calls,
            failures = view.failures,
            "a breaker of the authority changed its state"
        );
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn lock(&self, operation: Operation) -> MutexGuard<'_, Breaker> {
        self.machines[operation as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    pub(super) fn is_probe(&self) -> bool {
        matches!(self.admission, Admission::Probe | Admission::EarlyProbe)
    }

    /// Gives the verdict of the call.
    pub(super) fn settle<T>(mut self, result: &Result<T, Failure>) {
        self.verdict = verdict(result);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.breakers.settle(self);
    }
}

/// A refusal is an answer, and so is a party that is offline. Throttling and the ambiguous words speak
/// neither way.
fn verdict<T>(result: &Result<T, Failure>) -> Verdict {
    match result {
        Ok(_) | Err(Failure::Refused { .. } | Failure::NotFound { .. }) => Verdict::Answered,
        Err(
            Failure::Throttled { .. }
            | Failure::BreakerOpen { .. }
            | Failure::Paced { .. }
            | Failure::Crowded { .. },
        ) => Verdict::Neutral,
        Err(Failure::Unknown { reason }) if reason.kind() == Kind::Ambiguous => Verdict::Neutral,
        Err(Failure::Retryable { reason }) if reason.kind() == Kind::Offline => Verdict::Answered,
        Err(Failure::Retryable { .. } | Failure::Unknown { .. }) => Verdict::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::Account;
    use super::super::breaker::BreakerState;
    use super::super::failure::Cause;
    use super::*;
    use crate::domain::kernel::clock::MockClock;
    use crate::domain::kernel::ids::TaxpayerId;

    const FAILED: Result<(), Failure> = Err(Failure::Retryable { reason: Cause::Cut });

    /// A call of a taxpayer about its only document.
    fn origin(taxpayer: i64) -> Origin {
        Origin::new(Account::Taxpayer(TaxpayerId(taxpayer)), Some(&taxpayer.to_string()))
    }

    fn opened() -> (Arc<MockClock>, Arc<Breakers>) {
        let clock = Arc::new(MockClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let breakers = Breakers::new(clock.clone());
        for taxpayer in 0..20 {
            breakers.admit(Operation::Sign, origin(taxpayer)).ok().unwrap().settle(&FAILED);
        }
        (clock, breakers)
    }

    fn state(breakers: &Breakers, operation: Operation) -> BreakerState {
        breakers.views()[operation as usize].state
    }

    #[test]
    fn breakers_of_other_operations_stay_closed() {
        let (_, breakers) = opened();
        assert_eq!(state(&breakers, Operation::Sign), BreakerState::Open);
        assert_eq!(state(&breakers, Operation::Confirm), BreakerState::Closed);
        assert_eq!(breakers.admit(Operation::Sign, origin(50)).err(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_probe_whose_caller_went_away_frees_its_place() {
        let (clock, breakers) = opened();
        clock.advance(Duration::from_secs(5));
        let probe = breakers.admit(Operation::Sign, origin(50)).ok().unwrap();
        assert_eq!(state(&breakers, Operation::Sign), BreakerState::HalfOpen);
        drop(probe);
        assert_eq!(state(&breakers, Operation::Sign), BreakerState::Open);
        clock.advance(Duration::from_secs(5));
        breakers.admit(Operation::Sign, origin(50)).ok().unwrap().settle(&Ok(()));
        assert_eq!(state(&breakers, Operation::Sign), BreakerState::Closed);
    }

    #[test]
    fn duplicates_and_throttling_do_not_open_a_breaker() {
        let (_, breakers) = opened();
        let ambiguous: Result<(), _> =
            Err(Failure::Unknown { reason: Cause::Ambiguous { message: String::new() } });
        let throttled: Result<(), _> = Err(Failure::Throttled { retry_after: None });
        for _ in 0..50 {
            breakers.admit(Operation::Transmit, origin(1)).ok().unwrap().settle(&ambiguous);
            breakers.admit(Operation::Transmit, origin(1)).ok().unwrap().settle(&throttled);
        }
        assert_eq!(state(&breakers, Operation::Transmit), BreakerState::Closed);
    }
}
