//! Leave to call: a place under the operation's limit, then the leave of its breaker.
//!
//! The breaker is asked last, so that its probe is a call and not one who waits in line, and so that nobody who
//! was admitted before it opened calls after it. It is looked at before and while waiting too: whoever stands in
//! line when it opens, or when the authority asks for a pause, is told at once. A call that ends settles with the
//! breaker before its place goes to the next, who therefore finds it open. Nobody waits with the leave of a
//! breaker in hand, and every leave and place is a guard: no probe and no place is lost.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

use super::account::Origin;
use super::breaker::BreakerView;
use super::breakers::{Breakers, Permit};
use super::failure::Failure;
use super::limits::{LimitView, Limits, Place};
use super::operation::Operation;
use crate::domain::kernel::clock::SharedClock;

/// A pause that the authority asks for is waited out if it is as short as this.
const PAUSE_WAITED: Duration = Duration::from_secs(2);
/// When to try again after the line was too long.
const AFTER_CROWD: Duration = Duration::from_secs(5);

pub(super) struct Gate {
    pub(super) breakers: Arc<Breakers>,
    limits: Arc<Limits>,
    /// Told where those who wait should look again, one per operation.
    stirs: [Notify; Operation::ALL.len()],
    /// How long anybody waits.
    patience: Duration,
}

/// Leave for one call.
pub(super) struct Leave {
    gate: Arc<Gate>,
    operation: Operation,
    /// Settled in this order.
    permit: Option<Permit>,
    place: Option<Place>,
}

impl Gate {
    /// At most `calls_max` calls of an operation at a time; nobody waits longer than `patience`.
    pub(super) fn new(calls_max: u32, patience: Duration, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            breakers: Breakers::new(clock.clone()),
            limits: Limits::new(calls_max, clock),
            stirs: std::array::from_fn(|_| Notify::new()),
            patience,
        })
    }

    pub(super) fn breaker_views(&self) -> Vec<BreakerView> {
        self.breakers.views()
    }

    pub(super) fn limit_views(&self) -> Vec<LimitView> {
        self.limits.views()
    }

    /// Waits for leave to call. The failure says that the call was not made.
    pub(super) async fn enter(
        self: &Arc<Self>,
        operation: Operation,
        origin: Origin,
    ) -> Result<Leave, Failure> {
        let mut place = self.place(operation, &origin).await?;
        let admitted = self.breakers.admit(operation, origin);
        let permit = admitted.map_err(|retry_after| Failure::BreakerOpen { retry_after })?;
        if permit.is_probe() {
            self.stir(operation);
        }
        place.begin();
        Ok(Leave { gate: Arc::clone(self), operation, permit: Some(permit), place: Some(place) })
    }

    /// A place, held through the rest of a short pause.
    async fn place(self: &Arc<Self>, operation: Operation, origin: &Origin) -> Result<Place, Failure> {
        let crowded = Failure::Crowded { retry_after: AFTER_CROWD };
        let mut deadline = pin!(sleep(self.patience));
        let mut line = pin!(self.limits.place(operation, origin.account));
        let place = loop {
            let stir = self.stirs[operation as usize].notified();
            self.look(operation, origin)?;
            tokio::select! {
                biased;
                place = &mut line => break place.ok_or_else(|| crowded.clone())?,
                () = stir => {}
                () = &mut deadline => {
                    self.starve(operation, origin);
                    return Err(crowded);
                }
            }
        };
        self.sit_out(operation, origin, deadline.as_mut()).await?;
        Ok(place)
    }

    async fn sit_out(
        &self,
        operation: Operation,
        origin: &Origin,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<(), Failure> {
        loop {
            let stir = self.stirs[operation as usize].notified();
            let Some(pause) = self.look(operation, origin)? else { return Ok(()) };
            tokio::select! {
                () = sleep(pause) => {}
                () = stir => {}
                () = &mut deadline => return Err(Failure::Paced { retry_after: pause }),
            }
        }
    }

    /// A pause short enough to wait out, or the failure where waiting is in vain.
    fn look(&self, operation: Operation, origin: &Origin) -> Result<Option<Duration>, Failure> {
        if let Some(retry_after) = self.breakers.held(operation, origin) {
            return Err(Failure::BreakerOpen { retry_after });
        }
        match self.limits.held(operation) {
            Some(retry_after) if retry_after > PAUSE_WAITED => Err(Failure::Paced { retry_after }),
            pause => Ok(pause),
        }
    }

    /// Nobody was served for as long as anybody waits: that may open the breaker.
    fn starve(&self, operation: Operation, origin: &Origin) {
        self.breakers.starve(operation, origin);
        self.stir_where_held(operation);
    }

    fn stir_where_held(&self, operation: Operation) {
        let is_paused = self.limits.held(operation).is_some_and(|pause| pause > PAUSE_WAITED);
        if is_paused || self.breakers.holds_any(operation) {
            self.stir(operation);
        }
    }

    /// Whether to ask now if the authority answers at all.
    pub(super) fn wants_question(&self, operation: Operation) -> bool {
        self.breakers.wants_question(operation)
    }

    /// Takes the answer to that question.
    pub(super) fn hear(&self, operation: Operation, is_alive: bool) {
        self.breakers.hear(operation, is_alive);
        self.stir_where_held(operation);
    }

    fn stir(&self, operation: Operation) {
        self.stirs[operation as usize].notify_waiters();
    }
}

impl Leave {
    /// The call has ended so, within this time.
    pub(super) fn settle<T>(mut self, result: &Result<T, Failure>, took: Duration) {
        if let Some(permit) = self.permit.take() {
            permit.settle(result);
        }
        if let Some(place) = self.place.take() {
            place.settle(result, took);
        }
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        drop(self.permit.take());
        drop(self.place.take());
        self.gate.stir_where_held(self.operation);
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
    use tokio::time::timeout;

    use super::super::account::Account;
    use super::super::breaker::BreakerState;
    use super::super::client::Authority;
    use super::super::failure::Cause;
    use super::super::tally::Outcome;
    use super::super::testing::{Reaction, Server, Workshop};
    use super::*;
    use crate::domain::kernel::clock::{MockClock, SystemClock};
    use crate::domain::kernel::ids::TaxpayerId;

    const OPERATION: Operation = Operation::Confirm;
    const CONFIRMED: &str = r#"{"data":{"payment_status":"PENDING","transmitted":false,"delivered":false}}"#;
    const DOWN: Result<(), Failure> = Err(Failure::Retryable { reason: Cause::Down { status: 503 } });
    const LONG: Duration = Duration::from_mins(1);

    static TAXPAYERS: AtomicI64 = AtomicI64::new(1);

    /// A call of a taxpayer that never called before.
    fn origin() -> Origin {
        let taxpayer = TAXPAYERS.fetch_add(1, Ordering::Relaxed);
        Origin::new(Account::Taxpayer(TaxpayerId(taxpayer)), Some(&taxpayer.to_string()))
    }

    fn clock() -> Arc<MockClock> {
        Arc::new(MockClock::at(Timestamp::from_second(1_800_000_000).unwrap()))
    }

    fn throttled(seconds: u64) -> Result<(), Failure> {
        Err(Failure::Throttled { retry_after: Some(Duration::from_secs(seconds)) })
    }

    fn view(gate: &Gate) -> LimitView {
        gate.limit_views().swap_remove(OPERATION as usize)
    }

    fn state(gate: &Gate) -> BreakerState {
        gate.breaker_views()[OPERATION as usize].state
    }

    /// Lets calls fail until one more would open the breaker.
    async fn on_the_brink(gate: &Arc<Gate>) {
        for _ in 0..19 {
            gate.enter(OPERATION, origin()).await.unwrap().settle(&DOWN, Duration::ZERO);
        }
        assert_eq!((view(gate).limit, state(gate)), (1, BreakerState::Closed));
    }

    /// So many who stand in line, and what they are told.
    async fn line(gate: &Arc<Gate>, count: usize) -> Vec<tokio::task::JoinHandle<Failure>> {
        let waiting: Vec<_> = (0..count)
            .map(|_| {
                let gate = Arc::clone(gate);
                tokio::spawn(async move { gate.enter(OPERATION, origin()).await.err().unwrap() })
            })
            .collect();
        while view(gate).waiting < count {
            tokio::task::yield_now().await;
        }
        waiting
    }

    async fn told(line: Vec<tokio::task::JoinHandle<Failure>>) -> Vec<Failure> {
        let told = timeout(Duration::from_secs(10), join_all(line)).await.expect("they are told at once");
        told.into_iter().map(Result::unwrap).collect()
    }

    #[tokio::test]
    async fn whoever_waits_too_long_is_told_that_the_call_was_not_made() {
        let gate = Gate::new(1, Duration::from_millis(50), clock());
        let leave = gate.enter(OPERATION, origin()).await.unwrap();
        let failure = gate.enter(OPERATION, origin()).await.err().unwrap();
        assert_eq!(failure, Failure::Crowded { retry_after: AFTER_CROWD });
        assert!(!failure.burns_attempt());
        assert_eq!((view(&gate).in_flight, view(&gate).waiting), (1, 0));
        drop(leave);
        assert!(gate.enter(OPERATION, origin()).await.is_ok());
    }

    #[tokio::test]
    async fn those_in_line_are_told_at_once_when_the_breaker_opens() {
        let gate = Gate::new(1, LONG, clock());
        on_the_brink(&gate).await;
        let last = gate.enter(OPERATION, origin()).await.unwrap();
        let line = line(&gate, 100).await;
        last.settle(&DOWN, Duration::ZERO);
        assert_eq!(state(&gate), BreakerState::Open);
        let retry_after = Duration::from_secs(5);
        assert!(told(line).await.into_iter().all(|failure| failure == Failure::BreakerOpen { retry_after }));
        assert_eq!((view(&gate).in_flight, view(&gate).waiting), (0, 0));
    }

    #[tokio::test]
    async fn a_probe_is_a_call_and_nobody_waits_for_its_end() {
        let clock = clock();
        let gate = Gate::new(1, LONG, clock.clone());
        on_the_brink(&gate).await;
        gate.enter(OPERATION, origin()).await.unwrap().settle(&DOWN, Duration::ZERO);
        clock.advance(Duration::from_secs(5));
        assert_eq!(state(&gate), BreakerState::Open, "a look is no probe");
        let probe = gate.enter(OPERATION, origin()).await.unwrap();
        assert_eq!(state(&gate), BreakerState::HalfOpen);
        let held = gate.enter(OPERATION, origin()).now_or_never().expect("it is told at once");
        assert!(matches!(held, Err(Failure::BreakerOpen { .. })));
        drop(probe);
        assert_eq!(state(&gate), BreakerState::Open, "the probe is not lost");
        clock.advance(Duration::from_secs(5));
        gate.enter(OPERATION, origin()).await.unwrap().settle(&Ok(()), Duration::ZERO);
        assert_eq!(state(&gate), BreakerState::Closed);
    }

    #[tokio::test]
    async fn those_who_stand_behind_a_straggler_are_told_when_one_of_them_probes() {
        let clock = clock();
        let gate = Gate::new(1, LONG, clock.clone());
        on_the_brink(&gate).await;
        let straggler = gate.enter(OPERATION, origin()).await.unwrap();
        gate.breakers.admit(OPERATION, origin()).ok().unwrap().settle(&DOWN);
        assert_eq!(state(&gate), BreakerState::Open);
        clock.advance(Duration::from_secs(5));
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let gate = Arc::clone(&gate);
                tokio::spawn(async move {
                    let _leave = gate.enter(OPERATION, origin()).await?;
                    pending::<Result<(), Failure>>().await
                })
            })
            .collect();
        while view(&gate).waiting < 10 {
            tokio::task::yield_now().await;
        }
        straggler.settle(&DOWN, Duration::ZERO);
        while view(&gate).waiting > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(state(&gate), BreakerState::HalfOpen);
        while waiting.iter().filter(|task| task.is_finished()).count() < 9 {
            tokio::task::yield_now().await;
        }
        assert_eq!(view(&gate).in_flight, 1, "the probe, which never ends");
    }

    #[tokio::test]
    async fn a_long_pause_is_told_at_once_also_to_those_in_line() {
        let clock = clock();
        let gate = Gate::new(1, LONG, clock.clone());
        let leave = gate.enter(OPERATION, origin()).await.unwrap();
        let line = line(&gate, 10).await;
        leave.settle(&throttled(7), Duration::ZERO);
        let paced = Failure::Paced { retry_after: Duration::from_secs(7) };
        assert!(told(line).await.into_iter().all(|failure| failure == paced));
        assert_eq!(gate.enter(OPERATION, origin()).await.err(), Some(paced));
        assert!(view(&gate).held_until.is_some());
        assert!(gate.enter(Operation::Sign, origin()).await.is_ok(), "other operations go on");
        clock.advance(Duration::from_secs(7));
        assert!(gate.enter(OPERATION, origin()).await.is_ok());
        assert_eq!(view(&gate).held_until, None);
    }

    #[tokio::test]
    async fn a_short_pause_is_waited_out() {
        let gate = Gate::new(64, LONG, Arc::new(SystemClock));
        gate.enter(OPERATION, origin()).await.unwrap().settle(&throttled(1), Duration::ZERO);
        let started = Instant::now();
        let held = join_all((0..3).map(|_| gate.enter(OPERATION, origin()))).await;
        assert!(held.into_iter().all(|leave| leave.is_ok()));
        assert!(started.elapsed() >= Duration::from_millis(900), "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn a_short_pause_is_not_waited_out_beyond_patience() {
        let gate = Gate::new(64, Duration::from_millis(20), clock());
        gate.enter(OPERATION, origin()).await.unwrap().settle(&throttled(2), Duration::ZERO);
        let paced = Failure::Paced { retry_after: Duration::from_secs(2) };
        assert_eq!(gate.enter(OPERATION, origin()).await.err(), Some(paced));
        assert_eq!((view(&gate).in_flight, view(&gate).waiting), (0, 0));
    }

    #[tokio::test]
    async fn an_authority_that_answers_nobody_opens_the_breaker_though_few_calls_reach_it() {
        let server = Server::start(Reaction::Stall).await;
        let authority = server.hasty_authority();
        let failures = join_all((0..40).map(|_| authority.confirm("I"))).await;
        let (mut made, mut crowded) = (0, 0);
        for failure in failures {
            match failure.unwrap_err() {
                Failure::Retryable { reason: Cause::TimedOut { .. } } => made += 1,
                Failure::Crowded { .. } | Failure::BreakerOpen { .. } => crowded += 1,
                other => panic!("{other}"),
            }
        }
        println!("40 confirms of an authority that stalls: {made} made, {crowded} not");
        assert!(made < 20 && made + crowded == 40);
        assert_eq!(authority.breakers()[OPERATION as usize].state, BreakerState::Open);
    }

    #[tokio::test]
    async fn an_authority_that_is_slow_does_not() {
        let gate = Gate::new(1, Duration::from_millis(10), clock());
        gate.enter(OPERATION, origin()).await.unwrap().settle(&Ok(()), Duration::ZERO);
        let _leave = gate.enter(OPERATION, origin()).await.unwrap();
        let failures = join_all((0..100).map(|_| gate.enter(OPERATION, origin()))).await;
        assert!(failures.into_iter().all(|failure| matches!(failure, Err(Failure::Crowded { .. }))));
        assert_eq!(state(&gate), BreakerState::Closed);
    }

    #[tokio::test]
    async fn a_caller_who_goes_away_gives_the_place_back() {
        let server = Server::start(Reaction::Stall).await;
        let authority = server.sparing_authority(1);
        for _ in 0..5 {
            assert!(timeout(Duration::from_millis(50), authority.confirm("I")).await.is_err());
        }
        let view = authority.limits().swap_remove(OPERATION as usize);
        assert_eq!((view.limit, view.in_flight, view.waiting), (1, 0, 0));
        assert!(authority.counters().iter().all(|tally| tally.calls == 0));
    }

    #[tokio::test]
    async fn waiting_takes_no_time_from_the_call() {
        let workshop = Workshop::new(1, Duration::from_millis(600), false, CONFIRMED);
        let server = Server::start(Reaction::Work(workshop.clone())).await;
        // It waits for a second: for its place, and then for the answer.
        let authority = server.sparing_authority(1);
        let (first, second) = tokio::join!(authority.confirm("A"), authority.confirm("B"));
        assert!(first.is_ok() && second.is_ok(), "{second:?}");
        let spent: Duration = authority.counters().iter().map(|tally| tally.duration).sum();
        assert!(spent < Duration::from_millis(1_750), "{spent:?}: waiting is not part of it");
        assert_eq!(workshop.peak(), 1);
    }

    #[tokio::test]
    async fn liveness_stands_in_no_line() {
        let server = Server::json(200, r#"{"healthy":true}"#).await;
        let authority = server.sparing_authority(1);
        let stalled = Server::start(Reaction::Stall).await.sparing_authority(1);
        let _ = timeout(Duration::from_millis(20), stalled.confirm("I")).await;
        assert!(authority.alive().await);
        assert!(authority.limits().iter().all(|view| view.in_flight == 0));
    }

    /// Calls until it is answered, as a run does; how many tries that took.
    async fn persist(authority: &Authority, number: u32) -> u32 {
        for tries in 1.. {
            match authority.confirm(&format!("IRN-{number}")).await {
                Ok(_) => return tries,
                Err(Failure::Throttled { .. }) => sleep(Duration::from_millis(20)).await,
                Err(other) => panic!("{other}"),
            }
        }
        0
    }

    #[tokio::test]
    async fn of_two_hundred_calls_at_once_none_is_lost_where_eight_are_borne() {
        for turns_away in [false, true] {
            let workshop = Workshop::new(8, Duration::from_millis(40), turns_away, CONFIRMED);
            let server = Server::start(Reaction::Work(workshop.clone())).await;
            let authority = server.authority();
            let started = Instant::now();
            let tries = join_all((0..200).map(|number| persist(&authority, number))).await;
            let view = authority.limits().swap_remove(OPERATION as usize);
            let calls: u32 = tries.iter().sum();
            println!(
                "turns away {turns_away}: 200 confirms in {:?}, {calls} calls, at most {} at a time, limit {}",
                started.elapsed(),
                workshop.peak(),
                view.limit
            );
            assert_eq!(tries.len(), 200);
            assert_eq!(server.received().len(), usize::try_from(calls).unwrap());
            assert_eq!((view.in_flight, view.waiting), (0, 0));
            assert!(workshop.peak() <= 40, "200 were never there at a time: {}", workshop.peak());
            if turns_away {
                assert!(calls < 300, "{calls}: the limit keeps most from being turned away");
                assert!(view.limit <= 16, "{}", view.limit);
            } else {
                assert_eq!(calls, 200);
            }
            let lost = authority.counters().into_iter().filter(|tally| {
                tally.calls > 0 && !matches!(tally.outcome, Outcome::Succeeded | Outcome::Throttled)
            });
            assert_eq!(lost.count(), 0);
        }
    }

    #[tokio::test]
    async fn an_overloaded_authority_gets_fewer_calls_at_a_time() {
        let server = Server::json(429, "").await;
        let authority = server.authority();
        let before = authority.limits()[Operation::Sign as usize].limit;
        let failures = join_all((0..15).map(|_| authority.sign(&Value::Null))).await;
        assert!(failures.iter().all(|failure| matches!(failure, Err(Failure::Throttled { .. }))));
        let after = authority.limits()[Operation::Sign as usize].limit;
        println!("limit {before}, after 15 answers of 429: {after}");
        assert!(after < before);
    }
}
