//! `?calculate=true` on Create Invoice (Full).

use serde_json::{Value, json};
use testkit::documents::full_invoice;
use testkit::edit::{exact, with, without};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const CREATE: &str = "/v1/tax-payers/invoices/full?calculate=true";

fn bare(invoice: &Value) -> Value {
    let bare = without(invoice, "legal_monetary_total");
    let bare = without(&bare, "invoice_line.0.line_extension_amount");
    without(&bare, "invoice_line.0.total_tax")
}

#[each_database]
async fn an_invoice_without_amounts_is_stored_with_them(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = bare(&full_invoice(&taxpayer));
    let plain = taxpayer.create_full(&body).await;
    plain.expect_faults(&[
        "invoice_line.0.line_extension_amount",
        "invoice_line.0.total_tax",
        "legal_monetary_total",
    ]);
    let made = taxpayer
        .send("POST", CREATE, &body)
        .await
        .expect_status(201);
    let found = &made.body["calculated"];
    assert_eq!(
        found["legal_monetary_total"]["payable_amount"],
        exact("1075.00")
    );
    assert_eq!(found["invoice_line"][0]["total_tax"], exact("75.00"));
    assert_eq!(made.warnings(), "");
    let whole = taxpayer.invoice_with_ledger(made.data()).await;
    assert_eq!(whole["ledger"]["payable_amount"], exact("1075.00"));
    // The same again is a duplicate with the same content.
    let again = taxpayer
        .send("POST", CREATE, &body)
        .await
        .expect_status(200);
    assert_eq!(again.header("x-duplicate"), "identical");
    assert_eq!(again.body["calculated"], made.body["calculated"]);
    // Without the word nothing is computed and nothing is told.
    let plain = taxpayer.create_full(&full_invoice(&taxpayer)).await;
    assert_eq!(plain.expect_status(201).body.get("calculated"), None);
}

#[on_sqlite]
async fn a_payable_below_zero_is_refused_and_one_that_was_not_sent_is_not_told_as_sent(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let allowed = |amount: u32| {
        let charge = json!([{ "charge_indicator": false, "amount": amount }]);
        with(&full_invoice(&taxpayer), "allowance_charge", charge)
    };
    let answer = taxpayer.send("POST", CREATE, &bare(&allowed(2_000))).await;
    let answer = answer.expect_status(422);
    assert_eq!(
        answer.faulty_paths(),
        ["legal_monetary_total.payable_amount"]
    );
    let text = answer.body.to_string();
    assert!(text.contains("-925.00 = 1,075.00 - 2,000.00"), "{text}");
    let made = taxpayer.send("POST", CREATE, &bare(&allowed(75))).await;
    assert_eq!(made.expect_status(201).warnings(), "");
    let totals = json!({ "payable_amount": 1_000 });
    let stated = with(&bare(&allowed(75)), "legal_monetary_total", totals);
    let made = taxpayer.send("POST", CREATE, &stated).await;
    assert_eq!(made.expect_status(201).warnings(), "");
    // Nothing is calculated, so the payable is stored as sent: the allowance is not taken off.
    let made = taxpayer.create_full(&allowed(75)).await;
    let warnings = made.expect_status(201).warnings();
    let told = "payable_amount is 1075, but tax_inclusive_amount is 1075";
    assert!(warnings.contains(told), "{warnings}");
}

#[on_sqlite]
async fn a_tax_total_that_says_the_category_alone_is_computed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let part = json!({ "tax_category": { "id": "STANDARD_VAT", "percent": exact("7.5") } });
    let total = json!([{ "tax_subtotal": [part] }]);
    let body = with(&bare(&full_invoice(&taxpayer)), "tax_total", total);
    let made = taxpayer
        .send("POST", CREATE, &body)
        .await
        .expect_status(201);
    let found = &made.body["calculated"]["tax_total"][0];
    assert_eq!(found["tax_amount"], exact("75.00"));
    assert_eq!(found["tax_subtotal"][0]["taxable_amount"], exact("1000.00"));
    assert_eq!(made.warnings(), "");
}

#[on_sqlite]
async fn an_amount_that_is_off_is_refused_with_its_sum(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(
        &full_invoice(&taxpayer),
        "invoice_line.0.line_extension_amount",
        json!(900),
    );
    let answer = taxpayer.send("POST", CREATE, &body).await;
    let answer = answer.expect_status(422);
    let text = answer.body.to_string();
    assert!(text.contains("900.00 ≠ 2 × 500.00"), "{text}");
}

#[on_sqlite]
async fn a_percent_that_is_not_that_of_the_line_is_refused_with_both(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = bare(&full_invoice(&taxpayer));
    for (percent, is_refused) in [("5", true), ("7.50", false)] {
        let part = json!({ "tax_category": { "id": "STANDARD_VAT", "percent": exact(percent) } });
        let total = json!([{ "tax_subtotal": [part] }]);
        let answer = taxpayer
            .send("POST", CREATE, &with(&body, "tax_total", total))
            .await;
        if is_refused {
            let path = "tax_total.0.tax_subtotal.0.tax_category.percent";
            let answer = answer.expect_faults(&[path]);
            let said = answer.message();
            assert!(
                said.contains("5 ≠ 7.5, the percent of STANDARD_VAT"),
                "{said}"
            );
        } else {
            assert_eq!(answer.expect_status(201).warnings(), "");
        }
    }
}

#[on_sqlite]
async fn a_price_with_tax_that_is_no_amount_is_the_only_fault(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = bare(&full_invoice(&taxpayer));
    let body = without(&body, "invoice_line.0.price.price_amount");
    let path = "invoice_line.0.price.price_amount_with_tax";
    for (price, words) in [
        (json!("107.50"), "must be a number"),
        (exact("1.1234567"), "more than 6 digits"),
        (json!(-1), "must be at least 0"),
    ] {
        let answer = taxpayer
            .send("POST", CREATE, &with(&body, path, price))
            .await;
        let answer = answer.expect_faults(&[path]);
        let said = answer.message();
        assert!(said.contains(words), "{said}");
    }
    let body = with(&body, path, json!(100));
    let body = with(&body, "invoice_line.0.discount_rate", json!(101));
    let answer = taxpayer.send("POST", CREATE, &body).await;
    answer.expect_faults(&["invoice_line.0.discount_rate"]);
}

#[on_sqlite]
async fn all_faults_are_still_told_at_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = without(&bare(&full_invoice(&taxpayer)), "invoice_line.0.price");
    let body = with(&body, "invoice_category", json!("B2X"));
    let answer = taxpayer.send("POST", CREATE, &body).await;
    let answer = answer.expect_status(422);
    let paths = answer.faulty_paths();
    assert!(paths.contains(&"invoice_category"), "{paths:?}");
    assert!(
        paths
            .iter()
            .all(|path| !path.starts_with("legal_monetary_total")),
        "{paths:?}"
    );
}
