//! The import law: the modules that a module may import from, the places that may name a crate, and no circle of
//! more than three files. The law is read from the paths that the sources name, without the compiler. Style, size and
//! spelling belong to clippy, rustdoc and typos.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/features.rs"]
mod features;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/shared_application.rs"]
mod shared_application;

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use paths::{is_test_file, module_of, paths_named, sources};

/// The layers, from the lowest to the highest. A module imports from lower layers and from inside itself, never from a
/// neighbour in its own layer. The longest name that fits a path decides.
const LAYERS: &[&[&str]] = &[
    &["domain"],
    &["config"],
    &["telemetry"],
    &["store"],
    &[
        "actors::kinds",
        "actors::keyed_notify",
        "actors::run_changes",
        "actors::turn_gate",
    ],
    &[
        "actors::dispatch",
        "actors::incidents",
        "actors::durations",
        "actors::on_behalf",
        "actors::call_failure",
    ],
    &["actors::notifiers"],
    // Every actor may send commands to a taxpayer.
    &["actors::taxpayer", "actors::request_log"],
    &[
        "actors::pipeline",
        "actors::delivery",
        "actors::reference",
        "actors::sweeper",
        "actors::key_leases",
        "actors::key_usage",
        "actors::checkpoint",
        "actors::clock_watch",
        "actors::inbound",
        "actors::mail",
        "actors::outage",
        "actors::reconciliation",
        "actors::verification",
    ],
    &["actors"],
    &["http::respond", "cli"],
    &["http::forms"],
    &["http::openapi"],
    &["http::views"],
    &["http::explain"],
    &[
        "http::suggest_patch",
        "http::cached",
        "http::metrics::families",
        "http::metrics::history",
        "http::incidents::samples",
    ],
    &[
        "http::limits",
        "http::listener",
        "http::metrics::traffic",
        "http::metrics::database_counts",
        "http::remembered_operators",
        "http::incidents::log",
        "http::incidents::schedules",
        "http::replicas::board",
        "http::health",
        "http::key_generation",
        "http::stopping",
        "http::idempotency::in_progress",
        "http::middleware::client_address",
    ],
    &["http::password"],
    &["http::state"],
    &["http::testing"],
    &["http::extract", "http::invitations", "http::onboarding"],
    &[
        "http::stored_invoice",
        "http::paper_texts",
        "http::invoice_page",
    ],
    &[
        "http::approval",
        "http::document_body",
        "http::draft_warnings",
        "http::delivery_links",
        "http::delivery_selection",
    ],
    &[
        "http::invoice_files",
        "http::exports",
        "http::import_files",
        "http::corrections",
    ],
    &["http::search", "http::pdf_archive"],
    &["http::idempotency"],
    &["http::metrics::process"],
    &["http::incidents", "http::replicas"],
    &["http::metrics"],
    &["http::middleware", "http::known_paths"],
    &["http::paths"],
    &["http::api"],
    &["http"],
    &["console"],
    &["http::openapi::tests", "http::openapi::fields"],
    &["app"],
    &["main", "lib"],
];

/// Crates that only these places name, test code aside.
const CRATE_HOMES: &[(&str, &[&str])] = &[
    ("sea_orm", &["src/store"]),
    (
        "reqwest",
        &[
            "src/app/demo",
            "src/app/drill",
            "src/app/import",
            "src/telemetry/traces",
        ],
    ),
    ("opentelemetry", &["src/telemetry/traces"]),
    ("opentelemetry_otlp", &["src/telemetry/traces"]),
    ("opentelemetry_sdk", &["src/telemetry/traces"]),
    ("actix_web", &["src/http", "src/console", "src/app"]),
    ("lettre", &["src/actors/mail/transport"]),
    ("qrcode", &["src/domain/invoice/qr_picture"]),
    // The settings of an account name the templates, the colour and the kinds of logos.
    (
        "invoice_pdf",
        &[
            "src/domain/party/settings",
            "src/store/accounts/stored_settings",
            "src/http/forms/account_settings",
            "src/http/invoice_files",
            "src/http/paper_texts",
        ],
    ),
    ("rust_xlsxwriter", &["src/http/exports/workbook"]),
    (
        "ubl",
        &[
            "src/http/invoice_files",
            "src/domain/import",
            "src/domain/invoice/ubl_parts",
        ],
    ),
    ("calamine", &["src/domain/import/xlsx_table"]),
    ("pulldown_cmark", &["src/console/docs/markdown"]),
    ("csv", &["src/http/exports/csv_rows", "src/domain/import"]),
    (
        "zip",
        &["src/domain/import/xlsx_table", "src/http/pdf_archive"],
    ),
    (
        "authority_client",
        &["src/actors", "src/http", "src/console", "src/app"],
    ),
    (
        "database",
        &[
            "src/store",
            "src/actors",
            "src/http",
            "src/console",
            "src/app",
        ],
    ),
    (
        "supervision",
        &["src/actors", "src/http", "src/console", "src/app"],
    ),
    (
        "webhook_client",
        &["src/actors", "src/http", "src/console", "src/app"],
    ),
    // The OpenAPI document lists the magic words of the simulator.
    (
        "sandbox",
        &["src/app", "src/cli", "src/http/openapi/trying"],
    ),
];

/// Paths that pure decisions must not name, test code aside.
const IMPURE: &[&str] = &[
    "tokio",
    "actix",
    "actix_rt",
    "actix_web",
    "sea_orm",
    "reqwest",
    "utoipa",
    "timing::histograms",
    "std::time::SystemTime",
    "std::time::Instant",
    "std::env",
    "std::fs",
    "std::process",
    "std::thread",
];

/// Returns what a file imports against the law.
fn violations(file: &str, text: &str) -> Vec<String> {
    let module = module_of(file);
    let mut found = BTreeSet::new();
    for named in paths_named(&module, text) {
        if let Some(path) = named.path.strip_prefix("crate::") {
            found.extend(layer_violation(&module, path));
        } else if !named.in_test && !is_test_file(file) {
            found.extend(crate_violation(file, &named.path));
        }
    }
    found
        .into_iter()
        .map(|violation| format!("{file}: {violation}"))
        .collect()
}

fn layer_violation(module: &str, path: &str) -> Option<String> {
    let Some((own_layer, own)) = layer_of(module) else {
        return Some(format!(
            "`{module}` has no layer: give it one in tests/tidy.rs"
        ));
    };
    let (layer, other) = layer_of(path)?;
    let is_allowed = layer < own_layer || is_inside(other, own);
    (!is_allowed).then(|| format!("`{own}` must not import from `{other}` (crate::{path})"))
}

fn crate_violation(file: &str, path: &str) -> Option<String> {
    let is_in =
        |place: &&str| file.starts_with(&format!("{place}/")) || file == format!("{place}.rs");
    let names = |wanted: &str| path == wanted || path.starts_with(&format!("{wanted}::"));
    if is_in(&"src/domain") && IMPURE.iter().any(|wanted| names(wanted)) {
        return Some(format!("the domain must not name `{path}`"));
    }
    let (name, homes) = CRATE_HOMES.iter().find(|(name, _)| names(name))?;
    (!homes.iter().any(is_in)).then(|| format!("`{name}` is named only in {}", homes.join(", ")))
}

fn layer_of(path: &str) -> Option<(usize, &'static str)> {
    let entries = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(layer, names)| names.iter().map(move |name| (layer, *name)));
    entries
        .filter(|(_, name)| is_inside(path, name))
        .max_by_key(|(_, name)| name.len())
}

fn is_inside(path: &str, module: &str) -> bool {
    path == module || path.starts_with(&format!("{module}::"))
}

#[test]
fn every_module_imports_from_lower_layers_only() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for file in sources(root, "src")? {
        found.extend(violations(&file, &fs::read_to_string(root.join(&file))?));
    }
    assert!(
        found.is_empty(),
        "{} violations:\n{}",
        found.len(),
        found.join("\n")
    );
    Ok(())
}

#[test]
fn a_violation_is_found_however_it_is_written() {
    let planted = [
        ("src/domain/invoice.rs", "use crate::store::lanes::Lane;"),
        (
            "src/domain/invoice.rs",
            "use crate::{domain::money, store::lanes};",
        ),
        (
            "src/store/lanes.rs",
            "fn wake() {\n    crate::actors::pipeline::wake();\n}",
        ),
        ("src/store/lanes.rs", "use authority_client::Authority;"),
        (
            "src/actors/inbound/transit_poller.rs",
            "use super::super::pipeline::Wake;",
        ),
        (
            "src/actors/inbound/transit_poller.rs",
            "use crate::actors::pipeline::{\n    runner::{Runner},\n};",
        ),
        (
            "src/http/views/invoice.rs",
            "#[cfg(test)]\nmod tests {\n    use crate::app::App;\n}",
        ),
        ("src/ledger/mod.rs", "use crate::domain::money;"),
        ("src/domain/invoice.rs", "use tokio::spawn;"),
        (
            "src/domain/invoice.rs",
            "use std::{fmt, time::{Duration, SystemTime}};",
        ),
        ("src/http/forms/mod.rs", "use sea_orm::prelude::*;"),
        ("src/main.rs", "use reqwest::Client;"),
    ];
    for (file, text) in planted {
        assert_eq!(violations(file, text).len(), 1, "{file}: {text}");
    }
}

#[test]
fn what_the_law_allows_is_no_violation() {
    let allowed = [
        (
            "src/store/lanes.rs",
            "use crate::domain::money;\nuse sea_orm::Value;",
        ),
        (
            "src/actors/inbound/transit_poller.rs",
            "use super::inbox;\nuse crate::actors::kinds;",
        ),
        (
            "src/actors/inbound/transit_poller.rs",
            "use crate::actors::taxpayer::handle::TaxpayerHandle;",
        ),
        (
            "src/domain/invoice.rs",
            "// crate::store\nuse std::time::Duration;",
        ),
        (
            "src/domain/invoice.rs",
            "#[cfg(test)]\nmod tests {\n    use super::*;\n    use tokio::test;\n}",
        ),
        (
            "src/app/serve.rs",
            "use crate::http;\nuse sandbox::Authority;",
        ),
    ];
    for (file, text) in allowed {
        assert_eq!(violations(file, text), [""; 0], "{file}: {text}");
    }
}
