//! Computes the effects of an attempt: the next state of the delivery, the failure streak of the endpoint and the entry
//! in the log of attempts.

use std::time::Duration;

use jiff::Timestamp;
use rand::RngExt;
use timing::clock;
use webhook_client::{AttemptOutcome, RetrySchedule};

use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::in_flight::CompletedAttempt;
use crate::domain::events::delivery::{
    AttemptHeaders, Delivery, DeliveryAttempt, DeliveryState, Endpoint, PhaseDurations,
};
use crate::domain::events::endpoint_health::{self, FailureStreak};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::crash::CrashHistory;

impl DeliveryDeps {
    /// Returns the endpoint's failure streak after these attempts, which must be in the order in which they ended.
    pub(super) fn failure_streak_after<'a>(
        &self,
        before: Option<FailureStreak>,
        attempts: impl Iterator<Item = &'a webhook_client::AttemptResult>,
    ) -> Option<FailureStreak> {
        let at = self.clock.now();
        attempts.fold(before, |before, attempt| {
            match attempt.outcome {
                AttemptOutcome::Delivered => return None,
                // The endpoint refused only this message, which does not show that the endpoint is faulty.
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
            Some(FailureStreak::after(before, failure, &self.circuit))
        })
    }

    /// Returns the delivery after the attempt (delivered, due for a retry, or a dead letter), the kind of its event and
    /// the entry for the log of attempts.
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
        delivery.attempts += 1;
        delivery.next_attempt_at = None;
        // The attempt has ended without a crash, so the delivery did not cause the earlier crashes.
        delivery.crash_history = CrashHistory::default();
        match (
            attempt.outcome,
            self.next_attempt(&delivery, &attempt, endpoint),
        ) {
            (AttemptOutcome::Delivered, _) => delivery.state = DeliveryState::Delivered,
            (AttemptOutcome::Aborted(_), _) | (_, None) => delivery.state = DeliveryState::Dead,
            (_, Some(next)) => delivery.next_attempt_at = Some(next),
        }
        (delivery, kind, log_entry(&attempt, at))
    }

    fn next_attempt(
        &self,
        delivery: &Delivery,
        attempt: &webhook_client::AttemptResult,
        endpoint: &Endpoint,
    ) -> Option<Timestamp> {
        let made = usize::try_from(delivery.schedule_attempts()).unwrap_or(usize::MAX);
        let schedule =
            RetrySchedule::for_endpoint(&self.schedule, endpoint.retry_schedule.as_deref());
        let now = self.clock.now();
        let retry_after = attempt.retry_after.map(|header| header.wait(now));
        let delay = schedule.next(made, retry_after, clock::system_rng().random())?;
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
