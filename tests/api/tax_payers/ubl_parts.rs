//! GET `/v1/tax-payers/invoices/{id}/ubl.xml` of an imported invoice: what its file said and no field carries is there
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::documents;
use testkit::on_sqlite;
use testkit::roles::{INVOICES, Taxpayer};
use ubl::{Limits, ReadDocument};

use crate::support::world::World;
use crate::tax_payers::import::import;

const ACCOUNT: &str = "<cac:PaymentMeans><cbc:PaymentMeansCode>30</cbc:PaymentMeansCode>\
    <cac:PayeeFinancialAccount><cbc:ID>NG02ACCOUNT</cbc:ID></cac:PayeeFinancialAccount></cac:PaymentMeans>";
const ORDER_LINE: &str =
    "<cac:OrderLineReference><cbc:LineID>70</cbc:LineID></cac:OrderLineReference>";
const ENDPOINT: &str = "<cbc:EndpointID schemeID=\"0088\">7300010000001</cbc:EndpointID>";
const FORMS: [&str; 2] = ["standard", "full"];
/// At least so many examples become an invoice in each form.
const CREATED_MIN: usize = 45;

/// What UBL has no element for.
fn profile() -> Value {
    json!({ "defaults": {
        "email": "buyer@customer.example", "tin": "12345678-0001", "address_state": "Lagos",
        "address_street_name": "1 Marina", "address_city": "Lagos", "address_country": "NG",
        "address_postal_code": "101241", "business_description": "Trade", "name": "Customer",
        "product_category": "8471.30", "service_category": "6201",
    } })
}

/// Returns the examples that others wrote (`crates/ubl/tests/examples/SOURCES.md`), by their names.
fn examples() -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/ubl/tests/examples");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "xml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect()
}

fn read(xml: &[u8]) -> ReadDocument {
    ubl::read(xml, &Limits::default()).unwrap()
}

/// Imports a file; `None` if no invoice comes of it.
async fn imported(taxpayer: &Taxpayer, form: &str, file: Vec<u8>) -> Option<Value> {
    let made = import(taxpayer, &format!("?form={form}"), "application/xml", file)
        .await
        .expect_status(201);
    let item = &made.data()["items"][0];
    (item["outcome"] == "created").then(|| item["id"].clone())
}

async fn ubl_text(taxpayer: &Taxpayer, id: &Value) -> String {
    let path = format!("{INVOICES}/{id}/ubl.xml");
    taxpayer.get(&path).await.expect_status(200).text
}

/// Returns what a document says without any money.
fn words(read: &ReadDocument) -> Vec<String> {
    let document = &read.document;
    let references = document.references.iter().filter(|one| !one.id.is_empty());
    let references: BTreeSet<_> = references
        .map(|one| format!("{:?} {}", one.kind, one.id))
        .collect();
    vec![
        document.notes.join(" "),
        format!("{:?}", document.payment_terms),
        format!("{:?}", document.delivery_date),
        format!("{:?}", document.period),
        format!("{:?}", document.buyer_reference),
        format!("{:?}", document.accounting_cost),
        format!("{:?}", document.issue_time),
        format!("{:?}", document.customer.registration),
        format!("{references:?}"),
    ]
}

/// Returns the parts with the names that an invoice has, because a negative invoice comes back as a credit note.
fn parts(read: &ReadDocument) -> BTreeSet<String> {
    let parts = read.beside.iter();
    let texts = parts.map(|part| format!("{} {}", part.path, part.value));
    texts
        .map(|text| text.replace("CreditNote", "Invoice"))
        // An element without others of its name has no number.
        .map(|text| text.replace("[1]", ""))
        .map(|text| text.replace("CreditedQuantity", "InvoicedQuantity"))
        .collect()
}

/// True for what goes with money that the invoice has differently, for the type of a negative invoice, for the tax number
/// of the supplier and the schemes of its numbers, which no invoice has, and for the contact of a customer, which is one
/// with the e-mail that the invoice has.
fn may_go(part: &str) -> bool {
    const NAMES: [&str; 10] = [
        "cac:ClassifiedTaxCategory",
        "cac:AccountingSupplierParty/cac:Party <cac:PartyTaxScheme>",
        "cac:AccountingSupplierParty/cac:Party/cac:PartyIdentification/cbc:ID/@schemeID",
        "cac:AccountingSupplierParty/cac:Party/cac:PartyLegalEntity/cbc:CompanyID/@schemeID",
        "cac:AllowanceCharge",
        "cac:TaxTotal",
        "cac:PrepaidPayment",
        "cbc:TaxCurrencyCode",
        "<cbc:InvoiceTypeCode",
        "<cac:Contact",
    ];
    NAMES.iter().any(|name| part.contains(name))
}

#[on_sqlite]
async fn what_no_field_carries_is_in_the_ubl_again(world: &World) {
    for form in FORMS {
        // Judges look at them afterwards (`scripts/test`).
        let judged = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("ubl/imported")
            .join(form);
        fs::create_dir_all(&judged).unwrap();
        let mut created = 0;
        for (name, file) in examples() {
            let taxpayer = world.taxpayer().await;
            taxpayer
                .send("PUT", "/v1/tax-payers/import-profile", &profile())
                .await
                .expect_status(200);
            let Some(id) = imported(&taxpayer, form, file.clone()).await else {
                continue;
            };
            created += 1;
            let source = read(&file);
            let text = ubl_text(&taxpayer, &id).await;
            fs::write(judged.join(format!("{name}.xml")), &text).unwrap();
            let again = read(text.as_bytes());
            assert_eq!(words(&again), words(&source), "{form} {name}");
            let kept = parts(&again);
            let lost: Vec<_> = parts(&source)
                .into_iter()
                .filter(|part| !kept.contains(part) && !may_go(part))
                .collect();
            assert_eq!(lost, [""; 0], "{form} {name}: {kept:?}");
        }
        assert!(created >= CREATED_MIN, "{form}: {created}");
    }
}

#[on_sqlite]
async fn a_script_in_a_file_is_left_out_and_told(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let stored = seller.invoice(&documents::invoice()).await;
    let ubl = ubl_text(&seller, &stored["id"]).await;
    let script = "<h:script xmlns:h=\"http://www.w3.org/1999/xhtml\">bad()</h:script>";
    let extension = |content: &str| {
        format!(
            "<ext:UBLExtension><ext:ExtensionContent>{content}</ext:ExtensionContent></ext:UBLExtension>"
        )
    };
    let extensions = format!(
        "<ext:UBLExtensions>{}{}</ext:UBLExtensions><cbc:CustomizationID>",
        extension(script),
        extension("<s:Sign xmlns:s=\"urn:s\">harmless</s:Sign>"),
    );
    let file = ubl.replacen("<cbc:CustomizationID>", &extensions, 1);
    let made = import(
        &buyer,
        "?form=standard",
        "application/xml",
        file.into_bytes(),
    )
    .await;
    let made = made.expect_status(201);
    let item = &made.data()["items"][0];
    let warnings = item["warnings"].to_string();
    assert!(warnings.contains("1999/xhtml is left out"), "{warnings}");
    let text = ubl_text(&buyer, &item["id"]).await;
    assert!(text.contains("harmless"), "{text}");
    assert!(!text.contains("bad()") && !text.contains("xhtml"), "{text}");
}

#[on_sqlite]
async fn a_part_of_a_line_goes_when_the_lines_change(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let stored = seller.invoice(&documents::invoice()).await;
    let ubl = seller
        .get(&format!("{INVOICES}/{}/ubl.xml", stored["id"]))
        .await
        .expect_status(200);
    let file = ubl
        .text
        .replacen("<cac:Item>", &format!("{ORDER_LINE}<cac:Item>"), 1);
    let file = file.replacen("<cac:TaxTotal>", &format!("{ACCOUNT}<cac:TaxTotal>"), 1);
    let id = imported(&buyer, "standard", file.into_bytes())
        .await
        .unwrap();
    let path = format!("{INVOICES}/{id}/ubl.xml");
    let has = async |part: &str| {
        buyer
            .get(&path)
            .await
            .expect_status(200)
            .text
            .contains(part)
    };
    assert!(
        has(">NG02ACCOUNT<").await && has(">70<").await,
        "{}",
        buyer.get(&path).await.text
    );
    let invoice = buyer.get_invoice(&id).await.data().clone();
    buyer
        .update(&documents::update(&invoice))
        .await
        .expect_status(200);
    assert!(
        has(">NG02ACCOUNT<").await && !has(">70<").await,
        "{}",
        buyer.get(&path).await.text
    );
}

#[on_sqlite]
async fn the_address_of_a_customer_goes_when_the_invoice_is_for_another_one(world: &World) {
    let seller = world.taxpayer().await;
    let buyer = world.taxpayer().await;
    let stored = seller.invoice(&documents::invoice()).await;
    let ubl = ubl_text(&seller, &stored["id"]).await;
    let (before, customer) = ubl.split_once("<cac:AccountingCustomerParty>").unwrap();
    let customer = customer.replacen("<cac:Party>", &format!("<cac:Party>{ENDPOINT}"), 1);
    let file = format!("{before}<cac:AccountingCustomerParty>{customer}");
    let id = imported(&buyer, "standard", file.into_bytes())
        .await
        .unwrap();
    let text = ubl_text(&buyer, &id).await;
    assert!(text.contains(ENDPOINT), "{text}");
    let invoice = buyer.get_invoice(&id).await.data().clone();
    let own = documents::update(&invoice);
    let mut other = own.clone();
    other["customer"]["no"] = json!("C-002");
    other["customer"]["tin"] = json!("87654321-0009");
    for (body, is_kept) in [(own, true), (other, false)] {
        buyer.update(&body).await.expect_status(200);
        let text = ubl_text(&buyer, &id).await;
        assert_eq!(text.contains(ENDPOINT), is_kept, "{text}");
    }
}
