//! PATCH /v1/app/invoices/{irn}/update-payment-status.

use futures_util::future::join_all;
use sandbox::{FaultKind, FaultOrder, Operation};
use serde_json::{Value, json};
use testkit::documents::{self, irn, number, submission};
use testkit::patience::eventually;
use testkit::roles::{INVOICES, Taxpayer, relay_path};
use testkit::{each_database, on_sqlite};

use crate::support::world::{ALONE, World};

/// A stored invoice that the authority has signed, and its IRN.
async fn signed(taxpayer: &Taxpayer) -> (Value, String) {
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let no = invoice["invoice_no"].as_str().unwrap();
    taxpayer
        .app()
        .submit(&submission(taxpayer, no))
        .await
        .expect_status(200);
    (invoice.clone(), invoice["irn"].as_str().unwrap().to_owned())
}

/// What the authority holds, and how many updates it got.
fn held(world: &World, irn: &str) -> (&'static str, u32) {
    let sheet = world.authority.invoice(irn).unwrap();
    (sheet.payment_status.unwrap(), sheet.update_attempts)
}

async fn payment_events(taxpayer: &Taxpayer) -> usize {
    let names = taxpayer.event_names().await;
    names
        .iter()
        .filter(|name| *name == "payment.status-updated")
        .count()
}

#[each_database]
async fn a_payment_is_relayed_and_the_invoice_follows(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (invoice, irn) = signed(&taxpayer).await;
    let body = json!({ "payment_status": "PAID", "remark": "by transfer" });
    let answer = taxpayer
        .send("PATCH", &relay_path(&irn), &body)
        .await
        .expect_status(200);
    assert_eq!(
        answer.message(),
        "Invoice payment status updated successfully"
    );
    let fields: Vec<_> = answer
        .data()
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(fields, ["irn", "payment_status", "remark", "updated_at"]);
    assert_eq!(
        (
            &answer.data()["irn"],
            &answer.data()["payment_status"],
            &answer.data()["remark"]
        ),
        (&json!(irn), &json!("PAID"), &json!("by transfer"))
    );
    assert_eq!(held(world, &irn), ("PAID", 1));
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["payment_status"], &after["status"]),
        (&json!("PAID"), &json!("submitted"))
    );
    assert_eq!(after["updated_at"], answer.data()["updated_at"]);
    assert_eq!(after["authority_data"]["status"], json!("SUBMITTED"));
    let events = taxpayer.events().await;
    let last = events.last().unwrap();
    assert_eq!(last["type"], json!("payment.status-updated"));
    assert_eq!(last["data"]["amount"].to_string(), "1075.00");
    assert_eq!(last["data"]["amount_paid"], last["data"]["payable_amount"]);
    assert_eq!(last["data"]["remark"], json!("by transfer"));
}

#[each_database]
async fn the_ledger_names_who_asked_and_not_the_authority(world: &World) {
    let taxpayer = world.taxpayer().await;
    let ways = [
        ("taxpayer-key", taxpayer.app()),
        ("integrator", world.integrator().app()),
    ];
    for (kind, app) in ways {
        let (invoice, irn) = signed(&taxpayer).await;
        app.set_payment_status(&irn, "PAID")
            .await
            .expect_status(200);
        let path = format!("{INVOICES}/{}?include=ledger", invoice["id"]);
        let shown = taxpayer.get(&path).await.expect_status(200);
        let entry = &shown.data()["ledger"]["entries"][0]["actor"];
        let events = taxpayer.events().await;
        let event = &events.last().unwrap()["actor"];
        let run = app
            .fetch_run_with_operation(&irn, "update-payment-status")
            .await
            .expect_status(200);
        for actor in [entry, event, &run.data()["asked_by"]] {
            assert_eq!(actor["kind"], json!(kind), "{actor}");
            assert_eq!(actor, entry);
        }
    }
}

#[on_sqlite]
async fn the_body_is_checked(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (_, irn) = signed(&taxpayer).await;
    let send = async |body: Value| taxpayer.send("PATCH", &relay_path(&irn), &body).await;
    let odd = json!({ "payment_status": "PARTIAL", "remark": "x".repeat(256) });
    send(odd).await.expect_faults(&["payment_status", "remark"]);
    assert_eq!(held(world, &irn), ("PENDING", 0));
    let bare = send(json!({ "payment_status": "paid" }))
        .await
        .expect_status(200);
    assert_eq!(bare.data()["remark"], Value::Null);
}

#[each_database]
async fn what_stands_already_is_not_relayed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (invoice, irn) = signed(&taxpayer).await;
    let before = taxpayer.reread(&invoice).await;
    taxpayer
        .app()
        .set_payment_status(&irn, "PENDING")
        .await
        .expect_status(200);
    assert_eq!(held(world, &irn), ("PENDING", 0));
    assert_eq!(taxpayer.reread(&invoice).await, before);
    assert_eq!(payment_events(&taxpayer).await, 0);
    for _ in 0..3 {
        taxpayer
            .app()
            .set_payment_status(&irn, "PAID")
            .await
            .expect_status(200);
    }
    assert_eq!(held(world, &irn), ("PAID", 1));
    assert_eq!(payment_events(&taxpayer).await, 1);
}

#[each_database]
async fn another_remark_about_the_same_status_is_an_entry_of_the_ledger(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (invoice, irn) = signed(&taxpayer).await;
    let send = async |status: &str, remark: &str| {
        let body = json!({ "payment_status": status, "remark": remark });
        let answer = taxpayer.send("PATCH", &relay_path(&irn), &body).await;
        assert_eq!(
            answer.expect_status(200).data()["remark"],
            json!(remark),
            "{status}"
        );
    };
    let entries = [
        ("PENDING", "reminded"),
        ("PENDING", "reminded again"),
        ("PENDING", "reminded"),
        ("REJECTED", "bounced"),
        ("REJECTED", "bounced twice"),
        ("PAID", "in cash"),
        ("PAID", "receipt 7"),
    ];
    for (status, remark) in entries {
        for _ in 0..2 {
            send(status, remark).await;
        }
        taxpayer
            .app()
            .set_payment_status(&irn, status)
            .await
            .expect_status(200);
    }
    let path = format!("{INVOICES}/{}?include=ledger", invoice["id"]);
    let shown = taxpayer.get(&path).await.expect_status(200);
    let ledger = shown.data()["ledger"].clone();
    let told: Vec<_> = ledger["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["status"].as_str().unwrap(),
                entry["remark"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, entries);
    assert_eq!(ledger["amount_paid"], ledger["payable_amount"]);
    assert_eq!(payment_events(&taxpayer).await, entries.len());
    assert_eq!(held(world, &irn), ("PAID", 2));
}

#[each_database]
async fn a_refusal_of_the_authority_is_passed_on_in_its_words(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (invoice, irn) = signed(&taxpayer).await;
    taxpayer
        .app()
        .set_payment_status(&irn, "REJECTED")
        .await
        .expect_status(200);
    let pending = taxpayer
        .app()
        .set_payment_status(&irn, "PENDING")
        .await
        .expect_refusal(422, "AUTHORITY_REJECTED");
    assert_eq!(pending.message(), "payment status cannot be set to PENDING");
    assert_eq!(
        taxpayer.reread(&invoice).await["payment_status"],
        json!("REJECTED")
    );
    taxpayer
        .app()
        .set_payment_status(&irn, "PAID")
        .await
        .expect_status(200);
    let rejected = taxpayer
        .app()
        .set_payment_status(&irn, "REJECTED")
        .await
        .expect_refusal(422, "AUTHORITY_REJECTED");
    assert!(
        rejected.message().contains("already PAID"),
        "{}",
        rejected.text
    );
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(after["payment_status"], json!("PAID"));
    assert_eq!(after["authority_data"]["status"], json!("SUBMITTED"));
    assert_eq!(payment_events(&taxpayer).await, 2);
    assert!(
        !taxpayer
            .event_names()
            .await
            .contains(&"invoice.rejected".to_owned())
    );
}

#[each_database]
async fn an_approved_invoice_that_the_authority_has_signed_is_paid_in_both_senses(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice();
    let no = body["invoice_no"].as_str().unwrap();
    taxpayer
        .app()
        .submit(&submission(&taxpayer, no))
        .await
        .expect_status(200);
    let invoice = taxpayer.invoice(&body).await;
    let irn = invoice["irn"].as_str().unwrap();
    taxpayer
        .app()
        .set_payment_status(irn, "PAID")
        .await
        .expect_refusal(409, "INVOICE_NOT_APPROVED");
    assert_eq!(held(world, irn), ("PENDING", 0));
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    taxpayer
        .app()
        .set_payment_status(irn, "PAID")
        .await
        .expect_status(200);
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["payment_status"], &after["status"]),
        (&json!("PAID"), &json!("paid"))
    );
    let names = taxpayer.event_names().await;
    assert_eq!(
        names[names.len() - 2..],
        ["payment.status-updated", "invoice.status-updated"]
    );
}

#[each_database]
async fn an_irn_of_no_stored_invoice_is_relayed_and_recorded(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let irn = irn(&taxpayer, &no);
    taxpayer
        .app()
        .submit(&submission(&taxpayer, &no))
        .await
        .expect_status(200);
    taxpayer
        .app()
        .set_payment_status(&irn, "PENDING")
        .await
        .expect_status(200);
    assert_eq!(payment_events(&taxpayer).await, 0);
    taxpayer
        .app()
        .set_payment_status(&irn, "PAID")
        .await
        .expect_status(200);
    assert_eq!(held(world, &irn), ("PAID", 1));
    let events = taxpayer.events().await;
    let data = &events.last().unwrap()["data"];
    assert_eq!(
        (&data["irn"], &data["invoice"]),
        (&json!(irn), &Value::Null)
    );
    assert_eq!(data["payment_status"], json!("PAID"));
    let run = taxpayer
        .app()
        .fetch_run_with_operation(&irn, "update-payment-status")
        .await
        .expect_status(200);
    assert_eq!(run.data()["state"], json!("succeeded"));
    assert_eq!(
        taxpayer.app().run(&irn).await.data()["operation"],
        json!("submit")
    );
}

#[each_database]
async fn an_invoice_that_is_not_signed_or_not_theirs_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let unsigned = taxpayer.invoice(&documents::invoice()).await;
    let (_, of_other) = signed(&other).await;
    let not_submitted =
        "Invoice not found at the authority: it is stored here, but was not submitted";
    for (irn, message) in [
        (unsigned["irn"].as_str().unwrap(), not_submitted),
        (of_other.as_str(), "Invoice not found"),
        (irn(&taxpayer, "NEVERSEEN").as_str(), "Invoice not found"),
    ] {
        let answer = taxpayer.app().set_payment_status(irn, "PAID").await;
        let answer = answer.expect_refusal(404, "INVOICE_NOT_FOUND");
        assert_eq!(answer.message(), message, "{irn}");
    }
    assert_eq!(held(world, &of_other), ("PENDING", 0));
    let stranger = world.new_integrator().await.app();
    stranger
        .set_payment_status(&of_other, "PAID")
        .await
        .expect_refusal(404, "INVOICE_NOT_FOUND");
    world
        .integrator()
        .app()
        .set_payment_status(&of_other, "PAID")
        .await
        .expect_status(200);
}

#[each_database]
async fn a_payment_that_only_one_side_knows_is_recorded_at_the_other(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (invoice, irn) = signed(&taxpayer).await;
    // On the taxpayer surface a status is not relayed.
    let paid = json!({
        "unique_no": irn, "unique_no_type": "IRN", "payment_status": "paid", "remark": "in cash",
    });
    taxpayer.pay(&paid).await.expect_status(200);
    assert_eq!(held(world, &irn), ("PENDING", 0));
    taxpayer
        .app()
        .set_payment_status(&irn, "PAID")
        .await
        .expect_status(200);
    assert_eq!(held(world, &irn), ("PAID", 1));
    let rejected = json!({
        "unique_no": irn, "unique_no_type": "IRN", "payment_status": "rejected", "remark": "bounced",
    });
    taxpayer.pay(&rejected).await.expect_status(200);
    taxpayer
        .app()
        .set_payment_status(&irn, "PAID")
        .await
        .expect_status(200);
    assert_eq!(held(world, &irn), ("PAID", 1));
    assert_eq!(
        taxpayer.reread(&invoice).await["payment_status"],
        json!("PAID")
    );
}

#[each_database]
async fn a_reply_that_is_lost_leads_to_one_payment(world: &World) {
    let taxpayer = world.taxpayer().await;
    for kind in [
        FaultKind::CommitThenDrop,
        FaultKind::Garbage,
        FaultKind::MissingFields,
    ] {
        let (invoice, irn) = signed(&taxpayer).await;
        let count = payment_events(&taxpayer).await;
        let mut order = FaultOrder::new(kind).on(Operation::Update);
        order.irn = Some(irn.clone());
        world.authority.add_fault(order).unwrap();
        taxpayer
            .app()
            .set_payment_status(&irn, "PAID")
            .await
            .expect_status(200);
        assert_eq!(held(world, &irn), ("PAID", 1), "{kind:?}");
        assert_eq!(
            taxpayer.reread(&invoice).await["payment_status"],
            json!("PAID")
        );
        assert_eq!(payment_events(&taxpayer).await, count + 1);
    }
}

#[each_database(ALONE)]
async fn a_relay_that_fails_goes_on_in_the_background_and_keeps_others_out(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (invoice, irn) = signed(&taxpayer).await;
    let mut order = FaultOrder::new(FaultKind::ServerError).on(Operation::Update);
    order.irn = Some(irn.clone());
    world.authority.add_fault(order).unwrap();
    let answer = taxpayer
        .app()
        .set_payment_status(&irn, "PAID")
        .await
        .expect_refusal(503, "AUTHORITY_UNAVAILABLE");
    assert_ne!(answer.header("retry-after"), "");
    let other = taxpayer.app().set_payment_status(&irn, "REJECTED").await;
    other.expect_refusal(409, "INVALID_TRANSITION");
    world.authority.clear_faults();
    let followed =
        async || (taxpayer.reread(&invoice).await["payment_status"] == "PAID").then_some(());
    eventually("a payment that nobody relays again", followed).await;
    let (status, calls) = held(world, &irn);
    assert!(
        status == "PAID" && calls > 1,
        "{status} after {calls} calls"
    );
    assert_eq!(payment_events(&taxpayer).await, 1);
}

#[on_sqlite(&[("AUTHORITY__TIMEOUT_S", "1")])]
async fn an_authority_that_is_out_leaves_nothing_begun(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (_, irn) = signed(&taxpayer).await;
    world
        .authority
        .add_fault(FaultOrder::new(FaultKind::Outage))
        .unwrap();
    let answer = taxpayer
        .app()
        .set_payment_status(&irn, "PAID")
        .await
        .expect_refusal(502, "AUTHORITY_UNAVAILABLE");
    assert_ne!(answer.header("retry-after"), "");
    world.authority.clear_faults();
    let none = taxpayer
        .app()
        .fetch_run_with_operation(&irn, "update-payment-status")
        .await;
    none.expect_refusal(404, "RUN_NOT_FOUND");
    taxpayer
        .app()
        .set_payment_status(&irn, "REJECTED")
        .await
        .expect_status(200);
}

#[each_database]
async fn concurrent_relays_of_one_status_are_one(world: &World) {
    let taxpayer = world.taxpayer().await;
    let (invoice, irn) = signed(&taxpayer).await;
    let app = taxpayer.app();
    let answers = join_all((0..8).map(|_| app.set_payment_status(&irn, "PAID"))).await;
    for answer in answers {
        answer.expect_status(200);
    }
    assert_eq!(held(world, &irn), ("PAID", 1));
    assert_eq!(payment_events(&taxpayer).await, 1);
    assert_eq!(
        taxpayer.reread(&invoice).await["payment_status"],
        json!("PAID")
    );
}

#[each_database]
async fn an_invoice_that_is_cancelled_while_its_payment_is_relayed_is_known_to_be_paid(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let mut body = documents::invoice();
    body["invoice_no"] = json!(format!("INV{}SBXSLOW", number()));
    let no = body["invoice_no"].as_str().unwrap();
    taxpayer
        .app()
        .submit_async(&submission(&taxpayer, no))
        .await
        .expect_status(202);
    let irn = irn(&taxpayer, no);
    let ended =
        async || (taxpayer.app().run(&irn).await.data()["state"] == "succeeded").then_some(());
    eventually("the end of the submission", ended).await;
    let invoice = taxpayer.invoice(&body).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let app = taxpayer.app();
    let paying = app.set_payment_status(&irn, "PAID");
    let cancelling = async {
        let is_held = async || (held(world, &irn).1 == 1).then_some(());
        eventually("the call", is_held).await;
        taxpayer
            .set_status(&invoice, "cancelled")
            .await
            .expect_status(200);
    };
    let (paid, ()) = futures_util::future::join(paying, cancelling).await;
    paid.expect_status(200);
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(
        (&after["payment_status"], &after["status"]),
        (&json!("PAID"), &json!("cancelled"))
    );
    assert_eq!(payment_events(&taxpayer).await, 1);
}
