//! The whole document, built once per process from the tables of the API's parts.

use std::sync::OnceLock;

use utoipa::openapi::path::Paths;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Server};

use crate::http::openapi::operation::{OperationDoc, SCHEMES};
use crate::http::openapi::{app, core, ops, schema, system_integrators, tax_payers, trying};

const DESCRIPTION: &str = "A relay between taxpayers, the integrators that act for them, and the tax authority. \
    Answers are wrapped: `{ success, message, data }`; failures carry `error_code` and, where fields are at \
    fault, `errors` by dot path. Who sends `Accept: application/problem+json` gets failures as RFC 9457 has them. \
    What is odd but accepted is named in `x-system-warning`. Every answer carries `x-request-id`.";

/// A part of the API: its tag, its purpose, and its table.
type Surface = (&'static str, &'static str, fn() -> Vec<OperationDoc>);

const SURFACES: [Surface; 5] = [
    ("core", "Option lists and the authority's reference data", core::operations),
    ("tax-payers", "A taxpayer and its own invoices", tax_payers::operations),
    (
        "system-integrators",
        "The taxpayers an integrator onboarded, their webhooks and keys",
        system_integrators::operations,
    ),
    ("app", "The authority's pipeline: validate, submit, transmit, report, download", app::operations),
    ("ops", "Health, metrics and what operators do", ops::operations),
];

/// Returns every operation, with the tag of its part of the API.
pub(super) fn operations() -> impl Iterator<Item = (&'static str, OperationDoc)> {
    SURFACES
        .into_iter()
        .flat_map(|(tag, _, table)| table().into_iter().map(move |operation| (tag, operation)))
}

/// Returns the document as it is served: JSON text.
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| serde_json::to_string_pretty(&document()).unwrap_or_default())
}

fn document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("einvoice")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(format!("{DESCRIPTION}\n\n{}", trying::section())));
    let tags = SURFACES.map(|(name, what, _)| TagBuilder::new().name(name).description(Some(what)).build());
    let mut paths = Paths::new();
    let mut components = ComponentsBuilder::new().schemas_from_iter(schema::failures());
    for (name, what) in SCHEMES {
        let key = ApiKey::Header(ApiKeyValue::with_description("x-api-key", what));
        components = components.security_scheme(name, SecurityScheme::ApiKey(key));
    }
    for (tag, mut operation) in operations() {
        components = components.schemas_from_iter(std::mem::take(&mut operation.components));
        for (method, built) in operation.build(tag) {
            paths.add_path_operation(operation.path, vec![method], built);
        }
    }
    let servers = [Server::new("/")];
    OpenApiBuilder::new()
        .info(info.build())
        .servers(Some(servers))
        .tags(Some(tags))
        .paths(paths)
        .components(Some(components.build()))
        .build()
}
