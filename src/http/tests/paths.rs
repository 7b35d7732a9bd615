//! Tests of paths, methods, ids in paths and the request id.

use actix_web::http::Method;
use actix_web::http::header::ALLOW;
use actix_web::test::TestRequest;
use serde_json::json;

use crate::http::testing::{INTEGRATOR_KEY, TAXPAYER_KEY, start_app};
use crate::http::tests::client::{INVOICES, TAXPAYERS, ask, get};

#[actix_web::test]
async fn a_path_that_is_none_is_404_in_the_envelope() {
    let test_app = start_app().await;
    for path in ["/v2", "/v1", "/v1/tax-payers/invoices/", "/v1/app/invoices/x/y/z"] {
        let seen = ask(&test_app, get(path, TAXPAYER_KEY).insert_header(("x-request-id", "mine-1"))).await;
        assert_eq!(seen.code(), (404, "ROUTE_NOT_FOUND".into()), "{path}");
        assert_eq!((seen.header("x-request-id"), &seen.json()["request_id"]), ("mine-1", &json!("mine-1")));
    }
}

#[actix_web::test]
async fn a_method_that_is_not_taken_is_405_with_those_that_are() {
    let test_app = start_app().await;
    for (path, allowed) in [
        (INVOICES, "GET, HEAD, POST"),
        ("/v1/tax-payers/invoices/update-status", "PATCH"),
        ("/v1/system-integrators/taxpayers/7/webhook", "GET, HEAD, PUT, PATCH, POST"),
        ("/health/live", "GET, HEAD"),
    ] {
        let seen = ask(&test_app, TestRequest::default().method(Method::DELETE).uri(path)).await;
        assert_eq!(seen.code(), (405, "METHOD_NOT_ALLOWED".into()), "{path}");
        assert_eq!(seen.headers.get(ALLOW).unwrap(), allowed);
    }
}

#[actix_web::test]
async fn an_id_that_is_no_number_is_an_unknown_one() {
    let test_app = start_app().await;
    for id in ["abc", "1.5", "-1", "007", "%2B7", "999999999999999999999", "8", "%00"] {
        let seen = ask(&test_app, get(&format!("{INVOICES}/{id}"), TAXPAYER_KEY)).await;
        assert_eq!(seen.code(), (404, "INVOICE_NOT_FOUND".into()), "{id}");
        assert_eq!(seen.json()["message"], "Invoice not found");
        let seen = ask(&test_app, get(&format!("{TAXPAYERS}/{id}"), INTEGRATOR_KEY)).await;
        assert_eq!(seen.json()["message"], "Taxpayer not found", "{id}");
    }
}

#[actix_web::test]
async fn an_invoice_number_may_hold_what_a_path_must_encode() {
    let test_app = start_app().await;
    for no in ["A%2FB", "A%20B", "A%25", "%C3%A9-1"] {
        let seen =
            ask(&test_app, get(&format!("/v1/app/invoices/{no}-94AD90FB-20261121/run"), TAXPAYER_KEY)).await;
        assert_eq!(seen.code(), (404, "RUN_NOT_FOUND".into()), "{no}");
    }
}

#[actix_web::test]
async fn a_request_id_that_is_not_safe_is_replaced() {
    let test_app = start_app().await;
    for id in ["", "a b", "a\tb", &"x".repeat(129), "\u{e9}"] {
        let request = TestRequest::get().uri("/health/live").insert_header(("x-request-id", id));
        let seen = ask(&test_app, request).await;
        assert_eq!(seen.header("x-request-id").len(), 36, "{id:?}");
    }
    let longest = "x".repeat(128);
    let request = TestRequest::get().uri("/health/live").insert_header(("x-request-id", longest.as_str()));
    assert_eq!(ask(&test_app, request).await.header("x-request-id"), longest);
}
