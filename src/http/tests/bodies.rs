//! Tests of request bodies: how they are read, and the faults that are reported.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use actix_web::http::header::RETRY_AFTER;
use actix_web::middleware::from_fn;
use actix_web::test::TestRequest;
use actix_web::{App, HttpServer, web};
use serde_json::json;

use crate::actors::taxpayer::commands::ChangeProfile;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::IntegratorId;
use crate::domain::party::ProfileChange;
use crate::http::forms::testing::{standard_invoice, with_member};
use crate::http::testing::{INTEGRATOR_KEY, TAXPAYER, TAXPAYER_KEY, start_app};
use crate::http::tests::client::{INVOICES, TAXPAYERS, ask, post};

/// Sends the beginning of a request, waits until the server closes the connection, and returns the response.
fn stall_request(address: SocketAddr, head: &str) -> String {
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
        App::new()
            .app_data(state.clone())
            .wrap(from_fn(crate::http::request_context))
            .configure(crate::http::routes)
    };
    let server = HttpServer::new(app).workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
    let address = server.addrs()[0];
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    let head = format!("POST {INVOICES} HTTP/1.1\r\nx-api-key: {TAXPAYER_KEY}");
    let text = web::block(move || stall_request(address, &head)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("REQUEST_TIMEOUT"), "{text}");
    let head = format!("POST {INVOICES} HTTP/1.1");
    let text = web::block(move || stall_request(address, &head)).await.unwrap();
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
    let state = Some("Lagos".into());
    let country = Some("NG".into());
    let change = ProfileChange { state, country, ..ProfileChange::default() };
    test_app.state.taxpayers.send(TAXPAYER, ChangeProfile { change, by: Actor::CommandLine }).await.unwrap();
    let body = with_member(&standard_invoice(), "/colour", Some(json!("red")));
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
async fn an_id_in_a_body_has_one_spelling_too() {
    let test_app = start_app().await;
    let body =
        json!({ "unique_no": "007", "unique_no_type": "PORTAL_ID", "status": "approved", "remark": "Fine" });
    for path in ["update-status", "update-payment-status"] {
        let body = with_member(&body, "/payment_status", Some(json!("pending")));
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
    let all = test_app.state.passwords.fill(IntegratorId(1)).await;
    let taken = with_member(&new, "/tin_no", Some(json!("1234 5678/0001")));
    let seen = ask(&test_app, post(TAXPAYERS, INTEGRATOR_KEY, &taken)).await;
    assert_eq!(seen.code(), (422, "VALIDATION_FAILED".into()), "nothing was to be hashed");
    let seen = ask(&test_app, post(TAXPAYERS, INTEGRATOR_KEY, &new)).await;
    assert_eq!(seen.code(), (503, "OVERLOADED".into()));
    assert_eq!(seen.headers.get(RETRY_AFTER).unwrap(), "1");
    drop(all);
    assert_eq!(ask(&test_app, post(TAXPAYERS, INTEGRATOR_KEY, &new)).await.status, 201);
}
