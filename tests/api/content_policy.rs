//! Browsers guess the type of no answer, and run nothing in an answer that is not a page of the service.

use reqwest::RequestBuilder;
use reqwest::header::{ACCEPT, COOKIE};
use testkit::documents::{invoice, logo};
use testkit::on_sqlite;
use testkit::roles::INVOICES;

use crate::support::account::Account;
use crate::support::world::World;

const DATA: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
/// Browsers show no PDF in a sandbox.
const PDF: &str = "default-src 'none'; style-src 'unsafe-inline'";
const NDJSON: &str = "application/x-ndjson";
const PROBLEM: &str = "application/problem+json";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// The headers of an answer that say what a browser may do with it.
struct Headers {
    kind: String,
    policy: String,
    disposition: String,
    caching: String,
    tag: String,
}

/// Sends a request, and expects that the type of its answer is not guessed.
async fn open(request: RequestBuilder) -> Headers {
    let answer = request.send().await.unwrap();
    let header = |name: &str| {
        let value = answer.headers().get(name);
        value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(
        header("x-content-type-options"),
        "nosniff",
        "{}",
        answer.url()
    );
    Headers {
        kind: header("content-type"),
        policy: header("content-security-policy"),
        disposition: header("content-disposition"),
        caching: header("cache-control"),
        tag: header("etag"),
    }
}

#[on_sqlite]
async fn nothing_runs_in_an_answer_that_is_no_page(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let file = |name: &str| format!("{INVOICES}/{}/{name}", stored["id"]);
    let sign_in = world.anonymous().get("/sign-in").await.text;
    let (_, script) = sign_in.split_once("<script src=\"").unwrap();
    let script = script.split('"').next().unwrap();
    for (path, accept, kind, policy) in [
        (INVOICES, "*/*", "application/json", DATA),
        (INVOICES, "text/csv", "text/csv", DATA),
        (INVOICES, NDJSON, NDJSON, DATA),
        (INVOICES, XLSX, XLSX, DATA),
        (
            "/v1/tax-payers/invoices/99999999",
            "*/*",
            "application/json",
            DATA,
        ),
        ("/v1/tax-payers/invoices/99999999", PROBLEM, PROBLEM, DATA),
        (file("pdf").as_str(), "*/*", "application/pdf", PDF),
        (file("ubl.xml").as_str(), "*/*", "application/xml", DATA),
        (file("json").as_str(), "*/*", "application/json", DATA),
        (file("qr.svg").as_str(), "*/*", "image/svg+xml", DATA),
        (file("qr.png").as_str(), "*/*", "image/png", DATA),
        ("/health/live", "*/*", "application/json", DATA),
        ("/openapi.json", "*/*", "application/json", DATA),
        ("/llms.txt", "*/*", "text/markdown", DATA),
        (script, "*/*", "text/javascript", DATA),
        ("/nowhere", "*/*", "application/json", DATA),
        ("/", "text/html", "", DATA),
    ] {
        let request = taxpayer.request("GET", path).header(ACCEPT, accept);
        let found = open(request).await;
        assert!(found.kind.starts_with(kind), "{path}: {}", found.kind);
        // A redirect may have been followed to a page.
        let is_page = found.kind.starts_with("text/html");
        assert!(
            is_page || found.policy == policy,
            "{path}: {}",
            found.policy
        );
    }
    for path in ["/sign-in", "/docs/", "/verify/nowhere", "/nowhere"] {
        let request = world.anonymous().request("GET", path);
        let found = open(request.header(ACCEPT, "text/html")).await;
        assert!(
            found.kind.starts_with("text/html"),
            "{path}: {}",
            found.kind
        );
        assert!(
            found.policy.contains("frame-ancestors 'none'"),
            "{path}: {}",
            found.policy
        );
    }
}

#[on_sqlite]
async fn no_browser_keeps_what_a_person_has_opened(world: &World) {
    let account = Account::new(world).await;
    let stored = account.taxpayer.invoice(&invoice()).await;
    let picture = format!("data:image/svg+xml;base64,{}", logo().as_str().unwrap());
    let saved = account.post("/profile/logo", &[("logo", &picture)]).await;
    saved.expect(303);
    let file = |name: &str| format!("/invoices/{}/files/{name}", stored["id"]);
    for (path, kind, disposition, policy) in [
        (file("pdf"), "application/pdf", "inline;", PDF),
        (file("ubl.xml"), "application/xml", "attachment;", DATA),
        (file("json"), "application/json", "attachment;", DATA),
        (file("qr.svg"), "image/svg+xml", "attachment;", DATA),
        (file("qr.png"), "image/png", "inline;", DATA),
        ("/profile/picture".to_owned(), "image/svg+xml", "", DATA),
        ("/live/overview".to_owned(), "text/event-stream", "", DATA),
    ] {
        let request = world.anonymous().request("GET", &account.path(&path));
        // Without the tag, no browser asks whether the file has changed.
        let request = request.header(COOKIE, account.owner.cookie());
        let found = open(request.header("if-none-match", "*")).await;
        assert_eq!(found.kind, kind, "{path}");
        assert_eq!(found.policy, policy, "{path}");
        assert!(
            found.disposition.starts_with(disposition),
            "{path}: {}",
            found.disposition
        );
        assert_eq!((&*found.caching, &*found.tag), ("no-store", ""), "{path}");
    }
    let page = world.anonymous().request("GET", &account.path("/invoices"));
    let page = open(page.header(COOKIE, account.owner.cookie())).await;
    assert_eq!(page.caching, "no-store");
}
