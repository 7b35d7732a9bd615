//! The views of a webhook delivery and of its attempts. Only the list of attempts (`FullAttemptView`) shows the headers
//! of an attempt. A dead letter also says why its last attempt failed and what to do.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::events::delivery::{DeliveryAttempt, DeliveryState, PhaseDurations};
use crate::domain::events::event::EventKind;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::{EventId, TaxpayerId};
use crate::http::views::guidance::Guidance;
use crate::store::webhooks::delivery_log::LoggedDelivery;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(crate) struct DeliveryView<'a> {
    id: uuid::Uuid,
    #[schema(value_type = uuid::Uuid)]
    event_id: EventId,
    r#type: EventKind,
    irn: Option<&'a str>,
    state: DeliveryState,
    next_attempt_at: Option<String>,
    attempts: Vec<AttemptView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
struct AttemptView<'a> {
    at: String,
    status: Option<u16>,
    failure: Option<&'a str>,
    duration_ms: i64,
    phases: PhasesView,
    response: &'a str,
}

/// An attempt with its headers. The headers are null if they were not stored: attempts from before headers were stored
/// have none, nor has an attempt during which the service crashed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeliveryAttempt)]
pub(crate) struct FullAttemptView<'a> {
    #[serde(flatten)]
    attempt: AttemptView<'a>,
    request_headers: Option<Vec<HeaderView<'a>>>,
    response_headers: Option<Vec<HeaderView<'a>>>,
}

/// A header of a request or response. The value of a secret is shown as `(hidden)`, and a signature by its first
/// characters.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoggedHeader)]
struct HeaderView<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PhaseDurations)]
#[expect(
    clippy::struct_field_names,
    reason = "a unit stands in the name of each field of the interface"
)]
struct PhasesView {
    dns_ms: Option<i64>,
    connect_ms: Option<i64>,
    wait_ms: Option<i64>,
    read_ms: Option<i64>,
}

impl<'a> From<&'a LoggedDelivery> for DeliveryView<'a> {
    fn from(logged: &'a LoggedDelivery) -> Self {
        let delivery = &logged.delivery;
        Self {
            id: delivery.id,
            event_id: delivery.event_id,
            r#type: logged.kind,
            irn: delivery.irn(),
            state: delivery.state,
            next_attempt_at: delivery.next_attempt_at.map(precise_time),
            attempts: logged.attempts.iter().map(AttemptView::from).collect(),
        }
    }
}

impl<'a> From<&'a DeliveryAttempt> for AttemptView<'a> {
    fn from(attempt: &'a DeliveryAttempt) -> Self {
        Self {
            at: precise_time(attempt.at),
            status: attempt.status,
            failure: attempt.failure.as_deref(),
            duration_ms: attempt.duration_ms,
            phases: PhasesView::from(attempt.phases),
            response: &attempt.response,
        }
    }
}

impl<'a> From<&'a DeliveryAttempt> for FullAttemptView<'a> {
    fn from(attempt: &'a DeliveryAttempt) -> Self {
        let headers = attempt.headers.as_ref();
        Self {
            attempt: attempt.into(),
            request_headers: headers.map(|headers| header_views(&headers.request)),
            response_headers: headers.map(|headers| header_views(&headers.response)),
        }
    }
}

fn header_views(headers: &[(String, String)]) -> Vec<HeaderView<'_>> {
    headers
        .iter()
        .map(|(name, value)| HeaderView { name, value })
        .collect()
}

impl From<PhaseDurations> for PhasesView {
    fn from(phases: PhaseDurations) -> Self {
        let PhaseDurations {
            dns_ms,
            connect_ms,
            wait_ms,
            read_ms,
        } = phases;
        Self {
            dns_ms,
            connect_ms,
            wait_ms,
            read_ms,
        }
    }
}

/// A link to a delivery. Everybody who has the link can see the delivery until the link expires.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeliveryLink)]
pub(crate) struct DeliveryLinkView {
    pub(crate) url: String,
    pub(crate) expires_at: String,
}

/// A delivery that has failed for good, with advice for the taxpayer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetter<'a> {
    taxpayer_id: TaxpayerId,
    /// `default`, or the id of an endpoint that was added.
    endpoint_id: String,
    #[serde(flatten)]
    delivery: DeliveryView<'a>,
    /// Explains in one sentence why the last attempt failed.
    why: String,
    what_to_do: &'static str,
}

impl<'a> From<&'a LoggedDelivery> for DeadLetter<'a> {
    fn from(logged: &'a LoggedDelivery) -> Self {
        let last = logged.attempts.last();
        let failure = last.and_then(|attempt| attempt.failure.as_deref());
        let Guidance { why, what_to_do } =
            Guidance::for_failure(failure, last.and_then(|attempt| attempt.status));
        let delivery = DeliveryView::from(logged);
        Self {
            taxpayer_id: logged.delivery.taxpayer_id,
            endpoint_id: logged.delivery.endpoint.name(),
            delivery,
            why,
            what_to_do,
        }
    }
}
