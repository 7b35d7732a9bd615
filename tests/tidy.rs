//! The import law: which module may import from which, and which crates are named where. It is read from the paths that
//! the sources name, without the compiler. Style, size and spelling belong to clippy, rustdoc and typos.

#[path = "tidy/features.rs"]
mod features;
#[path = "tidy/shared_application.rs"]
mod shared_application;

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

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
    &["http::extract", "http::invitations", "http::onboarding"],
    &["http::stored_invoice"],
    &[
        "http::approval",
        "http::delivery_links",
        "http::delivery_selection",
    ],
    &[
        "http::invoice_files",
        "http::exports",
        "http::import_files",
        "http::corrections",
    ],
    &["http::search"],
    &["http::idempotency"],
    &["http::metrics::process"],
    &["http::incidents", "http::replicas"],
    &["http::metrics"],
    &["http::middleware", "http::known_paths"],
    &["http::endpoint"],
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
    ("zip", &["src/domain/import/xlsx_table"]),
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

/// A path that a source names, absolute: `crate::store::lanes`, `tokio::spawn`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    path: String,
    in_test: bool,
}

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

/// The module that a file is, below the crate: `store::lanes::claim` for `src/store/lanes/claim.rs`.
fn module_of(file: &str) -> String {
    let path = file
        .trim_start_matches("src/")
        .trim_end_matches(".rs")
        .trim_end_matches("/mod");
    path.replace('/', "::")
}

/// Files that a parent declares under `#[cfg(test)]`.
fn is_test_file(file: &str) -> bool {
    let names = file.split(['/', '.']);
    names
        .into_iter()
        .any(|name| name == "tests" || name == "testing" || name.ends_with("_tests"))
}

/// Every path that the code names, by `use` or in place, without comments.
fn paths_named(module: &str, text: &str) -> Vec<Named> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let tests_begin = code
        .iter()
        .position(|line| line.starts_with("#[cfg(test)]"))
        .unwrap_or(code.len());
    let mut named = Vec::new();
    let (production, tests) = code.split_at(tests_begin);
    for (code, in_test) in [(production, false), (tests, true)] {
        let words = tokens(&code.join("\n"));
        for path in expanded(&words) {
            named.push(Named {
                path: absolute(module, &path, in_test),
                in_test,
            });
        }
    }
    named
}

/// Names, `::`, and single marks; blanks are dropped.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut is_in_name = false;
    for letter in code.chars() {
        let is_name = letter.is_alphanumeric() || letter == '_';
        match tokens.last_mut() {
            Some(last) if (is_name && is_in_name) || (letter == ':' && last == ":") => {
                last.push(letter);
            }
            _ if letter.is_whitespace() => {}
            _ => tokens.push(letter.to_string()),
        }
        is_in_name = is_name;
    }
    tokens
}

/// The paths among these tokens, groups in braces taken apart.
fn expanded(tokens: &[String]) -> Vec<String> {
    let mut paths = Vec::new();
    // The prefixes of the groups that are open, and the path that is being read.
    let (mut prefixes, mut path): (Vec<String>, String) = (Vec::new(), String::new());
    for (at, token) in tokens.iter().enumerate() {
        let is_name = token.starts_with(|first: char| first.is_alphanumeric() || first == '_');
        let continues = path.ends_with("::");
        match token.as_str() {
            "::" if !path.is_empty() => path.push_str("::"),
            "{" if continues => prefixes.push(std::mem::take(&mut path)),
            "}" if !prefixes.is_empty() => {
                paths.push(std::mem::take(&mut path));
                prefixes.pop();
            }
            _ if is_name && continues => path.push_str(token),
            _ => {
                paths.push(std::mem::take(&mut path));
                let is_path = is_name && (tokens.get(at + 1).is_some_and(|next| next == "::"));
                if is_path || (is_name && !prefixes.is_empty()) {
                    path = format!("{}{token}", prefixes.last().map_or("", String::as_str));
                }
            }
        }
    }
    paths.push(path);
    paths.retain(|path| path.contains("::"));
    paths
        .iter()
        .map(|path| path.trim_end_matches("::").to_owned())
        .collect()
}

/// Resolves a leading `self` or `super`, and the crate's own name in its binary.
fn absolute(module: &str, path: &str, in_test: bool) -> String {
    let mut home: Vec<&str> = module.split("::").collect();
    // The paths of test code begin in the inner module `tests`.
    if in_test {
        home.push("tests");
    }
    let mut rest = path;
    if let Some(own) = path.strip_prefix("einvoice::") {
        return format!("crate::{own}");
    }
    let is_relative = path.starts_with("super::") || path.starts_with("self::");
    while let Some(inner) = rest.strip_prefix("super::") {
        home.pop();
        rest = inner;
    }
    let rest = rest.strip_prefix("self::").unwrap_or(rest);
    if is_relative {
        format!("crate::{}::{rest}", home.join("::"))
    } else {
        rest.to_owned()
    }
}

fn sources(folder: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

#[test]
fn every_module_imports_from_lower_layers_only() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files)?;
    let mut found = Vec::new();
    for file in files {
        let name = Path::new(&file)
            .strip_prefix(root)
            .map_err(io::Error::other)?
            .to_string_lossy();
        found.extend(violations(&name, &fs::read_to_string(&file)?));
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
