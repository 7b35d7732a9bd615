//! Who owes what: the list, the ledger, the summary and the pages of an account give one answer.

use rust_decimal::Decimal;
use serde_json::{Value, json};
use testkit::documents::{invoice, submission};
use testkit::edit::with;
use testkit::{each_database, on_sqlite};

use super::{Account, assert_shows, post_seen};
use crate::support::world::World;

/// Stores an invoice over this number of laptops, of 537.50 each, that was due long ago.
async fn approved(account: &Account, quantity: u32) -> Value {
    let body = with(&invoice(), "invoice_lines.0.quantity", json!(quantity));
    let body = with(&body, "due_date", json!("2026-02-01"));
    let stored = account.taxpayer.invoice(&body).await;
    let approved = account.taxpayer.set_status(&stored, "approved").await;
    approved.expect_status(200);
    stored
}

/// Lets the authority sign a document over two laptops, 1,075.00, under the number of the invoice.
async fn sign_over_two(account: &Account, stored: &Value) {
    let number = stored["invoice_no"].as_str().unwrap();
    let document = submission(&account.taxpayer, number);
    let signed = account.taxpayer.app().submit_to_the_end(&document).await;
    signed.expect_status(200);
}

fn payment(stored: &Value, status: &str) -> Value {
    json!({
        "unique_no": stored["irn"], "unique_no_type": "IRN", "payment_status": status, "remark": "by bank",
    })
}

async fn overdue_ids(account: &Account) -> Vec<Value> {
    let listed = account.taxpayer.list_invoices("?overdue=true").await;
    let listed = listed.expect_status(200);
    let rows = listed.data()["data"].as_array().unwrap().iter();
    rows.map(|row| row["id"].clone()).collect()
}

fn decimal(value: &Value) -> Decimal {
    value.to_string().parse().unwrap()
}

#[each_database]
async fn the_signed_payable_is_to_be_paid(world: &World) {
    let account = Account::new(world).await;
    // The quantity of the stored invoice, what is paid of it, and what is then left of the signed 1,075.00.
    for (quantity, part, left) in [
        (3, 500, "575.00"),
        (3, 1_075, "0.00"),
        (1, 537, "538.00"),
        (2, 75, "1,000.00"),
    ] {
        let stored = approved(&account, quantity).await;
        sign_over_two(&account, &stored).await;
        let paid = with(&payment(&stored, "partial"), "amount", json!(part));
        account.taxpayer.pay(&paid).await.expect_status(200);
        let is_left = left != "0.00";
        let overdue = overdue_ids(&account).await;
        assert_eq!(
            overdue.contains(&stored["id"]),
            is_left,
            "{quantity} {part}"
        );
        let page = account.page(&format!("/invoices/{}", stored["id"])).await;
        assert_shows(&page, &[&format!("left to pay {left}")]);
        assert_shows(&page, &["<p class=\"figure\">NGN 1,075.00</p>"]);
        let is_other = page.contains("<dt>Payable as signed</dt><dd>NGN 1,075.00</dd>");
        assert_eq!(is_other, quantity != 2, "{quantity} {page}");
        assert_eq!(page.contains(">Overdue<"), is_left, "{quantity} {part}");
        let list = account.page("/invoices").await;
        assert_eq!(
            list.contains("title=\"Overdue\""),
            is_left,
            "{quantity} {part}"
        );
        let owed = if is_left {
            left
        } else {
            "Nobody owes anything."
        };
        assert_shows(&account.page("/customers").await, &[owed]);
        let paid = account.taxpayer.pay(&payment(&stored, "paid")).await;
        paid.expect_status(200);
        let whole = account.taxpayer.invoice_with_ledger(&stored).await;
        assert_eq!(whole["payment_status"], "PAID");
        for name in ["payable_amount", "amount_paid"] {
            let amount = decimal(&whole["ledger"][name]);
            assert_eq!(amount, Decimal::from(1_075), "{name} {quantity} {part}");
        }
    }
}

#[each_database]
async fn an_invoice_that_was_paid_before_its_signature_keeps_what_was_paid(world: &World) {
    let account = Account::new(world).await;
    for (quantity, status, words) in [
        (3, "PAID", "to be paid back 537.50"),
        (2, "PAID", "left to pay 0.00"),
        (1, "PARTIAL", "left to pay 537.50"),
    ] {
        let stored = approved(&account, quantity).await;
        let paid = account.taxpayer.pay(&payment(&stored, "paid")).await;
        paid.expect_status(200);
        sign_over_two(&account, &stored).await;
        let signed = account.taxpayer.reread(&stored).await;
        assert_eq!(signed["payment_status"], status, "{quantity}");
        let page = account.page(&format!("/invoices/{}", stored["id"])).await;
        assert_shows(&page, &[words]);
        let overdue = overdue_ids(&account).await;
        let is_left = status == "PARTIAL";
        assert_eq!(overdue.contains(&stored["id"]), is_left, "{quantity}");
        assert_eq!(page.contains("Signed over NGN 1075"), is_left, "{page}");
        let number = stored["invoice_no"].as_str().unwrap();
        let list = account.page(&format!("/invoices?q={number}")).await;
        let is_refund = quantity == 3;
        assert_eq!(list.contains(">Refund due<"), is_refund, "{list}");
        assert_eq!(
            list.contains("signed amount\">NGN 537.50<"),
            is_refund,
            "{list}"
        );
    }
}

#[each_database]
async fn only_sales_are_owed_and_taxed(world: &World) {
    let account = Account::new(world).await;
    let mut sale = Value::Null;
    for code in ["381", "385", "394", "393", "390", "400"] {
        let body = with(&invoice(), "invoice_type_code", json!(code));
        let body = with(&body, "due_date", json!("2026-02-01"));
        let stored = account.taxpayer.invoice(&body).await;
        let approved = account.taxpayer.set_status(&stored, "approved").await;
        approved.expect_status(200);
        if code == "381" {
            sale = stored["id"].clone();
        }
    }
    assert_eq!(overdue_ids(&account).await, [sale]);
    let list = account.page("/invoices").await;
    assert_eq!(list.matches("title=\"Overdue\"").count(), 1, "{list}");
    assert_shows(&list, &["NGN 1,075.00, of which paid 0.00"]);
    let customers = account.page("/customers").await;
    assert_shows(&customers, &["Of it overdue: 1,075.00"]);
    let summary = account
        .taxpayer
        .get("/v1/tax-payers/invoices/summary?month=2026-01");
    let summary = summary.await.expect_status(200);
    let sums = summary.data()["sums"].as_array().unwrap().iter();
    let sums: Vec<_> = sums
        .map(|sum| format!("{} {}", sum["kind"].as_str().unwrap(), sum["count"]))
        .collect();
    let expected = [
        "invoice 1",
        "self_billed 2",
        "self_billed_credit_note 1",
        "other 2",
    ];
    assert_eq!(sums, expected);
    let report = account.page("/reports?month=2026-01").await;
    let total = report.split("Sales in NGN, not signed yet").nth(1).unwrap();
    let total = total.split("</tr>").next().unwrap();
    assert!(total.contains("data-label=\"VAT\">75.00</td>"), "{total}");
    assert!(total.contains("data-label=\"Count\">1</td>"), "{total}");
}

#[each_database]
async fn a_type_that_an_update_changes_counts_from_then_on(world: &World) {
    let account = Account::new(world).await;
    let stored = approved(&account, 2).await;
    for (code, is_overdue) in [("390", false), ("381", true)] {
        let update = testkit::documents::update(&stored);
        let update = with(&update, "invoice_type", json!(code));
        let update = with(&update, "due_date", json!("2026-02-01"));
        account.taxpayer.update(&update).await.expect_status(200);
        let is_listed = overdue_ids(&account).await.contains(&stored["id"]);
        assert_eq!(is_listed, is_overdue, "{code}");
    }
}

/// Stores a credit note over this number of laptops that names its invoice by this reference, and has it signed.
async fn sign_credit_note(account: &Account, reference: (&str, &Value), quantity: u32) {
    let (kind, text) = reference;
    let body = with(&invoice(), "invoice_lines.0.quantity", json!(quantity));
    let body = with(&body, "invoice_type_code", json!("380"));
    let body = with(&body, "original_invoice_reference_type", json!(kind));
    let reference = text
        .as_str()
        .map_or_else(|| text.to_string(), str::to_owned);
    let body = with(&body, "original_invoice_reference", json!(reference));
    let stored = account.taxpayer.invoice(&body).await;
    let approved = account.taxpayer.set_status(&stored, "approved").await;
    approved.expect_status(200);
    let irn = json!({ "irn": stored["irn"] });
    let signed = account.taxpayer.app().submit_to_the_end(&irn).await;
    signed.expect_status(200);
}

#[each_database]
async fn a_credit_note_counts_by_whichever_reference_it_names_its_invoice(world: &World) {
    let account = Account::new(world).await;
    // Half of the first two invoices is credited, and all of the others; so 1,075.00 is overdue in the end.
    for (kind, field, quantity, is_owed) in [
        ("IRN", "irn", 1, true),
        ("INTERNAL_INVOICE_NO", "invoice_no", 1, true),
        ("IRN", "irn", 2, false),
        ("INTERNAL_INVOICE_NO", "invoice_no", 2, false),
        ("EXTERNAL_INVOICE_NO", "invoice_no", 2, false),
        ("PORTAL_ID", "id", 2, false),
    ] {
        let before = overdue_ids(&account).await;
        let customers = account.page("/customers").await;
        let stored = approved(&account, 2).await;
        sign_credit_note(&account, (kind, &stored[field]), quantity).await;
        let overdue = overdue_ids(&account).await;
        assert_eq!(overdue.contains(&stored["id"]), is_owed, "{kind}");
        assert_eq!(overdue.len(), before.len() + usize::from(is_owed), "{kind}");
        if !is_owed {
            assert_shows(&customers, &["Of it overdue: 1,075.00"]);
            let customers = account.page("/customers").await;
            assert_shows(&customers, &["Of it overdue: 1,075.00"]);
        }
    }
}

#[on_sqlite]
async fn a_signed_credit_note_of_an_unsigned_invoice_counts_on_its_page(world: &World) {
    let account = Account::new(world).await;
    for (quantity, left) in [(1, "537.50"), (2, "0.00")] {
        let stored = approved(&account, 2).await;
        sign_credit_note(&account, ("IRN", &stored["irn"]), quantity).await;
        let page = account.page(&format!("/invoices/{}", stored["id"])).await;
        assert_shows(&page, &[&format!("left to pay {left}")]);
        let is_left = left != "0.00";
        let overdue = overdue_ids(&account).await;
        assert_eq!(overdue.contains(&stored["id"]), is_left, "{quantity}");
        assert_eq!(page.contains(">Overdue<"), is_left, "{quantity}");
    }
}

#[on_sqlite]
async fn a_part_above_what_credit_notes_leave_is_told_on_the_page(world: &World) {
    let account = Account::new(world).await;
    let stored = approved(&account, 2).await;
    sign_credit_note(&account, ("IRN", &stored["irn"]), 1).await;
    let path = format!("/invoices/{}", stored["id"]);
    for (amount, is_above) in [("500", false), ("100", true)] {
        let fields = [
            ("payment_status", "partial"),
            ("amount", amount),
            ("remark", "By bank"),
        ];
        let sent = account.post(&format!("{path}/payment"), &fields).await;
        sent.expect(303);
        let page = account.page(&path).await;
        assert_shows(&page, &["The payment was recorded."]);
        let told = "Note: the signed credit notes left NGN 37.50 of this invoice to pay";
        assert_eq!(page.contains(told), is_above, "{amount} {page}");
    }
}

#[each_database]
async fn a_payment_that_is_taken_back_is_owed_again(world: &World) {
    let account = Account::new(world).await;
    // The quantity that a signed credit note takes off, and what is then recorded as paid and taken back of 1,075.00.
    for (credited, recorded) in [(0, "1,075.00"), (1, "537.50")] {
        let stored = approved(&account, 2).await;
        if credited > 0 {
            sign_over_two(&account, &stored).await;
            sign_credit_note(&account, ("IRN", &stored["irn"]), credited).await;
        }
        let path = format!("/invoices/{}", stored["id"]);
        let page = account.page(&path).await;
        assert!(!page.contains("Take a payment back"), "{page}");
        for (status, notice) in [
            ("paid", "The payment was recorded."),
            ("pending", "The payment status was changed."),
        ] {
            let fields = [("payment_status", status), ("remark", "by bank")];
            let sent = account.post(&format!("{path}/payment"), &fields).await;
            sent.expect(303);
            assert_shows(&account.page(&path).await, &[notice]);
        }
        let page = account.page(&path).await;
        assert_shows(
            &page,
            &[&format!("NGN {recorded} stays recorded as received")],
        );
        assert_shows(&page, &["left to pay 0.00", "Take a payment back"]);
        assert_shows(&page, &[&format!("name=\"amount\" value=\"{recorded}\"")]);
        assert!(!overdue_ids(&account).await.contains(&stored["id"]));
        let too_much = [("amount", "1,075.01"), ("remark", "of another one")];
        let refused = post_seen(&account, &path, "payment/take-back", &too_much).await;
        refused.expect(422).shows("that was recorded as paid.");
        let fields = [("amount", recorded), ("remark", "of another one")];
        let sent = post_seen(&account, &path, "payment/take-back", &fields).await;
        sent.expect(303);
        let page = account.page(&path).await;
        assert_shows(&page, &["The payment was taken back.", ">Overdue<"]);
        assert_shows(&page, &[&format!("-{recorded}"), "Taken back"]);
        assert_shows(&page, &[&format!("left to pay {recorded}")]);
        assert!(!page.contains("Take a payment back"), "{page}");
        assert!(overdue_ids(&account).await.contains(&stored["id"]));
        let customers = account.page("/customers").await;
        assert_shows(&customers, &[&format!("Of it overdue: {recorded}")]);
        let paid = account.taxpayer.pay(&payment(&stored, "paid")).await;
        paid.expect_status(200);
    }
}
