//! The documentation that a path gives for its operation: summary, parameters, body, answers and errors. This file
//! adds the facts that all operations share, so a path documents only what is special about it.

use std::collections::BTreeMap;

use actix_web::http::StatusCode;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::domain::access::caller::KeyKind;
use crate::http::forms::form_schema::FormSchema;
use crate::http::openapi::parameter::{self, QueryType};
use crate::http::openapi::schema;
use crate::http::openapi::view_schemas::view_schemas;
use crate::http::respond::code::ErrorCode;

pub(super) const JSON_MEDIA_TYPE: &str = "application/json";

/// Error codes of every operation. An operation that reads a body has more (`request_body`).
const COMMON_ERROR_CODES: [ErrorCode; 3] = [
    ErrorCode::RateLimited,
    ErrorCode::InternalError,
    ErrorCode::Overloaded,
];
/// The documentation that a path gives for an operation.
pub(crate) struct OperationDoc {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) note: Option<&'static str>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<(FormSchema, Value)>,
    pub(super) is_body_optional: bool,
    /// A rule about the fields of the request body that no schema can express.
    pub(super) body_note: Option<&'static str>,
    /// The media types of files that the operation accepts as its request body, in addition to JSON.
    pub(super) body_file_types: &'static [&'static str],
    pub(super) answers: BTreeMap<u16, (String, &'static str, Schema)>,
    /// The media types of the files that callers may ask for, with `Accept`, instead of the JSON of the response 200.
    pub(super) answer_file_types: &'static [&'static str],
    pub(super) failures: BTreeMap<u16, Vec<ErrorCode>>,
    /// The kind of API key that a setting may require; `None` if the policy of the path alone decides.
    pub(super) optional_key: Option<KeyKind>,
    /// True if the response 200 shows an invoice that was stored before.
    pub(super) has_duplicates: bool,
    /// The schemas that the responses of the operation refer to, by name.
    pub(super) components: Vec<(String, RefOr<Schema>)>,
}

/// Starts the documentation of an operation. `name` becomes the operation id in the API document.
pub(crate) fn doc(name: &'static str, summary: &'static str) -> OperationDoc {
    let doc = OperationDoc {
        name,
        summary,
        note: None,
        parameters: Vec::new(),
        body: None,
        is_body_optional: false,
        body_note: None,
        body_file_types: &[],
        answers: BTreeMap::new(),
        answer_file_types: &[],
        failures: BTreeMap::new(),
        optional_key: None,
        has_duplicates: false,
        components: Vec::new(),
    };
    doc.with_errors(&COMMON_ERROR_CODES)
}

/// Returns the example of a request body: the text of the file with this name in `src/http/openapi/examples`.
macro_rules! example {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/http/openapi/examples/",
            $name,
            ".json"
        ))
    };
}
pub(crate) use example;

/// Returns the documentation of a file of an invoice. A caller that already has the current file gets 304.
pub(crate) fn invoice_file(
    name: &'static str,
    summary: &'static str,
    media_type: &'static str,
) -> OperationDoc {
    let message = "The file, with its `ETag`";
    let file = if media_type == JSON_MEDIA_TYPE {
        doc(name, summary).with_schema_response(200, message, schema::object())
    } else {
        doc(name, summary).with_non_json_response(200, message, media_type)
    };
    file.with_note(
        "With its `ETag` in `If-None-Match`, a file that has \
         not changed is answered with 304.",
    )
    .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::ValidationFailed])
}

impl OperationDoc {
    pub(crate) fn with_note(self, note: &'static str) -> Self {
        Self {
            note: Some(note),
            ..self
        }
    }

    /// Adds an optional parameter of the query string.
    pub(crate) fn query(self, name: &'static str, meaning: &'static str) -> Self {
        self.parameter(parameter::query(name, QueryType::Text, meaning))
    }

    /// Adds an optional parameter of the query string that must be one of the words that `allowed` lists.
    pub(crate) fn query_word(
        self,
        name: &'static str,
        allowed: fn() -> String,
        meaning: &'static str,
    ) -> Self {
        self.parameter(parameter::query(name, QueryType::Word(allowed), meaning))
    }

    /// Adds an optional parameter of the query string that must be a whole number of at least `min`.
    pub(crate) fn query_number(self, name: &'static str, min: u8, meaning: &'static str) -> Self {
        self.parameter(parameter::query(name, QueryType::Whole(min), meaning))
    }

    /// Adds the parameters `page` and `per_page` of a list. The argument describes `per_page`.
    pub(crate) fn with_paging(self, per_page: &'static str) -> Self {
        self.parameter(parameter::query(
            "page",
            QueryType::Lenient,
            "from 1, the default",
        ))
        .parameter(parameter::query("per_page", QueryType::Lenient, per_page))
    }

    /// Adds the header `If-Match`: the invoice is changed only if it is still as the caller has read it.
    pub(crate) fn with_if_match(self) -> Self {
        self.parameter(parameter::if_match())
            .with_errors(&[ErrorCode::PreconditionFailed])
    }

    /// Documents that the response 200 shows a stored invoice, and that a header says whether the sent contents differ.
    pub(crate) fn with_duplicate_response(self) -> Self {
        Self {
            has_duplicates: true,
            ..self
        }
    }

    /// True if the operation has parameters in the query string.
    pub(super) fn has_query(&self) -> bool {
        self.parameters.iter().any(is_in_query)
    }

    /// Returns the names of the parameters of the query string.
    pub(crate) fn query_parameter_names(self) -> impl Iterator<Item = String> {
        self.parameters
            .into_iter()
            .filter(is_in_query)
            .map(|parameter| parameter.name)
    }

    pub(super) fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Adds the `Idempotency-Key` header and the errors that it can cause.
    pub(crate) fn with_idempotency_key(self) -> Self {
        self.parameter(parameter::idempotency_key()).with_errors(&[
            ErrorCode::IdempotencyKeyReused,
            ErrorCode::IdempotencyInProgress,
        ])
    }

    /// Adds a response that has the view `T` under `data`.
    pub(crate) fn with_response<T: ToSchema>(mut self, status: u16, message: &str) -> Self {
        let data = self.add_schema::<T>();
        self.with_schema_response(status, message, schema::envelope(data))
    }

    /// Adds a response that has the view `T`, or null, under `data`.
    pub(crate) fn with_nullable_response<T: ToSchema>(
        mut self,
        status: u16,
        message: &str,
    ) -> Self {
        let data = OneOfBuilder::new()
            .item(self.add_schema::<T>())
            .item(ObjectBuilder::new().schema_type(Type::Null));
        self.with_schema_response(
            status,
            message,
            schema::envelope(Schema::from(data.build())),
        )
    }

    /// Adds a response that has a complete list under `data`, without pages.
    pub(crate) fn with_list_response<T: ToSchema>(mut self, message: &str) -> Self {
        let items = ArrayBuilder::new().items(self.add_schema::<T>());
        self.with_schema_response(200, message, schema::envelope(items))
    }

    /// Adds a response as Submit has it (spec.md): the view is under `message`, and a sentence is under `data`.
    pub(crate) fn with_submit_response<T: ToSchema>(mut self, status: u16, message: &str) -> Self {
        let view = self.add_schema::<T>();
        let sentence = ObjectBuilder::new().schema_type(Type::String);
        self.with_schema_response(status, message, schema::success_schema(view, sentence))
    }

    /// Adds a response that has a page of a list under `data`.
    pub(crate) fn with_page_response<T: ToSchema>(mut self, message: &str) -> Self {
        let item = self.add_schema::<T>();
        self.with_schema_response(200, message, schema::envelope(schema::page(item)))
    }

    /// Adds a response. Several responses with the same status must have the same schema; their messages are joined.
    pub(crate) fn with_schema_response(
        mut self,
        status: u16,
        message: &str,
        schema: Schema,
    ) -> Self {
        let answer = self
            .answers
            .entry(status)
            .or_insert((String::new(), JSON_MEDIA_TYPE, schema));
        let slash = if answer.0.is_empty() { "" } else { " / " };
        answer.0 = format!("{}{slash}{message}", answer.0);
        self
    }

    /// Adds a response that is not JSON.
    pub(crate) fn with_non_json_response(
        mut self,
        status: u16,
        message: &str,
        media_type: &'static str,
    ) -> Self {
        let file = schema::file(media_type).build();
        self.answers
            .insert(status, (message.to_owned(), media_type, file.into()));
        self
    }

    /// Adds the media types of the files that callers may ask for instead of the JSON of the response 200.
    pub(crate) fn with_answer_files(self, answer_file_types: &'static [&'static str]) -> Self {
        Self {
            answer_file_types,
            ..self
        }
    }

    /// Adds schemas to the components of the document, for a response whose view refers to them.
    pub(crate) fn with_components(mut self, schemas: Vec<(String, RefOr<Schema>)>) -> Self {
        self.components.extend(schemas);
        self
    }

    /// Adds the schema of a view to the components of the document. Returns a reference to it.
    fn add_schema<T: ToSchema>(&mut self) -> RefOr<Schema> {
        self.components.extend(view_schemas::<T>());
        schema::component(&T::name())
    }

    /// Adds error codes with their usual statuses. Codes of calls to the authority or to a webhook also get 503, the
    /// status of a service that was started with `--paused`.
    pub(crate) fn with_errors(mut self, codes: &[ErrorCode]) -> Self {
        for code in codes {
            self.failures
                .entry(code.status().as_u16())
                .or_default()
                .push(*code);
            if matches!(
                code,
                ErrorCode::AuthorityUnavailable | ErrorCode::WebhookUnreachable
            ) {
                self.failures.entry(503).or_default().push(*code);
            }
        }
        self
    }

    /// Adds error codes that have this status in this operation instead of their usual status.
    pub(crate) fn with_errors_at(mut self, status: u16, codes: &[ErrorCode]) -> Self {
        self.failures.entry(status).or_default().extend(codes);
        self
    }

    /// Marks an operation for which a setting decides whether it requires a key of this kind or no key.
    pub(crate) fn with_optional_key(mut self, kind: KeyKind) -> Self {
        self.optional_key = Some(kind);
        self.with_errors(&[ErrorCode::Unauthenticated, ErrorCode::InvalidApiKey])
    }

    /// Returns the status of the answer to an invalid field or parameter: 400 if documented for it, otherwise the usual
    /// status.
    pub(crate) fn invalid_status(&self) -> StatusCode {
        let invalid = ErrorCode::ValidationFailed;
        match self.failures.get(&StatusCode::BAD_REQUEST.as_u16()) {
            Some(codes) if codes.contains(&invalid) => StatusCode::BAD_REQUEST,
            _ => invalid.status(),
        }
    }
}

fn is_in_query(parameter: &Parameter) -> bool {
    matches!(parameter.parameter_in, ParameterIn::Query)
}
