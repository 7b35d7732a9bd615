//! GET `/v1/tax-payers/invoices/{id}/pdf`, `/ubl.xml`, `/json`, `/qr.svg` and `/qr.png`.

use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};
use testkit::documents::{full_invoice, invoice, number, submission};
use testkit::edit::{exact, with, without};
use testkit::{each_database, on_sqlite};

use crate::support::world::World;
use crate::tax_payers::import::import;

/// Each file with its type, how a browser takes it, and its beginning.
const FILES: [(&str, &str, &str, &[u8]); 5] = [
    ("pdf", "application/pdf", "inline", b"%PDF-1.7"),
    ("ubl.xml", "application/xml", "attachment", b"<?xml"),
    ("json", "application/json", "attachment", b"{\""),
    ("qr.svg", "image/svg+xml", "attachment", b"<svg"),
    ("qr.png", "image/png", "inline", b"\x89PNG"),
];

#[each_database]
async fn every_file_has_its_type_its_name_and_a_tag(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let no = stored["invoice_no"].as_str().unwrap();
    let own = format!("/v1/tax-payers/invoices/{}", stored["id"]);
    let integrators = format!(
        "/v1/system-integrators/taxpayers/{}/invoices/{}",
        taxpayer.id, stored["id"]
    );
    let integrator = world.integrator();
    for (name, kind, taken, start) in FILES {
        let mut all = Vec::new();
        for request in [
            taxpayer.request("GET", &format!("{own}/{name}")),
            integrator.request("GET", &format!("{integrators}/{name}")),
        ] {
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 200, "{name}");
            assert_eq!(answer.headers()[CONTENT_TYPE], kind);
            let disposition = answer.headers()[CONTENT_DISPOSITION].to_str().unwrap();
            assert!(disposition.contains(no), "{disposition}");
            assert!(disposition.starts_with(taken), "{disposition}");
            let tag = answer.headers()[ETAG].clone();
            let again = taxpayer
                .request("GET", &format!("{own}/{name}"))
                .header(IF_NONE_MATCH, &tag);
            let unchanged = again.send().await.unwrap();
            assert_eq!(unchanged.status(), 304, "{name}");
            assert!(unchanged.bytes().await.unwrap().is_empty(), "{name}");
            let bytes = answer.bytes().await.unwrap();
            assert!(bytes.starts_with(start), "{name}: {:?}", &bytes[..8]);
            all.push(bytes);
        }
        assert_eq!(all[0], all[1], "{name}");
    }
}

#[each_database]
async fn a_signed_invoice_is_given_out_as_it_was_signed(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer.invoice(&invoice()).await;
    let path = format!("/v1/tax-payers/invoices/{}", stored["id"]);
    let draft = taxpayer
        .get(&format!("{path}/json"))
        .await
        .expect_status(200);
    assert_eq!(
        draft.body["legal_monetary_total"]["payable_amount"],
        exact("1075")
    );
    let other = with(
        &submission(&taxpayer, stored["invoice_no"].as_str().unwrap()),
        "note",
        json!("As signed"),
    );
    taxpayer
        .app()
        .submit_to_the_end(&other)
        .await
        .expect_status(200);
    let signed = taxpayer
        .get(&format!("{path}/json"))
        .await
        .expect_status(200);
    assert_eq!(
        (&draft.body["note"], &signed.body["note"]),
        (&Value::Null, &json!("As signed"))
    );
    let ubl = taxpayer
        .request("GET", &format!("{path}/ubl.xml"))
        .send()
        .await
        .unwrap();
    assert!(ubl.text().await.unwrap().contains("As signed"));
}

#[on_sqlite]
async fn a_consumer_without_a_tax_number_is_on_paper_though_the_authority_does_not_get_one(
    world: &World,
) {
    let taxpayer = world.taxpayer().await;
    let consumer = |body: &Value| with(body, "invoice_category", json!("B2C"));
    let standard = consumer(&without(&invoice(), "customer.tin"));
    let full = consumer(&without(
        &full_invoice(&taxpayer),
        "accounting_customer_party.tin",
    ));
    for stored in [
        taxpayer.invoice(&standard).await,
        taxpayer.new_full_invoice(&full).await,
    ] {
        let path = format!("/v1/tax-payers/invoices/{}", stored["id"]);
        let document = taxpayer
            .get(&format!("{path}/json"))
            .await
            .expect_status(200);
        assert_eq!(document.body["accounting_customer_party"], Value::Null);
        let ubl = taxpayer
            .get(&format!("{path}/ubl.xml"))
            .await
            .expect_status(200)
            .text;
        let (_, customer) = ubl.split_once("<cac:AccountingCustomerParty>").unwrap();
        for part in [
            "Retail Stores Ltd",
            "<cbc:CityName>",
            "<cbc:IdentificationCode>NG",
        ] {
            assert!(customer.contains(part), "{part}: {customer}");
        }
    }
}

#[on_sqlite]
async fn a_signed_invoice_of_several_taxes_has_them_in_ubl(world: &World) {
    let taxpayer = world.taxpayer().await;
    let mut body = invoice();
    let mut book = body["invoice_lines"][0].clone();
    book["item_name"] = json!("Book");
    book["item_no"] = json!("BOOK-1");
    book["tax_category"] = json!("ZERO_VAT");
    body["invoice_lines"].as_array_mut().unwrap().push(book);
    let stored = taxpayer.invoice(&body).await;
    let path = format!("/v1/tax-payers/invoices/{}/ubl.xml", stored["id"]);
    let ubl = async || taxpayer.get(&path).await.expect_status(200).text;
    let draft = ubl().await;
    let alone = json!({ "irn": stored["irn"] });
    taxpayer
        .app()
        .submit_to_the_end(&alone)
        .await
        .expect_status(200);
    let signed = ubl().await;
    for text in [draft, signed] {
        let lines: Vec<_> = text.split("<cac:ClassifiedTaxCategory>").skip(1).collect();
        let categories: Vec<_> = lines
            .iter()
            .map(|line| line.trim_start().split(['<', '>']).nth(2).unwrap())
            .collect();
        assert_eq!(categories, ["S", "Z"], "{text}");
    }
}

#[on_sqlite]
async fn allowances_on_the_document_come_back_from_its_ubl(world: &World) {
    let seller = world.taxpayer().await;
    let other = world.taxpayer().await;
    let charges = json!([
        { "charge_indicator": false, "amount": exact("10.01") },
        { "charge_indicator": true, "amount": exact("3.33") },
    ]);
    let body = with(&full_invoice(&seller), "allowance_charge", charges.clone());
    let payable = exact("1068.32");
    let body = with(
        &body,
        "legal_monetary_total.payable_amount",
        payable.clone(),
    );
    let stored = seller.new_full_invoice(&body).await;
    let ubl = seller
        .get(&format!("/v1/tax-payers/invoices/{}/ubl.xml", stored["id"]))
        .await
        .expect_status(200)
        .text;
    assert!(!ubl.contains("PrepaidAmount"), "{ubl}");
    assert!(ubl.contains(">1068.32</cbc:PayableAmount>"), "{ubl}");
    let made = import(&other, "?form=full", "application/xml", ubl)
        .await
        .expect_status(201);
    let copy = other.get_invoice(&made.data()["items"][0]["id"]).await;
    let whole = other.invoice_with_ledger(copy.data()).await;
    assert_eq!(whole["ledger"]["payable_amount"], payable);
    let document = other
        .get(&format!("/v1/tax-payers/invoices/{}/json", whole["id"]))
        .await
        .expect_status(200);
    assert_eq!(document.body["allowance_charge"], charges);
}

#[on_sqlite]
async fn a_type_that_ubl_does_not_have_is_told(world: &World) {
    let taxpayer = world.taxpayer().await;
    let stored = taxpayer
        .new_full_invoice(&with(
            &full_invoice(&taxpayer),
            "invoice_type_code",
            json!("400"),
        ))
        .await;
    let path = format!("/v1/tax-payers/invoices/{}", stored["id"]);
    let refused = taxpayer
        .get(&format!("{path}/ubl.xml"))
        .await
        .expect_status(422);
    assert_eq!(refused.faulty_paths(), ["invoice_type_code"]);
    let paper = taxpayer
        .request("GET", &format!("{path}/pdf"))
        .send()
        .await
        .unwrap();
    assert_eq!(paper.status(), 200, "a paper needs no UBL");
}

#[on_sqlite]
async fn letters_that_no_font_has_are_told_at_the_start_and_on_paper(world: &World) {
    let taxpayer = world.taxpayer().await;
    for (name, is_printable) in [
        ("Ọbí, Ελλάς, Москва, شركة, שלום", true),
        ("日本商事", false),
        ("한국", false),
        ("ไทย", false),
        ("हिन्दी", false),
        ("Shop 🙂", false),
    ] {
        let item = with(&invoice(), "invoice_lines.0.item_name", json!(name));
        let no = number();
        let customer = with(&invoice(), "customer.no", json!(format!("C-{no}")));
        let customer = with(&customer, "customer.tin", json!(format!("{no:08}-0077")));
        let customer = with(&customer, "customer.name", json!(name));
        for (body, path) in [
            (item, "invoice_lines.0.item_name"),
            (customer, "customer.name"),
        ] {
            let made = taxpayer.create_invoice(&body).await.expect_status(201);
            let pdf = format!("/v1/tax-payers/invoices/{}/pdf", made.data()["id"]);
            let paper = taxpayer.request("GET", &pdf).send().await.unwrap();
            assert_eq!(paper.status(), 200, "{name}");
            let told = paper.headers().get("x-system-warning");
            let told = told.map_or("", |value| value.to_str().unwrap());
            let warned = if is_printable { "" } else { path };
            assert_eq!(told.is_empty(), is_printable, "{name}: {told}");
            assert!(told.contains(warned), "{name}: {told}");
            let warnings = made.warnings();
            assert_eq!(warnings.is_empty(), is_printable, "{name}: {warnings}");
            assert!(warnings.contains(warned), "{name}: {warnings}");
        }
    }
    for path in [
        "invoice_line.0.item.name",
        "invoice_line.0.item.description",
        "payment_terms_note",
    ] {
        let body = with(&full_invoice(&taxpayer), path, json!("日本"));
        let made = taxpayer.create_full(&body).await.expect_status(201);
        assert!(made.warnings().contains(path), "{}", made.warnings());
    }
}
