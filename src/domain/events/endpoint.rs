//! A webhook endpoint of a taxpayer, with its settings: the signature of notifications and the schedule of retries.

use jiff::Timestamp;

use crate::domain::events::event::EventKind;
use crate::domain::integration::origin::Origin;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};

words! {
    /// Notifications are signed with a secret shared with the receiver, or with a key pair whose public key the
    /// receiver gets.
    SecretType { Hmac = "hmac", Ed25519 = "ed25519" }
}

/// The maximum number of endpoints that a taxpayer may have in addition to its default endpoint.
pub const ADDED_ENDPOINTS_MAX: usize = 10;

/// A webhook endpoint of a taxpayer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub id: i64,
    pub key: EndpointKey,
    pub taxpayer_id: TaxpayerId,
    pub url: String,
    pub description: Option<String>,
    /// The event names that the caller sent. They may include unknown names, which match no event.
    pub enabled_events: Vec<String>,
    pub is_active: bool,
    pub disabled_reason: Option<String>,
    /// The sequence of the newest event at the time when the endpoint was last disabled. The replay of missed events
    /// starts after it.
    pub disabled_after: Option<i64>,
    /// The public key that verifies signatures made with the newest secret; `None` if this secret is not a key pair.
    pub public_key: Option<String>,
    /// The delay before each attempt, in seconds; `None` means the schedule of the deployment.
    pub retry_schedule: Option<Vec<u32>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A change of an endpoint's retry schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryScheduleChange {
    Keep,
    /// Use the schedule of the deployment again.
    Shared,
    Own(Vec<u32>),
}

impl RetryScheduleChange {
    /// Returns the endpoint's own schedule after the change; `None` means the schedule of the deployment.
    pub fn apply_to(self, before: Option<Vec<u32>>) -> Option<Vec<u32>> {
        match self {
            Self::Keep => before,
            Self::Shared => None,
            Self::Own(delays) => Some(delays),
        }
    }
}

impl Endpoint {
    /// Creates the default endpoint of a taxpayer, active and without any events.
    pub fn new(id: i64, taxpayer_id: TaxpayerId, url: String, now: Timestamp) -> Self {
        Self {
            id,
            key: taxpayer_id.into(),
            taxpayer_id,
            url,
            description: None,
            enabled_events: Vec::new(),
            is_active: true,
            disabled_reason: None,
            disabled_after: None,
            public_key: None,
            retry_schedule: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Creates an endpoint in addition to the default one, active and without any events.
    pub fn new_added_endpoint(
        id: i64,
        taxpayer_id: TaxpayerId,
        url: String,
        now: Timestamp,
    ) -> Self {
        Self {
            key: EndpointKey::for_added_endpoint(id),
            ..Self::new(id, taxpayer_id, url, now)
        }
    }

    /// Returns the name of the endpoint in mails: the origin of its URL, whose path may be a secret. The name of an
    /// added endpoint also contains the id of the endpoint, because several endpoints may have one origin.
    pub fn name_in_mails(&self) -> String {
        let origin = Origin::from_url(&self.url).map(|origin| origin.to_string());
        let origin = origin.unwrap_or_default();
        if self.key.is_default() {
            return origin;
        }
        format!("{origin} (endpoint {})", self.key.name())
    }

    pub fn must_receive(&self, kind: EventKind) -> bool {
        self.is_active && self.has_enabled_kind(kind)
    }

    /// True if the endpoint has enabled events of this kind. It does not matter whether the endpoint is active.
    pub fn has_enabled_kind(&self, kind: EventKind) -> bool {
        self.enabled_events.iter().any(|name| name == kind.as_str())
    }

    /// Returns the kinds of events that the endpoint has enabled. It does not matter whether the endpoint is active.
    pub fn enabled_kinds(&self) -> Vec<EventKind> {
        EventKind::ALL
            .iter()
            .copied()
            .filter(|kind| self.has_enabled_kind(*kind))
            .collect()
    }

    /// Returns the API names of the settings that differ from `before`. For a new endpoint (`None`), returns those that
    /// have a value.
    pub fn changed_fields_since(&self, before: Option<&Self>) -> Vec<&'static str> {
        let before = before.cloned().unwrap_or_else(|| Self {
            url: String::new(),
            description: None,
            enabled_events: Vec::new(),
            retry_schedule: None,
            ..self.clone()
        });
        [
            ("webhook_url", self.url != before.url),
            (
                "enabled_events",
                self.enabled_events != before.enabled_events,
            ),
            (
                "retry_schedule_s",
                self.retry_schedule != before.retry_schedule,
            ),
            ("is_active", self.is_active != before.is_active),
            ("description", self.description != before.description),
        ]
        .into_iter()
        .filter_map(|(name, is_changed)| is_changed.then_some(name))
        .collect()
    }

    /// Makes the endpoint active and clears the reason for which it was disabled.
    #[must_use]
    pub fn enable(self, now: Timestamp) -> Self {
        Self {
            is_active: true,
            disabled_reason: None,
            updated_at: now,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_one_origin_have_different_names_in_mails() {
        let url = "https://mill.example/a-secret-path";
        let at = Timestamp::UNIX_EPOCH;
        let [first, second] =
            [3, 4].map(|id| Endpoint::new_added_endpoint(id, TaxpayerId(7), url.to_owned(), at));
        let default = Endpoint::new(7, TaxpayerId(7), url.to_owned(), at);
        for (endpoint, name) in [
            (default, "https://mill.example"),
            (first, "https://mill.example (endpoint 3)"),
            (second, "https://mill.example (endpoint 4)"),
        ] {
            assert_eq!(endpoint.name_in_mails(), name);
        }
    }
}
