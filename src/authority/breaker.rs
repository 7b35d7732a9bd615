//! A circuit breaker as a pure state machine: every method is given the present.
//!
//! It opens when at least half of at least 20 calls within 30 s failed. Open, it lets one probe through at a
//! time, spaced; a probe that succeeds closes it. Calls that are neither (duplicates, throttling) are not
//! counted.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::operation::Operation;

const WINDOW: Duration = Duration::from_secs(30);
const CALLS_MIN: u32 = 20;
/// The time between two probes of an open breaker.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// What a call said about the health of the authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answered, be it yes or no.
    Answered,
    Failed,
    /// It answered with something that speaks neither for it nor against it.
    Neutral,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Call,
    /// The breaker is open, and this call is to find out whether it should be.
    Probe,
    /// Not before this time has passed.
    Held(Duration),
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
    /// When it last opened or closed; None when it never did.
    pub since: Option<Timestamp>,
    /// Calls counted within the last 30 s, and those of them that failed.
    pub calls: u32,
    pub failures: u32,
    /// When the next probe may start; None while closed or probing.
    pub next_probe_at: Option<Timestamp>,
    /// When a call was last answered and when one last failed; None where none was since the start of the process.
    pub answered_at: Option<Timestamp>,
    pub failed_at: Option<Timestamp>,
    /// How often it opened since the start of the process.
    pub openings: u64,
}

/// The calls of one second.
#[derive(Debug)]
struct Bucket {
    second: i64,
    answered: u32,
    failed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { next_probe_at: Timestamp },
    Probing { since: Timestamp },
}

#[derive(Debug)]
pub(super) struct Breaker {
    state: State,
    since: Option<Timestamp>,
    answered_at: Option<Timestamp>,
    failed_at: Option<Timestamp>,
    openings: u64,
    buckets: VecDeque<Bucket>,
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self {
            state: State::Closed,
            since: None,
            answered_at: None,
            failed_at: None,
            openings: 0,
            buckets: VecDeque::new(),
        }
    }

    /// How long a call would be held back; None where it, or a probe, would be let through. Asking changes
    /// nothing.
    pub(super) fn held(&self, now: Timestamp) -> Option<Duration> {
        match self.state {
            State::Closed => None,
            State::Open { next_probe_at } => (now < next_probe_at).then(|| until(now, next_probe_at)),
            State::Probing { since } => Some(until(now, after(since, PROBE_EVERY)).max(PROBE_EVERY / 5)),
        }
    }

    /// Asks for leave to call. A `Probe` must be settled or released.
    pub(super) fn admit(&mut self, now: Timestamp) -> Admission {
        if let Some(wait) = self.held(now) {
            return Admission::Held(wait);
        }
        if self.state == State::Closed {
            return Admission::Call;
        }
        self.state = State::Probing { since: now };
        Admission::Probe
    }

    /// Takes the verdict of a call that was admitted. True when the breaker opened or closed by it.
    pub(super) fn settle(&mut self, admission: Admission, verdict: Verdict, now: Timestamp) -> bool {
        match verdict {
            Verdict::Answered => self.answered_at = Some(now),
            Verdict::Failed => self.failed_at = Some(now),
            Verdict::Neutral => {}
        }
        match admission {
            Admission::Held(_) => false,
            Admission::Probe => self.settle_probe(verdict, now),
            Admission::Call => self.settle_call(verdict, now),
        }
    }

    /// A call was not made, because none before it ended for as long as it could wait. Where nothing was answered
    /// lately it counts as failed: few calls at a time, all of which hang, would else never open the breaker.
    /// True when it opened by it.
    pub(super) fn starve(&mut self, now: Timestamp) -> bool {
        let (calls, failures) = self.counted(now);
        calls == failures && self.settle_call(Verdict::Failed, now)
    }

    /// The state, as of `now`.
    pub(super) fn view(&self, operation: Operation, now: Timestamp) -> BreakerView {
        let (calls, failures) = self.counted(now);
        let (state, next_probe_at) = match self.state {
            State::Closed => (BreakerState::Closed, None),
            State::Open { next_probe_at } => (BreakerState::Open, Some(next_probe_at)),
            State::Probing { .. } => (BreakerState::HalfOpen, None),
        };
        BreakerView {
            operation,
            state,
            since: self.since,
            calls,
            failures,
            next_probe_at,
            answered_at: self.answered_at,
            failed_at: self.failed_at,
            openings: self.openings,
        }
    }

    fn settle_probe(&mut self, verdict: Verdict, now: Timestamp) -> bool {
        if verdict == Verdict::Answered {
            self.state = State::Closed;
            self.since = Some(now);
            self.buckets.clear();
            return true;
        }
        self.state = State::Open { next_probe_at: after(now, PROBE_EVERY) };
        false
    }

    /// A straggler admitted before the breaker opened is counted, but moves nothing.
    fn settle_call(&mut self, verdict: Verdict, now: Timestamp) -> bool {
        if verdict == Verdict::Neutral {
            return false;
        }
        self.count(verdict, now);
        let (calls, failures) = self.counted(now);
        if self.state != State::Closed || calls < CALLS_MIN || failures.saturating_mul(2) < calls {
            return false;
        }
        self.state = State::Open { next_probe_at: after(now, PROBE_EVERY) };
        self.since = Some(now);
        self.openings += 1;
        true
    }

    fn count(&mut self, verdict: Verdict, now: Timestamp) {
        let second = now.as_second();
        self.buckets.retain(|bucket| in_window(bucket, second));
        if self.buckets.back().is_none_or(|bucket| bucket.second != second) {
            self.buckets.push_back(Bucket { second, answered: 0, failed: 0 });
        }
        if let Some(bucket) = self.buckets.back_mut() {
            let counter = if verdict == Verdict::Failed { &mut bucket.failed } else { &mut bucket.answered };
            *counter = counter.saturating_add(1);
        }
    }

    /// Calls within the window, and those of them that failed.
    fn counted(&self, now: Timestamp) -> (u32, u32) {
        let second = now.as_second();
        self.buckets.iter().filter(|bucket| in_window(bucket, second)).fold(
            (0, 0),
            |(calls, failures), bucket| {
                let all = bucket.answered.saturating_add(bucket.failed);
                (all.saturating_add(calls), bucket.failed.saturating_add(failures))
            },
        )
    }
}

/// A bucket of the future is one from before the clock was set back: it does not count.
fn in_window(bucket: &Bucket, second: i64) -> bool {
    let age = second.saturating_sub(bucket.second);
    u64::try_from(age).is_ok_and(|age| age < WINDOW.as_secs())
}

fn after(moment: Timestamp, wait: Duration) -> Timestamp {
    moment.checked_add(wait).unwrap_or(Timestamp::MAX)
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn run(breaker: &mut Breaker, calls: u32, verdict: Verdict, now: Timestamp) {
        for _ in 0..calls {
            let admission = breaker.admit(now);
            breaker.settle(admission, verdict, now);
        }
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::new();
        run(&mut breaker, 20, Verdict::Failed, at(0));
        breaker
    }

    fn state(breaker: &Breaker) -> BreakerState {
        breaker.view(Operation::Sign, at(0)).state
    }

    #[test]
    fn it_opens_at_half_of_twenty_calls() {
        let mut breaker = Breaker::new();
        run(&mut breaker, 10, Verdict::Answered, at(0));
        run(&mut breaker, 9, Verdict::Failed, at(1));
        assert_eq!(state(&breaker), BreakerState::Closed);
        run(&mut breaker, 1, Verdict::Failed, at(2));
        assert_eq!(state(&breaker), BreakerState::Open);
        let view = breaker.view(Operation::Sign, at(2));
        assert_eq!((view.calls, view.failures, view.openings, view.since), (20, 10, 1, Some(at(2))));
    }

    #[test]
    fn fewer_than_twenty_failures_do_not_open_it() {
        let mut breaker = Breaker::new();
        run(&mut breaker, 19, Verdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn failures_older_than_the_window_are_forgotten() {
        let mut breaker = Breaker::new();
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
        let mut breaker = Breaker::new();
        run(&mut breaker, 100, Verdict::Neutral, at(0));
        run(&mut breaker, 19, Verdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }

    #[test]
    fn an_open_breaker_holds_calls_back_and_says_how_long() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(0)), Admission::Held(Duration::from_secs(5)));
        assert_eq!(breaker.admit(at(3)), Admission::Held(Duration::from_secs(2)));
        assert_eq!(breaker.view(Operation::Sign, at(3)).next_probe_at, Some(at(5)));
    }

    #[test]
    fn probes_go_one_at_a_time_and_are_spaced() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(at(5)), Admission::Probe);
        assert_eq!(state(&breaker), BreakerState::HalfOpen);
        assert!(matches!(breaker.admit(at(5)), Admission::Held(_)));
        assert!(matches!(breaker.admit(at(100)), Admission::Held(wait) if !wait.is_zero()));
        assert!(!breaker.settle(Admission::Probe, Verdict::Failed, at(6)));
        assert!(matches!(breaker.admit(at(10)), Admission::Held(_)));
        assert_eq!(breaker.admit(at(11)), Admission::Probe);
    }

    #[test]
    fn a_probe_that_is_answered_closes_it_with_a_clean_slate() {
        let mut breaker = opened();
        breaker.admit(at(5));
        assert!(breaker.settle(Admission::Probe, Verdict::Answered, at(6)));
        let view = breaker.view(Operation::Sign, at(6));
        assert_eq!((view.state, view.calls, view.since), (BreakerState::Closed, 0, Some(at(6))));
        assert_eq!(breaker.admit(at(6)), Admission::Call);
    }

    #[test]
    fn a_probe_without_a_verdict_leaves_it_open() {
        let mut breaker = opened();
        breaker.admit(at(5));
        assert!(!breaker.settle(Admission::Probe, Verdict::Neutral, at(6)));
        assert_eq!(state(&breaker), BreakerState::Open);
    }

    #[test]
    fn stragglers_neither_close_it_nor_open_it_again() {
        let mut breaker = opened();
        assert!(!breaker.settle(Admission::Call, Verdict::Answered, at(1)));
        assert!(!breaker.settle(Admission::Call, Verdict::Failed, at(1)));
        assert_eq!(breaker.view(Operation::Sign, at(1)).openings, 1);
        assert_eq!(state(&breaker), BreakerState::Open);
    }

    #[test]
    fn calls_that_starve_open_it_unless_others_were_answered_lately() {
        let mut breaker = Breaker::new();
        assert_eq!((0..20).filter(|_| breaker.starve(at(0))).count(), 1);
        assert_eq!(state(&breaker), BreakerState::Open);
        let mut breaker = Breaker::new();
        run(&mut breaker, 1, Verdict::Answered, at(0));
        assert_eq!((0..100).filter(|_| breaker.starve(at(29))).count(), 0);
        assert_eq!((0..100).filter(|_| breaker.starve(at(30))).count(), 1);
    }

    #[test]
    fn a_look_takes_no_probe() {
        let mut breaker = opened();
        assert!(breaker.held(at(4)).is_some());
        assert_eq!(breaker.held(at(5)), None);
        assert_eq!(breaker.admit(at(5)), Admission::Probe);
        assert!(breaker.held(at(5)).is_some());
        assert!(breaker.settle(Admission::Probe, Verdict::Answered, at(6)));
        assert_eq!(breaker.held(at(6)), None);
    }

    #[test]
    fn a_clock_set_back_neither_opens_it_nor_panics() {
        let mut breaker = Breaker::new();
        run(&mut breaker, 19, Verdict::Failed, at(100));
        run(&mut breaker, 1, Verdict::Failed, at(0));
        assert_eq!(state(&breaker), BreakerState::Closed);
    }
}
