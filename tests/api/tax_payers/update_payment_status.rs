//! PATCH /v1/tax-payers/invoices/update-payment-status.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::{exact, with, without};
use testkit::roles::{Taxpayer, UPDATE_PAYMENT};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

fn payment(invoice: &Value, status: &str) -> Value {
    json!({ "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": status, "remark": "by transfer" })
}

fn part(invoice: &Value, amount: &str) -> Value {
    with(&payment(invoice, "partial"), "amount", exact(amount))
}

/// An approved invoice that comes to 100.00.
async fn over_a_hundred(taxpayer: &Taxpayer) -> Value {
    let invoice = taxpayer
        .invoice(&documents::invoice_with_price("50", "2"))
        .await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200)
        .data()
        .clone()
}

/// Whether a number is this one, with or without zeros at its end.
fn is_amount(number: &Value, digits: &str) -> bool {
    let shown = number.to_string();
    let rest = shown.strip_prefix(digits).unwrap_or("x");
    rest.trim_start_matches('.')
        .chars()
        .all(|digit| digit == '0')
        && (rest.is_empty() || shown.contains('.'))
}

#[each_database]
async fn an_approved_invoice_that_is_paid_is_paid_in_both_senses(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    let answer = taxpayer
        .pay(&payment(&invoice, "paid"))
        .await
        .expect_status(200);
    assert_eq!(
        answer.message(),
        "Invoice payment status updated successfully"
    );
    assert_eq!(
        (&answer.data()["status"], &answer.data()["payment_status"]),
        (&json!("paid"), &json!("PAID"))
    );
    assert_eq!(*answer.data(), taxpayer.reread(&invoice).await);
    let names = taxpayer.event_names().await;
    assert!(names.contains(&"payment.status-updated".to_owned()));
    assert_eq!(
        names
            .iter()
            .filter(|name| *name == "invoice.status-updated")
            .count(),
        2,
        "{names:?}"
    );
}

#[on_sqlite]
async fn an_invoice_that_is_not_approved_is_not_paid(world: &World) {
    let taxpayer = world.taxpayer().await;
    let draft = taxpayer.invoice(&documents::invoice()).await;
    let cancelled = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&cancelled, "cancelled")
        .await
        .expect_status(200);
    for invoice in [&draft, &cancelled] {
        taxpayer
            .pay(&payment(invoice, "paid"))
            .await
            .expect_refusal(409, "INVOICE_NOT_APPROVED");
        taxpayer
            .pay(&part(invoice, "1"))
            .await
            .expect_refusal(409, "INVOICE_NOT_APPROVED");
        assert_eq!(
            taxpayer.reread(invoice).await["payment_status"],
            json!("PENDING")
        );
    }
}

#[each_database]
async fn pending_and_rejected_go_in_any_status(world: &World) {
    let taxpayer = world.taxpayer().await;
    let draft = taxpayer.invoice(&documents::invoice()).await;
    let approved = over_a_hundred(&taxpayer).await;
    for invoice in [&draft, &approved] {
        for (status, reads) in [
            ("rejected", "REJECTED"),
            ("pending", "PENDING"),
            ("REJECTED", "REJECTED"),
        ] {
            let answer = taxpayer
                .pay(&payment(invoice, status))
                .await
                .expect_status(200);
            assert_eq!(answer.data()["payment_status"], json!(reads));
            assert_eq!(answer.data()["status"], invoice["status"]);
        }
    }
}

#[each_database]
async fn partial_payments_add_up_to_the_payable_and_no_further(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    for amount in ["33.33", "33.33", "33.33", "0.01"] {
        let answer = taxpayer
            .pay(&part(&invoice, amount))
            .await
            .expect_status(200);
        assert_eq!(
            answer.message(),
            "Invoice payment status updated successfully"
        );
        assert_eq!(answer.data()["payment_status"], json!("PARTIAL"));
        assert_eq!(answer.data()["status"], json!("approved"));
    }
    let over = taxpayer
        .pay(&part(&invoice, "0.01"))
        .await
        .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    assert_eq!(over.faulty_paths(), ["amount"]);
    let paid = taxpayer
        .pay(&payment(&invoice, "paid"))
        .await
        .expect_status(200);
    assert_eq!(
        (&paid.data()["status"], &paid.data()["payment_status"]),
        (&json!("paid"), &json!("PAID"))
    );
}

#[on_sqlite]
async fn a_partial_payment_above_the_payable_amount_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    let events = taxpayer.events().await.len();
    for amount in ["100.01", "100.000001", "999999999999999"] {
        let answer = taxpayer.pay(&part(&invoice, amount)).await;
        let answer = answer.expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
        assert_eq!(answer.faulty_paths(), ["amount"]);
    }
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
    assert_eq!(taxpayer.events().await.len(), events);
    taxpayer
        .pay(&part(&invoice, "100"))
        .await
        .expect_status(200);
}

#[each_database]
async fn of_500_concurrent_payments_of_one_exactly_a_hundred_fit(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    let body = part(&invoice, "1.00");
    let answers = join_all((0..500).map(|_| taxpayer.pay(&body))).await;
    let count = |status| {
        answers
            .iter()
            .filter(|answer| answer.status == status)
            .count()
    };
    assert_eq!((count(200), count(422)), (100, 400));
    let refused = answers.iter().filter(|answer| answer.status == 422);
    assert!(
        refused
            .into_iter()
            .all(|answer| answer.code() == "PAYMENT_EXCEEDS_PAYABLE")
    );
    let names = taxpayer.event_names().await;
    assert_eq!(
        names
            .iter()
            .filter(|name| *name == "payment.status-updated")
            .count(),
        100
    );
    let last = taxpayer.events().await.into_iter().rev();
    let last = last
        .into_iter()
        .find(|event| event["type"] == "payment.status-updated")
        .unwrap();
    assert!(is_amount(&last["data"]["amount_paid"], "100"), "{last}");
}

#[each_database]
async fn the_payment_event_tells_the_running_amount(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    let body = with(&part(&invoice, "40.5"), "reference", json!("TRF-1"));
    taxpayer.pay(&body).await.expect_status(200);
    let answer = taxpayer
        .pay(&with(&body, "reference", json!("TRF-2")))
        .await
        .expect_status(200);
    let events = taxpayer.events().await;
    let last = &events.last().unwrap()["data"];
    assert_eq!(last["invoice"], *answer.data());
    assert_eq!(
        (&last["irn"], &last["reference"]),
        (&invoice["irn"], &json!("TRF-2"))
    );
    for (name, amount) in [
        ("amount", "40.5"),
        ("amount_paid", "81"),
        ("payable_amount", "100"),
    ] {
        assert!(is_amount(&last[name], amount), "{name}: {last}");
    }
}

#[each_database]
async fn the_day_of_a_payment_is_kept_and_notified_if_it_was_sent(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    for date in [Some("2026-02-03"), Some("2000-01-01"), None] {
        let body = match date {
            Some(date) => with(&part(&invoice, "1"), "payment_date", json!(date)),
            None => part(&invoice, "1"),
        };
        taxpayer.pay(&body).await.expect_status(200);
        let whole = taxpayer.invoice_with_ledger(&invoice).await;
        let entry = whole["ledger"]["entries"].as_array().unwrap().last();
        assert_eq!(entry.unwrap()["payment_date"], json!(date));
        let events = taxpayer.events().await;
        let data = &events.last().unwrap()["data"];
        assert_eq!(
            data.get("payment_date"),
            date.map(|date| json!(date)).as_ref()
        );
    }
    for date in [
        json!("9999-01-01"),
        json!("1999-12-31"),
        json!("soon"),
        json!(3),
    ] {
        let body = with(&part(&invoice, "1"), "payment_date", date);
        taxpayer.pay(&body).await.expect_faults(&["payment_date"]);
    }
    let paid = with(
        &payment(&invoice, "paid"),
        "payment_date",
        json!("2026-02-04"),
    );
    taxpayer.pay(&paid).await.expect_status(200);
    let whole = taxpayer.invoice_with_ledger(&invoice).await;
    let entry = whole["ledger"]["entries"].as_array().unwrap().last();
    assert_eq!(entry.unwrap()["payment_date"], json!("2026-02-04"));
}

#[on_sqlite]
async fn a_repeated_payment_of_another_day_is_another_request(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    let key = format!("paid-{}", invoice["id"]);
    let on = |date: &str| with(&part(&invoice, "5"), "payment_date", json!(date));
    let first = on("2026-02-03");
    for _ in 0..2 {
        let paid = taxpayer
            .send_keyed(&key, "PATCH", UPDATE_PAYMENT, &first)
            .await;
        paid.expect_status(200);
    }
    let other = on("2026-02-04");
    let refused = taxpayer
        .send_keyed(&key, "PATCH", UPDATE_PAYMENT, &other)
        .await;
    refused.expect_refusal(422, "IDEMPOTENCY_KEY_REUSED");
    let whole = taxpayer.invoice_with_ledger(&invoice).await;
    let paid = &whole["ledger"]["amount_paid"];
    assert!(is_amount(paid, "5"), "{paid}");
}

#[each_database]
async fn a_partly_paid_invoice_keeps_its_amounts_when_it_is_pending_or_rejected(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    taxpayer.pay(&part(&invoice, "60")).await.expect_status(200);
    for status in ["rejected", "pending"] {
        taxpayer
            .pay(&payment(&invoice, status))
            .await
            .expect_status(200);
        taxpayer
            .pay(&part(&invoice, "40.01"))
            .await
            .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    }
    let answer = taxpayer.pay(&part(&invoice, "40")).await.expect_status(200);
    assert_eq!(answer.data()["payment_status"], json!("PARTIAL"));
}

#[on_sqlite]
async fn all_faults_are_reported_at_once_and_change_nothing(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = over_a_hundred(&taxpayer).await;
    let odd = without(
        &with(&part(&invoice, "-1"), "reference", json!("x".repeat(256))),
        "remark",
    );
    taxpayer
        .pay(&odd)
        .await
        .expect_faults(&["amount", "reference", "remark"]);
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
}

#[on_sqlite]
async fn an_unknown_invoice_is_not_found(world: &World) {
    let taxpayer = world.taxpayer().await;
    let strange = json!({ "irn": "NONE-AAAAAAAA-20260115" });
    let answer = taxpayer.pay(&payment(&strange, "paid")).await;
    assert_eq!(
        answer.expect_refusal(404, "INVOICE_NOT_FOUND").message(),
        "Invoice not found"
    );
    let theirs = over_a_hundred(&world.taxpayer().await).await;
    taxpayer
        .pay(&payment(&theirs, "paid"))
        .await
        .expect_refusal(404, "INVOICE_NOT_FOUND");
}

#[each_database]
async fn a_submitted_invoice_is_paid_and_keeps_its_workflow_status(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let submission = documents::submission(&taxpayer, invoice["invoice_no"].as_str().unwrap());
    taxpayer.app().submit(&submission).await.expect_status(200);
    taxpayer.pay(&part(&invoice, "75")).await.expect_status(200);
    let answer = taxpayer
        .pay(&payment(&invoice, "paid"))
        .await
        .expect_status(200);
    assert_eq!(
        (&answer.data()["payment_status"], &answer.data()["status"]),
        (&json!("PAID"), &json!("submitted"))
    );
}

#[on_sqlite]
async fn an_amount_that_is_not_used_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (status, amount, expected) in [
        ("pending", "40", "amount 40 was not used"),
        ("rejected", "40", "amount 40 was not used"),
        (
            "paid",
            "40",
            "amount 40 was not used; NGN 100.00 was recorded as paid",
        ),
        ("paid", "100", ""),
        ("paid", "0", ""),
        ("partial", "40", ""),
    ] {
        let invoice = over_a_hundred(&taxpayer).await;
        let body = with(&payment(&invoice, status), "amount", exact(amount));
        let answer = taxpayer.pay(&body).await.expect_status(200);
        let warnings = answer.warnings();
        assert!(warnings.contains(expected), "{status} {amount}: {warnings}");
        assert_eq!(
            warnings.is_empty(),
            expected.is_empty(),
            "{status} {amount}: {warnings}"
        );
    }
}

#[on_sqlite]
async fn a_part_with_more_digits_than_the_currency_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (currency, amount, is_told) in [
        ("NGN", "0.000001", true),
        ("NGN", "0.010", false),
        ("JPY", "0.5", true),
        ("JPY", "1.0", false),
    ] {
        let body = with(&documents::invoice(), "currency", json!(currency));
        let invoice = taxpayer.invoice(&body).await;
        taxpayer
            .set_status(&invoice, "approved")
            .await
            .expect_status(200);
        let paid = taxpayer.pay(&part(&invoice, amount)).await;
        let warnings = paid.expect_status(200).warnings();
        assert_eq!(
            warnings.contains("more digits"),
            is_told,
            "{amount} {currency}: {warnings}"
        );
    }
}
