//! The health of an endpoint as a circuit breaker.
//!
//! If all attempts have failed for some time, the endpoint is parked: its due deliveries wait, and only one delivery is
//! sent from time to time, as a probe. The first success ends this. If all attempts have failed for days, the endpoint
//! is disabled.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use timing::jitter::equal_jitter;

use crate::domain::kernel::codes::words;

/// An endpoint is parked or disabled only after at least this many failures in a row.
const FAILURES_MIN: u32 = 5;
/// The wait before the first probe. The wait doubles with each failed probe.
const FIRST_PARK_WAIT: Duration = Duration::from_secs(5);
/// The longest wait that an endpoint can request in its response. A longer one is shortened to this.
const REQUESTED_WAIT_MAX: Duration = Duration::from_hours(24);
/// A failure that comes longer than this after the previous one starts a new streak. The value exceeds the longest wait
/// of the default retry schedule, so a wait for a retry does not end a streak.
const STREAK_GAP_MAX: SignedDuration = SignedDuration::from_hours(48);

/// An endpoint without a success is parked after failing for `open_after`, and disabled after failing for
/// `disable_after`. The wait before a probe is at most `probe_interval_max`, unless the endpoint requests more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitPolicy {
    pub open_after: Duration,
    pub probe_interval_max: Duration,
    pub disable_after: Duration,
}

impl Default for CircuitPolicy {
    /// Parks after one minute of failures, disables after five days, and waits at most five minutes before a probe.
    fn default() -> Self {
        Self {
            open_after: Duration::from_mins(1),
            probe_interval_max: Duration::from_mins(5),
            disable_after: Duration::from_hours(120),
        }
    }
}

/// A series of failures without a success in between. A working endpoint has no streak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureStreak {
    pub since: Timestamp,
    pub last: Timestamp,
    pub failures: u32,
    /// The number of times that the endpoint was parked in this streak. The wait doubles each time.
    pub probes: u32,
    pub parked_until: Option<Timestamp>,
    /// The name of the last failure, such as `timed_out`; `None` if an older version stored the streak.
    #[serde(default)]
    pub last_failure: Option<String>,
    /// The HTTP status of the last response; `None` if there was no response, or if an older version stored the streak.
    #[serde(default)]
    pub last_status: Option<u16>,
}

words! {
    /// The health of an endpoint. `Failing` means failures since the last success. `Parked` means failures for so long
    /// that only probes are sent.
    EndpointHealth { Working = "working", Failing = "failing", Parked = "parked", Disabled = "disabled" }
}

impl EndpointHealth {
    pub fn new(is_active: bool, streak: Option<&FailureStreak>) -> Self {
        match streak {
            _ if !is_active => Self::Disabled,
            None => Self::Working,
            Some(streak) if streak.was_parked() => Self::Parked,
            Some(_) => Self::Failing,
        }
    }
}

/// The deliveries that may be sent to an endpoint now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitState {
    /// All due deliveries may be sent.
    Closed,
    /// One delivery may be sent, as a probe.
    Probe,
    /// No delivery may be sent before this time.
    Parked(Timestamp),
}

/// One failed attempt. `requested_wait` is the wait that the endpoint requested; `jitter` is a random number that
/// shortens the next wait by up to half.
#[derive(Debug, Clone, Copy)]
pub struct EndpointFailure {
    pub at: Timestamp,
    pub requested_wait: Option<Duration>,
    pub jitter: u32,
    /// The name of the failure, such as `timed_out`.
    pub failure: &'static str,
    /// The HTTP status of the response, if there was one.
    pub status: Option<u16>,
}

impl FailureStreak {
    /// Returns the streak after one more failure. Parks the endpoint if the streak is now long enough.
    pub fn after_failure(
        before: Option<Self>,
        failure: EndpointFailure,
        policy: &CircuitPolicy,
    ) -> Self {
        let at = failure.at;
        let begun = Self {
            since: at,
            last: at,
            failures: 0,
            probes: 0,
            parked_until: None,
            last_failure: None,
            last_status: None,
        };
        let mut failing = before
            .filter(|old| at.duration_since(old.last) < STREAK_GAP_MAX)
            .unwrap_or(begun);
        failing.shift_if_clock_set_back(at);
        failing.last = at;
        failing.last_failure = Some(failure.failure.to_owned());
        failing.last_status = failure.status;
        failing.failures = failing.failures.saturating_add(1);
        let lasted = at.duration_since(failing.since);
        let is_parked = failing.parked_until.is_some_and(|until| until > at);
        if failing.failures >= FAILURES_MIN && is_at_least(lasted, policy.open_after) && !is_parked
        {
            let wait = failing.wait_before_probe(failure.jitter, policy).max(
                failure
                    .requested_wait
                    .unwrap_or_default()
                    .min(REQUESTED_WAIT_MAX),
            );
            failing.parked_until = Some(at.saturating_add(wait).unwrap_or(Timestamp::MAX));
            failing.probes = failing.probes.saturating_add(1);
        }
        failing
    }

    /// Returns the cause of the last failure: the status of the response or, without a response, the name of the
    /// failure.
    pub fn last_cause(&self) -> String {
        match (self.last_status, &self.last_failure) {
            (Some(status), _) => status.to_string(),
            (None, Some(failure)) => failure.clone(),
            (None, None) => "unknown".to_owned(),
        }
    }

    /// Moves `since` back by as much as the clock was set back, so that the streak keeps its length.
    fn shift_if_clock_set_back(&mut self, now: Timestamp) {
        let back = self.last.duration_since(now);
        if back.is_positive() {
            self.since = self.since.saturating_sub(back).unwrap_or(Timestamp::MIN);
            self.parked_until = self.parked_until.map(|_| now);
        }
    }

    /// Returns the wait before the next probe. The wait doubles with each probe of the streak; `jitter` shortens it by
    /// up to half.
    fn wait_before_probe(&self, jitter: u32, policy: &CircuitPolicy) -> Duration {
        let whole = FIRST_PARK_WAIT
            .saturating_mul(1 << self.probes.min(16))
            .min(policy.probe_interval_max);
        equal_jitter(whole, jitter)
    }

    /// True if the last failure parked the endpoint for the first time in this streak. `before` is the streak before
    /// that failure.
    pub fn was_just_parked(&self, before: Option<&Self>) -> bool {
        let was_parked = before.is_some_and(|old| old.since == self.since && old.was_parked());
        self.was_parked() && !was_parked
    }

    /// True if the endpoint was parked at any time in this streak.
    pub fn was_parked(&self) -> bool {
        self.parked_until.is_some()
    }

    /// True if the streak has lasted so long that the endpoint must be disabled.
    pub fn should_disable(&self, policy: &CircuitPolicy) -> bool {
        self.failures >= FAILURES_MIN
            && is_at_least(self.last.duration_since(self.since), policy.disable_after)
    }

    pub fn circuit_state(&self, now: Timestamp) -> CircuitState {
        match self.parked_until {
            None => CircuitState::Closed,
            // A last failure in the future means that the clock was set back after it. The end of the wait may then be
            // far away, so it is ignored.
            Some(until) if until > now && self.last <= now => CircuitState::Parked(until),
            Some(_) => CircuitState::Probe,
        }
    }
}

/// The cause of a failed attempt in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseWords {
    /// The label in a list.
    pub label: String,
    /// The predicates of sentences about one endpoint and about several endpoints.
    pub one: String,
    pub several: String,
}

impl CauseWords {
    /// Returns the words for a cause as `FailureStreak::last_cause` returns it.
    pub fn new(cause: &str) -> Self {
        let (label, one, several) = match cause {
            "connect" => (
                "No connection",
                "accepts no connection",
                "accept no connection",
            ),
            "timed_out" => (
                "No answer in time",
                "does not answer in time",
                "do not answer in time",
            ),
            "dns" => (
                "Name not found",
                "has a name that is not found",
                "have names that are not found",
            ),
            "tls" => (
                "No trusted TLS",
                "offers no trusted TLS connection",
                "offer no trusted TLS connection",
            ),
            "reset" => (
                "Connection cut",
                "ends the connection without an answer",
                "end the connection without an answer",
            ),
            "excess" => (
                "Too long an answer",
                "sends more than an answer may have",
                "send more than an answer may have",
            ),
            "forbidden" => (
                "Address not allowed",
                "is at an address that is not called",
                "are at addresses that are not called",
            ),
            "auth" => (
                "Not authenticated",
                "could not be authenticated to",
                "could not be authenticated to",
            ),
            "rejected" => ("Answers an error", "answers an error", "answer an error"),
            "unknown" => ("Not recorded", "fails", "fail"),
            status => {
                return Self {
                    label: format!("Answers {status}"),
                    one: format!("answers {status}"),
                    several: format!("answer {status}"),
                };
            }
        };
        Self {
            label: label.to_owned(),
            one: one.to_owned(),
            several: several.to_owned(),
        }
    }
}

fn is_at_least(duration: SignedDuration, limit: Duration) -> bool {
    Duration::try_from(duration).is_ok_and(|duration| duration >= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn fail(before: Option<FailureStreak>, at: i64) -> FailureStreak {
        FailureStreak::after_failure(
            before,
            EndpointFailure {
                at: second(at),
                requested_wait: None,
                jitter: u32::MAX,
                failure: "reset",
                status: None,
            },
            &CircuitPolicy::default(),
        )
    }

    fn after(seconds: impl IntoIterator<Item = i64>) -> FailureStreak {
        seconds
            .into_iter()
            .fold(None, |before, at| Some(fail(before, at)))
            .unwrap()
    }

    #[test]
    fn a_minute_of_nothing_but_failure_parks_an_endpoint() {
        assert_eq!(
            after([0, 1, 2, 3, 4, 59]).circuit_state(second(59)),
            CircuitState::Closed,
            "too soon"
        );
        assert_eq!(
            after([0, 60, 120, 180]).circuit_state(second(180)),
            CircuitState::Closed,
            "too few"
        );
        let failing = after([0, 1, 2, 3, 60]);
        assert_eq!(
            failing.circuit_state(second(60)),
            CircuitState::Parked(second(65))
        );
        assert_eq!(failing.circuit_state(second(65)), CircuitState::Probe);
    }

    #[test]
    fn each_probe_that_fails_doubles_the_wait_up_to_its_limit() {
        let mut failing = after([0, 1, 2, 3, 60]);
        let mut waits = Vec::new();
        for _ in 0..8 {
            let until = failing.parked_until.unwrap();
            failing = fail(Some(failing), until.as_second());
            waits.push(failing.parked_until.unwrap().as_second() - until.as_second());
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300, 300]);
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_no_endpoint_parked() {
        let day = 86_400;
        let parked = after([0, 1, 2, 3, 60].map(|at| at + day));
        assert_eq!(
            parked.circuit_state(second(day + 61)),
            CircuitState::Parked(second(day + 65))
        );
        let back = day - 540;
        assert_eq!(parked.circuit_state(second(back)), CircuitState::Probe);
        let again = fail(Some(parked), back);
        assert_eq!(
            again.circuit_state(second(back)),
            CircuitState::Parked(second(back + 10)),
            "from now on"
        );
        assert_eq!((again.since, again.last), (second(back - 60), second(back)));
    }

    #[test]
    fn failures_of_attempts_in_flight_do_not_prolong_the_wait() {
        let failing = after([0, 1, 2, 3, 60]);
        assert_eq!(
            fail(Some(failing.clone()), 61).parked_until,
            failing.parked_until
        );
    }

    #[test]
    fn a_wait_is_drawn_from_its_upper_half_and_lengthened_up_to_a_day_on_request() {
        let wait = |jitter, requested_s| {
            let requested_wait = Some(Duration::from_secs(requested_s));
            let failure = EndpointFailure {
                at: second(60),
                requested_wait,
                jitter,
                failure: "rejected",
                status: Some(503),
            };
            let failing = FailureStreak::after_failure(
                Some(after([0, 1, 2, 3])),
                failure,
                &CircuitPolicy::default(),
            );
            failing
                .parked_until
                .unwrap()
                .duration_since(second(60))
                .as_millis()
        };
        assert_eq!((wait(0, 0), wait(u32::MAX, 0)), (2_500, 5_000));
        assert_eq!((wait(0, 90), wait(0, 1_000_000)), (90_000, 86_400_000));
    }

    #[test]
    fn the_health_of_an_endpoint_follows_from_its_streak() {
        let failing = after([0, 1]);
        let parked = after([0, 1, 2, 3, 60]);
        let health = |is_active, streak| EndpointHealth::new(is_active, streak);
        assert_eq!(health(true, None), EndpointHealth::Working);
        assert_eq!(health(true, Some(&failing)), EndpointHealth::Failing);
        assert_eq!(health(true, Some(&parked)), EndpointHealth::Parked);
        assert_eq!(health(false, Some(&parked)), EndpointHealth::Disabled);
        assert_eq!(parked.last_failure.as_deref(), Some("reset"));
    }

    #[test]
    fn five_days_of_nothing_but_failure_are_disabled() {
        let day = 86_400;
        assert!(!after((0..5).map(|n| n * day)).should_disable(&CircuitPolicy::default()));
        assert!(after((0..6).map(|n| n * day)).should_disable(&CircuitPolicy::default()));
        assert!(
            !after([0, 5 * day]).should_disable(&CircuitPolicy::default()),
            "nobody called in between"
        );
        assert!(
            !after([0, 1, 2, 3, 4, 3 * day]).should_disable(&CircuitPolicy::default()),
            "it starts afresh after silence"
        );
    }
}
