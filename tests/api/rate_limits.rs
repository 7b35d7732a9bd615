//! Rate limits: requests of a key, what is rare by nature, and failed authentications of an address.

use futures_util::future::join_all;
use sandbox::LatencyOrder;
use serde_json::json;
use testkit::answer::Answer;
use testkit::documents;
use testkit::on_sqlite;
use testkit::roles::{INVOICES, TAXPAYERS, VALIDATE};

use crate::support::account::Account;
use crate::support::world::World;

#[track_caller]
fn expect_refused(answer: Answer, limit: &str) -> Answer {
    let answer = answer.expect_refusal(429, "RATE_LIMITED");
    assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert_eq!(
        (
            answer.header("x-ratelimit-limit"),
            answer.header("x-ratelimit-remaining")
        ),
        (limit, "0")
    );
    assert!(answer.header("x-ratelimit-reset").parse::<u64>().unwrap() > 1_700_000_000);
    answer
}

/// One of those refused of 60 calls at once: one by one, a busy machine may be slower than the limit.
async fn refusal_of_many(call: impl AsyncFn() -> Answer) -> Answer {
    let answers = join_all((0..60).map(async |_| call().await)).await;
    answers
        .into_iter()
        .find(|answer| answer.status == 429)
        .unwrap()
}

#[on_sqlite(&[("RATE_LIMIT__REQUESTS_PER_S", "1"), ("RATE_LIMIT__BURST", "20")])]
async fn requests_of_a_key_are_limited_reads_and_writes_apart(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let first = taxpayer.get(INVOICES).await.expect_status(200);
    assert_eq!(
        (
            first.header("x-ratelimit-limit"),
            first.header("x-ratelimit-remaining")
        ),
        ("20", "19")
    );
    expect_refused(
        refusal_of_many(async || taxpayer.get(INVOICES).await).await,
        "20",
    );
    // What was refused did not run, whatever it was; what is refused otherwise counts too.
    let write = taxpayer
        .create_invoice(&documents::invoice())
        .await
        .expect_status(201);
    assert_eq!(write.header("x-ratelimit-remaining"), "19");
    let faulty = taxpayer.create_invoice(&json!({})).await.expect_status(422);
    assert_eq!(faulty.header("x-ratelimit-limit"), "20");
    other.get(INVOICES).await.expect_status(200);
    let health = world
        .anonymous()
        .get("/health/live")
        .await
        .expect_status(200);
    assert_eq!(health.header("x-ratelimit-limit"), "");
    // A read that is posted is a read.
    let body = json!({ "unique_no": "1", "unique_no_type": "PORTAL_ID" });
    let read = async || {
        other
            .send("POST", "/v1/tax-payers/invoices/get-by-unique-no", &body)
            .await
    };
    expect_refused(refusal_of_many(read).await, "20");
    let write = other
        .create_invoice(&documents::invoice())
        .await
        .expect_status(201);
    assert_eq!(write.header("x-ratelimit-remaining"), "19");
}

#[on_sqlite(&[("RATE_LIMIT__REQUESTS_PER_S", "1"), ("RATE_LIMIT__BURST", "20")])]
async fn who_comes_without_a_key_is_counted_by_address(world: &World) {
    let taxpayer = world.taxpayer().await;
    let call = async || {
        world
            .anonymous()
            .get("/v1/core/commons/invoice-categories")
            .await
    };
    expect_refused(refusal_of_many(call).await, "20");
    taxpayer.get(INVOICES).await.expect_status(200);
}

#[on_sqlite(&[("RATE_LIMIT__ROTATE_PER_MIN", "3")])]
async fn rotations_are_limited_for_each_taxpayer(world: &World) {
    let integrator = world.integrator();
    // Each was given its key by a first rotation.
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let second = integrator
        .rotate_api_key(taxpayer.id)
        .await
        .expect_status(200);
    assert_eq!(
        (
            second.header("x-ratelimit-limit"),
            second.header("x-ratelimit-remaining")
        ),
        ("3", "1")
    );
    let third = integrator
        .rotate_api_key(taxpayer.id)
        .await
        .expect_status(200);
    expect_refused(integrator.rotate_api_key(taxpayer.id).await, "3");
    let key = third.data()["api_key"].as_str().unwrap();
    world
        .anonymous()
        .with_key(key)
        .get(INVOICES)
        .await
        .expect_status(200);
    integrator.rotate_api_key(other.id).await.expect_status(200);
    // What others ask for takes nothing away, and names that are none are not counted.
    for _ in 0..5 {
        let stranger = world.new_integrator().await;
        stranger
            .rotate_api_key(other.id)
            .await
            .expect_refusal(404, "TAXPAYER_NOT_FOUND");
        let odd = integrator
            .call("POST", &format!("{TAXPAYERS}/odd/api-key/rotate"))
            .await;
        odd.expect_refusal(404, "TAXPAYER_NOT_FOUND");
    }
    integrator.rotate_api_key(other.id).await.expect_status(200);
}

#[on_sqlite(&[("RATE_LIMIT__ROTATE_PER_MIN", "3")])]
async fn a_taxpayer_has_one_allowance_by_the_api_and_on_pages(world: &World) {
    let integrator = world.integrator();
    // The account was given its key by a first rotation.
    let account = Account::new(world).await;
    let id = account.taxpayer.id;
    let key = [
        ("name", "Till"),
        ("scope", "read_only"),
        ("expires_in_days", "90"),
        ("overlap_s", "3600"),
    ];
    account.post("/keys/rotate", &key).await.expect(200);
    integrator.rotate_api_key(id).await.expect_status(200);
    account.post("/keys/rotate", &key).await.expect(422);
    expect_refused(integrator.rotate_api_key(id).await, "3");
}

#[on_sqlite(&[("RATE_LIMIT__FAILED_AUTH_PER_MIN", "5")])]
async fn failed_authentications_of_an_address_are_limited_and_good_keys_go_on(world: &World) {
    let taxpayer = world.taxpayer().await;
    let guess = |key: &str| {
        let caller = world.anonymous().with_key(key);
        async move { caller.get(INVOICES).await }
    };
    for key in ["tpk_wrong", "sik_wrong", "odd", "tpk_other"] {
        guess(key).await.expect_refusal(401, "INVALID_API_KEY");
    }
    // These guess nothing, so they do not count.
    for _ in 0..6 {
        let without_key = world.anonymous().get(INVOICES).await;
        without_key.expect_refusal(401, "UNAUTHENTICATED");
        let elsewhere = taxpayer.get(TAXPAYERS).await;
        elsewhere.expect_refusal(401, "INVALID_API_KEY");
    }
    let run = "/v1/app/invoices/INV1-AAAAAAAA-20260115/run";
    let fifth = world.anonymous().with_key("odd").get(run).await;
    fifth.expect_refusal(403, "KEY_NOT_RECOGNIZED");
    for _ in 0..3 {
        expect_refused(guess("tpk_wrong").await, "5");
        taxpayer.get(INVOICES).await.expect_status(200);
    }
    let operations = world.anonymous().with_key("tpk_wrong");
    expect_refused(operations.get("/ops/supervision").await, "5");
}

/// Whoever waits for the authority takes no place of a call that takes a moment.
#[on_sqlite(&[("HTTP__RELAYS_PER_ACCOUNT_MAX", "2"), ("HTTP__CALLS_PER_ACCOUNT_MAX", "2")])]
async fn calls_under_way_are_limited_and_reads_go_on(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let slow = LatencyOrder {
        fixed_ms: Some(5_000),
        ..LatencyOrder::default()
    };
    world.authority.add_latency(slow).unwrap();
    let body = documents::validation(&taxpayer, "WAITS1");
    let validate = async || taxpayer.send("POST", VALIDATE, &body).await;
    let reads = async {
        for _ in 0..5 {
            taxpayer.get(INVOICES).await.expect_status(200);
            other.get(INVOICES).await.expect_status(200);
        }
    };
    let (answers, ()) = tokio::join!(join_all((0..6).map(async |_| validate().await)), reads);
    let refused: Vec<_> = answers
        .into_iter()
        .filter(|answer| answer.status == 429)
        .collect();
    assert_eq!(refused.len(), 4);
    for answer in refused {
        assert_eq!(answer.header("retry-after"), "1");
        answer.expect_refusal(429, "RATE_LIMITED");
    }
}
