//! Every page, opened as every role: it answers, nothing is refused by its policy, axe-core finds nothing serious in
//! light and dark, it fits a phone, and it is small.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use einvoice::internals::{OperatorRole, page_patterns};
use serde_json::{Value, json};

use crate::person::Visitor;
use crate::run_alone;
use crate::showcase::Showcase;
use crate::support::account::PASSWORD;
use crate::support::world::World;

/// axe-core 4.14.1 of Deque Systems, as its makers publish it; its licence stands beside it.
const AXE: &str = include_str!("axe.min.js");

/// A page with its style, its script and its icon.
const PAGE_BYTES_MAX: u64 = 100_000;

/// Paths that answer GET and are no page: files, parts of a page, what leads to a page, and the form for a code, which is
/// there only between the password and the code.
const PATHS_WITHOUT_PAGE: [&str; 20] = [
    "/dashboard/{taxpayer}/live/overview",
    "/dashboard/{taxpayer}/import/template.csv",
    "/dashboard/{taxpayer}/imports/{import_no}/errors.csv",
    "/dashboard/{taxpayer}/batches/{batch_no}/files/{file}",
    "/dashboard/{taxpayer}/invoices/files/{file}",
    "/dashboard/{taxpayer}/profile/picture",
    "/dashboard/{taxpayer}/reports/files/{file}",
    "/dashboard/{taxpayer}/invoices/{id}/files/{file}",
    "/dashboard/{taxpayer}/inbox/{irn}/files/{file}",
    "/assets/{hash}/{name}",
    "/console/live/overview",
    "/console/live/replicas",
    "/console/live/supervision",
    "/console/search",
    "/dashboard",
    "/dashboard/taxpayers/open",
    "/dashboard/taxpayers/usage.csv",
    "/sign-in/code",
    "/docs",
    "/llms.txt",
];

/// Pages that the accountant and the reader of an account may not see.
const OWNER_PAGES: [&str; 8] = [
    "/dashboard/{taxpayer}/activity",
    "/dashboard/{taxpayer}/contacts",
    "/dashboard/{taxpayer}/integration",
    "/dashboard/{taxpayer}/keys",
    "/dashboard/{taxpayer}/webhooks/endpoints/new",
    "/dashboard/{taxpayer}/requests",
    "/dashboard/{taxpayer}/requests/{request}",
    "/dashboard/{taxpayer}/notifications",
];

/// Pages that those who only read may not see.
const ACTING_PAGES: [&str; 9] = [
    "/dashboard/{taxpayer}/webhooks/deliveries/bulk",
    "/dashboard/{taxpayer}/batches/{batch_no}/undo",
    "/dashboard/{taxpayer}/invoices/new",
    "/dashboard/{taxpayer}/invoices/{id}/credit-note",
    "/dashboard/{taxpayer}/invoices/{id}/correct",
    "/dashboard/{taxpayer}/invoices/{id}/correct/preview",
    "/dashboard/{taxpayer}/invoices/bulk",
    "/dashboard/{taxpayer}/invoices/{id}/edit",
    "/dashboard/{taxpayer}/customers/{customer}/edit",
];

/// Returns what is seriously wrong with the page that is open, by these rules of axe-core or by all.
const CHECK_SCRIPT: &str = "
    const rules = arguments[0] ? { runOnly: { type: 'rule', values: [arguments[0]] } } : {};
    const show = (one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' ')}`;
    const is_bad = (one) => ['serious', 'critical'].includes(one.impact);
    return axe.run(document, { resultTypes: ['violations'], ...rules })
        .then((found) => found.violations.filter(is_bad).map(show));";

/// Returns the status of the page that is open, and its bytes with all that it loaded.
const MEASURE_SCRIPT: &str = "
    const [page] = performance.getEntriesByType('navigation');
    const loaded = performance.getEntriesByType('resource');
    const bytes = [page, ...loaded].reduce((sum, one) => sum + one.encodedBodySize, 0);
    return { status: page.responseStatus, bytes, loaded: loaded.length };";

/// Returns what is wrong with the width of the page that is open. A page that is too wide makes a phone show it smaller,
/// so that it seems to fit. A table whose rows are cards on a phone is no wider than its frame, which scrolls nowhere: a
/// hidden head would make it scroll into emptiness, although the table itself is narrow.
const OVERFLOW_SCRIPT: &str = "
    const { scrollWidth } = document.scrollingElement;
    if (scrollWidth > screen.width) return `${scrollWidth} pixels wide on a phone`;
    const is_cut = (table) => Math.max(table.scrollWidth, table.parentElement.scrollWidth)
        > table.parentElement.clientWidth + 1;
    const cut = [...document.querySelectorAll('table.stacked')].find(is_cut);
    return cut ? `a table is cut on a phone: ${cut.caption.textContent}` : null;";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Light,
    Dark,
    Phone,
}

impl Look {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::Phone => "phone",
        }
    }

    pub(crate) async fn apply_to(self, visitor: &Visitor) {
        let scheme = if self == Self::Dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        visitor
            .session
            .devtools("Emulation.setEmulatedMedia", &features)
            .await;
        let (width, height) = if self == Self::Phone {
            (390, 844)
        } else {
            (1_280, 900)
        };
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": self == Self::Phone,
        });
        visitor
            .session
            .devtools("Emulation.setDeviceMetricsOverride", &size)
            .await;
    }
}

/// One role's walk.
struct Walk<'a> {
    role: &'static str,
    visitor: Visitor,
    pages: Vec<(&'static str, String)>,
    /// Where pictures go, if this role takes some.
    pictures: Option<&'a Path>,
}

impl Walk<'_> {
    /// Opens each page and returns what is wrong.
    async fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let on_start = json!({ "source": AXE });
        self.visitor
            .session
            .devtools("Page.addScriptToEvaluateOnNewDocument", &on_start)
            .await;
        for (pattern, path) in &self.pages {
            let found = self.visit(pattern, path).await;
            findings.extend(
                found
                    .into_iter()
                    .map(|text| format!("{} {path}: {text}", self.role)),
            );
        }
        findings
    }

    async fn visit(&self, pattern: &str, path: &str) -> Vec<String> {
        let visitor = &self.visitor;
        let session = &self.visitor.session;
        Look::Light.apply_to(visitor).await;
        visitor.open(path).await;
        let measured = session.script(MEASURE_SCRIPT, &[]).await;
        let bytes = measured["bytes"].as_u64().unwrap();
        let mut findings = visitor.complaints().await;
        if measured["status"] != 200 || measured["loaded"].as_u64() < Some(2) {
            findings.push(format!("it does not answer with a whole page: {measured}"));
        }
        if bytes > PAGE_BYTES_MAX {
            findings.push(format!("{bytes} bytes"));
        }
        for (look, rule) in [
            (Look::Light, ""),
            (Look::Dark, "color-contrast"),
            (Look::Phone, ""),
        ] {
            if look != Look::Light {
                look.apply_to(visitor).await;
            }
            if look == Look::Phone {
                let wide = session.script(OVERFLOW_SCRIPT, &[]).await;
                findings.extend(wide.as_str().map(str::to_owned));
            } else {
                let found = session.script(CHECK_SCRIPT, &[rule]).await;
                let texts = found.as_array().unwrap().iter().filter_map(Value::as_str);
                findings.extend(texts.map(|text| format!("{}: {text}", look.name())));
            }
            if let Some(directory) = self.pictures {
                self.take_picture(&directory.join(format!(
                    "{}-{}.png",
                    pattern_file_name(pattern),
                    look.name()
                )))
                .await;
            }
        }
        findings
    }

    /// Takes a picture of the page down to its end or to two and a half screens.
    async fn take_picture(&self, file: &Path) {
        let session = &self.visitor.session;
        let size = "return [innerWidth, Math.min(document.scrollingElement.scrollHeight, 2250)]";
        let size = session.script(size, &[]).await;
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let how = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = session.devtools("Page.captureScreenshot", &how).await;
        fs::write(
            file,
            STANDARD.decode(picture["data"].as_str().unwrap()).unwrap(),
        )
        .unwrap();
    }
}

/// Returns the name of a page's pictures: the words of its path, and `one` for the page of one thing.
fn pattern_file_name(pattern: &str) -> String {
    let words = pattern
        .split('/')
        .filter(|segment| !segment.is_empty() && !segment.starts_with('{'));
    let is_one = pattern.ends_with('}') && pattern != "/dashboard/{taxpayer}";
    words
        .chain(is_one.then_some("one"))
        .collect::<Vec<_>>()
        .join("-")
}

/// Returns the pages whose pattern begins like this.
fn pages_below(pages: &[(&'static str, String)], start: &str) -> Vec<(&'static str, String)> {
    pages
        .iter()
        .filter(|page| page.0.starts_with(start))
        .cloned()
        .collect()
}

async fn operator_walk<'a>(
    world: &World,
    role: OperatorRole,
    pages: &[(&'static str, String)],
    pictures: Option<&'a Path>,
) -> Walk<'a> {
    let name = match role {
        OperatorRole::Viewer => "viewer",
        OperatorRole::Operator => "operator",
        OperatorRole::Admin => "admin",
    };
    let visitor = Visitor::operator(world, role).await;
    let pages = pages_below(pages, "/account")
        .into_iter()
        .chain(pages_below(pages, "/console"))
        .filter(|(pattern, _)| {
            role >= OperatorRole::Operator || !pattern.ends_with("/move/preview")
        });
    Walk {
        role: name,
        visitor,
        pages: pages.collect(),
        pictures,
    }
}

async fn walk_as_operators(
    world: &World,
    shown: &Showcase,
    pictures: Option<&Path>,
) -> Vec<String> {
    let pages = shown.pages();
    let mut findings = Vec::new();
    let all = [
        (OperatorRole::Viewer, None),
        (OperatorRole::Operator, None),
        (OperatorRole::Admin, pictures),
    ];
    for (role, pictures) in all {
        findings.extend(
            operator_walk(world, role, &pages, pictures)
                .await
                .findings()
                .await,
        );
    }
    findings
}

async fn walk_as_contacts(world: &World, shown: &Showcase, pictures: Option<&Path>) -> Vec<String> {
    let mut findings = Vec::new();
    let all = [
        ("owner", pictures),
        ("accountant", None),
        ("read_only", None),
    ];
    for (role, pictures) in all {
        shown.account.set_role(world, role).await;
        let visitor = Visitor::signed_in(world, &shown.account.email, PASSWORD).await;
        let mut pages = pages_below(&shown.pages(), "/dashboard/{taxpayer}");
        pages.retain(|page| role == "owner" || !OWNER_PAGES.contains(&page.0));
        pages.retain(|page| role != "read_only" || !ACTING_PAGES.contains(&page.0));
        findings.extend(
            Walk {
                role,
                visitor,
                pages,
                pictures,
            }
            .findings()
            .await,
        );
    }
    findings
}

/// Begins with the pages that need no session.
async fn walk_as_integrator(
    world: &World,
    shown: &Showcase,
    pictures: Option<&Path>,
) -> Vec<String> {
    let mut pages = pages_below(&shown.pages(), "/sign-in");
    pages.extend(pages_below(&shown.pages(), "/verify"));
    pages.extend(pages_below(&shown.pages(), "/shared"));
    pages.extend(pages_below(&shown.pages(), "/docs"));
    let mut findings = Walk {
        role: "nobody",
        visitor: Visitor::new(world).await,
        pages,
        pictures,
    }
    .findings()
    .await;
    let (email, password) = &shown.integrator;
    let visitor = Visitor::new(world).await;
    visitor.sign_in(email, password).await;
    visitor.wait_to_see("All taxpayers").await;
    // Pictures only of the page that no other role has.
    let all = pages_below(&shown.pages(), "/dashboard/taxpayers");
    let walk = Walk {
        role: "integrator",
        visitor,
        pages: all,
        pictures,
    };
    findings.extend(walk.findings().await);
    let pages = pages_below(&shown.pages(), "/dashboard/{taxpayer}");
    findings.extend(
        Walk {
            pages,
            pictures: None,
            ..walk
        }
        .findings()
        .await,
    );
    findings
}

#[test]
fn every_page_is_whole_small_and_open_to_everybody_as_every_role() {
    run_alone("every-page", |world| {
        Box::pin(async move {
            let shown = Showcase::new(world).await;
            let shown_patterns = shown.pages().into_iter().map(|page| page.0);
            let walked: BTreeSet<_> = shown_patterns.chain(PATHS_WITHOUT_PAGE).collect();
            assert_eq!(
                walked,
                page_patterns().into_iter().collect(),
                "the pages that are walked, and all pages"
            );
            let pictures = env::var_os("EINVOICE_PICTURES").map(PathBuf::from);
            if let Some(directory) = &pictures {
                fs::create_dir_all(directory).unwrap();
            }
            let pictures = pictures.as_deref();
            let findings = tokio::join!(
                walk_as_operators(world, &shown, pictures),
                walk_as_contacts(world, &shown, pictures),
                walk_as_integrator(world, &shown, pictures),
            );
            let findings = [findings.0, findings.1, findings.2].concat();
            assert!(findings.is_empty(), "{}", findings.join("\n"));
        })
    });
}
