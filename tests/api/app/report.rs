//! POST /v1/app/invoices/report.

use futures_util::future::join_all;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, irn, number, report, submission};
use testkit::edit::{exact, with, without};
use testkit::patience::eventually;
use testkit::roles::{REPORT, SUBMIT};
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, RETRY_LATE, World};

/// Different reports the authority holds of an IRN, and how often it was called.
fn reports(world: &World, irn: &str) -> (u32, u32) {
    world
        .authority
        .invoice(irn)
        .map_or((0, 0), |sheet| (sheet.report_count, sheet.report_attempts))
}

fn fault(world: &World, kind: FaultKind, irn: &str, times: u32) {
    let mut order = FaultOrder::new(kind).on(Operation::Report).times(times);
    order.irn = Some(irn.to_owned());
    world.authority.add_fault(order).unwrap();
}

#[each_database]
async fn a_report_is_answered_and_moves_its_invoice(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let answer = taxpayer
        .app()
        .report(&report(&taxpayer, irn))
        .await
        .expect_status(200);
    assert_eq!(answer.message(), "Invoice reported successfully");
    assert_eq!(
        *answer.data(),
        json!({ "invoice_number": invoice["invoice_no"], "ok": true, "irn": irn })
    );
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("reported"), &json!("REPORTED"))
    );
    let events = taxpayer.events().await;
    let reported: Vec<_> = events.iter().skip(events.len() - 2).collect();
    assert_eq!(reported[0]["type"], json!("invoice.status-updated"));
    assert_eq!(reported[1]["type"], json!("invoice.reported"));
    for event in reported {
        assert_eq!(event["data"]["previous_status"], json!("draft"));
        assert_eq!(event["data"]["status"], json!("reported"));
    }
    assert_eq!(reports(world, irn), (1, 1));
    taxpayer
        .set_status(&invoice, "cancelled")
        .await
        .expect_refusal(409, "INVOICE_LOCKED");
}

#[on_sqlite]
async fn all_faults_are_reported_at_once_and_nothing_is_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = irn(&taxpayer, &documents::invoice_no());
    let body = report(&taxpayer, &irn);
    let empty = taxpayer
        .app()
        .report(&json!({}))
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    assert_eq!(empty.faulty_paths().len(), 12, "{}", empty.text);
    let two = without(&with(&body, "vat_rate", exact("100.01")), "vat_status");
    taxpayer
        .app()
        .report(&two)
        .await
        .expect_faults(&["vat_rate", "vat_status"]);
    let odd = taxpayer
        .app()
        .report(&with(&body, "irn", json!("INV1")))
        .await;
    assert_eq!(
        odd.expect_refusal(422, "IRN_MALFORMED").faulty_paths(),
        ["irn"]
    );
    assert_eq!(reports(world, &irn), (0, 0));
}

#[each_database]
async fn values_at_their_limits_are_taken(world: &World) {
    let taxpayer = world.taxpayer().await;
    let long = format!("{:0>82}", number());
    let mut body = report(&taxpayer, &irn(&taxpayer, &long));
    assert_eq!(body["irn"].as_str().unwrap().len(), 100);
    for (path, value) in [
        ("agent_tin", json!("1".repeat(50))),
        ("beneficiary_tin", json!("1".repeat(50))),
        ("item_description", json!("x".repeat(255))),
        ("integrator_service_id", json!("x".repeat(100))),
        ("other_taxes", exact("12.50")),
        ("vat_rate", json!(100)),
        ("vat_status", json!("zero_rated")),
    ] {
        body = with(&body, path, value);
    }
    taxpayer.app().report(&body).await.expect_status(200);
}

#[on_sqlite]
async fn each_vat_status_is_one_that_the_authority_takes(world: &World) {
    let taxpayer = world.taxpayer().await;
    for status in ["STANDARD_VAT", "EXEMPT", "NON_VATABLE", "ZERO_RATED"] {
        let body = report(&taxpayer, &irn(&taxpayer, &documents::invoice_no()));
        taxpayer
            .app()
            .report(&with(&body, "vat_status", json!(status)))
            .await
            .expect_status(200);
    }
}

#[each_database]
async fn a_second_report_gets_the_stored_result_without_a_call(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = irn(&taxpayer, &documents::invoice_no());
    let body = report(&taxpayer, &irn);
    let first = taxpayer.app().report(&body).await.expect_status(200);
    let events = taxpayer.events().await.len();
    let again = taxpayer.app().report(&body).await.expect_status(200);
    assert_eq!(again.body, first.body);
    assert_eq!(reports(world, &irn), (1, 1));
    assert_eq!(taxpayer.events().await.len(), events);
    let base = body["base_amount"].to_string();
    let longer = if base.contains('.') {
        format!("{base}00")
    } else {
        format!("{base}.00")
    };
    let spelled = taxpayer
        .app()
        .report(&with(&body, "base_amount", exact(&longer)))
        .await
        .expect_status(200);
    assert_eq!(spelled.body, first.body, "{longer} is the same number");
    assert_eq!(reports(world, &irn), (1, 1));
    let other = with(&body, "item_description", json!("Three laptops"));
    taxpayer
        .app()
        .report(&other)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
    assert_eq!(reports(world, &irn), (1, 1));
}

#[each_database]
async fn concurrent_reports_of_one_irn_are_one(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = irn(&taxpayer, &documents::invoice_no());
    let body = report(&taxpayer, &irn);
    let app = taxpayer.app();
    let answers = join_all((0..8).map(|_| app.report(&body))).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 200 && answer.body == answers[0].body)
    );
    assert_eq!(reports(world, &irn), (1, 1));
}

#[each_database]
async fn an_irn_of_no_stored_invoice_is_relayed_and_recorded(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = irn(&taxpayer, &documents::invoice_no());
    taxpayer
        .app()
        .report(&report(&taxpayer, &irn))
        .await
        .expect_status(200);
    let run = taxpayer.app().run(&irn).await.expect_status(200);
    assert_eq!(
        (&run.data()["operation"], &run.data()["state"]),
        (&json!("report"), &json!("succeeded"))
    );
    assert_eq!(run.data()["steps"][0]["step"], json!("report"));
    let events = taxpayer.events().await;
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["irn"]),
        (&json!("invoice.reported"), &json!(irn))
    );
    assert_eq!(last["data"]["invoice"], Value::Null);
}

#[each_database]
async fn a_reply_that_is_lost_leads_to_one_report(world: &World) {
    let taxpayer = world.taxpayer().await;
    for kind in [
        FaultKind::CommitThenDrop,
        FaultKind::Garbage,
        FaultKind::Xml,
        FaultKind::Reset,
    ] {
        let invoice = taxpayer.invoice(&documents::invoice()).await;
        let irn = invoice["irn"].as_str().unwrap();
        fault(world, kind, irn, 1);
        taxpayer
            .app()
            .report_to_the_end(&report(&taxpayer, irn))
            .await
            .expect_status(200);
        assert_eq!(reports(world, irn), (1, 2), "{kind:?}");
        assert_eq!(taxpayer.reread(&invoice).await["status"], json!("reported"));
        let events = taxpayer.events().await;
        let reported = events
            .iter()
            .filter(|event| event["type"] == "invoice.reported");
        assert_eq!(
            reported.filter(|event| event["irn"] == json!(irn)).count(),
            1
        );
    }
}

#[on_sqlite(&RETRY_LATE)]
async fn a_report_that_may_have_arrived_is_not_replaced_by_another(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = irn(&taxpayer, &documents::invoice_no());
    let body = report(&taxpayer, &irn);
    fault(world, FaultKind::CommitThenDrop, &irn, 1);
    let answer = taxpayer
        .app()
        .report(&body)
        .await
        .expect_refusal(500, "AUTHORITY_UNAVAILABLE");
    assert_eq!(answer.body["retryable"], json!(true));
    assert!(
        answer.message().contains("closed the connection"),
        "{}",
        answer.text
    );
    assert_ne!(answer.header("retry-after"), "");
    let other = with(&body, "total_amount", json!(1));
    taxpayer
        .app()
        .report(&other)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
    taxpayer
        .app()
        .report_to_the_end(&body)
        .await
        .expect_status(200);
    assert_eq!(reports(world, &irn), (1, 2));
}

#[on_sqlite(ALONE)]
async fn a_report_in_an_outage_fails_at_once_and_goes_on_in_the_background(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = report(&taxpayer, invoice["irn"].as_str().unwrap());
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let answer = taxpayer
        .app()
        .report(&body)
        .await
        .expect_refusal(500, "AUTHORITY_UNAVAILABLE");
    assert_eq!(answer.body["retryable"], json!(true));
    assert!(
        answer.message().contains("failing (HTTP 503)"),
        "{}",
        answer.text
    );
    let waiting = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&waiting["status"], &waiting["authority_data"]["status"]),
        (&json!("draft"), &json!("QUEUED"))
    );
    world.authority.clear_faults();
    let reported = async || (taxpayer.reread(&invoice).await["status"] == "reported").then_some(());
    eventually("a report that nobody asks for again", reported).await;
}

#[each_database]
async fn what_the_authority_refuses_is_a_failed_report(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let body = report(&taxpayer, irn);
    let mut order = FaultOrder::new(FaultKind::ServerError).on(Operation::Report);
    (order.irn, order.status) = (Some(irn.to_owned()), Some(409));
    world.authority.add_fault(order).unwrap();
    let answer = taxpayer
        .app()
        .report(&body)
        .await
        .expect_refusal(500, "REPORT_FAILED");
    assert_eq!(answer.body["retryable"], json!(false));
    assert_eq!(answer.message(), "internal server error");
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("draft"), &json!("REJECTED"))
    );
    assert_eq!(
        taxpayer.event_names().await.last().unwrap(),
        "invoice.rejected"
    );
    let corrected = with(&body, "item_description", json!("Two good laptops"));
    taxpayer.app().report(&corrected).await.expect_status(200);
    assert_eq!(reports(world, irn), (1, 2));
}

#[on_sqlite]
async fn a_cancelled_invoice_is_not_reported(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "cancelled")
        .await
        .expect_status(200);
    let irn = invoice["irn"].as_str().unwrap();
    let answer = taxpayer.app().report(&report(&taxpayer, irn)).await;
    answer.expect_refusal(409, "INVALID_TRANSITION");
    assert_eq!(reports(world, irn), (0, 0));
}

#[each_database(&[("PIPELINE__CONCURRENCY_MAX", "1")])]
async fn a_queued_report_or_submission_of_an_invoice_that_is_cancelled_is_not_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let blocking = irn(&taxpayer, &documents::invoice_no());
    let mut late = FaultOrder::new(FaultKind::Latency).on(Operation::Report);
    (late.irn, late.latency_ms) = (Some(blocking.clone()), Some(4_000));
    world.authority.add_fault(late).unwrap();
    let send = async |path: &str, body: Value| {
        let request = taxpayer
            .request("POST", path)
            .header("prefer", "respond-async");
        Answer::to(request.json(&body)).await.expect_status(202)
    };
    send(REPORT, report(&taxpayer, &blocking)).await;
    let called = async || (reports(world, &blocking).1 == 1).then_some(());
    eventually("the call that is waited for", called).await;
    let one = taxpayer.invoice(&documents::invoice()).await;
    let other = taxpayer.invoice(&documents::invoice()).await;
    let reported = one["irn"].as_str().unwrap();
    let submitted = other["irn"].as_str().unwrap();
    send(REPORT, report(&taxpayer, reported)).await;
    send(
        SUBMIT,
        submission(&taxpayer, other["invoice_no"].as_str().unwrap()),
    )
    .await;
    for (invoice, operation) in [(&one, "report"), (&other, "submit")] {
        assert_eq!(
            taxpayer.reread(invoice).await["authority_data"]["status"],
            json!("QUEUED")
        );
        taxpayer
            .set_status(invoice, "cancelled")
            .await
            .expect_status(200);
        let run = taxpayer
            .app()
            .fetch_run_with_operation(invoice["irn"].as_str().unwrap(), operation)
            .await;
        assert_eq!(run.data()["state"], json!("cancelled"), "{}", run.text);
        assert_eq!(
            taxpayer.reread(invoice).await["authority_data"]["status"],
            json!("PENDING")
        );
    }
    // What is queued after them is sent, and they are not.
    let later = irn(&taxpayer, &documents::invoice_no());
    send(REPORT, report(&taxpayer, &later)).await;
    let arrived = async || (reports(world, &later).1 == 1).then_some(());
    eventually("a later report", arrived).await;
    assert_eq!(reports(world, reported), (0, 0));
    assert!(
        world.authority.invoice(submitted).is_none(),
        "no call named it"
    );
    taxpayer.set_status(&one, "draft").await.expect_status(200);
    taxpayer
        .app()
        .report(&report(&taxpayer, reported))
        .await
        .expect_status(200);
}

#[each_database]
async fn an_invoice_that_is_cancelled_while_its_report_is_under_way_stays_so_and_is_known_to_be_reported(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let no = format!("INV{}SBXSLOW", number());
    let invoice = taxpayer
        .invoice(&with(&documents::invoice(), "invoice_no", json!(no)))
        .await;
    let irn = invoice["irn"].as_str().unwrap();
    let request = taxpayer
        .request("POST", REPORT)
        .header("prefer", "respond-async");
    let answer = Answer::to(request.json(&report(&taxpayer, irn)))
        .await
        .expect_status(202);
    let address = answer.header("location").to_owned();
    assert_eq!(
        address,
        format!("/v1/app/invoices/{irn}/run?operation=report")
    );
    let called = async || (reports(world, irn).1 == 1).then_some(());
    eventually("the call", called).await;
    taxpayer
        .set_status(&invoice, "cancelled")
        .await
        .expect_status(200);
    let ended = async || {
        let run = taxpayer.get(&address).await.expect_status(200);
        (run.data()["state"] == "succeeded").then_some(())
    };
    eventually("the end of the run", ended).await;
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("cancelled"), &json!("REPORTED"))
    );
    assert_eq!(
        taxpayer.event_names().await.last().unwrap(),
        "invoice.reported"
    );
}

#[on_sqlite]
async fn a_report_does_not_keep_an_invoice_from_being_submitted_and_stays_the_last_word(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    taxpayer
        .app()
        .report(&report(&taxpayer, irn))
        .await
        .expect_status(200);
    let body = submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&body).await.expect_status(200);
    taxpayer.app().transmit(irn).await.expect_status(200);
    taxpayer.app().confirm_receipt(irn).await.expect_status(200);
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("reported"), &json!("REPORTED"))
    );
    assert_eq!(
        taxpayer.app().transmit(irn).await.data()["delivered"],
        json!(true)
    );
    let names = taxpayer.event_names().await;
    assert_eq!(
        names[names.len() - 6..],
        [
            "invoice.status-updated",
            "invoice.reported",
            "invoice.validated",
            "invoice.submitted",
            "invoice.transmitted",
            "invoice.acknowledged",
        ]
    );
}

#[each_database]
async fn a_transmitted_invoice_that_is_reported_is_reported(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let body = submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&body).await.expect_status(200);
    taxpayer.app().transmit(irn).await.expect_status(200);
    taxpayer
        .app()
        .report(&report(&taxpayer, irn))
        .await
        .expect_status(200);
    assert_eq!(taxpayer.reread(&invoice).await["status"], json!("reported"));
    let operation = |run: Answer| run.expect_status(200).data()["operation"].clone();
    assert_eq!(operation(taxpayer.app().run(irn).await), json!("transmit"));
    for name in ["submit", "transmit", "report"] {
        assert_eq!(
            operation(taxpayer.app().fetch_run_with_operation(irn, name).await),
            json!(name)
        );
    }
    let none = taxpayer
        .app()
        .fetch_run_with_operation(irn, "update-payment-status")
        .await;
    none.expect_refusal(404, "RUN_NOT_FOUND");
    taxpayer
        .app()
        .fetch_run_with_operation(irn, "dance")
        .await
        .expect_refusal(404, "RUN_NOT_FOUND");
}

#[on_sqlite]
async fn a_taxpayer_reports_for_itself_only(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let body = report(&one, &irn(&one, &documents::invoice_no()));
    let foreign = with(&body, "irn", json!(irn(&other, "INV1")));
    let answer = one
        .app()
        .report(&foreign)
        .await
        .expect_refusal(422, "IRN_SERVICE_ID_MISMATCH");
    assert_eq!(answer.faulty_paths(), ["irn"]);
    let business = with(&body, "business_id", json!(other.registration.business_id));
    one.app()
        .report(&business)
        .await
        .expect_faults(&["business_id"]);
    let service = with(
        &body,
        "integrator_service_id",
        json!(other.registration.service_id.to_lowercase()),
    );
    one.app()
        .report(&service)
        .await
        .expect_faults(&["integrator_service_id"]);
    let own = with(&body, "business_id", json!(one.registration.business_id));
    let nobodys = with(&own, "integrator_service_id", json!("0BADCAFE"));
    one.app().report(&nobodys).await.expect_status(200);
}

#[each_database]
async fn an_integrator_reports_for_the_taxpayer_that_the_body_names(world: &World) {
    let one = world.taxpayer().await;
    let other = world.taxpayer().await;
    let app = world.integrator().app();
    let whole = report(&one, &irn(&one, &documents::invoice_no()));
    let mixed = with(
        &whole,
        "integrator_service_id",
        json!(other.registration.service_id),
    );
    app.report(&with(&mixed, "agent_tin", json!(other.registration.tin)))
        .await
        .expect_status(200);
    let business = with(&whole, "business_id", json!(other.registration.business_id));
    app.report(&business)
        .await
        .expect_refusal(422, "IRN_SERVICE_ID_MISMATCH");
    // Where the IRN says nothing, the service id, the tax number and the header say who is meant in turn.
    let odd = with(&whole, "irn", json!("odd"));
    app.report(&odd).await.expect_refusal(422, "IRN_MALFORMED");
    let by_tin = with(&odd, "integrator_service_id", json!("ours"));
    app.report(&by_tin)
        .await
        .expect_refusal(422, "IRN_MALFORMED");
    for (field, value) in [
        ("integrator_service_id", "FFFFFFF0"),
        ("agent_tin", "no such tin"),
    ] {
        let unknown = with(&by_tin, field, json!(value));
        app.report(&unknown)
            .await
            .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    }
    let nameless = without(&by_tin, "agent_tin");
    app.report(&nameless)
        .await
        .expect_faults(&["agent_tin", "irn"]);
    let stranger = world.new_integrator().await.app();
    stranger
        .report(&whole)
        .await
        .expect_refusal(404, "TAXPAYER_NOT_FOUND");
}
