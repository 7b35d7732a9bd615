//! Builds the API document from the documentation of every path.

use serde_json::Value;
use utoipa::openapi::path::Paths;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Server,
};

use crate::domain::events::event::EventKind;
use crate::http::openapi::glossary::describe_properties;
use crate::http::openapi::nested_objects::name_nested_objects;
use crate::http::openapi::operation::{Operation, SCHEMES};
use crate::http::openapi::{recorded_examples, response_headers, schema, trying, webhooks};

const DESCRIPTION: &str = "A relay between taxpayers, the integrators that act for them, and the tax authority. \
    Answers are wrapped: `{ success, message, data }`; failures carry `error_code` and, where fields are at \
    fault, `errors` by dot path. Who sends `Accept: application/problem+json` gets failures as RFC 9457 has them. \
    What is odd but accepted is named in `x-system-warning`. Every answer carries `x-request-id`.";

/// A part of the API. The document groups the operations by these parts.
pub(crate) struct Tag {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) operations: Vec<Operation>,
}

/// Returns the API document as JSON text.
pub(crate) fn text(tags: Vec<Tag>, example_message: fn(EventKind) -> Value) -> String {
    let document = build_document(tags, webhooks::webhooks(example_message));
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

fn build_document(tags: Vec<Tag>, webhooks: Paths) -> OpenApi {
    let license = LicenseBuilder::new()
        .name(env!("CARGO_PKG_LICENSE"))
        .identifier(Some(env!("CARGO_PKG_LICENSE")));
    let info = InfoBuilder::new()
        .title("einvoice")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(format!(
            "{DESCRIPTION}\n\n{}",
            trying::magic_words_section()
        )))
        .contact(Some(ContactBuilder::new().name(Some("einvoice")).build()))
        .license(Some(license.build()));
    let tag_descriptions: Vec<_> = tags
        .iter()
        .map(|tag| {
            TagBuilder::new()
                .name(tag.name)
                .description(Some(tag.purpose))
                .build()
        })
        .collect();
    let mut paths = Paths::new();
    let mut components = ComponentsBuilder::new().schemas_from_iter(schema::failures());
    for (name, _, description) in SCHEMES {
        let key = ApiKey::Header(ApiKeyValue::with_description("x-api-key", description));
        components = components.security_scheme(name, SecurityScheme::ApiKey(key));
    }
    for tag in tags {
        for mut operation in tag.operations {
            components =
                components.schemas_from_iter(std::mem::take(&mut operation.doc.components));
            for (method, entry) in operation.build_for_each_method(tag.name) {
                paths.add_path_operation(operation.path, vec![method], entry);
            }
        }
    }
    for (name, header) in response_headers::components() {
        components = components.header(name, header);
    }
    for (code, example) in recorded_examples::failure_examples() {
        components = components.example(code, example);
    }
    let mut components = components.build();
    name_nested_objects(&mut components.schemas);
    for (name, schema) in &mut components.schemas {
        describe_properties(schema, name);
    }
    let servers = [Server::new("/")];
    OpenApiBuilder::new()
        .info(info.build())
        .servers(Some(servers))
        .tags(Some(tag_descriptions))
        .paths(paths)
        .webhooks(Some(webhooks))
        .components(Some(components))
        .build()
}
