//! The catalogue of webhook events: of each its name, when it is sent, its schema in the API document and an example.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::events::event::EventKind;
use crate::http::openapi::event_schemas::{any_message, event_schema_name};
use crate::http::views::event_example::example_message;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEvent)]
pub(crate) struct WebhookEventView {
    pub(crate) name: EventKind,
    /// When it is sent.
    pub(crate) description: &'static str,
    /// The address of the schema of its message, in the API document.
    pub(crate) schema: String,
    #[schema(schema_with = any_message)]
    pub(crate) example: Value,
}

impl From<EventKind> for WebhookEventView {
    fn from(kind: EventKind) -> Self {
        Self {
            name: kind,
            description: describe(kind),
            schema: format!(
                "/openapi.json#/components/schemas/{}",
                event_schema_name(kind)
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

fn describe(kind: EventKind) -> &'static str {
    match kind {
        EventKind::InvoiceCreated => {
            "An invoice was created, by a call, a batch, an import or a correction. Sending the same invoice again sends no event."
        }
        EventKind::InvoiceUpdated => "The content of an invoice was changed.",
        EventKind::InvoiceStatusUpdated => {
            "The status of an invoice changed: by a person, by a payment that settles it, or by each step with the authority."
        }
        EventKind::InvoiceValidated => {
            "The authority found an invoice valid. It is not signed yet."
        }
        EventKind::InvoiceSubmitted => "The authority signed an invoice.",
        EventKind::InvoiceTransmitted => "A signed invoice was transmitted to the customer.",
        EventKind::InvoiceAcknowledged => {
            "The customer's receipt of an invoice was confirmed. It is sent once for each IRN."
        }
        EventKind::InvoiceReported => "An invoice was reported to the authority.",
        EventKind::InvoiceRejected => {
            "The authority rejected an invoice. The error says why; correct the invoice and submit it again."
        }
        EventKind::InvoiceFailed => {
            "An operation on an invoice has failed too often. An operator looks at it; nothing needs to be sent again."
        }
        EventKind::InvoiceBatchCompleted => {
            "All invoices of a batch or of an imported file were processed. It follows the events of its invoices."
        }
        EventKind::PaymentStatusUpdated => "A payment of an invoice was recorded or relayed.",
        EventKind::SupplierInvoiceReceived => "An invoice of a supplier arrived in the inbox.",
        EventKind::SupplierInvoiceAcknowledged => "An invoice of a supplier was acknowledged.",
        EventKind::ApiKeyRotated => {
            "An API key of the taxpayer was created or replaced. It never shows the key."
        }
        EventKind::TaxpayerVerified => {
            "The business was verified after it was in doubt or awaited."
        }
        EventKind::TaxpayerUnverified => "The authority does not confirm the business.",
        EventKind::AuthorityOutageStarted => {
            "Calls to the authority began to fail for everybody. What you send is queued and goes on by itself."
        }
        EventKind::AuthorityOutageEnded => "The authority answers again after an outage.",
        EventKind::WebhookUpdated => {
            "An endpoint was added, changed or deleted, or a signing secret or an integration was changed. It shows no secret."
        }
        EventKind::WebhookTest => {
            "A test was asked for. It is sent without being enabled, is in no log, and its sequence is 0."
        }
    }
}
