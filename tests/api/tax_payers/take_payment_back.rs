//! POST /v1/tax-payers/invoices/{id}/payments/take-back.

use rust_decimal::Decimal;
use serde_json::{Value, json};
use testkit::answer::Answer;
use testkit::documents;
use testkit::edit::{exact, with, without};
use testkit::roles::{INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const MISTAKE: &str = "of another invoice";

/// An approved invoice that comes to 100.00.
async fn over_a_hundred(taxpayer: &Taxpayer) -> Value {
    let body = documents::invoice_with_price("50", "2");
    let invoice = taxpayer.invoice(&body).await;
    let approved = taxpayer.set_status(&invoice, "approved").await;
    approved.expect_status(200).data().clone()
}

async fn pay(taxpayer: &Taxpayer, invoice: &Value, status: &str, amount: Option<&str>) {
    let body = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": status, "remark": "by transfer",
    });
    let body = match amount {
        Some(amount) => with(&body, "amount", exact(amount)),
        None => body,
    };
    taxpayer.pay(&body).await.expect_status(200);
}

async fn take_back(taxpayer: &Taxpayer, invoice: &Value, amount: Option<&str>) -> Answer {
    let body = json!({ "remark": MISTAKE, "reference": "TRX-1" });
    let body = match amount {
        Some(amount) => with(&body, "amount", exact(amount)),
        None => body,
    };
    send(taxpayer, invoice, &body).await
}

async fn send(taxpayer: &Taxpayer, invoice: &Value, body: &Value) -> Answer {
    let path = format!("{INVOICES}/{}/payments/take-back", invoice["id"]);
    taxpayer.send("POST", &path, body).await
}

fn decimal(value: &Value) -> Decimal {
    value.to_string().parse().unwrap()
}

#[each_database]
async fn what_was_recorded_as_paid_is_taken_back(world: &World) {
    let taxpayer = world.taxpayer().await;
    // The part that is paid, or `None` for all of 100.00, the amount to take back, then both statuses, and what is left
    // of the payment.
    for (part, amount, status, payment_status, left) in [
        (None, None, "approved", "PENDING", "0"),
        (None, Some("100.00"), "approved", "PENDING", "0"),
        (None, Some("0.01"), "approved", "PARTIAL", "99.99"),
        (Some("33.33"), None, "approved", "PENDING", "0"),
        (Some("33.33"), Some("33.30"), "approved", "PARTIAL", "0.03"),
    ] {
        let invoice = over_a_hundred(&taxpayer).await;
        let paid = if part.is_some() { "partial" } else { "paid" };
        pay(&taxpayer, &invoice, paid, part).await;
        let answer = take_back(&taxpayer, &invoice, amount).await;
        let answer = answer.expect_status(200);
        let name = format!("{part:?} {amount:?}");
        assert_eq!(answer.message(), "Payment taken back successfully");
        let found = (&answer.data()["status"], &answer.data()["payment_status"]);
        assert_eq!(found, (&json!(status), &json!(payment_status)), "{name}");
        let whole = taxpayer.invoice_with_ledger(&invoice).await;
        let ledger = &whole["ledger"];
        let left: Decimal = left.parse().unwrap();
        assert_eq!(decimal(&ledger["amount_paid"]), left, "{name}");
        let entry = ledger["entries"].as_array().unwrap().last().unwrap();
        let paid: Decimal = part.unwrap_or("100").parse().unwrap();
        assert_eq!(decimal(&entry["amount"]), left - paid, "{name}");
        assert_eq!(
            (&entry["remark"], &entry["reference"]),
            (&json!(MISTAKE), &json!("TRX-1"))
        );
        let events = taxpayer.events().await;
        let event = events
            .iter()
            .rev()
            .find(|event| event["type"] == "payment.status-updated");
        let data = &event.unwrap()["data"];
        assert_eq!(decimal(&data["amount"]), left - paid, "{name}");
        assert_eq!(decimal(&data["amount_paid"]), left, "{name}");
        // It can be paid again, and no more than it comes to.
        pay(&taxpayer, &invoice, "paid", None).await;
        let again = taxpayer.invoice_with_ledger(&invoice).await;
        let paid = decimal(&again["ledger"]["amount_paid"]);
        assert_eq!(paid, Decimal::from(100), "{name}");
    }
}

#[on_sqlite]
async fn a_faulty_request_takes_nothing_back(world: &World) {
    let taxpayer = world.taxpayer().await;
    let unpaid = over_a_hundred(&taxpayer).await;
    let half = over_a_hundred(&taxpayer).await;
    pay(&taxpayer, &half, "partial", Some("50")).await;
    let half = taxpayer.reread(&half).await;
    for (invoice, amount) in [
        (&unpaid, None),
        (&unpaid, Some("1")),
        (&half, Some("50.01")),
        (&half, Some("0")),
        (&half, Some("-1")),
    ] {
        let answer = take_back(&taxpayer, invoice, amount).await;
        answer.expect_faults(&["amount"]);
        assert_eq!(taxpayer.reread(invoice).await, *invoice, "{amount:?}");
    }
    let body = json!({ "amount": "50", "reference": "x".repeat(256), "remark": "ab" });
    let answer = send(&taxpayer, &half, &body).await;
    answer.expect_faults(&["amount", "reference", "remark"]);
    let body = without(&body, "remark");
    let answer = send(&taxpayer, &half, &body).await;
    answer.expect_faults(&["amount", "reference", "remark"]);
    assert_eq!(taxpayer.reread(&half).await, half);
}

#[on_sqlite]
async fn only_an_own_invoice_that_is_not_cancelled_takes_a_payment_back(world: &World) {
    let taxpayer = world.taxpayer().await;
    let cancelled = over_a_hundred(&taxpayer).await;
    pay(&taxpayer, &cancelled, "partial", Some("50")).await;
    let cancel = taxpayer.set_status(&cancelled, "cancelled").await;
    cancel.expect_status(200);
    let answer = take_back(&taxpayer, &cancelled, None).await;
    answer.expect_refusal(409, "INVALID_TRANSITION");
    let other = world.taxpayer().await;
    let theirs = over_a_hundred(&other).await;
    pay(&other, &theirs, "paid", None).await;
    let answer = take_back(&taxpayer, &theirs, None).await;
    answer.expect_refusal(404, "INVOICE_NOT_FOUND");
    for id in [json!(0), json!("one")] {
        let answer = take_back(&taxpayer, &json!({ "id": id }), None).await;
        answer.expect_refusal(404, "INVOICE_NOT_FOUND");
    }
    let answer = take_back(&other, &theirs, None).await;
    answer.expect_status(200);
}

#[each_database]
async fn a_payment_that_the_authority_knows_is_not_taken_back(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let number = invoice["invoice_no"].as_str().unwrap();
    let submission = documents::submission(&taxpayer, number);
    let signed = taxpayer.app().submit_to_the_end(&submission).await;
    signed.expect_status(200);
    // A payment that was only recorded here is taken back, and the invoice stays submitted.
    pay(&taxpayer, &invoice, "paid", None).await;
    let answer = take_back(&taxpayer, &invoice, None)
        .await
        .expect_status(200);
    assert_eq!(answer.data()["status"], json!("submitted"));
    assert_eq!(answer.data()["payment_status"], json!("PENDING"));
    let irn = invoice["irn"].as_str().unwrap();
    for (status, answered) in [("PAID", 200), ("REJECTED", 422)] {
        let relayed = taxpayer.app().set_payment_status(irn, status).await;
        relayed.expect_status(answered);
        let answer = take_back(&taxpayer, &invoice, None).await;
        let answer = answer.expect_refusal(409, "INVALID_TRANSITION");
        let sentence = "The authority has this invoice as paid and never changes that";
        assert!(answer.message().contains(sentence), "{}", answer.text);
    }
    let after = taxpayer.reread(&invoice).await;
    assert_eq!(after["payment_status"], json!("PAID"));
}
