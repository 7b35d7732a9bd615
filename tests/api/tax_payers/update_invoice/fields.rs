//! What each field has to be. The form's own tests hold every rule; here many faults at once go over the wire, and
//! what contradicts the stored invoice.

use serde_json::json;
use testkit::documents;
use testkit::edit::{exact, hostile_values, paths, with, without};
use testkit::roles::UPDATE;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[on_sqlite]
async fn a_total_that_cannot_be_kept_exactly_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(
        &documents::update(&invoice),
        "lines.0.unit_price",
        exact("999999999999999"),
    );
    let body = with(&body, "lines.0.quantity", exact("999999999999999"));
    taxpayer.update(&body).await.expect_faults(&["lines"]);
}

#[each_database]
async fn a_line_may_become_one_of_a_service(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(
        &documents::update(&invoice),
        "lines.0.item_type",
        json!("SERVICE"),
    );
    let body = without(
        &with(&body, "lines.0.service_category", json!("6201")),
        "lines.0.product_category",
    );
    let line = taxpayer.update(&body).await.expect_status(200).data()["invoice_lines"][0].clone();
    assert_eq!(
        (&line["item_type"], &line["service_category"]),
        (&json!("service"), &json!("6201"))
    );
}

#[on_sqlite]
async fn all_faults_are_reported_at_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(
        &without(&documents::update(&invoice), "due_date"),
        "customer.email",
        json!("plain"),
    );
    let body = with(&body, "lines.0.quantity", json!("two"));
    taxpayer
        .update(&body)
        .await
        .expect_faults(&["customer.email", "due_date", "lines.0.quantity"]);
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
}

#[on_sqlite]
async fn faults_against_the_stored_invoice_are_reported_at_once_too(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let body = with(
        &documents::update(&invoice),
        "original_invoice_reference",
        json!("nothing"),
    );
    let body = with(
        &with(&body, "invoice_category", json!("B2G")),
        "lines.0.item_id",
        json!(9_000_000),
    );
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
        for value in hostile_values() {
            let answer = taxpayer.update(&with(&body, &path, value.clone())).await;
            assert!(
                [200, 404, 422].contains(&answer.status),
                "{path} = {value}: {}",
                answer.text
            );
            assert!(answer.body["success"].is_boolean(), "{}", answer.text);
        }
    }
}

#[on_sqlite]
async fn deep_and_large_bodies_are_answered_in_the_envelope(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let update = documents::update(&invoice);
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    taxpayer
        .send_text("PUT", UPDATE, deep)
        .await
        .expect_refusal(400, "MALFORMED_JSON");
    let lines = |count: usize| {
        with(
            &update,
            "lines",
            json!(vec![update["lines"][0].clone(); count]),
        )
    };
    let after = taxpayer.update(&lines(9_000)).await.expect_status(200);
    assert_eq!(
        after.data()["invoice_lines"].as_array().unwrap().len(),
        9_000
    );
    let line = json!({ "item_id": 5, "description": "as long as the lines that people send" });
    let many = with(&update, "lines", json!(vec![line; 10_001]));
    taxpayer.update(&many).await.expect_faults(&["lines"]);
}
