//! /ops/pipeline/runs: what operators see of runs and do to them, and the audit of it.

use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::documents::{self, irn, number, submission};
use testkit::edit::with;
use testkit::patience::eventually;
use testkit::roles::{Operator, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, RETRY_LATE, World};

/// A run that waits for an authority that fails each signature, the intent to sign on record.
const SIGN_FAILS: &str = "SBXDOWN";

pub(super) async fn until(operator: &Operator, taxpayer: &Taxpayer, state: &str) -> Value {
    let look = async || {
        let run = operator.newest_run(taxpayer).await;
        (run["state"] == json!(state)).then_some(run)
    };
    eventually(&format!("a run that is {state}"), look).await
}

pub(super) fn id(run: &Value) -> &str {
    run["id"].as_str().unwrap()
}

/// A stored invoice whose submission waits, because the authority's check of the IRN fails.
pub(super) async fn waiting(world: &World, operator: &Operator) -> (Taxpayer, Value) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    let mut fault = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::IrnValidate)
        .times(1_000_000);
    fault.irn = Some(irn(&taxpayer, no));
    world.authority.add_fault(fault).unwrap();
    taxpayer
        .app()
        .submit_async(&submission(&taxpayer, no))
        .await
        .expect_status(202);
    until(operator, &taxpayer, "waiting").await;
    (taxpayer, invoice)
}

#[each_database]
async fn runs_of_all_taxpayers_are_listed_and_one_is_shown_with_its_steps(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let no = documents::invoice_no();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    taxpayer
        .app()
        .transmit(&irn(&taxpayer, &no))
        .await
        .expect_status(200);
    let mine = async |query: &str| {
        let answer = operator
            .runs(&format!("?taxpayer_id={}{query}", taxpayer.id))
            .await
            .expect_status(200);
        answer.data()["data"].as_array().unwrap().clone()
    };
    let all = mine("").await;
    let operations: Vec<_> = all
        .iter()
        .map(|run| run["operation"].as_str().unwrap())
        .collect();
    assert_eq!(operations, ["transmit", "submit"], "newest first");
    assert_eq!(mine("&operation=Submit").await.len(), 1);
    assert_eq!(mine("&state=succeeded").await.len(), 2);
    assert_eq!(mine("&state=paused").await.len(), 0);
    assert_eq!(
        mine("&state=succeeded&operation=transmit&per_page=1")
            .await
            .len(),
        1
    );
    assert_eq!(
        mine("&page=2&per_page=1").await[0]["operation"],
        json!("submit")
    );
    let fields: Vec<_> = all[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "age_s",
        "asked_by",
        "attempt",
        "created_at",
        "deadline_at",
        "id",
        "irn",
        "last_error",
        "moves",
        "next_attempt_at",
        "operation",
        "resolved_by",
        "state",
        "step",
        "taxpayer_id",
        "updated_at",
        "wait_reason",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        (&all[0]["taxpayer_id"], &all[0]["moves"]),
        (&json!(taxpayer.id), &json!([]))
    );
    let one = operator
        .runs(&format!("/{}", id(&all[1])))
        .await
        .expect_status(200);
    assert_eq!(one.data()["irn"], json!(irn(&taxpayer, &no)));
    assert_eq!(one.data()["steps"].as_array().unwrap().len(), 4);
    let every = operator.runs("?per_page=1").await.expect_status(200);
    assert!(every.data()["total"].as_i64().unwrap() >= 2);
}

#[each_database]
async fn a_filter_that_is_no_word_is_refused_and_an_id_of_nobody_finds_nothing(world: &World) {
    let operator = world.new_operator().await;
    operator
        .runs("?operation=sign&state=x")
        .await
        .expect_faults(&["operation", "state"]);
    for nobody in ["0", "-1", "abc", "99999999999999999999"] {
        let answer = operator
            .runs(&format!("?taxpayer_id={nobody}"))
            .await
            .expect_status(200);
        assert_eq!(answer.data()["total"], json!(0), "{nobody}");
    }
}

#[on_sqlite]
async fn an_id_that_is_no_run_is_not_found(world: &World) {
    let operator = world.new_operator().await;
    for id in [
        "00000000-0000-7000-8000-000000000000",
        "1",
        "abc",
        "%00",
        "00000000000070008000000000000000",
    ] {
        let answer = operator
            .runs(&format!("/{id}"))
            .await
            .expect_refusal(404, "RUN_NOT_FOUND");
        assert_eq!(answer.message(), "Pipeline run not found");
        for to in ["pause", "resume", "retry", "cancel"] {
            operator
                .move_run(id, to)
                .await
                .expect_refusal(404, "RUN_NOT_FOUND");
        }
    }
}

#[on_sqlite]
async fn a_run_that_succeeded_takes_no_move_and_the_audit_stays_empty(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &documents::invoice_no()))
        .await
        .expect_status(200);
    let run = operator.newest_run(&taxpayer).await;
    for to in ["pause", "resume", "retry", "cancel"] {
        let answer = operator
            .move_run(id(&run), to)
            .await
            .expect_refusal(409, "INVALID_TRANSITION");
        assert_eq!(
            answer.message(),
            format!("A run that is succeeded takes no {to}")
        );
    }
    let audit = operator
        .audit(&format!("?subject={}", id(&run)))
        .await
        .expect_status(200);
    assert_eq!(audit.data()["total"], json!(0));
}

#[each_database(ALONE)]
async fn a_paused_run_stays_paused_until_it_is_resumed_and_then_ends_well(world: &World) {
    let operator = world.new_operator().await;
    let (taxpayer, invoice) = waiting(world, &operator).await;
    let (other, _) = waiting(world, &operator).await;
    let run = operator.newest_run(&taxpayer).await;
    let answer = operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    assert_eq!(answer.message(), "Pipeline run paused successfully");
    assert_eq!(
        (&answer.data()["state"], &answer.data()["next_attempt_at"]),
        (&json!("paused"), &Value::Null)
    );
    assert_eq!(answer.data()["moves"], json!(["resume", "retry", "cancel"]));
    assert_eq!(
        taxpayer.reread(&invoice).await["authority_data"]["status"],
        json!("FAILED")
    );
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    world.authority.clear_faults();
    until(&operator, &other, "succeeded").await;
    assert_eq!(
        operator.newest_run(&taxpayer).await["state"],
        json!("paused"),
        "it does not go on by itself"
    );
    let answer = operator
        .move_run(id(&run), "resume")
        .await
        .expect_status(200);
    assert_eq!(answer.data()["state"], json!("running"));
    until(&operator, &taxpayer, "succeeded").await;
    assert_eq!(
        taxpayer.reread(&invoice).await["status"],
        json!("submitted")
    );
    operator
        .move_run(id(&run), "resume")
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    audited(&operator, &taxpayer, &run).await;
}

/// The moves of that test, newest first.
async fn audited(operator: &Operator, taxpayer: &Taxpayer, run: &Value) {
    let audit = operator
        .audit(&format!("?subject={}", id(run)))
        .await
        .expect_status(200);
    let entries = audit.data()["data"].as_array().unwrap();
    let recorded: Vec<_> = entries
        .iter()
        .map(|entry| [&entry["action"], &entry["from_state"], &entry["to_state"]])
        .collect();
    // It was asking once more or waiting to, at the moment it was paused.
    let before = entries[1]["from_state"].clone();
    assert!(
        ["waiting", "running"]
            .map(|state| json!(state))
            .contains(&before),
        "{}",
        audit.text
    );
    let expected = [
        [&json!("run.resume"), &json!("paused"), &json!("running")],
        [&json!("run.pause"), &before, &json!("paused")],
    ];
    assert_eq!(recorded, expected, "{}", audit.text);
    let fields: Vec<_> = entries[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "action",
        "actor",
        "address",
        "at",
        "contact_id",
        "from_state",
        "id",
        "integrator_id",
        "operator",
        "operator_id",
        "reason",
        "subject",
        "taxpayer_id",
        "to_state",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        (&entries[1]["reason"], &entries[1]["taxpayer_id"]),
        (&json!("to pause it"), &json!(taxpayer.id))
    );
    assert!(
        entries[1]["operator"]
            .as_str()
            .unwrap()
            .ends_with("@house.example")
    );
    let of_taxpayer = format!("?actor=operator&taxpayer_id={}", taxpayer.id);
    let of_taxpayer = operator.audit(&of_taxpayer).await.expect_status(200);
    assert_eq!(of_taxpayer.data()["total"], json!(2));
    let page = operator.audit("?per_page=1").await.expect_status(200);
    assert_eq!(page.data()["data"].as_array().unwrap().len(), 1);
}

#[each_database(&RETRY_LATE)]
async fn a_waiting_run_is_retried_at_once(world: &World) {
    let operator = world.new_operator().await;
    let (taxpayer, _) = waiting(world, &operator).await;
    let run = operator.newest_run(&taxpayer).await;
    world.authority.clear_faults();
    operator
        .move_run(id(&run), "resume")
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    let answer = operator
        .call("POST", &format!("/ops/pipeline/runs/{}/retry", id(&run)))
        .await;
    answer.expect_status(200);
    until(&operator, &taxpayer, "succeeded").await;
    let audit = operator
        .audit(&format!("?subject={}", id(&run)))
        .await
        .expect_status(200);
    assert_eq!(
        audit.data()["data"][0]["reason"],
        Value::Null,
        "no body, no reason"
    );
}

#[each_database]
async fn a_refused_run_is_retried(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let no = format!("INV{}SBXREJECT", number());
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_refusal(422, "AUTHORITY_REJECTED");
    let run = operator.newest_run(&taxpayer).await;
    assert_eq!(
        (&run["state"], &run["moves"]),
        (&json!("refused"), &json!(["retry"]))
    );
    operator
        .move_run(id(&run), "cancel")
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    operator
        .move_run(id(&run), "retry")
        .await
        .expect_status(200);
    let steps = run["steps"].as_array().unwrap().len();
    let again = async || {
        let run = operator.newest_run(&taxpayer).await;
        (run["state"] == json!("refused") && run["steps"].as_array().unwrap().len() > steps)
            .then_some(())
    };
    eventually("another refusal", again).await;
}

#[each_database(ALONE)]
async fn a_cancelled_run_ends_its_invoice_is_free_and_its_taxpayer_is_notified(world: &World) {
    let operator = world.new_operator().await;
    let (taxpayer, invoice) = waiting(world, &operator).await;
    let run = operator.newest_run(&taxpayer).await;
    let answer = operator
        .move_run(id(&run), "cancel")
        .await
        .expect_status(200);
    assert_eq!(
        (&answer.data()["state"], &answer.data()["moves"]),
        (&json!("cancelled"), &json!(["retry"]))
    );
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["status"], &after["authority_data"]["status"]),
        (&json!("draft"), &json!("FAILED"))
    );
    let recorded = taxpayer.events().await.pop().unwrap();
    assert_eq!(recorded["type"], json!("invoice.failed"));
    assert!(
        !recorded["data"].to_string().contains("to cancel it"),
        "an operator's reason is not the taxpayer's"
    );
    world.authority.clear_faults();
    // The caller may ask for it again.
    let no = invoice["invoice_no"].as_str().unwrap();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, no))
        .await
        .expect_status(200);
}

#[on_sqlite(ALONE)]
async fn a_retry_of_an_invoice_that_was_cancelled_meanwhile_is_refused(world: &World) {
    let operator = world.new_operator().await;
    let (taxpayer, invoice) = waiting(world, &operator).await;
    let run = operator.newest_run(&taxpayer).await;
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    taxpayer
        .set_status(&invoice, "cancelled")
        .await
        .expect_status(200);
    assert_eq!(
        operator.newest_run(&taxpayer).await["state"],
        json!("cancelled")
    );
    for to in ["resume", "retry", "cancel"] {
        operator
            .move_run(id(&run), to)
            .await
            .expect_refusal(409, "INVALID_TRANSITION");
    }
    let no = invoice["irn"].as_str().unwrap();
    assert!(
        world
            .authority
            .invoice(no)
            .is_none_or(|sheet| sheet.sign_count == 0)
    );
}

#[on_sqlite(ALONE)]
async fn a_run_whose_signature_is_not_known_is_not_cancelled(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let no = documents::invoice_no();
    let irn = irn(&taxpayer, &no);
    for (kind, operation) in [
        (FaultKind::CommitThenDrop, Operation::Sign),
        (FaultKind::ServerError, Operation::Confirm),
    ] {
        let mut fault = FaultOrder::new(kind).on(operation).times(1_000_000);
        fault.irn = Some(irn.clone());
        world.authority.add_fault(fault).unwrap();
    }
    let silent = FaultOrder::new(FaultKind::ServerError)
        .on(Operation::Search)
        .times(1_000_000);
    world.authority.add_fault(silent).unwrap();
    taxpayer
        .app()
        .submit_async(&submission(&taxpayer, &no))
        .await
        .expect_status(202);
    let signing = async || {
        let run = operator.newest_run(&taxpayer).await;
        (run["state"] == json!("waiting") && run["step"] == json!("sign")).then_some(run)
    };
    let run = eventually("a signature nobody knows of", signing).await;
    operator
        .move_run(id(&run), "cancel")
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    let answer = operator
        .move_run(id(&run), "cancel")
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    assert!(answer.message().contains("sign"), "{}", answer.message());
    world.authority.clear_faults();
    operator
        .move_run(id(&run), "resume")
        .await
        .expect_status(200);
    until(&operator, &taxpayer, "succeeded").await;
    assert_eq!(world.authority.invoice(&irn).unwrap().sign_count, 1);
}

#[each_database]
async fn a_pause_while_a_call_is_under_way_keeps_what_came_of_it(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    // Every answer about such an invoice takes 1.5 s.
    let no = format!("INV{}SBXSLOW", number());
    let invoice = taxpayer
        .invoice(&with(&documents::invoice(), "invoice_no", json!(no)))
        .await;
    taxpayer
        .app()
        .submit_async(&submission(&taxpayer, &no))
        .await
        .expect_status(202);
    let irn = irn(&taxpayer, &no);
    world.under_way(Operation::Validate, &irn, 1).await;
    let run = operator.newest_run(&taxpayer).await;
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    let heard = async || {
        let run = operator.newest_run(&taxpayer).await;
        (run["step"] == json!("sign")).then_some(run)
    };
    let run = eventually("what came of it", heard).await;
    assert_eq!(
        (&run["state"], &run["steps"][1]["outcome"]),
        (&json!("paused"), &json!("done"))
    );
    assert_eq!(
        taxpayer.reread(&invoice).await["status"],
        json!("validated")
    );
    assert!(
        world
            .authority
            .invoice(&irn)
            .is_none_or(|sheet| sheet.sign_attempts == 0)
    );
    // The lane is free: the run goes on at once and not when a lease has ended.
    let start = std::time::Instant::now();
    operator
        .move_run(id(&run), "resume")
        .await
        .expect_status(200);
    until(&operator, &taxpayer, "succeeded").await;
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}

#[each_database(ALONE)]
async fn concurrent_moves_of_one_run_are_made_once_each(world: &World) {
    let operator = world.new_operator().await;
    let (taxpayer, _) = waiting(world, &operator).await;
    let run = operator.newest_run(&taxpayer).await;
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    let twins = (0..8).map(|_| operator.move_run(id(&run), "cancel"));
    let answers = futures_util::future::join_all(twins).await;
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 200).count(),
        1
    );
    assert!(
        answers
            .iter()
            .all(|answer| [200, 409].contains(&answer.status))
    );
    let audit = operator
        .audit(&format!("?subject={}", id(&run)))
        .await
        .expect_status(200);
    assert_eq!(audit.data()["total"], json!(2));
}

#[on_sqlite]
async fn a_signature_that_fails_again_and_again_is_not_cancelled_but_paused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let operator = world.new_operator().await;
    let no = format!("INV{}{SIGN_FAILS}", number());
    taxpayer
        .app()
        .submit_async(&submission(&taxpayer, &no))
        .await
        .expect_status(202);
    let run = until(&operator, &taxpayer, "waiting").await;
    operator
        .move_run(id(&run), "cancel")
        .await
        .expect_refusal(409, "INVALID_TRANSITION");
    operator
        .move_run(id(&run), "pause")
        .await
        .expect_status(200);
    assert_eq!(
        operator.newest_run(&taxpayer).await["moves"],
        json!(["resume", "retry"])
    );
}
