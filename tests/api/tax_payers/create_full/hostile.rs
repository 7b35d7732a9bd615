//! Whatever is sent is answered in the envelope.

use serde_json::json;
use testkit::documents;
use testkit::edit::{exact, hostile_values, paths, with};
use testkit::roles::FULL_INVOICES;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn nothing_that_json_can_say_in_a_field_is_a_failure_of_ours(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    for path in paths(&body) {
        for value in hostile_values() {
            let answer = taxpayer
                .create_full(&with(&body, &path, value.clone()))
                .await;
            assert!(
                [200, 201, 422].contains(&answer.status),
                "{path} = {value}: {}",
                answer.text
            );
            assert!(answer.body["success"].is_boolean(), "{}", answer.text);
        }
    }
}

#[on_sqlite]
async fn what_is_nested_too_deeply_is_malformed_and_else_only_unknown(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (depth, status) in [(100, 201), (100_000, 400)] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = documents::full_invoice(&taxpayer).to_string();
        let text = format!("{},\"deep\":{deep}}}", text.strip_suffix('}').unwrap());
        taxpayer
            .send_text("POST", FULL_INVOICES, text)
            .await
            .expect_status(status);
    }
}

#[each_database]
async fn an_invoice_may_have_thousands_of_lines_each_of_another_item(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    let line = with(
        &body["invoice_line"][0],
        "line_extension_amount",
        exact("0.5"),
    );
    let number = |n: usize| json!(format!("I{n}"));
    let lines: Vec<_> = (0..2_000)
        .map(|n| with(&line, "item.sellers_item_identification", number(n)))
        .collect();
    let body = with(&body, "invoice_line", json!(lines));
    let invoice = taxpayer.new_full_invoice(&body).await;
    assert_eq!(invoice["invoice_lines"].as_array().unwrap().len(), 2_000);
    let whole = taxpayer.invoice_with_ledger(&invoice).await;
    let ids: std::collections::BTreeSet<_> = whole["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["item_id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids.len(), 2_000);
    let again = taxpayer.create_full(&body).await.expect_status(200);
    assert_eq!(again.header("x-duplicate"), "identical");
}

#[on_sqlite]
async fn ten_thousand_lines_are_too_many_bytes_or_one_line_too_many(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::full_invoice(&taxpayer);
    let many = with(
        &body,
        "invoice_line",
        json!(vec![body["invoice_line"][0].clone(); 10_000]),
    );
    taxpayer
        .create_full(&many)
        .await
        .expect_refusal(413, "PAYLOAD_TOO_LARGE");
    let empty = with(&body, "invoice_line", json!(vec![json!({}); 10_001]));
    taxpayer
        .create_full(&empty)
        .await
        .expect_faults(&["invoice_line"]);
    let faulty = with(&body, "invoice_line", json!(vec![json!({}); 10_000]));
    let answer = taxpayer
        .create_full(&faulty)
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    assert!(answer.faulty_paths().len() <= 1_000);
}
