//! Tests of keys, of surfaces (parts of the API that accept certain kinds of keys), and of the taxpayer that a call
//! acts for.

use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::http::Listener;
use crate::http::forms::testing::{submission, with_member};
use crate::http::testing::{INTEGRATOR_KEY, OPERATOR_KEY, OTHER_INTEGRATOR_KEY, TAXPAYER_KEY, start_app};
use crate::http::tests::client::{INVOICES, TAXPAYERS, ask, get, post};

#[actix_web::test]
async fn each_surface_refuses_other_keys_in_its_own_words() {
    let test_app = start_app().await;
    let run = "/v1/app/invoices/INV001-94AD90FB-20261121/run";
    for (path, key, expected) in [
        (INVOICES, "", (401, "UNAUTHENTICATED")),
        (INVOICES, "tpk_two", (401, "INVALID_API_KEY")),
        (INVOICES, INTEGRATOR_KEY, (401, "INVALID_API_KEY")),
        (INVOICES, "odd", (401, "INVALID_API_KEY")),
        (TAXPAYERS, "", (401, "UNAUTHENTICATED")),
        (TAXPAYERS, TAXPAYER_KEY, (401, "INVALID_API_KEY")),
        (run, "", (401, "UNAUTHENTICATED")),
        (run, "odd", (403, "KEY_NOT_RECOGNIZED")),
        (run, "sik_two", (403, "KEY_NOT_RECOGNIZED")),
        (run, OPERATOR_KEY, (403, "KEY_NOT_RECOGNIZED")),
        ("/ops/supervision", TAXPAYER_KEY, (401, "INVALID_API_KEY")),
        ("/metrics", "", (401, "UNAUTHENTICATED")),
    ] {
        let seen = ask(&test_app, get(path, key)).await;
        assert_eq!(seen.code(), (expected.0, expected.1.to_owned()), "{path} with {key:?}");
        assert!(seen.json()["data"].is_null() && seen.json()["success"] == json!(false));
    }
}

#[actix_web::test]
async fn of_two_keys_none_is_taken() {
    let test_app = start_app().await;
    for (first, second) in
        [(TAXPAYER_KEY, "tpk_two"), ("tpk_two", TAXPAYER_KEY), (TAXPAYER_KEY, TAXPAYER_KEY)]
    {
        for path in [INVOICES, "/v1/core/commons/enums"] {
            let seen = ask(&test_app, get(path, first).append_header(("x-api-key", second))).await;
            assert_eq!(seen.code(), (401, "UNAUTHENTICATED".into()), "{first}, {second}");
            assert_eq!(seen.json()["message"], "The x-api-key header must be sent once");
        }
    }
}

#[actix_web::test]
async fn operators_paths_answer_on_their_listener_alone() {
    let mut test_app = start_app().await;
    for (path, statuses) in [
        ("/ops/audit", [404, 200, 200]),
        ("/%6fps/audit", [404, 200, 200]),
        ("/ops%2Faudit", [404, 404, 404]),
        ("/metrics", [404, 200, 200]),
        ("/%6d%65trics", [404, 200, 200]),
        ("/health/live", [200, 200, 200]),
        ("/openapi.json", [200, 404, 200]),
        ("/", [307, 404, 307]),
        ("/docs/", [200, 404, 200]),
        ("/v1/core/commons/invoice-categories", [200, 404, 200]),
    ] {
        let listeners = [Listener::Public, Listener::Operators, Listener::Only];
        for (listener, status) in listeners.into_iter().zip(statuses) {
            test_app.listener = listener;
            let seen = ask(&test_app, get(path, OPERATOR_KEY)).await;
            assert_eq!(seen.status, status, "{path} on {listener:?}");
            let seen = ask(&test_app, TestRequest::delete().uri(path)).await;
            assert_eq!(seen.status, if status == 404 { 404 } else { 405 }, "DELETE {path}");
        }
    }
}

#[actix_web::test]
async fn the_right_to_call_is_decided_before_the_body() {
    let test_app = start_app().await;
    let request = TestRequest::post().uri(INVOICES).set_payload("{");
    assert_eq!(ask(&test_app, request).await.code(), (401, "UNAUTHENTICATED".into()));
}

#[actix_web::test]
async fn an_integrator_sees_its_own_taxpayers_only() {
    let test_app = start_app().await;
    let own = ask(&test_app, get("/v1/system-integrators/taxpayers/7", INTEGRATOR_KEY)).await;
    let data = own.json()["data"].clone();
    assert_eq!((own.status, &data["tin"]), (200, &json!("12345678-0001")));
    assert_eq!((data.get("tin_no"), &data["users"][0]["email"]), (None, &json!("ada@example.com")));
    assert!(!own.text.contains("hash"), "{}", own.text);
    let others = ask(&test_app, get("/v1/system-integrators/taxpayers/7", OTHER_INTEGRATOR_KEY)).await;
    assert_eq!(others.code(), (404, "TAXPAYER_NOT_FOUND".into()));
    let list = ask(&test_app, get("/v1/system-integrators/taxpayers?search=mills", INTEGRATOR_KEY)).await;
    assert_eq!(list.json()["data"]["per_page"], json!(15));
    assert_eq!(list.json()["data"]["data"][0], data);
    let none = ask(&test_app, get(TAXPAYERS, OTHER_INTEGRATOR_KEY)).await;
    assert_eq!(none.json()["data"]["total"], json!(0));
}

#[actix_web::test]
async fn whom_a_call_acts_for_is_checked_before_anything_is_relayed() {
    let test_app = start_app().await;
    let submit = |key: &'static str, body: Value| {
        let request = post("/v1/app/invoices/submit", key, &body);
        let test_app = &test_app;
        async move { ask(test_app, request).await }
    };
    let elsewhere =
        with_member(&submission(), "/business_id", Some(json!("00000000-0000-0000-0000-000000000001")));
    assert_eq!(submit(INTEGRATOR_KEY, elsewhere.clone()).await.code(), (404, "TAXPAYER_NOT_FOUND".into()));
    assert_eq!(submit(OTHER_INTEGRATOR_KEY, submission()).await.code(), (404, "TAXPAYER_NOT_FOUND".into()));
    let seen = submit(TAXPAYER_KEY, elsewhere).await;
    assert_eq!(seen.status, 422);
    assert!(seen.json()["errors"]["business_id"].is_array(), "{}", seen.text);
    let irn = with_member(&submission(), "/irn", Some(json!("INV001-00000000-20261121")));
    assert_eq!(submit(TAXPAYER_KEY, irn).await.code(), (422, "IRN_SERVICE_ID_MISMATCH".into()));
    for irn in ["INV001-00000000-20261121", "odd"] {
        let seen = ask(&test_app, get(&format!("/v1/app/invoices/{irn}/confirm"), TAXPAYER_KEY)).await;
        assert_eq!(seen.code(), (404, "INVOICE_NOT_FOUND".into()), "{irn}");
    }
}
