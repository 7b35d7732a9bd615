//! One operation of the API document. It is built from the path's documentation and from what
//! the route table says about the path: its methods, its keys and the operator role that it needs.

use std::collections::BTreeMap;

use utoipa::openapi::path::{HttpMethod, OperationBuilder};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, Ref, ResponseBuilder, Responses, ResponsesBuilder};

use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::OperatorRole;
use crate::http::openapi::operation_doc::{JSON_MEDIA_TYPE, OperationDoc};
use crate::http::openapi::parameter;
use crate::http::openapi::recorded_examples::{answer_example, example_references};
use crate::http::openapi::response_headers::{HeaderFacts, failure_headers, success_headers};
use crate::http::openapi::schema::{self, FAILURE_SCHEMA_NAME, PROBLEM_SCHEMA_NAME};
use crate::http::respond::code::ErrorCode;

/// The security schemes of the API document: the name, the kind of API key and the description.
pub(super) const SCHEMES: [(&str, KeyKind, &str); 3] = [
    ("taxpayer_key", KeyKind::Taxpayer, "A taxpayer's key, tpk_…"),
    (
        "integrator_key",
        KeyKind::Integrator,
        "An integrator's key, sik_…",
    ),
    (
        "operator_key",
        KeyKind::Operator,
        "An operator's key, opk_…",
    ),
];

/// The description of the response 304.
const UNCHANGED: &str = "No body: the answer is still the one whose ETag is in If-None-Match";

/// An operation of the API document: the documentation of its path, and the pattern, methods and keys from the table of paths.
pub(crate) struct Operation {
    pub(crate) path: &'static str,
    /// The HTTP methods that the operation accepts. The first one is the main method.
    pub(crate) methods: Vec<HttpMethod>,
    /// The kinds of API keys that the operation accepts. If the list is empty, the operation needs no key.
    pub(crate) keys: &'static [KeyKind],
    /// The error codes of a call that lacks an accepted key.
    pub(crate) key_error_codes: Vec<ErrorCode>,
    /// The lowest operator role that may call the operation; `None` if operator roles do not matter for it.
    pub(crate) least_role: Option<OperatorRole>,
    pub(crate) doc: OperationDoc,
}

impl Operation {
    /// Returns the main method and the path of the operation.
    #[cfg(test)]
    pub(super) fn method_and_path(&self) -> String {
        let method = self.methods.first().map(method_name).unwrap_or_default();
        format!("{} {}", method.to_uppercase(), self.path)
    }

    /// Builds the document's entry for each HTTP method of this operation. Each entry has an id of its own.
    pub(super) fn build_for_each_method(
        &self,
        tag: &'static str,
    ) -> Vec<(HttpMethod, utoipa::openapi::path::Operation)> {
        let mut built = Vec::with_capacity(self.methods.len());
        for (position, method) in self.methods.iter().enumerate() {
            let mut id = self.doc.name.to_owned();
            let mut summary = self.doc.summary.to_owned();
            if position > 0 {
                let word = method_name(method);
                id = format!("{id}_by_{word}");
                summary = format!("{summary} (by {})", word.to_uppercase());
            }
            let operation = self
                .operation(tag, method)
                .operation_id(Some(id))
                .summary(Some(summary));
            built.push((method.clone(), operation.build()));
        }
        built
    }

    /// Returns the note of the operation, with the role that an operator needs.
    fn description(&self) -> Option<String> {
        let role = self.least_role.map(|role| match role {
            OperatorRole::Viewer => "An operator of any role may do this.",
            OperatorRole::Operator => "Needs an operator with the role operator or admin.",
            OperatorRole::Admin => "Needs an operator with the role admin.",
        });
        let parts: Vec<_> = self.doc.note.into_iter().chain(role).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    fn operation(&self, tag: &'static str, method: &HttpMethod) -> OperationBuilder {
        let optional_key = self.doc.optional_key;
        let schemes = SCHEMES
            .iter()
            .filter(|(_, kind, _)| self.keys.contains(kind) || optional_key == Some(*kind));
        let securities =
            schemes.map(|(name, ..)| SecurityRequirement::new::<_, [&str; 0], &str>(*name, []));
        // The empty requirement says that the call may do without a key.
        let without_key = optional_key.map(|_| SecurityRequirement::default());
        let securities = without_key.into_iter().chain(securities);
        let parameters =
            parameter::path_parameters(self.path).chain(self.doc.parameters.iter().cloned());
        let has_entity_tag = self.header_facts(200, method).has_entity_tag();
        let parameters = parameters.chain(has_entity_tag.then(parameter::if_none_match));
        OperationBuilder::new()
            .description(self.description())
            .tag(tag)
            .securities(Some(securities))
            .parameters(Some(parameters))
            .request_body(self.doc.request_body())
            .responses(self.responses(method))
    }

    /// Adds to the response 200 the media types of the files that callers may ask for, with `Accept`, instead of JSON.
    fn add_file_types(&self, status: u16, response: ResponseBuilder) -> ResponseBuilder {
        if status != 200 {
            return response;
        }
        let media_types = self.doc.answer_file_types.iter();
        media_types.fold(response, |response, media_type| {
            let file = ContentBuilder::new().schema(Some(schema::file(media_type)));
            response.content(*media_type, file.build())
        })
    }

    fn header_facts(&self, status: u16, method: &HttpMethod) -> HeaderFacts<'_> {
        HeaderFacts {
            path: self.path,
            status,
            is_keyed: !self.keys.is_empty(),
            is_read: *method == HttpMethod::Get,
            is_duplicate: self.doc.has_duplicates && status == 200,
            parameters: &self.doc.parameters,
        }
    }

    fn responses(&self, method: &HttpMethod) -> Responses {
        let answers = self
            .doc
            .answers
            .iter()
            .map(|(status, (message, media_type, schema))| {
                let content = ContentBuilder::new()
                    .schema(Some(schema.clone()))
                    .example(answer_example(self.doc.name, *status))
                    .build();
                let response = ResponseBuilder::new()
                    .description(message)
                    .content(*media_type, content);
                let facts = self.header_facts(*status, method);
                let response = add_headers(response, success_headers(facts));
                (status.to_string(), self.add_file_types(*status, response))
            });
        let facts = self.header_facts(304, method);
        let unchanged = facts.has_entity_tag().then(|| {
            let response = ResponseBuilder::new().description(UNCHANGED);
            let response = add_headers(response, success_headers(facts));
            ("304".to_owned(), response)
        });
        let mut failures: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
        let restricted_role = self.least_role.filter(|role| *role > OperatorRole::Viewer);
        for code in self
            .key_error_codes
            .iter()
            .chain(restricted_role.map(|_| &ErrorCode::RoleInsufficient))
        {
            failures
                .entry(code.status().as_u16())
                .or_default()
                .push(*code);
        }
        for (status, codes) in &self.doc.failures {
            failures.entry(*status).or_default().extend(codes);
        }
        let invalid = ErrorCode::ValidationFailed;
        let invalid_status = self.doc.invalid_status().as_u16();
        for (_, codes) in failures
            .iter_mut()
            .filter(|(status, _)| **status != invalid_status)
        {
            codes.retain(|code| *code != invalid);
        }
        // A parameter that is given twice is an invalid request, so every operation with a query string has this error.
        let codes = failures.entry(invalid_status).or_default();
        if self.doc.has_query() && !codes.contains(&invalid) {
            codes.push(invalid);
        }
        // A status keeps the answer that the operation documents for it, if there is one. For example, the 503 of a
        // service that is not ready has no error code.
        let own_answers = &self.doc.answers;
        failures.retain(|status, codes| !codes.is_empty() && !own_answers.contains_key(status));
        let failures = failures.iter().map(|(status, codes)| {
            let response = failure_response(codes);
            let response = add_headers(response, failure_headers(*status, codes));
            (status.to_string(), response)
        });
        let responses = answers
            .chain(unchanged)
            .chain(failures)
            .map(|(status, response)| (status, response.build()));
        ResponsesBuilder::new()
            .responses_from_iter(responses)
            .build()
    }
}

fn add_headers(
    response: ResponseBuilder,
    headers: impl Iterator<Item = (&'static str, Ref)>,
) -> ResponseBuilder {
    headers.fold(response, |response, (name, header)| {
        response.header_ref(name, header)
    })
}

fn failure_response(codes: &[ErrorCode]) -> ResponseBuilder {
    let code_names: Vec<_> = codes.iter().map(|code| code.as_str()).collect();
    let content = |name| ContentBuilder::new().schema(Some(schema::component(name)));
    let envelope = content(FAILURE_SCHEMA_NAME).examples_from_iter(example_references(codes));
    ResponseBuilder::new()
        .description(code_names.join(", "))
        .content(JSON_MEDIA_TYPE, envelope.build())
        .content(
            "application/problem+json",
            content(PROBLEM_SCHEMA_NAME).build(),
        )
}

fn method_name(method: &HttpMethod) -> &'static str {
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
