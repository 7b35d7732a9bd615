//! The money of corrected invoices: what is credited and left on the page of an invoice, in the list and with its customer.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::with;
use testkit::patience::eventually;

use super::{Account, assert_shows};
use crate::support::world::World;

/// Returns a signed invoice of 100 without tax that was due long ago.
async fn signed(account: &Account) -> Value {
    let due = with(
        &documents::invoice_with_price("100", "1"),
        "due_date",
        json!("2026-01-20"),
    );
    let invoice = account.taxpayer.invoice(&due).await;
    let alone = json!({ "irn": invoice["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    invoice
}

/// Corrects an invoice on its page and waits for the end.
async fn correct(account: &Account, invoice: &Value, fields: &[(&str, &str)]) {
    let page = format!("/invoices/{}", invoice["id"]);
    account
        .post(&format!("{page}/correct"), fields)
        .await
        .expect(303);
    eventually("the end of the correction", async || {
        let shown = account.page(&page).await;
        shown.contains(">Done</span>").then_some(())
    })
    .await;
}

async fn id_with_number(account: &Account, number: &str) -> String {
    let found = account
        .taxpayer
        .list_invoices(&format!("?q={number}"))
        .await;
    let found = found.expect_status(200);
    let rows = found.data()["data"].as_array().unwrap();
    let row = rows.iter().find(|row| row["invoice_no"] == json!(number));
    row.unwrap()["id"].to_string()
}

/// Returns the words on the page of an invoice about its first credit note, with a link to it.
async fn credited_words(account: &Account, number: &str, amount: &str, left: &str) -> String {
    let number = format!("{number}CN1");
    let note = id_with_number(account, &number).await;
    let address = account.path(&format!("/invoices/{note}"));
    format!("credited {amount} by <a href=\"{address}\">{number}</a>, left to pay {left}")
}

#[each_database]
async fn a_cancelled_invoice_is_owed_by_nobody(world: &World) {
    let account = Account::new(world).await;
    let invoice = signed(&account).await;
    correct(&account, &invoice, &[("cancel", "yes")]).await;
    assert_shows(
        &account.page("/customers").await,
        &["Nobody owes anything."],
    );
    let page = account.page(&format!("/invoices/{}", invoice["id"])).await;
    let number = invoice["invoice_no"].as_str().unwrap();
    let words = credited_words(&account, number, "100.00", "0.00").await;
    assert_shows(&page, &["Paid NGN 0.00", &words]);
    assert!(!page.contains("/credit-note\""), "{page}");
    account
        .post(&format!("/invoices/{}/credit-note", invoice["id"]), &[])
        .await
        .expect(409);
    assert_shows(&page, &[">Credited<", "Invoice "]);
    for gone in [
        "Record payment",
        "class=\"primary\"",
        ">Payment rejected</span>",
    ] {
        assert!(!page.contains(gone), "{gone}: {page}");
    }
    let list = account.page(&format!("/invoices?q={number}")).await;
    assert_shows(
        &list,
        &[
            "documents · NGN 0.00, of which paid 0.00",
            ">NGN 100.00<",
            "Credit note</span>",
            ">NGN -100.00<",
            ">Credited</span>",
        ],
    );
    for gone in [">Payment rejected</span>", ">Not paid</span>"] {
        assert!(!list.contains(gone), "{gone}: {list}");
    }
    let note = id_with_number(&account, &format!("{number}CN1")).await;
    let note = account.page(&format!("/invoices/{note}")).await;
    let address = account.path(&format!("/invoices/{}", invoice["id"]));
    let corrected = format!("<dt>Corrects</dt><dd><a href=\"{address}\">{number}</a></dd>");
    assert_shows(&note, &["<h1>Credit note ", &corrected]);
    assert!(!note.contains("Record payment"), "{note}");
}

#[each_database]
async fn a_replacement_is_owed_once(world: &World) {
    let account = Account::new(world).await;
    let invoice = signed(&account).await;
    correct(&account, &invoice, &[("lines.0.unit_price", "150")]).await;
    assert_shows(&account.page("/customers").await, &["NGN 150.00"]);
    let number = format!("{}R1", invoice["invoice_no"].as_str().unwrap());
    let replacement = id_with_number(&account, &number).await;
    account
        .post(
            &format!("/invoices/{replacement}/payment"),
            &[("payment_status", "paid"), ("remark", "By bank")],
        )
        .await
        .expect(303);
    assert_shows(
        &account.page("/customers").await,
        &["Nobody owes anything."],
    );
}

#[each_database]
async fn the_rest_of_a_partly_credited_invoice_is_paid(world: &World) {
    let account = Account::new(world).await;
    let invoice = signed(&account).await;
    let number = invoice["invoice_no"].as_str().unwrap();
    correct(&account, &invoice, &[("lines.0.unit_price", "70")]).await;
    let path = format!("/invoices/{}", invoice["id"]);
    let page = account.page(&path).await;
    let words = credited_words(&account, number, "30.00", "70.00").await;
    assert_shows(&page, &[&words, ">Overdue<", "Left to pay when it began"]);
    let customers = account.page("/customers").await;
    assert_shows(&customers, &["Of it overdue: 70.00"]);
    let overdue = account.page("/invoices?overdue=true").await;
    assert_shows(&overdue, &[number]);
    assert!(!overdue.contains(&format!("{number}CN1")), "{overdue}");

    let paid = [("payment_status", "paid"), ("remark", "By bank")];
    account
        .post(&format!("{path}/payment"), &paid)
        .await
        .expect(303);
    let page = account.page(&path).await;
    let words = credited_words(&account, number, "30.00", "0.00").await;
    let words = format!("Paid NGN 70.00, {words}");
    assert_shows(
        &page,
        &[&words, ">Paid<", "By bank", "Set off", ">70.00<", ">30.00<"],
    );
    assert_shows(
        &account.page("/customers").await,
        &["Nobody owes anything."],
    );
    let note = id_with_number(&account, &format!("{number}CN1")).await;
    let note = account.page(&format!("/invoices/{note}")).await;
    let parts = "Paid back NGN 0.00, to be paid back 0.00, set off against <a href=\"";
    assert_shows(&note, &[">Paid<", "Set off", parts, "</a> 30.00"]);
}

#[each_database]
async fn money_of_a_cancelled_invoice_is_to_be_paid_back(world: &World) {
    let account = Account::new(world).await;
    let invoice = account
        .taxpayer
        .invoice(&documents::invoice_with_price("100", "1"))
        .await;
    account
        .taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let path = format!("/invoices/{}", invoice["id"]);
    let part = [
        ("payment_status", "partial"),
        ("amount", "40"),
        ("remark", "Part"),
    ];
    account
        .post(&format!("{path}/payment"), &part)
        .await
        .expect(303);
    assert_shows(
        &account.page(&path).await,
        &["Cancel this invoice? NGN 40 was paid and has to be paid back."],
    );
}

#[each_database]
async fn an_invoice_that_credit_notes_and_parts_have_paid_is_not_overdue(world: &World) {
    let account = Account::new(world).await;
    let invoice = signed(&account).await;
    correct(&account, &invoice, &[("lines.0.unit_price", "70")]).await;
    assert_shows(&account.page("/invoices").await, &["title=\"Overdue\""]);
    let part = [
        ("payment_status", "partial"),
        ("amount", "70"),
        ("remark", "By bank"),
    ];
    account
        .post(&format!("/invoices/{}/payment", invoice["id"]), &part)
        .await
        .expect(303);
    let list = account.page("/invoices").await;
    assert!(!list.contains("title=\"Overdue\""), "{list}");
    let overdue = account.page("/invoices?overdue=true").await;
    let number = invoice["invoice_no"].as_str().unwrap();
    assert!(!overdue.contains(number), "{overdue}");
}
