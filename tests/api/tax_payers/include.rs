//! GET /v1/tax-payers/invoices/{id}?include=lines,ledger.

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::{exact, with};
use testkit::roles::{INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

async fn including(taxpayer: &Taxpayer, invoice: &Value, words: &str) -> Value {
    let path = format!("{INVOICES}/{}?include={words}", invoice["id"]);
    taxpayer.get(&path).await.expect_status(200).data().clone()
}

/// Without what only `include` shows.
fn plain(whole: &Value) -> Value {
    let mut plain = whole.clone();
    for name in ["lines", "ledger"] {
        plain.as_object_mut().unwrap().remove(name);
    }
    plain
}

#[each_database]
async fn an_invoice_shows_more_only_where_it_is_asked_for(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for (words, lines, ledger) in [
        ("", false, false),
        ("lines", true, false),
        ("LEDGER", false, true),
        ("lines,ledger", true, true),
        ("ledger,%20lines,", true, true),
        ("lines%00", false, false),
    ] {
        let shown = including(&taxpayer, &invoice, words).await;
        assert_eq!(plain(&shown), invoice, "{words}");
        assert_eq!(
            (shown.get("lines").is_some(), shown.get("ledger").is_some()),
            (lines, ledger),
            "{words}"
        );
    }
    let answer = taxpayer
        .get(&format!(
            "{INVOICES}/{}?include=lines,colour",
            invoice["id"]
        ))
        .await;
    assert!(
        answer.warnings().contains("colour"),
        "{}",
        answer.warnings()
    );
    assert!(answer.data().get("lines").is_some());
}

#[each_database]
async fn the_lines_carry_every_field_that_was_sent_and_their_item(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(
        &documents::invoice(),
        "invoice_lines.0.discount_rate",
        exact("2.50"),
    );
    let body = with(&body, "invoice_lines.0.discount_amount", exact("0.10"));
    let invoice = taxpayer.invoice(&body).await;
    let mut line = including(&taxpayer, &invoice, "lines").await["lines"][0].clone();
    assert!(line["item_id"].is_i64());
    line["item_id"] = json!(1);
    assert_eq!(
        line.to_string(),
        r#"{"discount_amount":0.10,"discount_rate":2.50,"item_id":1,"item_name":"Laptop","item_no":"LAP-1","item_type":"product","price_unit":"EA","product_category":"8471.30","quantity":2,"service_category":null,"tax_category":"STANDARD_VAT","unit_price":500}"#
    );
}

#[on_sqlite]
async fn the_lines_of_a_full_invoice_carry_its_own_fields_too(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(
        &documents::full_invoice(&taxpayer),
        "invoice_line.0.fee_amount",
        json!(3),
    );
    let body = with(&body, "invoice_line.0.fee_rate", json!(1));
    let invoice = taxpayer.new_full_invoice(&body).await;
    let line = including(&taxpayer, &invoice, "lines").await["lines"][0].clone();
    for (name, value) in [
        ("description", json!("A portable computer")),
        ("base_quantity", json!(1)),
        ("line_extension_amount", json!(1000)),
        ("total_tax", json!(75)),
        ("hsn_code", json!("8471.30")),
        ("fee_rate", json!(1)),
        ("fee_amount", json!(3)),
        ("unit_price", json!(500)),
        ("quantity", json!(2)),
    ] {
        assert_eq!(line[name], value, "{name}");
    }
}

#[each_database]
async fn the_ledger_has_an_entry_for_each_payment_update(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    taxpayer
        .set_status(&invoice, "approved")
        .await
        .expect_status(200);
    let update = |status: &str| json!({ "unique_no": invoice["irn"], "unique_no_type": "IRN", "status": status, "remark": "as agreed" });
    let part = with(
        &with(&update("partial"), "amount", exact("75.00")),
        "reference",
        json!("T-1"),
    );
    for body in [part, update("rejected"), update("pending"), update("paid")] {
        taxpayer.pay(&body).await.expect_status(200);
    }
    let ledger = including(&taxpayer, &invoice, "ledger").await["ledger"].clone();
    assert_eq!(
        (
            ledger["payable_amount"].to_string(),
            ledger["amount_paid"].to_string()
        ),
        ("1075.00".into(), "1075.00".into())
    );
    let entries = ledger["entries"].as_array().unwrap();
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| {
            format!(
                "{} {} {} {}",
                entry["status"], entry["amount"], entry["reference"], entry["remark"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#""PARTIAL" 75.00 "T-1" "as agreed""#,
            r#""REJECTED" 0 null "as agreed""#,
            r#""PENDING" 0 null "as agreed""#,
            r#""PAID" 1000.00 null "as agreed""#,
        ]
    );
    assert!(entries.iter().all(|entry| {
        entry["at"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .is_ok()
    }));
}

#[each_database]
async fn what_is_included_of_another_account_is_not_found(world: &World) {
    let invoice = world.taxpayer().await.invoice(&documents::invoice()).await;
    let path = format!("{INVOICES}/{}?include=lines,ledger", invoice["id"]);
    world
        .taxpayer()
        .await
        .get(&path)
        .await
        .expect_refusal(404, "INVOICE_NOT_FOUND");
}
