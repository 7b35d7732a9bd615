//! Tests of the change of a stored customer, which is serialized with the creation of invoices.

use super::{BY, ID, TestTaxpayers, draft};
use crate::actors::taxpayer::commands::{ChangeCustomer, CreateInvoice};
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::invoice::Draft;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::{Customer, CustomerDetails};
use crate::store::invoices::customers;
use crate::store::testing::stores;

async fn stored_customer(app: &TestTaxpayers, no: &str) -> Customer {
    let found = customers::find_owned_by_no(app.test.store.reader(), ID, no);
    found.await.unwrap().unwrap()
}

/// Returns a draft to a customer with this number and tax number.
fn draft_to(number: &str, no: &str, tin: Option<&str>) -> Draft {
    let mut draft = draft(number, 100);
    no.clone_into(&mut draft.customer.no);
    draft.customer.tin = tin.map(str::to_owned);
    draft
}

/// Returns the change of a customer that gives it this name.
fn rename(seen: &Customer, name: &str) -> ChangeCustomer {
    ChangeCustomer {
        seen: seen.clone(),
        details: CustomerDetails {
            name: name.to_owned(),
            ..seen.details.clone()
        },
        by: BY,
    }
}

#[actix_rt::test]
async fn later_invoices_get_the_new_data_and_stored_ones_keep_theirs() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let before = CreateInvoice(draft("INV1", 100));
        let before = app.taxpayers.send(ID, before).await.unwrap();
        let mut change = rename(&stored_customer(&app, "C-1").await, "Moved Ltd");
        change.details.address.street_name = "7 New Road".to_owned();
        change.details.no = "C-9".to_owned();
        change.details.tin = Some("T-9".to_owned());
        app.taxpayers.send(ID, change).await.unwrap();
        let stored = stored_customer(&app, "C-1").await.details;
        assert_eq!(stored.address.street_name, "7 New Road");
        assert_eq!(stored.tin.as_deref(), Some("T-1"), "a tax number stays");
        let after = CreateInvoice(draft("INV2", 100));
        let after = app.taxpayers.send(ID, after).await.unwrap();
        assert_eq!(after.invoice.customer.name, "Moved Ltd");
        assert_eq!(after.invoice.customer.id, before.invoice.customer.id);
        let again = CreateInvoice(draft("INV1", 100));
        let again = app.taxpayers.send(ID, again).await.unwrap();
        assert_eq!(again.invoice.customer.name, "Customer");
        app.close().await;
    }
}

#[actix_rt::test]
async fn of_two_changes_that_read_the_same_customer_the_second_is_refused() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        let invoice = CreateInvoice(draft("INV1", 100));
        app.taxpayers.send(ID, invoice).await.unwrap();
        for (first, second) in [("A", "B"), ("C", "D")] {
            let seen = stored_customer(&app, "C-1").await;
            let (one, other) = tokio::join!(
                app.taxpayers.send(ID, rename(&seen, first)),
                app.taxpayers.send(ID, rename(&seen, second)),
            );
            assert_ne!(one.is_ok(), other.is_ok(), "{first} {second}");
            let kept = if one.is_ok() { first } else { second };
            let refused = if one.is_ok() { other } else { one };
            let refusal = Refusal::CustomerChanged;
            assert!(
                matches!(refused, Err(TaxpayerError::Refused(found)) if found == refusal),
                "{first} {second}"
            );
            assert_eq!(stored_customer(&app, "C-1").await.details.name, kept);
        }
        app.close().await;
    }
}

#[actix_rt::test]
async fn a_tin_is_filled_in_unless_another_customer_has_it() {
    for test in stores().await {
        let app = TestTaxpayers::with_taxpayer(test).await;
        for (number, no, tin) in [("INV1", "C-1", Some("T-1")), ("INV2", "C-2", None)] {
            let invoice = CreateInvoice(draft_to(number, no, tin));
            app.taxpayers.send(ID, invoice).await.unwrap();
        }
        for (tin, is_free) in [("T-1", false), ("T-2", true)] {
            let mut change = rename(&stored_customer(&app, "C-2").await, "Other");
            change.details.tin = Some(tin.to_owned());
            let changed = app.taxpayers.send(ID, change).await;
            assert_eq!(changed.is_ok(), is_free, "{tin}");
            let stored = stored_customer(&app, "C-2").await.details.tin;
            assert_eq!(stored.is_some(), is_free, "{tin}");
        }
        app.close().await;
    }
}
