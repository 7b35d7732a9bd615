//! Tests of what operators see, and of failures inside the service or at the authority.

use actix_web::http::header::RETRY_AFTER;
use actix_web::test::TestRequest;
use serde_json::json;

use crate::http::testing::{INTEGRATOR_KEY, OPERATOR_KEY, start_app};
use crate::http::tests::client::{INVOICES, ask, get};

#[actix_web::test]
async fn a_dead_authority_degrades_and_does_not_make_unready() {
    let seen = ask(&start_app().await, TestRequest::get().uri("/health/ready")).await;
    assert_eq!((seen.status, &seen.json()["status"]), (200, &json!("degraded")));
    assert_eq!(seen.json()["checks"]["database"], json!({ "status": "ok" }));
}

#[actix_web::test]
async fn an_authority_that_is_not_there_is_said_to_be_so() {
    let test_app = start_app().await;
    let seen = ask(&test_app, get("/v1/app/invoices/INV001-94ad90fb-20261121/confirm", INTEGRATOR_KEY)).await;
    assert_eq!(seen.code(), (502, "AUTHORITY_UNAVAILABLE".into()));
    assert!(seen.headers.contains_key(RETRY_AFTER));
}

#[actix_web::test]
async fn operators_read_metrics_and_the_tree() {
    let test_app = start_app().await;
    ask(&test_app, get(INVOICES, "")).await;
    let metrics = ask(&test_app, get("/metrics", OPERATOR_KEY)).await;
    assert_eq!(metrics.status, 200);
    for line in [
        r#"einvoice_http_requests_total{method="GET",route="/v1/tax-payers/invoices",status="4xx"} 1"#,
        "einvoice_database_up 1",
        "einvoice_deliveries_pending 0",
        r#"einvoice_lanes_due{kind="run"} 2"#,
        r#"einvoice_lanes_leased{kind="run"} 0"#,
        r#"einvoice_lanes_due{kind="reconciliation"} 0"#,
        r#"einvoice_authority_breaker_state{operation="sign",state="closed"} 1"#,
        "# EOF",
    ] {
        assert!(metrics.text.contains(line), "{line} is not in\n{}", metrics.text);
    }
    let tree = ask(&test_app, get("/ops/supervision", OPERATOR_KEY)).await;
    assert_eq!((tree.status, &tree.json()["data"]["ready"]), (200, &json!(true)));
}

#[actix_web::test]
async fn a_handler_that_panics_answers_500_in_the_envelope() {
    let request = TestRequest::get().uri("/panic").insert_header(("x-request-id", "mine-2"));
    let seen = ask(&start_app().await, request).await;
    assert_eq!(seen.code(), (500, "INTERNAL_ERROR".into()));
    assert_eq!((seen.header("x-request-id"), &seen.json()["request_id"]), ("mine-2", &json!("mine-2")));
    assert!(!seen.text.contains("boom"));
}
