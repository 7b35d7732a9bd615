//! /ops/reconciliations: our ledger beside the authority's. Most cases need an authority that tells nothing by
//! itself, so that only the comparison can.

use einvoice::internals::day_at;
use jiff::tz::Offset;
use sandbox::{CallRecord, FaultKind, FaultOrder, InboundInvoice, Operation};
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents::{self, irn, submission};
use testkit::edit::{exact, with};
use testkit::patience::eventually;
use testkit::roles::{Operator, Taxpayer};
use testkit::{each_database, on_sqlite};
use timing::clock::{Clock, SystemClock};

use crate::support::supplies::signed;
use crate::support::world::{RETRY_LATE, World};

const QUICK: [(&str, &str); 4] = [
    ("PIPELINE__GIVE_UP_AFTER_S", "1"),
    ("AUTHORITY__UTC_OFFSET", "+00:00"),
    ("RECONCILE__EVERY_S", "0"),
    ("AUTHORITY__PULL_EVERY_S", "86400"),
];

/// A run that waits does so until somebody moves it.
const PATIENT: [(&str, &str); 3] = [
    RETRY_LATE[0],
    RETRY_LATE[1],
    ("AUTHORITY__UTC_OFFSET", "+00:00"),
];

/// The day of the simulator, whose zone is UTC. A case that runs into midnight looks at the day it began on.
fn today() -> String {
    day_at(SystemClock.now(), Offset::UTC).to_string()
}

/// Waits until the start has read its lists and keeps the authority from sending notices. Nothing is compared unasked.
async fn unconfirmed(world: &World) -> (Taxpayer, Operator) {
    // A start reads the list of invoices in transit, what is recent and then all: from here on nothing is read.
    let lists = async || {
        let calls = world.authority.calls();
        let is_read =
            |call: &&CallRecord| call.operation == Some(Operation::Pull) && !call.is_pending();
        (calls.iter().filter(is_read).count() >= 2).then_some(())
    };
    eventually("the lists that a start reads", lists).await;
    world.authority.forget_access_points();
    (world.taxpayer().await, world.new_operator().await)
}

async fn compared(operator: &Operator, taxpayer: &Taxpayer) -> Value {
    // The breaker of these calls may still be open after a case made them fail.
    eventually("a day that is compared", async || {
        let answer = operator.reconcile(taxpayer.id, &today()).await;
        (answer.status == 200).then(|| answer.data().clone())
    })
    .await
}

/// Returns the findings, each with its kind and what was done.
fn findings(reconciliation: &Value) -> Vec<String> {
    let found = reconciliation["findings"].as_array().unwrap().iter();
    found
        .map(|one| {
            format!(
                "{} {}",
                one["what"].as_str().unwrap(),
                one["action"].as_str().unwrap()
            )
        })
        .collect()
}

fn counts(reconciliation: &Value) -> [i64; 5] {
    ["compared", "agreed", "under_way", "mended", "listed"]
        .map(|name| reconciliation[name].as_i64().unwrap())
}

async fn found(operator: &Operator, taxpayer: &Taxpayer) -> Vec<String> {
    findings(&compared(operator, taxpayer).await)
}

async fn standing(taxpayer: &Taxpayer, invoice: &Value) -> String {
    let read = taxpayer.reread(invoice).await;
    format!(
        "{} {}",
        read["status"].as_str().unwrap(),
        read["authority_data"]["status"].as_str().unwrap()
    )
}

/// The authority signs and transmits an invoice of the taxpayer that it was sent by another way.
fn sent_elsewhere(world: &World, taxpayer: &Taxpayer, no: &str) -> String {
    let mut document = submission(taxpayer, no);
    document["invoice_kind"] = json!("B2B");
    document["tax_currency_code"] = json!("NGN");
    document["tax_total"] = json!([{ "tax_amount": 75, "tax_subtotal": [{
        "taxable_amount": 1000, "tax_amount": 75,
        "tax_category": { "id": "STANDARD_VAT", "percent": exact("7.5") },
    }] }]);
    let tin = document["accounting_customer_party"]["tin"]
        .as_str()
        .unwrap()
        .to_owned();
    let inbound = InboundInvoice {
        tin,
        document: Some(document),
        notify: Some(false),
        ..InboundInvoice::default()
    };
    world.authority.plant_invoice(&inbound).unwrap()
}

/// Orders that each call of an operation about an invoice fails so.
fn order(world: &World, kind: FaultKind, operation: Operation, irn: &str) {
    let mut order = FaultOrder::new(kind).on(operation);
    (order.irn, order.probability) = (Some(irn.to_owned()), Some(1.into()));
    world.authority.add_fault(order).unwrap();
}

/// Nobody can be asked about an invoice: neither `confirm` nor the search, which names none, tells.
fn silence(world: &World, irn: &str) {
    order(world, FaultKind::ServerError, Operation::Confirm, irn);
    let mut search = FaultOrder::new(FaultKind::ServerError).on(Operation::Search);
    search.probability = Some(1.into());
    world.authority.add_fault(search).unwrap();
}

async fn state(taxpayer: &Taxpayer, irn: &str, operation: &str, wanted: &str) {
    let look = async || {
        let run = taxpayer
            .app()
            .fetch_run_with_operation(irn, operation)
            .await;
        (run.data()["state"] == wanted).then_some(())
    };
    eventually(&format!("a run that is {wanted}"), look).await;
}

/// A stored invoice whose signature was committed and whose run was given up before it learned of it.
async fn paused_behind_its_signature(world: &World, taxpayer: &Taxpayer) -> (Value, String) {
    let (invoice, irn) = behind_its_signature(world, taxpayer, "paused").await;
    world.authority.clear_faults();
    (invoice, irn)
}

/// A stored invoice whose signature was committed and whose run waits for an authority that tells nothing.
async fn waiting_behind_its_signature(world: &World, taxpayer: &Taxpayer) -> (Value, String) {
    behind_its_signature(world, taxpayer, "waiting").await
}

async fn behind_its_signature(world: &World, taxpayer: &Taxpayer, wanted: &str) -> (Value, String) {
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap().to_owned();
    let irn = irn(taxpayer, &no);
    order(world, FaultKind::CommitThenDrop, Operation::Sign, &irn);
    silence(world, &irn);
    taxpayer
        .app()
        .submit_async(&submission(taxpayer, &no))
        .await
        .expect_status(202);
    state(taxpayer, &irn, "submit", wanted).await;
    assert_eq!(world.authority.invoice(&irn).unwrap().sign_count, 1);
    (invoice, irn)
}

#[on_sqlite(&QUICK)]
async fn ledgers_that_agree_are_counted(world: &World) {
    let (taxpayer, operator) = &unconfirmed(world).await;
    let nothing = compared(operator, taxpayer).await;
    assert_eq!(
        (counts(&nothing), &nothing["state"]),
        ([0; 5], &json!("done"))
    );
    for _ in 0..3 {
        signed(taxpayer, "87654321-0001").await;
    }
    let (_, sent) = signed(taxpayer, "87654321-0001").await;
    taxpayer.app().transmit(&sent).await.expect_status(200);
    taxpayer
        .app()
        .confirm_receipt(&sent)
        .await
        .expect_status(200);
    taxpayer
        .app()
        .set_payment_status(&sent, "PAID")
        .await
        .expect_status(200);
    let done = compared(operator, taxpayer).await;
    assert_eq!(
        (counts(&done), findings(&done)),
        ([4, 4, 0, 0, 0], vec![]),
        "{done}"
    );
    assert_eq!(done["by"], json!("operator"));
    let fields: Vec<_> = done
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "agreed",
        "attempts",
        "by",
        "compared",
        "created_at",
        "day",
        "decided",
        "ended_at",
        "error",
        "findings",
        "id",
        "listed",
        "mended",
        "started_at",
        "state",
        "taxpayer_id",
        "under_way",
    ];
    assert_eq!(fields, expected);
}

#[each_database(&QUICK)]
async fn a_signature_that_a_paused_run_never_learned_of_is_found_and_the_run_resolves_itself(
    world: &World,
) {
    let (taxpayer, operator) = &unconfirmed(world).await;
    let (invoice, irn) = paused_behind_its_signature(world, taxpayer).await;
    assert_eq!(standing(taxpayer, &invoice).await, "validated FAILED");
    assert_eq!(
        found(operator, taxpayer).await,
        ["unfinished_locally mended"]
    );
    state(taxpayer, &irn, "submit", "succeeded").await;
    assert_eq!(standing(taxpayer, &invoice).await, "submitted SUBMITTED");
    assert_eq!(world.authority.invoice(&irn).unwrap().sign_count, 1);
    assert_eq!(taxpayer.count_events("invoice.submitted").await, 1);
    assert!(
        found(operator, taxpayer).await.is_empty(),
        "it is mended once"
    );
}

#[each_database(&QUICK)]
async fn what_the_authority_signed_without_us_is_listed_and_nothing_is_guessed(world: &World) {
    let (taxpayer, operator) = &unconfirmed(world).await;
    let unknown = sent_elsewhere(world, taxpayer, &documents::invoice_no());
    let stored = taxpayer.invoice(&documents::invoice()).await;
    sent_elsewhere(world, taxpayer, stored["invoice_no"].as_str().unwrap());
    let done = compared(operator, taxpayer).await;
    assert_eq!(counts(&done), [2, 0, 0, 0, 2]);
    let mut found = findings(&done);
    found.sort();
    assert_eq!(
        found,
        ["missing_locally listed", "not_submitted_locally listed"]
    );
    let one = done["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["what"] == "missing_locally")
        .unwrap();
    assert_eq!((&one["irn"], &one["ours"]), (&json!(unknown), &Value::Null));
    assert_eq!(one["theirs"], json!("signed, transmitted, payment PENDING"));
    assert!(one["detail"].as_str().unwrap().contains("ask the taxpayer"));
    assert_eq!(standing(taxpayer, &stored).await, "draft PENDING");
    // Submitting it finds the signature; what was listed is listed no more.
    let body = submission(taxpayer, stored["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&body).await.expect_status(200);
    let found: Vec<_> = self::found(operator, taxpayer).await;
    assert!(
        !found.contains(&"not_submitted_locally listed".to_owned()),
        "{found:?}"
    );
}

#[on_sqlite(&QUICK)]
async fn a_refused_and_a_cancelled_run_whose_invoice_is_signed_after_all_are_listed(world: &World) {
    let (taxpayer, operator) = &unconfirmed(world).await;
    let refused = with(
        &submission(taxpayer, &format!("{}SBXREJECT", documents::invoice_no())),
        "note",
        json!("odd"),
    );
    taxpayer
        .app()
        .submit(&refused)
        .await
        .expect_refusal(422, "AUTHORITY_REJECTED");
    let cancelled = documents::invoice_no();
    order(
        world,
        FaultKind::ServerError,
        Operation::IrnValidate,
        &irn(taxpayer, &cancelled),
    );
    taxpayer
        .app()
        .submit_async(&submission(taxpayer, &cancelled))
        .await
        .expect_status(202);
    state(taxpayer, &irn(taxpayer, &cancelled), "submit", "paused").await;
    let run = operator.newest_run(taxpayer).await;
    operator
        .move_run(run["id"].as_str().unwrap(), "cancel")
        .await
        .expect_status(200);
    assert!(found(operator, taxpayer).await.is_empty(), "nobody has it");
    sent_elsewhere(world, taxpayer, &cancelled);
    sent_elsewhere(
        world,
        taxpayer,
        refused["invoice_reference"].as_str().unwrap(),
    );
    let expected = ["cancelled_locally listed", "refused_locally listed"];
    let mut found = found(operator, taxpayer).await;
    found.sort();
    assert_eq!(found, expected);
}

#[on_sqlite(&PATIENT)]
async fn a_run_that_an_operator_holds_is_listed_and_stays_held(world: &World) {
    let taxpayer = &world.taxpayer().await;
    let operator = &world.new_operator().await;
    let (invoice, irn) = waiting_behind_its_signature(world, taxpayer).await;
    let run = operator.newest_run(taxpayer).await;
    let id = run["id"].as_str().unwrap();
    operator.move_run(id, "pause").await.expect_status(200);
    world.authority.clear_faults();
    assert_eq!(found(operator, taxpayer).await, ["held_locally listed"]);
    state(taxpayer, &irn, "submit", "paused").await;
    assert_eq!(standing(taxpayer, &invoice).await, "validated FAILED");
    operator.move_run(id, "resume").await.expect_status(200);
    state(taxpayer, &irn, "submit", "succeeded").await;
    assert!(found(operator, taxpayer).await.is_empty());
}

#[on_sqlite(&PATIENT)]
async fn a_waiting_run_is_sent_to_ask_at_once(world: &World) {
    let taxpayer = &world.taxpayer().await;
    let operator = &world.new_operator().await;
    let (_, irn) = waiting_behind_its_signature(world, taxpayer).await;
    world.authority.clear_faults();
    assert_eq!(
        found(operator, taxpayer).await,
        ["unfinished_locally mended"]
    );
    state(taxpayer, &irn, "submit", "succeeded").await;
    assert_eq!(world.authority.invoice(&irn).unwrap().sign_count, 1);
}

#[each_database(&QUICK)]
async fn a_transmission_and_a_receipt_without_notices_are_recorded_once(world: &World) {
    let (taxpayer, operator) = &unconfirmed(world).await;
    let buyer = world.taxpayer().await;
    let (invoice, irn) = signed(taxpayer, &buyer.registration.tin).await;
    order(world, FaultKind::CommitThenDrop, Operation::Transmit, &irn);
    silence(world, &irn);
    taxpayer.app().transmit(&irn).await.expect_status(500);
    state(taxpayer, &irn, "transmit", "paused").await;
    world.authority.clear_faults();
    assert_eq!(
        found(operator, taxpayer).await,
        ["transmitted_remotely mended"]
    );
    assert_eq!(
        standing(taxpayer, &invoice).await,
        "transmitted TRANSMITTED"
    );
    state(taxpayer, &irn, "transmit", "succeeded").await;
    assert!(found(operator, taxpayer).await.is_empty());

    // The buyer's notice of receipt never comes either.
    world.notice(&irn, "TRANSMITTED").await.expect_status(200);
    buyer.acknowledge(&irn).await.expect_status(200);
    assert_eq!(
        standing(taxpayer, &invoice).await,
        "transmitted TRANSMITTED"
    );
    assert_eq!(
        found(operator, taxpayer).await,
        ["delivered_remotely mended"]
    );
    assert_eq!(
        standing(taxpayer, &invoice).await,
        "transmitted ACKNOWLEDGED"
    );
    assert!(found(operator, taxpayer).await.is_empty());
    assert_eq!(taxpayer.count_events("invoice.transmitted").await, 1);
    assert_eq!(taxpayer.count_events("invoice.acknowledged").await, 1);
}

#[each_database(&QUICK)]
async fn a_payment_that_was_never_relayed_is_no_difference_and_a_paused_relay_is_sent_to_ask(
    world: &World,
) {
    let (taxpayer, operator) = &unconfirmed(world).await;
    let (here, _) = signed(taxpayer, "87654321-0001").await;
    let part = json!({
        "unique_no": here["irn"], "unique_no_type": "IRN", "status": "partial", "amount": 75,
        "remark": "a first part",
    });
    let whole = json!({
        "unique_no": here["irn"], "unique_no_type": "IRN", "status": "paid", "remark": "in cash",
    });
    for body in [part, whole] {
        taxpayer.pay(&body).await.expect_status(200);
        let done = compared(operator, taxpayer).await;
        assert_eq!(
            (counts(&done), findings(&done)),
            ([1, 1, 0, 0, 0], vec![]),
            "the taxpayer decides what is relayed: {done}"
        );
    }
    taxpayer
        .app()
        .set_payment_status(here["irn"].as_str().unwrap(), "PAID")
        .await
        .expect_status(200);
    assert!(found(operator, taxpayer).await.is_empty());

    let (there, irn) = signed(taxpayer, "87654321-0001").await;
    let mut order = FaultOrder::new(FaultKind::CommitThenDrop)
        .on(Operation::Update)
        .times(1);
    order.irn = Some(irn.clone());
    // Its first question is answered, so that the relay begins; none after that is.
    world.authority.add_fault(order).unwrap();
    let relaying = taxpayer.app();
    let failing = async {
        let begun = async || {
            let sheet = world.authority.invoice(&irn).unwrap();
            (sheet.update_attempts > 0).then_some(())
        };
        eventually("the call", begun).await;
        silence(world, &irn);
    };
    let (answer, ()) =
        futures_util::future::join(relaying.set_payment_status(&irn, "PAID"), failing).await;
    if answer.status != 200 {
        state(taxpayer, &irn, "update-payment-status", "paused").await;
        world.authority.clear_faults();
        assert_eq!(
            taxpayer.reread(&there).await["payment_status"],
            json!("PENDING")
        );
        assert_eq!(
            found(operator, taxpayer).await,
            ["payment_unfinished_locally mended"]
        );
    }
    world.authority.clear_faults();
    state(taxpayer, &irn, "update-payment-status", "succeeded").await;
    assert_eq!(
        taxpayer.reread(&there).await["payment_status"],
        json!("PAID")
    );
    assert!(found(operator, taxpayer).await.is_empty());
}

#[on_sqlite(&[("RECONCILE__EVERY_S", "1"), ("AUTHORITY__UTC_OFFSET", "+00:00")])]
async fn an_authority_that_fails_interrupts_and_is_asked_again(world: &World) {
    let taxpayer = &world.taxpayer().await;
    let operator = &world.new_operator().await;
    let fault = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::Search)
        .times(2);
    world.authority.add_fault(fault).unwrap();
    let answer = operator
        .reconcile(taxpayer.id, &today())
        .await
        .expect_status(202);
    let first = answer.data();
    assert_eq!(
        (&first["state"], &first["attempts"]),
        (&json!("interrupted"), &json!(1)),
        "{first}"
    );
    assert!(
        first["error"]
            .as_str()
            .unwrap()
            .contains("the authority is failing (HTTP 5")
    );
    let path = answer.header("location").to_owned();
    let done = async || {
        let one = operator.get(&path).await.expect_status(200).data().clone();
        (one["state"] == "done").then_some(one)
    };
    let one = eventually("the end after all", done).await;
    assert_eq!((&one["attempts"], &one["error"]), (&json!(3), &Value::Null));
}

#[each_database(&[("RECONCILE__EVERY_S", "1"), ("AUTHORITY__UTC_OFFSET", "+00:00")])]
async fn the_timer_compares_each_taxpayer_whose_runs_moved_and_says_what_is_listed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let idle = world.taxpayer().await;
    let operator = world.new_operator().await;
    signed(&taxpayer, "87654321-0001").await;
    sent_elsewhere(world, &taxpayer, &documents::invoice_no());
    let listed = async || {
        let answer = operator
            .reconciliations(&format!("?taxpayer_id={}&day={}", taxpayer.id, today()))
            .await;
        let first = answer.data()["data"][0].clone();
        (first["listed"] == 1 && first["by"] == "timer").then_some(first)
    };
    let one = eventually("what the timer found", listed).await;
    assert_eq!((&one["state"], &one["agreed"]), (&json!("done"), &json!(1)));
    let gauge = async || {
        let page = world.anonymous().get("/metrics").await.text;
        let has_gauge =
            page.contains("einvoice_reconciliation_findings{kind=\"missing_locally\"} 1");
        (has_gauge && page.contains("einvoice_reconciliation_age_seconds ")).then_some(())
    };
    eventually("the metric of it", gauge).await;
    let none = operator
        .reconciliations(&format!("?taxpayer_id={}", idle.id))
        .await
        .expect_status(200);
    assert_eq!(none.data()["total"], json!(0), "nothing of it has moved");
    // Later ones of the timer take the place of those that mended nothing.
    let again = async || {
        let answer = operator
            .reconciliations(&format!("?taxpayer_id={}&day={}", taxpayer.id, today()))
            .await;
        let data = answer.data().clone();
        let is_later = data["data"][0]["id"] != one["id"] && data["data"][0]["state"] == "done";
        (is_later && data["total"] == 1).then_some(())
    };
    eventually("a later one in its place", again).await;
}

#[each_database]
async fn what_an_operator_asks_for_is_audited_listed_and_shown(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let body = json!({ "taxpayer_id": taxpayer.id, "day": "2026-01-15", "reason": "a complaint" });
    let answer = operator
        .send("POST", "/ops/reconciliations", &body)
        .await
        .expect_status(200);
    assert_eq!(answer.message(), "Reconciliation ended");
    let id = answer.data()["id"].as_str().unwrap().to_owned();
    let one = operator
        .reconciliations(&format!("/{id}"))
        .await
        .expect_status(200);
    assert_eq!(one.data(), answer.data());
    let audit = operator
        .audit(&format!("?subject={id}"))
        .await
        .expect_status(200);
    let entry = &audit.data()["data"][0];
    assert_eq!(
        (&entry["action"], &entry["reason"]),
        (&json!("taxpayer.reconcile"), &json!("a complaint"))
    );
    assert_eq!(entry["taxpayer_id"], json!(taxpayer.id));
    let mine = format!("?taxpayer_id={}&day=2026-01-15", taxpayer.id);
    let listed = operator.reconciliations(&mine).await.expect_status(200);
    assert_eq!(
        (&listed.data()["total"], &listed.data()["data"][0]["id"]),
        (&json!(1), &json!(id))
    );
    assert!(listed.data()["data"][0].get("findings").is_none());
    let other = operator
        .reconciliations(&format!("?taxpayer_id={}&day=2026-01-16", taxpayer.id))
        .await;
    assert_eq!(other.expect_status(200).data()["total"], json!(0));
    // It is begun at once and its end is not waited for.
    let request = operator
        .request("POST", "/ops/reconciliations")
        .header("prefer", "respond-async");
    let queued = Answer::to(request.json(&body)).await.expect_status(202);
    assert_eq!(queued.message(), "Reconciliation queued successfully");
    let path = format!(
        "/ops/reconciliations/{}",
        queued.data()["id"].as_str().unwrap()
    );
    assert_eq!(queued.header("location"), path);
    let done = async || {
        let one = operator.get(&path).await.expect_status(200).data().clone();
        (one["state"] == "done").then_some(())
    };
    eventually("the end of it", done).await;
}

#[on_sqlite]
async fn what_cannot_be_compared_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let send = async |body: &Value| operator.send("POST", "/ops/reconciliations", body).await;
    let body = json!({ "taxpayer_id": taxpayer.id, "day": "2026-01-15" });
    send(&with(&body, "day", json!("9999-12-31")))
        .await
        .expect_faults(&["day"]);
    send(&with(&body, "day", json!("9999-12-30")))
        .await
        .expect_faults(&["day"]);
    send(&json!({}))
        .await
        .expect_faults(&["day", "taxpayer_id"]);
    for nobody in [i64::MAX, 999_999] {
        send(&with(&body, "taxpayer_id", json!(nobody)))
            .await
            .expect_refusal(404, "TAXPAYER_NOT_FOUND");
    }
    send(&with(&body, "day", json!("0001-01-01")))
        .await
        .expect_status(200);
    operator
        .reconciliations("?day=yesterday")
        .await
        .expect_faults(&["day"]);
    let nothing = operator
        .reconciliations("?taxpayer_id=abc")
        .await
        .expect_status(200);
    assert_eq!(nothing.data()["total"], json!(0));
    for id in ["00000000-0000-7000-8000-000000000000", "1", "abc", "%00"] {
        let answer = operator.reconciliations(&format!("/{id}")).await;
        answer.expect_refusal(404, "RECONCILIATION_NOT_FOUND");
    }
    let of_taxpayer = format!("?actor=operator&taxpayer_id={}", taxpayer.id);
    let audit = operator.audit(&of_taxpayer).await.expect_status(200);
    assert_eq!(
        audit.data()["total"],
        json!(1),
        "what was refused is not there"
    );
}

/// The authority never gets this invoice back, so an operator decides it: nobody is told of it any more, until it differs
/// in another way or the decision is taken back.
#[each_database(&QUICK)]
async fn a_difference_that_nobody_can_remove_is_decided_with_a_reason(world: &World) {
    let (taxpayer, operator) = &unconfirmed(world).await;
    let planted = sent_elsewhere(world, taxpayer, &documents::invoice_no());
    let one = compared(operator, taxpayer).await;
    assert_eq!(findings(&one), ["missing_locally listed"]);
    assert_eq!(
        (
            &one["findings"][0]["number"],
            &one["findings"][0]["decision"]
        ),
        (&json!(1), &Value::Null)
    );
    let path = |one: &Value, act: &str| {
        let id = one["id"].as_str().unwrap();
        format!("/ops/reconciliations/{id}/{act}")
    };
    let order = json!({ "findings": [1], "reason": "a paper of before" });
    let decide =
        async |one: &Value, body: &Value| operator.send("POST", &path(one, "decide"), body).await;
    for (body, field) in [
        (json!({ "findings": [1] }), "reason"),
        (json!({ "findings": [2], "reason": "x" }), "findings"),
    ] {
        decide(&one, &body).await.expect_faults(&[field]);
    }
    for _ in 0..2 {
        let decided = decide(&one, &order).await.expect_status(200);
        let finding = &decided.data()["findings"][0];
        assert_eq!(finding["decision"]["reason"], json!("a paper of before"));
        let data = decided.data();
        assert_eq!((&data["listed"], &data["decided"]), (&json!(0), &json!(1)));
    }
    let for_you = async || {
        let query = format!("?for_you=true&taxpayer_id={}", taxpayer.id);
        operator.reconciliations(&query).await.data()["total"].clone()
    };
    assert_eq!(for_you().await, json!(0));
    let again = compared(operator, taxpayer).await;
    assert_eq!(again["findings"][0]["irn"], json!(planted));
    assert_eq!(
        again["findings"][0]["decision"]["reason"],
        json!("a paper of before"),
        "a later comparison keeps it: {again}"
    );
    assert_eq!(for_you().await, json!(0));
    decide(&one, &order)
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    let reopened = operator
        .send("POST", &path(&again, "reopen"), &order)
        .await
        .expect_status(200);
    assert_eq!(reopened.data()["listed"], json!(1));
    assert_eq!(for_you().await, json!(1));
    let audited = async |one: &Value| {
        let id = one["id"].as_str().unwrap();
        let listed = operator.audit(&format!("?subject={id}")).await;
        let entries = listed.data()["data"].as_array().unwrap().clone();
        let actions = entries.iter().map(|entry| entry["action"].clone());
        actions.collect::<Vec<_>>()
    };
    assert_eq!(
        audited(&one).await,
        [json!("findings.decide"), json!("taxpayer.reconcile")],
        "the second changed nothing"
    );
    assert_eq!(
        audited(&again).await,
        [json!("findings.reopen"), json!("taxpayer.reconcile")]
    );
}
