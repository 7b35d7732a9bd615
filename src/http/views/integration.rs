//! The integration record of a taxpayer (spec.md): ERP system, authentication type and data format.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::endpoint_health::{EndpointHealth, FailureStreak};
use crate::domain::integration::{AuthType, DataFormat, IntegrationSummary};
use crate::domain::invoice::invoice_view::{plain_time, precise_time};
use crate::domain::kernel::ids::TaxpayerId;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Integration<'a> {
    id: i64,
    taxpayer_id: TaxpayerId,
    webhook_url: &'a str,
    enabled_events: &'a [String],
    is_active: bool,
    disabled_reason: Option<&'a str>,
    /// Delays before the attempts of a delivery, in seconds; null if the schedule of the deployment applies.
    retry_schedule_s: Option<&'a [u32]>,
    health: HealthView,
    erp_system: Option<&'a str>,
    auth_type: AuthType,
    data_format: DataFormat,
    public_key: Option<&'a str>,
    created_at: String,
    updated_at: String,
}

/// Health of the endpoint. If the endpoint is parked, the next waiting delivery is attempted at `parked_until`, even
/// before its time; if that time has passed, as soon as a delivery waits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookHealth)]
pub(super) struct HealthView {
    state: EndpointHealth,
    /// Number of failed attempts since the last successful one.
    failures: u32,
    failing_since: Option<String>,
    parked_until: Option<String>,
}

impl HealthView {
    pub(super) fn new(endpoint: &Endpoint, streak: Option<&FailureStreak>) -> Self {
        Self {
            state: EndpointHealth::new(endpoint.is_active, streak),
            failures: streak.map_or(0, |streak| streak.failures),
            failing_since: streak.map(|streak| precise_time(streak.since)),
            parked_until: streak
                .and_then(|streak| streak.parked_until)
                .map(precise_time),
        }
    }
}

impl<'a> Integration<'a> {
    /// Creates the record of an endpoint without failures. Call `with_health` to set the actual health.
    pub(crate) fn new(endpoint: &'a Endpoint, integration: &'a IntegrationSummary) -> Self {
        Self {
            id: endpoint.id,
            taxpayer_id: endpoint.taxpayer_id,
            webhook_url: &endpoint.url,
            enabled_events: &endpoint.enabled_events,
            is_active: endpoint.is_active,
            disabled_reason: endpoint.disabled_reason.as_deref(),
            retry_schedule_s: endpoint.retry_schedule.as_deref(),
            health: HealthView::new(endpoint, None),
            erp_system: integration.erp_system.as_deref(),
            auth_type: integration.auth_type,
            data_format: integration.data_format,
            public_key: endpoint.public_key.as_deref(),
            created_at: plain_time(endpoint.created_at),
            updated_at: plain_time(endpoint.updated_at),
        }
    }

    /// Sets the health of the endpoint. `streak` is the current streak of failed attempts, if there is one.
    pub(crate) fn with_health(self, endpoint: &Endpoint, streak: Option<&FailureStreak>) -> Self {
        Self {
            health: HealthView::new(endpoint, streak),
            ..self
        }
    }
}
