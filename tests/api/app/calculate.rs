//! `?calculate=true` on Validate and Submit.

use serde_json::{Value, json};
use testkit::documents::{self, submission};
use testkit::edit::{exact, with, without};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

const SUBMIT: &str = "/v1/app/invoices/submit?calculate=true";
const VALIDATE: &str = "/v1/app/invoices/validate?calculate=true";

/// Leaves out what is computed, and says which tax the line has.
fn bare(document: &Value) -> Value {
    let bare = without(document, "legal_monetary_total");
    let bare = if bare.get("tax_total").is_some() {
        without(&bare, "tax_total")
    } else {
        bare
    };
    let bare = without(&bare, "invoice_line.0.line_extension_amount");
    with(&bare, "invoice_line.0.tax_category", json!("STANDARD_VAT"))
}

#[each_database]
async fn amounts_that_are_left_out_are_computed_and_signed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let no = documents::invoice_no();
    let body = bare(&submission(&taxpayer, &no));
    taxpayer.app().submit(&body).await.expect_faults(&[
        "invoice_line.0.line_extension_amount",
        "legal_monetary_total",
    ]);
    let validated = bare(&documents::validation(&taxpayer, &documents::invoice_no()));
    let answer = taxpayer.send("POST", VALIDATE, &validated).await;
    let answer = answer.expect_status(200);
    assert_eq!(
        answer.body["calculated"]["legal_monetary_total"]["payable_amount"],
        exact("1075.00")
    );
    let answer = taxpayer
        .send("POST", SUBMIT, &body)
        .await
        .expect_status(200);
    let totals = json!({
        "line_extension_amount": exact("1000.00"), "tax_exclusive_amount": exact("1000.00"),
        "tax_inclusive_amount": exact("1075.00"), "payable_amount": exact("1075.00"),
    });
    assert_eq!(answer.body["calculated"]["legal_monetary_total"], totals);
    assert_eq!(answer.body["calculated"]["roundings"], json!([]));
    assert_eq!(answer.body["data"], "Invoice submitted successfully");
    let irn = documents::irn(&taxpayer, &no);
    let signed = taxpayer.app().download(&irn).await.expect_status(200);
    assert_eq!(signed.data()["legal_monetary_total"], totals);
    // The same call again joins the run.
    taxpayer
        .send("POST", SUBMIT, &body)
        .await
        .expect_status(200);
}

#[on_sqlite]
async fn each_rounding_of_a_price_with_tax_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = bare(&submission(&taxpayer, &documents::invoice_no()));
    let body = without(&body, "invoice_line.0.price.price_amount");
    let body = with(
        &body,
        "invoice_line.0.price.price_amount_with_tax",
        json!(1000),
    );
    let answer = taxpayer
        .send("POST", SUBMIT, &body)
        .await
        .expect_status(200);
    let found = &answer.body["calculated"];
    assert_eq!(
        found["legal_monetary_total"]["payable_amount"],
        exact("2000.00")
    );
    assert_eq!(
        found["invoice_line"][0]["line_extension_amount"],
        exact("1860.47")
    );
    assert_eq!(
        found["roundings"][0]["path"],
        "invoice_line.0.line_extension_amount"
    );
    assert!(
        found["roundings"][0]["exact"]
            .as_str()
            .unwrap()
            .starts_with("1860.465116")
    );
}

#[on_sqlite]
async fn a_tax_total_that_says_the_category_alone_is_computed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let part = json!({ "tax_category": { "id": "STANDARD_VAT", "percent": exact("7.5") } });
    let total = json!([{ "tax_subtotal": [part] }]);
    let submitted = bare(&submission(&taxpayer, &documents::invoice_no()));
    let validated = bare(&documents::validation(&taxpayer, &documents::invoice_no()));
    for (path, body) in [(SUBMIT, submitted), (VALIDATE, validated)] {
        let body = with(&body, "tax_total", total.clone());
        let answer = taxpayer.send("POST", path, &body).await.expect_status(200);
        let found = &answer.body["calculated"]["tax_total"][0];
        assert_eq!(found["tax_amount"], exact("75.00"), "{path}");
        let part = &found["tax_subtotal"][0];
        assert_eq!(part["taxable_amount"], exact("1000.00"), "{path}");
        assert_eq!(part["tax_amount"], exact("75.00"), "{path}");
    }
}

#[on_sqlite]
async fn a_stated_amount_with_more_digits_than_the_currency_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (amount, is_told) in [("1000.009", true), ("1000.00", false)] {
        let submitted = bare(&submission(&taxpayer, &documents::invoice_no()));
        let validated = bare(&documents::validation(&taxpayer, &documents::invoice_no()));
        for (path, body) in [(SUBMIT, submitted), (VALIDATE, validated)] {
            let stated = exact(amount);
            let body = with(&body, "invoice_line.0.line_extension_amount", stated);
            let answer = taxpayer.send("POST", path, &body).await.expect_status(200);
            let warnings = answer.warnings();
            let words = "more digits after the point than NGN has (2)";
            assert_eq!(warnings.contains(words), is_told, "{path}: {warnings}");
        }
    }
}

#[on_sqlite]
async fn a_sum_that_is_off_says_which(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = submission(&taxpayer, &documents::invoice_no());
    let body = with(&body, "invoice_line.0.tax_category", json!("STANDARD_VAT"));
    let body = with(
        &body,
        "legal_monetary_total.tax_inclusive_amount",
        json!(1057),
    );
    let body = with(&body, "legal_monetary_total.payable_amount", json!(1057));
    let answer = taxpayer.send("POST", SUBMIT, &body).await;
    let answer = answer.expect_faults(&["legal_monetary_total.tax_inclusive_amount"]);
    assert!(
        answer.message().contains("1,057.00 ≠ 1,000.00 + 75.00"),
        "{}",
        answer.message()
    );
    let answer = taxpayer.send("POST", VALIDATE, &body).await;
    answer.expect_status(400);
}

#[on_sqlite]
async fn what_cannot_be_computed_is_named_and_nothing_else(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = bare(&submission(&taxpayer, &documents::invoice_no()));
    for (path, broken) in [
        (
            "invoice_line.0.tax_category",
            without(&body, "invoice_line.0.tax_category"),
        ),
        (
            "invoice_line.0.tax_category",
            with(&body, "invoice_line.0.tax_category", json!("ODD")),
        ),
        (
            "invoice_line.0.invoiced_quantity",
            without(&body, "invoice_line.0.invoiced_quantity"),
        ),
    ] {
        taxpayer
            .send("POST", SUBMIT, &broken)
            .await
            .expect_faults(&[path]);
    }
    let odd = "/v1/app/invoices/submit?calculate=perhaps";
    taxpayer
        .send("POST", odd, &body)
        .await
        .expect_faults(&["calculate"]);
}
