//! The inbox: a supplier's invoice is read and acknowledged.

use testkit::each_database;

use super::{Account, assert_shows};
use crate::support::supplies;
use crate::support::world::World;

#[each_database]
async fn a_suppliers_invoice_is_read_and_acknowledged(world: &World) {
    let account = Account::new(world).await;
    assert_shows(
        &account.page("/inbox").await,
        &["No supplier has sent an invoice yet."],
    );
    let irn = supplies::received(world, &account.taxpayer).await;
    let (number, _) = irn.split_once('-').unwrap();
    let shown = [number, "2026-01-15", "NGN ", "To acknowledge</span>"];
    assert_shows(&account.page("/inbox").await, &shown);
    assert_shows(&account.page("/inbox?open=true").await, &shown);
    let path = format!("/inbox/{irn}");
    for (file, begins) in [("pdf", "%PDF-"), ("json", "{")] {
        let file = account.page(&format!("{path}/files/{file}")).await;
        assert!(file.starts_with(begins), "{file}");
    }
    for file in ["ubl.xml", "qr.svg", "odd"] {
        let path = account.path(&format!("{path}/files/{file}"));
        account.owner.get(&path).await.expect(404);
    }
    assert_shows(
        &account.page(&path).await,
        &[
            &irn,
            "Supplier",
            "Payable",
            "The document as it was received",
        ],
    );
    account
        .post(&format!("{path}/acknowledge"), &[])
        .await
        .expect(303);
    let page = account.page(&path).await;
    assert_shows(&page, &["Acknowledged"]);
    assert!(!page.contains("To acknowledge"), "{page}");
    let open = account.page("/inbox?open=true").await;
    assert_shows(&open, &["Every invoice is acknowledged."]);
    assert_shows(&account.page("/inbox").await, &[number, "Acknowledged"]);
    account
        .post(&format!("{path}/acknowledge"), &[])
        .await
        .expect(409);
}
