//! Tests of the routes that need the state of the application: to take all slots of a limit, and to read counts that
//! are exact because nobody else calls. `tests/api` tests everything else over HTTP.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use actix_web::App;
use actix_web::dev::Service as _;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, read_body};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::domain::kernel::ids::IntegratorId;
use crate::http::corrections::undo_batch_invoices;
use crate::http::forms::testing::with_member;
use crate::http::limits::AnswerHolder;
use crate::http::respond::code::ErrorCode;
use crate::http::testing::{INTEGRATOR_KEY, OPERATOR_KEY, TAXPAYER, TestApp, start_app};

/// Returns the status and the body of an answer.
async fn ask(test_app: &TestApp, request: TestRequest) -> (u16, String) {
    let (status, _, text) = ask_with_warnings(test_app, request).await;
    (status, text)
}

/// Returns the status, the warnings and the body of an answer.
async fn ask_with_warnings(test_app: &TestApp, request: TestRequest) -> (u16, Vec<String>, String) {
    let state = test_app.state.clone();
    let app = App::new()
        .app_data(state)
        .wrap(from_fn(super::request_context))
        .configure(super::routes);
    let app = init_service(app).await;
    let response = app.call(request.to_request()).await.unwrap();
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("x-system-warning");
    let warnings = warnings.map(|value| value.to_str().unwrap().to_owned());
    let warnings = warnings.collect();
    let text = String::from_utf8(read_body(response).await.to_vec()).unwrap();
    (status, warnings, text)
}

fn get(path: &str, key: &str) -> TestRequest {
    TestRequest::get()
        .uri(path)
        .insert_header(("x-api-key", key))
}

fn onboard(body: &Value) -> TestRequest {
    let request = TestRequest::post().uri("/v1/system-integrators/taxpayers");
    request
        .insert_header(("x-api-key", INTEGRATOR_KEY))
        .set_json(body)
}

#[actix_web::test]
async fn a_password_is_hashed_only_if_no_other_account_has_the_values() {
    let test_app = start_app().await;
    let new = json!({
        "name": "New", "email": "new@example.com", "tin_no": "99", "authority_service_id": "00000099",
        "authority_business_id": "bb99420d-d6bb-422c-b371-000000000099", "address": "1 Road",
        "contact_person":
            { "first_name": "A", "last_name": "B", "email": "ab@example.com", "password": "twelve letters" },
    });
    let all_slots = test_app
        .state
        .passwords
        .take_all_slots(IntegratorId(1))
        .await;
    let taken = with_member(&new, "/tin_no", Some(json!("1234 5678/0001")));
    assert_eq!(
        ask(&test_app, onboard(&taken)).await.0,
        422,
        "nothing was to be hashed"
    );
    let (status, text) = ask(&test_app, onboard(&new)).await;
    assert!(status == 503 && text.contains("OVERLOADED"), "{text}");
    drop(all_slots);
    assert_eq!(ask(&test_app, onboard(&new)).await.0, 201);
}

#[actix_web::test]
async fn operators_are_warned_of_fields_that_have_no_effect() {
    let test_app = start_app().await;
    for path in [
        "/ops/taxpayers/7/pause",
        "/ops/taxpayers/7/resume",
        "/ops/taxpayers/7/contacts/1/invitation",
    ] {
        let request = TestRequest::post().uri(path);
        let request = request.insert_header(("x-api-key", OPERATOR_KEY));
        let request = request.set_json(json!({ "reason": "maintenance", "until": "noon" }));
        let (status, warnings, text) = ask_with_warnings(&test_app, request).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert_eq!(warnings, ["unknown field: until"], "{path}");
    }
}

#[actix_web::test]
async fn the_metrics_count_requests_lanes_and_breakers() {
    let test_app = start_app().await;
    ask(&test_app, get("/v1/tax-payers/invoices", "")).await;
    let (status, metrics) = ask(&test_app, get("/metrics", OPERATOR_KEY)).await;
    assert_eq!(status, 200);
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
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    let (status, tree) = ask(&test_app, get("/ops/supervision", OPERATOR_KEY)).await;
    let tree: Value = strict_json::from_trusted(&tree).unwrap();
    assert_eq!((status, &tree["data"]["ready"]), (200, &json!(true)));
}

const DASHBOARD: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/deploy/grafana/einvoice.json"
));

/// Returns the sources that register metrics. The page does not show all metrics, because it leaves out a metric
/// without values.
fn metric_sources() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/metrics");
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

#[test]
fn each_metric_of_the_dashboard_is_registered() {
    let sources = metric_sources();
    let is_part_of_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let words = DASHBOARD.split(|sign: char| !is_part_of_name(sign));
    let named: HashSet<_> = words
        .filter(|word| word.starts_with("einvoice_") || word.starts_with("process_"))
        .collect();
    assert!(named.len() > 30, "{named:?}");
    let is_registered = |name: &str| {
        let name = name.strip_prefix("einvoice_").unwrap_or(name);
        let suffixes = ["_bucket", "_sum", "_count", "_total", "_info"];
        let stems = suffixes
            .iter()
            .filter_map(|suffix| name.strip_suffix(suffix));
        stems
            .chain([name])
            .any(|stem| sources.contains(&format!("\"{stem}\"")))
    };
    let absent: Vec<_> = named.iter().filter(|name| !is_registered(name)).collect();
    assert!(absent.is_empty(), "{absent:?} are not registered");
}

#[actix_web::test]
async fn a_batch_is_not_read_before_there_is_memory_for_a_page_of_it() {
    let app = start_app().await;
    let holder = AnswerHolder::for_taxpayer(TAXPAYER, None);
    let permit = app.state.answers.reserve(holder, usize::MAX).await;
    assert!(permit.is_some());
    let undo = undo_batch_invoices(&app.state, TAXPAYER, None, "UNKNOWN", true);
    let mut undo = Box::pin(undo);
    let early = timeout(Duration::from_millis(200), &mut undo).await;
    assert!(early.is_err(), "the account's memory is taken");
    drop(permit);
    assert_eq!(undo.await.unwrap_err().code, ErrorCode::BatchNotFound);
}
