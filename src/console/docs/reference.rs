//! The reference: a list of all operations, and a page for each.

use std::future::{Ready, ready};

use actix_web::web;
use askama::Template;

use crate::console::docs::command::curl_command;
use crate::console::docs::docs_frame::{REFERENCE, docs_frame};
use crate::console::docs::operations::{self, ApiPart, Operation, is_failure, text_member};
use crate::console::docs::schema_rows::{FieldRow, field_rows};
use crate::console::frame::Frame;
use crate::console::page::{Answer, show};
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/docs/reference").page(list_operations),
        path("/docs/reference/{operation}").page(show_operation),
    ]
}

#[derive(Template)]
#[template(path = "docs/reference.html")]
struct ReferencePage {
    frame: Frame,
    parts: Vec<ApiPart>,
}

#[derive(Template)]
#[template(path = "docs/operation.html")]
struct OperationPage {
    frame: Frame,
    operation: Operation,
    keys: Vec<&'static str>,
    parameters: Vec<Parameter>,
    fields: Vec<FieldRow>,
    command: String,
    answers: Vec<PlainAnswer>,
    failures: Vec<(&'static str, &'static str)>,
}

/// A parameter of a path, a query string or a header.
struct Parameter {
    name: &'static str,
    location: &'static str,
    description: &'static str,
}

/// An answer of an operation that has no error code: a success, or the report of a service that is not ready.
struct PlainAnswer {
    status: &'static str,
    /// The class that colours the status: `ok` or `bad`.
    class: &'static str,
    message: &'static str,
    /// The media types between which the caller may choose.
    media_types: String,
    fields: Vec<FieldRow>,
    /// The example as JSON; empty if there is none.
    example: String,
}

/// GET /docs/reference: lists all operations.
fn list_operations() -> Ready<Answer> {
    ready(show(&ReferencePage {
        frame: docs_frame(REFERENCE, REFERENCE),
        parts: operations::api_parts(),
    }))
}

/// GET /docs/reference/{operation}: shows one operation.
fn show_operation(id: web::Path<String>) -> Ready<Answer> {
    let Some(operation) = operations::find_by_id(&id.into_inner()) else {
        return ready(Err(ApiError::route_not_found()));
    };
    let body = operation.json_body();
    ready(show(&OperationPage {
        frame: docs_frame(operation.summary, REFERENCE),
        operation,
        keys: operation
            .key_schemes()
            .into_iter()
            .map(describe_key)
            .collect(),
        parameters: parameters(&operation),
        fields: body.map_or_else(Vec::new, |body| field_rows(&body["schema"])),
        command: curl_command(&operation),
        answers: answers(&operation),
        failures: operation.failures().collect(),
    }))
}

fn describe_key(scheme: &str) -> &'static str {
    match scheme {
        "taxpayer_key" => "taxpayer's key tpk_…",
        "integrator_key" => "integrator's key sik_…",
        _ => "operator's key opk_…",
    }
}

fn parameters(operation: &Operation) -> Vec<Parameter> {
    let all = operation.parameters().iter();
    all.map(|parameter| Parameter {
        name: text_member(parameter, "name"),
        location: text_member(parameter, "in"),
        description: text_member(parameter, "description"),
    })
    .collect()
}

/// Returns the answers that have no error code. The fields of a body that several statuses share are shown only once.
fn answers(operation: &Operation) -> Vec<PlainAnswer> {
    let answers_without_code = operation
        .answers()
        .filter(|(_, answer)| !is_failure(answer));
    let mut shown_schemas = Vec::new();
    let mut answers = Vec::new();
    for (status, answer) in answers_without_code {
        let content = answer["content"].as_object();
        let media_types = content.into_iter().flatten().map(|(name, _)| name.as_str());
        let schema = answer.pointer("/content/application~1json/schema");
        let example = answer.pointer("/content/application~1json/example");
        let body = schema.filter(|schema| !shown_schemas.contains(schema));
        shown_schemas.extend(body);
        answers.push(PlainAnswer {
            status,
            class: if status.starts_with('5') { "bad" } else { "ok" },
            message: text_member(answer, "description"),
            media_types: media_types.collect::<Vec<_>>().join(", "),
            fields: body.map_or_else(Vec::new, field_rows),
            example: example.map_or_else(String::new, |example| format!("{example:#}")),
        });
    }
    answers
}
