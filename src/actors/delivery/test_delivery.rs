//! A test of an endpoint: one notification, signed and sent like any other, whose response is shown. It is neither a
//! logged event nor a delivery: it has its own id and sequence 0, is not retried, and changes nothing, not even after a
//! 410.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::delivery::attempt::DeliveryTarget;
use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::event::{Event, EventKind};
use crate::domain::kernel::clock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::store::db::error::StoreError;
use crate::store::webhooks;
use crate::webhook::{self, PostRequest};

/// Why a test was not sent.
#[derive(Debug, thiserror::Error)]
pub enum TestDeliveryError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the signing secret cannot be used: {0}")]
    Secret(#[from] webhook::SecretFault),
}

impl DeliveryDeps {
    /// Sends a test to a taxpayer's endpoint, even a disabled one.
    pub async fn send_test_delivery(
        &self,
        taxpayer: TaxpayerId,
    ) -> Result<webhook::AttemptResult, TestDeliveryError> {
        let now = self.clock.now();
        let to = self.test_target(taxpayer, now).await?;
        let event = test_event(&to.endpoint, 0, now, Value::Null);
        Ok(self.attempt(&to, &event, now, PostRequest::KEPT_FOR_TEST).await)
    }

    /// The endpoint to test, even a disabled one.
    pub(super) async fn test_target(
        &self,
        taxpayer: TaxpayerId,
        now: Timestamp,
    ) -> Result<DeliveryTarget, TestDeliveryError> {
        let found = webhooks::recipient(&self.store, taxpayer, now).await?;
        let found = found.ok_or(TestDeliveryError::Refused(Refusal::WebhookNotConfigured))?;
        Ok(DeliveryTarget::try_from(found)?)
    }
}

/// A test notification. `extra` is merged into the data that every test has.
pub(super) fn test_event(endpoint: &Endpoint, sequence: i64, timestamp: Timestamp, extra: Value) -> Event {
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
        hash: String::new(),
        command_id: clock::new_id(),
    }
}
