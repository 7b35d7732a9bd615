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
    pub(crate) fn new(endpoint: &'a Endpoint, failing: Option<&FailureStreak>) -> Self {
        Self {
            id: endpoint.key.name(),
            url: &endpoint.url,
            enabled_events: &endpoint.enabled_events,
            description: endpoint.description.as_deref(),
            is_active: endpoint.is_active,
            disabled_reason: endpoint.disabled_reason.as_deref(),
            health: HealthView::new(endpoint, failing),
            retry_schedule_s: endpoint.retry_schedule.as_deref(),
            public_key: endpoint.public_key.as_deref(),
            created_at: precise_time(endpoint.created_at),
            updated_at: precise_time(endpoint.updated_at),
        }
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
