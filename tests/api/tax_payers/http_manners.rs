//! What HTTP promises on every read and change: tags, 304, 412, compressed answers, names that nobody knows,
//! names that are given twice, and bodies that nobody takes.

use std::io::Read;

use flate2::read::GzDecoder;
use reqwest::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH,
    VARY,
};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{full_invoice, invoice, submission, update};
use testkit::edit::with;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

async fn tag_of(taxpayer: &Taxpayer, invoice: &Value) -> String {
    let path = format!("/v1/tax-payers/invoices/{}", invoice["id"]);
    let answer = taxpayer.get(&path).await.expect_status(200);
    answer.header("etag").to_owned()
}

/// The three changes of an invoice, each as method, path and body.
fn changes(invoice: &Value) -> [(&'static str, &'static str, Value); 3] {
    let which =
        json!({ "unique_no": invoice["irn"], "unique_no_type": "IRN", "remark": "as agreed" });
    let status = with(&which, "status", json!("approved"));
    let payment = with(&which, "payment_status", json!("partial"));
    let payment = with(&payment, "amount", json!(10));
    [
        ("PUT", "/v1/tax-payers/invoices/update", update(invoice)),
        ("PATCH", "/v1/tax-payers/invoices/update-status", status),
        (
            "PATCH",
            "/v1/tax-payers/invoices/update-payment-status",
            payment,
        ),
    ]
}

async fn change_if(
    taxpayer: &Taxpayer,
    (method, path, body): &(&str, &str, Value),
    tag: &str,
) -> Answer {
    Answer::to(
        taxpayer
            .request(method, path)
            .header(IF_MATCH, tag)
            .json(body),
    )
    .await
}

#[on_sqlite]
async fn who_has_an_answer_already_gets_none(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let one = format!("/v1/tax-payers/invoices/{}", stored["id"]);
    let reads = [
        one.clone(),
        format!("{one}?include=lines,ledger"),
        format!("{one}/timeline"),
        "/v1/tax-payers/invoices".to_owned(),
        "/v1/core/commons/enums".to_owned(),
    ];
    let mut tags = Vec::new();
    for path in &reads {
        let first = taxpayer.get(path).await.expect_status(200);
        assert_eq!(first.header("cache-control"), "no-store", "{path}");
        let tag = first.header("etag").to_owned();
        for held in [tag.as_str(), "*"] {
            let request = taxpayer.request("GET", path).header(IF_NONE_MATCH, held);
            let again = request.send().await.unwrap();
            assert_eq!(again.status(), 304, "{path}");
            assert_eq!(again.headers()[ETAG], tag);
            assert!(!again.headers().contains_key(CONTENT_TYPE));
            assert!(again.bytes().await.unwrap().is_empty());
        }
        tags.push(tag);
    }
    taxpayer
        .set_status(&stored, "approved")
        .await
        .expect_status(200);
    for (path, tag) in reads.iter().zip(tags).take(4) {
        let request = taxpayer.request("GET", path).header(IF_NONE_MATCH, &tag);
        let changed = Answer::to(request).await.expect_status(200);
        assert_ne!(changed.header("etag"), tag, "{path}");
    }
}

#[each_database]
async fn a_change_that_depends_on_an_old_view_changes_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let all = changes(&stored);
    for change in &all {
        let old = tag_of(&taxpayer, &stored).await;
        change_if(&taxpayer, change, &old).await.expect_status(200);
        let now = tag_of(&taxpayer, &stored).await;
        assert_ne!(old, now);
        for late in &all {
            for tag in [old.as_str(), "\"other\"", "unreadable"] {
                change_if(&taxpayer, late, tag)
                    .await
                    .expect_refusal(412, "PRECONDITION_FAILED");
            }
        }
        assert_eq!(tag_of(&taxpayer, &stored).await, now);
    }
    let other = world.taxpayer().await;
    let tag = tag_of(&taxpayer, &stored).await;
    for change in &all {
        change_if(&other, change, &tag)
            .await
            .expect_refusal(404, "INVOICE_NOT_FOUND");
    }
}

/// Two changes within a second often leave the answer as it was: its times have whole seconds, and it names no amount.
#[each_database]
async fn a_view_is_old_as_soon_as_anything_has_changed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let [revision, approval, payment] = changes(&stored);
    let priced = |price: u32| {
        let body = with(&revision.2, "lines.0.unit_price", json!(price));
        (revision.0, revision.1, body)
    };
    for change in [priced(50), priced(60), approval, payment.clone(), payment] {
        let seen = tag_of(&taxpayer, &stored).await;
        change_if(&taxpayer, &change, &seen)
            .await
            .expect_status(200);
        change_if(&taxpayer, &change, &seen)
            .await
            .expect_refusal(412, "PRECONDITION_FAILED");
        assert_ne!(tag_of(&taxpayer, &stored).await, seen, "{}", change.2);
    }
    let path = format!("/v1/tax-payers/invoices/{}", stored["id"]);
    let included = format!("{path}?include=lines,ledger");
    let tag = tag_of(&taxpayer, &stored).await;
    for path in [path, included] {
        let answer = taxpayer.get(&path).await.expect_status(200);
        assert_eq!(answer.header("etag"), tag, "{path}");
        let held = taxpayer.request("GET", &path).header(IF_NONE_MATCH, &tag);
        assert_eq!(held.send().await.unwrap().status(), 304, "{path}");
    }
}

#[each_database]
async fn of_changes_that_depend_on_the_same_view_one_is_made(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let tag = tag_of(&taxpayer, &stored).await;
    let [revision, ..] = changes(&stored);
    let all =
        futures_util::future::join_all((0..8).map(|_| change_if(&taxpayer, &revision, &tag))).await;
    let mut statuses: Vec<u16> = all.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
}

#[each_database]
async fn a_repeated_key_gets_the_first_answer_whatever_has_changed_since(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let tag = tag_of(&taxpayer, &stored).await;
    let [(method, path, body), ..] = changes(&stored);
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = taxpayer
            .request(method, path)
            .header(IF_MATCH, &tag)
            .header("idempotency-key", "one-change")
            .json(&body);
        answers.push(Answer::to(request).await.expect_status(200).text);
    }
    assert_eq!(answers[0], answers[1]);
}

#[on_sqlite]
async fn answers_are_compressed_for_who_can_read_them(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let path = format!("/v1/tax-payers/invoices/{}", stored["id"]);
    let plain = taxpayer.get(&path).await.expect_status(200);
    assert!(!plain.headers.contains_key(CONTENT_ENCODING));
    for (accepted, expected) in [("gzip", "gzip"), ("br", "br"), ("gzip;q=0.5, br", "br")] {
        let request = taxpayer
            .request("GET", &path)
            .header(ACCEPT_ENCODING, accepted);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()[CONTENT_ENCODING], expected, "{accepted}");
        assert_eq!(answer.headers()[VARY], "accept-encoding", "{accepted}");
        assert_eq!(answer.headers()[ETAG], plain.header("etag"));
        let bytes = answer.bytes().await.unwrap();
        assert!(bytes.len() < plain.text.len());
        if expected == "gzip" {
            let mut text = String::new();
            GzDecoder::new(&bytes[..])
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, plain.text);
        }
    }
}

#[on_sqlite]
async fn the_api_document_is_sent_compressed_and_known_by_its_tag(world: &World) {
    let anonymous = world.anonymous();
    let plain = anonymous.get("/openapi.json").await.expect_status(200);
    assert!(!plain.headers.contains_key(CONTENT_ENCODING));
    let tag = plain.header("etag");
    for accepted in ["gzip", "br", "deflate"] {
        let open = || {
            let request = anonymous.request("GET", "/openapi.json");
            request.header(ACCEPT_ENCODING, accepted)
        };
        let answer = open().send().await.unwrap();
        assert_eq!(answer.headers()[CONTENT_ENCODING], accepted);
        assert_eq!(answer.headers()[VARY], "accept-encoding", "{accepted}");
        assert_eq!(answer.headers()[ETAG], tag, "{accepted}");
        let bytes = answer.bytes().await.unwrap();
        assert!(bytes.len() < plain.text.len() / 4, "{accepted}");
        if accepted == "gzip" {
            let mut text = String::new();
            GzDecoder::new(&bytes[..])
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, plain.text);
        }
        for (known, status) in [(tag, 304), ("\"other\"", 200)] {
            let request = open().header(IF_NONE_MATCH, known);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), status, "{accepted} {known}");
            assert_eq!(answer.headers()[ETAG], tag, "{accepted} {known}");
        }
    }
}

#[on_sqlite]
async fn who_accepts_no_encoding_gets_the_plain_answer(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let path = format!("/v1/tax-payers/invoices/{}", stored["id"]);
    let plain = taxpayer.get(&path).await.expect_status(200).text;
    for accepted in [
        "identity;q=0",
        "*;q=0",
        "zstd, identity;q=0",
        "zstd",
        "",
        "odd odd",
    ] {
        let request = taxpayer
            .request("GET", &path)
            .header(ACCEPT_ENCODING, accepted);
        let answer = Answer::to(request).await.expect_status(200);
        assert_eq!(answer.text, plain, "{accepted}");
    }
}

#[on_sqlite]
async fn a_name_that_a_query_does_not_know_is_named_in_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let one = format!("/v1/tax-payers/invoices/{}", stored["id"]);
    for (path, expected) in [
        ("/v1/tax-payers/invoices?page=1&status=draft", ""),
        (
            "/v1/tax-payers/invoices?colour=draft&Page=2",
            "unknown query parameter: Page (did you mean page?), colour",
        ),
        (
            &format!("{one}?include=lines&exclude=x"),
            "unknown query parameter: exclude",
        ),
        ("/v1/tax-payers/events?after=0&limit=5", ""),
    ] {
        let answer = taxpayer.get(path).await;
        assert_eq!(answer.warnings(), expected, "{path}");
    }
}

#[on_sqlite]
async fn a_query_parameter_that_is_given_twice_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (path, name) in [
        (
            "/v1/tax-payers/invoices?status=draft&status=approved",
            "status",
        ),
        ("/v1/tax-payers/invoices?page=1&per_page=5&page=2", "page"),
        (
            "/v1/tax-payers/invoices/summary?month=2026-01&month=2026-02",
            "month",
        ),
        ("/v1/tax-payers/events?after=0&after=0", "after"),
    ] {
        let answer = taxpayer.get(path).await;
        let answer = answer.expect_refusal(422, "VALIDATION_FAILED");
        assert_eq!(answer.faulty_paths(), [name], "{path}");
        assert!(answer.text.contains("is given twice"), "{}", answer.text);
        let nobody = world.anonymous().get(path).await;
        nobody.expect_refusal(401, "UNAUTHENTICATED");
    }
    for path in [
        "/v1/tax-payers/invoices?authority_status=PENDING,QUEUED",
        "/v1/tax-payers/invoices?colour=a&colour=b",
    ] {
        taxpayer.get(path).await.expect_status(200);
    }
    // A write is refused before it has an effect.
    let twice = "/v1/tax-payers/invoices/full?calculate=true&calculate=false";
    let body = full_invoice(&taxpayer);
    let answer = taxpayer.send("POST", twice, &body).await;
    answer.expect_refusal(422, "VALIDATION_FAILED");
    taxpayer.create_full(&body).await.expect_status(201);
}

#[on_sqlite]
async fn a_body_that_a_call_does_not_take_is_told_in_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let irn = stored["irn"].as_str().unwrap();
    let app = taxpayer.app();
    let body = submission(&taxpayer, stored["invoice_no"].as_str().unwrap());
    app.submit_to_the_end(&body).await.expect_status(200);
    app.transmit_to_the_end(irn).await.expect_status(200);
    let receipt = format!("/v1/app/invoices/transmit/{irn}/confirm-receipt");
    let confirm = format!("/v1/app/invoices/{irn}/confirm");
    let download = format!("/v1/app/invoices/{irn}/download");
    let told = "ignored request body: this call takes none";
    let note = json!({ "note": "as agreed" });
    let empty = json!({});
    for (method, path) in [
        ("PATCH", &receipt),
        ("POST", &confirm),
        ("GET", &confirm),
        ("POST", &download),
    ] {
        for (body, expected) in [(&note, told), (&empty, "")] {
            let answer = taxpayer.send(method, path, body).await.expect_status(200);
            assert_eq!(answer.warnings(), expected, "{method} {path} {body}");
        }
        let answer = taxpayer.call(method, path).await.expect_status(200);
        assert_eq!(answer.warnings(), "", "{method} {path}");
    }
    // A refused call that takes a body has read it.
    let refused = taxpayer.update(&note).await.expect_status(422);
    assert!(!refused.warnings().contains(told), "{}", refused.warnings());
}

#[on_sqlite]
async fn an_answer_that_carries_a_secret_is_not_kept(world: &World) {
    let taxpayer = world.taxpayer().await;
    let integrator = world.integrator();
    let answer = integrator
        .rotate_api_key(taxpayer.id)
        .await
        .expect_status(200);
    assert_eq!(answer.headers[CACHE_CONTROL], "no-store", "{}", answer.text);
    assert!(!answer.headers.contains_key(ETAG));
}

#[each_database]
async fn a_page_after_the_last_one_is_empty_on_every_list(world: &World) {
    let taxpayer = world.taxpayer().await;
    taxpayer.invoice(&invoice()).await;
    let operator = world.new_operator().await;
    let integrator = world.integrator();
    for page in ["4294967296", "9223372036854775807"] {
        let at = |list: &str| format!("{list}?page={page}");
        let mut answers = vec![
            taxpayer.get(&at("/v1/tax-payers/invoices")).await,
            integrator
                .get(&at("/v1/system-integrators/taxpayers"))
                .await,
            integrator.get(&at("/v1/system-integrators/audit")).await,
        ];
        for list in [
            "/ops/audit",
            "/ops/operators",
            "/ops/pipeline/runs",
            "/ops/quarantine",
            "/ops/webhooks/dead-letters",
            "/ops/webhooks/endpoints",
        ] {
            answers.push(operator.get(&at(list)).await);
        }
        for answer in answers {
            let answer = answer.expect_status(200);
            let data = answer.data();
            assert_eq!(data["data"], json!([]), "{data}");
            assert_eq!(data["current_page"].to_string(), page);
        }
    }
}
