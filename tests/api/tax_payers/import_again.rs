//! POST /v1/tax-payers/invoices/import of what the service exported: the same invoice again, or a refusal in a sentence.

use futures_util::future::join_all;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use testkit::documents::{full_invoice, invoice, invoice_no};
use testkit::edit::{exact, with, without};
use testkit::roles::{INVOICES, Taxpayer};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;
use crate::tax_payers::import::{csv, import, outcomes, row};

const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const TABLES: [&str; 2] = ["text/csv", XLSX];

/// Returns the whole list of invoices as a file.
async fn export(taxpayer: &Taxpayer, kind: &str) -> Vec<u8> {
    let request = taxpayer.request("GET", INVOICES).header(ACCEPT, kind);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.bytes().await.unwrap().to_vec()
}

async fn ubl(taxpayer: &Taxpayer, invoice: &Value) -> String {
    let path = format!("{INVOICES}/{}/ubl.xml", invoice["id"]);
    taxpayer.get(&path).await.expect_status(200).text
}

fn first_error(data: &Value) -> (&str, &str) {
    let error = &data["items"][0]["errors"][0];
    let text = |name: &str| error[name].as_str().unwrap();
    (text("rule"), text("message"))
}

fn warnings(data: &Value) -> String {
    data["items"][0]["warnings"].to_string()
}

#[on_sqlite]
async fn texts_that_begin_like_formulas_come_back_from_tables(world: &World) {
    let seller = world.taxpayer().await;
    let texts = [
        "=1+1",
        "+234",
        "-5",
        "@x",
        "'-5",
        "'s",
        "''=1",
        ";=1",
        "\u{ff1d}1",
    ];
    for text in texts {
        let body = with(&invoice(), "invoice_lines.0.item_name", json!(text));
        seller.invoice(&body).await;
    }
    for kind in TABLES {
        let other = world.taxpayer().await;
        let file = export(&seller, kind).await;
        let made = import(&other, "", kind, file).await.expect_status(201);
        assert_eq!(made.data()["created"], texts.len(), "{kind}: {}", made.body);
        let mut names = Vec::new();
        for item in made.data()["items"].as_array().unwrap() {
            let whole = other.invoice_with_ledger(item).await;
            names.push(whole["lines"][0]["item_name"].as_str().unwrap().to_owned());
        }
        names.sort_unstable();
        let mut expected = texts.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{kind}");
    }
}

#[on_sqlite]
async fn days_come_back_from_tables(world: &World) {
    let seller = world.taxpayer().await;
    let days = [("2024-02-29", "2024-03-31"), ("2026-01-15", "2026-12-31")];
    for (day, due) in days {
        let body = with(&invoice(), "invoice_date", json!(day));
        seller.invoice(&with(&body, "due_date", json!(due))).await;
    }
    for kind in TABLES {
        let other = world.taxpayer().await;
        let file = export(&seller, kind).await;
        let made = import(&other, "", kind, file).await.expect_status(201);
        assert_eq!(made.data()["created"], days.len(), "{kind}: {}", made.body);
        let mut found = Vec::new();
        for item in made.data()["items"].as_array().unwrap() {
            let whole = other.invoice_with_ledger(item).await;
            found.push([whole["invoice_date"].clone(), whole["due_date"].clone()]);
        }
        found.sort_unstable_by_key(|days| days[0].to_string());
        let expected = days.map(|(day, due)| [json!(day), json!(due)]);
        assert_eq!(found, expected, "{kind}");
    }
}

#[on_sqlite]
async fn a_full_invoice_that_a_table_cannot_hold_is_refused(world: &World) {
    let seller = world.taxpayer().await;
    let body = full_invoice(&seller);
    let totals = json!({
        "line_extension_amount": 1010, "tax_exclusive_amount": 1010, "tax_inclusive_amount": 1085.75,
        "payable_amount": 1085.75,
    });
    let body = with(&body, "invoice_line.0.fee_amount", json!(10));
    let body = with(&body, "invoice_line.0.line_extension_amount", json!(1010));
    let body = with(&body, "invoice_line.0.total_tax", json!(75.75));
    seller
        .new_full_invoice(&with(&body, "legal_monetary_total", totals))
        .await;
    let plain = full_invoice(&seller);
    seller.new_full_invoice(&plain).await;
    // Create Full has no field for the state, which Create Standard wants.
    let profile = json!({ "defaults": { "address_state": "Lagos" } });
    for kind in TABLES {
        let other = world.taxpayer().await;
        other
            .send("PUT", "/v1/tax-payers/import-profile", &profile)
            .await
            .expect_status(200);
        let file = export(&seller, kind).await;
        let made = import(&other, "", kind, file).await.expect_status(201);
        let counts = [&made.data()["created"], &made.data()["failed"]];
        assert_eq!(counts, [1, 1], "{kind}: {}", made.body);
        let items = made.data()["items"].as_array().unwrap();
        let failed = items
            .iter()
            .find(|item| item["outcome"] == "failed")
            .unwrap();
        let error = &failed["errors"][0];
        assert_eq!(
            (&error["rule"], &error["field"]),
            (&json!("sum"), &json!("invoice_lines.0.net_amount"))
        );
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("1010") && message.contains("1000.00"),
            "{message}"
        );
    }
}

/// Creates a full invoice of three lines of 0.335, which are rounded one by one, and a credit note for it.
async fn create_half_cents(seller: &Taxpayer) {
    let mut original = None;
    for code in ["381", "380"] {
        let body = without(&full_invoice(seller), "legal_monetary_total");
        let line = without(&body["invoice_line"][0], "line_extension_amount");
        let line = without(&line, "total_tax");
        let line = with(&line, "invoiced_quantity", json!(1));
        let line = with(&line, "price.price_amount", exact("0.335"));
        let body = with(&body, "invoice_line", json!([line, line, line]));
        let body = with(&body, "invoice_type_code", json!(code));
        let reference = original.map(|irn| json!([{ "irn": irn, "issue_date": "2026-01-15" }]));
        let body = match reference {
            Some(reference) => with(&body, "billing_reference", reference),
            None => body,
        };
        let path = format!("{INVOICES}/full?calculate=true");
        let made = seller.send("POST", &path, &body).await.expect_status(201);
        original = Some(made.data()["irn"].clone());
    }
}

#[on_sqlite]
async fn lines_that_are_rounded_one_by_one_come_back_from_tables(world: &World) {
    let seller = world.taxpayer().await;
    create_half_cents(&seller).await;
    let profile = json!({ "defaults": { "address_state": "Lagos" } });
    for kind in TABLES {
        let other = world.taxpayer().await;
        other
            .send("PUT", "/v1/tax-payers/import-profile", &profile)
            .await
            .expect_status(200);
        let file = export(&seller, kind).await;
        let made = import(&other, "", kind, file).await.expect_status(201);
        assert_eq!(made.data()["created"], 2, "{kind}: {}", made.body);
        for item in made.data()["items"].as_array().unwrap() {
            let whole = other.invoice_with_ledger(item).await;
            assert_eq!(whole["ledger"]["payable_amount"], exact("1.10"), "{kind}");
            let told = item["warnings"].to_string();
            let words = "which rounds otherwise: 1.02 and 0.08 of tax, not 1.01 and 0.07.";
            assert!(told.contains(words), "{kind}: {told}");
        }
    }
}

#[each_database]
async fn what_the_buyer_bills_is_the_same_invoice_again(world: &World) {
    let (buyer, other) = (world.taxpayer().await, world.taxpayer().await);
    let stored = buyer
        .invoice(&with(&invoice(), "invoice_type_code", json!("394")))
        .await;
    let file = ubl(&buyer, &stored).await;
    let again = import(&buyer, "", "application/xml", file.clone()).await;
    let again = again.expect_status(201);
    assert_eq!(outcomes(&again), ["/Invoice duplicate"], "{}", again.body);
    assert_eq!(again.data()["items"][0]["id"], stored["id"]);
    assert!(!warnings(again.data()).contains("not this account"));
    for form in ["standard", "full"] {
        let query = format!("?preview=true&form={form}");
        let seen = import(&other, &query, "application/xml", file.clone()).await;
        let seen = seen.expect_status(200);
        assert_eq!(outcomes(&seen), ["/Invoice created"], "{}", seen.body);
        assert!(warnings(seen.data()).contains("The customer of the file is Trading"));
    }
    let made = import(&other, "", "application/xml", file).await;
    let made = made.expect_status(201);
    let copy = other.get_invoice(&made.data()["items"][0]["id"]).await;
    assert_eq!(copy.data()["customer"]["name"], stored["customer"]["name"]);
    assert_eq!(copy.data()["customer"]["tin"], stored["customer"]["tin"]);
}

#[on_sqlite]
async fn a_sale_of_somebody_else_is_told_and_a_purchase_is_refused(world: &World) {
    let (seller, buyer) = (world.taxpayer().await, world.taxpayer().await);
    let (own, name) = (
        seller.invoice(&invoice()).await,
        "The supplier of the file is Trading",
    );
    let file = ubl(&seller, &own).await;
    let seen = import(&buyer, "?preview=true", "application/xml", file.clone()).await;
    assert!(warnings(seen.expect_status(200).data()).contains(name));
    let again = import(&seller, "?preview=true", "application/xml", file).await;
    assert!(!warnings(again.expect_status(200).data()).contains(name));
    let tin = json!(buyer.as_ref().tin);
    let other = with(&invoice(), "customer.no", json!("C-BUYER"));
    let sold = seller.invoice(&with(&other, "customer.tin", tin)).await;
    let file = ubl(&seller, &sold).await;
    for form in ["standard", "full"] {
        let query = format!("?form={form}");
        let made = import(&buyer, &query, "application/xml", file.clone()).await;
        let made = made.expect_status(201);
        assert_eq!(outcomes(&made), ["/Invoice failed"], "{}", made.body);
        let (rule, message) = first_error(made.data());
        assert_eq!(rule, "purchase");
        assert!(message.contains(&seller.as_ref().tin), "{message}");
    }
}

#[each_database]
async fn the_same_file_at_the_same_moment_has_one_record(world: &World) {
    let taxpayer = world.taxpayer().await;
    let file = csv(&[row(&invoice_no(), "2"), row(&invoice_no(), "3")]);
    let sent = (0..6).map(|_| import(&taxpayer, "", "text/csv", file.clone()));
    let answers = join_all(sent).await;
    let made: Vec<_> = answers.iter().filter(|one| one.status == 201).collect();
    assert_eq!(made.len(), 1);
    for answer in &answers {
        assert!([200, 201].contains(&answer.status), "{}", answer.body);
        assert_eq!(answer.data(), made[0].data());
    }
    let number = made[0].data()["import_no"].as_str().unwrap();
    let path = format!("/v1/tax-payers/invoices/imports/{number}");
    let stored = taxpayer.get(&path).await.expect_status(200);
    assert_eq!(stored.data(), made[0].data());
}
