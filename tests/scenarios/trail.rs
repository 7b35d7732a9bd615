//! What the log tells of requests: who asked from where, what was wrong, and who failed to sign in; and what it never
//! tells: keys, values, the token in a path.

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::client::Client;
use testkit::patience::eventually;

use crate::support::deployment::Deployment;

const INVOICES: &str = "/v1/tax-payers/invoices";
const JSON: (&str, &str) = ("EINVOICE__LOG__FORMAT", "json");
const PROXIES: (&str, &str) = ("EINVOICE__HTTP__TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#);

/// The line of the log that has these members.
async fn wait_for_log_line(deployment: &Deployment, members: &Value) -> Value {
    eventually(&format!("a line with {members}"), async || {
        let output = deployment.service.output();
        let mut lines = output
            .lines()
            .filter_map(|line| strict_json::from_trusted::<Value>(line).ok());
        let has = |line: &Value| {
            members
                .as_object()
                .unwrap()
                .iter()
                .all(|(name, value)| line[name] == *value)
        };
        lines.rfind(has)
    })
    .await
}

/// Returns a request as a trusted proxy passes it on: from 203.0.113.7, which itself claims to be a proxy of another
/// address.
fn proxied_request(client: &Client, method: &str, path: &str) -> RequestBuilder {
    client
        .request(method, path)
        .header("x-forwarded-for", "198.51.100.1, 203.0.113.7")
        .header("user-agent", "acme-erp/1.0")
}

/// Checks that the log has no value of a request, no token and not the taxpayer's key.
fn assert_log_has_no_secrets(deployment: &Deployment) {
    let output = deployment.service.output();
    let key = deployment.taxpayer.key();
    assert!(!output.contains("SECRETVALUE"), "a value is in the log");
    assert!(!output.contains(key), "a key is in the log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_leaves_a_trail_without_its_secrets() {
    let deployment = Deployment::with(Backend::Sqlite, &[JSON, PROXIES]).await;
    let client = Client::new(deployment.service.url());
    let request = |method: &str, path: &str| proxied_request(&client, method, path);
    let key = deployment.taxpayer.key();
    let body = json!({ "invoice_no": "SECRETVALUE1", "currency": "SECRETVALUE2" });
    let refused = request("POST", INVOICES)
        .header("x-api-key", key)
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), 422);
    let logged = wait_for_log_line(
        &deployment,
        &json!({ "message": "answered", "route": INVOICES, "status": 422 }),
    )
    .await;
    assert_eq!(logged["peer"], "203.0.113.7", "{logged}");
    assert_eq!(
        (&logged["user_agent"], &logged["error_code"]),
        (&json!("acme-erp/1.0"), &json!("VALIDATION_FAILED"))
    );
    assert!(
        logged["fields"].as_str().unwrap().contains("currency"),
        "{logged}"
    );
    assert_eq!(
        logged["account"],
        format!("taxpayer:{}", deployment.taxpayer_id())
    );

    request("GET", "/nowhere/to/be/found?key=SECRETVALUE3")
        .send()
        .await
        .unwrap();
    let lost = wait_for_log_line(
        &deployment,
        &json!({ "error_code": "ROUTE_NOT_FOUND", "route": "unmatched" }),
    )
    .await;
    assert_eq!(lost["path"], "/nowhere/to/be/found", "{lost}");
    request("POST", "/authority/notifications/SECRETVALUE4")
        .send()
        .await
        .unwrap();
    request("POST", "/authority/%6eotifications/SECRETVALUE5/x")
        .send()
        .await
        .unwrap();
    wait_for_log_line(
        &deployment,
        &json!({ "path": "/authority/notifications/***", "route": "unmatched" }),
    )
    .await;
    wait_for_log_line(
        &deployment,
        &json!({ "path": "/authority/notifications/***", "route": "/authority/notifications/{token}" }),
    )
    .await;
    assert_log_has_no_secrets(&deployment);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_authentication_leaves_a_trail_without_the_key() {
    let deployment = Deployment::with(Backend::Sqlite, &[JSON, PROXIES]).await;
    let client = Client::new(deployment.service.url());
    let request = |method: &str, path: &str| proxied_request(&client, method, path);
    let key = deployment.taxpayer.key();
    request("GET", INVOICES)
        .header("x-api-key", "tpk_SECRETVALUE6")
        .send()
        .await
        .unwrap();
    let failed = wait_for_log_line(
        &deployment,
        &json!({ "message": "an authentication failed", "reason": "unknown key" }),
    )
    .await;
    assert_eq!(
        (&failed["key_kind"], &failed["peer"]),
        (&json!("taxpayer"), &json!("203.0.113.7")),
        "{failed}"
    );
    assert_eq!(
        (&failed["route"], &failed["level"]),
        (&json!(INVOICES), &json!("WARN"))
    );
    request("GET", "/ops/audit")
        .header("x-api-key", key)
        .send()
        .await
        .unwrap();
    let failed =
        wait_for_log_line(&deployment, &json!({ "reason": "key of another surface" })).await;
    assert_eq!(
        failed["account"],
        format!("taxpayer:{}", deployment.taxpayer_id()),
        "{failed}"
    );
    let twice = request("GET", INVOICES)
        .header("x-api-key", key)
        .header("x-api-key", key);
    assert_eq!(twice.send().await.unwrap().status(), 401);
    wait_for_log_line(&deployment, &json!({ "reason": "two keys" })).await;
    assert_log_has_no_secrets(&deployment);
}
