//! Batches of what is no invoice: always the envelope, and what is wrong fails alone.

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::{exact, with};
use testkit::roles::BULK;
use testkit::{each_database, on_sqlite};

use crate::support::world::World;

#[each_database]
async fn an_item_that_is_no_invoice_fails_with_what_is_wrong(world: &World) {
    let taxpayer = world.taxpayer().await;
    let invoice = documents::invoice;
    let price = "invoice_lines.0.unit_price";
    let cases = [
        (json!(null), "invoice"),
        (json!([[{}]]), "invoice"),
        (
            with(&invoice(), "invoice_no", json!("A\u{0}B")),
            "invoice_no",
        ),
        (with(&invoice(), price, exact("1e400")), price),
    ];
    let sent: Vec<_> = cases.iter().map(|(item, _)| item.clone()).collect();
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    assert_eq!(answer.data()["created"], json!(0));
    let batch = taxpayer.created_batch(&answer).await;
    for (item, (sent, path)) in batch["items"].as_array().unwrap().iter().zip(&cases) {
        let paths: Vec<_> = item["errors"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            (&item["outcome"], paths),
            (&json!("failed"), vec![*path]),
            "{sent}"
        );
    }
    assert_eq!(taxpayer.list_invoices("").await.data()["total"], json!(0));
}

#[on_sqlite]
async fn a_key_that_an_item_has_twice_fails_that_item(world: &World) {
    let taxpayer = world.taxpayer().await;
    let good = documents::invoice();
    let other = documents::invoice();
    let twice = documents::invoice()
        .to_string()
        .replace("\"quantity\":2", "\"quantity\":2,\"quantity\":3");
    let unnumbered = documents::invoice()
        .to_string()
        .replacen('{', "{\"invoice_no\":\"A\",", 1);
    let reserved = r#"{"$serde_json::private::RawValue":"{}"}"#;
    let text = format!("{{\"invoices\":[{good},{twice},{unnumbered},{reserved},{other}]}}");
    let answer = taxpayer
        .send_text("POST", BULK, text)
        .await
        .expect_status(201);
    assert_eq!(answer.data()["created"], json!(2));
    let batch = taxpayer.created_batch(&answer).await;
    let items = batch["items"].as_array().unwrap();
    let outcomes: Vec<_> = items
        .iter()
        .map(|item| item["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        outcomes,
        ["created", "failed", "failed", "failed", "created"]
    );
    let path = "invoice_lines.0.quantity";
    assert_eq!(
        items[1]["errors"],
        json!({ path: [format!("The {path} field must not be sent twice.")] })
    );
    let of = |item: &Value| {
        (
            item["invoice_no"].clone(),
            item["errors"].as_object().unwrap().keys().next().cloned(),
        )
    };
    assert_eq!(of(&items[2]), (Value::Null, Some("invoice_no".to_owned())));
    assert_eq!(of(&items[3]), (Value::Null, Some("invoice".to_owned())));
    // Outside the items there is no item to fail.
    let text = format!(
        "{{\"invoices\":[{}],\"x\":{{\"a\":1,\"a\":2}}}}",
        documents::invoice()
    );
    taxpayer
        .send_text("POST", BULK, text)
        .await
        .expect_faults(&["x.a"]);
}

#[each_database]
async fn letters_of_every_kind_are_kept_as_they_came(world: &World) {
    let taxpayer = world.taxpayer().await;
    let long = "\u{1f9fe}".repeat(255);
    let names = [
        "\u{202e}evil\u{202c}",
        "na\u{ef}ve",
        long.as_str(),
        "%_\\'\";--",
    ];
    let numbered = |at: usize, name: &str| {
        let body = with(&documents::invoice(), "customer.name", json!(name));
        let body = with(&body, "customer.no", json!(format!("\u{1f9fe}N{at}")));
        with(&body, "customer.tin", json!(format!("T-{at}")))
    };
    let sent: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(at, name)| numbered(at, name))
        .collect();
    let answer = taxpayer.create_batch(&sent).await.expect_status(201);
    let batch = taxpayer.created_batch(&answer).await;
    for (item, name) in batch["items"].as_array().unwrap().iter().zip(names) {
        let invoice = taxpayer.get_invoice(&item["id"]).await.expect_status(200);
        assert_eq!(invoice.data()["customer"]["name"], json!(name));
    }
}

#[each_database]
async fn the_longest_texts_fit(world: &World) {
    let taxpayer = world.taxpayer().await;
    let long = "\u{1f9fe}".repeat(255);
    let mut body = documents::invoice();
    for path in ["customer.no", "customer.name", "customer.tin"] {
        body = with(&body, path, json!(long));
    }
    let body = with(&body, "invoice_no", json!("\u{1f9fe}".repeat(240)));
    let answer = taxpayer
        .create_batch(std::slice::from_ref(&body))
        .await
        .expect_status(201);
    assert_eq!(
        answer.data()["created"],
        json!(1),
        "{}",
        taxpayer.created_batch(&answer).await
    );
    taxpayer.create_invoice(&body).await.expect_status(200);
}

#[on_sqlite]
async fn the_response_to_a_batch_stays_small_with_many_faults(world: &World) {
    let taxpayer = world.taxpayer().await;
    let line =
        json!({ "item_name": 1, "item_no": 2, "description": "A description as long as most are" });
    let item = with(
        &documents::invoice(),
        "invoice_lines",
        Value::Array(vec![line; 25]),
    );
    let answer = taxpayer
        .create_batch(&vec![item; 1_000])
        .await
        .expect_status(201);
    let path = format!(
        "{}/{}",
        testkit::roles::BATCHES,
        answer.data()["batch_no"].as_str().unwrap()
    );
    let outcome = taxpayer.get(&path).await.expect_status(200);
    assert!(
        outcome.text.len() < 4 * 1024 * 1024,
        "{} bytes",
        outcome.text.len()
    );
    let errors = outcome.data()["items"][999]["errors"].as_object().unwrap();
    let sentences: usize = errors
        .values()
        .map(|all| all.as_array().unwrap().len())
        .sum();
    assert_eq!(sentences, 21);
    assert_eq!(
        errors["invoice"],
        json!(["Only the first 20 errors are listed."])
    );
}
