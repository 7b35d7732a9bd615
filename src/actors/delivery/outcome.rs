//! The effects of finished attempts: the next state of the delivery, the entry in the log of attempts, and the change
//! in the health of the endpoint, with its failure streak before and after and whether it must be disabled.

use std::time::Duration;

use jiff::Timestamp;
use rand::RngExt;
use timing::clock;
use webhook_client::{AttemptOutcome, RetrySchedule};

use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::in_flight::CompletedAttempt;
use crate::domain::events::delivery::{
    AttemptHeaders, Delivery, DeliveryAttempt, DeliveryState, PhaseDurations,
};
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::endpoint_health::{self, CircuitState, FailureStreak};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::crash::CrashHistory;
use crate::domain::notice::{Notice, NoticeKind, NoticeScope};

impl DeliveryDeps {
    /// Returns the endpoint's failure streak after these attempts, which must be in the order in which they ended.
    /// `None` means that the endpoint is not failing.
    pub(super) fn failure_streak_after<'a>(
        &self,
        before: Option<FailureStreak>,
        attempts: impl Iterator<Item = &'a webhook_client::AttemptResult>,
    ) -> Option<FailureStreak> {
        let at = self.clock.now();
        attempts.fold(before, |before, attempt| {
            match attempt.outcome {
                AttemptOutcome::Delivered => return None,
                // The endpoint asked not to get this one message again. That does not show that the endpoint is faulty.
                AttemptOutcome::Aborted(_) => return before,
                _ => {}
            }
            let jitter = clock::system_rng().random();
            let retry_after = attempt.retry_after.map(|header| header.wait(at));
            let failure = attempt.outcome.name();
            let failure = endpoint_health::EndpointFailure {
                at,
                requested_wait: retry_after,
                jitter,
                failure,
                status: attempt.status,
            };
            Some(FailureStreak::after_failure(before, failure, &self.circuit))
        })
    }

    /// Returns the delivery after the attempt (delivered, due for a retry, or a dead letter), the kind of its event and
    /// the entry for the log of attempts. A failed probe that was sent before its time leaves the retry schedule as it
    /// was.
    pub(super) fn apply_attempt(
        &self,
        completed: CompletedAttempt,
        endpoint: &Endpoint,
    ) -> (Delivery, EventKind, DeliveryAttempt) {
        let CompletedAttempt {
            mut delivery,
            kind,
            attempt,
            at,
            ..
        } = completed;
        let is_early = delivery.is_scheduled_after(at);
        let planned = delivery.next_attempt_at.take();
        delivery.attempts += 1;
        delivery.attempts_before += u32::from(is_early);
        // The attempt has ended without a crash, so the delivery did not cause the earlier crashes.
        delivery.crash_history = CrashHistory::default();
        let next_time = if is_early {
            planned
        } else {
            self.next_attempt_time(&delivery, &attempt, endpoint)
        };
        match (attempt.outcome, next_time) {
            (AttemptOutcome::Delivered, _) => delivery.state = DeliveryState::Delivered,
            (AttemptOutcome::Aborted(_), _) | (_, None) => delivery.state = DeliveryState::Dead,
            (_, Some(next)) => delivery.next_attempt_at = Some(next),
        }
        (delivery, kind, log_entry(&attempt, at))
    }

    /// Returns the time of the next attempt after a failed one; `None` if the retry schedule has ended.
    fn next_attempt_time(
        &self,
        delivery: &Delivery,
        attempt: &webhook_client::AttemptResult,
        endpoint: &Endpoint,
    ) -> Option<Timestamp> {
        let made = usize::try_from(delivery.attempts_since_replay()).unwrap_or(usize::MAX);
        let schedule =
            RetrySchedule::for_endpoint(&self.schedule, endpoint.retry_schedule.as_deref());
        let now = self.clock.now();
        let retry_after = attempt.retry_after.map(|header| header.wait(now));
        let delay = schedule.next_delay(made, retry_after, clock::system_rng().random())?;
        Some(now.saturating_add(delay).unwrap_or(Timestamp::MAX))
    }
}

fn log_entry(attempt: &webhook_client::AttemptResult, at: Timestamp) -> DeliveryAttempt {
    DeliveryAttempt {
        at,
        status: attempt.status,
        failure: (!attempt.is_delivered()).then(|| attempt.outcome.name().to_owned()),
        duration_ms: i64::try_from(attempt.duration.as_millis()).unwrap_or(i64::MAX),
        phases: to_phase_durations(attempt.phases),
        response: attempt.response_head.replace('\0', " "),
        headers: Some(AttemptHeaders {
            request: attempt.request_headers.clone(),
            response: attempt.response_headers.clone(),
        }),
    }
}

fn to_phase_durations(phases: webhook_client::PhaseTimes) -> PhaseDurations {
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    PhaseDurations {
        dns_ms: phases.dns.map(millis),
        connect_ms: phases.connect.map(millis),
        wait_ms: phases.wait.map(millis),
        read_ms: phases.read.map(millis),
    }
}

/// The failure streak of an endpoint before and after finished attempts; `None` for an endpoint that is not failing.
pub(super) struct HealthChange {
    before: Option<FailureStreak>,
    pub(super) after: Option<FailureStreak>,
    /// True if the endpoint answered 410.
    is_gone: bool,
    /// True if the endpoint has failed for so long that it must be disabled.
    should_disable: bool,
}

impl HealthChange {
    pub(super) fn new(
        deps: &DeliveryDeps,
        endpoint: &Endpoint,
        before: Option<FailureStreak>,
        completed: &[CompletedAttempt],
    ) -> Self {
        // An attempt at an earlier version of the endpoint does not count for the health of the current version.
        let current = || {
            completed
                .iter()
                .filter(|one| one.matches_version(endpoint))
                .map(|one| &one.attempt)
        };
        let is_gone = current().any(webhook_client::AttemptResult::is_gone);
        let after = deps.failure_streak_after(before.clone(), current());
        let should_disable = after
            .as_ref()
            .is_some_and(|streak| streak.should_disable(&deps.circuit));
        Self {
            before,
            after,
            is_gone,
            should_disable,
        }
    }

    /// True if the endpoint was healthy and still is.
    pub(super) fn is_healthy(&self) -> bool {
        self.before.is_none() && self.after.is_none() && !self.is_gone
    }

    /// Returns the state of the endpoint's circuit after these attempts.
    pub(super) fn circuit_state(&self, now: Timestamp) -> CircuitState {
        self.after
            .as_ref()
            .map_or(CircuitState::Closed, |streak| streak.circuit_state(now))
    }

    pub(super) fn has_changed(&self) -> bool {
        self.after != self.before
    }

    /// True if these attempts ended a failure streak in which the endpoint was parked.
    pub(super) fn has_recovered(&self) -> bool {
        self.after.is_none() && self.before.as_ref().is_some_and(FailureStreak::was_parked)
    }

    /// Returns the streak of failures if these attempts parked the endpoint for the first time in it.
    pub(super) fn streak_at_first_park(&self) -> Option<&FailureStreak> {
        self.after
            .as_ref()
            .filter(|after| after.was_just_parked(self.before.as_ref()))
    }

    /// Returns the notice for the taxpayer's people: the endpoint was parked because it keeps failing, or it works
    /// again after that. `None` if there is no news.
    pub(super) fn notice(&self, endpoint: &Endpoint, now: Timestamp) -> Option<Notice> {
        let (kind, detail) = match self.streak_at_first_park() {
            Some(streak) => (NoticeKind::EndpointFailing, describe_failures(streak)),
            None if self.has_recovered() => (NoticeKind::EndpointWorks, String::new()),
            None => return None,
        };
        let notice = Notice::new(NoticeScope::Taxpayer(endpoint.taxpayer_id), kind, now);
        Some(notice.with_subject(&endpoint.name_in_mails(), &detail))
    }

    /// Returns the reason why the endpoint must be disabled; `None` if it stays enabled.
    pub(super) fn reason_to_disable(&self) -> Option<String> {
        if self.is_gone {
            return Some("the endpoint answered 410 Gone".to_owned());
        }
        let streak = self.after.as_ref().filter(|_| self.should_disable)?;
        Some(describe_failures(streak))
    }
}

fn describe_failures(streak: &FailureStreak) -> String {
    let cause = streak.last_failure.as_deref().unwrap_or("unknown");
    format!(
        "each attempt has failed since {}, the last one with: {}",
        streak.since.strftime("%Y-%m-%d %H:%M:%S UTC"),
        cause.replace('_', " ")
    )
}
