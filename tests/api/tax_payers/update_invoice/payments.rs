//! The payable is computed again, and what was paid stays paid.

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::{exact, with};
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

/// An approved invoice of 1,075.00 of which this was paid.
async fn partly_paid(taxpayer: &Taxpayer, amount: &str) -> Value {
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    taxpayer
        .pay(&part(&invoice, amount))
        .await
        .expect_status(200);
    invoice
}

fn part(invoice: &Value, amount: &str) -> Value {
    json!({
        "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial",
        "amount": exact(amount), "remark": "by transfer",
    })
}

/// An update to a payable of this, without tax.
fn coming_to(invoice: &Value, amount: &str) -> Value {
    let body = with(
        &documents::update(invoice),
        "lines.0.unit_price",
        exact(amount),
    );
    with(&body, "lines.0.tax_category", json!("ZERO_VAT"))
}

#[each_database]
async fn the_payable_follows_from_the_new_lines(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(
        &documents::update(&invoice),
        "lines.0.quantity",
        exact("1.5"),
    );
    let body = with(&body, "lines.0.discount_rate", json!(10));
    let body = with(&body, "lines.0.discount_amount", json!(20));
    taxpayer.update(&body).await.expect_status(200);
    // 1.5 × 200 − 30 − 20 = 250, and 7.5 percent of it.
    assert_eq!(
        taxpayer.invoice_with_ledger(&invoice).await["ledger"]["payable_amount"].to_string(),
        "268.75"
    );
}

#[each_database]
async fn a_payable_below_what_was_paid_is_refused_and_nothing_changes(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = partly_paid(&taxpayer, "500").await;
    let before = taxpayer.invoice_with_ledger(&invoice).await;
    let answer = taxpayer.update(&coming_to(&invoice, "499.99")).await;
    let answer = answer.expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    assert_eq!(answer.faulty_paths(), ["lines"]);
    assert_eq!(taxpayer.invoice_with_ledger(&invoice).await, before);
    let after = taxpayer
        .update(&coming_to(&invoice, "500"))
        .await
        .expect_status(200);
    assert_eq!(
        (&after.data()["payment_status"], &after.data()["status"]),
        (&json!("PARTIAL"), &json!("approved"))
    );
    taxpayer
        .pay(&part(&invoice, "0.01"))
        .await
        .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
}

#[each_database]
async fn a_payable_above_what_was_paid_leaves_the_rest_to_pay(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = partly_paid(&taxpayer, "500").await;
    taxpayer
        .update(&coming_to(&invoice, "2000"))
        .await
        .expect_status(200);
    taxpayer
        .pay(&part(&invoice, "1500.01"))
        .await
        .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    taxpayer
        .pay(&part(&invoice, "1500"))
        .await
        .expect_status(200);
    let ledger = &taxpayer.invoice_with_ledger(&invoice).await["ledger"];
    assert_eq!(
        (
            &ledger["amount_paid"],
            ledger["entries"].as_array().unwrap().len()
        ),
        (&json!(2000), 2)
    );
}

#[each_database]
async fn an_invoice_declared_paid_that_comes_to_more_is_paid_in_part(world: &World) {
    let taxpayer = world.taxpayer().await;
    let paid = with(
        &documents::full_invoice(&taxpayer),
        "payment_status",
        json!("PAID"),
    );
    let invoice = taxpayer.new_full_invoice(&paid).await;
    taxpayer
        .update(&coming_to(&invoice, "1074.99"))
        .await
        .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    let same = taxpayer
        .update(&coming_to(&invoice, "1075"))
        .await
        .expect_status(200);
    assert_eq!(same.data()["payment_status"], json!("PAID"));
    let more = taxpayer
        .update(&coming_to(&invoice, "1100"))
        .await
        .expect_status(200);
    assert_eq!(more.data()["payment_status"], json!("PARTIAL"));
    assert_eq!(
        taxpayer.invoice_event_names().await,
        ["invoice.created", "invoice.updated", "invoice.updated"]
    );
}

/// A full invoice of 1,075.00 with an allowance of 100, due on 15 February, and with this date in its means of payment.
fn with_allowance(taxpayer: &Taxpayer, payment_due_date: &str) -> Value {
    let allowance = json!([{ "charge_indicator": false, "amount": 100 }]);
    let means = json!([{ "payment_means_code": "30", "payment_due_date": payment_due_date }]);
    let body = documents::full_invoice(taxpayer);
    let body = with(&body, "allowance_charge", allowance);
    let body = with(&body, "payment_means", means);
    with(&body, "legal_monetary_total.payable_amount", json!(975))
}

#[on_sqlite]
async fn an_allowance_of_the_document_stays_in_the_payable(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with_allowance(&taxpayer, "2026-02-15");
    let invoice = taxpayer.new_full_invoice(&body).await;
    // 200 and 7.5 percent of it, less 100.
    let updated = taxpayer.update(&documents::update(&invoice)).await;
    assert_eq!(updated.expect_status(200).warnings(), "");
    let whole = taxpayer.invoice_with_ledger(&invoice).await;
    assert_eq!(whole["ledger"]["payable_amount"].to_string(), "115.00");
    let alone = json!({ "irn": invoice["irn"] });
    let submitted = taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    let irn = invoice["irn"].as_str().unwrap();
    let signed = taxpayer.app().download(irn).await.expect_status(200);
    for (path, expected) in [
        ("/legal_monetary_total/tax_inclusive_amount", 215.0),
        ("/legal_monetary_total/payable_amount", 115.0),
        ("/tax_total/0/tax_amount", 15.0),
        ("/allowance_charge/0/amount", 100.0),
    ] {
        let found = signed.data().pointer(path).and_then(Value::as_f64);
        assert_eq!(
            found.map(Value::from),
            Some(Value::from(expected)),
            "{path}"
        );
    }
    assert_eq!(
        signed.data()["payment_means"][0]["payment_due_date"],
        "2026-03-15"
    );
}

#[on_sqlite]
async fn an_allowance_above_the_lines_and_another_due_date_are_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer
        .new_full_invoice(&with_allowance(&taxpayer, "2026-02-20"))
        .await;
    let refused = taxpayer.update(&coming_to(&invoice, "99.99")).await;
    assert_eq!(refused.expect_status(422).faulty_paths(), ["lines"]);
    let updated = taxpayer.update(&coming_to(&invoice, "100")).await;
    let warnings = updated.expect_status(200).warnings();
    assert!(
        warnings.contains("payment_due_date 2026-02-20"),
        "{warnings}"
    );
}
