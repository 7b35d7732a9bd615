//! Builds the schemas of responses: the envelope around a view, a page of a list, and the two
//! formats of a failure.

use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

use crate::http::respond::code::ErrorCode;

/// The names of the two schemas of failures, to which every operation refers: the envelope, and the problem document.
pub(super) const FAILURE_SCHEMA_NAME: &str = "Failure";
pub(super) const PROBLEM_SCHEMA_NAME: &str = "Problem";

/// Returns the schema of a successful response whose `message` is a sentence. `data` is the schema of its `data` field.
pub(crate) fn envelope(data: impl Into<RefOr<Schema>>) -> Schema {
    let message = text().description(Some("A sentence for people. It may change."));
    success_schema(message, data)
}

/// Returns the schema of a successful response. `message` is the schema of its `message` field: a string for every
/// operation except Submit, which puts the result there and a sentence into `data` (spec.md).
pub(super) fn success_schema(
    message: impl Into<RefOr<Schema>>,
    data: impl Into<RefOr<Schema>>,
) -> Schema {
    let success = ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .enum_values(Some([true]))
        .description(Some("Always true in a success."));
    let fields = ObjectBuilder::new()
        .property("success", success)
        .property("message", message)
        .property("data", data);
    ["success", "message", "data"]
        .into_iter()
        .fold(fields, ObjectBuilder::required)
        .build()
        .into()
}

/// Returns a schema that allows every object, for an object that another system defines.
pub(crate) fn object() -> Schema {
    ObjectBuilder::new().build().into()
}

/// Returns a schema that allows every list of objects, for objects that another system defines.
pub(crate) fn objects() -> Schema {
    ArrayBuilder::new()
        .items(ObjectBuilder::new())
        .build()
        .into()
}

/// Returns a schema that allows every JSON value, for an answer that another system defines.
pub(crate) fn any() -> Schema {
    ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .build()
        .into()
}

/// Returns the schema of a file of this media type: bytes, unless the file is a text.
pub(super) fn file(media_type: &str) -> ObjectBuilder {
    let file = text();
    let starts = ["application/pdf", "application/vnd.", "image/png"];
    let has_bytes = starts.iter().any(|start| media_type.starts_with(start));
    if has_bytes || media_type.starts_with("multipart/") {
        file.format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
    } else {
        file
    }
}

/// Returns the schema of one page of a list (spec.md, "Paginated list shape").
pub(super) fn page(item: impl Into<RefOr<Schema>>) -> Schema {
    let numbers = [
        ("current_page", "The number of this page, from 1."),
        ("total", "The number of entries on all pages."),
        ("per_page", "The number of entries that a page can have."),
        ("last_page", "The number of the last page."),
    ];
    let entries = ArrayBuilder::new().items(item.into());
    let fields = ObjectBuilder::new()
        .property(
            "data",
            entries.description(Some("The entries of this page.")),
        )
        .required("data");
    numbers
        .into_iter()
        .fold(fields, |page, (name, sentence)| {
            let number = ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                .minimum(Some(0))
                .description(Some(sentence));
            page.property(name, number).required(name)
        })
        .build()
        .into()
}

/// Returns the two schemas of failures, each with its name: the envelope, and the problem document (RFC 9457).
pub(super) fn failures() -> [(&'static str, Schema); 2] {
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let code = || {
        text()
            .enum_values(Some(codes.clone()))
            .description(Some("stable: programs decide by it"))
    };
    let texts = ArrayBuilder::new().items(text());
    let by_path = ObjectBuilder::new()
        .additional_properties(Some(Schema::from(texts.build())))
        .description(Some(
            "sentences by dot path, such as invoice_lines.0.quantity",
        ));
    let failure = ObjectBuilder::new()
        .property("success", flag().enum_values(Some([false])))
        .property("message", text())
        .property("data", ObjectBuilder::new().schema_type(Type::Null))
        .property("error_code", code())
        .property("doc_url", doc_url())
        .property("errors", by_path)
        .property("explanations", ArrayBuilder::new().items(explanation()))
        .property("patch", patch())
        .property(
            "patch_suffices",
            flag().description(Some(SUFFICES_DESCRIPTION)),
        )
        .property("retryable", retry_flag())
        .property("queue", component("Queue"))
        .property("request_id", text());
    let failure = ["success", "message", "data", "error_code", "request_id"]
        .into_iter()
        .fold(failure, ObjectBuilder::required);
    let fault = ["pointer", "rule", "detail"]
        .into_iter()
        .fold(explanation_fields(), |fault, name| {
            fault.property(name, text()).required(name)
        });
    let problem = ObjectBuilder::new()
        .property("type", doc_url())
        .property("title", text())
        .property("status", ObjectBuilder::new().schema_type(Type::Integer))
        .property("detail", text())
        .property("error_code", code())
        .property("errors", ArrayBuilder::new().items(fault))
        .property("patch", patch())
        .property(
            "patch_suffices",
            flag().description(Some(SUFFICES_DESCRIPTION)),
        )
        .property("retryable", retry_flag())
        .property("queue", component("Queue"))
        .property("request_id", text());
    let problem = [
        "type",
        "title",
        "status",
        "detail",
        "error_code",
        "request_id",
    ]
    .into_iter()
    .fold(problem, ObjectBuilder::required);
    [
        (FAILURE_SCHEMA_NAME, failure.build().into()),
        (PROBLEM_SCHEMA_NAME, problem.build().into()),
    ]
}

/// Returns the schema of the address of the page about an error code.
fn doc_url() -> ObjectBuilder {
    text().description(Some(
        "the page about the error code; without the setting `http.public_url` a path on this host",
    ))
}

const SUFFICES_DESCRIPTION: &str =
    "true if the body passes with the patch; absent where nobody could be asked";

/// Returns the schema of an explanation: one reason of a refusal.
fn explanation() -> ObjectBuilder {
    let path =
        text_or_null().description(Some("dot path; null where the words are about no field"));
    let rule = text().description(Some(
        "stable: programs decide by it; `authority` where the words are not understood",
    ));
    let reason = explanation_fields()
        .property("path", path)
        .property("rule", rule)
        .property("message", text());
    ["path", "rule", "expected", "actual", "message", "source"]
        .into_iter()
        .fold(reason, ObjectBuilder::required)
}

/// Returns the fields that an explanation has in both formats of a failure.
fn explanation_fields() -> ObjectBuilder {
    let actual = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
    ObjectBuilder::new()
        .property("expected", text_or_null())
        .property(
            "actual",
            actual.description(Some("the value that was sent, shortened; null if none was")),
        )
        .property(
            "source",
            text().enum_values(Some(["authority", "einvoice"])),
        )
        .property(
            "authority_message",
            text().description(Some("the authority's own words")),
        )
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn flag() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean)
}

/// Returns the schema of `retryable`, which says whether the same call may succeed later.
fn retry_flag() -> ObjectBuilder {
    flag().description(Some("true if the same call may succeed later"))
}

fn text_or_null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]))
}

/// Returns the schema of an RFC 6902 patch that corrects the received body.
fn patch() -> ArrayBuilder {
    let description = "an operation of RFC 6902, and why it is safe";
    let operation = ObjectBuilder::new()
        .description(Some(description))
        .property(
            "op",
            text().enum_values(Some(["add", "remove", "replace", "move"])),
        )
        .property("path", text())
        .property("from", text())
        .property(
            "value",
            ObjectBuilder::new().schema_type(SchemaType::AnyValue),
        )
        .property("why", text());
    let operation = ["op", "path", "why"]
        .into_iter()
        .fold(operation, ObjectBuilder::required);
    ArrayBuilder::new().items(operation)
}

pub(super) fn component(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}
