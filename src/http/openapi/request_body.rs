//! The request body of an operation: the form that reads it, its example and its media types.

use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{ContentBuilder, Required};

use crate::http::forms::form_schema::FormSchema;
use crate::http::forms::reader::Reader;
use crate::http::openapi::operation_doc::{JSON_MEDIA_TYPE, OperationDoc};
use crate::http::openapi::{body_schema, schema};
use crate::http::respond::code::ErrorCode;

/// The error codes of an operation that reads a body, in addition to those of every operation.
const BODY_ERROR_CODES: [ErrorCode; 5] = [
    ErrorCode::MalformedJson,
    ErrorCode::RequestTimeout,
    ErrorCode::PayloadTooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::ValidationFailed,
];

/// The end of the name of each schema of a request body.
pub(super) const BODY_SCHEMA_SUFFIX: &str = "Request";

/// Returns the name of the schema of a request body: `CreateInvoiceRequest` for `create_invoice`.
pub(super) fn body_schema_name(operation: &str) -> String {
    let words = operation.split('_').filter(|word| !word.is_empty());
    let name: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        })
        .collect();
    name + BODY_SCHEMA_SUFFIX
}

impl OperationDoc {
    /// Adds a request body: the form that reads the body, and an example that the form accepts.
    pub(crate) fn with_body<T>(
        self,
        form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
        example: &str,
    ) -> Self {
        let example = strict_json::from_trusted(example).unwrap_or_default();
        let form = FormSchema::for_form(form);
        let mut components = self.components;
        let schema = body_schema::form_schema(&form);
        components.push((body_schema_name(self.name), schema.into()));
        Self {
            body: Some((form, example)),
            components,
            ..self
        }
        .with_errors(&BODY_ERROR_CODES)
    }

    /// Adds a request body that callers may leave out.
    pub(crate) fn with_optional_body<T>(
        self,
        form: impl FnOnce(&mut Reader<'_>) -> Option<T>,
        example: &str,
    ) -> Self {
        Self {
            is_body_optional: true,
            ..self.with_body(form, example)
        }
    }

    /// Documents that the request body may also be a file of one of these media types, instead of JSON.
    pub(crate) fn with_body_files(self, body_file_types: &'static [&'static str]) -> Self {
        Self {
            body_file_types,
            ..self
        }
    }

    /// Returns the request body for the document; `None` if the operation takes none.
    pub(super) fn request_body(&self) -> Option<RequestBody> {
        let (_, example) = self.body.as_ref()?;
        let content = ContentBuilder::new()
            .schema(Some(schema::component(&body_schema_name(self.name))))
            .example(Some(example.clone()))
            .build();
        let required = if self.is_body_optional {
            Required::False
        } else {
            Required::True
        };
        let body = RequestBodyBuilder::new()
            .content(JSON_MEDIA_TYPE, content)
            .description(self.body_note)
            .required(Some(required));
        let body = self.body_file_types.iter().fold(body, |body, media_type| {
            let file = schema::file(media_type);
            let file = if media_type.starts_with("multipart/") {
                let form = ObjectBuilder::new().schema_type(Type::Object);
                form.property("file", file).required("file")
            } else {
                file
            };
            let content = ContentBuilder::new().schema(Some(Schema::from(file.build())));
            body.content(*media_type, content.build())
        });
        Some(body.build())
    }
}
