//! What each field has to be.

use serde_json::{Value, json};
use testkit::documents;
use testkit::each_database;
use testkit::edit::{exact, with, without};
use testkit::roles::INVOICES;

use crate::support::world::World;

/// Every field of the body that has to be there.
const REQUIRED: [&str; 24] = [
    "invoice_no",
    "invoice_category",
    "invoice_date",
    "due_date",
    "currency",
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
    "invoice_lines",
    "invoice_lines.0.item_name",
    "invoice_lines.0.item_no",
    "invoice_lines.0.item_type",
    "invoice_lines.0.unit_price",
    "invoice_lines.0.quantity",
    "invoice_lines.0.price_unit",
    "invoice_lines.0.tax_category",
];

/// Fields of one line of free text, and how long it may be.
const TEXTS: [(&str, usize); 12] = [
    ("invoice_no", 255),
    ("invoice_type", 255),
    ("customer.no", 255),
    ("customer.name", 255),
    ("customer.tin", 255),
    ("customer.address_street_name", 255),
    ("customer.address_city", 255),
    ("customer.address_state", 255),
    ("customer.address_postal_code", 255),
    ("customer.address_country", 255),
    ("invoice_lines.0.item_name", 255),
    ("invoice_lines.0.item_no", 255),
];

#[each_database]
async fn each_required_field_is_asked_for(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in REQUIRED {
        taxpayer.create_invoice(&without(&documents::invoice(), path)).await.expect_faults(&[path]);
        for nothing in [json!(null), json!(""), json!("  ")] {
            let blank = with(&documents::invoice(), path, nothing);
            taxpayer.create_invoice(&blank).await.expect_faults(&[path]);
        }
    }
}

#[each_database]
async fn a_type_is_required_as_text_or_as_a_code(world: &World) {
    let body = without(&documents::invoice(), "invoice_type_code");
    let answer = world.taxpayer().await.create_invoice(&body).await;
    let answer = answer.expect_refusal(422, "VALIDATION_FAILED");
    let paths = answer.faulty_paths();
    assert!(!paths.is_empty() && paths.iter().all(|path| path.starts_with("invoice_type")), "{paths:?}");
}

#[each_database]
async fn a_text_that_is_one_character_too_long_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (path, max) in TEXTS {
        let long = with(&documents::invoice(), path, json!("x".repeat(max + 1)));
        taxpayer.create_invoice(&long).await.expect_faults(&[path]);
        let letters = with(&documents::invoice(), path, json!("é".repeat(max + 1)));
        taxpayer.create_invoice(&letters).await.expect_faults(&[path]);
    }
}

#[each_database]
async fn a_text_as_long_as_it_may_be_is_accepted(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (path, max) in TEXTS {
        let longest = with(&documents::invoice(), path, json!("é".repeat(max)));
        taxpayer.create_invoice(&longest).await.expect_status(201);
    }
}

#[each_database]
async fn control_characters_are_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in TEXTS.map(|(path, _)| path).into_iter().chain(["customer.business_description"]) {
        for odd in ["a\u{0}bcdef", "abcdef\u{0}", "abc\u{1b}def", "abcdef\u{7f}"] {
            let body = with(&documents::invoice(), path, json!(odd));
            taxpayer.create_invoice(&body).await.expect_faults(&[path]);
        }
    }
}

#[each_database]
async fn a_value_outside_what_its_field_takes_is_refused(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (path, values) in odd_values() {
        for value in values {
            let body = with(&documents::invoice(), path, value.clone());
            let answer = taxpayer.create_invoice(&body).await;
            assert_eq!(answer.faulty_paths(), [path], "{value}: {}", answer.text);
            answer.expect_faults(&[path]);
        }
    }
}

/// Values of the right JSON type that are not allowed.
fn odd_values() -> Vec<(&'static str, Vec<Value>)> {
    let texts = |all: &[&str]| all.iter().map(|text| json!(text)).collect::<Vec<_>>();
    let dates = ["15-01-2026", "2026-1-5", "2026-02-30", "2026-01-15T00:00:00", "2026/01/15", "today"];
    let emails = ["plain", "@retail.example", "a@", "a b@retail.example", "a@b@retail.example", "a@retail"];
    vec![
        ("invoice_category", texts(&["B2X", "Blank", "B2", "B2B,B2C"])),
        ("invoice_type_code", texts(&["999999", "three"])),
        ("invoice_date", texts(&dates)),
        ("due_date", texts(&dates)),
        ("currency", texts(&["NG", "NGNN", "QQQ", "N1N"])),
        ("customer.email", texts(&emails)),
        ("customer.business_description", vec![json!("abcd"), json!("x".repeat(1_001))]),
        ("invoice_lines", vec![json!([])]),
        ("invoice_lines.0.item_type", texts(&["GOODS", "PRODUCTS"])),
        ("invoice_lines.0.price_unit", texts(&["QQQ", "EACH"])),
        ("invoice_lines.0.tax_category", texts(&["NO_SUCH_TAX"])),
        ("invoice_lines.0.product_category", texts(&["8471.3", "847.30", "84713.00", "abcd.ef", "8471,30"])),
        ("invoice_lines.0.discount_rate", ["-0.01", "100.01"].map(exact).into()),
        ("invoice_lines.0.unit_price", ["-0.01", "-1"].map(exact).into()),
        ("invoice_lines.0.quantity", ["-0.01", "-1"].map(exact).into()),
    ]
}

#[each_database]
async fn values_at_the_ends_of_what_is_allowed_are_accepted(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (path, value) in [
        ("customer.business_description", json!("abcde")),
        ("customer.business_description", json!("x".repeat(1_000))),
        ("customer.business_description", json!("several\nlines")),
        ("invoice_lines.0.discount_rate", json!(0)),
        ("invoice_lines.0.discount_rate", json!(100)),
        ("invoice_lines.0.unit_price", exact("0.01")),
        ("invoice_lines.0.quantity", exact("0.01")),
        ("invoice_lines.0.discount_amount", exact("0.5")),
        ("invoice_date", json!("2024-02-29")),
    ] {
        taxpayer.create_invoice(&with(&documents::invoice(), path, value)).await.expect_status(201);
    }
}

#[each_database]
async fn a_value_of_the_wrong_json_type_is_a_field_error(world: &World) {
    let taxpayer = world.taxpayer().await;
    for path in REQUIRED.into_iter().chain(["invoice_type_code", "invoice_lines.0.discount_rate"]) {
        for odd in [json!(true), json!([[]])] {
            let answer = taxpayer.create_invoice(&with(&documents::invoice(), path, odd)).await;
            let answer = answer.expect_refusal(422, "VALIDATION_FAILED");
            assert!(answer.faulty_paths().iter().all(|named| named.starts_with(path)), "{}", answer.text);
        }
    }
    let text = with(&documents::invoice(), "invoice_lines.0", json!("a line"));
    taxpayer.create_invoice(&text).await.expect_faults(&["invoice_lines.0"]);
}

#[each_database]
async fn a_service_category_is_four_digits(world: &World) {
    let taxpayer = world.taxpayer().await;
    let service = without(&documents::invoice(), "invoice_lines.0.product_category");
    let service = with(&service, "invoice_lines.0.item_type", json!("SERVICE"));
    for odd in ["620", "62011", "abcd", "62.1"] {
        let body = with(&service, "invoice_lines.0.service_category", json!(odd));
        taxpayer.create_invoice(&body).await.expect_faults(&["invoice_lines.0.service_category"]);
    }
}

#[each_database]
async fn a_line_carries_the_category_of_its_type_only(world: &World) {
    let taxpayer = world.taxpayer().await;
    let product = with(&documents::invoice(), "invoice_lines.0.service_category", json!("6201"));
    taxpayer.create_invoice(&product).await.expect_faults(&["invoice_lines.0.service_category"]);
    let service = with(&documents::invoice(), "invoice_lines.0.item_type", json!("SERVICE"));
    taxpayer.create_invoice(&service).await.expect_faults(&["invoice_lines.0.product_category"]);
}

#[each_database]
async fn a_business_needs_a_tin_and_a_description_and_a_consumer_does_not(world: &World) {
    let taxpayer = world.taxpayer().await;
    let bare = without(&documents::invoice(), "customer.tin");
    let bare = without(&bare, "customer.business_description");
    for category in ["B2B", "B2G"] {
        let answer = taxpayer.create_invoice(&with(&bare, "invoice_category", json!(category))).await;
        answer.expect_faults(&["customer.business_description", "customer.tin"]);
    }
    taxpayer.create_invoice(&with(&bare, "invoice_category", json!("B2C"))).await.expect_status(201);
}

#[each_database]
async fn a_credit_note_names_what_it_corrects(world: &World) {
    let taxpayer = world.taxpayer().await;
    let by_code = with(&documents::invoice(), "invoice_type_code", json!("380"));
    let by_text = with(&documents::invoice(), "invoice_type", json!("CREDIT_NOTE"));
    for body in [by_code, by_text] {
        let answer = taxpayer.create_invoice(&body).await.expect_refusal(422, "VALIDATION_FAILED");
        assert!(answer.faulty_paths().contains(&"original_invoice_reference"), "{}", answer.text);
        let named = with(&body, "original_invoice_reference", json!("INV-0"));
        let type_path = "original_invoice_reference_type";
        taxpayer.create_invoice(&named).await.expect_faults(&[type_path]);
        let odd = with(&named, type_path, json!("NUMBER"));
        taxpayer.create_invoice(&odd).await.expect_faults(&[type_path]);
        for kind in ["IRN", "EXTERNAL_INVOICE_NO", "INTERNAL_INVOICE_NO", "PORTAL_ID"] {
            let body =
                with(&with(&named, type_path, json!(kind)), "invoice_no", json!(documents::invoice_no()));
            taxpayer.create_invoice(&body).await.expect_status(201);
        }
    }
}

#[each_database]
async fn all_faults_are_reported_at_once(world: &World) {
    let taxpayer = world.taxpayer().await;
    let body = with(&documents::invoice(), "customer.email", json!("plain"));
    let body = with(&body, "invoice_lines.0.quantity", json!("two"));
    let two = taxpayer.create_invoice(&body).await;
    let two = two.expect_faults(&["customer.email", "invoice_lines.0.quantity"]);
    assert!(two.message().ends_with("(and 1 more error)"), "{}", two.message());
    let body = with(&without(&body, "invoice_no"), "currency", json!("QQQ"));
    let four = taxpayer.create_invoice(&body).await;
    let paths = ["customer.email", "invoice_lines.0.quantity", "invoice_no", "currency"];
    assert!(four.message().ends_with("(and 3 more errors)"), "{}", four.message());
    four.expect_faults(&paths);
    let empty = taxpayer.create_invoice(&json!({})).await.expect_refusal(422, "VALIDATION_FAILED");
    assert!(empty.faulty_paths().len() >= 8, "{}", empty.text);
}

#[each_database]
async fn the_fault_of_a_later_line_is_named_by_its_position(world: &World) {
    let body = documents::invoice();
    let line = body["invoice_lines"][0].clone();
    let odd = with(&line, "quantity", json!(null));
    let body = with(&body, "invoice_lines", json!([line, odd, 7]));
    let answer = world.taxpayer().await.create_invoice(&body).await;
    answer.expect_faults(&["invoice_lines.1.quantity", "invoice_lines.2"]);
}

#[each_database]
async fn a_body_that_is_json_but_no_object_is_a_field_error(world: &World) {
    let taxpayer = world.taxpayer().await;
    for text in ["[]", "null", "7", "\"text\"", "true"] {
        let answer = taxpayer.send_text("POST", INVOICES, text).await;
        answer.expect_refusal(422, "VALIDATION_FAILED");
    }
}

#[each_database]
async fn of_two_equal_keys_none_counts(world: &World) {
    let taxpayer = world.taxpayer().await;
    let number = documents::invoice_no();
    let text = documents::invoice().to_string();
    let text = format!("{},\"invoice_no\":\"{number}\"}}", text.strip_suffix('}').unwrap());
    let answer = taxpayer.send_text("POST", INVOICES, text).await.expect_faults(&["invoice_no"]);
    assert_eq!(answer.message(), "The invoice_no field must not be sent twice.");
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}
