//! Refunds: how much is to be paid back through a credit note, where it is found, and that no more is recorded.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::patience::eventually;

use super::{Account, assert_shows};
use crate::support::world::World;

/// Returns a signed invoice of 100 without tax.
async fn signed(account: &Account) -> Value {
    let body = documents::invoice_with_price("100", "1");
    let invoice = account.taxpayer.invoice(&body).await;
    let alone = json!({ "irn": invoice["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    invoice
}

/// Corrects an invoice on its page, waits for the end, and returns the path of its credit note.
async fn credit(account: &Account, invoice: &Value, fields: &[(&str, &str)]) -> String {
    let page = format!("/invoices/{}", invoice["id"]);
    let sent = account.post(&format!("{page}/correct"), fields).await;
    sent.expect(303);
    eventually("the end of the correction", async || {
        let shown = account.page(&page).await;
        shown.contains(">Done</span>").then_some(())
    })
    .await;
    let number = format!("{}CN1", invoice["invoice_no"].as_str().unwrap());
    let found = account
        .taxpayer
        .list_invoices(&format!("?q={number}"))
        .await;
    let found = found.expect_status(200);
    format!("/invoices/{}", found.data()["data"][0]["id"])
}

async fn pay(account: &Account, page: &str, status: &str, amount: &str) -> (u16, String) {
    let fields = [
        ("payment_status", status),
        ("amount", amount),
        ("remark", "By bank"),
    ];
    let sent = account.post(&format!("{page}/payment"), &fields).await;
    (sent.status, sent.html)
}

/// Expects that the invoice is among those of which a refund is due, or that it is not, on each list.
async fn expect_refund_due(account: &Account, invoice: &Value, is_due: bool) {
    let number = invoice["invoice_no"].as_str().unwrap();
    let list = account.page("/invoices").await;
    assert_eq!(list.contains(">Refund due</span>"), is_due, "{list}");
    let count = u8::from(is_due);
    let tab = format!("Refund due <span class=\"count\">{count}</span>");
    assert_shows(&list, &[&tab]);
    let due = account.page("/invoices?refund_due=true").await;
    assert_eq!(due.contains(number), is_due, "{due}");
    let listed = account.taxpayer.list_invoices("?refund_due=true").await;
    let listed = listed.expect_status(200);
    assert_eq!(listed.data()["total"], json!(count), "{}", listed.text);
    let page = account.page(&format!("/invoices/{}", invoice["id"])).await;
    assert_eq!(page.contains(">Refund due</span>"), is_due, "{page}");
}

#[each_database]
async fn no_more_is_paid_back_than_the_customer_has_paid(world: &World) {
    let account = Account::new(world).await;
    let invoice = signed(&account).await;
    let number = invoice["invoice_no"].as_str().unwrap();
    let page = format!("/invoices/{}", invoice["id"]);
    assert_eq!(pay(&account, &page, "partial", "40").await.0, 303);
    expect_refund_due(&account, &invoice, false).await;
    let note = credit(&account, &invoice, &[("cancel", "yes")]).await;
    expect_refund_due(&account, &invoice, true).await;
    let link = format!("<a href=\"{}\">{number}</a>", account.path(&page));
    let parts = format!("to be paid back 40.00, set off against {link} 60.00");
    let shown = account.page(&note).await;
    assert_shows(&shown, &["Paid back NGN 0.00, ", &parts, "Record a refund"]);
    assert!(!shown.contains("<option value=\"paid\""), "{shown}");
    let shown = account.page(&page).await;
    assert_shows(
        &shown,
        &["Paid NGN 40.00, credited 100.00", "to be paid back 40.00"],
    );

    let too_much = "is more than the 40.00 that is to be paid back for";
    for (status, amount) in [("partial", "100"), ("partial", "40.01"), ("paid", "")] {
        let (answered, shown) = pay(&account, &note, status, amount).await;
        assert_eq!(answered, 422, "{status} {amount}");
        assert_shows(&shown, &[too_much]);
    }
    assert_eq!(pay(&account, &note, "partial", "15").await.0, 303);
    let shown = account.page(&page).await;
    let money = "Paid NGN 40.00, paid back 15.00 through credit notes, credited 100.00";
    assert_shows(&shown, &[money, "to be paid back 25.00"]);
    expect_refund_due(&account, &invoice, true).await;
    assert_eq!(pay(&account, &note, "partial", "25").await.0, 303);
    expect_refund_due(&account, &invoice, false).await;
    let shown = account.page(&note).await;
    let parts = format!("to be paid back 0.00, set off against {link} 60.00");
    assert_shows(&shown, &["Paid back NGN 40.00, ", &parts]);
    assert!(!shown.contains("Record a refund"), "{shown}");
    let shown = account.page(&page).await;
    let money = "Paid NGN 40.00, paid back 40.00 through credit notes, credited 100.00";
    assert_shows(&shown, &[money, "left to pay 0.00", ">Settled</span>"]);
    let (answered, shown) = pay(&account, &note, "partial", "1").await;
    assert_eq!(answered, 422);
    assert_shows(&shown, &["Nothing is to be paid back for"]);
}

#[each_database]
async fn a_paid_invoice_that_is_credited_is_paid_again_once_the_refund_is_recorded(world: &World) {
    let account = Account::new(world).await;
    let invoice = signed(&account).await;
    let page = format!("/invoices/{}", invoice["id"]);
    assert_eq!(pay(&account, &page, "paid", "").await.0, 303);
    let note = credit(&account, &invoice, &[("lines.0.unit_price", "70")]).await;
    expect_refund_due(&account, &invoice, true).await;
    let shown = account.page(&note).await;
    assert_shows(&shown, &["to be paid back 30.00, set off against"]);
    assert_eq!(pay(&account, &note, "paid", "").await.0, 303);
    expect_refund_due(&account, &invoice, false).await;
    let shown = account.page(&page).await;
    let money = "Paid NGN 100.00, paid back 30.00 through credit notes, credited 30.00";
    assert_shows(&shown, &[money, "left to pay 0.00", ">Paid</span>"]);
    let shown = account.page(&note).await;
    assert_shows(
        &shown,
        &[
            "Paid back NGN 30.00, to be paid back 0.00",
            ">Settled</span>",
        ],
    );
}
