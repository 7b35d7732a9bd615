//! The PDFs of many invoices in one ZIP file.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use serde_json::{Value, json};
use testkit::documents;
use testkit::edit::with;
use testkit::{each_database, on_sqlite};
use zip::ZipArchive;

use super::{Account, assert_shows};
use crate::support::world::World;

/// Returns the name of the PDF of an invoice.
fn name(invoice: &Value) -> String {
    format!("{}.pdf", invoice["invoice_no"].as_str().unwrap())
}

/// Downloads the PDFs of a selection. Returns the files in the archive by their names.
pub(super) async fn download(account: &Account, query: &str) -> BTreeMap<String, Vec<u8>> {
    let path = account.path(&format!("/invoices/files/zip?{query}"));
    let answer = account.owner.open_stream(&path).await;
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    let [content_type, saved_as] = ["content-type", "content-disposition"].map(header);
    assert_eq!(content_type, "application/zip");
    assert!(
        saved_as.starts_with("attachment; filename=\"invoices-") && saved_as.ends_with(".zip\""),
        "{saved_as}"
    );
    let bytes = answer.bytes().await.unwrap();
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let name = file.name().unwrap().into_owned();
        let mut contents = Vec::new();
        file.read_to_end(&mut contents).unwrap();
        files.insert(name, contents);
    }
    files
}

#[each_database]
async fn the_pdfs_of_the_chosen_invoices_come_in_one_file(world: &World) {
    let account = Account::new(world).await;
    let other = Account::new(world).await;
    let signed = account.taxpayer.invoice(&documents::invoice()).await;
    let draft = account.taxpayer.invoice(&documents::invoice()).await;
    let unchosen = account.taxpayer.invoice(&documents::invoice()).await;
    let foreign = other.taxpayer.invoice(&documents::invoice()).await;
    let alone = json!({ "irn": signed["irn"] });
    let submitted = account.taxpayer.app().submit_to_the_end(&alone).await;
    submitted.expect_status(200);
    let query = format!(
        "filter=&id={}&id={}&id={}",
        signed["id"], draft["id"], foreign["id"]
    );
    let files = download(&account, &query).await;
    assert_eq!(files.len(), 2, "{:?}", files.keys());
    for invoice in [&signed, &draft] {
        let pdf = &files[&name(invoice)];
        assert!(pdf.starts_with(b"%PDF-"), "{invoice}");
        let path = account.path(&format!("/invoices/{}/files/pdf", invoice["id"]));
        let alone = account.owner.open_stream(&path).await.bytes().await;
        assert!(alone.unwrap() == *pdf, "as the single download: {invoice}");
    }
    for query in ["all=true&filter=status%3Ddraft", "status=draft"] {
        let drafts: Vec<_> = download(&account, query).await.into_keys().collect();
        let mut expected = [&draft, &unchosen].map(name);
        expected.sort();
        assert_eq!(drafts, expected, "{query}");
    }
    for (query, told) in [
        ("filter=", "Nothing is chosen."),
        (
            "all=true&filter=status%3Dcancelled",
            "There is no invoice to download.",
        ),
    ] {
        let path = account.path(&format!("/invoices/files/zip?{query}"));
        let refused = account.owner.get(&path).await.expect(422);
        assert_shows(&refused.html, &[told]);
    }
    let path = account.path("/invoices/files/zip");
    other.owner.get(&path).await.expect(404);
}

#[each_database]
async fn an_invoice_without_a_pdf_is_named_in_a_file_of_errors(world: &World) {
    let account = Account::new(world).await;
    let good = account.taxpayer.invoice(&documents::invoice()).await;
    let body = with(&documents::invoice(), "customer.no", json!("C-4"));
    let body = with(&body, "customer.tin", json!("87654321-0004"));
    let bad = account.taxpayer.invoice(&body).await;
    let damage = format!(
        "UPDATE customers SET category = 'odd' WHERE taxpayer_id = {} AND no = 'C-4'",
        account.taxpayer.id
    );
    assert_eq!(world.execute(&damage).await, 1);
    let files = download(&account, "all=true&filter=").await;
    let [good, bad] = [&good, &bad].map(|invoice| invoice["invoice_no"].as_str().unwrap());
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(names, [&*format!("{good}.pdf"), "errors.txt"]);
    let errors = String::from_utf8_lossy(&files["errors.txt"]);
    let lines: Vec<_> = errors.lines().collect();
    assert!(
        matches!(lines[..], [line] if line.starts_with(&format!("{bad}: "))),
        "{errors}"
    );
}

#[on_sqlite]
async fn more_pdfs_than_a_file_takes_are_refused_with_their_number(world: &World) {
    let account = Account::new(world).await;
    let bodies: Vec<_> = (0..501).map(|_| documents::invoice()).collect();
    let made = account.taxpayer.create_batch(&bodies).await;
    made.expect_status(201);
    let path = account.path("/invoices/files/zip?all=true&filter=");
    let refused = account.owner.get(&path).await.expect(422);
    let told = ["These are 501 invoices", "at most 500", "narrow the list"];
    assert_shows(&refused.html, &told);
}
