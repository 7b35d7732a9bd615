//! One of a taxpayer's webhook endpoints: the one that Update Webhook sets, whose id is `default`, or one that was
//! added.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::endpoint_health::FailureStreak;
use crate::domain::events::replay::Replay;
use crate::domain::invoice::invoice_view::precise_time;
use crate::http::views::integration::HealthView;
use crate::http::views::replay::ReplayView;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub(crate) struct EndpointView<'a> {
    id: String,
    url: &'a str,
    enabled_events: &'a [String],
    description: Option<&'a str>,
    is_active: bool,
    disabled_reason: Option<&'a str>,
    health: HealthView,
    /// Delays before the attempts of a delivery, in seconds; null if the schedule of the deployment applies.
    retry_schedule_s: Option<&'a [u32]>,
    public_key: Option<&'a str>,
    created_at: String,
    updated_at: String,
}

/// A new endpoint. Only this answer shows its signing secret.
#[derive(Serialize, ToSchema)]
#[schema(as = AddedWebhookEndpoint)]
pub(crate) struct AddedEndpoint<'a> {
    #[serde(flatten)]
    pub(crate) endpoint: EndpointView<'a>,
    pub(crate) secret: &'a str,
}

/// An endpoint that was enabled. `replay` is the replay of missed events; null if none was requested.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EnabledWebhookEndpoint)]
pub(crate) struct EnabledEndpoint<'a> {
    #[serde(flatten)]
    endpoint: EndpointView<'a>,
    replay: Option<ReplayView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeletedWebhookEndpoint)]
pub(crate) struct DeletedEndpoint {
    pub(crate) id: String,
    pub(crate) deleted: bool,
}

impl<'a> EndpointView<'a> {
    pub(crate) fn new(endpoint: &'a Endpoint, streak: Option<&FailureStreak>) -> Self {
        Self {
            id: endpoint.key.name(),
            url: &endpoint.url,
            enabled_events: &endpoint.enabled_events,
            description: endpoint.description.as_deref(),
            is_active: endpoint.is_active,
            disabled_reason: endpoint.disabled_reason.as_deref(),
            health: HealthView::new(endpoint, streak),
            retry_schedule_s: endpoint.retry_schedule.as_deref(),
            public_key: endpoint.public_key.as_deref(),
            created_at: precise_time(endpoint.created_at),
            updated_at: precise_time(endpoint.updated_at),
        }
    }

    /// Creates the view of an endpoint that was just changed. `streak` is its streak of failures before the change. A
    /// change of an active endpoint ends the streak.
    pub(crate) fn after_change(endpoint: &'a Endpoint, streak: Option<&FailureStreak>) -> Self {
        Self::new(endpoint, streak.filter(|_| !endpoint.is_active))
    }
}

impl<'a> EnabledEndpoint<'a> {
    pub(crate) fn new(endpoint: &'a Endpoint, replay: Option<&Replay>) -> Self {
        Self {
            endpoint: EndpointView::new(endpoint, None),
            replay: replay.map(ReplayView::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;

    #[test]
    fn a_change_of_an_active_endpoint_ends_its_failures() {
        let url = "https://erp.example.com/hook".to_owned();
        let endpoint = Endpoint::new(1, TaxpayerId(7), url, Timestamp::UNIX_EPOCH);
        let streak = FailureStreak {
            since: Timestamp::UNIX_EPOCH,
            last: Timestamp::UNIX_EPOCH,
            failures: 500,
            probes: 3,
            parked_until: Some(Timestamp::UNIX_EPOCH),
            last_failure: None,
            last_status: None,
        };
        for (is_active, streak, state, failures) in [
            (true, None, "working", 0),
            (true, Some(&streak), "working", 0),
            (false, Some(&streak), "disabled", 500),
        ] {
            let endpoint = Endpoint {
                is_active,
                ..endpoint.clone()
            };
            let view = EndpointView::after_change(&endpoint, streak);
            let health = serde_json::to_value(view).unwrap()["health"].clone();
            assert_eq!(
                (&health["state"], &health["failures"]),
                (&json!(state), &json!(failures)),
                "{health}"
            );
        }
    }
}
