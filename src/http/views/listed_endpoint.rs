//! A webhook endpoint as operators see it: its owner, its health, and the number of deliveries that it has not
//! received.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::webhooks::endpoint_list;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedEndpoint<'a> {
    taxpayer_id: TaxpayerId,
    /// `default`, or the id of an endpoint that was added.
    endpoint_id: String,
    /// The URL without its query, which may contain a secret.
    url: &'a str,
    health: EndpointHealth,
    /// The start of the streak of failures, or the time at which the endpoint was disabled; null while the endpoint
    /// works.
    since: Option<String>,
    disabled_reason: Option<&'a str>,
    /// Number of failed attempts since the last successful one.
    failures: u32,
    last_failure: Option<&'a str>,
    /// HTTP status of the last failed attempt; null if there was no answer.
    last_status: Option<u16>,
    last_failure_at: Option<String>,
    /// If the endpoint is parked (its deliveries wait, because all attempts failed for some time), the time of the next
    /// trial delivery; null otherwise.
    parked_until: Option<String>,
    pending: i64,
    dead: i64,
}

impl<'a> From<&'a endpoint_list::ListedEndpoint> for ListedEndpoint<'a> {
    fn from(listed: &'a endpoint_list::ListedEndpoint) -> Self {
        let endpoint = &listed.endpoint;
        let streak = listed.streak.as_ref();
        let since = match listed.health {
            EndpointHealth::Disabled => Some(endpoint.updated_at),
            _ => streak.map(|streak| streak.since),
        };
        Self {
            taxpayer_id: endpoint.taxpayer_id,
            endpoint_id: endpoint.key.name(),
            url: endpoint.url.split(['?', '#']).next().unwrap_or_default(),
            health: listed.health,
            since: since.map(precise_time),
            disabled_reason: endpoint.disabled_reason.as_deref(),
            failures: streak.map_or(0, |streak| streak.failures),
            last_failure: streak.and_then(|streak| streak.last_failure.as_deref()),
            last_status: streak.and_then(|streak| streak.last_status),
            last_failure_at: streak.map(|streak| precise_time(streak.last)),
            parked_until: streak
                .and_then(|streak| streak.parked_until)
                .map(precise_time),
            pending: listed.pending,
            dead: listed.dead,
        }
    }
}
