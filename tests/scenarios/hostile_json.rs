//! JSON that once ended the process: an object named by a private token of the JSON library holds a text, in which
//! there is such an object, and so on. Each text was parsed inside the parse of the one around it, until the stack
//! overflowed. An overflow is no panic: no supervision sees it, and every tenant of the process is gone with it.

use std::net::TcpListener;

use actix_web::{App, HttpResponse, HttpServer, web};
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::documents::invoice_numbered;
use testkit::patience::eventually;

use crate::support::client::Client;
use crate::support::database_queries::DatabaseQueries;
use crate::support::deployment::Deployment;
use crate::support::size::size;

const TOKEN: &str = r#""$serde_json::private::RawValue""#;
/// Requests that are under way at a time.
const AT_ONCE: usize = 8;
/// More than the first requests leave behind, far less than a body of each would.
const GROWTH_MAX_KIB: u64 = 32 * 1024;

/// Texts inside texts, each in so many arrays. Written with escapes that do not double, it stays short.
fn nested(texts: usize, arrays: usize) -> String {
    let open = "[".repeat(arrays);
    let close = "]".repeat(arrays);
    (0..texts).fold(format!("{open}{close}"), |inner, _| {
        let text = inner.replace('\\', "\\u005c").replace('"', "\\u0022");
        format!("{open}{{{TOKEN}:\"{text}\"}}{close}")
    })
}

fn body() -> String {
    format!(
        r#"{{"unique_no":"INV","unique_no_type":"IRN","x":{}}}"#,
        nested(60, 120)
    )
}

/// Answers everything with 200 and this text; gives its address.
fn start_answering(text: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let text = web::Data::new(text);
    let answer = |text: web::Data<String>| async move {
        HttpResponse::Ok()
            .content_type("application/json")
            .body(text.as_ref().clone())
    };
    let app = move || {
        App::new()
            .app_data(text.clone())
            .default_service(web::to(answer))
    };
    tokio::spawn(
        HttpServer::new(app)
            .workers(1)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run(),
    );
    address
}

/// A deployment without limits of requests, and an operator of it.
async fn deploy_without_limits() -> (Deployment, Client) {
    let settings = [
        ("EINVOICE__RATE_LIMIT__WEBHOOK_TEST_PER_MIN", "0"),
        ("EINVOICE__WEBHOOKS__RETRY_SCHEDULE_S", "[0, 0, 0]"),
    ];
    let deployment = Deployment::with(Backend::Sqlite, &settings).await;
    let operator = deployment.operator();
    (deployment, operator)
}

/// Calls that often, a few at a time. The memory after all of them is about that after the first hundred.
async fn call_often(deployment: &Deployment, what: &str, call: impl AsyncFn(usize) -> u16) {
    let count = size("EINVOICE_HOSTILE_JSON", 1_000);
    let before = deployment.service.memory_kib();
    let calls = async |range: std::ops::Range<usize>| {
        stream::iter(range.map(|index| call(index)))
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<u16>>()
            .await
    };
    let mut statuses = calls(0..count.min(100)).await;
    let warm = deployment.service.memory_kib();
    statuses.extend(calls(count.min(100)..count).await);
    let after = deployment.service.memory_kib();
    statuses.sort_unstable();
    let of = |status: &u16| statuses.iter().filter(|seen| *seen == status).count();
    let mut kinds = statuses.clone();
    kinds.dedup();
    let counts: Vec<_> = kinds
        .iter()
        .map(|status| format!("{} x {status}", of(status)))
        .collect();
    println!(
        "{what}: {}; memory {before} KiB before, {warm} after 100, {after} at the end",
        counts.join(", ")
    );
    assert!(
        after < warm + GROWTH_MAX_KIB,
        "{what}: {warm} KiB after 100 calls, {after} KiB after {count}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_nest_private_tokens_are_refused() {
    let (mut deployment, operator) = deploy_without_limits().await;
    let taxpayer = deployment.taxpayer_id();
    let webhook = format!("/v1/system-integrators/taxpayers/{taxpayer}/webhook");
    let integration = format!("/ops/taxpayers/{taxpayer}/integration");
    let text = body();
    let calls = [
        (
            &deployment.taxpayer,
            Method::POST,
            "/v1/tax-payers/invoices/get-by-unique-no",
        ),
        (
            &deployment.taxpayer,
            Method::POST,
            "/v1/tax-payers/invoices",
        ),
        (
            &deployment.taxpayer,
            Method::POST,
            "/v1/tax-payers/invoices/bulk",
        ),
        (
            &deployment.taxpayer,
            Method::PATCH,
            "/v1/tax-payers/invoices/update-payment-status",
        ),
        (
            &deployment.taxpayer,
            Method::POST,
            "/v1/app/invoices/submit",
        ),
        (
            &deployment.integrator,
            Method::POST,
            "/v1/system-integrators/taxpayers",
        ),
        (&deployment.integrator, Method::PUT, webhook.as_str()),
        (&operator, Method::PUT, integration.as_str()),
    ];
    call_often(&deployment, "requests", async |index| {
        let (client, method, path) = &calls[index % calls.len()];
        let status = client.send_text(method.clone(), path, &text).await;
        let status = status.unwrap_or_else(|| panic!("no answer to {method} {path}"));
        assert!((400..500).contains(&status), "{method} {path}: {status}");
        status
    })
    .await;
    deployment.service.wait_until_ready().await;
    deployment
        .taxpayer
        .create_invoice(&invoice_numbered("AFTERWARDS"))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_that_answer_nested_private_tokens_are_answers_like_any_other() {
    let (mut deployment, operator) = deploy_without_limits().await;
    let endpoint = start_answering(format!(
        r#"{{"jsonrpc":"2.0","id":"e","result":{}}}"#,
        nested(64, 125)
    ));
    deployment.set_webhook(&endpoint).await;
    let taxpayer = deployment.taxpayer_id();
    let set = async |integration: Value| {
        let path = format!("/ops/taxpayers/{taxpayer}/integration");
        let answer = operator
            .call(Method::PUT, &path, Some(&integration))
            .await
            .unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    let path = format!("/v1/system-integrators/taxpayers/{taxpayer}/webhook/test");
    let tested = async |_| {
        let answer = deployment
            .integrator
            .call(Method::POST, &path, Some(&json!({})))
            .await;
        answer.expect("an answer to a test of the endpoint").status
    };
    for format in ["graphql", "jsonrpc"] {
        set(json!({ "auth_type": "none", "data_format": format })).await;
        call_often(
            &deployment,
            &format!("tests of an endpoint of {format}"),
            tested,
        )
        .await;
    }
    // A delivery is rejected as often as its schedule says, and then left.
    deployment
        .taxpayer
        .create_invoice(&invoice_numbered("NESTED"))
        .await;
    let queries = DatabaseQueries::open(&deployment).await;
    eventually("the attempts at the delivery", async || {
        let sql = "SELECT COUNT(*) FROM attempts";
        (queries.number(sql).await >= 3).then_some(())
    })
    .await;
    let client =
        json!({ "token_url": format!("{endpoint}/token"), "client_id": "c", "client_secret": "s" });
    set(json!({ "auth_type": "client_credentials", "data_format": "rest", "auth": client })).await;
    call_often(&deployment, "tests with a token endpoint", tested).await;
    deployment.service.wait_until_ready().await;
    deployment
        .taxpayer
        .create_invoice(&invoice_numbered("AFTERWARDS"))
        .await;
}
