//! Numbers keep their digits, and the payable is computed from the lines.

use serde_json::json;
use testkit::documents;
use testkit::each_database;
use testkit::edit::{exact, with};
use testkit::roles::{INVOICES, Taxpayer};

use crate::support::world::World;

/// Whether an approved invoice of this body comes to exactly this.
async fn assert_payable(taxpayer: &Taxpayer, body: &serde_json::Value, payable: &str, above: &str) {
    let invoice = taxpayer.invoice(body).await;
    taxpayer.set_status(&invoice, "approved").await.expect_status(200);
    let part = |amount: &str| {
        json!({
            "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial",
            "amount": exact(amount), "remark": "in full",
        })
    };
    taxpayer.pay(&part(above)).await.expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    taxpayer.pay(&part(payable)).await.expect_status(200);
}

#[each_database]
async fn amounts_read_back_digit_by_digit(world: &World) {
    let taxpayer = world.taxpayer().await;
    for digits in ["0.1", "0.01", "123456789012345.678", "123456789012345.678901", "0.000001"] {
        let body = with(&documents::invoice(), "invoice_lines.0.unit_price", exact(digits));
        let body = with(&body, "invoice_lines.0.quantity", exact("1"));
        let invoice = taxpayer.invoice(&body).await;
        assert_eq!(invoice["invoice_lines"][0]["unit_price"].to_string(), digits);
        assert_eq!(taxpayer.reread(&invoice).await, invoice);
    }
}

#[each_database]
async fn a_tenth_and_two_tenths_make_exactly_three(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice_over("0.1", "1");
    let first = body["invoice_lines"][0].clone();
    let second = with(&first, "unit_price", exact("0.2"));
    let body = with(&body, "invoice_lines", json!([first, second]));
    assert_payable(&taxpayer, &body, "0.30", "0.31").await;
}

#[each_database]
async fn the_payable_is_the_lines_less_discounts_plus_tax(world: &World) {
    let taxpayer = world.taxpayer().await;
    assert_payable(&taxpayer, &documents::invoice(), "1075", "1075.01").await;
    let body = with(&documents::invoice(), "invoice_lines.0.discount_rate", json!(10));
    let body = with(&body, "invoice_lines.0.discount_amount", json!(100));
    assert_payable(&taxpayer, &body, "860", "860.01").await;
    assert_payable(&taxpayer, &documents::invoice_over("0.005", "1"), "0.01", "0.02").await;
}

#[each_database]
async fn a_discount_above_the_line_makes_it_free_and_not_negative(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice_over("10", "1");
    let free = with(&body["invoice_lines"][0], "discount_amount", json!(25));
    let body = with(&body, "invoice_lines", json!([body["invoice_lines"][0], free]));
    assert_payable(&taxpayer, &body, "10", "10.01").await;
}

#[each_database]
async fn a_number_that_cannot_be_kept_exactly_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let forty = "1234567890123456789012345678901234567890";
    for path in ["invoice_lines.0.unit_price", "invoice_lines.0.quantity", "invoice_lines.0.discount_amount"]
    {
        for digits in ["1e400", "-1e400", "1e-400", forty, "0.1234567890123456789012345678901234567890"] {
            let body = with(&documents::invoice(), path, exact(digits));
            let answer = taxpayer.create_invoice(&body).await;
            assert_eq!(answer.faulty_paths(), [path], "{digits}: {}", answer.text);
            answer.expect_faults(&[path]);
        }
    }
}

#[each_database]
async fn a_number_written_as_text_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in ["invoice_lines.0.unit_price", "invoice_lines.0.quantity", "invoice_lines.0.discount_rate"] {
        let body = with(&documents::invoice(), path, json!("12"));
        taxpayer.create_invoice(&body).await.expect_faults(&[path]);
    }
}

#[each_database]
async fn words_that_are_no_json_numbers_are_no_json(world: &World) {
    let taxpayer = world.taxpayer().await;
    for word in ["NaN", "Infinity", "0x10", "1.", ".5", "+1", "01"] {
        let text =
            documents::invoice().to_string().replace("\"quantity\":2", &format!("\"quantity\":{word}"));
        assert!(text.contains(word));
        let answer = taxpayer.send_text("POST", INVOICES, text).await;
        answer.expect_refusal(400, "MALFORMED_JSON");
    }
}

#[each_database]
async fn a_total_that_cannot_be_kept_exactly_is_refused(world: &World) {
    let body = documents::invoice_over("123456789012345.678901", "999999999999999999");
    let answer = world.taxpayer().await.create_invoice(&body).await;
    answer.expect_refusal(422, "VALIDATION_FAILED");
}

#[each_database]
async fn an_invoice_may_have_many_lines(world: &World) {
    let body = documents::invoice_over("0.01", "1");
    let lines = vec![body["invoice_lines"][0].clone(); 1_000];
    let invoice = world.taxpayer().await.invoice(&with(&body, "invoice_lines", json!(lines))).await;
    assert_eq!(invoice["invoice_lines"].as_array().unwrap().len(), 1_000);
}
