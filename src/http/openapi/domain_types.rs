//! The schemas of the domain's types that responses contain. They are here because the domain does not depend on
//! `OpenAPI`.

use std::borrow::Cow;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::access::api_key::KeyScope;
use crate::domain::access::session::{ContactRole, OperatorRole};
use crate::domain::correction::record::CorrectionState;
use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::endpoint_health::EndpointHealth;
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::{ReplayScope, ReplayState};
use crate::domain::import::record::{ImportOutcome, ImportState};
use crate::domain::import::source::ImportForm;
use crate::domain::integration::{AuthType, ClientAuthentication, DataFormat};
use crate::domain::invoice::batch::{Duplicate, ItemOutcome};
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::timeline::EntryKind;
use crate::domain::kernel::audit::{ActorKind, AuditAction};
use crate::domain::kernel::codes::{
    AuthorityStatus, Category, DocumentKind, NoticeMessage, PaymentStatus, RelayedPaymentStatus,
    WorkflowStatus,
};
use crate::domain::kernel::ids::{ContactId, IntegratorId, InvoiceId, ItemId, TaxpayerId};
use crate::domain::money::Amount;
use crate::domain::outage::OutageEdge;
use crate::domain::party::verification::VerificationStatus;
use crate::domain::pipeline::resolution::ResolvedBy;
use crate::domain::pipeline::{Operation, OperatorAction, RunState, Step, WaitReason};
use crate::domain::reconciliation::day::{AskedBy, FindingAction, ReconciliationState};
use crate::domain::reconciliation::finding_kind::FindingKind;
use crate::http::openapi::schema::component;

/// Declares a schema for each listed enumeration: a string that is one of the enumeration's values.
macro_rules! words {
    ($($name:ty),+ $(,)?) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let words = Self::ALL.iter().map(|value| value.as_str());
                text().enum_values(Some(words)).into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

words! {
    ActorKind, AskedBy, AuditAction, AuthType, AuthorityStatus, Category, ClientAuthentication, ContactRole, DataFormat,
    CorrectionState, DeliveryState, DocumentKind, Duplicate, EndpointHealth, EntryKind, EventKind, FindingAction, FindingKind, ImportForm, ImportOutcome, ImportState, ItemOutcome, KeyScope, NoticeMessage, Operation,
    OperatorAction, OperatorRole, OutageEdge, PaymentStatus, ReconciliationState, RelayedPaymentStatus, ReplayScope, ReplayState,
    ResolvedBy, RunState, Step, VerificationStatus, WaitReason, WorkflowStatus,
}

/// Declares a schema for each listed id type: a whole number. The text after the type describes the id.
macro_rules! ids {
    ($($name:ty: $description:literal,)+) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let number = ObjectBuilder::new().schema_type(Type::Integer).description(Some($description));
                number.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64))).into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

ids! {
    TaxpayerId: "A taxpayer.",
    IntegratorId: "An integrator, which acts for the taxpayers it onboarded.",
    ContactId: "A contact person of a taxpayer.",
    InvoiceId: "An invoice: the portal id.",
    ItemId: "An item of one taxpayer's catalog.",
}

impl PartialSchema for Amount {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Number).into()
    }
}

impl ToSchema for Amount {}

impl PartialSchema for Irn {
    fn schema() -> RefOr<Schema> {
        text().into()
    }
}

impl ToSchema for Irn {}

/// Names of the parts of an invoice that have a schema of their own in the document.
const AUTHORITY_STATE_SCHEMA: &str = "AuthorityState";
const CUSTOMER_SCHEMA: &str = "InvoiceCustomer";
const LINE_SCHEMA: &str = "InvoiceLine";

impl PartialSchema for InvoiceObject<'_> {
    fn schema() -> RefOr<Schema> {
        let lines = ArrayBuilder::new().items(component(LINE_SCHEMA));
        let fields = ObjectBuilder::new()
            .property("id", reference::<InvoiceId>())
            .property("irn", text())
            .property("invoice_no", text())
            .property("external_invoice_no", text())
            .property("invoice_category", reference::<Category>())
            .property("invoice_type", text())
            .property("invoice_date", text())
            .property("due_date", text_or_null())
            .property("currency", text())
            .property("created_at", text())
            .property("updated_at", text())
            .property("is_edited", ObjectBuilder::new().schema_type(Type::Boolean))
            .property("edited_at", text_or_null())
            .property("status", reference::<WorkflowStatus>())
            .property("payment_status", reference::<PaymentStatus>())
            .property("authority_data", component(AUTHORITY_STATE_SCHEMA))
            .property("customer", component(CUSTOMER_SCHEMA))
            .property("invoice_lines", lines);
        require_all(fields)
    }
}

impl ToSchema for InvoiceObject<'_> {
    fn name() -> Cow<'static, str> {
        "Invoice".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push(named_schema::<InvoiceId>());
        schemas.push(named_schema::<Category>());
        schemas.push(named_schema::<WorkflowStatus>());
        schemas.push(named_schema::<PaymentStatus>());
        schemas.push(named_schema::<AuthorityStatus>());
        schemas.push(named_schema::<Amount>());
        schemas.push((AUTHORITY_STATE_SCHEMA.to_owned(), authority_state_schema()));
        schemas.push((CUSTOMER_SCHEMA.to_owned(), customer_schema()));
        schemas.push((LINE_SCHEMA.to_owned(), line_schema()));
    }
}

fn authority_state_schema() -> RefOr<Schema> {
    let fields = ObjectBuilder::new()
        .property("qr_code", text())
        .property("status", reference::<AuthorityStatus>());
    require_all(fields)
}

fn customer_schema() -> RefOr<Schema> {
    let fields = ObjectBuilder::new()
        .property("external_customer_no", text())
        .property("name", text())
        .property("tin", text_or_null())
        .property("email", text());
    require_all(fields)
}

fn line_schema() -> RefOr<Schema> {
    let item_no = "An item without a number is identified by its name, here and in the catalog.";
    let fields = ObjectBuilder::new()
        .property("item_name", text())
        .property("item_no", text().description(Some(item_no)))
        .property("item_type", text())
        .property("unit_price", reference::<Amount>())
        .property("quantity", reference::<Amount>())
        .property("tax_category", text())
        .property("product_category", text_or_null())
        .property("service_category", text_or_null());
    require_all(fields)
}

/// Returns the schema of an object in which all fields are required.
fn require_all(fields: ObjectBuilder) -> RefOr<Schema> {
    let mut object = fields.build();
    object.required = object.properties.keys().cloned().collect();
    RefOr::T(object.into())
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn text_or_null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    component(&T::name())
}

fn named_schema<T: ToSchema>() -> (String, RefOr<Schema>) {
    (T::name().into_owned(), T::schema())
}
