//! The rules of fields, as a caller meets them. The form's own tests hold every rule; here the longest document and
//! one with many faults go over the wire.

use serde_json::json;
use testkit::documents;
use testkit::edit::{with, without};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[on_sqlite]
async fn what_xml_cannot_carry_is_refused_where_it_stands(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in [
        "customer.name",
        "customer.business_description",
        "invoice_lines.0.item_name",
    ] {
        for letter in ["\u{0}", "\u{b}", "\u{fffe}", "\u{ffff}"] {
            let text = format!("Rice and{letter} beans");
            let body = with(&documents::invoice(), path, json!(text));
            let answer = taxpayer.create_invoice(&body).await;
            assert_eq!(answer.expect_status(422).faulty_paths(), [path]);
        }
    }
}

#[each_database]
async fn the_longest_texts_are_stored(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut body = documents::invoice();
    for path in [
        "invoice_no",
        "invoice_type",
        "customer.no",
        "customer.name",
        "customer.tin",
        "customer.address_street_name",
        "customer.address_city",
        "customer.address_state",
        "customer.address_postal_code",
        "customer.address_country",
        "invoice_lines.0.item_name",
        "invoice_lines.0.item_no",
    ] {
        body = with(&body, path, json!("é".repeat(255)));
    }
    let body = with(
        &body,
        "customer.business_description",
        json!("é".repeat(1_000)),
    );
    let invoice = taxpayer.invoice(&body).await;
    assert_eq!(taxpayer.reread(&invoice).await, invoice);
    assert_eq!(invoice["customer"]["name"], body["customer"]["name"]);
}

#[on_sqlite]
async fn all_faults_are_reported_at_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(&documents::invoice(), "customer.email", json!("plain"));
    let body = with(&body, "invoice_lines.0.quantity", json!("two"));
    let two = taxpayer.create_invoice(&body).await;
    let two = two.expect_faults(&["customer.email", "invoice_lines.0.quantity"]);
    assert!(
        two.message().ends_with("(and 1 more error)"),
        "{}",
        two.message()
    );
    let body = with(&without(&body, "invoice_no"), "currency", json!("QQQ"));
    let four = taxpayer.create_invoice(&body).await;
    let paths = [
        "customer.email",
        "invoice_lines.0.quantity",
        "invoice_no",
        "currency",
    ];
    assert!(
        four.message().ends_with("(and 3 more errors)"),
        "{}",
        four.message()
    );
    four.expect_faults(&paths);
    let empty = taxpayer
        .create_invoice(&json!({}))
        .await
        .expect_refusal(422, "VALIDATION_FAILED");
    assert!(empty.faulty_paths().len() >= 8, "{}", empty.text);
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}
