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
    assert_shows(&account.page("/inbox").await, &[&irn, "To acknowledge"]);
    let path = format!("/inbox/{irn}");
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
    account
        .post(&format!("{path}/acknowledge"), &[])
        .await
        .expect(409);
}
