//! GET `/v1/tax-payers/invoices/{id}/ubl.xml`, and the import of what it gives: it is the same invoice.

use serde_json::{Value, json};
use testkit::documents::{full_invoice, invoice};
use testkit::edit::{exact, with};
use testkit::on_sqlite;
use testkit::roles::{INVOICES, Taxpayer};

use crate::support::world::World;
use crate::tax_payers::import::import;

/// Imports the UBL of an invoice. Returns what another account has of it, and the warnings about the import.
async fn imported(
    seller: &Taxpayer,
    stored: &Value,
    buyer: &Taxpayer,
    form: &str,
) -> (Value, String) {
    let path = format!("{INVOICES}/{}/ubl.xml", stored["id"]);
    let ubl = seller.get(&path).await.expect_status(200).text;
    let query = format!("?form={form}");
    let made = import(buyer, &query, "application/xml", ubl.clone()).await;
    let made = made.expect_status(201);
    let item = &made.data()["items"][0];
    assert_eq!(item["outcome"], "created", "{item} {ubl}");
    let copy = buyer.get_invoice(&item["id"]).await.data().clone();
    (copy, item["warnings"].to_string())
}

async fn document(taxpayer: &Taxpayer, stored: &Value) -> Value {
    let path = format!("{INVOICES}/{}/json", stored["id"]);
    taxpayer.get(&path).await.expect_status(200).body
}

#[on_sqlite]
async fn the_line_of_a_full_invoice_comes_back_with_its_terms_and_its_amount(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    for (currency, price, quantity, charges, amount) in [
        ("NGN", "0.005", 1, &[("fee_amount", "1")][..], "1.00"),
        ("NGN", "4.756819", 1, &[], "4.76"),
        // The amount is a unit off, and no discount is made of it.
        ("NGN", "4.756819", 1, &[], "4.75"),
        ("JPY", "37.072", 4, &[], "149"),
        ("NGN", "10", 1, &[("discount_rate", "33.3333")], "6.67"),
        (
            "NGN",
            "10",
            1,
            &[
                ("discount_rate", "10"),
                ("discount_amount", "1"),
                ("fee_rate", "5"),
            ],
            "8.50",
        ),
    ] {
        let mut body = with(
            &full_invoice(&seller),
            "document_currency_code",
            json!(currency),
        );
        let line = &mut body["invoice_line"][0];
        line["price"]["price_amount"] = exact(price);
        line["invoiced_quantity"] = json!(quantity);
        line["tax_category"] = json!("ZERO_VAT");
        line["total_tax"] = json!(0);
        line["line_extension_amount"] = exact(amount);
        for (name, value) in charges {
            line[*name] = exact(value);
        }
        for total in body["legal_monetary_total"]
            .as_object_mut()
            .unwrap()
            .values_mut()
        {
            *total = exact(amount);
        }
        let stored = seller.new_full_invoice(&body).await;
        let (copy, warnings) = imported(&seller, &stored, &buyer, "full").await;
        let own = document(&seller, &stored).await["invoice_line"][0].clone();
        let again = document(&buyer, &copy).await["invoice_line"][0].clone();
        for name in [
            "invoiced_quantity",
            "line_extension_amount",
            "price",
            "discount_rate",
            "discount_amount",
            "fee_rate",
            "fee_amount",
        ] {
            assert_eq!(again[name], own[name], "{amount} {name}: {again}");
        }
        assert!(!warnings.contains("makes it so"), "{amount}: {warnings}");
    }
}

#[on_sqlite]
async fn the_lines_of_a_standard_invoice_come_back_with_their_amounts(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    for (name, lines) in [
        (
            "a discount above the price",
            &[("10", "15"), ("100", "0")][..],
        ),
        ("half cents", &[("0.005", "0"), ("0.005", "0")]),
        ("a rest of rounding", &[("4.756819", "0"), ("0.008", "0")]),
    ] {
        let plain = invoice();
        let lines = lines.iter().map(|(price, discount)| {
            let mut line = plain["invoice_lines"][0].clone();
            line["unit_price"] = exact(price);
            line["quantity"] = json!(1);
            line["discount_amount"] = exact(discount);
            line["tax_category"] = json!("ZERO_VAT");
            line
        });
        let body = with(&plain, "invoice_lines", lines.collect());
        let stored = seller.invoice(&body).await;
        let (copy, warnings) = imported(&seller, &stored, &buyer, "standard").await;
        let own = document(&seller, &stored).await;
        let again = document(&buyer, &copy).await;
        assert_eq!(
            again["legal_monetary_total"], own["legal_monetary_total"],
            "{name}"
        );
        let amounts = |document: &Value| {
            let lines = document["invoice_line"].as_array().unwrap().iter();
            let amounts = lines.map(|line| line["line_extension_amount"].clone());
            amounts.collect::<Vec<_>>()
        };
        assert_eq!(amounts(&again), amounts(&own), "{name}");
        assert!(!warnings.contains("makes it so"), "{name}: {warnings}");
    }
}

#[on_sqlite]
async fn another_currency_of_the_tax_comes_back_though_ubl_cannot_state_it_alone(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    for (currency, is_told) in [("NGN", false), ("USD", true)] {
        let body = with(&full_invoice(&seller), "tax_currency_code", json!(currency));
        let stored = seller.new_full_invoice(&body).await;
        let path = format!("{INVOICES}/{}/ubl.xml", stored["id"]);
        let ubl = seller.get(&path).await.expect_status(200);
        assert!(!ubl.text.contains("TaxCurrencyCode"), "{}", ubl.text);
        let told = ubl.warnings();
        assert_eq!(told.contains(currency), is_told, "{told}");
        let (copy, _) = imported(&seller, &stored, &buyer, "full").await;
        let again = document(&buyer, &copy).await;
        assert_eq!(again["tax_currency_code"], currency);
    }
}

#[on_sqlite]
async fn the_tax_in_another_currency_that_a_file_states_is_in_its_ubl_again(world: &World) {
    const CODE: &str = "<cbc:TaxCurrencyCode>USD</cbc:TaxCurrencyCode>";
    const TOTAL: &str = "<cbc:TaxAmount currencyID=\"USD\">0.05</cbc:TaxAmount>";
    let seller = world.taxpayer().await;
    let sources = [
        ("standard", seller.invoice(&invoice()).await),
        (
            "full",
            seller.new_full_invoice(&full_invoice(&seller)).await,
        ),
    ];
    let party = "<cac:AccountingSupplierParty>";
    let sums = "<cac:LegalMonetaryTotal>";
    let total = format!("<cac:TaxTotal>{TOTAL}</cac:TaxTotal>{sums}");
    for (form, stored) in sources {
        let path = format!("{INVOICES}/{}/ubl.xml", stored["id"]);
        let ubl = seller.get(&path).await.expect_status(200).text;
        let with_code = ubl.replacen(party, &format!("{CODE}{party}"), 1);
        for (file, is_stated) in [
            (with_code.clone(), false),
            (with_code.replacen(sums, &total, 1), true),
        ] {
            let buyer = world.taxpayer().await;
            let query = format!("?form={form}");
            let made = import(&buyer, &query, "application/xml", file).await;
            let made = made.expect_status(201);
            let id = &made.data()["items"][0]["id"];
            let again = buyer.get(&format!("{INVOICES}/{id}/ubl.xml")).await;
            let again = again.expect_status(200).text;
            for part in [CODE, TOTAL] {
                assert_eq!(again.contains(part), is_stated, "{form} {part}: {again}");
            }
            assert!(again.contains("USD"), "{form}: {again}");
        }
    }
}
