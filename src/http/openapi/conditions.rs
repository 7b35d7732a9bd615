//! Documents fields of a request body that are required only under a condition that no schema can express: callers may
//! have this service compute the amounts, and some bodies name a stored invoice by one field alone. The schemas do not
//! require these fields, so that a generated client may leave them out, and list them in an extension. This module also
//! documents headers that change how a call works.

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayItems, Object, ObjectBuilder, Schema, SchemaType, Type};

use crate::http::openapi::operation_doc::OperationDoc;
use crate::http::openapi::parameter;
use crate::http::openapi::request_body::body_schema_name;

/// The extension of an object that lists the fields which are required on a condition.
pub(super) const CONDITIONAL_EXTENSION: &str = "x-conditionally-required";

/// The fields that `calculate=true` computes.
const COMPUTED_FIELDS: [&[&str]; 5] = [
    &["legal_monetary_total"],
    &["tax_total"],
    &["invoice_line", "line_extension_amount"],
    &["invoice_line", "total_tax"],
    &["invoice_line", "price", "price_amount"],
];

/// The note in the description of a body that may have the IRN alone, which then stands for the stored invoice.
const IRN_ALONE: &str =
    "`irn` alone for the stored invoice, or the document with all its required fields";

impl OperationDoc {
    /// Documents `calculate=true`, with which a caller has this service compute the amounts of a document: the
    /// parameter, the fields that the body may then leave out, and the member `calculated` of the responses documented
    /// so far.
    pub(crate) fn takes_calculate(mut self) -> Self {
        for (_, _, answer) in self.answers.values_mut() {
            if let Schema::Object(envelope) = answer {
                let calculated = ObjectBuilder::new()
                    .description(Some("the computed amounts, with `calculate=true`"));
                let member = (
                    "calculated".to_owned(),
                    Schema::from(calculated.build()).into(),
                );
                envelope.properties.extend([member]);
            }
        }
        if let Some(body) = self.body_schema_mut() {
            for path in COMPUTED_FIELDS {
                make_conditional(body, path);
            }
            add_price_with_tax(body);
        }
        self.query(
            "calculate",
            "true: line_extension_amount, total_tax, tax_total and legal_monetary_total may be left out and are computed; \
             price.price_amount_with_tax may stand in place of price.price_amount. The answer has `calculated` beside `data`, \
             with each rounding. An amount that is off is refused with its sum",
        )
    }

    /// Documents that the body may have the IRN alone. It then stands for the stored invoice.
    pub(crate) fn takes_irn_alone(self) -> Self {
        self.may_omit_all_but("irn", IRN_ALONE)
    }

    /// Documents that the body may have this field alone, without the other required fields. `note` says so in the
    /// description of the body.
    pub(crate) fn may_omit_all_but(mut self, field: &str, note: &'static str) -> Self {
        if let Some(Schema::Object(body)) = self.body_schema_mut() {
            let required = std::mem::take(&mut body.required);
            let (alone, others) = required.into_iter().partition(|name| name == field);
            body.required = alone;
            add_to_conditional_fields(body, others);
        }
        self.body_note = Some(note);
        self
    }

    /// Adds the header `Prefer`, with which a caller can choose not to wait for the run that the call starts.
    pub(crate) fn prefers_async(self) -> Self {
        self.parameter(parameter::prefer())
    }

    /// Adds the header that names the taxpayer of an integrator's call whose body names none.
    pub(crate) fn takes_taxpayer_header(self) -> Self {
        self.parameter(parameter::taxpayer_id())
    }

    /// Returns the schema of the request body; `None` if the operation takes none.
    fn body_schema_mut(&mut self) -> Option<&mut Schema> {
        let name = body_schema_name(self.name);
        let mut schemas = self.components.iter_mut();
        schemas.find_map(|(known, schema)| match schema {
            RefOr::T(schema) if *known == name => Some(schema),
            _ => None,
        })
    }
}

/// Moves the field at this path from the required fields of its object to those that are required on a condition.
fn make_conditional(schema: &mut Schema, path: &[&str]) {
    match (schema, path) {
        (Schema::Array(list), _) => {
            if let ArrayItems::RefOrSchema(item) = &mut list.items
                && let RefOr::T(item) = item.as_mut()
            {
                make_conditional(item, path);
            }
        }
        (Schema::Object(object), [name]) => {
            if let Some(position) = object.required.iter().position(|known| known == name) {
                let name = object.required.remove(position);
                add_to_conditional_fields(object, vec![name]);
            }
        }
        (Schema::Object(object), [name, rest @ ..]) => {
            if let Some(RefOr::T(inner)) = object.properties.get_mut(*name) {
                make_conditional(inner, rest);
            }
        }
        _ => {}
    }
}

fn add_to_conditional_fields(object: &mut Object, names: Vec<String>) {
    let listed_names = object
        .extensions
        .get_or_insert_default()
        .entry(CONDITIONAL_EXTENSION.to_owned())
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(listed_names) = listed_names {
        listed_names.extend(names.into_iter().map(Value::from));
    }
}

/// Adds the optional field `price_amount_with_tax` to the `price` of each line in the schema `body`. Only
/// `calculate=true` reads this field.
fn add_price_with_tax(body: &mut Schema) {
    let Schema::Object(body) = body else {
        return;
    };
    let Some(RefOr::T(Schema::Array(lines))) = body.properties.get_mut("invoice_line") else {
        return;
    };
    let ArrayItems::RefOrSchema(line) = &mut lines.items else {
        return;
    };
    let RefOr::T(Schema::Object(line)) = line.as_mut() else {
        return;
    };
    if let Some(RefOr::T(Schema::Object(price))) = line.properties.get_mut("price") {
        let with_tax = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Number, Type::Null]))
            .minimum(Some(0))
            .description(Some(
                "the price with tax, in place of price_amount; with `calculate=true`",
            ));
        let member = (
            "price_amount_with_tax".to_owned(),
            Schema::from(with_tax.build()).into(),
        );
        price.properties.extend([member]);
    }
}
