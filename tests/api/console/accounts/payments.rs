//! The forms about the payments of an invoice: their day, the last part, and taking a payment back.

use jiff::tz::Offset;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use testkit::documents;
use testkit::{each_database, on_sqlite};
use timing::clock::{Clock as _, SystemClock};

use super::{Account, assert_shows, post_seen};
use crate::support::world::World;

/// Returns an approved invoice over 100.00.
async fn approved(account: &Account) -> Value {
    let body = documents::invoice_with_price("50", "2");
    let invoice = account.taxpayer.invoice(&body).await;
    let approved = account.taxpayer.set_status(&invoice, "approved").await;
    approved.expect_status(200);
    invoice
}

fn part(amount: &'static str) -> [(&'static str, &'static str); 3] {
    [
        ("payment_status", "partial"),
        ("amount", amount),
        ("remark", "by bank"),
    ]
}

#[each_database]
async fn a_payment_has_the_day_that_was_typed(world: &World) {
    let account = Account::new(world).await;
    let invoice = approved(&account).await;
    let path = format!("/invoices/{}", invoice["id"]);
    let form = format!("{path}/payment");
    // The service dates by the authority's zone, which is one hour ahead of UTC.
    let now = SystemClock.now();
    let days = [Offset::UTC, Offset::constant(1)].map(|zone| zone.to_datetime(now).date());
    let page = account.page(&path).await;
    let is_filled = days
        .iter()
        .any(|day| page.contains(&format!("name=\"payment_date\" value=\"{day}\"")));
    assert!(is_filled, "{page}");
    let on = |day: &'static str| part("10").into_iter().chain([("payment_date", day)]);
    for (day, sentence) in [
        ("9999-01-01", "The Paid on field must not be in the future."),
        (
            "1999-12-31",
            "The Paid on field must not be before 2000-01-01.",
        ),
        (
            "3 November",
            "The Paid on field must be a date written YYYY-MM-DD.",
        ),
    ] {
        let fields: Vec<_> = on(day).collect();
        let refused = account.post(&form, &fields).await.expect(422);
        refused.shows(sentence).shows(&format!("value=\"{day}\""));
    }
    let fields: Vec<_> = on("2026-02-03").collect();
    account.post(&form, &fields).await.expect(303);
    let page = account.page(&path).await;
    assert_shows(&page, &["<time>2026-02-03</time>", "paid on 2026-02-03"]);
    let asked = account.post(&form, &fields).await.expect(422);
    asked.shows("You recorded the same payment a moment ago.");
    let fields: Vec<_> = on("2026-02-04").collect();
    account.post(&form, &fields).await.expect(303);
    account.post(&form, &part("10")).await.expect(303);
    let whole = account.taxpayer.invoice_with_ledger(&invoice).await;
    let entries = whole["ledger"]["entries"].as_array().unwrap().iter();
    let dates: Vec<_> = entries.map(|entry| entry["payment_date"].clone()).collect();
    assert_eq!(
        dates,
        [json!("2026-02-03"), json!("2026-02-04"), json!(null)]
    );
}

#[each_database]
async fn the_last_part_makes_an_invoice_paid(world: &World) {
    let account = Account::new(world).await;
    let invoice = approved(&account).await;
    let path = format!("/invoices/{}", invoice["id"]);
    for (amount, status, notice) in [
        ("60", "PARTIAL", "The payment was recorded."),
        ("40.00", "PAID", "It was the last part: now all is paid."),
    ] {
        let sent = account
            .post(&format!("{path}/payment"), &part(amount))
            .await;
        sent.expect(303);
        assert_shows(&account.page(&path).await, &[notice]);
        let stored = account.taxpayer.reread(&invoice).await;
        assert_eq!(stored["payment_status"], status, "{amount}");
    }
    let whole = account.taxpayer.invoice_with_ledger(&invoice).await;
    let paid: Decimal = whole["ledger"]["amount_paid"].to_string().parse().unwrap();
    assert_eq!(paid, Decimal::from(100));
}

#[on_sqlite]
async fn parts_that_leave_nothing_are_completed_on_the_page(world: &World) {
    let account = Account::new(world).await;
    let invoice = approved(&account).await;
    let path = format!("/invoices/{}", invoice["id"]);
    let hint = "Nothing is left to pay: record it as paid in full.";
    let chosen = "<option value=\"paid\" selected>";
    let page = account.page(&path).await;
    assert!(!page.contains(hint) && !page.contains(chosen), "{page}");
    let body = json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial", "amount": 100,
        "remark": "by bank",
    });
    let paid = account.taxpayer.pay(&body).await.expect_status(200);
    assert_eq!(paid.data()["payment_status"], "PARTIAL");
    let page = account.page(&path).await;
    assert_shows(&page, &[hint, chosen, "left to pay 0.00"]);
    let fields = [("payment_status", "paid"), ("remark", "by bank")];
    let sent = account.post(&format!("{path}/payment"), &fields).await;
    sent.expect(303);
    let page = account.page(&path).await;
    assert!(!page.contains(hint), "{page}");
    let stored = account.taxpayer.reread(&invoice).await;
    assert_eq!(stored["payment_status"], "PAID");
}

#[on_sqlite]
async fn a_payment_is_taken_back_by_its_amount(world: &World) {
    let account = Account::new(world).await;
    let invoice = approved(&account).await;
    let path = format!("/invoices/{}", invoice["id"]);
    let sent = account.post(&format!("{path}/payment"), &part("30")).await;
    sent.expect(303);
    let stored = account.taxpayer.reread(&invoice).await;
    for amount in ["", "  "] {
        let fields = [("amount", amount), ("remark", "of another one")];
        let refused = post_seen(&account, &path, "payment/take-back", &fields).await;
        refused
            .expect(422)
            .shows("Say the amount that is taken back.");
        assert_eq!(account.taxpayer.reread(&invoice).await, stored);
    }
    let fields = [("amount", "30"), ("remark", "of another one")];
    let sent = post_seen(&account, &path, "payment/take-back", &fields).await;
    sent.expect(303);
}
