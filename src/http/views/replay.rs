//! How far a replay has come, and a webhook that was enabled with one.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::events::delivery::Endpoint;
use crate::domain::events::replay::{Replay, ReplayScope, ReplayState};
use crate::domain::integration::IntegrationSummary;
use crate::domain::invoice::invoice_view::precise;
use crate::http::views::integration::Integration;

const DISABLED: &str = "the webhook is disabled: enable it, or cancel the replay";

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Replay)]
pub(crate) struct ReplayView {
    id: uuid::Uuid,
    only: ReplayScope,
    state: ReplayState,
    /// The first event of the range and the last.
    since: i64,
    until: i64,
    /// The last event that was looked at.
    reached: i64,
    /// Deliveries queued again so far.
    queued: i64,
    /// Events that are left to look at.
    remaining: i64,
    /// How much was looked at, from 0 to 100.
    percent: i64,
    /// What a replay under way waits for, if it does.
    waits_for: Option<&'static str>,
    created_at: String,
    updated_at: String,
}

impl From<&Replay> for ReplayView {
    fn from(replay: &Replay) -> Self {
        Self {
            id: replay.id,
            only: replay.scope,
            state: replay.state,
            since: replay.after.saturating_add(1),
            until: replay.until,
            reached: replay.reached,
            queued: replay.queued,
            remaining: replay.remaining(),
            percent: replay.percent(),
            waits_for: None,
            created_at: precise(replay.created_at),
            updated_at: precise(replay.updated_at),
        }
    }
}

impl ReplayView {
    /// Beside the endpoint as it is now.
    pub(crate) fn at(endpoint: Option<&Endpoint>, replay: &Replay) -> Self {
        let is_held = replay.is_open() && endpoint.is_some_and(|endpoint| !endpoint.is_active);
        Self { waits_for: is_held.then_some(DISABLED), ..Self::from(replay) }
    }
}

/// The integration record of a webhook back in service, and what is replayed to it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Enabled<'a> {
    #[serde(flatten)]
    integration: Integration<'a>,
    replay: Option<ReplayView>,
}

impl<'a> Enabled<'a> {
    pub(crate) fn new(
        endpoint: &'a Endpoint,
        kinds: &'a IntegrationSummary,
        replay: Option<&Replay>,
    ) -> Self {
        Self { integration: Integration::new(endpoint, kinds), replay: replay.map(ReplayView::from) }
    }
}
