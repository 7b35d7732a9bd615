//! The catalogue of webhook events. It tells the name of each event, when the event is sent, the schema of its message
//! in the API document, and an example.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::events::event::EventKind;
use crate::http::openapi::event_schemas::{
    any_message_schema, event_description, message_schema_name,
};
use crate::http::views::event_example::example_message;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEvent)]
pub(crate) struct WebhookEventView {
    pub(crate) name: EventKind,
    /// The occasion on which the event is sent.
    pub(crate) description: &'static str,
    /// The address of the schema of the event's message, in the API document.
    pub(crate) schema: String,
    #[schema(schema_with = any_message_schema)]
    pub(crate) example: Value,
}

impl From<EventKind> for WebhookEventView {
    fn from(kind: EventKind) -> Self {
        Self {
            name: kind,
            description: event_description(kind),
            schema: format!(
                "/openapi.json#/components/schemas/{}",
                message_schema_name(kind)
            ),
            example: example_message(kind),
        }
    }
}

/// Returns the whole catalogue, in the order of the contract.
pub(crate) fn catalogue() -> Vec<WebhookEventView> {
    let kinds = EventKind::ALL.iter().copied();
    kinds.map(WebhookEventView::from).collect()
}
