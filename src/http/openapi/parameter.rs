//! The parameters of paths, query strings and headers. Parameters with the same name have the same meaning in every
//! path.

use authority_client::Operation;
use serde_json::Value;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};

use crate::domain::reference::catalog::ReferenceList;

/// The type of a query parameter.
#[derive(Debug, Clone, Copy)]
pub(super) enum QueryType {
    /// The type that `named_type` has for the name, such as a date for `day`; a text if it has none.
    Text,
    /// One of the words that the function lists, separated by commas.
    Word(fn() -> String),
    /// A whole number. An invalid value is not refused; it counts as the default.
    Lenient,
    /// A whole number of at least this value. An invalid value is refused.
    Whole(u8),
}

pub(super) fn query(name: &'static str, kind: QueryType, description: &'static str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let whole_number = integer();
    let schema = match kind {
        QueryType::Text => named_type(name),
        QueryType::Word(allowed) => text.enum_values(Some(allowed().split(", "))),
        QueryType::Lenient => whole_number.minimum(Some(1)),
        QueryType::Whole(min) => whole_number.minimum(Some(usize::from(min))),
    };
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False);
    parameter
        .schema(Some(schema))
        .description(Some(description))
        .build()
}

/// Returns the type that parameters of this name have in every query string.
fn named_type(name: &str) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String);
    match name {
        "date_from" | "date_to" | "due_before" | "due_after" | "day" => {
            text.format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
        }
        "updated_since" | "expires_at" => {
            text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        }
        "month" => text.pattern(Some("^[0-9]{4}-[0-9]{2}$")),
        "quarter" => text.pattern(Some("^[0-9]{4}-Q[1-4]$")),
        "year" => text.pattern(Some("^[0-9]{4}$")),
        "taxpayer_id" | "integrator_id" => integer().minimum(Some(1)),
        "overdue" | "refund_due" | "without_cancelled" | "preview" | "for_you" | "grade"
        | "calculate" | "replace_cancelled" => ObjectBuilder::new().schema_type(Type::Boolean),
        _ => text,
    }
}

/// Returns the parameter for the `Idempotency-Key` header, which makes a write idempotent.
pub(super) fn idempotency_key() -> Parameter {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^[ -~]{1,255}$"));
    let description = "carries the write out once: the same key with the same request gets the first answer again";
    header("Idempotency-Key", text, description)
}

/// Returns the parameter for the `If-Match` header, which makes a change depend on what its sender has read.
pub(super) fn if_match() -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let description = "makes the change only if this is still the `ETag` of Get Invoice by ID";
    header("If-Match", text, description)
}

/// Returns the parameter for the `If-None-Match` header of a read.
pub(super) fn if_none_match() -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let description = "the `ETag` of an answer that the caller has: 304 if it is still the same";
    header("If-None-Match", text, description)
}

/// Returns the parameter for the `Prefer` header, with which a caller can choose not to wait for a run.
pub(super) fn prefer() -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let description = "`respond-async`: 202 at once, if there is something to wait for";
    header("Prefer", text, description)
}

/// Returns the parameter for the header that names the taxpayer of an integrator's call.
pub(super) fn taxpayer_id() -> Parameter {
    let description =
        "the taxpayer that an integrator's call acts for, if no field of its body names one";
    header("x-taxpayer-id", integer().minimum(Some(1)), description)
}

fn header(name: &'static str, schema: ObjectBuilder, description: &'static str) -> Parameter {
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header);
    parameter
        .required(Required::False)
        .schema(Some(schema))
        .description(Some(description))
        .build()
}

/// Returns the schema of a whole number of 64 bits. Without the format, clients assume 32 bits.
fn integer() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
}

/// Returns the parameters in a path, in the order in which the path names them.
pub(super) fn path_parameters(path: &'static str) -> impl Iterator<Item = Parameter> {
    // Most objects under `/ops/` have a UUID as their id. Only the objects in these paths have a numeric id.
    let numeric_id_paths = ["/taxpayers/{id}", "/integrators/{id}", "/operators/{id}"];
    let has_uuid = path.starts_with("/ops/")
        && !numeric_id_paths
            .iter()
            .any(|numeric| path.contains(numeric));
    let names = path
        .split('/')
        .filter_map(|step| step.strip_prefix('{')?.strip_suffix('}'));
    names.map(move |name| match name {
        "id" if has_uuid => path_parameter(uuid_parameter_doc(), name),
        name => path_parameter(path_parameter_doc(name), name),
    })
}

/// The documentation of a parameter in a path.
struct PathParameterDoc {
    schema: ObjectBuilder,
    description: &'static str,
    example: Value,
}

/// Returns the documentation of the path parameter with this name, which means the same in every path.
fn path_parameter_doc(name: &str) -> PathParameterDoc {
    match name {
        "id" => number_parameter_doc("The id, a number"),
        "contact_id" => number_parameter_doc("The id of the person, a number"),
        "invoice_id" => number_parameter_doc("The id of the invoice, a number"),
        "irn" => text_parameter_doc(
            "The IRN: {invoice_no}-{service_id}-{YYYYMMDD}",
            "INV0001-94CD90AA-20260115",
        ),
        "supplier_irn" => text_parameter_doc(
            "The IRN of the received invoice: {invoice_no}-{service_id}-{YYYYMMDD}",
            "INV9001-5A3F00C1-20260115",
        ),
        "endpoint_id" => {
            text_parameter_doc("`default`, or the id of an endpoint that was added", "2")
        }
        "list" => {
            let lists = ReferenceList::ALL.iter().map(ToString::to_string);
            with_allowed_words(text_parameter_doc("The list", "currencies"), lists)
        }
        "operation" => {
            let operations = Operation::ALL.into_iter().map(Operation::name);
            let doc = text_parameter_doc("The operation of the authority", "sign");
            with_allowed_words(doc, operations)
        }
        "batch_no" => text_parameter_doc("The batch number that Bulk gave", "B-1"),
        "import_no" => text_parameter_doc(
            "The number that the import gave",
            "IDB4D5F32AC53A2EB23F0AB14003AF9D3",
        ),
        "correction_no" => {
            text_parameter_doc("The number that Correct gave", "C20260115-0000000000000000")
        }
        "token" => text_parameter_doc("The token of the settings", "token"),
        _ => uuid_parameter_doc(),
    }
}

fn number_parameter_doc(description: &'static str) -> PathParameterDoc {
    PathParameterDoc {
        schema: integer().minimum(Some(1)),
        description,
        example: Value::from(1),
    }
}

fn text_parameter_doc(description: &'static str, example: &str) -> PathParameterDoc {
    let text = ObjectBuilder::new().schema_type(Type::String);
    PathParameterDoc {
        schema: text.min_length(Some(1)),
        description,
        example: example.into(),
    }
}

fn uuid_parameter_doc() -> PathParameterDoc {
    text_parameter_doc("The id, a UUID", "01a1fe6b-07c5-77be-bffc-3c9cdd06c3ab")
}

fn with_allowed_words(
    doc: PathParameterDoc,
    words: impl Iterator<Item = impl Into<Value>>,
) -> PathParameterDoc {
    PathParameterDoc {
        schema: doc.schema.enum_values(Some(words)),
        ..doc
    }
}

fn path_parameter(doc: PathParameterDoc, name: &'static str) -> Parameter {
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True);
    parameter
        .schema(Some(doc.schema))
        .description(Some(doc.description))
        .example(Some(doc.example))
        .build()
}
