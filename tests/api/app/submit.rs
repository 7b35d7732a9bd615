//! POST /v1/app/invoices/submit.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::json;
use testkit::answer::stable_text;
use testkit::documents::{self, irn, number, submission};
use testkit::edit::{exact, with};
use testkit::patience::eventually;
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, World};

/// An invoice number of which the sandbox takes a word.
fn magic(word: &str) -> String {
    format!("INV{}{word}", number())
}

fn sign_count(world: &World, irn: &str) -> u64 {
    world
        .authority
        .invoice(irn)
        .map_or(0, |sheet| u64::from(sheet.sign_count))
}

#[on_sqlite]
async fn the_result_stands_under_message_and_the_sentence_under_data(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let answer = taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    assert_eq!(answer.body["success"], json!(true));
    assert_eq!(answer.body["data"], json!("Invoice submitted successfully"));
    assert_eq!(answer.body["message"]["irn"], json!(irn(&taxpayer, &no)));
    assert_eq!(sign_count(world, &irn(&taxpayer, &no)), 1);
    let unsteady = ["/message/irn", "/message/qr_code", "/message/submitted_at"];
    insta::assert_snapshot!(stable_text(&answer.body, &unsteady), @r#"
            {
              "data": "Invoice submitted successfully",
              "message": {
                "irn": "…",
                "ok": true,
                "qr_code": "…",
                "resolved_by": "answer",
                "submitted_at": "…"
              },
              "success": true
            }
        "#);
}

#[each_database]
async fn a_submission_costs_three_transactions_of_its_taxpayer_and_one_lease(world: &World) {
    let taxpayer = world.taxpayer().await;
    let id = taxpayer.id;
    world.settled(&json!(id)).await;
    // Each transaction that writes for a taxpayer raises the version of its lane; each lease raises a lane's epoch.
    let version = format!("SELECT version FROM lanes WHERE kind = 'taxpayer' AND key = '{id}'");
    let before = world.number(&version).await;
    let body = submission(&taxpayer, &documents::invoice_no());
    taxpayer.app().submit_async(&body).await.expect_status(202);
    let succeeded = async || {
        let run = taxpayer
            .app()
            .run(body["irn"].as_str().unwrap())
            .await
            .expect_status(200);
        (run.data()["state"] == json!("succeeded")).then_some(())
    };
    eventually("the end of the run", succeeded).await;
    let epoch = format!("SELECT epoch FROM lanes WHERE kind = 'run' AND key LIKE '{id}/%'");
    assert_eq!(
        (
            world.number(&version).await - before,
            world.number(&epoch).await
        ),
        (3, 1)
    );
}

#[each_database]
async fn a_stored_invoice_is_moved_by_its_submission(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    let answer = taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, no))
        .await
        .expect_status(200);
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("submitted"), &json!("SUBMITTED"))
    );
    assert_eq!(
        after["authority_data"]["qr_code"],
        answer.body["message"]["qr_code"]
    );
    assert_ne!(
        after["authority_data"]["qr_code"],
        invoice["authority_data"]["qr_code"]
    );
    let qr_code = after["authority_data"]["qr_code"].as_str().unwrap();
    let inside = world.authority.decrypt_qr(qr_code).unwrap();
    assert!(
        inside.contains(invoice["irn"].as_str().unwrap()),
        "{inside}"
    );
    let names = taxpayer.event_names().await;
    let moves: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("invoice."))
        .collect();
    assert_eq!(
        moves,
        [
            "invoice.created",
            "invoice.status-updated",
            "invoice.validated",
            "invoice.status-updated",
            "invoice.submitted",
        ]
    );
}

#[each_database]
async fn a_submission_that_says_paid_or_cancelled_is_stored_so(world: &World) {
    for (declared, read, paid) in [
        ("PAID", "PAID", true),
        ("CANCELLED", "REJECTED", false),
        ("PENDING", "PENDING", false),
    ] {
        let taxpayer = world.taxpayer().await;
        let invoice = taxpayer.invoice(&documents::invoice()).await;
        let body = submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
        let body = with(&body, "payment_status", json!(declared));
        taxpayer
            .app()
            .submit_to_the_end(&body)
            .await
            .expect_status(200);
        taxpayer.app().submit(&body).await.expect_status(200);
        let path = format!("/v1/tax-payers/invoices/{}?include=ledger", invoice["id"]);
        let after = taxpayer.get(&path).await.expect_status(200).data().clone();
        assert_eq!(
            (&after["payment_status"], &after["status"]),
            (&json!(read), &json!("submitted"))
        );
        let ledger = &after["ledger"];
        let entries = ledger["entries"].as_array().unwrap();
        assert_eq!(
            entries.len(),
            usize::from(declared != "PENDING"),
            "{ledger}"
        );
        if paid {
            assert_eq!(ledger["amount_paid"], ledger["payable_amount"]);
            assert_eq!(entries[0]["amount"], ledger["payable_amount"]);
        }
        let changes = taxpayer.count_events("payment.status-updated").await;
        assert_eq!(changes, entries.len(), "each is one event");
    }
}

#[each_database]
async fn the_events_of_a_submission_carry_the_invoice_as_it_was_then(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, no))
        .await
        .expect_status(200);
    let events = taxpayer.events().await;
    let of =
        |name: &str| events.iter().find(|event| event["type"] == name).unwrap()["data"].clone();
    for (name, before, after) in [
        ("invoice.validated", "draft", "validated"),
        ("invoice.submitted", "validated", "submitted"),
    ] {
        let data = of(name);
        assert_eq!(
            (&data["previous_status"], &data["status"]),
            (&json!(before), &json!(after)),
            "{name}"
        );
        assert_eq!(
            (&data["invoice"]["status"], &data["irn"]),
            (&json!(after), &invoice["irn"]),
            "{name}"
        );
    }
}

#[each_database]
async fn an_irn_of_no_stored_invoice_is_relayed_and_recorded(world: &World) {
    let taxpayer = world.taxpayer().await;
    let irn = irn(&taxpayer, "NEVERSTORED1");
    taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, "NEVERSTORED1"))
        .await
        .expect_status(200);
    assert_eq!(sign_count(world, &irn), 1);
    let run = taxpayer.app().run(&irn).await.expect_status(200);
    assert_eq!(run.data()["state"], json!("succeeded"));
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}

#[each_database]
async fn the_same_irn_again_gets_the_result_there_is(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let first = taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    let events = taxpayer.events().await.len();
    for _ in 0..3 {
        let again = taxpayer.app().submit(&body).await.expect_status(200);
        assert_eq!(again.body, first.body);
    }
    assert_eq!(sign_count(world, body["irn"].as_str().unwrap()), 1);
    assert_eq!(taxpayer.events().await.len(), events);
}

#[each_database]
async fn concurrent_submissions_of_one_irn_are_signed_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let twins = (0..8).map(async |_| taxpayer.app().submit_to_the_end(&body).await);
    let answers = futures_util::future::join_all(twins).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 200 && answer.body == answers[0].body)
    );
    let sheet = world
        .authority
        .invoice(body["irn"].as_str().unwrap())
        .unwrap();
    assert_eq!((sheet.sign_count, sheet.sign_attempts), (1, 1));
}

#[each_database]
async fn other_content_for_a_signed_irn_is_a_conflict(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    let other = with(&body, "note", json!("another text"));
    taxpayer
        .app()
        .submit(&other)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
    taxpayer.app().submit(&body).await.expect_status(200);
}

#[each_database(ALONE)]
async fn other_content_before_the_signature_replaces_the_old(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let newer = with(&body, "note", json!("another text"));
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    taxpayer.app().submit_async(&body).await.expect_status(202);
    taxpayer.app().submit_async(&newer).await.expect_status(202);
    world.authority.clear_faults();
    taxpayer
        .app()
        .submit_to_the_end(&newer)
        .await
        .expect_status(200);
    assert_eq!(sign_count(world, body["irn"].as_str().unwrap()), 1);
    taxpayer
        .app()
        .submit(&body)
        .await
        .expect_refusal(409, "IRN_CONTENT_CHANGED");
}

/// Such an invoice used to be locked as validated before its signature was refused, and had no way out.
#[on_sqlite]
async fn an_irn_that_is_too_long_for_its_qr_code_is_refused_before_a_run_opens(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = format!("{:0>200}", number());
    let created = taxpayer
        .create_invoice(&documents::invoice_numbered(&no))
        .await
        .expect_status(201);
    assert!(
        created.warnings().contains("more than 82 characters"),
        "{}",
        created.warnings()
    );
    let invoice = created.data();
    let app = taxpayer.app();
    for body in [submission(&taxpayer, &no), json!({ "irn": invoice["irn"] })] {
        let refused = app.submit(&body).await.expect_faults(&["irn"]);
        let longest = refused.message().rsplit(' ').next().unwrap();
        let longest: usize = longest.trim_end_matches('.').parse().unwrap();
        assert!((82..200).contains(&longest), "{}", refused.message());
        app.validate(&json!({ "irn": invoice["irn"] }))
            .await
            .expect_invalid(&["irn"]);
    }
    app.run(invoice["irn"].as_str().unwrap())
        .await
        .expect_refusal(404, "RUN_NOT_FOUND");
    taxpayer
        .set_status(invoice, "cancelled")
        .await
        .expect_status(200);
}

/// Full refuses such a date. Submit, Validate and Standard warn, because the signature makes it final.
#[on_sqlite]
async fn an_issue_date_in_the_future_is_a_warning(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let body = with(
        &submission(&taxpayer, &no),
        "issue_date",
        json!("2999-01-15"),
    );
    let body = with(
        &body,
        "irn",
        json!(irn(&taxpayer, &no).replace("20260115", "29990115")),
    );
    let body = with(&body, "due_date", json!("2999-02-15"));
    let stored = with(
        &documents::invoice_numbered(&no),
        "invoice_date",
        json!("2999-01-15"),
    );
    let stored = with(&stored, "due_date", json!("2999-02-15"));
    let created = taxpayer.create_invoice(&stored).await.expect_status(201);
    assert!(
        created.warnings().contains("invoice_date is in the future"),
        "{}",
        created.warnings()
    );
    let alone = json!({ "irn": created.data()["irn"] });
    let validated = taxpayer.app().validate(&alone).await.expect_status(200);
    assert!(
        validated.warnings().contains("issue_date is in the future"),
        "{}",
        validated.warnings()
    );
    let answer = taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    assert!(
        answer.warnings().contains("issue_date is in the future"),
        "{}",
        answer.warnings()
    );
    let past = taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, &documents::invoice_no()))
        .await;
    assert_eq!(past.expect_status(200).warnings(), "");
}

#[each_database]
async fn a_document_that_the_authority_refuses_is_answered_in_its_words(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = magic("SBXREJECT");
    let invoice = taxpayer
        .invoice(&with(&documents::invoice(), "invoice_no", json!(no)))
        .await;
    let body = submission(&taxpayer, &no);
    let answer = taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_refusal(422, "AUTHORITY_REJECTED");
    assert!(answer.message().len() > 10, "{}", answer.text);
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("draft"), &json!("REJECTED"))
    );
    assert!(
        taxpayer
            .event_names()
            .await
            .contains(&"invoice.rejected".to_owned())
    );
    let run = taxpayer
        .app()
        .run(&irn(&taxpayer, &no))
        .await
        .expect_status(200);
    assert_eq!(run.data()["state"], json!("refused"));
    assert_eq!(sign_count(world, &irn(&taxpayer, &no)), 0);
}

#[on_sqlite]
async fn a_cancelled_invoice_is_not_submitted(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "cancelled")
        .await
        .expect_status(200);
    let no = invoice["invoice_no"].as_str().unwrap();
    let answer = taxpayer.app().submit(&submission(&taxpayer, no)).await;
    answer.expect_refusal(409, "INVALID_TRANSITION");
    assert_eq!(sign_count(world, invoice["irn"].as_str().unwrap()), 0);
    taxpayer
        .set_status(&invoice, "draft")
        .await
        .expect_status(200);
    taxpayer
        .app()
        .submit_to_the_end(&submission(&taxpayer, no))
        .await
        .expect_status(200);
}

#[on_sqlite]
async fn a_caller_that_does_not_wait_gets_the_address_of_the_run(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &magic("SBXSLOW"));
    let irn = body["irn"].as_str().unwrap();
    let answer = taxpayer.app().submit_async(&body).await.expect_status(202);
    assert_eq!(answer.body["success"], json!(true));
    assert_eq!(answer.data()["irn"], json!(irn));
    assert_eq!(answer.header("preference-applied"), "respond-async");
    let address = answer.header("location").to_owned();
    assert_eq!(address, format!("/v1/app/invoices/{irn}/run"));
    let ended = async || {
        let run = taxpayer.get(&address).await.expect_status(200);
        (run.data()["state"] == json!("succeeded")).then_some(run)
    };
    eventually("the end of the run", ended).await;
    let outcome = taxpayer.app().submit_async(&body).await.expect_status(200);
    assert_eq!(outcome.data(), &json!("Invoice submitted successfully"));
}

#[each_database(&[("PIPELINE__WAIT_S", "1")])]
async fn while_the_authority_is_out_the_run_waits_and_the_same_call_later_succeeds(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let answer = taxpayer
        .app()
        .submit(&body)
        .await
        .expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    assert!(answer.header("retry-after").parse::<u32>().unwrap() >= 1);
    let waiting = taxpayer.reread(&invoice).await;
    assert_eq!(waiting["authority_data"]["status"], json!("QUEUED"));
    assert_eq!(waiting["status"], json!("draft"));
    let summary = taxpayer.get("/v1/tax-payers/invoices/summary?month=2026-01");
    let summary = summary.await.expect_status(200);
    let unsigned = &summary.data()["vat_return"][0]["unsigned"];
    assert_eq!(unsigned["vat"], exact("75.00"), "{}", summary.text);
    let run = taxpayer
        .app()
        .run(body["irn"].as_str().unwrap())
        .await
        .expect_status(200);
    assert!(
        ["waiting", "running"].contains(&run.data()["state"].as_str().unwrap()),
        "{}",
        run.text
    );
    world.authority.clear_faults();
    taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    assert_eq!(sign_count(world, body["irn"].as_str().unwrap()), 1);
}

#[on_sqlite(ALONE)]
async fn invoices_are_taken_in_while_the_authority_is_out(world: &World) {
    let taxpayer = world.taxpayer().await;
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
}

#[each_database]
async fn a_reply_that_is_lost_is_asked_about_before_it_is_sent_again(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let irn = body["irn"].as_str().unwrap();
    let mut drop = FaultOrder::new(FaultKind::CommitThenDrop).on(Operation::Sign);
    drop.irn = Some(irn.to_owned());
    world.authority.add_fault(drop).unwrap();
    taxpayer
        .app()
        .submit_to_the_end(&body)
        .await
        .expect_status(200);
    let sheet = world.authority.invoice(irn).unwrap();
    assert_eq!((sheet.sign_count, sheet.sign_attempts), (1, 1));
}

#[each_database(&[("PIPELINE__GIVE_UP_AFTER_S", "1")])]
async fn a_run_that_is_given_up_is_paused_and_the_invoice_failed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = magic("SBXDOWN");
    let invoice = taxpayer
        .invoice(&with(&documents::invoice(), "invoice_no", json!(no)))
        .await;
    let body = submission(&taxpayer, &no);
    taxpayer
        .app()
        .submit(&body)
        .await
        .expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    let paused = async || {
        let run = taxpayer
            .app()
            .run(invoice["irn"].as_str().unwrap())
            .await
            .expect_status(200);
        (run.data()["state"] == json!("paused")).then_some(run)
    };
    eventually("a paused run", paused).await;
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(after["authority_data"]["status"], json!("FAILED"));
    assert_eq!(
        after["status"],
        json!("validated"),
        "it was validated before it could not be signed"
    );
    assert!(
        taxpayer
            .event_names()
            .await
            .contains(&"invoice.failed".to_owned())
    );
}

#[on_sqlite(&[("PIPELINE__WAIT_S", "60")])]
async fn a_call_that_waits_ends_with_its_key_and_the_run_goes_on(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &format!("SBXDOWN{}", documents::number()));
    let irn = body["irn"].as_str().unwrap();
    let begun = async || (taxpayer.app().run(irn).await.status == 200).then_some(());
    let rotation = async {
        eventually("the run", begun).await;
        world
            .integrator()
            .rotate_api_key(taxpayer.id)
            .await
            .expect_status(200)
    };
    let (answer, rotated) =
        futures_util::future::join(taxpayer.app().submit(&body), rotation).await;
    answer.expect_refusal(403, "KEY_NOT_RECOGNIZED");
    let key = rotated.data()["api_key"].as_str().unwrap();
    let run = world
        .anonymous()
        .with_key(key)
        .get(&format!("/v1/app/invoices/{irn}/run"))
        .await;
    let run = run.expect_status(200);
    assert!(
        ["waiting", "running"].contains(&run.data()["state"].as_str().unwrap()),
        "{}",
        run.text
    );
}
