//! One operation of the API: its key, its request, its responses and its failures. Parts common to all operations are
//! added here, so that a line of a table holds only its own.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Parameter};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, RefOr, Required, ResponseBuilder, Responses, ResponsesBuilder};

use crate::http::forms::form_schema::FormSchema;
use crate::http::openapi::parameter;
use crate::http::openapi::schema::{self, FAILURE, PROBLEM};
use crate::http::respond::code::ErrorCode;

/// The kind of key that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequiredKey {
    Nobody,
    Taxpayer,
    Integrator,
    /// A taxpayer's or an integrator's key.
    Either,
    Operator,
}

/// The security schemes of the document, each with its description.
pub(super) const SCHEMES: [(&str, &str); 3] = [
    ("taxpayer_key", "A taxpayer's key, tpk_…"),
    ("integrator_key", "An integrator's key, sik_…"),
    ("operator_key", "An operator's key, opk_…"),
];

impl RequiredKey {
    fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Nobody => &[],
            Self::Taxpayer => &["taxpayer_key"],
            Self::Integrator => &["integrator_key"],
            Self::Either => &["taxpayer_key", "integrator_key"],
            Self::Operator => &["operator_key"],
        }
    }

    fn failures(self) -> &'static [ErrorCode] {
        match self {
            Self::Nobody => &[],
            Self::Taxpayer | Self::Integrator | Self::Operator => {
                &[ErrorCode::Unauthenticated, ErrorCode::InvalidApiKey]
            }
            Self::Either => &[ErrorCode::Unauthenticated, ErrorCode::KeyNotRecognized],
        }
    }
}

const JSON: &str = "application/json";

/// Failures of every operation, and of every operation that reads a body.
const ANY: [ErrorCode; 3] = [ErrorCode::RateLimited, ErrorCode::InternalError, ErrorCode::Overloaded];
const BODY: [ErrorCode; 5] = [
    ErrorCode::MalformedJson,
    ErrorCode::RequestTimeout,
    ErrorCode::PayloadTooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::ValidationFailed,
];

/// A line of a table.
pub(super) struct OperationDoc {
    pub(super) path: &'static str,
    methods: Vec<HttpMethod>,
    name: &'static str,
    pub(super) summary: &'static str,
    note: Option<&'static str>,
    key: RequiredKey,
    parameters: Vec<Parameter>,
    pub(super) body: Option<(FormSchema, Value)>,
    body_may_be_absent: bool,
    answers: BTreeMap<u16, (String, &'static str, Schema)>,
    failures: BTreeMap<u16, Vec<ErrorCode>>,
    /// The schemas that its answers refer to.
    pub(super) components: Vec<(String, RefOr<Schema>)>,
}

impl OperationDoc {
    /// Creates an operation. `name` is its id: the name of its handler.
    pub(super) fn new(
        method: HttpMethod,
        path: &'static str,
        name: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            path,
            methods: vec![method],
            name,
            summary,
            note: None,
            key: RequiredKey::Nobody,
            parameters: Vec::new(),
            body: None,
            body_may_be_absent: false,
            answers: BTreeMap::new(),
            failures: BTreeMap::new(),
            components: Vec::new(),
        }
        .fails(&ANY)
    }

    /// Adds other methods that do the same.
    pub(super) fn also(mut self, methods: impl IntoIterator<Item = HttpMethod>) -> Self {
        self.methods.extend(methods);
        self
    }

    pub(super) fn by(self, key: RequiredKey) -> Self {
        Self { key, ..self }.fails(key.failures())
    }

    pub(super) fn noted(self, note: &'static str) -> Self {
        Self { note: Some(note), ..self }
    }

    /// Adds a parameter of the query string. All of them are optional.
    pub(super) fn query(
        mut self,
        name: &'static str,
        kind: parameter::QueryKind,
        what: &'static str,
    ) -> Self {
        self.parameters.push(parameter::query(name, kind, what));
        self
    }

    /// Adds a body, with the form that reads it and an example that the form accepts.
    pub(super) fn takes(self, form: FormSchema, example: &str) -> Self {
        let example = strict_json::from_trusted(example).unwrap_or_default();
        Self { body: Some((form, example)), ..self }.fails(&BODY)
    }

    /// Adds a body that may be absent.
    pub(super) fn may_take(self, form: FormSchema, example: &str) -> Self {
        Self { body_may_be_absent: true, ..self.takes(form, example) }
    }

    /// Adds the `Idempotency-Key` header to a write, which is carried out once per key.
    pub(super) fn writes(mut self) -> Self {
        self.parameters.push(parameter::idempotency_key());
        self.fails(&[ErrorCode::IdempotencyKeyReused, ErrorCode::IdempotencyInProgress])
    }

    pub(super) fn gives_or_null<T: ToSchema>(mut self, status: u16, message: &str) -> Self {
        let data =
            OneOfBuilder::new().item(self.refer::<T>()).item(ObjectBuilder::new().schema_type(Type::Null));
        self.shows(status, message, schema::envelope(Schema::from(data.build())))
    }

    pub(super) fn gives<T: ToSchema>(mut self, status: u16, message: &str) -> Self {
        let data = self.refer::<T>();
        self.shows(status, message, schema::envelope(data))
    }

    /// Adds a response with a page of a list.
    pub(super) fn gives_page<T: ToSchema>(mut self, message: &str) -> Self {
        let item = self.refer::<T>();
        self.shows(200, message, schema::envelope(schema::page(item)))
    }

    /// Adds a response of any shape. Responses with the same status share one shape and differ by their message.
    pub(super) fn shows(mut self, status: u16, message: &str, schema: Schema) -> Self {
        let answer = self.answers.entry(status).or_insert((String::new(), JSON, schema));
        let slash = if answer.0.is_empty() { "" } else { " / " };
        answer.0 = format!("{}{slash}{message}", answer.0);
        self
    }

    /// Adds a response that is not JSON.
    pub(super) fn shows_text(mut self, status: u16, message: &str, kind: &'static str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String).build().into();
        self.answers.insert(status, (message.to_owned(), kind, schema));
        self
    }

    /// Adds a view to the components, and returns a reference to it.
    pub(super) fn refer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let name = T::name().into_owned();
        T::schemas(&mut self.components);
        self.components.push((name.clone(), T::schema()));
        schema::component(&name)
    }

    pub(super) fn fails(mut self, codes: &[ErrorCode]) -> Self {
        for code in codes {
            self.failures.entry(code.status().as_u16()).or_default().push(*code);
        }
        self
    }

    /// Adds failures that have another status here than elsewhere.
    pub(super) fn fails_with(mut self, status: u16, codes: &[ErrorCode]) -> Self {
        self.failures.entry(status).or_default().extend(codes);
        self
    }

    /// Returns its first method and its path.
    #[cfg(test)]
    pub(super) fn place(&self) -> String {
        let method = self.methods.first().map(word).unwrap_or_default();
        format!("{} {}", method.to_uppercase(), self.path)
    }

    /// Returns one operation for each of its methods, each with its own id.
    pub(super) fn build(&self, tag: &'static str) -> Vec<(HttpMethod, utoipa::openapi::path::Operation)> {
        let named = |(place, method): (usize, &HttpMethod)| {
            let (mut id, mut summary) = (self.name.to_owned(), self.summary.to_owned());
            if place > 0 {
                let word = word(method);
                id = format!("{id}_by_{word}");
                summary = format!("{summary} (by {})", word.to_uppercase());
            }
            let operation = self.operation(tag).operation_id(Some(id)).summary(Some(summary));
            (method.clone(), operation.build())
        };
        self.methods.iter().enumerate().map(named).collect()
    }

    fn operation(&self, tag: &'static str) -> OperationBuilder {
        let securities = self
            .key
            .schemes()
            .iter()
            .map(|scheme| SecurityRequirement::new::<_, [&str; 0], &str>(*scheme, []));
        let parameters = parameter::of_path(self.path).chain(self.parameters.iter().cloned());
        let required = if self.body_may_be_absent { Required::False } else { Required::True };
        let body = self.body.as_ref().map(|(form, example)| {
            let content =
                ContentBuilder::new().schema(Some(schema::object_of(form))).example(Some(example.clone()));
            RequestBodyBuilder::new()
                .content("application/json", content.build())
                .required(Some(required))
                .build()
        });
        OperationBuilder::new()
            .description(self.note)
            .tag(tag)
            .securities(Some(securities))
            .parameters(Some(parameters))
            .request_body(body)
            .responses(self.responses())
    }

    fn responses(&self) -> Responses {
        let answers = self.answers.iter().map(|(status, (message, kind, schema))| {
            let content = ContentBuilder::new().schema(Some(schema.clone())).build();
            (status.to_string(), ResponseBuilder::new().description(message).content(*kind, content))
        });
        let failures = self.failures.iter().map(|(status, codes)| (status.to_string(), failure(codes)));
        let all = answers.chain(failures).map(|(status, response)| (status, response.build()));
        ResponsesBuilder::new().responses_from_iter(all).build()
    }
}

fn failure(codes: &[ErrorCode]) -> ResponseBuilder {
    let named: Vec<_> = codes.iter().map(|code| code.as_str()).collect();
    let content = |name| ContentBuilder::new().schema(Some(schema::component(name))).build();
    ResponseBuilder::new()
        .description(named.join(", "))
        .content(JSON, content(FAILURE))
        .content("application/problem+json", content(PROBLEM))
}

fn word(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "get",
        HttpMethod::Post => "post",
        HttpMethod::Put => "put",
        HttpMethod::Patch => "patch",
        HttpMethod::Delete => "delete",
        HttpMethod::Options => "options",
        HttpMethod::Head => "head",
        HttpMethod::Trace => "trace",
    }
}
