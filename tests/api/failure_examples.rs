//! Each error code as the service answers it to some caller: so the API document shows it.

use einvoice::app;
use einvoice::internals::{KeyTerms, OperatorRole, Subscription};
use futures_util::future::{join, join_all};
use sandbox::{FaultKind, FaultOrder, Operation, PartyEnrolment};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::client::Client;
use testkit::documents::{self, number};
use testkit::edit::{with, without};
use testkit::on_sqlite;
use testkit::roles::{
    BATCHES, INVOICES, Operator, SUBMIT, TAXPAYERS, Taxpayer, UPDATE_STATUS, webhook,
};

use crate::answer_examples::FailureExamples;
use crate::support::supplies;
use crate::support::world::World;

/// Nobody has this number.
const NOBODY: &str = "999999999";

#[on_sqlite(&[("AUTHORITY__TIMEOUT_S", "1"), ("PIPELINE__WAIT_S", "1"), ("HTTP__RELAYS_PER_ACCOUNT_MAX", "4")])]
async fn each_error_code_answers_as_its_example_shows(world: &World) {
    let mut examples = FailureExamples::new(world.root());
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    refuse_callers(world, &operator, &mut examples).await;
    refuse_requests(&taxpayer, &mut examples).await;
    miss_things(world, &taxpayer, &operator, &mut examples).await;
    refuse_documents(&taxpayer, &mut examples).await;
    refuse_changes(world, &taxpayer, &mut examples).await;
    refuse_relays(world, &taxpayer, &mut examples).await;
    refuse_in_the_authoritys_name(world, &taxpayer, &mut examples).await;
    refuse_for_a_time(world, &operator, &mut examples).await;
    let document = world.anonymous().get("/openapi.json").await;
    examples.are_those_of(&document.expect_status(200).body);
}

/// Keys and rights.
async fn refuse_callers(world: &World, operator: &Operator, examples: &mut FailureExamples) {
    let anonymous = world.anonymous();
    examples.add("UNAUTHENTICATED", anonymous.get(INVOICES).await);
    let forged = anonymous.with_key("tpk_0000000000000000000000000000000000000000000");
    examples.add("INVALID_API_KEY", forged.get(INVOICES).await);
    examples.add("KEY_NOT_RECOGNIZED", forged.call("POST", SUBMIT).await);
    let reader = read_only(world, operator).await;
    let body = documents::taxpayer();
    let refused = reader.send("POST", TAXPAYERS, &body).await;
    examples.add("KEY_READ_ONLY", refused);
    let viewer = viewer(world).await;
    let refused = viewer.call("POST", "/ops/taxpayers/1/verify").await;
    examples.add("ROLE_INSUFFICIENT", refused);
    let newcomer = world.newcomer().await;
    let invoice = documents::invoice();
    examples.add(
        "PROFILE_INCOMPLETE",
        newcomer.create_invoice(&invoice).await,
    );
    let inactive = world.taxpayer().await;
    world.set_subscription(inactive.id, Subscription::Inactive);
    let refused = inactive.create_invoice(&invoice).await;
    examples.add("SUBSCRIPTION_INACTIVE", refused);
}

/// Requests that are none.
async fn refuse_requests(taxpayer: &Taxpayer, examples: &mut FailureExamples) {
    let cut = taxpayer
        .send_text("POST", INVOICES, r#"{"invoice_no": "INV1""#.to_owned())
        .await;
    examples.add("MALFORMED_JSON", cut);
    let other = taxpayer.request("POST", INVOICES);
    let other = other.header("content-type", "text/plain").body("{}");
    examples.add("UNSUPPORTED_MEDIA_TYPE", Answer::to(other).await);
    let long = " ".repeat(2 * 1_024 * 1_024 + 1);
    let refused = taxpayer.send_text("POST", INVOICES, long).await;
    examples.add("PAYLOAD_TOO_LARGE", refused);
    examples.add("ROUTE_NOT_FOUND", taxpayer.get("/v1/invoices").await);
    let refused = taxpayer.call("DELETE", INVOICES).await;
    examples.add("METHOD_NOT_ALLOWED", refused);
    let invoice = documents::invoice();
    let keyed = |body: Value| {
        let request = taxpayer.request("POST", INVOICES);
        Answer::to(request.header("idempotency-key", "order-4711").json(&body))
    };
    keyed(invoice.clone()).await.expect_status(201);
    let other = keyed(with(&invoice, "due_date", json!("2026-12-31"))).await;
    examples.add("IDEMPOTENCY_KEY_REUSED", other);
}

/// Things that do not exist.
async fn miss_things(
    world: &World,
    taxpayer: &Taxpayer,
    operator: &Operator,
    examples: &mut FailureExamples,
) {
    let integrator = world.integrator();
    let nil = uuid::Uuid::nil();
    let hook = webhook(taxpayer.id);
    let contacts = format!("/ops/taxpayers/{}/contacts", taxpayer.id);
    for (code, method, path) in [
        ("INVOICE_NOT_FOUND", "GET", format!("{INVOICES}/{NOBODY}")),
        ("BATCH_NOT_FOUND", "GET", format!("{BATCHES}/B{NOBODY}")),
        (
            "IMPORT_NOT_FOUND",
            "GET",
            format!("{INVOICES}/imports/I{NOBODY}"),
        ),
        (
            "CORRECTION_NOT_FOUND",
            "GET",
            format!("{INVOICES}/corrections/C{NOBODY}"),
        ),
    ] {
        examples.add(code, taxpayer.call(method, &path).await);
    }
    for (code, method, path) in [
        ("TAXPAYER_NOT_FOUND", "GET", format!("{TAXPAYERS}/{NOBODY}")),
        ("WEBHOOK_NOT_CONFIGURED", "POST", format!("{hook}/test")),
        (
            "ENDPOINT_NOT_FOUND",
            "GET",
            format!("{hook}/endpoints/{NOBODY}"),
        ),
        ("REPLAY_NOT_FOUND", "GET", format!("{hook}/replays/{nil}")),
        (
            "DELIVERY_NOT_FOUND",
            "GET",
            format!("{hook}/deliveries/{nil}/attempts"),
        ),
    ] {
        examples.add(code, integrator.call(method, &path).await);
    }
    for (code, method, path) in [
        (
            "INTEGRATOR_NOT_FOUND",
            "POST",
            format!("/ops/integrators/{NOBODY}/api-key/rotate"),
        ),
        (
            "OPERATOR_NOT_FOUND",
            "POST",
            format!("/ops/operators/{NOBODY}/api-key/rotate"),
        ),
        (
            "CONTACT_NOT_FOUND",
            "POST",
            format!("{contacts}/{NOBODY}/enable"),
        ),
        ("RUN_NOT_FOUND", "GET", format!("/ops/pipeline/runs/{nil}")),
        (
            "COMMAND_NOT_FOUND",
            "POST",
            format!("/ops/quarantine/{nil}/replay"),
        ),
        (
            "RECONCILIATION_NOT_FOUND",
            "GET",
            format!("/ops/reconciliations/{nil}"),
        ),
    ] {
        examples.add(code, operator.call(method, &path).await);
    }
}

/// Invoices with faults.
async fn refuse_documents(taxpayer: &Taxpayer, examples: &mut FailureExamples) {
    let invoice = documents::invoice();
    let faulty = without(&invoice, "invoice_lines.0.quantity");
    examples.add("VALIDATION_FAILED", taxpayer.create_invoice(&faulty).await);
    let many = vec![Value::Null; 1_001];
    examples.add("BATCH_TOO_LARGE", taxpayer.create_batch(&many).await);
    let stored = taxpayer.invoice(&invoice).await;
    let number = documents::invoice_no();
    let irn = documents::irn(taxpayer, &number);
    let full = documents::full_invoice(taxpayer);
    taxpayer
        .new_full_invoice(&with(&full, "irn", json!(irn)))
        .await;
    let twin = documents::invoice_numbered(&number);
    examples.add("IRN_TAKEN", taxpayer.create_invoice(&twin).await);
    let update = documents::update(&stored);
    let other = with(&update, "invoice_category", json!("B2G"));
    examples.add("CATEGORY_CONFLICT", taxpayer.update(&other).await);
    let app = taxpayer.app();
    examples.add("IRN_MALFORMED", app.transmit("INV-1").await);
    let others = app.transmit("INV0001-FFFFFFFF-20260115").await;
    examples.add("IRN_SERVICE_ID_MISMATCH", others);
}

/// Changes that the state of a thing forbids.
async fn refuse_changes(world: &World, taxpayer: &Taxpayer, examples: &mut FailureExamples) {
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let change = json!({ "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": "approved", "remark": "checked" });
    let late = taxpayer.request("PATCH", UPDATE_STATUS);
    let late = late.header("if-match", "\"an older one\"").json(&change);
    examples.add("PRECONDITION_FAILED", Answer::to(late).await);
    let more = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial", "amount": 1_000_000,
        "remark": "by transfer",
    });
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    examples.add("PAYMENT_EXCEEDS_PAYABLE", taxpayer.pay(&more).await);
    let body = documents::submission(taxpayer, invoice["invoice_no"].as_str().unwrap());
    taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    let refused = taxpayer.set_status(&invoice, "draft").await;
    examples.add("INVOICE_LOCKED", refused);
    let draft = taxpayer.invoice(&documents::invoice()).await;
    let path = format!("{INVOICES}/{}/correct", draft["id"]);
    let refused = taxpayer
        .send("POST", &path, &json!({ "cancel": true }))
        .await;
    examples.add("INVALID_TRANSITION", refused);
    let irn = supplies::received(world, taxpayer).await;
    let other = world.taxpayer().await;
    let refused = other.supplier_invoice(&irn).await;
    examples.add("NOT_ADDRESSED_TO_CALLER", refused);
    taxpayer.acknowledge(&irn).await.expect_status(200);
    examples.add("ALREADY_ACKNOWLEDGED", taxpayer.acknowledge(&irn).await);
    let dead = json!({ "webhook_url": "http://127.0.0.1:9/" });
    let hook = webhook(taxpayer.id);
    let integrator = world.integrator();
    let set = integrator.send("PUT", &hook, &dead).await;
    set.expect_status(200);
    let refused = integrator.test_webhook(taxpayer.id).await;
    examples.add("WEBHOOK_UNREACHABLE", refused);
}

/// Relayed documents that this service refuses.
async fn refuse_relays(world: &World, taxpayer: &Taxpayer, examples: &mut FailureExamples) {
    let app = taxpayer.app();
    let draft = taxpayer.invoice(&documents::invoice()).await;
    let irn = draft["irn"].as_str().unwrap();
    examples.add("INVOICE_NOT_SIGNED", app.transmit(irn).await);
    let missing = app.download(&documents::irn(taxpayer, "NEVERSEEN")).await;
    examples.add("INVOICE_FILE_NOT_FOUND", missing);
    let body = documents::submission(taxpayer, &documents::invoice_no());
    app.submit_to_the_end(&body).await.expect_status(200);
    let other = with(&body, "note", json!("another document"));
    examples.add("IRN_CONTENT_CHANGED", app.submit(&other).await);
    let stored = documents::invoice_numbered(body["invoice_reference"].as_str().unwrap());
    let stored = taxpayer.invoice(&stored).await;
    let refused = app
        .set_payment_status(stored["irn"].as_str().unwrap(), "PAID")
        .await;
    examples.add("INVOICE_NOT_APPROVED", refused);
    let no = documents::invoice_no();
    let retail = documents::submission(taxpayer, &no);
    let mut retail = without(&retail, "accounting_customer_party");
    retail["invoice_category"] = json!("B2C");
    app.submit_to_the_end(&retail).await.expect_status(200);
    let refused = app.transmit(retail["irn"].as_str().unwrap()).await;
    examples.add("NO_CUSTOMER_ACCESS_POINT", refused);
    let tin = format!("{:08}-0009", number());
    let (_, irn) = supplies::signed(taxpayer, &tin).await;
    let offline = PartyEnrolment {
        tin: Some(tin),
        online: Some(false),
        ..PartyEnrolment::default()
    };
    world.authority.enrol(&offline).unwrap();
    examples.add("ACCESS_POINT_OFFLINE", app.transmit(&irn).await);
}

/// Failures of the authority.
async fn refuse_in_the_authoritys_name(
    world: &World,
    taxpayer: &Taxpayer,
    examples: &mut FailureExamples,
) {
    let app = taxpayer.app();
    let fault = |order: FaultOrder| world.authority.add_fault(order).unwrap();
    let submission = || documents::submission(taxpayer, &documents::invoice_no());
    let rejected = format!("INV{}SBXREJECT", number());
    let rejected = documents::submission(taxpayer, &rejected);
    examples.add("AUTHORITY_REJECTED", app.submit(&rejected).await);
    let signed = submission();
    app.submit_to_the_end(&signed).await.expect_status(200);
    fault(FaultOrder::new(FaultKind::HealthDown));
    let refused = app.transmit(signed["irn"].as_str().unwrap()).await;
    examples.add("HEALTH_CHECK_DOWN", refused);
    world.authority.clear_faults();
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let mut order = FaultOrder::new(FaultKind::ServerError).on(Operation::Report);
    order.status = Some(409);
    fault(order);
    let report = documents::report(taxpayer, invoice["irn"].as_str().unwrap());
    examples.add("REPORT_FAILED", app.report(&report).await);
    world.authority.clear_faults();
    let mut late = FaultOrder::new(FaultKind::Latency)
        .on(Operation::Validate)
        .times(100);
    late.latency_ms = Some(3_000);
    fault(late);
    let slow = documents::validation(taxpayer, &documents::invoice_no());
    examples.add("AUTHORITY_TIMEOUT", app.validate(&slow).await);
    let many = join_all((0..20).map(|_| app.validate(&slow))).await;
    let refused = many.into_iter().find(|answer| answer.status == 429);
    examples.add("RATE_LIMITED", refused.unwrap());
    let body = submission();
    let key = format!("k{}", number());
    let keyed = || app.send_keyed(&key, "POST", SUBMIT, &body);
    let (one, other) = join(keyed(), keyed()).await;
    let refused = if one.status == 409 { one } else { other };
    examples.add("IDEMPOTENCY_IN_PROGRESS", refused);
    world.authority.clear_faults();
    fault(FaultOrder::new(FaultKind::Outage));
    examples.add("AUTHORITY_UNAVAILABLE", app.submit(&submission()).await);
    world.authority.clear_faults();
}

/// Writes of a taxpayer that an operator has paused.
async fn refuse_for_a_time(world: &World, operator: &Operator, examples: &mut FailureExamples) {
    let paused = world.taxpayer().await;
    let pause = format!("/ops/taxpayers/{}/pause", paused.id);
    let reason = json!({ "reason": "it floods us" });
    operator
        .send("POST", &pause, &reason)
        .await
        .expect_status(200);
    let refused = paused.create_invoice(&documents::invoice()).await;
    examples.add("OVERLOADED", refused);
}

/// An integrator whose key may only read.
async fn read_only(world: &World, operator: &Operator) -> Client {
    let email = format!("reader{}@house.example", number());
    let name = "A Reader".to_owned();
    let made = app::create_integrator(world.settings(), name, email, KeyTerms::default());
    let rotate = format!(
        "/ops/integrators/{}/api-key/rotate",
        made.await.unwrap()["id"]
    );
    let scope = json!({ "scope": "read_only" });
    let rotated = operator.send("POST", &rotate, &scope).await;
    let rotated = rotated.expect_status(200);
    world
        .anonymous()
        .with_key(rotated.data()["api_key"].as_str().unwrap())
}

/// An operator who may only look.
async fn viewer(world: &World) -> Client {
    let email = format!("viewer{}@house.example", number());
    let made = app::create_operator(
        world.settings(),
        email,
        OperatorRole::Viewer,
        KeyTerms::default(),
    );
    let made = made.await.unwrap();
    world
        .anonymous()
        .with_key(made["api_key"].as_str().unwrap())
}
