//! Admits calls: a call needs a slot under its operation's limit first, and then the permission of the operation's
//! breaker.
//!
//! The breaker decides after the wait for the slot, so a call that was queued before the breaker opened is not made.
//! Queued calls fail at once when the breaker opens or the authority asks for a long pause. A finished call reports to
//! the breaker before it frees its slot, so the next call sees the breaker's new state.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use timing::clock::SharedClock;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

use crate::admission::breaker::BreakerView;
use crate::admission::breakers::{BreakerPermit, Breakers};
use crate::admission::call_limits::{AdmissionSlot, CallLimits, LimitView};
use crate::admission::call_origin::CallOrigin;
use crate::operation::Operation;
use crate::transport::failure::AuthorityFailure;

/// If at most this much is left of a pause that the authority asked for, calls wait for its end. Otherwise they fail at
/// once.
const PAUSE_WAIT_MAX: Duration = Duration::from_secs(2);
/// The Retry-After of a call that failed because the queue was full.
const QUEUE_FULL_RETRY_AFTER: Duration = Duration::from_secs(5);

pub(crate) struct CallAdmission {
    pub(crate) breakers: Arc<Breakers>,
    limits: Arc<CallLimits>,
    /// Wakes the queued calls of an operation, so that they check the breaker again.
    wakeups: [Notify; Operation::ALL.len()],
    wait_max: Duration,
}

pub(crate) struct CallPermit {
    admission: Arc<CallAdmission>,
    operation: Operation,
    /// Must be settled before `slot` is freed, so that the next call sees the breaker's new state.
    breaker: Option<BreakerPermit>,
    slot: Option<AdmissionSlot>,
}

impl CallAdmission {
    /// Admits at most `max_concurrent` calls of each operation at a time. A call waits for its slot at most `wait_max`.
    pub(crate) fn new(max_concurrent: u32, wait_max: Duration, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            breakers: Breakers::new(clock.clone()),
            limits: CallLimits::new(max_concurrent, clock),
            wakeups: std::array::from_fn(|_| Notify::new()),
            wait_max,
        })
    }

    pub(crate) fn breaker_views(&self) -> Vec<BreakerView> {
        self.breakers.views()
    }

    pub(crate) fn call_limits(&self) -> Vec<LimitView> {
        self.limits.views()
    }

    /// Stops the calls of an operation by an operator's order. Queued calls fail at once.
    pub(crate) fn trip_breaker(&self, operation: Operation) {
        self.breakers.trip(operation);
        self.notify_waiters(operation);
    }

    /// Closes the operation's breaker, so that its calls are made again.
    pub(crate) fn reset_breaker(&self, operation: Operation) {
        self.breakers.reset(operation);
    }

    pub(crate) fn end_outage(&self, operation: Operation, failed_at: Option<Timestamp>) {
        self.breakers.end_outage(operation, failed_at);
    }

    /// Waits until the call may be made. If this fails, no call was made.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        operation: Operation,
        origin: CallOrigin,
    ) -> Result<CallPermit, AuthorityFailure> {
        let mut slot = self.acquire_slot(operation, &origin).await?;
        let admitted = self.breakers.admit(operation, origin);
        let breaker = admitted
            .map_err(|retry_after| self.breakers.held_call_failure(operation, retry_after))?;
        if breaker.is_probe() {
            self.notify_waiters(operation);
        }
        slot.start();
        Ok(CallPermit {
            admission: Arc::clone(self),
            operation,
            breaker: Some(breaker),
            slot: Some(slot),
        })
    }

    /// Waits for a slot, and then until a short pause that the authority asked for has ended.
    async fn acquire_slot(
        self: &Arc<Self>,
        operation: Operation,
        origin: &CallOrigin,
    ) -> Result<AdmissionSlot, AuthorityFailure> {
        let queue_full = AuthorityFailure::QueueFull {
            retry_after: QUEUE_FULL_RETRY_AFTER,
        };
        let mut deadline = pin!(sleep(self.wait_max));
        let mut queued = pin!(self.limits.acquire(operation, origin.account));
        let slot = loop {
            let wakeup = self.wakeups[operation as usize].notified();
            self.check_pause_and_breaker(operation, origin)?;
            tokio::select! {
                biased;
                slot = &mut queued => break slot.ok_or_else(|| queue_full.clone())?,
                () = wakeup => {}
                () = &mut deadline => {
                    self.on_wait_timeout(operation, origin);
                    return Err(queue_full);
                }
            }
        };
        self.wait_out_pause(operation, origin, deadline.as_mut())
            .await?;
        Ok(slot)
    }

    async fn wait_out_pause(
        &self,
        operation: Operation,
        origin: &CallOrigin,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<(), AuthorityFailure> {
        loop {
            let wakeup = self.wakeups[operation as usize].notified();
            let Some(pause) = self.check_pause_and_breaker(operation, origin)? else {
                return Ok(());
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = wakeup => {}
                () = &mut deadline => return Err(AuthorityFailure::RateLimited { retry_after: pause }),
            }
        }
    }

    /// Returns what is left of the pause that the authority asked for. Fails if this is more than `PAUSE_WAIT_MAX`,
    /// or if the breaker holds the call back.
    fn check_pause_and_breaker(
        &self,
        operation: Operation,
        origin: &CallOrigin,
    ) -> Result<Option<Duration>, AuthorityFailure> {
        if let Some(retry_after) = self.breakers.time_to_wait(operation, origin) {
            return Err(self.breakers.held_call_failure(operation, retry_after));
        }
        match self.limits.pause_left(operation) {
            Some(retry_after) if retry_after > PAUSE_WAIT_MAX => {
                Err(AuthorityFailure::RateLimited { retry_after })
            }
            pause => Ok(pause),
        }
    }

    /// Records that a call waited `wait_max` and got no slot. This may open the breaker.
    fn on_wait_timeout(&self, operation: Operation, origin: &CallOrigin) {
        self.breakers.on_wait_timeout(operation, origin);
        self.notify_if_held(operation);
    }

    fn notify_if_held(&self, operation: Operation) {
        let is_paused = self
            .limits
            .pause_left(operation)
            .is_some_and(|pause| pause > PAUSE_WAIT_MAX);
        if is_paused || self.breakers.holds_any(operation) {
            self.notify_waiters(operation);
        }
    }

    /// Returns true if the caller should make a liveness check now.
    pub(crate) fn should_check_liveness(&self, operation: Operation) -> bool {
        self.breakers.should_check_liveness(operation)
    }

    /// Records the result of a liveness check. A failed check may open the breaker.
    pub(crate) fn on_liveness(&self, operation: Operation, is_alive: bool) {
        self.breakers.on_liveness(operation, is_alive);
        self.notify_if_held(operation);
    }

    fn notify_waiters(&self, operation: Operation) {
        self.wakeups[operation as usize].notify_waiters();
    }
}

impl CallPermit {
    /// Reports the result and the duration of the call to the breaker and the limit.
    pub(crate) fn settle<T>(mut self, result: &Result<T, AuthorityFailure>, took: Duration) {
        if let Some(breaker) = self.breaker.take() {
            breaker.settle(result);
        }
        if let Some(slot) = self.slot.take() {
            slot.settle(result, took);
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        drop(self.breaker.take());
        drop(self.slot.take());
        self.admission.notify_if_held(self.operation);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Instant;

    use futures_util::FutureExt;
    use futures_util::future::{join_all, pending};
    use jiff::Timestamp;
    use serde_json::Value;
    use timing::clock::{MockClock, SystemClock};
    use tokio::time::timeout;

    use super::*;
    use crate::admission::call_origin::CallerAccount;
    use crate::admission::call_stats::CallOutcome;
    use crate::admission::open_breaker::BreakerState;
    use crate::client::Authority;
    use crate::testing::{Behaviour, BusyServer, Server};
    use crate::transport::failure::Cause;

    const OPERATION: Operation = Operation::Confirm;
    const CONFIRMED: &str =
        r#"{"data":{"payment_status":"PENDING","transmitted":false,"delivered":false}}"#;
    const DOWN: Result<(), AuthorityFailure> = Err(AuthorityFailure::Retryable {
        reason: Cause::Down { status: 503 },
    });
    const LONG: Duration = Duration::from_mins(1);

    static TAXPAYERS: AtomicI64 = AtomicI64::new(1);

    /// Returns a call of a taxpayer that has made no other call.
    fn origin() -> CallOrigin {
        let taxpayer = TAXPAYERS.fetch_add(1, Ordering::Relaxed);
        let account = CallerAccount::Taxpayer {
            id: taxpayer,
            payer: 1,
        };
        CallOrigin::new(account, Some(&taxpayer.to_string()))
    }

    fn clock() -> Arc<MockClock> {
        Arc::new(MockClock::at(
            Timestamp::from_second(1_800_000_000).unwrap(),
        ))
    }

    fn throttled_answer(seconds: u64) -> Result<(), AuthorityFailure> {
        Err(AuthorityFailure::Throttled {
            retry_after: Some(Duration::from_secs(seconds)),
        })
    }

    fn view(admission: &CallAdmission) -> LimitView {
        admission.call_limits().swap_remove(OPERATION as usize)
    }

    fn state(admission: &CallAdmission) -> BreakerState {
        admission.breaker_views()[OPERATION as usize].state
    }

    /// Makes calls that fail, until a single further failure would open the breaker.
    async fn one_failure_before_opening(admission: &Arc<CallAdmission>) {
        for _ in 0..19 {
            admission
                .acquire(OPERATION, origin())
                .await
                .unwrap()
                .settle(&DOWN, Duration::ZERO);
        }
        assert_eq!(
            (view(admission).limit, state(admission)),
            (1, BreakerState::Closed)
        );
    }

    /// Starts `count` calls and waits until all of them are in the queue. Returns their tasks.
    async fn queue_calls(
        admission: &Arc<CallAdmission>,
        count: usize,
    ) -> Vec<tokio::task::JoinHandle<AuthorityFailure>> {
        let waiting: Vec<_> = (0..count)
            .map(|_| {
                let admission = Arc::clone(admission);
                tokio::spawn(
                    async move { admission.acquire(OPERATION, origin()).await.err().unwrap() },
                )
            })
            .collect();
        while view(admission).waiting < count {
            tokio::task::yield_now().await;
        }
        waiting
    }

    async fn results(
        waiting: Vec<tokio::task::JoinHandle<AuthorityFailure>>,
    ) -> Vec<AuthorityFailure> {
        let ended = timeout(Duration::from_secs(10), join_all(waiting))
            .await
            .expect("they fail at once");
        ended.into_iter().map(Result::unwrap).collect()
    }

    #[tokio::test]
    async fn a_call_that_waits_too_long_fails_without_being_made() {
        let admission = CallAdmission::new(1, Duration::from_millis(50), clock());
        let permit = admission.acquire(OPERATION, origin()).await.unwrap();
        let failure = admission.acquire(OPERATION, origin()).await.err().unwrap();
        assert_eq!(
            failure,
            AuthorityFailure::QueueFull {
                retry_after: QUEUE_FULL_RETRY_AFTER
            }
        );
        assert!(!failure.counts_as_attempt());
        assert_eq!(
            (view(&admission).in_flight, view(&admission).waiting),
            (1, 0)
        );
        drop(permit);
        assert!(admission.acquire(OPERATION, origin()).await.is_ok());
    }

    #[tokio::test]
    async fn queued_calls_fail_at_once_when_the_breaker_opens() {
        let admission = CallAdmission::new(1, LONG, clock());
        one_failure_before_opening(&admission).await;
        let last = admission.acquire(OPERATION, origin()).await.unwrap();
        let waiting = queue_calls(&admission, 100).await;
        last.settle(&DOWN, Duration::ZERO);
        assert_eq!(state(&admission), BreakerState::Open);
        let retry_after = Duration::from_secs(5);
        assert!(
            results(waiting)
                .await
                .into_iter()
                .all(|failure| failure == AuthorityFailure::BreakerOpen { retry_after })
        );
        assert_eq!(
            (view(&admission).in_flight, view(&admission).waiting),
            (0, 0)
        );
    }

    #[tokio::test]
    async fn a_call_that_an_operator_holds_back_does_not_blame_the_authority() {
        let admission = CallAdmission::new(1, LONG, clock());
        admission.trip_breaker(OPERATION);
        let held = admission.acquire(OPERATION, origin()).now_or_never();
        let failure = held.expect("it fails at once").err();
        assert!(
            matches!(failure, Some(AuthorityFailure::CallsStopped { .. })),
            "{failure:?}"
        );
        admission.reset_breaker(OPERATION);
        let passed = admission.acquire(OPERATION, origin()).await;
        assert!(passed.is_ok());
    }

    #[tokio::test]
    async fn other_calls_fail_at_once_during_a_probe() {
        let clock = clock();
        let admission = CallAdmission::new(1, LONG, clock.clone());
        one_failure_before_opening(&admission).await;
        admission
            .acquire(OPERATION, origin())
            .await
            .unwrap()
            .settle(&DOWN, Duration::ZERO);
        clock.advance(Duration::from_secs(5));
        assert_eq!(
            state(&admission),
            BreakerState::Open,
            "reading the state starts no probe"
        );
        let probe = admission.acquire(OPERATION, origin()).await.unwrap();
        assert_eq!(state(&admission), BreakerState::HalfOpen);
        let held = admission
            .acquire(OPERATION, origin())
            .now_or_never()
            .expect("it fails at once");
        assert!(matches!(held, Err(AuthorityFailure::BreakerOpen { .. })));
        drop(probe);
        assert_eq!(
            state(&admission),
            BreakerState::Open,
            "a dropped probe frees its slot"
        );
        clock.advance(Duration::from_secs(5));
        admission
            .acquire(OPERATION, origin())
            .await
            .unwrap()
            .settle(&Ok(()), Duration::ZERO);
        assert_eq!(state(&admission), BreakerState::Closed);
    }

    #[tokio::test]
    async fn queued_calls_fail_when_one_of_them_becomes_the_probe() {
        let clock = clock();
        let admission = CallAdmission::new(1, LONG, clock.clone());
        one_failure_before_opening(&admission).await;
        let straggler = admission.acquire(OPERATION, origin()).await.unwrap();
        admission
            .breakers
            .admit(OPERATION, origin())
            .ok()
            .unwrap()
            .settle(&DOWN);
        assert_eq!(state(&admission), BreakerState::Open);
        clock.advance(Duration::from_secs(5));
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let admission = Arc::clone(&admission);
                tokio::spawn(async move {
                    let _permit = admission.acquire(OPERATION, origin()).await?;
                    pending::<Result<(), AuthorityFailure>>().await
                })
            })
            .collect();
        while view(&admission).waiting < 10 {
            tokio::task::yield_now().await;
        }
        straggler.settle(&DOWN, Duration::ZERO);
        while view(&admission).waiting > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(state(&admission), BreakerState::HalfOpen);
        while waiting.iter().filter(|task| task.is_finished()).count() < 9 {
            tokio::task::yield_now().await;
        }
        assert_eq!(view(&admission).in_flight, 1, "the probe, which never ends");
    }

    #[tokio::test]
    async fn a_long_pause_fails_queued_calls_at_once() {
        let clock = clock();
        let admission = CallAdmission::new(1, LONG, clock.clone());
        let permit = admission.acquire(OPERATION, origin()).await.unwrap();
        let waiting = queue_calls(&admission, 10).await;
        permit.settle(&throttled_answer(7), Duration::ZERO);
        let rate_limited = AuthorityFailure::RateLimited {
            retry_after: Duration::from_secs(7),
        };
        assert!(
            results(waiting)
                .await
                .into_iter()
                .all(|failure| failure == rate_limited)
        );
        assert_eq!(
            admission.acquire(OPERATION, origin()).await.err(),
            Some(rate_limited)
        );
        assert!(view(&admission).held_until.is_some());
        assert!(
            admission.acquire(Operation::Sign, origin()).await.is_ok(),
            "other operations are not paused"
        );
        clock.advance(Duration::from_secs(7));
        assert!(admission.acquire(OPERATION, origin()).await.is_ok());
        assert_eq!(view(&admission).held_until, None);
    }

    #[tokio::test]
    async fn a_short_pause_is_waited_out() {
        let admission = CallAdmission::new(64, LONG, Arc::new(SystemClock));
        admission
            .acquire(OPERATION, origin())
            .await
            .unwrap()
            .settle(&throttled_answer(1), Duration::ZERO);
        let started = Instant::now();
        let held = join_all((0..3).map(|_| admission.acquire(OPERATION, origin()))).await;
        assert!(held.into_iter().all(|permit| permit.is_ok()));
        assert!(
            started.elapsed() >= Duration::from_millis(900),
            "{:?}",
            started.elapsed()
        );
    }

    #[tokio::test]
    async fn a_short_pause_is_not_waited_out_beyond_the_longest_wait() {
        let admission = CallAdmission::new(64, Duration::from_millis(20), clock());
        admission
            .acquire(OPERATION, origin())
            .await
            .unwrap()
            .settle(&throttled_answer(2), Duration::ZERO);
        let rate_limited = AuthorityFailure::RateLimited {
            retry_after: Duration::from_secs(2),
        };
        assert_eq!(
            admission.acquire(OPERATION, origin()).await.err(),
            Some(rate_limited)
        );
        assert_eq!(
            (view(&admission).in_flight, view(&admission).waiting),
            (0, 0)
        );
    }

    #[tokio::test]
    async fn an_authority_that_answers_no_call_opens_the_breaker_after_few_calls() {
        let server = Server::start(Behaviour::Stall).await;
        let authority = server.impatient_authority();
        let failures = join_all((0..40).map(|_| authority.confirm("I"))).await;
        let mut made = 0;
        let mut queue_full = 0;
        for failure in failures {
            match failure.unwrap_err() {
                AuthorityFailure::Retryable {
                    reason: Cause::TimedOut { .. },
                } => made += 1,
                AuthorityFailure::QueueFull { .. } | AuthorityFailure::BreakerOpen { .. } => {
                    queue_full += 1;
                }
                other => panic!("{other}"),
            }
        }
        println!("40 confirms of an authority that stalls: {made} made, {queue_full} not");
        assert!(made < 20 && made + queue_full == 40);
        assert_eq!(
            authority.breakers()[OPERATION as usize].state,
            BreakerState::Open
        );
    }

    #[tokio::test]
    async fn a_slow_authority_does_not_open_the_breaker() {
        let admission = CallAdmission::new(1, Duration::from_millis(10), clock());
        admission
            .acquire(OPERATION, origin())
            .await
            .unwrap()
            .settle(&Ok(()), Duration::ZERO);
        let _permit = admission.acquire(OPERATION, origin()).await.unwrap();
        let failures = join_all((0..100).map(|_| admission.acquire(OPERATION, origin()))).await;
        assert!(
            failures
                .into_iter()
                .all(|failure| matches!(failure, Err(AuthorityFailure::QueueFull { .. })))
        );
        assert_eq!(state(&admission), BreakerState::Closed);
    }

    #[tokio::test]
    async fn a_cancelled_call_frees_its_slot() {
        let server = Server::start(Behaviour::Stall).await;
        let authority = server.limited_authority(1);
        for _ in 0..5 {
            assert!(
                timeout(Duration::from_millis(50), authority.confirm("I"))
                    .await
                    .is_err()
            );
        }
        let view = authority.call_limits().swap_remove(OPERATION as usize);
        assert_eq!((view.limit, view.in_flight, view.waiting), (1, 0, 0));
        assert!(authority.call_stats().iter().all(|stats| stats.calls == 0));
    }

    #[tokio::test]
    async fn waiting_does_not_count_towards_the_call_timeout() {
        let busy = BusyServer::new(1, Duration::from_millis(600), false, CONFIRMED);
        let server = Server::start(Behaviour::Busy(busy.clone())).await;
        // This client waits at most one second for a slot, and then at most one second for the answer.
        let authority = server.limited_authority(1);
        let (first, second) = tokio::join!(authority.confirm("A"), authority.confirm("B"));
        assert!(first.is_ok() && second.is_ok(), "{second:?}");
        let spent: Duration = authority
            .call_stats()
            .iter()
            .map(|stats| stats.duration)
            .sum();
        assert!(
            spent < Duration::from_millis(1_750),
            "{spent:?}: waiting is not part of it"
        );
        assert_eq!(busy.peak(), 1);
    }

    #[tokio::test]
    async fn the_liveness_check_is_not_queued() {
        let server = Server::json(200, r#"{"healthy":true}"#).await;
        let authority = server.limited_authority(1);
        let stalled = Server::start(Behaviour::Stall).await.limited_authority(1);
        let _ = timeout(Duration::from_millis(20), stalled.confirm("I")).await;
        assert!(authority.is_alive().await);
        assert!(
            authority
                .call_limits()
                .iter()
                .all(|view| view.in_flight == 0)
        );
    }

    /// Repeats the call until it succeeds, as the service does. Returns the number of tries.
    async fn persist(authority: &Authority, number: u32) -> u32 {
        for tries in 1.. {
            match authority.confirm(&format!("IRN-{number}")).await {
                Ok(_) => return tries,
                Err(AuthorityFailure::Throttled { .. }) => sleep(Duration::from_millis(20)).await,
                Err(other) => panic!("{other}"),
            }
        }
        0
    }

    #[tokio::test]
    async fn two_hundred_concurrent_calls_all_succeed_at_a_server_that_takes_eight() {
        for rejects in [false, true] {
            let busy = BusyServer::new(8, Duration::from_millis(40), rejects, CONFIRMED);
            let server = Server::start(Behaviour::Busy(busy.clone())).await;
            let authority = server.authority();
            let started = Instant::now();
            let tries = join_all((0..200).map(|number| persist(&authority, number))).await;
            let view = authority.call_limits().swap_remove(OPERATION as usize);
            let calls: u32 = tries.iter().sum();
            println!(
                "rejects {rejects}: 200 confirms in {:?}, {calls} calls, at most {} at a time, limit {}",
                started.elapsed(),
                busy.peak(),
                view.limit
            );
            assert_eq!(tries.len(), 200);
            assert_eq!(
                server.received_requests().len(),
                usize::try_from(calls).unwrap()
            );
            assert_eq!((view.in_flight, view.waiting), (0, 0));
            assert!(
                busy.peak() <= 40,
                "200 were never there at a time: {}",
                busy.peak()
            );
            if rejects {
                assert!(
                    calls < 300,
                    "{calls}: the limit keeps most from being turned away"
                );
                assert!(view.limit <= 16, "{}", view.limit);
            } else {
                assert_eq!(calls, 200);
            }
            let lost = authority.call_stats().into_iter().filter(|stats| {
                stats.calls > 0
                    && !matches!(
                        stats.outcome,
                        CallOutcome::Succeeded | CallOutcome::Throttled
                    )
            });
            assert_eq!(lost.count(), 0);
        }
    }

    #[tokio::test]
    async fn an_overloaded_authority_gets_fewer_concurrent_calls() {
        let server = Server::json(429, "").await;
        let authority = server.authority();
        let before = authority.call_limits()[Operation::Sign as usize].limit;
        let failures = join_all((0..15).map(|_| authority.sign(&Value::Null))).await;
        assert!(
            failures
                .iter()
                .all(|failure| matches!(failure, Err(AuthorityFailure::Throttled { .. })))
        );
        let after = authority.call_limits()[Operation::Sign as usize].limit;
        println!("limit {before}, after 15 answers of 429: {after}");
        assert!(after < before);
    }
}
