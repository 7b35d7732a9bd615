//! The integration record (spec.md, "Webhook / integration record"). What the dashboard configures shows
//! with the value it has until then.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::delivery::Endpoint;
use crate::domain::ids::TaxpayerId;
use crate::domain::object::plain;

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
    erp_system: Option<&'a str>,
    auth_type: &'a str,
    data_format: &'a str,
    created_at: String,
    updated_at: String,
}

impl<'a> From<&'a Endpoint> for Integration<'a> {
    fn from(endpoint: &'a Endpoint) -> Self {
        Self {
            id: endpoint.id,
            taxpayer_id: endpoint.taxpayer_id,
            webhook_url: &endpoint.url,
            enabled_events: &endpoint.enabled_events,
            is_active: endpoint.is_active,
            disabled_reason: endpoint.disabled_reason.as_deref(),
            retry_schedule_s: endpoint.retry_schedule.as_deref(),
            erp_system: None,
            auth_type: "none",
            data_format: "rest",
            created_at: plain(endpoint.created_at),
            updated_at: plain(endpoint.updated_at),
        }
    }
}
