//! The numbers that operators look at first: runs, deadlines, deliveries and endpoints of all taxpayers.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::pipeline::{RunState, WaitReason};
use crate::store::runs::unfinished::UnfinishedRuns;

/// Counts from the database. They may be a few seconds old.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Overview {
    pub(crate) counted_at: String,
    /// The runs that have not ended, grouped by state and reason for waiting. A group without runs is absent.
    pub(crate) runs: Vec<RunGroup>,
    pub(crate) deadlines: DeadlineCounts,
    pub(crate) deliveries: DeliveryCounts,
    pub(crate) endpoints: Vec<EndpointGroup>,
    /// True while an outage of the authority is recorded, no matter which replica detected it.
    pub(crate) is_outage: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunGroup {
    pub(crate) state: RunState,
    pub(crate) wait_reason: Option<WaitReason>,
    pub(crate) runs: i64,
    /// Age of the oldest run of the group, in whole seconds.
    pub(crate) oldest_age_s: i64,
}

/// Numbers of submissions that have not ended: `overdue` counts those whose deadline has passed, `soon` those whose
/// deadline is within the next hour. A submission that was late from the beginning counts once its run is a minute old,
/// or paused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Deadlines)]
pub(crate) struct DeadlineCounts {
    pub(crate) overdue: i64,
    pub(crate) soon: i64,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Undelivered)]
pub(crate) struct DeliveryCounts {
    pub(crate) pending: i64,
    pub(crate) dead: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndpointGroup {
    pub(crate) health: EndpointHealth,
    pub(crate) endpoints: i64,
}

impl RunGroup {
    pub(crate) fn new(group: &UnfinishedRuns, now: Timestamp) -> Self {
        let UnfinishedRuns {
            state,
            wait_reason,
            runs,
            oldest,
            ..
        } = group;
        let oldest_age_s = now.duration_since(*oldest).as_secs().max(0);
        Self {
            state: *state,
            wait_reason: *wait_reason,
            runs: *runs,
            oldest_age_s,
        }
    }
}
