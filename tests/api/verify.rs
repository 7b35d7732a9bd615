//! `/verify/{token}`: the public page of a signed invoice.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{invoice, submission};
use testkit::edit::with;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::visitor::Visitor;
use crate::support::world::World;

async fn link(taxpayer: &Taxpayer, stored: &Value) -> Value {
    let path = format!(
        "/v1/tax-payers/invoices/{}?include=verify_link",
        stored["id"]
    );
    let answer = taxpayer.get(&path).await.expect_status(200);
    answer.data()["verify_link"].clone()
}

async fn sign(taxpayer: &Taxpayer, stored: &Value) {
    let body = submission(taxpayer, stored["invoice_no"].as_str().unwrap());
    let body = with(
        &body,
        "accounting_supplier_party.party_name",
        json!("A & B <Ltd>"),
    );
    taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
}

#[each_database]
async fn a_signed_invoice_has_a_page_that_shows_what_was_signed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    assert_eq!(
        link(&taxpayer, &stored).await,
        Value::Null,
        "not signed yet"
    );
    sign(&taxpayer, &stored).await;
    let link = link(&taxpayer, &stored).await;
    let link = link.as_str().unwrap().to_owned();
    let path = link.strip_prefix(&world.root()).unwrap();
    let page = Visitor::new(world).get(path).await.expect(200);
    let page = page.shows_all(&[
        "This invoice is genuine",
        stored["irn"].as_str().unwrap(),
        "A &#38; B &#60;Ltd&#62;",
        "2026-01-15",
        "NGN 1,075.00",
    ]);
    page.hides_all(&[
        "Retail Stores",
        "buyer@retail.example",
        "Laptop",
        &taxpayer.as_ref().tin,
        "csrf",
    ]);
    let request = world.anonymous().request("GET", path);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["x-robots-tag"], "noindex, nofollow");
    assert_eq!(answer.headers()["cache-control"], "no-store");
    assert_eq!(answer.headers().get("set-cookie"), None);
    let copied = path.replace("/verify/", "/verify/\u{200b}");
    let page = Visitor::new(world).get(&copied).await.expect(200);
    page.shows_all(&["This invoice is genuine"]);
    // Printed once, the link stays.
    assert_eq!(self::link(&taxpayer, &stored).await, link);
}

#[each_database]
async fn every_other_token_gets_the_same_answer(world: &World) {
    let visitor = Visitor::new(world);
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    sign(&taxpayer, &stored).await;
    let link = link(&taxpayer, &stored).await;
    let token = link
        .as_str()
        .unwrap()
        .rsplit('/')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(token.len(), 22);
    let mut answers = Vec::new();
    let swapped = if token.starts_with('A') { "B" } else { "A" };
    for other in [
        format!("{swapped}{}", &token[1..]),
        token[..21].to_owned(),
        "x".to_owned(),
        stored["id"].to_string(),
        "%00".to_owned(),
        "%27%20OR%201=1".to_owned(),
        "x".repeat(2_000),
    ] {
        let page = visitor.get(&format!("/verify/{other}")).await.expect(404);
        answers.push(page.shows("leads to no invoice").html);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1);
    let irn = stored["irn"].as_str().unwrap();
    visitor.get(&format!("/verify/{irn}")).await.expect(404);
}

#[on_sqlite]
async fn the_link_stands_on_the_paper_and_on_the_dashboards_page(world: &World) {
    let account = crate::support::account::Account::new(world).await;
    let taxpayer = &account.taxpayer;
    let stored = taxpayer.invoice(&invoice()).await;
    let page = format!("/invoices/{}", stored["id"]);
    assert!(!account.page(&page).await.contains("Copy link"));
    sign(taxpayer, &stored).await;
    let link = link(taxpayer, &stored).await;
    let shown = account.page(&page).await;
    assert!(shown.contains("Copy link"), "{shown}");
    assert!(shown.contains(link.as_str().unwrap()), "{shown}");
    let pdf = format!("/v1/tax-payers/invoices/{}/pdf", stored["id"]);
    let pdf = taxpayer.request("GET", &pdf).send().await.unwrap();
    let bytes = pdf.bytes().await.unwrap();
    let needle = link.as_str().unwrap().as_bytes();
    assert!(
        bytes.windows(needle.len()).any(|part| part == needle),
        "the address of the link is not compressed"
    );
}

#[on_sqlite(&[("RATE_LIMIT__REQUESTS_PER_S", "1"), ("RATE_LIMIT__BURST", "20")])]
async fn calls_are_limited_for_each_address(world: &World) {
    let visitor = Visitor::new(world);
    let calls = (0..60).map(|at| format!("/verify/{at}"));
    let answers = join_all(calls.map(async |path| visitor.get(&path).await)).await;
    let refused = answers.iter().find(|answer| answer.status == 429);
    let refused = refused.unwrap();
    assert!(refused.html.contains("<!doctype html>"), "{}", refused.html);
    assert!(answers.iter().any(|answer| answer.status == 404));
}

/// Returns the links that answers give to a caller who names this host: the verify link and the place of a new batch.
async fn links(taxpayer: &Taxpayer, stored: &Value, host: &str) -> (Value, String) {
    let path = format!(
        "/v1/tax-payers/invoices/{}?include=verify_link",
        stored["id"]
    );
    let request = taxpayer.request("GET", &path).header("host", host);
    let link = Answer::to(request).await.expect_status(200).data()["verify_link"].clone();
    let request = taxpayer
        .request("POST", "/v1/tax-payers/invoices/bulk")
        .header("host", host)
        .json(&json!({ "invoices": [invoice()] }));
    let made = Answer::to(request).await.expect_status(201);
    (link, made.header("location").to_owned())
}

#[on_sqlite]
async fn the_host_of_one_caller_is_in_no_link_of_another(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    sign(&taxpayer, &stored).await;
    let (hostile, _) = links(&taxpayer, &stored, "evil.example").await;
    let hostile = hostile.as_str().unwrap().to_owned();
    let token = hostile.strip_prefix("http://evil.example").unwrap();
    let own = link(&taxpayer, &stored).await;
    assert_eq!(own, format!("{}{token}", world.root()));
    let (strange, _) = links(&taxpayer, &stored, "evil.example@host").await;
    assert_eq!(strange, Value::Null, "it is no host");
}

#[on_sqlite(&[("HTTP__PUBLIC_URL", "https://invoices.example/base/")])]
async fn links_begin_with_the_address_in_the_settings(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    sign(&taxpayer, &stored).await;
    let (link, location) = links(&taxpayer, &stored, "evil.example").await;
    let begin = "https://invoices.example/base";
    assert!(
        link.as_str()
            .unwrap()
            .starts_with(&format!("{begin}/verify/")),
        "{link}"
    );
    assert!(
        location.starts_with(&format!("{begin}/v1/tax-payers/invoices/batches/")),
        "{location}"
    );
}
