//! The `webhooks` of the API document: the notification of each event, as a webhook endpoint receives it.

use std::iter;

use utoipa::ToSchema;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Paths};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, RefOr, Required, ResponseBuilder};

use crate::domain::events::event::EventKind;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::party::verification::VerificationStatus;
use crate::domain::pipeline::Operation;
use crate::http::openapi::operation_doc::JSON_MEDIA_TYPE;
use crate::http::openapi::schema::component;

/// The type of a member of `data`.
#[derive(Clone, Copy)]
enum DataType {
    Text,
    TextOrNull,
    Moment,
    Number,
    NumberOrNull,
    AmountOrNull,
    Texts,
    /// The invoice as it was then; null for an IRN whose invoice is not stored.
    Invoice,
    Workflow,
    Verification,
    Pipeline,
    Differences,
}

/// A member of `data`: its name, its type, and true if every event of its kind has it.
type Member = (&'static str, DataType, bool);

/// Returns a sentence about an event.
fn sentence(kind: EventKind) -> &'static str {
    use EventKind as Kind;
    match kind {
        Kind::InvoiceCreated => "An invoice was created.",
        Kind::InvoiceUpdated => "An invoice was changed.",
        Kind::InvoiceStatusUpdated => "The workflow status of an invoice changed.",
        Kind::InvoiceValidated => "The authority validated an invoice.",
        Kind::InvoiceSubmitted => "The authority signed an invoice.",
        Kind::InvoiceTransmitted => "An invoice was transmitted to its customer.",
        Kind::InvoiceAcknowledged => "The receipt of an invoice was confirmed.",
        Kind::InvoiceReported => "An invoice was reported to the authority.",
        Kind::InvoiceRejected => "The authority refused an invoice.",
        Kind::InvoiceFailed => "A call of the pipeline failed and is not repeated by itself.",
        Kind::InvoiceBatchCompleted => "The invoices of a batch were created.",
        Kind::PaymentStatusUpdated => "The payment status of an invoice changed.",
        Kind::SupplierInvoiceReceived => "A supplier's invoice arrived.",
        Kind::SupplierInvoiceAcknowledged => "A supplier's invoice was acknowledged.",
        Kind::ApiKeyRotated => "The API key of the taxpayer was replaced.",
        Kind::TaxpayerVerified => "The authority confirmed the taxpayer.",
        Kind::TaxpayerUnverified => "The authority did not confirm the taxpayer.",
        Kind::AuthorityOutageStarted => "The authority stopped answering.",
        Kind::AuthorityOutageEnded => "The authority answers again.",
        Kind::WebhookUpdated => "A webhook endpoint was added, changed or removed.",
        Kind::WebhookTest => "A test, which says nothing about an invoice.",
    }
}

const TAXPAYER: Member = ("taxpayer_id", DataType::Number, true);

const ABOUT_INVOICE: [Member; 4] = [
    ("irn", DataType::Text, true),
    ("invoice", DataType::Invoice, true),
    ("status", DataType::Workflow, false),
    ("previous_status", DataType::TextOrNull, false),
];

const STATUS_CHANGE: [Member; 1] = [("remark", DataType::TextOrNull, false)];

const SIGNATURE: [Member; 1] = [("differences", DataType::Differences, false)];

const FAILURE: [Member; 2] = [
    ("operation", DataType::Pipeline, true),
    ("error", DataType::Text, true),
];

const PAYMENT: [Member; 6] = [
    ("payment_status", DataType::Text, false),
    ("amount", DataType::AmountOrNull, false),
    ("reference", DataType::TextOrNull, false),
    ("remark", DataType::TextOrNull, false),
    ("amount_paid", DataType::AmountOrNull, false),
    ("payable_amount", DataType::AmountOrNull, false),
];

const BATCH: [Member; 4] = [
    ("batch_no", DataType::Text, true),
    ("created", DataType::Number, true),
    ("duplicates", DataType::Number, true),
    ("failed", DataType::Number, true),
];

const SUPPLIED: [Member; 2] = [
    ("irn", DataType::Text, true),
    ("supplier_irn", DataType::Text, true),
];

const SUPPLIER: [Member; 3] = [
    ("supplier_name", DataType::TextOrNull, true),
    ("supplier_tin", DataType::TextOrNull, true),
    ("received_at", DataType::Moment, true),
];

const VERIFICATION: [Member; 3] = [
    TAXPAYER,
    ("verification", DataType::Verification, true),
    ("reason", DataType::TextOrNull, true),
];

const OUTAGE: [Member; 4] = [
    ("outage_id", DataType::Text, true),
    ("operations", DataType::Texts, true),
    ("started_at", DataType::Moment, true),
    ("message", DataType::Text, true),
];

const OUTAGE_END: [Member; 2] = [
    ("ended_at", DataType::Moment, true),
    ("duration_s", DataType::Number, true),
];

const ENDPOINT: [Member; 4] = [
    TAXPAYER,
    ("webhook_id", DataType::NumberOrNull, true),
    ("webhook_origin", DataType::TextOrNull, true),
    ("changed", DataType::Texts, true),
];

/// Returns the members of the `data` of an event, in groups.
fn members(kind: EventKind) -> [&'static [Member]; 2] {
    use EventKind as Kind;
    match kind {
        Kind::InvoiceCreated
        | Kind::InvoiceUpdated
        | Kind::InvoiceValidated
        | Kind::InvoiceTransmitted
        | Kind::InvoiceAcknowledged
        | Kind::InvoiceReported => [&ABOUT_INVOICE, &[]],
        Kind::InvoiceStatusUpdated => [&ABOUT_INVOICE, &STATUS_CHANGE],
        Kind::InvoiceSubmitted => [&ABOUT_INVOICE, &SIGNATURE],
        Kind::InvoiceRejected | Kind::InvoiceFailed => [&ABOUT_INVOICE, &FAILURE],
        Kind::PaymentStatusUpdated => [&ABOUT_INVOICE, &PAYMENT],
        Kind::InvoiceBatchCompleted => [&BATCH, &[]],
        Kind::SupplierInvoiceReceived => [&SUPPLIED, &SUPPLIER],
        Kind::SupplierInvoiceAcknowledged => {
            [&SUPPLIED, &[("acknowledged_at", DataType::Moment, true)]]
        }
        Kind::ApiKeyRotated => [&[TAXPAYER], &[]],
        Kind::TaxpayerVerified | Kind::TaxpayerUnverified => [&VERIFICATION, &[]],
        Kind::AuthorityOutageStarted => [&OUTAGE, &[]],
        Kind::AuthorityOutageEnded => [&OUTAGE, &OUTAGE_END],
        Kind::WebhookUpdated => [&ENDPOINT, &[]],
        Kind::WebhookTest => [&[TAXPAYER], &[("message", DataType::Text, true)]],
    }
}

/// The webhooks of the document, and the schemas that they refer to.
pub(super) struct Webhooks {
    pub(super) paths: Paths,
    pub(super) components: Vec<(String, RefOr<Schema>)>,
}

/// Returns the webhooks for all events.
pub(super) fn webhooks() -> Webhooks {
    let mut paths = Paths::new();
    let mut components = Vec::new();
    InvoiceObject::schemas(&mut components);
    for kind in EventKind::ALL.iter().copied() {
        let name = notification_name(kind);
        let content = ContentBuilder::new().schema(Some(component(&name)));
        let body = RequestBodyBuilder::new()
            .content(JSON_MEDIA_TYPE, content.build())
            .required(Some(Required::True));
        let taken = ResponseBuilder::new().description(
            "Any 2xx takes the notification. Anything else, or none in time, has it sent again",
        );
        let operation = OperationBuilder::new()
            .operation_id(Some(format!(
                "on_{}",
                kind.as_str().replace(['.', '-'], "_")
            )))
            .summary(Some(sentence(kind)))
            // A notification is signed; it carries no key.
            .securities(Some(iter::empty::<SecurityRequirement>()))
            .request_body(Some(body.build()))
            .response("200", taken.build());
        paths.add_path_operation(kind.as_str(), vec![HttpMethod::Post], operation.build());
        components.push((name, notification(kind)));
    }
    Webhooks { paths, components }
}

/// Returns the name of the schema of an event: `InvoiceCreatedNotification`.
fn notification_name(kind: EventKind) -> String {
    let words = kind.as_str().split(['.', '-']);
    let name: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        })
        .collect();
    name + "Notification"
}

fn notification(kind: EventKind) -> RefOr<Schema> {
    let members = members(kind).into_iter().flatten();
    let data = members.fold(ObjectBuilder::new(), |data, (name, kind, is_constant)| {
        let data = data.property(*name, member_schema(*kind));
        if *is_constant {
            data.required(*name)
        } else {
            data
        }
    });
    let id = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
    let actor = "who caused the event; absent in events from before it was recorded, and in tests";
    let hash = "SHA-256 over the previous hash and the event; absent in tests";
    let body = ObjectBuilder::new()
        .description(Some(sentence(kind)))
        .property("id", id.description(Some("the same for every attempt")))
        .property("type", text().enum_values(Some([kind.as_str()])))
        .property("timestamp", moment())
        .property(
            "sequence",
            number().description(Some("the place in the taxpayer's log; 0 for a test")),
        )
        .property("taxpayer_id", number())
        .property("hash", text().description(Some(hash)))
        .property("actor", ObjectBuilder::new().description(Some(actor)))
        .property("data", data);
    ["id", "type", "timestamp", "sequence", "taxpayer_id", "data"]
        .into_iter()
        .fold(body, ObjectBuilder::required)
        .into()
}

fn member_schema(kind: DataType) -> RefOr<Schema> {
    match kind {
        DataType::Text => text().into(),
        DataType::TextOrNull => or_null(Type::String).into(),
        DataType::Moment => moment().into(),
        DataType::Number => number().into(),
        DataType::NumberOrNull => or_null(Type::Integer).into(),
        DataType::AmountOrNull => or_null(Type::Number).into(),
        DataType::Texts => ArrayBuilder::new().items(text()).into(),
        DataType::Invoice => OneOfBuilder::new()
            .item(component(&InvoiceObject::name()))
            .item(ObjectBuilder::new().schema_type(Type::Null))
            .description(Some("null for an IRN whose invoice is not stored"))
            .into(),
        DataType::Workflow => words(WorkflowStatus::ALL.iter().map(|one| one.as_str())).into(),
        DataType::Verification => {
            words(VerificationStatus::ALL.iter().map(|one| one.as_str())).into()
        }
        DataType::Pipeline => words(Operation::ALL.iter().map(|one| one.as_str())).into(),
        DataType::Differences => ArrayBuilder::new()
            .items(ObjectBuilder::new())
            .description(Some("where the signed document is not the stored invoice"))
            .into(),
    }
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn number() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer)
}

fn moment() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

fn or_null(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([kind, Type::Null]))
}

fn words(words: impl Iterator<Item = &'static str>) -> ObjectBuilder {
    text().enum_values(Some(words))
}
