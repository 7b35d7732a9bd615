//! The integration record (spec.md, "Webhook / integration record"). What the dashboard configures shows
//! with the value it has until then.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::circuit::Failing;
use crate::domain::delivery::Endpoint;
use crate::domain::ids::TaxpayerId;
use crate::domain::object::{plain, precise};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Integration<'a> {
    id: i64,
    taxpayer_id: TaxpayerId,
    webhook_url: &'a str,
    enabled_events: &'a [String],
    is_active: bool,
    disabled_reason: Option<&'a str>,
    /// The delay before each attempt; null is the deployment's schedule.
    retry_schedule_s: Option<&'a [u32]>,
    health: HealthView,
    erp_system: Option<&'a str>,
    auth_type: &'a str,
    data_format: &'a str,
    created_at: String,
    updated_at: String,
}

/// How the endpoint fares, and when what waits is tried again where it is parked.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EndpointHealth)]
struct HealthView {
    state: &'static str,
    /// Since the last success.
    failures: u32,
    failing_since: Option<String>,
    parked_until: Option<String>,
}

impl HealthView {
    fn of(failing: Option<&Failing>) -> Self {
        Self {
            state: match failing {
                None => "ok",
                Some(failing) if failing.was_parked() => "parked",
                Some(_) => "failing",
            },
            failures: failing.map_or(0, |failing| failing.failures),
            failing_since: failing.map(|failing| precise(failing.since)),
            parked_until: failing.and_then(|failing| failing.parked_until).map(precise),
        }
    }
}

impl<'a> From<&'a Endpoint> for Integration<'a> {
    /// Of an endpoint that somebody has just put into service.
    fn from(endpoint: &'a Endpoint) -> Self {
        Self::new(endpoint, None)
    }
}

impl<'a> Integration<'a> {
    pub(crate) fn new(endpoint: &'a Endpoint, failing: Option<&Failing>) -> Self {
        Self {
            id: endpoint.id,
            taxpayer_id: endpoint.taxpayer_id,
            webhook_url: &endpoint.url,
            enabled_events: &endpoint.enabled_events,
            is_active: endpoint.is_active,
            disabled_reason: endpoint.disabled_reason.as_deref(),
            retry_schedule_s: endpoint.retry_schedule.as_deref(),
            health: HealthView::of(failing),
            erp_system: None,
            auth_type: "none",
            data_format: "rest",
            created_at: plain(endpoint.created_at),
            updated_at: plain(endpoint.updated_at),
        }
    }
}
