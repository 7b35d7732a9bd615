//! The progress of a webhook's replay, and the response to enabling a webhook, which may start a replay.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::replay::{Replay, ReplayScope, ReplayState};
use crate::domain::integration::IntegrationSummary;
use crate::domain::invoice::invoice_view::precise_time;
use crate::http::views::integration::Integration;
use crate::store::webhooks::delivery_selection::SelectedDeliveryCounts;

const DISABLED_REASON: &str = "the webhook is disabled: enable it, or cancel the replay";

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Replay)]
pub(crate) struct ReplayView {
    id: uuid::Uuid,
    /// `default`, or the id of an endpoint that was added.
    endpoint_id: String,
    only: ReplayScope,
    state: ReplayState,
    /// Sequence number of the first event to replay. `until` is the sequence number of the last event to replay.
    since: i64,
    until: i64,
    /// Sequence number of the last event that the replay has examined.
    reached: i64,
    /// Number of deliveries that the replay has queued so far.
    queued: i64,
    /// Number of events that the replay still has to examine.
    remaining: i64,
    /// Share of the events that the replay has examined, in percent from 0 to 100.
    percent: i64,
    /// Reason why an unfinished replay makes no progress; null if the replay makes progress or has ended.
    waits_for: Option<&'static str>,
    created_at: String,
    updated_at: String,
}

impl From<&Replay> for ReplayView {
    fn from(replay: &Replay) -> Self {
        Self {
            id: replay.id,
            endpoint_id: replay.endpoint.name(),
            only: replay.scope,
            state: replay.state,
            since: replay.after.saturating_add(1),
            until: replay.until,
            reached: replay.position,
            queued: replay.queued,
            remaining: replay.remaining_events(),
            percent: replay.percent_done(),
            waits_for: None,
            created_at: precise_time(replay.created_at),
            updated_at: precise_time(replay.updated_at),
        }
    }
}

impl ReplayView {
    /// Creates the view. If the endpoint is disabled, an unfinished replay waits until the endpoint is enabled.
    pub(crate) fn for_endpoint(endpoint: Option<&Endpoint>, replay: &Replay) -> Self {
        let is_held = replay.is_open() && endpoint.is_some_and(|endpoint| !endpoint.is_active);
        Self {
            waits_for: is_held.then_some(DISABLED_REASON),
            ..Self::from(replay)
        }
    }
}

/// The number of deliveries that would be sent again, and the number of those in each state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeliverySelectionPreview)]
pub(crate) struct SelectionPreview {
    deliveries: i64,
    pending: i64,
    delivered: i64,
    dead: i64,
}

impl From<SelectedDeliveryCounts> for SelectionPreview {
    fn from(counts: SelectedDeliveryCounts) -> Self {
        Self {
            deliveries: counts.total(),
            pending: counts.pending,
            delivered: counts.delivered,
            dead: counts.dead,
        }
    }
}

/// The integration record of a webhook that was enabled. `replay` is the replay of missed events; null if none was
/// requested.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Enabled)]
pub(crate) struct EnabledWebhook<'a> {
    #[serde(flatten)]
    integration: Integration<'a>,
    replay: Option<ReplayView>,
}

impl<'a> EnabledWebhook<'a> {
    pub(crate) fn new(
        endpoint: &'a Endpoint,
        integration: &'a IntegrationSummary,
        replay: Option<&Replay>,
    ) -> Self {
        Self {
            integration: Integration::new(endpoint, integration),
            replay: replay.map(ReplayView::from),
        }
    }
}
