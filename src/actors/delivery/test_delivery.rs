//! A test of an endpoint: one notification, signed and sent as any other, whose answer is shown. It is no event
//! of the log and no delivery: it has an id of its own and the number 0, is not repeated, and changes nothing,
//! not even when the endpoint answers 410.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::delivery::target::DeliveryTarget;
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::event::{Event, EventKind};
use crate::domain::kernel::clock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::store::db::error::StoreError;
use crate::store::webhooks;
use crate::webhook::{self, Post};

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
    /// Sends a test to the endpoint of a taxpayer, whether it is in service or not.
    pub async fn send_test_delivery(
        &self,
        taxpayer: TaxpayerId,
    ) -> Result<webhook::Attempt, TestDeliveryError> {
        let now = self.clock.now();
        let to = self.tested(taxpayer, now).await?;
        let event = test_event(&to.endpoint, (0, now), Value::Null);
        Ok(self.attempt(&to, &event, now, Post::KEPT_FOR_TEST).await)
    }

    /// The endpoint that is tested, in service or not.
    pub(super) async fn tested(
        &self,
        taxpayer: TaxpayerId,
        now: Timestamp,
    ) -> Result<DeliveryTarget, TestDeliveryError> {
        let found = webhooks::recipient(&self.store, taxpayer, now).await?;
        let found = found.ok_or(TestDeliveryError::Refused(Refusal::WebhookNotConfigured))?;
        Ok(DeliveryTarget::try_from(found)?)
    }
}

/// A test notification; `said` stands in its data beside what every test says.
pub(super) fn test_event(endpoint: &Endpoint, (sequence, timestamp): (i64, Timestamp), said: Value) -> Event {
    let mut data = json!({
        "taxpayer_id": endpoint.taxpayer_id,
        "message": "This is a test notification: nothing has happened.",
    });
    if let (Some(data), Value::Object(said)) = (data.as_object_mut(), said) {
        data.extend(said);
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
