//! Numbers keep their digits, and the payable is computed from the lines.

use serde_json::json;
use testkit::documents;
use testkit::edit::{exact, with};
use testkit::roles::Taxpayer;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

/// Whether an approved invoice of this body comes to exactly this.
async fn assert_payable(taxpayer: &Taxpayer, body: &serde_json::Value, payable: &str, above: &str) {
    let invoice = taxpayer.invoice(body).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let part = |amount: &str| {
        json!({
            "unique_no": invoice["irn"], "unique_no_type": "IRN", "payment_status": "partial",
            "amount": exact(amount), "remark": "in full",
        })
    };
    taxpayer
        .pay(&part(above))
        .await
        .expect_refusal(422, "PAYMENT_EXCEEDS_PAYABLE");
    taxpayer.pay(&part(payable)).await.expect_status(200);
}

#[each_database]
async fn amounts_read_back_digit_by_digit(world: &World) {
    let taxpayer = world.taxpayer().await;
    for digits in [
        "0.1",
        "0.01",
        "123456789012345.678",
        "123456789012345.678901",
        "0.000001",
    ] {
        let body = with(
            &documents::invoice(),
            "invoice_lines.0.unit_price",
            exact(digits),
        );
        let body = with(&body, "invoice_lines.0.quantity", exact("1"));
        let invoice = taxpayer.invoice(&body).await;
        assert_eq!(
            invoice["invoice_lines"][0]["unit_price"].to_string(),
            digits
        );
        assert_eq!(taxpayer.reread(&invoice).await, invoice);
    }
}

#[on_sqlite]
async fn the_payable_is_the_lines_less_discounts_plus_tax(world: &World) {
    let taxpayer = world.taxpayer().await;
    assert_payable(&taxpayer, &documents::invoice(), "1075", "1075.01").await;
    let body = with(
        &documents::invoice(),
        "invoice_lines.0.discount_rate",
        json!(10),
    );
    let body = with(&body, "invoice_lines.0.discount_amount", json!(100));
    assert_payable(&taxpayer, &body, "860", "860.01").await;
}

#[each_database]
async fn an_invoice_may_have_many_lines(world: &World) {
    let body = documents::invoice_with_price("0.01", "1");
    let lines = vec![body["invoice_lines"][0].clone(); 1_000];
    let invoice = world
        .taxpayer()
        .await
        .invoice(&with(&body, "invoice_lines", json!(lines)))
        .await;
    assert_eq!(invoice["invoice_lines"].as_array().unwrap().len(), 1_000);
}
