//! Tests an endpoint: one notification is signed and sent like any other, and the endpoint's response is shown to the
//! caller. The notification is not in the event log, and no delivery is stored for it. It has an id of its own and
//! sequence 0. It is not retried and changes nothing, even if the endpoint answers 410.

use database::StoreError;
use jiff::Timestamp;
use serde_json::{Value, json};
use timing::clock;
use timing::trace::TraceContext;
use webhook_client::PostRequest;

use crate::actors::delivery::attempt::DeliveryTarget;
use crate::actors::delivery::deps::DeliveryDeps;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::{Event, EventKind};
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;
use crate::store::webhooks;

/// Why a test notification was not sent.
#[derive(Debug, thiserror::Error)]
pub enum TestDeliveryError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("this service was started with --paused: it sends no webhook")]
    Paused,
    #[error("the signing secret cannot be used: {0}")]
    Secret(#[from] webhook_client::SecretFault),
}

impl DeliveryDeps {
    /// Sends a test notification to an endpoint, even if the endpoint is disabled.
    pub async fn send_test_delivery(
        &self,
        endpoint: EndpointKey,
    ) -> Result<webhook_client::AttemptResult, TestDeliveryError> {
        let now = self.clock.now();
        let to = self.test_target(endpoint, now).await?;
        let event = test_event(&to.endpoint, 0, now, Value::Null);
        Ok(self
            .attempt_delivery(&to, &event, now, PostRequest::KEEP_BYTES_FOR_TEST)
            .await)
    }

    /// Returns an endpoint as the target of a test, even if the endpoint is disabled. Fails if the service is paused.
    pub(super) async fn test_target(
        &self,
        endpoint: EndpointKey,
        now: Timestamp,
    ) -> Result<DeliveryTarget, TestDeliveryError> {
        if self.is_paused {
            return Err(TestDeliveryError::Paused);
        }
        let found = webhooks::load_endpoint(&self.store, endpoint, now).await?;
        let found = found.ok_or(TestDeliveryError::Refused(Refusal::WebhookNotConfigured))?;
        Ok(DeliveryTarget::try_from(found)?)
    }
}

/// Returns the event of a test notification. The members of `extra` are added to the data that every test contains.
pub(super) fn test_event(
    endpoint: &Endpoint,
    sequence: i64,
    timestamp: Timestamp,
    extra: Value,
) -> Event {
    let mut data = json!({
        "taxpayer_id": endpoint.taxpayer_id,
        "message": "This is a test notification: nothing has happened.",
    });
    if let (Some(data), Value::Object(extra)) = (data.as_object_mut(), extra) {
        data.extend(extra);
    }
    Event {
        id: clock::new_id(),
        taxpayer_id: endpoint.taxpayer_id,
        sequence,
        kind: EventKind::WebhookTest,
        timestamp,
        irn: None,
        data: data.to_string(),
        actor: None,
        hash: String::new(),
        command_id: clock::new_id(),
        trace: TraceContext::current(),
    }
}
