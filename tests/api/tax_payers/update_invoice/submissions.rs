//! An update and a submission of the same invoice: whichever is stored first. Nothing older than the stored
//! invoice is signed after it was edited.

use std::time::Duration;

use futures_util::future::join;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::roles::{REPORT, Taxpayer};
use testkit::{each_database, on_sqlite};
use tokio::time::sleep;

use crate::support::world::{RETRY_LATE, World};

fn sign_attempts(world: &World, irn: &Value) -> u64 {
    let sheet = world.authority.invoice(irn.as_str().unwrap());
    sheet.map_or(0, |sheet| u64::from(sheet.sign_attempts))
}

#[each_database(&[("PIPELINE__RETRY_MAX_S", "1")])]
async fn a_submission_that_waits_is_called_off_by_an_update(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let old = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let other = documents::submission(&taxpayer, &documents::invoice_no());
    taxpayer.app().submit_async(&other).await.expect_status(202);
    let waiting = async { taxpayer.app().submit(&old).await };
    let edit = async {
        eventually("a run that waits", async || {
            let run = taxpayer.app().run(irn).await;
            (run.data()["state"] == json!("waiting")).then_some(())
        })
        .await;
        taxpayer
            .update(&documents::update(&invoice))
            .await
            .expect_status(200)
    };
    let (submitted, edited) = join(waiting, edit).await;
    submitted.expect_refusal(409, "INVALID_TRANSITION");
    assert!(
        edited.warnings().contains("called off"),
        "{}",
        edited.warnings()
    );
    assert_eq!(edited.data()["authority_data"]["status"], json!("PENDING"));
    assert_eq!(
        taxpayer.app().run(irn).await.data()["state"],
        json!("cancelled")
    );
    world.authority.clear_faults();
    eventually("a run that waited for the same authority", async || {
        let run = taxpayer.app().run(other["irn"].as_str().unwrap()).await;
        (run.data()["state"] == json!("succeeded")).then_some(())
    })
    .await;
    assert_eq!(
        (
            sign_attempts(world, &invoice["irn"]),
            &taxpayer.reread(&invoice).await["status"]
        ),
        (0, &json!("draft"))
    );
    let new = with(&old, "note", json!("as edited"));
    taxpayer.app().submit(&new).await.expect_status(200);
    assert_eq!(
        taxpayer.reread(&invoice).await["status"],
        json!("submitted")
    );
    taxpayer
        .app()
        .submit(&old)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
    assert_eq!(sign_attempts(world, &invoice["irn"]), 1);
}

/// A refusal is about the content that was sent; the new content has been sent to nobody.
#[each_database]
async fn an_update_after_a_refusal_is_pending_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = format!("INV{}SBXREJECT", documents::number());
    let invoice = taxpayer.invoice(&documents::invoice_numbered(&no)).await;
    let submission = documents::submission(&taxpayer, &no);
    taxpayer
        .app()
        .submit_to_the_end(&submission)
        .await
        .expect_refusal(422, "AUTHORITY_REJECTED");
    assert_eq!(
        taxpayer.reread(&invoice).await["authority_data"]["status"],
        json!("REJECTED")
    );
    let edited = taxpayer
        .update(&documents::update(&invoice))
        .await
        .expect_status(200);
    assert_eq!(edited.data()["authority_data"]["status"], json!("PENDING"));
    assert_eq!(
        taxpayer.reread(&invoice).await["authority_data"]["status"],
        json!("PENDING")
    );
}

#[each_database]
async fn a_call_that_is_under_way_when_its_submission_is_called_off_counts_for_nothing(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    for operation in [Operation::IrnValidate, Operation::Validate] {
        for is_new in [false, true] {
            let invoice = taxpayer.invoice(&documents::invoice()).await;
            let irn = invoice["irn"].as_str().unwrap();
            let old = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
            let late = FaultOrder {
                irn: Some(irn.to_owned()),
                latency_ms: Some(1_500),
                ..FaultOrder::new(FaultKind::Latency).on(operation)
            };
            world.authority.add_fault(late).unwrap();
            taxpayer.app().submit_async(&old).await.expect_status(202);
            world.under_way(operation, irn, 1).await;
            let edited = taxpayer
                .update(&documents::update(&invoice))
                .await
                .expect_status(200);
            assert!(
                edited.warnings().contains("called off"),
                "{}",
                edited.warnings()
            );
            let next = if is_new {
                with(&old, "note", json!("as edited"))
            } else {
                old
            };
            if !is_new {
                world.under_way(operation, irn, 0).await;
                assert_eq!(sign_attempts(world, &invoice["irn"]), 0);
                assert_eq!(taxpayer.reread(&invoice).await["status"], json!("draft"));
            }
            // Well before the lease of the first run would have ended.
            taxpayer.app().submit(&next).await.expect_status(200);
            assert_eq!(
                taxpayer.reread(&invoice).await["status"],
                json!("submitted")
            );
            assert_eq!(sign_attempts(world, &invoice["irn"]), 1);
        }
    }
}

#[each_database]
async fn of_an_update_and_a_submission_at_once_one_comes_first(world: &World) {
    let taxpayer = world.taxpayer().await;
    for _ in 0..12 {
        let invoice = taxpayer.invoice(&documents::invoice()).await;
        let submission = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
        let update = documents::update(&invoice);
        let app = taxpayer.app();
        let (submitted, updated) = join(app.submit(&submission), taxpayer.update(&update)).await;
        let after = taxpayer.reread(&invoice).await;
        let signed = sign_attempts(world, &invoice["irn"]);
        match (submitted.status, updated.status) {
            // The update came first, or the submission was called off before it was signed and sent again.
            (200, 200) => assert!(
                !updated.warnings().contains("called off"),
                "{}",
                updated.warnings()
            ),
            (200, 409) => {
                assert_eq!(
                    (updated.code(), &after["is_edited"]),
                    ("INVOICE_LOCKED", &json!(false))
                );
            }
            (409, 200) => {
                assert!(
                    updated.warnings().contains("called off"),
                    "{}",
                    updated.warnings()
                );
                assert_eq!((signed, &after["status"]), (0, &json!("draft")));
            }
            other => panic!("{other:?}: {} {}", submitted.text, updated.text),
        }
    }
}

#[each_database]
async fn a_refused_submission_does_not_stand_in_the_way(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = format!("{}SBXREJECT", documents::invoice_no());
    let invoice = taxpayer
        .invoice(&with(&documents::invoice(), "invoice_no", json!(no)))
        .await;
    let submission = documents::submission(&taxpayer, &no);
    taxpayer
        .app()
        .submit(&submission)
        .await
        .expect_refusal(422, "AUTHORITY_REJECTED");
    let answer = taxpayer
        .update(&documents::update(&invoice))
        .await
        .expect_status(200);
    assert_eq!(answer.warnings(), "");
}

/// The service asks the authority before it sends such a report again, so the report may be there.
#[each_database(&RETRY_LATE)]
async fn an_invoice_whose_report_waits_after_a_call_is_not_changed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let refuse_once = FaultOrder {
        irn: Some(irn.to_owned()),
        ..FaultOrder::new(FaultKind::Throttled).on(Operation::Report)
    };
    world.authority.add_fault(refuse_once.times(1)).unwrap();
    let waiting = taxpayer.app().report(&json!({ "irn": irn })).await;
    waiting.expect_refusal(500, "AUTHORITY_UNAVAILABLE");
    let edited = taxpayer.update(&documents::update(&invoice)).await;
    edited.expect_refusal(409, "INVOICE_LOCKED");
}

#[each_database]
async fn an_invoice_whose_report_is_under_way_is_not_changed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let late = FaultOrder {
        irn: Some(irn.to_owned()),
        latency_ms: Some(1_500),
        ..FaultOrder::new(FaultKind::Latency).on(Operation::Report)
    };
    world.authority.add_fault(late).unwrap();
    let app = taxpayer.app();
    let alone = json!({ "irn": irn });
    let edit = async {
        world.under_way(Operation::Report, irn, 1).await;
        taxpayer.update(&documents::update(&invoice)).await
    };
    let (reported, edited) = join(app.report(&alone), edit).await;
    reported.expect_status(200);
    edited.expect_refusal(409, "INVOICE_LOCKED");
}

async fn report_async(taxpayer: &Taxpayer, body: &Value) {
    let request = taxpayer.request("POST", REPORT);
    let request = request.header("prefer", "respond-async").json(body);
    Answer::to(request).await.expect_status(202);
}

/// A report that waits for its turn has reached nobody.
#[on_sqlite(&[("PIPELINE__CONCURRENCY_MAX", "1")])]
async fn a_report_that_no_call_has_sent_is_called_off_by_an_update(world: &World) {
    let taxpayer = world.taxpayer().await;
    let reports = |irn: &str| {
        let sheet = world.authority.invoice(irn);
        sheet.map_or((0, 0), |sheet| (sheet.report_count, sheet.report_attempts))
    };
    let blocking = documents::irn(&taxpayer, &documents::invoice_no());
    let late = FaultOrder {
        irn: Some(blocking.clone()),
        latency_ms: Some(4_000),
        ..FaultOrder::new(FaultKind::Latency).on(Operation::Report)
    };
    world.authority.add_fault(late).unwrap();
    report_async(&taxpayer, &documents::report(&taxpayer, &blocking)).await;
    world.under_way(Operation::Report, &blocking, 1).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let irn = invoice["irn"].as_str().unwrap();
    let alone = json!({ "irn": irn });
    report_async(&taxpayer, &alone).await;
    let queued = taxpayer.reread(&invoice).await;
    assert_eq!(queued["authority_data"]["status"], json!("QUEUED"));
    let edited = taxpayer.update(&documents::update(&invoice)).await;
    let edited = edited.expect_status(200);
    let advice = "the report of the earlier content was called off: report it again";
    let warnings = edited.warnings();
    assert!(warnings.contains(advice), "{warnings}");
    assert_eq!(edited.data()["authority_data"]["status"], json!("PENDING"));
    let run = taxpayer.app().fetch_run_with_operation(irn, "report").await;
    assert_eq!(run.data()["state"], json!("cancelled"), "{}", run.text);
    // The report that is queued after it is sent, and it is not.
    let later = documents::irn(&taxpayer, &documents::invoice_no());
    report_async(&taxpayer, &documents::report(&taxpayer, &later)).await;
    let arrived = async || (reports(&later).1 == 1).then_some(());
    eventually("a later report", arrived).await;
    assert_eq!(reports(irn), (0, 0));
    taxpayer.app().report(&alone).await.expect_status(200);
    assert_eq!(reports(irn), (1, 1));
    let reported = taxpayer.reread(&invoice).await;
    assert_eq!(reported["status"], json!("reported"));
}

/// Whoever submits by the IRN means what is stored, and whoever edits means that what is stored is sent.
#[each_database]
async fn a_submission_by_irn_never_signs_what_was_stored_before_an_update(world: &World) {
    let taxpayer = world.taxpayer().await;
    let app = taxpayer.app();
    for round in 0..24 {
        let invoice = taxpayer.invoice(&documents::invoice()).await;
        let irn = invoice["irn"].as_str().unwrap();
        let alone = json!({ "irn": irn });
        let edit = async {
            sleep(Duration::from_millis(round % 6)).await;
            taxpayer.update(&documents::update(&invoice)).await
        };
        let (submitted, edited) = join(app.submit(&alone), edit).await;
        if (submitted.status, edited.status) != (200, 200) {
            assert!(
                [(200, 409), (409, 200)].contains(&(submitted.status, edited.status)),
                "{} {}",
                submitted.text,
                edited.text
            );
            continue;
        }
        let signed = app.download(irn).await.expect_status(200);
        let signed = &signed.data()["legal_monetary_total"]["payable_amount"];
        assert_eq!(signed.to_string(), "215.00", "round {round}");
    }
}
