//! The schemas of webhook messages and of feed events. Each kind of event has a schema for its message and one for its
//! feed event, which share the schema of `data`. The catalogue of events refers to the schemas of messages.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, Discriminator, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::events::event::EventKind;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::kernel::audit::ActorKind;
use crate::domain::kernel::codes::{PaymentStatus, WorkflowStatus};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::money::Amount;
use crate::domain::party::verification::VerificationStatus;
use crate::domain::pipeline::Operation;
use crate::http::openapi::schema::component;

/// The name of the schema of the actor in an answer.
const ACTOR_NAME: &str = "Actor";
/// The name of the schema of an event of the feed, whatever its kind.
const LOGGED_EVENT_NAME: &str = "Event";

/// Returns the name of the schema of a message: `EventInvoiceCreated` for `invoice.created`.
pub(crate) fn message_schema_name(kind: EventKind) -> String {
    format!("Event{}", capitalized_words(kind))
}

/// Returns the name of the schema of an event of the feed: `LoggedInvoiceCreated` for `invoice.created`.
fn logged_schema_name(kind: EventKind) -> String {
    format!("Logged{}", capitalized_words(kind))
}

fn capitalized_words(kind: EventKind) -> String {
    let words = kind.as_str().split(['.', '-']);
    let capitalized = words.map(|word| {
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_uppercase())
    });
    capitalized.collect()
}

/// Returns the name of the schema of the `data` of an event. Kinds whose data have the same fields share it.
fn data_schema_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::InvoiceCreated
        | EventKind::InvoiceUpdated
        | EventKind::InvoiceValidated
        | EventKind::InvoiceTransmitted
        | EventKind::InvoiceReported
        | EventKind::InvoiceAcknowledged => "EventInvoiceData",
        EventKind::InvoiceStatusUpdated => "EventInvoiceStatusData",
        EventKind::InvoiceSubmitted => "EventInvoiceSubmittedData",
        EventKind::InvoiceRejected | EventKind::InvoiceFailed => "EventInvoiceErrorData",
        EventKind::InvoiceBatchCompleted => "EventBatchData",
        EventKind::PaymentStatusUpdated => "EventPaymentData",
        EventKind::SupplierInvoiceReceived => "EventSupplierInvoiceReceivedData",
        EventKind::SupplierInvoiceAcknowledged => "EventSupplierInvoiceAcknowledgedData",
        EventKind::ApiKeyRotated => "EventTaxpayerData",
        EventKind::TaxpayerVerified | EventKind::TaxpayerUnverified => "EventVerificationData",
        EventKind::AuthorityOutageStarted => "EventOutageStartedData",
        EventKind::AuthorityOutageEnded => "EventOutageEndedData",
        EventKind::WebhookUpdated => "EventWebhookUpdatedData",
        EventKind::WebhookTest => "EventWebhookTestData",
    }
}

/// Returns the description of an event: the occasion on which it is sent.
pub(crate) fn event_description(kind: EventKind) -> &'static str {
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
            "The customer's receipt of an invoice was confirmed. This event is sent once for each IRN."
        }
        EventKind::InvoiceReported => "An invoice was reported to the authority.",
        EventKind::InvoiceRejected => {
            "The authority rejected an invoice. `error` has the authority's message, and the run of the invoice explains it. Correct the invoice and submit it again."
        }
        EventKind::InvoiceFailed => {
            "An operation on an invoice has failed too often. An operator looks at it; nothing needs to be sent again."
        }
        EventKind::InvoiceBatchCompleted => {
            "All invoices of a batch or of an imported file were processed, or the import was cancelled: then `cancelled` is true, and the counts are those of the part that was imported. This event is sent after the events of these invoices."
        }
        EventKind::PaymentStatusUpdated => {
            "A payment of an invoice was recorded, taken back or relayed."
        }
        EventKind::SupplierInvoiceReceived => "An invoice of a supplier arrived in the inbox.",
        EventKind::SupplierInvoiceAcknowledged => "An invoice of a supplier was acknowledged.",
        EventKind::ApiKeyRotated => {
            "An API key of the taxpayer was created or replaced. The event never contains the key."
        }
        EventKind::TaxpayerVerified => {
            "The business was verified. Before, its verification was pending or had failed."
        }
        EventKind::TaxpayerUnverified => "The authority does not confirm the business.",
        EventKind::AuthorityOutageStarted => {
            "Calls to the authority began to fail for everybody. What you send is queued and goes on by itself."
        }
        EventKind::AuthorityOutageEnded => "The authority answers again after an outage.",
        EventKind::WebhookUpdated => {
            "An endpoint was added, changed or deleted, or a signing secret or an integration was changed. The event contains no secret."
        }
        EventKind::WebhookTest => {
            "A test message was requested. It is sent even if the event is not enabled, it is not stored in the log, and its sequence is 0."
        }
    }
}

/// Returns the schemas of the messages and of the feed for all kinds of events, and the schemas of the domain's types
/// that no other schema refers to.
pub(crate) fn event_schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = vec![
        (ActorKind::name().into_owned(), ActorKind::schema()),
        (Operation::name().into_owned(), Operation::schema()),
        (
            VerificationStatus::name().into_owned(),
            VerificationStatus::schema(),
        ),
    ];
    InvoiceObject::schemas(&mut schemas);
    let invoice = InvoiceObject::schema();
    schemas.push((InvoiceObject::name().into_owned(), invoice));
    schemas.push((TaxpayerId::name().into_owned(), TaxpayerId::schema()));
    for kind in EventKind::ALL.iter().copied() {
        let data = event_data_fields(kind).0;
        schemas.push((data_schema_name(kind).to_owned(), data.into()));
        schemas.push((message_schema_name(kind), message_schema(kind)));
    }
    schemas.extend(logged_kinds().map(|kind| (logged_schema_name(kind), logged_schema(kind))));
    let any_logged = choice_by_type(logged_kinds().map(|kind| (kind, logged_schema_name(kind))));
    schemas.push((LOGGED_EVENT_NAME.to_owned(), any_logged.into()));
    schemas
}

/// Returns the kinds of events that are in the log. A test message is no event of a log.
fn logged_kinds() -> impl Iterator<Item = EventKind> {
    let kinds = EventKind::ALL.iter().copied();
    kinds.filter(|kind| *kind != EventKind::WebhookTest)
}

/// Returns the schema of a message of any kind.
pub(crate) fn any_message_schema() -> Schema {
    let kinds = EventKind::ALL.iter().copied();
    choice_by_type(kinds.map(|kind| (kind, message_schema_name(kind))))
}

/// Returns the schema of the events on a page of the feed.
pub(crate) fn logged_events_schema() -> Schema {
    ArrayBuilder::new()
        .items(component(LOGGED_EVENT_NAME))
        .build()
        .into()
}

/// Returns the choice between the schemas with these names. The member `type`, which is the kind of event, decides.
fn choice_by_type(names: impl Iterator<Item = (EventKind, String)>) -> Schema {
    let mut discriminator = Discriminator::new("type");
    let mut one_of = OneOfBuilder::new();
    for (kind, name) in names {
        let target = format!("#/components/schemas/{name}");
        discriminator
            .mapping
            .insert(kind.as_str().to_owned(), target);
        one_of = one_of.item(component(&name));
    }
    one_of.discriminator(Some(discriminator)).build().into()
}

/// Returns the schema of an event of this kind in the feed.
fn logged_schema(kind: EventKind) -> RefOr<Schema> {
    let uuid = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
    let null = ObjectBuilder::new().schema_type(Type::Null);
    let actor = OneOfBuilder::new()
        .item(component(ACTOR_NAME))
        .item(null)
        .description(Some(
            "The actor behind the event; null for old events, for which none was stored.",
        ));
    SchemaFields::default()
        .with_required("id", uuid)
        .with_required("type", text().enum_values(Some([kind.as_str()])))
        .with_required("sequence", whole_number())
        .with_required("timestamp", text())
        .with_required("irn", text_or_null())
        .with_required("actor", actor)
        .with_required("data", component(data_schema_name(kind)))
        .with_required("hash", text())
        .0
        .description(Some(event_description(kind)))
        .into()
}

fn message_schema(kind: EventKind) -> RefOr<Schema> {
    let actor = SchemaFields::default()
        .with_required("kind", component(&ActorKind::name()))
        .with_required("id", text_or_null())
        .with_required("name", text_or_null());
    let uuid = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
    let name = text().enum_values(Some([kind.as_str()]));
    let sequence_note = "the position in the taxpayer's log; 0 for a test";
    let actor_note =
        "the actor behind the event; absent in tests, and in old events, for which none was stored";
    let hash_note = "SHA-256 over the previous hash and the event; absent in tests";
    SchemaFields::default()
        .with_required("id", uuid.description(Some("the same for every attempt")))
        .with_required("type", name)
        .with_required("timestamp", moment())
        .with_required("sequence", whole_number().description(Some(sequence_note)))
        .with_required("taxpayer_id", component(&TaxpayerId::name()))
        .with_optional("hash", text().description(Some(hash_note)))
        .with_optional("actor", actor.0.description(Some(actor_note)))
        .with_required("data", component(data_schema_name(kind)))
        .0
        .description(Some(event_description(kind)))
        .into()
}

fn event_data_fields(kind: EventKind) -> SchemaFields {
    match kind {
        EventKind::InvoiceCreated
        | EventKind::InvoiceUpdated
        | EventKind::InvoiceValidated
        | EventKind::InvoiceTransmitted
        | EventKind::InvoiceReported
        | EventKind::InvoiceAcknowledged => invoice_fields(),
        EventKind::InvoiceStatusUpdated => invoice_fields()
            .with_optional("remark", text_or_null())
            .with_optional("not_submitted", text()),
        EventKind::InvoiceSubmitted => {
            let difference = SchemaFields::default()
                .with_required("path", text())
                .with_required("sent", text())
                .with_required("stored", text());
            let differences = ArrayBuilder::new().items(difference.0);
            invoice_fields().with_optional("differences", differences)
        }
        EventKind::InvoiceRejected | EventKind::InvoiceFailed => invoice_fields()
            .with_required("operation", component(&Operation::name()))
            .with_required("error", text()),
        EventKind::PaymentStatusUpdated => invoice_fields()
            .with_optional("payment_status", component(&PaymentStatus::name()))
            .with_required("amount", schema_or_null(component(&Amount::name())))
            .with_required("reference", text_or_null())
            .with_required("remark", text_or_null())
            .with_required("amount_paid", schema_or_null(component(&Amount::name())))
            .with_required("payable_amount", schema_or_null(component(&Amount::name())))
            .with_optional("payment_date", day()),
        EventKind::InvoiceBatchCompleted => SchemaFields::default()
            .with_required("batch_no", text_or_null())
            .with_optional("import_no", text())
            .with_required("created", whole_number())
            .with_required("duplicates", whole_number())
            .with_required("failed", whole_number())
            .with_optional("cancelled", flag()),
        EventKind::SupplierInvoiceReceived => SchemaFields::default()
            .with_required("irn", text())
            .with_required("supplier_irn", text())
            .with_required("supplier_name", text_or_null())
            .with_required("supplier_tin", text_or_null())
            .with_required("received_at", moment()),
        EventKind::SupplierInvoiceAcknowledged => SchemaFields::default()
            .with_required("irn", text())
            .with_required("supplier_irn", text())
            .with_required("acknowledged_at", moment()),
        _ => account_data_fields(kind),
    }
}

/// Returns the fields of an event that is about no invoice.
fn account_data_fields(kind: EventKind) -> SchemaFields {
    let taxpayer_fields =
        || SchemaFields::default().with_required("taxpayer_id", component(&TaxpayerId::name()));
    match kind {
        EventKind::TaxpayerVerified | EventKind::TaxpayerUnverified => taxpayer_fields()
            .with_required("verification", component(&VerificationStatus::name()))
            .with_required("reason", text_or_null()),
        EventKind::AuthorityOutageStarted => outage_fields(),
        EventKind::AuthorityOutageEnded => outage_fields()
            .with_required("ended_at", text_or_null())
            .with_required("duration_s", whole_number()),
        EventKind::WebhookUpdated => taxpayer_fields()
            .with_required("webhook_id", schema_or_null(whole_number()))
            .with_required("webhook_origin", text_or_null())
            .with_required("changed", ArrayBuilder::new().items(text())),
        EventKind::WebhookTest => taxpayer_fields().with_required("message", text()),
        _ => taxpayer_fields(),
    }
}

fn invoice_fields() -> SchemaFields {
    SchemaFields::default()
        .with_required("irn", text())
        .with_required("invoice", schema_or_null(component(&InvoiceObject::name())))
        .with_optional("status", component(&WorkflowStatus::name()))
        .with_optional(
            "previous_status",
            schema_or_null(component(&WorkflowStatus::name())),
        )
}

fn outage_fields() -> SchemaFields {
    SchemaFields::default()
        .with_required("outage_id", text())
        .with_required("operations", ArrayBuilder::new().items(text()))
        .with_required("started_at", moment())
        .with_required("message", text())
}

/// The builder of the schema of an object, to which fields are added one by one.
#[derive(Default)]
struct SchemaFields(ObjectBuilder);

impl SchemaFields {
    fn with_required(self, name: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        Self(self.0.property(name, schema).required(name))
    }

    fn with_optional(self, name: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        Self(self.0.property(name, schema))
    }
}

fn schema_or_null(schema: impl Into<RefOr<Schema>>) -> Schema {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(schema).item(null).build().into()
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn text_or_null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

fn moment() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

fn day() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
}

fn flag() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean)
}

fn whole_number() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_named_after_its_event() {
        let names = [EventKind::InvoiceStatusUpdated, EventKind::ApiKeyRotated];
        assert_eq!(
            names.map(message_schema_name),
            ["EventInvoiceStatusUpdated", "EventApiKeyRotated"]
        );
        assert_eq!(
            names.map(logged_schema_name),
            ["LoggedInvoiceStatusUpdated", "LoggedApiKeyRotated"]
        );
    }

    /// Otherwise the document would keep the fields of only one of the kinds.
    #[test]
    fn kinds_that_share_the_name_of_their_data_have_the_same_fields() {
        for kind in EventKind::ALL {
            for other in EventKind::ALL {
                let have_same_name = data_schema_name(*kind) == data_schema_name(*other);
                let have_same_fields =
                    event_data_fields(*kind).0.build() == event_data_fields(*other).0.build();
                assert_eq!(have_same_name, have_same_fields, "{kind} {other}");
            }
        }
    }

    #[test]
    fn the_type_of_an_event_of_the_feed_tells_its_schema() {
        let schemas: BTreeMap<_, _> = event_schemas().into_iter().collect();
        let event = serde_json::to_value(&schemas["Event"]).unwrap();
        assert_eq!(event["discriminator"]["propertyName"], "type");
        let mapping = event["discriminator"]["mapping"].as_object().unwrap();
        assert_eq!(event["oneOf"].as_array().unwrap().len(), mapping.len());
        for kind in logged_kinds() {
            let target = mapping[kind.as_str()].as_str().unwrap();
            let name = target.trim_start_matches("#/components/schemas/");
            let schema = serde_json::to_value(&schemas[name]).unwrap();
            assert_eq!(schema["properties"]["type"]["enum"], json!([kind]));
        }
        assert!(!mapping.contains_key(EventKind::WebhookTest.as_str()));
    }
}
