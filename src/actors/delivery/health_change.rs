//! The change in an endpoint's health that finished attempts make: its failure streak before and after,
//! and whether the endpoint must be disabled.

use jiff::Timestamp;

use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::in_flight::CompletedAttempt;
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::endpoint_health::FailureStreak;
use crate::domain::integration::origin::Origin;
use crate::domain::notice::{Notice, NoticeKind, NoticeScope};

pub(super) struct HealthChange {
    before: Option<FailureStreak>,
    pub(super) after: Option<FailureStreak>,
    /// True if the endpoint answered 410.
    is_gone: bool,
    /// True if the endpoint has failed for too long.
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
                .filter(|one| one.is_for(endpoint))
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

    pub(super) fn has_changed(&self) -> bool {
        self.after != self.before
    }

    /// True if a parked endpoint has recovered.
    pub(super) fn has_recovered(&self) -> bool {
        self.after.is_none() && self.before.as_ref().is_some_and(FailureStreak::was_parked)
    }

    /// Returns the streak of failures if these attempts parked the endpoint for the first time in it.
    pub(super) fn first_park(&self) -> Option<&FailureStreak> {
        self.after
            .as_ref()
            .filter(|after| after.is_first_park(self.before.as_ref()))
    }

    /// Returns what people are told of the endpoint: that it fails for long, or that it works again after that.
    pub(super) fn notice(&self, endpoint: &Endpoint, now: Timestamp) -> Option<Notice> {
        let (kind, detail) = match self.first_park() {
            Some(streak) => (NoticeKind::EndpointFailing, failure_words(streak)),
            None if self.has_recovered() => (NoticeKind::EndpointWorks, String::new()),
            None => return None,
        };
        let origin = Origin::from_url(&endpoint.url).map(|origin| origin.to_string());
        let notice = Notice::new(NoticeScope::Taxpayer(endpoint.taxpayer_id), kind, now);
        Some(notice.about(&origin.unwrap_or_default(), &detail))
    }

    /// Returns the reason why the endpoint must be disabled; `None` if it stays enabled.
    pub(super) fn reason_to_disable(&self) -> Option<String> {
        if self.is_gone {
            return Some("the endpoint answered 410 Gone".to_owned());
        }
        let streak = self.after.as_ref().filter(|_| self.should_disable)?;
        Some(failure_words(streak))
    }
}

fn failure_words(streak: &FailureStreak) -> String {
    let cause = streak.last_failure.as_deref().unwrap_or("unknown");
    format!(
        "each attempt has failed since {}, the last one with: {}",
        streak.since.strftime("%Y-%m-%d %H:%M:%S UTC"),
        cause.replace('_', " ")
    )
}
