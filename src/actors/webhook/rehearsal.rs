//! A test of an endpoint: one notification, signed and sent as any other, whose answer is shown. It is no event
//! of the log and no delivery: it has an id of its own and the number 0, is not repeated, and changes nothing,
//! not even when the endpoint answers 410.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::actors::webhook::courier::Satchel;
use crate::domain::clock;
use crate::domain::delivery::Endpoint;
use crate::domain::event::{Event, EventKind};
use crate::domain::ids::TaxpayerId;
use crate::domain::refusal::Refusal;
use crate::store::failure::StoreError;
use crate::store::webhooks::{self, Recipient};
use crate::webhook::{self, Message, Post, Secret};

/// Why a test was not sent.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the signing secret cannot be used: {0}")]
    Secret(#[from] webhook::SecretFault),
}

impl Satchel {
    /// Sends a test to the endpoint of a taxpayer, whether it is in service or not.
    pub async fn rehearse(&self, taxpayer: TaxpayerId) -> Result<webhook::Attempt, NotSent> {
        let now = self.clock.now();
        let (endpoint, secrets) = self.tested(taxpayer, now).await?;
        let event = test_of(&endpoint, (0, now), Value::Null);
        Ok(self.attempt((&endpoint, &secrets), &event, now, Post::KEPT_FOR_TEST).await)
    }

    /// The endpoint that is tested, in service or not, and what signs for it.
    pub(super) async fn tested(
        &self,
        taxpayer: TaxpayerId,
        now: Timestamp,
    ) -> Result<(Endpoint, Vec<Secret>), NotSent> {
        let found = webhooks::recipient(&self.store, taxpayer, now).await?;
        let Recipient { endpoint, secrets, .. } =
            found.ok_or(NotSent::Refused(Refusal::WebhookNotConfigured))?;
        let secrets = secrets.iter().map(|text| Secret::parse(text)).collect::<Result<Vec<_>, _>>()?;
        Ok((endpoint, secrets))
    }

    /// Makes one attempt to deliver an event, and keeps so many bytes of the answer.
    pub(super) async fn attempt(
        &self,
        (endpoint, secrets): (&Endpoint, &[Secret]),
        event: &Event,
        at: Timestamp,
        keep: usize,
    ) -> webhook::Attempt {
        let (id, body) = (event.id.to_string(), event.notification());
        let message = Message { id: &id, timestamp: at.as_second(), body: body.as_bytes() };
        self.post(endpoint, message, (&message.headers(secrets), keep)).await
    }

    /// Sends a message as it is, with these headers.
    pub(super) async fn post(
        &self,
        endpoint: &Endpoint,
        message: Message<'_>,
        (headers, keep): (&[(&'static str, String)], usize),
    ) -> webhook::Attempt {
        self.client.post(Post { url: &endpoint.url, headers, body: message.body, keep }).await
    }
}

/// A test notification; `said` stands in its data beside what every test says.
pub(super) fn test_of(endpoint: &Endpoint, (sequence, timestamp): (i64, Timestamp), said: Value) -> Event {
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
