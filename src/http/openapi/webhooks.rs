//! The `webhooks` of the API document: the message of each event, as a webhook endpoint receives it.

use std::iter;

use serde_json::Value;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, Paths};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, Required, ResponseBuilder};

use crate::domain::events::event::EventKind;
use crate::http::openapi::event_schemas::{event_description, message_schema_name};
use crate::http::openapi::operation_doc::JSON_MEDIA_TYPE;
use crate::http::openapi::schema::component;

/// Returns the webhooks of all events, each with its example.
pub(super) fn webhooks(example_message: fn(EventKind) -> Value) -> Paths {
    EventKind::ALL.iter().fold(Paths::new(), |paths, kind| {
        add_event(paths, *kind, example_message(*kind))
    })
}

fn add_event(mut paths: Paths, kind: EventKind, example: Value) -> Paths {
    let schema = component(&message_schema_name(kind));
    let content = ContentBuilder::new()
        .schema(Some(schema))
        .example(Some(example))
        .build();
    let body = RequestBodyBuilder::new()
        .content(JSON_MEDIA_TYPE, content)
        .required(Some(Required::True));
    let success = ResponseBuilder::new().description(
        "Any 2xx takes the message. Anything else, or none in time, has it sent again",
    );
    let name = kind.as_str().replace(['.', '-'], "_");
    let description = event_description(kind);
    let operation = OperationBuilder::new()
        .operation_id(Some(format!("on_{name}")))
        .summary(description.split_inclusive('.').next())
        .description(Some(description))
        // A message is signed; it carries no key.
        .securities(Some(iter::empty::<SecurityRequirement>()))
        .request_body(Some(body.build()))
        .response("200", success.build());
    paths.add_path_operation(kind.as_str(), vec![HttpMethod::Post], operation.build());
    paths
}
