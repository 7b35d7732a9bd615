//! Tests of what all endpoints have in common: keys, paths, bodies, failures and headers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{ALLOW, RETRY_AFTER};
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, read_body};
use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Value, json};

use crate::domain::kernel::audit::Actor;
use crate::domain::party::ProfileChange;
use crate::http::forms::testing::{changed, standard_invoice, submission};
use crate::http::testing::{
    INTEGRATOR_KEY, OPERATOR_KEY, OTHER_INTEGRATOR_KEY, TAXPAYER, TAXPAYER_KEY, TestApp, start_app,
    start_app_with,
};

/// A response as the caller receives it.
struct Seen {
    status: u16,
    headers: actix_web::http::header::HeaderMap,
    text: String,
}

impl Seen {
    fn json(&self) -> Value {
        strict_json::from_trusted(&self.text).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn code(&self) -> (u16, String) {
        (self.status, self.json()["error_code"].as_str().unwrap_or_default().to_owned())
    }
}

async fn ask(test_app: &TestApp, request: TestRequest) -> Seen {
    let app = App::new()
        .app_data(test_app.state.clone())
        .wrap(from_fn(super::request_context))
        .configure(super::routes)
        .route("/panic", web::get().to(panicking));
    let app = init_service(app).await;
    seen(app.call(request.to_request()).await).await
}

async fn panicking() -> HttpResponse {
    std::future::ready(()).await;
    panic!("boom")
}

async fn seen(response: Result<ServiceResponse, actix_web::Error>) -> Seen {
    match response {
        Ok(response) => {
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let text = String::from_utf8(read_body(response).await.to_vec()).unwrap();
            Seen { status, headers, text }
        }
        Err(error) => {
            let response = error.error_response();
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let bytes = actix_web::body::to_bytes(response.into_body()).await.unwrap();
            Seen { status, headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
        }
    }
}

fn get(path: &str, key: &str) -> TestRequest {
    TestRequest::get().uri(path).insert_header(("x-api-key", key))
}

fn post(path: &str, key: &str, body: &Value) -> TestRequest {
    TestRequest::post().uri(path).insert_header(("x-api-key", key)).set_json(body)
}

const INVOICES: &str = "/v1/tax-payers/invoices";
const TAXPAYERS: &str = "/v1/system-integrators/taxpayers";

#[actix_web::test]
async fn a_path_that_is_none_is_404_in_the_envelope() {
    let test_app = start_app().await;
    for path in ["/", "/v1", "/v1/tax-payers/invoices/", "/v1/app/invoices/x/y/z"] {
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

/// Test requests arrive at 127.0.0.1:8080. Operators have another listener, this one, or none of their own.
#[actix_web::test]
async fn operators_paths_answer_on_their_listener_alone() {
    let elsewhere = start_app_with(|settings| settings.ops_address = "127.0.0.1:9".parse().ok()).await;
    let here = start_app_with(|settings| settings.ops_address = "127.0.0.1:8080".parse().ok()).await;
    let everywhere = start_app().await;
    for (path, statuses) in [
        ("/ops/audit", [404, 200, 200]),
        ("/%6fps/audit", [404, 200, 200]),
        ("/ops%2Faudit", [404, 404, 404]),
        ("/metrics", [404, 200, 200]),
        ("/%6d%65trics", [404, 200, 200]),
        ("/health/live", [200, 200, 200]),
        ("/openapi.json", [200, 404, 200]),
        ("/docs/", [200, 404, 200]),
        ("/v1/core/commons/invoice-categories", [200, 404, 200]),
    ] {
        for (test_app, status) in [&elsewhere, &here, &everywhere].into_iter().zip(statuses) {
            let seen = ask(test_app, get(path, OPERATOR_KEY)).await;
            assert_eq!(
                seen.status, status,
                "{path} where the listener is {:?}",
                test_app.state.settings.ops_address
            );
            let seen = ask(test_app, TestRequest::delete().uri(path)).await;
            assert_eq!(seen.status, if status == 200 { 405 } else { 404 }, "DELETE {path}");
        }
    }
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

#[actix_web::test]
async fn the_right_to_call_is_decided_before_the_body() {
    let test_app = start_app().await;
    let request = TestRequest::post().uri(INVOICES).set_payload("{");
    assert_eq!(ask(&test_app, request).await.code(), (401, "UNAUTHENTICATED".into()));
}

/// Sends the beginning of a request, waits until the server closes the connection, and returns the response.
fn stalled(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "{head}\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[actix_web::test]
async fn who_stalls_in_a_body_is_told_so_and_hung_up_on() {
    let test_app = start_app().await;
    let state = test_app.state.clone();
    let app = move || {
        App::new().app_data(state.clone()).wrap(from_fn(super::request_context)).configure(super::routes)
    };
    let server = HttpServer::new(app).workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
    let address = server.addrs()[0];
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    let head = format!("POST {INVOICES} HTTP/1.1\r\nx-api-key: {TAXPAYER_KEY}");
    let text = web::block(move || stalled(address, &head)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("REQUEST_TIMEOUT"), "{text}");
    let head = format!("POST {INVOICES} HTTP/1.1");
    let text = web::block(move || stalled(address, &head)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 401 "), "{text}");
    handle.stop(false).await;
}

#[actix_web::test]
async fn bodies_that_are_no_json_objects_are_told_apart() {
    let test_app = start_app().await;
    let send = |body: String, kind: &'static str| {
        let request = TestRequest::post().uri(INVOICES).insert_header(("x-api-key", TAXPAYER_KEY));
        ask(&test_app, request.insert_header(("content-type", kind)).set_payload(body))
    };
    assert_eq!(send("{".into(), "application/json").await.code(), (400, "MALFORMED_JSON".into()));
    assert_eq!(send(String::new(), "application/json").await.code(), (400, "MALFORMED_JSON".into()));
    assert_eq!(send("{}".into(), "text/plain").await.code(), (415, "UNSUPPORTED_MEDIA_TYPE".into()));
    let long = format!("\"{}\"", "x".repeat(4_096));
    assert_eq!(send(long, "application/json").await.code(), (413, "PAYLOAD_TOO_LARGE".into()));
}

#[actix_web::test]
async fn an_invoice_is_created_and_what_is_unknown_is_named() {
    let test_app = start_app().await;
    let (state, country) = (Some("Lagos".into()), Some("NG".into()));
    let change = ProfileChange { state, country, ..ProfileChange::default() };
    test_app.state.taxpayers.change_profile(TAXPAYER, change, Actor::CommandLine).await.unwrap();
    let body = changed(&standard_invoice(), "/colour", Some(json!("red")));
    let seen = ask(&test_app, post(INVOICES, TAXPAYER_KEY, &body)).await;
    assert_eq!((seen.status, seen.header("x-system-warning")), (201, "unknown field: colour"));
    let json = seen.json();
    assert_eq!((&json["success"], &json["message"]), (&json!(true), &json!("Invoice created successfully")));
    assert_eq!(json["data"]["irn"], "INV001-94AD90FB-20261121");
    assert_eq!(json["data"]["invoice_lines"][0]["unit_price"], json!(100));
}

#[actix_web::test]
async fn an_incomplete_profile_goes_before_the_faults_of_a_form() {
    let test_app = start_app().await;
    let seen = ask(&test_app, post(INVOICES, TAXPAYER_KEY, &json!({}))).await;
    assert_eq!(seen.code(), (403, "PROFILE_INCOMPLETE".into()));
    let errors = seen.json()["errors"].clone();
    let fields: Vec<_> = errors.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["country", "state"]);
}

#[actix_web::test]
async fn who_accepts_problem_documents_gets_one() {
    let test_app = start_app().await;
    let path = "/v1/tax-payers/invoices/update-status";
    let request =
        TestRequest::patch().uri(path).insert_header(("x-api-key", TAXPAYER_KEY)).set_json(json!({}));
    let seen =
        ask(&test_app, request.insert_header(("accept", "application/json, application/problem+json"))).await;
    assert_eq!((seen.status, seen.header("content-type")), (422, "application/problem+json"));
    assert_eq!(seen.json()["errors"][0]["pointer"], "#/unique_no");
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
async fn an_id_in_a_body_has_one_spelling_too() {
    let test_app = start_app().await;
    let body =
        json!({ "unique_no": "007", "unique_no_type": "PORTAL_ID", "status": "approved", "remark": "Fine" });
    for path in ["update-status", "update-payment-status"] {
        let body = changed(&body, "/payment_status", Some(json!("pending")));
        let request = TestRequest::patch().uri(&format!("{INVOICES}/{path}")).set_json(body);
        let seen = ask(&test_app, request.insert_header(("x-api-key", TAXPAYER_KEY))).await;
        assert_eq!(seen.code(), (404, "INVOICE_NOT_FOUND".into()), "{path}");
    }
}

#[actix_web::test]
async fn a_password_is_hashed_only_where_the_names_are_free() {
    let test_app = start_app().await;
    let new = json!({
        "name": "New", "email": "new@example.com", "tin_no": "99", "authority_service_id": "00000099",
        "authority_business_id": "bb99420d-d6bb-422c-b371-000000000099", "address": "1 Road",
        "contact_person":
            { "first_name": "A", "last_name": "B", "email": "ab@example.com", "password": "twelve letters" },
    });
    let all = test_app.state.passwords.fill().await;
    let taken = changed(&new, "/tin_no", Some(json!("1234 5678/0001")));
    let seen = ask(&test_app, post(TAXPAYERS, INTEGRATOR_KEY, &taken)).await;
    assert_eq!(seen.code(), (422, "VALIDATION_FAILED".into()), "nothing was to be hashed");
    let seen = ask(&test_app, post(TAXPAYERS, INTEGRATOR_KEY, &new)).await;
    assert_eq!(seen.code(), (503, "OVERLOADED".into()));
    assert_eq!(seen.headers.get(RETRY_AFTER).unwrap(), "1");
    drop(all);
    assert_eq!(ask(&test_app, post(TAXPAYERS, INTEGRATOR_KEY, &new)).await.status, 201);
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
async fn a_webhook_that_was_never_set_is_not_configured() {
    let test_app = start_app().await;
    let seen = ask(&test_app, get("/v1/system-integrators/taxpayers/7/webhook", INTEGRATOR_KEY)).await;
    assert_eq!(seen.code(), (422, "WEBHOOK_NOT_CONFIGURED".into()));
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
async fn whom_a_call_acts_for_is_checked_before_anything_is_relayed() {
    let test_app = start_app().await;
    let submit = |key: &'static str, body: Value| {
        let request = post("/v1/app/invoices/submit", key, &body);
        let test_app = &test_app;
        async move { ask(test_app, request).await }
    };
    let elsewhere =
        changed(&submission(), "/business_id", Some(json!("00000000-0000-0000-0000-000000000001")));
    assert_eq!(submit(INTEGRATOR_KEY, elsewhere.clone()).await.code(), (404, "TAXPAYER_NOT_FOUND".into()));
    assert_eq!(submit(OTHER_INTEGRATOR_KEY, submission()).await.code(), (404, "TAXPAYER_NOT_FOUND".into()));
    let seen = submit(TAXPAYER_KEY, elsewhere).await;
    assert_eq!(seen.status, 422);
    assert!(seen.json()["errors"]["business_id"].is_array(), "{}", seen.text);
    let irn = changed(&submission(), "/irn", Some(json!("INV001-00000000-20261121")));
    assert_eq!(submit(TAXPAYER_KEY, irn).await.code(), (422, "IRN_SERVICE_ID_MISMATCH".into()));
    for irn in ["INV001-00000000-20261121", "odd"] {
        let seen = ask(&test_app, get(&format!("/v1/app/invoices/{irn}/confirm"), TAXPAYER_KEY)).await;
        assert_eq!(seen.code(), (404, "INVOICE_NOT_FOUND".into()), "{irn}");
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
async fn an_authority_that_is_not_there_is_said_to_be_so() {
    let test_app = start_app().await;
    let seen = ask(&test_app, get("/v1/app/invoices/INV001-94ad90fb-20261121/confirm", INTEGRATOR_KEY)).await;
    assert_eq!(seen.code(), (502, "AUTHORITY_UNAVAILABLE".into()));
    assert!(seen.headers.contains_key(RETRY_AFTER));
}

#[actix_web::test]
async fn invoice_categories_are_public_and_list_blank() {
    let seen = ask(&start_app().await, TestRequest::get().uri("/v1/core/commons/invoice-categories")).await;
    let first = json!({ "label": "Blank", "value": "Blank" });
    assert_eq!((seen.status, &seen.json()["data"]["invoice_categories"][0]), (200, &first));
}

#[actix_web::test]
async fn a_dead_authority_degrades_and_does_not_make_unready() {
    let seen = ask(&start_app().await, TestRequest::get().uri("/health/ready")).await;
    assert_eq!((seen.status, &seen.json()["status"]), (200, &json!("degraded")));
    assert_eq!(seen.json()["checks"]["database"], json!({ "status": "ok" }));
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
