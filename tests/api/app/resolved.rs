//! What became of a call whose answer was lost, unreadable or late, on each operation with an effect; and how that
//! became known (`resolved_by`).

use sandbox::{FaultKind, FaultOrder, InvoiceSheet, Operation};
use serde_json::{Value, json};
use testkit::documents::{self, irn, report, submission};
use testkit::edit::{exact, with};
use testkit::patience::eventually;
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::planted::plant;
use crate::support::world::{ALONE, World};

/// The effect takes place, and the answer is lost or cannot be read.
const COMMITTED: [FaultKind; 4] = [
    FaultKind::CommitThenDrop,
    FaultKind::Garbage,
    FaultKind::Xml,
    FaultKind::MissingFields,
];
/// Nothing takes place.
const PREVENTED: [FaultKind; 2] = [FaultKind::Busy, FaultKind::Reset];
/// Longer than any run of these tests is tried.
const ALWAYS: u32 = 100_000;

fn fault(world: &World, kind: FaultKind, operation: Operation, irn: &str) {
    let mut order = FaultOrder::new(kind).on(operation);
    order.irn = Some(irn.to_owned());
    world.authority.add_fault(order).unwrap();
}

/// An operation that is out for everybody.
fn out(world: &World, operation: Operation) {
    world
        .authority
        .add_fault(
            FaultOrder::new(FaultKind::ServerError)
                .on(operation)
                .times(ALWAYS),
        )
        .unwrap();
}

fn sheet(world: &World, irn: &str) -> InvoiceSheet {
    world.authority.invoice(irn).unwrap()
}

/// The run of an operation once it has ended well.
async fn succeeded(taxpayer: &Taxpayer, irn: &str, operation: &str) -> Value {
    let ended = async || {
        let run = taxpayer
            .app()
            .fetch_run_with_operation(irn, operation)
            .await
            .expect_status(200)
            .data()
            .clone();
        assert_ne!(run["state"], json!("refused"), "{run}");
        (run["state"] == json!("succeeded")).then_some(run)
    };
    eventually("the end of a run", ended).await
}

async fn resolved_by(taxpayer: &Taxpayer, irn: &str, operation: &str) -> Value {
    succeeded(taxpayer, irn, operation).await["resolved_by"].clone()
}

/// A stored invoice that was submitted, and its IRN.
async fn signed(taxpayer: &Taxpayer) -> String {
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    taxpayer
        .app()
        .submit_to_the_end(&submission(taxpayer, no))
        .await
        .expect_status(200);
    invoice["irn"].as_str().unwrap().to_owned()
}

fn expected(kind: FaultKind, committed: &str) -> Value {
    json!(if PREVENTED.contains(&kind) {
        "answer"
    } else {
        committed
    })
}

#[on_sqlite]
async fn a_lost_signature_is_known_by_its_document(world: &World) {
    let taxpayer = world.taxpayer().await;
    for kind in COMMITTED.into_iter().chain(PREVENTED) {
        let body = submission(&taxpayer, &documents::invoice_no());
        let irn = body["irn"].as_str().unwrap();
        fault(world, kind, Operation::Sign, irn);
        let answer = taxpayer.app().submit(&body).await.expect_status(200);
        let known = expected(kind, "download");
        assert_eq!(answer.body["message"]["resolved_by"], known, "{kind:?}");
        assert_eq!(
            resolved_by(&taxpayer, irn, "submit").await,
            known,
            "{kind:?}"
        );
        let sheet = sheet(world, irn);
        let tries = if PREVENTED.contains(&kind) { 2 } else { 1 };
        assert_eq!(
            (sheet.sign_count, sheet.sign_attempts),
            (1, tries),
            "{kind:?}"
        );
    }
}

#[on_sqlite]
async fn a_lost_transmission_is_known_by_asking(world: &World) {
    let taxpayer = world.taxpayer().await;
    for kind in COMMITTED.into_iter().chain(PREVENTED) {
        let irn = signed(&taxpayer).await;
        fault(world, kind, Operation::Transmit, &irn);
        taxpayer.app().transmit(&irn).await;
        assert_eq!(
            resolved_by(&taxpayer, &irn, "transmit").await,
            expected(kind, "confirm"),
            "{kind:?}"
        );
        assert_eq!(sheet(world, &irn).transmit_count, 1, "{kind:?}");
    }
}

#[on_sqlite]
async fn a_lost_report_is_sent_again_and_there_is_one(world: &World) {
    let taxpayer = world.taxpayer().await;
    for kind in COMMITTED.into_iter().chain(PREVENTED) {
        let irn = irn(&taxpayer, &documents::invoice_no());
        fault(world, kind, Operation::Report, &irn);
        taxpayer.app().report(&report(&taxpayer, &irn)).await;
        assert_eq!(
            resolved_by(&taxpayer, &irn, "report").await,
            json!("answer"),
            "{kind:?}"
        );
        assert_eq!(sheet(world, &irn).report_count, 1, "{kind:?}");
    }
}

#[on_sqlite]
async fn a_lost_payment_is_known_by_asking(world: &World) {
    let taxpayer = world.taxpayer().await;
    for kind in COMMITTED.into_iter().chain(PREVENTED) {
        let irn = signed(&taxpayer).await;
        fault(world, kind, Operation::Update, &irn);
        taxpayer.app().set_payment_status(&irn, "PAID").await;
        let known = resolved_by(&taxpayer, &irn, "update-payment-status").await;
        assert_eq!(known, expected(kind, "confirm"), "{kind:?}");
        assert_eq!(sheet(world, &irn).payment_status, Some("PAID"), "{kind:?}");
    }
}

#[on_sqlite(&[("AUTHORITY__TIMEOUT_S", "2")])]
async fn an_answer_that_comes_too_late_is_found_out_about(world: &World) {
    let taxpayer = world.taxpayer().await;
    let late = |operation: Operation, irn: &str| {
        let mut order = FaultOrder::new(FaultKind::Latency).on(operation);
        (order.irn, order.latency_ms) = (Some(irn.to_owned()), Some(6_000));
        world.authority.add_fault(order).unwrap();
    };
    let body = submission(&taxpayer, &documents::invoice_no());
    let irn = body["irn"].as_str().unwrap();
    late(Operation::Sign, irn);
    late(Operation::Transmit, irn);
    late(Operation::Update, irn);
    late(Operation::Report, irn);
    taxpayer.app().submit(&body).await.expect_status(200);
    assert_eq!(
        resolved_by(&taxpayer, irn, "submit").await,
        json!("download")
    );
    taxpayer.app().transmit(irn).await;
    assert_eq!(
        resolved_by(&taxpayer, irn, "transmit").await,
        json!("confirm")
    );
    taxpayer.app().set_payment_status(irn, "PAID").await;
    assert_eq!(
        resolved_by(&taxpayer, irn, "update-payment-status").await,
        json!("confirm")
    );
    taxpayer.app().report(&report(&taxpayer, irn)).await;
    assert_eq!(resolved_by(&taxpayer, irn, "report").await, json!("answer"));
    let sheet = sheet(world, irn);
    assert_eq!(
        (sheet.sign_count, sheet.transmit_count, sheet.report_count),
        (1, 1, 1)
    );
}

#[each_database]
async fn an_irn_that_somebody_else_let_sign_is_never_taken_as_ours(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    let irn = invoice["irn"].as_str().unwrap();
    plant(world, &taxpayer, no, |document| {
        document["invoice_line"][0]["item"]["name"] = json!("Desk");
    })
    .await;
    let body = submission(&taxpayer, no);
    let answer = taxpayer
        .app()
        .submit(&body)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
    assert!(
        answer.message().contains("another document under this IRN"),
        "{}",
        answer.text
    );
    assert!(
        answer.message().contains("another invoice number"),
        "{}",
        answer.text
    );
    let run = taxpayer.app().run(irn).await.expect_status(200);
    assert_eq!(
        (&run.data()["state"], &run.data()["resolved_by"]),
        (&json!("refused"), &Value::Null)
    );
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("draft"), &json!("REJECTED"))
    );
    assert_eq!(taxpayer.count_events("invoice.rejected").await, 1);
    assert_eq!(sheet(world, irn).sign_attempts, 0, "it was not even tried");
    taxpayer
        .app()
        .transmit(irn)
        .await
        .expect_refusal(500, "INVOICE_NOT_SIGNED");
    let copy = taxpayer.app().download(irn).await.expect_status(200);
    assert_eq!(
        copy.data()["invoice_line"][0]["item"]["name"],
        json!("Desk")
    );
    // What was signed may still be sent: it is found to be the same.
    let same = with(&body, "invoice_line.0.item.name", json!("Desk"));
    taxpayer.app().submit(&same).await.expect_status(200);
    assert_eq!(
        resolved_by(&taxpayer, irn, "submit").await,
        json!("download")
    );
}

#[each_database]
async fn a_document_that_was_signed_in_an_earlier_life_is_ours_and_is_not_signed_again(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    let irn = invoice["irn"].as_str().unwrap();
    plant(world, &taxpayer, no, |document| {
        document["sync_date"] = json!("2026-01-16");
        document["note"] = Value::Null;
        document["payment_status"] = json!("PAID");
        document["legal_monetary_total"]["payable_amount"] = exact("1075.00");
    })
    .await;
    let answer = taxpayer
        .app()
        .submit(&submission(&taxpayer, no))
        .await
        .expect_status(200);
    assert_eq!(answer.body["message"]["resolved_by"], json!("download"));
    assert!(
        answer.body["message"]["qr_code"].is_string(),
        "{}",
        answer.text
    );
    let sheet = sheet(world, irn);
    assert_eq!((sheet.sign_count, sheet.sign_attempts), (1, 0));
    assert_eq!(
        taxpayer.reread(&invoice).await["status"],
        json!("submitted")
    );
}

#[on_sqlite]
async fn an_irn_that_is_taken_between_its_check_and_its_signature_is_not_ours(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let body = submission(&taxpayer, &no);
    let irn = body["irn"].as_str().unwrap();
    let mut late = FaultOrder::new(FaultKind::Latency).on(Operation::Validate);
    (late.irn, late.latency_ms) = (Some(irn.to_owned()), Some(3_000));
    world.authority.add_fault(late).unwrap();
    taxpayer.app().submit_async(&body).await.expect_status(202);
    world.under_way(Operation::Validate, irn, 1).await;
    plant(world, &taxpayer, &no, |document| {
        document["invoice_line"][0]["item"]["name"] = json!("Desk");
    })
    .await;
    taxpayer
        .app()
        .submit(&body)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
    assert_eq!(sheet(world, irn).sign_count, 1);
}

#[on_sqlite]
async fn what_the_authority_adds_is_no_difference_and_what_it_lacks_is_one(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    plant(world, &taxpayer, &no, |document| {
        document["note"] = json!("by the authority");
    })
    .await;
    let answer = taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    assert_eq!(answer.body["message"]["resolved_by"], json!("download"));

    let noted = with(
        &submission(&taxpayer, &documents::invoice_no()),
        "note",
        json!("ours"),
    );
    let no = noted["invoice_reference"].as_str().unwrap();
    plant(world, &taxpayer, no, |_| {}).await;
    taxpayer
        .app()
        .submit(&noted)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
}

#[on_sqlite(ALONE)]
async fn where_confirm_is_out_the_search_is_asked(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = signed(&taxpayer).await;
    let mut late = FaultOrder::new(FaultKind::CommitThenDrop).on(Operation::Update);
    (late.irn, late.latency_ms) = (Some(irn.clone()), Some(2_000));
    world.authority.add_fault(late).unwrap();
    let app = taxpayer.app();
    let called = async || {
        let called = async || (sheet(world, &irn).update_attempts == 1).then_some(());
        eventually("the call", called).await;
        out(world, Operation::Confirm);
    };
    let (paid, ()) =
        futures_util::future::join(app.set_payment_status(&irn, "PAID"), called()).await;
    paid.expect_status(200);
    assert_eq!(
        resolved_by(&taxpayer, &irn, "update-payment-status").await,
        json!("search")
    );

    fault(world, FaultKind::CommitThenDrop, Operation::Transmit, &irn);
    app.transmit(&irn).await.expect_status(200);
    assert_eq!(
        resolved_by(&taxpayer, &irn, "transmit").await,
        json!("search")
    );

    let body = submission(&taxpayer, &documents::invoice_no());
    fault(
        world,
        FaultKind::CommitThenDrop,
        Operation::Sign,
        body["irn"].as_str().unwrap(),
    );
    let answer = app.submit(&body).await.expect_status(200);
    assert_eq!(answer.body["message"]["resolved_by"], json!("download"));
    // With an answer to the signature only its confirmation is left to the search.
    let plain = app
        .submit(&submission(&taxpayer, &documents::invoice_no()))
        .await
        .expect_status(200);
    assert_eq!(plain.body["message"]["resolved_by"], json!("search"));
}

#[on_sqlite(&[("PIPELINE__WAIT_S", "2")])]
async fn where_both_witnesses_are_silent_the_run_waits_and_nothing_is_sent_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = signed(&taxpayer).await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let unsigned = body["irn"].as_str().unwrap();
    fault(world, FaultKind::CommitThenDrop, Operation::Sign, unsigned);
    fault(world, FaultKind::CommitThenDrop, Operation::Transmit, &irn);
    out(world, Operation::Confirm);
    out(world, Operation::Search);
    taxpayer
        .app()
        .submit(&body)
        .await
        .expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    let unsent = taxpayer
        .app()
        .transmit(&irn)
        .await
        .expect_refusal(500, "AUTHORITY_UNAVAILABLE");
    assert_eq!(unsent.body["retryable"], json!(true));
    let run = taxpayer
        .app()
        .fetch_run_with_operation(unsigned, "submit")
        .await
        .expect_status(200);
    assert!(
        ["waiting", "running"].contains(&run.data()["state"].as_str().unwrap()),
        "{}",
        run.text
    );
    assert_eq!(run.data()["step"], json!("sign"));
    let other = with(&body, "note", json!("other content"));
    taxpayer
        .app()
        .submit(&other)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
    assert_eq!(
        (
            sheet(world, unsigned).sign_attempts,
            sheet(world, &irn).transmit_attempts
        ),
        (1, 1)
    );
    world.authority.clear_faults();
    assert_eq!(
        resolved_by(&taxpayer, unsigned, "submit").await,
        json!("download")
    );
    assert_eq!(
        resolved_by(&taxpayer, &irn, "transmit").await,
        json!("confirm")
    );
    assert_eq!(
        (
            sheet(world, unsigned).sign_attempts,
            sheet(world, &irn).transmit_attempts
        ),
        (1, 1)
    );
}

#[on_sqlite]
async fn a_download_that_cannot_be_had_for_the_moment_is_asked_for_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    for kind in [
        FaultKind::Garbage,
        FaultKind::MissingFields,
        FaultKind::ServerError,
    ] {
        let body = submission(&taxpayer, &documents::invoice_no());
        let irn = body["irn"].as_str().unwrap();
        fault(world, FaultKind::CommitThenDrop, Operation::Sign, irn);
        let mut order = FaultOrder::new(kind).on(Operation::Download).times(2);
        order.irn = Some(irn.to_owned());
        world.authority.add_fault(order).unwrap();
        let answer = taxpayer.app().submit(&body).await.expect_status(200);
        assert_eq!(
            answer.body["message"]["resolved_by"],
            json!("download"),
            "{kind:?}"
        );
        assert_eq!(sheet(world, irn).sign_attempts, 1, "{kind:?}");
    }
}

#[each_database]
async fn a_payment_status_that_stands_already_is_known_by_asking_and_its_step_says_so(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let irn = signed(&taxpayer).await;
    taxpayer
        .app()
        .set_payment_status(&irn, "PENDING")
        .await
        .expect_status(200);
    let run = succeeded(&taxpayer, &irn, "update-payment-status").await;
    assert_eq!(
        (&run["resolved_by"], &run["steps"][0]["outcome"]),
        (&json!("confirm"), &json!("unchanged"))
    );
    assert_eq!(sheet(world, &irn).update_attempts, 0);
}

#[on_sqlite]
async fn a_confirmation_that_is_refused_does_not_refuse_what_is_signed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let irn = body["irn"].as_str().unwrap();
    let mut odd = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::Confirm)
        .times(2);
    (odd.irn, odd.status) = (Some(irn.to_owned()), Some(409));
    world.authority.add_fault(odd).unwrap();
    fault(world, FaultKind::CommitThenDrop, Operation::Sign, irn);
    let answer = taxpayer.app().submit(&body).await.expect_status(200);
    assert_eq!(answer.body["message"]["resolved_by"], json!("download"));
    assert_eq!(sheet(world, irn).sign_attempts, 1);
}
