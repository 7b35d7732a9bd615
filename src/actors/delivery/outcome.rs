//! What follows from attempts: for the delivery, for the endpoint, and for the log.

use std::time::Duration;

use jiff::Timestamp;
use rand::RngExt;

use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::delivery::in_flight::CompletedAttempt;
use crate::domain::events::delivery::{Delivery, DeliveryAttempt, DeliveryState, Endpoint, PhaseDurations};
use crate::domain::events::endpoint_health::{self, FailureStreak};
use crate::domain::events::event::EventKind;
use crate::domain::kernel::clock;
use crate::webhook::{self, Outcome, Schedule};

impl DeliveryDeps {
    /// How the endpoint fares after these attempts, in the order in which they ended.
    pub(super) fn failure_streak_after<'a>(
        &self,
        before: Option<FailureStreak>,
        attempts: impl Iterator<Item = &'a webhook::Attempt>,
    ) -> Option<FailureStreak> {
        let at = self.clock.now();
        attempts.fold(before, |before, attempt| {
            match attempt.outcome {
                Outcome::Delivered => return None,
                // It is well, and does not want this one.
                Outcome::Aborted(_) => return before,
                _ => {}
            }
            let jitter = clock::chance().random();
            let asked = attempt.retry_after.map(|asked| asked.wait(at));
            let failure = endpoint_health::EndpointFailure { at, asked, jitter };
            Some(FailureStreak::after(before, failure, &self.circuit))
        })
    }

    /// The delivery after an attempt: delivered, to be tried again, or a dead letter; and what is logged of it.
    pub(super) fn outcome(
        &self,
        completed: CompletedAttempt,
        endpoint: &Endpoint,
    ) -> (Delivery, EventKind, DeliveryAttempt) {
        let CompletedAttempt { mut delivery, kind, attempt, at, .. } = completed;
        delivery.attempts += 1;
        delivery.next_attempt_at = None;
        match (attempt.outcome, self.next_attempt(&delivery, &attempt, endpoint)) {
            (Outcome::Delivered, _) => delivery.state = DeliveryState::Delivered,
            (Outcome::Aborted(_), _) | (_, None) => delivery.state = DeliveryState::Dead,
            (_, Some(next)) => delivery.next_attempt_at = Some(next),
        }
        (delivery, kind, logged(&attempt, at))
    }

    fn next_attempt(
        &self,
        delivery: &Delivery,
        attempt: &webhook::Attempt,
        endpoint: &Endpoint,
    ) -> Option<Timestamp> {
        let made = usize::try_from(delivery.attempts_of_schedule()).unwrap_or(usize::MAX);
        let schedule = Schedule::or_own(&self.schedule, endpoint.retry_schedule.as_deref());
        let now = self.clock.now();
        let asked = attempt.retry_after.map(|asked| asked.wait(now));
        let delay = schedule.next(made, asked, clock::chance().random())?;
        Some(now.saturating_add(delay).unwrap_or(Timestamp::MAX))
    }
}

fn logged(attempt: &webhook::Attempt, at: Timestamp) -> DeliveryAttempt {
    DeliveryAttempt {
        at,
        status: attempt.status,
        failure: (!attempt.is_delivered()).then(|| attempt.outcome.name().to_owned()),
        duration_ms: i64::try_from(attempt.duration.as_millis()).unwrap_or(i64::MAX),
        phases: phases(attempt.phases),
        response: attempt.response_head.replace('\0', " "),
    }
}

fn phases(phases: webhook::Phases) -> PhaseDurations {
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    PhaseDurations {
        dns_ms: phases.dns.map(millis),
        connect_ms: phases.connect.map(millis),
        wait_ms: phases.wait.map(millis),
        read_ms: phases.read.map(millis),
    }
}
