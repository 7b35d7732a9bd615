//! The catalog of items: filled from every line, named by `item_id`.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::{with, without};
use testkit::roles::Taxpayer;

use crate::support::world::World;

/// The item of the first line.
async fn item_of(taxpayer: &Taxpayer, invoice: &Value) -> Value {
    taxpayer.invoice_with_ledger(invoice).await["lines"][0]["item_id"].clone()
}

/// An update to one line that names an item.
fn naming(invoice: &Value, item_id: &Value) -> Value {
    let line = json!({ "item_id": item_id, "quantity": 3, "unit_price": 10, "price_unit": "EA" });
    with(&documents::update(invoice), "lines", json!([line]))
}

#[each_database]
async fn one_number_is_one_item_wherever_it_comes_from(world: &World) {
    let taxpayer = world.taxpayer().await;
    let standard = taxpayer.invoice(&documents::invoice()).await;
    let full = taxpayer
        .new_full_invoice(&documents::full_invoice(&taxpayer))
        .await;
    let item = item_of(&taxpayer, &standard).await;
    assert!(item.is_i64());
    assert_eq!(item_of(&taxpayer, &full).await, item);
    let body = with(&documents::update(&full), "lines.0.item_no", json!("LAP-1"));
    taxpayer.update(&body).await.expect_status(200);
    assert_eq!(item_of(&taxpayer, &full).await, item);
    let other = with(
        &documents::invoice(),
        "invoice_lines.0.item_no",
        json!("LAP-2"),
    );
    assert_ne!(
        item_of(&taxpayer, &taxpayer.invoice(&other).await).await,
        item
    );
}

#[each_database]
async fn without_a_number_name_and_type_are_one_item(world: &World) {
    let taxpayer = world.taxpayer().await;
    let unnumbered = || {
        without(
            &documents::full_invoice(&taxpayer),
            "invoice_line.0.item.sellers_item_identification",
        )
    };
    let item = item_of(&taxpayer, &taxpayer.new_full_invoice(&unnumbered()).await).await;
    let again = taxpayer.new_full_invoice(&unnumbered()).await;
    assert_eq!(item_of(&taxpayer, &again).await, item);
    let other = with(&unnumbered(), "invoice_line.0.item.name", json!("Tablet"));
    assert_ne!(
        item_of(&taxpayer, &taxpayer.new_full_invoice(&other).await).await,
        item
    );
    let service = with(&unnumbered(), "invoice_line.0.item.type", json!("SERVICE"));
    let service = without(
        &without(&service, "invoice_line.0.product_category"),
        "invoice_line.0.hsn_code",
    );
    let service = with(&service, "invoice_line.0.service_category", json!("6201"));
    assert_ne!(
        item_of(&taxpayer, &taxpayer.new_full_invoice(&service).await).await,
        item
    );
}

#[each_database]
async fn two_lines_of_one_invoice_may_be_of_one_item(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = documents::invoice();
    let line = body["invoice_lines"][0].clone();
    let invoice = taxpayer
        .invoice(&with(&body, "invoice_lines", json!([line, line])))
        .await;
    let lines = taxpayer.invoice_with_ledger(&invoice).await["lines"].clone();
    assert_eq!(lines[0]["item_id"], lines[1]["item_id"]);
}

#[each_database]
async fn concurrent_creates_of_one_new_item_make_one(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bodies: Vec<_> = (0..16).map(|_| documents::invoice()).collect();
    let invoices = join_all(bodies.iter().map(|body| taxpayer.invoice(body))).await;
    let items = join_all(invoices.iter().map(|invoice| item_of(&taxpayer, invoice))).await;
    assert!(
        items.iter().all(|item| *item == items[0] && item.is_i64()),
        "{items:?}"
    );
}

#[each_database]
async fn an_item_stands_for_what_a_line_leaves_out(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    let item = item_of(&taxpayer, &invoice).await;
    taxpayer
        .update(&documents::update(&invoice))
        .await
        .expect_status(200);
    let after = taxpayer
        .update(&naming(&invoice, &item))
        .await
        .expect_status(200);
    assert_eq!(
        after.data()["invoice_lines"][0],
        json!({
            "item_name": "Laptop", "item_no": "LAP-1", "item_type": "product", "unit_price": 10,
            "quantity": 3, "tax_category": "STANDARD_VAT", "product_category": "8471.30",
            "service_category": null,
        })
    );
    let whole = taxpayer.invoice_with_ledger(&invoice).await;
    assert_eq!(
        (
            &whole["lines"][0]["item_id"],
            whole["ledger"]["payable_amount"].to_string()
        ),
        (&item, "32.25".into())
    );
    let named = with(
        &naming(&invoice, &item),
        "lines.0.item_name",
        json!("Old laptop"),
    );
    let after = taxpayer.update(&named).await.expect_status(200);
    assert_eq!(
        after.data()["invoice_lines"][0]["item_name"],
        json!("Old laptop")
    );
    assert_eq!(item_of(&taxpayer, &invoice).await, item);
}

#[each_database]
async fn an_item_must_be_one_of_the_accounts_own(world: &World) {
    let taxpayer = world.taxpayer().await;
    let other = world.taxpayer().await;
    let theirs = other.invoice(&documents::invoice()).await;
    let theirs = item_of(&other, &theirs).await;
    let invoice = taxpayer.invoice(&documents::invoice()).await;
    for item in [theirs, json!(9_000_000_000_i64)] {
        taxpayer
            .update(&naming(&invoice, &item))
            .await
            .expect_faults(&["lines.0.item_id"]);
    }
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
}

#[each_database]
async fn an_item_must_carry_a_category_and_a_later_line_may_give_it_one(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = without(&documents::invoice(), "invoice_lines.0.product_category");
    let invoice = taxpayer.invoice(&body).await;
    let item = item_of(&taxpayer, &invoice).await;
    let naming = naming(&invoice, &item);
    taxpayer
        .update(&naming)
        .await
        .expect_faults(&["lines.0.item_id"]);
    taxpayer.invoice(&documents::invoice()).await;
    let after = taxpayer.update(&naming).await.expect_status(200);
    assert_eq!(
        after.data()["invoice_lines"][0]["product_category"],
        json!("8471.30")
    );
}
