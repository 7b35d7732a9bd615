//! Tests of requests that only read: option lists, the event feed, a webhook's settings, the viewer of the document.

use actix_web::test::TestRequest;
use serde_json::json;

use crate::http::testing::{INTEGRATOR_KEY, TAXPAYER_KEY, start_app};
use crate::http::tests::client::{ask, get};

#[actix_web::test]
async fn invoice_categories_are_public_and_list_blank() {
    let seen = ask(&start_app().await, TestRequest::get().uri("/v1/core/commons/invoice-categories")).await;
    let first = json!({ "label": "Blank", "value": "Blank" });
    assert_eq!((seen.status, &seen.json()["data"]["invoice_categories"][0]), (200, &first));
}

#[actix_web::test]
async fn a_feed_beyond_its_end_is_empty_and_stays_where_it_is() {
    let test_app = start_app().await;
    for after in [5, 99_999_999_999_i64] {
        let seen = ask(&test_app, get(&format!("/v1/tax-payers/events?after={after}"), TAXPAYER_KEY)).await;
        assert_eq!(seen.json()["data"], json!({ "events": [], "next_after": after, "has_more": false }));
    }
    let seen = ask(&test_app, get("/v1/tax-payers/events?after=&limit=-1", TAXPAYER_KEY)).await;
    assert_eq!(seen.code(), (422, "VALIDATION_FAILED".into()));
    assert!(seen.json()["errors"]["after"].is_array() && seen.json()["errors"]["limit"].is_array());
}

#[actix_web::test]
async fn a_webhook_that_was_never_set_is_not_configured() {
    let test_app = start_app().await;
    let seen = ask(&test_app, get("/v1/system-integrators/taxpayers/7/webhook", INTEGRATOR_KEY)).await;
    assert_eq!(seen.code(), (422, "WEBHOOK_NOT_CONFIGURED".into()));
}

#[actix_web::test]
async fn the_address_of_the_service_leads_to_the_viewer() {
    let test_app = start_app().await;
    for path in ["/", "/docs"] {
        let seen = ask(&test_app, TestRequest::get().uri(path)).await;
        assert_eq!((seen.status, seen.header("location")), (307, "/docs/"), "{path}");
    }
}

#[actix_web::test]
async fn the_address_of_the_service_leads_a_browser_to_the_sign_in() {
    let test_app = start_app().await;
    let accepted = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let seen = ask(&test_app, TestRequest::get().uri("/").insert_header(accepted)).await;
    assert_eq!((seen.status, seen.header("location")), (303, "/sign-in"));
}

#[actix_web::test]
async fn the_viewer_runs_and_loads_nothing_of_others() {
    let test_app = start_app().await;
    for path in ["/docs/", "/docs/index.html", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"] {
        let seen = ask(&test_app, TestRequest::get().uri(path)).await;
        assert_eq!((seen.status, seen.header("x-content-type-options")), (200, "nosniff"), "{path}");
        let policy = seen.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("http"), "{policy}");
    }
}
