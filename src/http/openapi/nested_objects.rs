//! Names for the objects within request bodies, such as a customer or a line. Each becomes a component of the document,
//! so that the types of a generated client have these names. Objects of the same shape have the same name.

use std::collections::BTreeMap;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayItems, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};

use crate::http::openapi::request_body::BODY_SCHEMA_SUFFIX;
use crate::http::openapi::schema;

/// The name of each shape, and the path to one object with this shape: the schema of a request body, then field names.
pub(super) const SHAPE_NAMES: [(&str, &str); 32] = [
    ("CustomerInput", "CreateInvoiceRequest.customer"),
    ("InvoiceLineInput", "CreateInvoiceRequest.invoice_lines"),
    ("BatchInvoiceInput", "CreateBatchRequest.invoices"),
    (
        "BatchInvoiceLineInput",
        "CreateBatchRequest.invoices.invoice_lines",
    ),
    ("UpdatedLineInput", "UpdateInvoiceRequest.lines"),
    (
        "FullCustomerInput",
        "CreateFullInvoiceRequest.accounting_customer_party",
    ),
    (
        "FullCustomerAddressInput",
        "CreateFullInvoiceRequest.accounting_customer_party.postal_address",
    ),
    ("FullLineInput", "CreateFullInvoiceRequest.invoice_line"),
    (
        "FullLineItemInput",
        "CreateFullInvoiceRequest.invoice_line.item",
    ),
    (
        "FullLinePriceInput",
        "CreateFullInvoiceRequest.invoice_line.price",
    ),
    ("FullTaxTotalInput", "CreateFullInvoiceRequest.tax_total"),
    (
        "DeliveryPeriodInput",
        "CreateFullInvoiceRequest.invoice_delivery_period",
    ),
    (
        "DocumentReferenceInput",
        "CreateFullInvoiceRequest.billing_reference",
    ),
    (
        "AllowanceChargeInput",
        "CreateFullInvoiceRequest.allowance_charge",
    ),
    (
        "PaymentMeansInput",
        "CreateFullInvoiceRequest.payment_means",
    ),
    (
        "MonetaryTotalInput",
        "CreateFullInvoiceRequest.legal_monetary_total",
    ),
    (
        "TaxSubtotalInput",
        "CreateFullInvoiceRequest.tax_total.tax_subtotal",
    ),
    (
        "TaxCategoryInput",
        "CreateFullInvoiceRequest.tax_total.tax_subtotal.tax_category",
    ),
    (
        "SubmitPartyInput",
        "SubmitRequest.accounting_supplier_party",
    ),
    (
        "PartyAddressInput",
        "SubmitRequest.accounting_supplier_party.postal_address",
    ),
    ("DocumentLineInput", "SubmitRequest.invoice_line"),
    ("DocumentLineItemInput", "SubmitRequest.invoice_line.item"),
    ("DocumentLinePriceInput", "SubmitRequest.invoice_line.price"),
    ("DocumentTaxTotalInput", "SubmitRequest.tax_total"),
    (
        "ValidatePartyInput",
        "ValidateRequest.accounting_supplier_party",
    ),
    ("ValidatePaymentMeansInput", "ValidateRequest.payment_means"),
    ("ContactPersonInput", "CreateTaxpayerRequest.contact_person"),
    ("DocumentColoursInput", "UpdateProfileRequest.colours"),
    ("RunFilterInput", "MoveRunsRequest.filter"),
    (
        "DeliveryFilterInput",
        "ReplaySelectedDeliveriesRequest.matching",
    ),
    ("ErpAuthInput", "SetIntegrationRequest.auth"),
    ("ErpFormatInput", "SetIntegrationRequest.format"),
];

/// A shape of objects, with its name.
struct NamedShape {
    name: &'static str,
    shape: Object,
}

/// Adds a component for each named object within the schemas of request bodies, and replaces the objects by references
/// to it. An object without a name stays as it is.
pub(super) fn name_nested_objects(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    let mut named = Vec::new();
    for (name, object_path) in SHAPE_NAMES {
        if let Some(object) = find_object(schemas, object_path) {
            let shape = shape(object);
            named.push(NamedShape { name, shape });
        }
    }
    for (name, schema) in &mut *schemas {
        if name.ends_with(BODY_SCHEMA_SUFFIX) {
            replace_within(schema, &named);
        }
    }
    for NamedShape { name, shape } in &named {
        let mut schema = RefOr::T(Schema::Object(shape.clone()));
        replace_within(&mut schema, &named);
        schemas.insert((*name).to_owned(), schema);
    }
}

fn find_object<'s>(
    schemas: &'s BTreeMap<String, RefOr<Schema>>,
    object_path: &str,
) -> Option<&'s Object> {
    let mut steps = object_path.split('.');
    let mut found = schemas.get(steps.next()?)?;
    for field in steps {
        found = inner_object(found)?.properties.get(field)?;
    }
    inner_object(found)
}

/// Returns the object that a schema describes or, for a list, the object that describes its entries.
fn inner_object(schema: &RefOr<Schema>) -> Option<&Object> {
    match schema {
        RefOr::T(Schema::Object(object)) => Some(object),
        RefOr::T(Schema::Array(list)) => match &list.items {
            ArrayItems::RefOrSchema(entry) => inner_object(entry),
            ArrayItems::False => None,
        },
        _ => None,
    }
}

/// Returns the schema of an object with null not allowed, so that a nullable object has the same shape.
fn shape(object: &Object) -> Object {
    let mut shape = object.clone();
    shape.schema_type = SchemaType::Type(Type::Object);
    shape
}

/// Replaces the named objects within a schema by references, but not the schema itself.
fn replace_within(schema: &mut RefOr<Schema>, named: &[NamedShape]) {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            for property in object.properties.values_mut() {
                replace_object(property, named);
            }
        }
        RefOr::T(Schema::Array(list)) => {
            if let ArrayItems::RefOrSchema(entry) = &mut list.items {
                replace_object(entry, named);
            }
        }
        _ => {}
    }
}

fn replace_object(schema: &mut RefOr<Schema>, named: &[NamedShape]) {
    let reference = match schema {
        RefOr::T(Schema::Object(object)) => reference_to(object, named),
        _ => None,
    };
    match reference {
        Some(reference) => *schema = reference,
        None => replace_within(schema, named),
    }
}

/// Returns a reference to the component of an object; `None` if its shape has no name.
fn reference_to(object: &Object, named: &[NamedShape]) -> Option<RefOr<Schema>> {
    if object.properties.is_empty() {
        return None;
    }
    let shape = shape(object);
    let known = named.iter().find(|known| known.shape == shape)?;
    let reference = schema::component(known.name);
    if object.schema_type == shape.schema_type {
        return Some(reference);
    }
    let null = ObjectBuilder::new().schema_type(Type::Null);
    Some(OneOfBuilder::new().item(reference).item(null).into())
}
