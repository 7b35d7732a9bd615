//! `Idempotency-Key`, on every write: of all requests of a caller with the same key one is carried out.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::client::Client;
use testkit::documents::{self, number};
use testkit::edit::{exact, with};
use testkit::patience::eventually;
use testkit::roles::{
    INVOICES, SUBMIT, TAXPAYERS, TRANSMIT, Taxpayer, UPDATE_PAYMENT, UPDATE_STATUS, webhook,
};
use testkit::{each_database, on_sqlite};

use crate::support::account::link_path;
use crate::support::visitor::Visitor;
use crate::support::world::World;

/// A key that no other test has.
fn key() -> String {
    format!("key-{}", number())
}

fn status(invoice: &Value, status: &str) -> Value {
    json!({ "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": status, "remark": "as agreed" })
}

fn part(invoice: &Value, amount: &str) -> Value {
    json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial",
        "amount": exact(amount), "remark": "an instalment",
    })
}

/// An approved invoice over 100.00.
async fn approved(taxpayer: &Taxpayer) -> Value {
    let invoice = taxpayer
        .invoice(&documents::invoice_with_price("50", "2"))
        .await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200)
        .data()
        .clone()
}

/// Returns the parts of an answer that must be the same again.
fn response(answer: &Answer) -> (u16, String, String, Vec<String>) {
    let texts = |name| {
        answer
            .headers
            .get_all(name)
            .iter()
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let noted = ["x-system-warning", "x-duplicate", "location"]
        .into_iter()
        .flat_map(texts)
        .collect();
    (
        answer.status,
        answer.text.clone(),
        answer.header("content-type").to_owned(),
        noted,
    )
}

#[track_caller]
fn assert_replayed(first: &Answer, again: &Answer) {
    assert_eq!(first.header("idempotent-replayed"), "", "{}", first.text);
    assert_eq!(
        again.header("idempotent-replayed"),
        "true",
        "{}",
        again.text
    );
    assert_eq!(response(again), response(first));
    assert_ne!(
        again.header("x-request-id"),
        first.header("x-request-id"),
        "a request has its own id"
    );
}

/// Sends a request twice with the same key; gives the first answer.
async fn twice(caller: &Client, method: &str, path: &str, body: &Value) -> Answer {
    let key = key();
    let first = caller.send_keyed(&key, method, path, body).await;
    let again = caller.send_keyed(&key, method, path, body).await;
    assert_replayed(&first, &again);
    first
}

#[each_database]
async fn a_create_that_is_repeated_gets_its_201_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(&documents::invoice(), "colour", json!("red"));
    let first = twice(&taxpayer, "POST", INVOICES, &body)
        .await
        .expect_status(201);
    assert_eq!(first.warnings(), "unknown field: colour");
    let duplicate = twice(&taxpayer, "POST", INVOICES, &body)
        .await
        .expect_status(200);
    assert_eq!(duplicate.header("x-duplicate"), "identical");
    assert_eq!(
        taxpayer.event_names().await,
        ["api-key.rotated", "invoice.created"]
    );
}

#[each_database]
async fn a_status_update_that_is_repeated_happens_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    twice(
        &taxpayer,
        "PATCH",
        UPDATE_STATUS,
        &status(&invoice, "approved"),
    )
    .await
    .expect_status(200);
    assert_eq!(
        taxpayer.event_names().await,
        [
            "api-key.rotated",
            "invoice.created",
            "invoice.status-updated"
        ]
    );
}

#[each_database]
async fn a_payment_that_is_repeated_is_paid_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = approved(&taxpayer).await;
    twice(&taxpayer, "PATCH", UPDATE_PAYMENT, &part(&invoice, "60"))
        .await
        .expect_status(200);
    // Of 100.00 there are 40.00 left: 60.00 were paid once.
    taxpayer
        .pay(&part(&invoice, "40.01"))
        .await
        .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    taxpayer.pay(&part(&invoice, "40")).await.expect_status(200);
}

#[each_database]
async fn what_an_integrator_repeats_happens_once(world: &World) {
    let integrator = world.integrator();
    let body = documents::taxpayer();
    let created = twice(&integrator, "POST", TAXPAYERS, &body)
        .await
        .expect_status(201);
    let path = format!("{TAXPAYERS}/{}", created.data()["id"]);
    let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    let profile = twice(&integrator, "PATCH", &format!("{path}/profile"), &profile).await;
    assert_eq!(profile.expect_status(200).data()["city"], "Lagos");
    let endpoint =
        json!({ "webhook_url": "http://127.0.0.1:9/hook", "enabled_events": ["invoice.odd"] });
    let endpoint = twice(&integrator, "PUT", &format!("{path}/webhook"), &endpoint).await;
    assert!(
        endpoint
            .expect_status(200)
            .warnings()
            .contains("invoice.odd")
    );
}

#[each_database]
async fn a_submission_that_is_repeated_gets_its_outcome_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    let key = key();
    let begun = taxpayer
        .request("POST", SUBMIT)
        .header("prefer", "respond-async");
    let begun = Answer::to(begun.header("idempotency-key", &key).json(&body)).await;
    assert!([200, 202].contains(&begun.status), "{}", begun.text);
    // What is only begun is not kept: the same call has the outcome.
    let ended = taxpayer
        .send_keyed(&key, "POST", SUBMIT, &body)
        .await
        .expect_status(200);
    let again = taxpayer.send_keyed(&key, "POST", SUBMIT, &body).await;
    assert_eq!(
        (again.header("idempotent-replayed"), response(&again)),
        ("true", response(&ended))
    );
    twice(&taxpayer, "POST", SUBMIT, &body)
        .await
        .expect_status(200);
}

#[each_database]
async fn a_receipt_that_is_repeated_gets_its_first_words_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    let irn = invoice["irn"].as_str().unwrap();
    let app = taxpayer.app();
    app.submit(&body).await.expect_status(200);
    app.transmit(irn).await.expect_status(200);
    let path = format!("{TRANSMIT}/{irn}/confirm-receipt");
    let body = json!({});
    let first = twice(&taxpayer, "PATCH", &path, &body).await;
    let first = first.expect_status(200);
    assert_eq!(first.message(), "Invoice transmission receipt confirmed");
    // With another key it is relayed once more. Nothing is recorded then, but the answer is kept, too.
    let other = twice(&taxpayer, "PATCH", &path, &body).await;
    let other = other.expect_status(200);
    assert_ne!(other.message(), first.message());
}

#[each_database]
async fn a_key_that_comes_with_another_request_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let key = key();
    let body = status(&invoice, "approved");
    taxpayer
        .send_keyed(&key, "PATCH", UPDATE_STATUS, &body)
        .await
        .expect_status(200);
    let others = [
        ("PATCH", UPDATE_STATUS.to_owned(), status(&invoice, "draft")),
        (
            "PATCH",
            UPDATE_STATUS.to_owned(),
            with(&body, "remark", json!("as agreed ")),
        ),
        ("PATCH", format!("{UPDATE_STATUS}?x=1"), body.clone()),
        ("PATCH", UPDATE_PAYMENT.to_owned(), body.clone()),
        ("POST", INVOICES.to_owned(), body.clone()),
    ];
    for (method, path, other) in others {
        let answer = taxpayer.send_keyed(&key, method, &path, &other).await;
        let answer = answer.expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
        assert_eq!(answer.header("idempotent-replayed"), "", "{method} {path}");
    }
    let again = taxpayer
        .send_keyed(&key, "PATCH", UPDATE_STATUS, &body)
        .await
        .expect_status(200);
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(taxpayer.reread(&invoice).await["status"], "approved");
    let path = webhook(taxpayer.id);
    let integrator = world.integrator();
    let key = self::key();
    let body = json!({ "webhook_url": "http://127.0.0.1:9/" });
    integrator
        .send_keyed(&key, "PUT", &path, &body)
        .await
        .expect_status(200);
    let other_method = integrator.send_keyed(&key, "POST", &path, &body).await;
    other_method.expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
}

/// Sends a text as the JSON body of a request with a key.
async fn send_text_keyed(
    taxpayer: &Taxpayer,
    key: &str,
    method: &'static str,
    path: &str,
    text: String,
) -> Answer {
    let request = taxpayer
        .request(method, path)
        .header("idempotency-key", key)
        .header("content-type", "application/json");
    Answer::to(request.body(text)).await
}

#[each_database]
async fn a_payment_in_another_spelling_is_the_same_request(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = approved(&taxpayer).await;
    let irn = invoice["irn"].as_str().unwrap();
    let key = key();
    let pay = |text: String| send_text_keyed(&taxpayer, &key, "PATCH", UPDATE_PAYMENT, text);
    let first = format!(
        r#"{{"unique_no":"{irn}","unique_no_type":"IRN","payment_status":"partial","amount":60.0,"remark":"an instalment"}}"#
    );
    let first = pay(first).await.expect_status(200);
    for (amount, space) in [("60", ""), ("6e1", ""), ("60.00", "\n  ")] {
        let again = format!(
            r#"{{{space}"amount":{amount},"remark":"\u0061n instalment","payment_status":"partial","unique_no_type":"IRN","unique_no":"{irn}"}}"#
        );
        assert_replayed(&first, &pay(again).await);
    }
    let other = format!(
        r#"{{"unique_no":"{irn}","unique_no_type":"IRN","payment_status":"partial","amount":60.01,"remark":"an instalment"}}"#
    );
    pay(other)
        .await
        .expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
    let part = part(&invoice, "40");
    taxpayer.pay(&part).await.expect_status(200);
}

#[on_sqlite]
async fn a_large_body_is_compared_byte_by_byte(world: &World) {
    let taxpayer = world.taxpayer().await;
    let key = key();
    let colour = json!("x".repeat(64 * 1_024));
    let body = with(&documents::invoice(), "colour", colour);
    let create = |text: String| send_text_keyed(&taxpayer, &key, "POST", INVOICES, text);
    let first = create(body.to_string()).await.expect_status(201);
    assert_replayed(&first, &create(body.to_string()).await);
    let spaced = format!("{body:#}");
    create(spaced)
        .await
        .expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
}

#[each_database]
async fn of_many_at_once_with_one_key_one_is_carried_out(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = approved(&taxpayer).await;
    let key = key();
    let body = part(&invoice, "10");
    let answers =
        join_all((0..32).map(|_| taxpayer.send_keyed(&key, "PATCH", UPDATE_PAYMENT, &body))).await;
    let first: Vec<_> = answers
        .iter()
        .filter(|one| one.status == 200 && one.header("idempotent-replayed").is_empty())
        .collect();
    assert_eq!(first.len(), 1);
    for answer in &answers {
        if answer.status == 409 {
            assert_eq!(answer.code(), "IDEMPOTENCY_IN_PROGRESS", "{}", answer.text);
            assert_eq!(answer.header("retry-after"), "1");
        } else {
            assert_eq!((answer.status, &answer.text), (200, &first[0].text));
        }
    }
    taxpayer
        .pay(&part(&invoice, "90.01"))
        .await
        .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    taxpayer.pay(&part(&invoice, "90")).await.expect_status(200);
}

#[each_database]
async fn of_many_onboardings_at_once_with_one_key_one_is_carried_out(world: &World) {
    let integrator = world.integrator();
    let key = key();
    let body = documents::taxpayer();
    let answers =
        join_all((0..8).map(|_| integrator.send_keyed(&key, "POST", TAXPAYERS, &body))).await;
    assert!(
        answers.iter().all(|one| [201, 409].contains(&one.status)),
        "{answers:?}"
    );
    let again = integrator
        .send_keyed(&key, "POST", TAXPAYERS, &body)
        .await
        .expect_status(201);
    assert!(
        answers
            .iter()
            .filter(|one| one.status == 201)
            .all(|one| one.text == again.text)
    );
}

#[on_sqlite]
async fn a_key_that_is_malformed_is_a_fault_of_its_own(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice();
    let too_long = "x".repeat(256);
    for odd in ["", "a\tb", "caf\u{e9}", &too_long] {
        let answer = taxpayer.send_keyed(odd, "POST", INVOICES, &body).await;
        answer.expect_faults(&["Idempotency-Key"]);
    }
    let two = taxpayer
        .request("POST", INVOICES)
        .header("idempotency-key", "a");
    let two = Answer::to(two.header("idempotency-key", "b").json(&body)).await;
    two.expect_faults(&["Idempotency-Key"]);
    let longest = "x".repeat(255);
    taxpayer
        .send_keyed(&longest, "POST", INVOICES, &body)
        .await
        .expect_status(201);
    let anonymous = world
        .anonymous()
        .send_keyed("", "POST", INVOICES, &body)
        .await;
    anonymous.expect_refusal(401, "UNAUTHENTICATED");
}

#[on_sqlite]
async fn a_method_that_a_path_does_not_take_is_refused_with_any_key(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = status(&taxpayer.invoice(&documents::invoice()).await, "approved");
    let key = key();
    taxpayer
        .send_keyed(&key, "PATCH", UPDATE_STATUS, &body)
        .await
        .expect_status(200);
    for method in ["POST", "DELETE", "TRACE"] {
        let answer = taxpayer
            .send_keyed(&key, method, UPDATE_STATUS, &body)
            .await;
        answer.expect_refusal(405, "METHOD_NOT_ALLOWED");
    }
}

#[each_database]
async fn a_key_belongs_to_its_caller(world: &World) {
    let key = key();
    let [one, other] = [world.taxpayer().await, world.taxpayer().await];
    let body = documents::invoice();
    for taxpayer in [&one, &other] {
        let answer = taxpayer
            .send_keyed(&key, "POST", INVOICES, &body)
            .await
            .expect_status(201);
        assert_eq!(answer.header("idempotent-replayed"), "");
    }
    let created = world
        .integrator()
        .send_keyed(&key, "POST", TAXPAYERS, &documents::taxpayer())
        .await;
    created.expect_status(201);
    let second = world
        .new_integrator()
        .await
        .send_keyed(&key, "POST", TAXPAYERS, &documents::taxpayer())
        .await;
    second.expect_status(201);
    // A taxpayer with another key of its own is the same caller.
    let rotated = world
        .integrator()
        .rotate_api_key(one.id)
        .await
        .expect_status(200);
    let renewed = world
        .anonymous()
        .with_key(rotated.data()["api_key"].as_str().unwrap());
    let again = renewed
        .send_keyed(&key, "POST", INVOICES, &body)
        .await
        .expect_status(201);
    assert_eq!(again.header("idempotent-replayed"), "true");
}

#[each_database]
async fn a_secret_is_shown_once_whatever_the_key(world: &World) {
    let integrator = world.integrator();
    let taxpayer = world.taxpayer().await;
    integrator
        .set_webhook(taxpayer.id, "http://127.0.0.1:9/", &[])
        .await
        .expect_status(200);
    let path = format!("{TAXPAYERS}/{}", taxpayer.id);
    let owner = integrator.get(&path).await.expect_status(200).data()["users"][0]["id"].clone();
    for (path, pointer) in [
        (format!("{path}/api-key/rotate"), "api_key"),
        (format!("{path}/contacts/{owner}/invitation"), "link"),
        (format!("{}/secret", webhook(taxpayer.id)), "secret"),
    ] {
        let key = key();
        let first = integrator
            .send_keyed(&key, "POST", &path, &json!({}))
            .await
            .expect_status(200);
        let secret = first.data()[pointer].as_str().unwrap().to_owned();
        let again = integrator.send_keyed(&key, "POST", &path, &json!({})).await;
        let again = again.expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
        assert!(
            !again.text.contains(&secret) && again.message().contains("only once"),
            "{}",
            again.text
        );
        // Nothing was done a second time: the first secret is still good.
        match pointer {
            "api_key" => {
                let renewed = world.anonymous().with_key(&secret);
                renewed.get(INVOICES).await.expect_status(200);
            }
            "link" => drop(
                Visitor::new(world)
                    .get(&link_path(&secret))
                    .await
                    .expect(200),
            ),
            _ => {}
        }
        let other = integrator
            .send_keyed(&self::key(), "POST", &path, &json!({}))
            .await;
        assert_ne!(other.expect_status(200).data()[pointer], json!(secret));
    }
}

#[each_database]
async fn a_decision_against_a_request_is_given_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let draft = taxpayer
        .invoice(&documents::invoice_with_price("50", "2"))
        .await;
    let key = key();
    let body = part(&draft, "10");
    let first = taxpayer
        .send_keyed(&key, "PATCH", UPDATE_PAYMENT, &body)
        .await;
    let first = first.expect_refusal(409, "INVOICE_NOT_APPROVED");
    taxpayer
        .set_status(&draft, "approved")
        .await
        .expect_status(200);
    let again = taxpayer
        .send_keyed(&key, "PATCH", UPDATE_PAYMENT, &body)
        .await;
    assert_replayed(&first, &again);
    let logged = taxpayer
        .get("/v1/tax-payers/requests?error_code=INVOICE_NOT_APPROVED")
        .await
        .expect_status(200);
    assert_eq!(logged.data()["total"], json!(2), "{}", logged.text);
    taxpayer
        .send_keyed(&self::key(), "PATCH", UPDATE_PAYMENT, &body)
        .await
        .expect_status(200);
    let refused = twice(&taxpayer, "PATCH", UPDATE_PAYMENT, &part(&draft, "90.01")).await;
    refused.expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
}

#[each_database]
async fn a_failure_that_may_pass_is_not_kept(world: &World) {
    let taxpayer = world.newcomer().await;
    let key = key();
    let body = documents::invoice();
    let create = |body: Value| {
        let taxpayer = &taxpayer;
        let key = &key;
        async move { taxpayer.send_keyed(key, "POST", INVOICES, &body).await }
    };
    create(body.clone())
        .await
        .expect_refusal(403, "PROFILE_INCOMPLETE");
    let profile = json!({ "city": "Lagos", "state": "Lagos", "country": "NG" });
    world
        .integrator()
        .change_profile(taxpayer.id, &profile)
        .await
        .expect_status(200);
    let faulty = with(&body, "customer.email", json!("plain"));
    create(faulty).await.expect_faults(&["customer.email"]);
    let request = taxpayer
        .request("POST", INVOICES)
        .header("idempotency-key", &key);
    let request = request.header("content-type", "application/json").body("{");
    Answer::to(request)
        .await
        .expect_refusal(400, "MALFORMED_JSON");
    let plain = taxpayer
        .request("POST", INVOICES)
        .header("idempotency-key", &key);
    let plain = Answer::to(plain.header("content-type", "text/plain").body("{}")).await;
    plain.expect_refusal(415, "UNSUPPORTED_MEDIA_TYPE");
    let created = create(body).await.expect_status(201);

    let key = self::key();
    let later = documents::invoice();
    let invoice =
        json!({ "irn": documents::irn(&taxpayer, later["invoice_no"].as_str().unwrap()) });
    let unknown = taxpayer
        .send_keyed(&key, "PATCH", UPDATE_STATUS, &status(&invoice, "approved"))
        .await;
    unknown.expect_refusal(404, "INVOICE_NOT_FOUND");
    taxpayer.invoice(&later).await;
    let known = taxpayer
        .send_keyed(&key, "PATCH", UPDATE_STATUS, &status(&invoice, "approved"))
        .await;
    known.expect_status(200);
    assert_eq!(created.header("idempotent-replayed"), "");
}

#[on_sqlite]
async fn what_reads_takes_no_notice_of_a_key(world: &World) {
    let taxpayer = world.taxpayer().await;
    let key = key();
    for _ in 0..2 {
        let invoice = taxpayer.invoice(&documents::invoice()).await;
        let body = json!({ "unique_no": invoice["irn"], "unique_no_type": "IRN" });
        let path = "/v1/tax-payers/invoices/get-by-unique-no";
        let answer = taxpayer
            .send_keyed(&key, "POST", path, &body)
            .await
            .expect_status(200);
        assert_eq!(answer.data()["id"], invoice["id"]);
        let get = taxpayer
            .request("GET", INVOICES)
            .header("idempotency-key", &key);
        Answer::to(get).await.expect_status(200);
    }
    let answer = taxpayer
        .send_keyed(&key, "POST", INVOICES, &documents::invoice())
        .await;
    assert_eq!(answer.expect_status(201).header("idempotent-replayed"), "");
}

#[on_sqlite]
async fn a_large_body_is_taken_with_a_key_as_without(world: &World) {
    let taxpayer = world.taxpayer().await;
    let max = 2 * 1_024 * 1_024;
    for (bytes, status) in [(max, 201), (max + 1, 413), (10 * 1_024 * 1_024 + 1, 413)] {
        let body = documents::invoice().to_string();
        let padding = " ".repeat(bytes - body.len());
        let request = taxpayer
            .request("POST", INVOICES)
            .header("idempotency-key", key());
        Answer::to(request.body(body + &padding))
            .await
            .expect_status(status);
    }
}

#[each_database(&[("HTTP__IDEMPOTENCY_KEEP_S", "1")])]
async fn a_key_is_free_again_when_its_time_is_over(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = approved(&taxpayer).await;
    let key = key();
    let body = part(&invoice, "10");
    let pay = async || {
        taxpayer
            .send_keyed(&key, "PATCH", UPDATE_PAYMENT, &body)
            .await
    };
    pay().await.expect_status(200);
    let is_new = async || {
        let later = pay().await;
        (later.status == 200 && later.header("idempotent-replayed").is_empty()).then_some(())
    };
    eventually("the end of the key", is_new).await;
}
