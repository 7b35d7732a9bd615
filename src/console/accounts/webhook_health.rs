//! The health of a webhook endpoint, in words.

use jiff::Timestamp;

use crate::console::badges::Badge;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::endpoint_health::FailureStreak;

pub(super) struct WebhookHealth {
    pub(super) badge: Badge,
    pub(super) note: String,
    /// The time of the next attempt, if deliveries are paused because all attempts fail and this time is still to come;
    /// else `None`.
    pub(super) next_attempt: Option<Timestamp>,
}

impl WebhookHealth {
    pub(super) fn from_endpoint(
        endpoint: Option<&Endpoint>,
        streak: Option<&FailureStreak>,
    ) -> Self {
        let health = |class, text, note: &str| Self {
            badge: Badge { class, text },
            note: note.to_owned(),
            next_attempt: None,
        };
        let Some(endpoint) = endpoint else {
            return health(
                "idle",
                "Not set up",
                "Nothing is sent before there is an address.",
            );
        };
        if !endpoint.is_active {
            let reason = endpoint
                .disabled_reason
                .as_deref()
                .unwrap_or("It was disabled.");
            return health("bad", "Disabled", reason);
        }
        let Some(streak) = streak else {
            return health(
                "ok",
                "Healthy",
                "The last attempt succeeded, or none was made since it was set up or enabled.",
            );
        };
        let failures = format!("{} attempts in a row failed.", streak.failures);
        match streak.parked_until {
            None => health("warn", "Failing", &failures),
            Some(until) => {
                let note = format!("{failures} Deliveries wait until one succeeds.");
                Self {
                    next_attempt: Some(until),
                    ..health("bad", "Paused", &note)
                }
            }
        }
    }

    /// Leaves out the time of the next attempt if it has passed: then the next attempt is made at once, or as soon as
    /// there is something to send.
    pub(super) fn without_past_time(self, now: Timestamp) -> Self {
        Self {
            next_attempt: self.next_attempt.filter(|until| *until > now),
            ..self
        }
    }

    /// Says of an endpoint without failures that it is idle, unless attempts were made in the last 24 hours.
    pub(super) fn with_last_day(self, has_attempts: bool) -> Self {
        if has_attempts || self.badge.class != "ok" {
            return self;
        }
        Self {
            badge: Badge {
                class: "idle",
                text: "Idle",
            },
            note: "No event was sent in the last 24 hours.".to_owned(),
            next_attempt: None,
        }
    }

    /// True if deliveries do not arrive.
    pub(super) fn is_failing(&self) -> bool {
        ["bad", "warn"].contains(&self.badge.class)
    }

    /// Returns a number that is higher for a worse health.
    pub(super) fn severity(&self) -> u8 {
        match self.badge.class {
            "bad" => 3,
            "warn" => 2,
            "ok" => 1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_only_fails_says_until_when() {
        let at = Timestamp::UNIX_EPOCH;
        let streak = FailureStreak {
            since: at,
            last: at,
            failures: 7,
            probes: 1,
            parked_until: Some(at),
            last_failure: None,
            last_status: None,
        };
        let owner = crate::domain::kernel::ids::TaxpayerId(1);
        let endpoint = Endpoint::new(1, owner, "https://example.com".into(), at);
        let parked = WebhookHealth::from_endpoint(Some(&endpoint), Some(&streak));
        assert_eq!(
            (parked.badge.text, parked.next_attempt),
            ("Paused", Some(at))
        );
        assert_eq!(
            parked.note,
            "7 attempts in a row failed. Deliveries wait until one succeeds."
        );
        let second = |second| Timestamp::from_second(second).unwrap();
        for (now, until) in [(second(-1), Some(at)), (at, None), (second(1), None)] {
            let parked = WebhookHealth::from_endpoint(Some(&endpoint), Some(&streak));
            assert_eq!(
                parked.without_past_time(now).next_attempt,
                until,
                "at {now}"
            );
        }
        assert_eq!(
            WebhookHealth::from_endpoint(Some(&endpoint), None)
                .badge
                .text,
            "Healthy"
        );
        for (streak, has_attempts, badge) in [
            (None, false, "Idle"),
            (None, true, "Healthy"),
            (Some(&streak), false, "Paused"),
            (Some(&streak), true, "Paused"),
        ] {
            let health = WebhookHealth::from_endpoint(Some(&endpoint), streak);
            let shown = health.with_last_day(has_attempts);
            assert_eq!(shown.badge.text, badge, "{has_attempts}");
        }
        assert_eq!(
            WebhookHealth::from_endpoint(None, None).badge.text,
            "Not set up"
        );
        let disabled = Endpoint {
            is_active: false,
            disabled_reason: Some("410".into()),
            ..endpoint
        };
        assert_eq!(
            WebhookHealth::from_endpoint(Some(&disabled), None).note,
            "410"
        );
    }
}
