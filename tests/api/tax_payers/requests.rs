//! GET /v1/tax-payers/requests and /v1/system-integrators/requests: the request log of an account.

use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::client::Client;
use testkit::documents;
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, World};

const OWN: &str = "/v1/tax-payers/requests";
const ALL: &str = "/v1/system-integrators/requests";

/// Returns the logged requests of this list, newest first.
async fn logged(caller: &Client, list: &str) -> Vec<Value> {
    let answer = caller.get(list).await.expect_status(200);
    answer.data()["data"].as_array().unwrap().clone()
}

/// Sends a create without an invoice number. It is refused, if only because the profile of the account is incomplete.
async fn refused_create(caller: &Client, request_id: &str) -> Answer {
    let mut body = documents::invoice();
    body.as_object_mut().unwrap().remove("invoice_no");
    let request = caller.request("POST", "/v1/tax-payers/invoices?calculate=false");
    let request = request.header("x-request-id", request_id);
    Answer::to(request.json(&body)).await
}

#[each_database]
async fn a_failed_request_is_logged_with_what_was_sent_and_answered(world: &World) {
    let taxpayer = world.taxpayer().await;
    let refused = refused_create(&taxpayer, "order-77").await;
    let refused = refused.expect_refusal(422, "VALIDATION_FAILED");
    let found = logged(&taxpayer, &format!("{OWN}?request_id=order-77")).await;
    let [one] = found.as_slice() else {
        panic!("{found:?}")
    };
    for (name, expected) in [
        ("request_id", json!("order-77")),
        ("taxpayer_id", json!(taxpayer.id)),
        ("method", json!("POST")),
        ("path", json!("/v1/tax-payers/invoices?calculate=false")),
        ("status", json!(422)),
        ("error_code", json!("VALIDATION_FAILED")),
    ] {
        assert_eq!(one[name], expected, "{name}");
    }
    let end = &taxpayer.key()[taxpayer.key().len() - 4..];
    assert!(one["key"].as_str().unwrap().contains(end), "{one}");
    assert_eq!(one["response"]["body"], json!(refused.text));
    assert_eq!(one["response"]["kept"], json!("whole"));
    let sent = one["request"]["body"].as_str().unwrap();
    let sent: Value = strict_json::from_trusted(sent).unwrap();
    assert_eq!(sent["customer"], documents::invoice()["customer"]);
}

#[each_database]
async fn an_account_reads_its_own_log_and_its_integrator_all_of_them(world: &World) {
    let integrator = world.new_integrator().await;
    let one = world.newcomer_of(&integrator).await;
    let other = world.newcomer_of(&integrator).await;
    refused_create(&one, "of-one").await.expect_status(403);
    refused_create(&other, "of-other").await.expect_status(403);
    let path = format!("/v1/system-integrators/taxpayers/{}", i64::MAX);
    integrator.get(&path).await.expect_status(404);
    let ids = async |caller: &Client, list: &str| {
        let failed = logged(caller, &format!("{list}status=4xx")).await;
        let ids = failed.iter().map(|one| one["request_id"].clone());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids(&one, &format!("{OWN}?")).await, [json!("of-one")]);
    let of_one = format!("{ALL}?taxpayer_id={}&", one.id);
    assert_eq!(ids(&integrator, &of_one).await, [json!("of-one")]);
    assert_eq!(ids(&integrator, &format!("{ALL}?")).await.len(), 3);
    let stranger = world.new_integrator().await;
    assert_eq!(ids(&stranger, &of_one).await, [json!(null); 0]);
}

#[each_database]
async fn the_filters_of_the_log_find_what_they_name(world: &World) {
    let taxpayer = world.taxpayer().await;
    refused_create(&taxpayer, "refused")
        .await
        .expect_status(422);
    let missing = format!("/v1/tax-payers/invoices/{}", i64::MAX);
    taxpayer.get(&missing).await.expect_status(404);
    for (filter, expected) in [
        ("status=422", 1),
        ("status=4xx", 2),
        ("status=5xx", 0),
        ("error_code=VALIDATION_FAILED", 1),
        ("status=404&path=/v1/tax-payers/invoices/9", 1),
        ("status=404&path=/v1/tax-payers/invoices/8", 0),
        ("route=/v1/tax-payers/invoices/%7Bid%7D", 1),
        ("status=4xx&since=2026-01-01", 2),
        ("since=2100-01-01", 0),
    ] {
        let found = logged(&taxpayer, &format!("{OWN}?{filter}")).await;
        assert_eq!(found.len(), expected, "{filter}: {found:?}");
    }
    for odd in ["status=odd", "status=6xx", "since=yesterday"] {
        let answer = taxpayer.get(&format!("{OWN}?{odd}")).await;
        answer.expect_refusal(422, "VALIDATION_FAILED");
    }
}

#[each_database(ALONE)]
async fn a_good_write_is_logged_with_its_bodies_and_a_good_read_without(world: &World) {
    let taxpayer = world.taxpayer().await;
    let created = taxpayer.create_invoice(&documents::invoice()).await;
    let created = created.expect_status(201);
    taxpayer.list_invoices("").await.expect_status(200);
    let found = logged(
        &taxpayer,
        &format!("{OWN}?status=2xx&path=/v1/tax-payers/invoices"),
    )
    .await;
    let [read, write] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(write["response"]["body"], json!(created.text));
    assert_eq!(write["request"]["kept"], json!("whole"));
    assert_eq!(write["error_code"], json!(null));
    assert_eq!(read["method"], json!("GET"));
    assert_eq!(read["response"]["kept"], json!("omitted"));
    assert_eq!(read["response"]["body"], json!(null));
    assert!(read["response"]["bytes"].as_u64().unwrap() > 0);
}

#[on_sqlite(&[("HTTP__REQUEST_LOG_DAYS", "0")])]
async fn without_days_to_keep_there_is_no_log(world: &World) {
    let taxpayer = world.taxpayer().await;
    refused_create(&taxpayer, "unseen").await.expect_status(422);
    assert_eq!(logged(&taxpayer, OWN).await, [json!(null); 0]);
}

#[each_database]
async fn a_long_body_is_cut_and_a_file_is_left_out(world: &World) {
    let taxpayer = world.taxpayer().await;
    let long = json!({ "invoice_no": "x".repeat(10_000) });
    taxpayer.create_invoice(&long).await.expect_status(422);
    let import = taxpayer.request("POST", "/v1/tax-payers/invoices/import");
    let import = import.header("content-type", "text/csv").body("odd\n1\n");
    Answer::to(import).await.expect_status(422);
    let found = logged(&taxpayer, &format!("{OWN}?status=422")).await;
    let [file, cut] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(cut["request"]["kept"], json!("cut"));
    assert_eq!(cut["request"]["body"].as_str().unwrap().len(), 8 * 1024);
    assert!(cut["request"]["bytes"].as_u64().unwrap() > 10_000);
    assert_eq!(file["request"]["kept"], json!("omitted"));
    assert_eq!(file["request"]["bytes"], json!(6));
}
