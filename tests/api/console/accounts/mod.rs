//! The pages of accounts. The files mirror the pages.

mod activity;
mod batches;
mod bulk;
mod contacts;
mod correct;
mod customers;
mod import;
mod inbox;
mod integration;
mod invoice_acts;
mod invoice_forms;
mod invoices;
mod kept_input;
mod keys;
mod money;
mod notifications;
mod once;
mod overview;
mod owed;
mod payments;
mod pdf_archive;
mod profile;
mod refunds;
mod reports;
mod requests;
mod rights;
mod saved_views;
mod source_list;
mod stale;
mod taxpayers;
mod typed_amounts;
mod webhooks;

pub(super) use crate::support::account::{Account, PASSWORD, signed_in};
use crate::support::visitor::Seen;

/// Returns the value of the first field with this name on a page.
#[track_caller]
fn field_value(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&start).unwrap();
    let value = rest.split('"').next().unwrap();
    value.replace("&#38;", "&")
}

/// Returns the field `seen` of the forms on the page of an invoice. `invoice` is the path of the page.
async fn seen(account: &Account, invoice: &str) -> String {
    field_value(&account.page(invoice).await, "seen")
}

/// Sends a form of an invoice as somebody who sees the invoice as it is now.
async fn post_seen(account: &Account, invoice: &str, form: &str, fields: &[(&str, &str)]) -> Seen {
    let seen = seen(account, invoice).await;
    let fields: Vec<_> = fields.iter().copied().chain([("seen", &*seen)]).collect();
    account.post(&format!("{invoice}/{form}"), &fields).await
}

/// Asserts that a page has each of these texts.
#[track_caller]
pub(super) fn assert_shows(page: &str, texts: &[&str]) {
    for text in texts {
        assert!(page.contains(text), "{text:?} is missing in {page}");
    }
}
