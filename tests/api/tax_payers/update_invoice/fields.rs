//! What each field has to be. The form's own tests hold every rule; here each kind of refusal goes over the wire.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::{exact, oddities, paths, with, without};
use testkit::roles::UPDATE;

use crate::support::world::World;

/// Every field of the body that has to be there.
const REQUIRED: [&str; 24] = [
    "unique_no",
    "unique_no_type",
    "customer",
    "customer.no",
    "customer.name",
    "customer.email",
    "customer.tin",
    "customer.business_description",
    "customer.address_street_name",
    "customer.address_city",
    "customer.address_state",
    "customer.address_postal_code",
    "customer.address_country",
    "invoice_category",
    "invoice_type",
    "due_date",
    "lines",
    "lines.0.item_name",
    "lines.0.item_type",
    "lines.0.tax_category",
    "lines.0.product_category",
    "lines.0.quantity",
    "lines.0.unit_price",
    "lines.0.price_unit",
];

#[each_database]
async fn each_required_field_is_asked_for(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for path in REQUIRED {
        taxpayer.update(&without(&documents::update(&invoice), path)).await.expect_faults(&[path]);
        taxpayer.update(&with(&documents::update(&invoice), path, json!(" "))).await.expect_faults(&[path]);
    }
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
}

#[each_database]
async fn a_value_outside_what_its_field_takes_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for (path, values) in odd_values() {
        for value in values {
            let answer = taxpayer.update(&with(&documents::update(&invoice), path, value.clone())).await;
            assert_eq!(answer.faulty_paths(), [path], "{value}: {}", answer.text);
            answer.expect_faults(&[path]);
        }
    }
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
}

fn odd_values() -> Vec<(&'static str, Vec<Value>)> {
    let texts = |all: &[&str]| all.iter().map(|text| json!(text)).collect::<Vec<_>>();
    let numbers = |all: &[&str]| all.iter().map(|digits| exact(digits)).collect::<Vec<_>>();
    let forty = "1234567890123456789012345678901234567890";
    vec![
        ("unique_no", vec![json!(7), json!("x".repeat(300)), json!("a\u{0}")]),
        ("unique_no_type", texts(&["ID", "NUMBER"])),
        ("invoice_category", texts(&["Blank", "B2X"])),
        ("invoice_type", texts(&["STANDARD", "999"])),
        ("due_date", texts(&["2026-02-30", "15-01-2026"])),
        ("note", vec![json!("x".repeat(1_001)), json!(7), json!("a\u{0}")]),
        ("customer.email", texts(&["plain"])),
        ("customer.business_description", texts(&["abcd"])),
        ("lines", vec![json!([]), json!({}), json!("x")]),
        ("lines.0", vec![json!(7)]),
        (
            "lines.0.item_id",
            vec![json!("1"), exact("1.5"), json!(0), json!(-1), exact("1e400"), exact(forty)],
        ),
        ("lines.0.item_name", vec![json!("x".repeat(256)), json!("a\u{0}")]),
        ("lines.0.item_no", vec![json!("x".repeat(256)), json!(7)]),
        ("lines.0.item_type", texts(&["GOODS"])),
        ("lines.0.tax_category", texts(&["VAT"])),
        ("lines.0.product_category", texts(&["8528", "852852"])),
        ("lines.0.service_category", texts(&["6201"])),
        ("lines.0.quantity", numbers(&["0", "0.009", "-1", "1e400", forty])),
        ("lines.0.unit_price", numbers(&["-0.01", "1e400", forty])),
        ("lines.0.price_unit", texts(&["EACH", "QQQ"])),
        ("lines.0.description", vec![json!("x".repeat(1_001))]),
        ("lines.0.discount_rate", numbers(&["-0.01", "100.01"])),
        ("lines.0.discount_amount", numbers(&["-0.01"])),
    ]
}

#[each_database]
async fn values_at_the_ends_of_what_is_allowed_are_accepted(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for (path, value) in [
        ("note", json!("x".repeat(1_000))),
        ("lines.0.quantity", exact("0.01")),
        ("lines.0.unit_price", json!(0)),
        ("lines.0.discount_rate", json!(100)),
        ("lines.0.item_no", json!(null)),
        ("lines.0.product_category", json!("9999.99")),
        ("lines.0.description", json!("\u{202e}several\nlines")),
    ] {
        taxpayer.update(&with(&documents::update(&invoice), path, value)).await.expect_status(200);
    }
}

#[each_database]
async fn a_total_that_cannot_be_kept_exactly_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(&documents::update(&invoice), "lines.0.unit_price", exact("999999999999999"));
    let body = with(&body, "lines.0.quantity", exact("999999999999999"));
    taxpayer.update(&body).await.expect_faults(&["lines"]);
}

#[each_database]
async fn a_service_line_needs_its_category_and_carries_no_other(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(&documents::update(&invoice), "lines.0.item_type", json!("SERVICE"));
    let both = ["lines.0.product_category", "lines.0.service_category"];
    taxpayer.update(&body).await.expect_faults(&both);
    let body = without(&with(&body, "lines.0.service_category", json!("6201")), "lines.0.product_category");
    let line = taxpayer.update(&body).await.expect_status(200).data()["invoice_lines"][0].clone();
    assert_eq!((&line["item_type"], &line["service_category"]), (&json!("service"), &json!("6201")));
}

#[each_database]
async fn all_faults_are_reported_at_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(&without(&documents::update(&invoice), "due_date"), "customer.email", json!("plain"));
    let body = with(&body, "lines.0.quantity", json!("two"));
    taxpayer.update(&body).await.expect_faults(&["customer.email", "due_date", "lines.0.quantity"]);
}

#[each_database]
async fn faults_against_the_stored_invoice_are_reported_at_once_too(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(&documents::update(&invoice), "original_invoice_reference", json!("nothing"));
    let body = with(&with(&body, "invoice_category", json!("B2G")), "lines.0.item_id", json!(9_000_000));
    taxpayer.update(&body).await.expect_faults(&[
        "invoice_category",
        "lines.0.item_id",
        "original_invoice_reference",
    ]);
}

#[each_database]
async fn nothing_that_json_can_say_in_a_field_is_a_failure_of_ours(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(&documents::update(&invoice), "lines.0.item_id", json!(null));
    for path in paths(&body) {
        for value in oddities() {
            let answer = taxpayer.update(&with(&body, &path, value.clone())).await;
            assert!([200, 404, 422].contains(&answer.status), "{path} = {value}: {}", answer.text);
            assert!(answer.body["success"].is_boolean(), "{}", answer.text);
        }
    }
}

#[each_database]
async fn deep_and_large_bodies_are_answered_in_the_envelope(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let update = documents::update(&invoice);
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    taxpayer.send_text("PUT", UPDATE, deep).await.expect_refusal(400, "MALFORMED_JSON");
    let lines = |count: usize| with(&update, "lines", json!(vec![update["lines"][0].clone(); count]));
    let after = taxpayer.update(&lines(9_000)).await.expect_status(200);
    assert_eq!(after.data()["invoice_lines"].as_array().unwrap().len(), 9_000);
    let line = json!({ "item_id": 5, "description": "as long as the lines that people send" });
    let many = with(&update, "lines", json!(vec![line; 10_001]));
    taxpayer.update(&many).await.expect_faults(&["lines"]);
}
