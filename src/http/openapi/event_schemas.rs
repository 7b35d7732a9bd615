//! The schemas of webhook messages, one for each kind of event. The catalogue of events refers to them.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, SchemaType, Type,
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

/// Returns the name of the schema of a message: `EventInvoiceCreated` for `invoice.created`.
pub(crate) fn event_schema_name(kind: EventKind) -> String {
    let words = kind.as_str().split(['.', '-']);
    let capitalized = words.map(|word| {
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_uppercase())
    });
    format!("Event{}", capitalized.collect::<String>())
}

/// Returns the schemas of the messages of all kinds, and those of the domain's types that only they refer to.
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
    let messages = EventKind::ALL.iter();
    schemas.extend(messages.map(|kind| (event_schema_name(*kind), message(*kind))));
    schemas
}

/// Returns the schema of a message of any kind.
pub(crate) fn any_message() -> Schema {
    let kinds = EventKind::ALL.iter();
    let one_of = kinds.fold(OneOfBuilder::new(), |all, kind| {
        all.item(component(&event_schema_name(*kind)))
    });
    one_of.build().into()
}

fn message(kind: EventKind) -> RefOr<Schema> {
    let actor = Fields::default()
        .required("kind", component(&ActorKind::name()))
        .required("id", text_or_null())
        .required("name", text_or_null());
    let uuid = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
    let name = text().enum_values(Some([kind.as_str()]));
    Fields::default()
        .required("id", uuid)
        .required("type", name)
        .required("timestamp", text())
        .required("sequence", whole_number())
        .required("taxpayer_id", component(&TaxpayerId::name()))
        .optional("hash", text())
        .optional("actor", actor.0)
        .required("data", data(kind).0)
        .0
        .into()
}

fn data(kind: EventKind) -> Fields {
    match kind {
        EventKind::InvoiceCreated
        | EventKind::InvoiceUpdated
        | EventKind::InvoiceValidated
        | EventKind::InvoiceTransmitted
        | EventKind::InvoiceReported
        | EventKind::InvoiceAcknowledged => about_invoice(),
        EventKind::InvoiceStatusUpdated => about_invoice().optional("remark", text_or_null()),
        EventKind::InvoiceSubmitted => {
            let difference = Fields::default()
                .required("path", text())
                .required("sent", text())
                .required("stored", text());
            let differences = ArrayBuilder::new().items(difference.0);
            about_invoice().optional("differences", differences)
        }
        EventKind::InvoiceRejected | EventKind::InvoiceFailed => about_invoice()
            .required("operation", component(&Operation::name()))
            .required("error", text()),
        EventKind::PaymentStatusUpdated => about_invoice()
            .optional("payment_status", component(&PaymentStatus::name()))
            .required("amount", or_null(component(&Amount::name())))
            .required("reference", text_or_null())
            .required("remark", text_or_null())
            .required("amount_paid", or_null(component(&Amount::name())))
            .required("payable_amount", or_null(component(&Amount::name()))),
        EventKind::InvoiceBatchCompleted => Fields::default()
            .required("batch_no", text_or_null())
            .required("created", whole_number())
            .required("duplicates", whole_number())
            .required("failed", whole_number()),
        EventKind::SupplierInvoiceReceived => Fields::default()
            .required("irn", text())
            .required("supplier_irn", text())
            .required("supplier_name", text_or_null())
            .required("supplier_tin", text_or_null())
            .required("received_at", text()),
        EventKind::SupplierInvoiceAcknowledged => Fields::default()
            .required("irn", text())
            .required("supplier_irn", text())
            .required("acknowledged_at", text()),
        _ => account_data(kind),
    }
}

/// Returns the fields of an event that is about no invoice.
fn account_data(kind: EventKind) -> Fields {
    let taxpayer = || Fields::default().required("taxpayer_id", component(&TaxpayerId::name()));
    let texts = || ArrayBuilder::new().items(text());
    match kind {
        EventKind::TaxpayerVerified | EventKind::TaxpayerUnverified => taxpayer()
            .required("verification", component(&VerificationStatus::name()))
            .required("reason", text_or_null()),
        EventKind::AuthorityOutageStarted => outage(),
        EventKind::AuthorityOutageEnded => outage()
            .required("ended_at", text_or_null())
            .required("duration_s", whole_number()),
        EventKind::WebhookUpdated => taxpayer()
            .required("webhook_id", or_null(whole_number()))
            .required("webhook_origin", text_or_null())
            .required("changed", texts()),
        EventKind::WebhookTest => taxpayer().required("message", text()),
        _ => taxpayer(),
    }
}

fn about_invoice() -> Fields {
    Fields::default()
        .required("irn", text())
        .required("invoice", or_null(component(&InvoiceObject::name())))
        .optional("status", component(&WorkflowStatus::name()))
        .optional(
            "previous_status",
            or_null(component(&WorkflowStatus::name())),
        )
}

fn outage() -> Fields {
    Fields::default()
        .required("outage_id", text())
        .required("operations", ArrayBuilder::new().items(text()))
        .required("started_at", text())
        .required("message", text())
}

/// The fields of an object.
#[derive(Default)]
struct Fields(ObjectBuilder);

impl Fields {
    fn required(self, name: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        Self(self.0.property(name, schema).required(name))
    }

    fn optional(self, name: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        Self(self.0.property(name, schema))
    }
}

fn or_null(schema: impl Into<RefOr<Schema>>) -> Schema {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(schema).item(null).build().into()
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn text_or_null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

fn whole_number() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_named_after_its_event() {
        let names = [EventKind::InvoiceStatusUpdated, EventKind::ApiKeyRotated];
        assert_eq!(
            names.map(event_schema_name),
            ["EventInvoiceStatusUpdated", "EventApiKeyRotated"]
        );
    }
}
